"""Real contracts and laws: true quotations in every spelling are found, changed ones are refused.

`make sweep ARGS=tests/checks` runs the full form and prints seed and counts of each kind; `make test` runs a small
one. The contracts are held out: the word list was made from others.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from random import Random

import pytest
from support.citation_cases import (
    CHINESE,
    ENGLISH,
    NAMES,
    SAME,
    SAME_CHINESE,
    Alteration,
    Document,
    held_out_contracts,
    laws,
    noisy,
    other_name,
    plain,
)

from nightmill.checks.citations import Citation, find_citation
from nightmill.checks.citations.fold import Folded

SEED = 20
FULL, SMALL = 300, 12  # cases of a kind
SIZES = [pytest.param(FULL, marks=pytest.mark.slow), SMALL]
ALTERATIONS = [("English", kind) for kind in (*ENGLISH, "name")] + [("Chinese", kind) for kind in CHINESE]
SPELLINGS = [("English", kind) for kind in SAME] + [("Chinese", kind) for kind in SAME_CHINESE]
AROUND = 15_000  # characters of the document on either side, where the document itself is respelled


@cache
def documents(language: str) -> list[Document]:
    return held_out_contracts() if language == "English" else laws()


@cache
def plain_text(document: Document) -> str:
    return plain(document.text)


@cache
def _names() -> list[str]:
    return sorted({name[0] for document in documents("English") for name in NAMES.finditer(document.text[:20_000])})


def alteration(language: str, kind: str) -> Alteration:
    if kind == "name":
        return other_name(_names())
    return (ENGLISH if language == "English" else CHINESE)[kind]


def cases(language: str, alter: Alteration, size: int, shortest: int) -> Iterator[tuple[Document, str, str]]:
    """(document, span, quotation made of it), document by document."""
    random = Random(SEED)
    chosen = documents(language)
    if size == SMALL:
        chosen = random.sample(chosen, 4)
    spans = [(at, span) for at, one in enumerate(chosen) for span in one.spans if len(span) >= shortest]
    random.shuffle(spans)
    made = []
    for at, span in spans:
        quote = alter(span, random)
        if quote is not None and quote != span:
            made.append((at, span, quote))
        if len(made) == size:
            break
    for at, span, quote in sorted(made):  # the fold of a document is made once
        yield chosen[at], span, quote


def tell(capsys, *words: object) -> None:
    with capsys.disabled():
        sys.stdout.write(" ".join(map(str, ("\n ", *words, "seed", SEED))))


def stands_well(citation: Citation, text: str, places: list[tuple[int, int]], span: str) -> bool:
    """IoU of 0.9 with one of the places, or the same in compared form."""
    for start, end in places:
        shared = min(end, citation.end) - max(start, citation.start)
        if shared >= 0.9 * (max(end, citation.end) - min(start, citation.start)):
            return True
    inside = text[citation.start : citation.end]
    return plain(inside) == plain(span) or Folded(inside).compact == Folded(span).compact


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", ["English", "Chinese"])
def test_every_span_is_found_word_for_word(language, size, capsys):
    random = Random(SEED)
    count = 0
    for document in documents(language) if size == FULL else random.sample(documents(language), 6):
        for span in document.spans:
            citation = find_citation(span, document.text)
            assert citation is not None, span
            assert document.text[citation.start : citation.end] == span.strip()
            count += 1
    tell(capsys, language, "verbatim:", count, "found")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("language", "kind"), ALTERATIONS)
def test_a_changed_meaning_is_refused(language, kind, size, capsys):
    count = accepted = 0
    for document, _, quote in cases(language, alteration(language, kind), size, 12):
        if plain(quote) in plain_text(document) and kind != "point moved":
            continue  # what was made stands in the document too
        count += 1
        accepted += find_citation(quote, document.text) is not None
    tell(capsys, language, f"{kind}:", accepted, "accepted of", count)
    assert accepted <= 0.01 * count


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("noise_in", ["quotation", "document"])
@pytest.mark.parametrize(("language", "kind"), SPELLINGS)
def test_another_spelling_is_found_at_its_place(language, kind, noise_in, size, capsys):
    respell = (SAME if language == "English" else SAME_CHINESE)[kind]
    counts = share_of_found(cases(language, respell, size, 8), noise_in)
    tell(capsys, language, f"{kind} in the {noise_in}:", counts)
    assert counts[1] >= 0.98 * counts[0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("noise_in", ["quotation", "document"])
@pytest.mark.parametrize(("kind", "least"), [("visual", 0.9), ("random", 0.85), ("doubled", 0.85), ("dropped", 0)])
def test_misread_letters_are_found(kind, least, noise_in, size, capsys):
    counts = share_of_found(cases("English", noisy(kind), size, 16), noise_in)
    tell(capsys, f"{kind} letters in the {noise_in}:", counts)
    assert counts[1] >= (least if size == FULL else least - 0.2) * counts[0]


def share_of_found(made: Iterator[tuple[Document, str, str]], noise_in: str) -> tuple[int, int]:
    """(cases, found at their place). Spans that stand twice are passed over where the document is respelled."""
    count = good = 0
    for document, span, respelled in made:
        text, quote = document.text, respelled
        places = [(one.start(), one.end()) for one in re.finditer(re.escape(span), text)]
        if noise_in == "document":
            if len(places) > 1:
                continue
            start, end = places[0]
            before = text[max(0, start - AROUND) : start]
            text, quote = before + respelled + text[end : end + AROUND], span
            places = [(len(before), len(before) + len(respelled))]
        count += 1
        citation = find_citation(quote, text)
        good += citation is not None and stands_well(citation, text, places, span)
    return count, good


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("language", ["English", "Chinese"])
def test_spans_of_other_documents_are_refused(language, size, capsys):
    random = Random(SEED)
    chosen = documents(language) if size == FULL else random.sample(documents(language), 4)
    count = accepted = long = 0
    for at, document in enumerate(chosen):
        for other in (chosen[(at + step) % len(chosen)] for step in (1, 2, 3)):
            labelled = dict.fromkeys(span for _, span in other.labelled)
            for span in [*labelled, *random.sample(other.spans, min(15, len(other.spans)))]:
                if not plain(span) or plain(span) in plain_text(document):
                    continue
                found = find_citation(span, document.text)
                count, accepted = count + 1, accepted + (found is not None)
                long += found is not None and len(span) >= 16
    tell(capsys, language, "foreign:", accepted, "accepted of", count)
    assert (accepted <= 0.002 * count, long <= 0.001 * count) == (True, True)


def test_found_spans_cut_no_word():
    count = cut = 0
    for document, _, quote in cases("English", noisy("visual"), 60, 16):
        citation = find_citation(quote, document.text)
        if citation is not None:
            before, after = document.text[: citation.start][-1:], document.text[citation.end :][:1]
            inside = document.text[citation.start : citation.end]
            cut += (before.isalpha() and inside[0].isalpha()) or (after.isalpha() and inside[-1].isalpha())
            count += 1
    assert count > 30
    assert cut <= 0.01 * count
