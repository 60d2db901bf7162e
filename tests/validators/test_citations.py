"""Quotations are found where they stand, or not at all."""

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.validators.citations import find_citation, normalise

ALPHABET = "ab1 \t\n\u00a0\u2028'\u2019\"\u201c-\u2013\u00ad\u200b\ufeff中é\U0001f600"
texts = st.text(alphabet=ALPHABET, min_size=1, max_size=80)


@given(text=texts, data=st.data())
def test_any_substring_is_found_at_a_place_whose_text_equals_it(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    quote = text[start : data.draw(st.integers(start + 1, len(text)))]
    found = find_citation(quote, text)
    if not quote.strip():
        assert found is None
    else:
        assert found is not None
        assert (found.method, found.score) == ("exact", 100.0)
        assert text[found.start : found.end] == quote


SPELLINGS = {
    " ": [" ", "\n", "\t ", "\u00a0", " \r\n  ", "\u2028", " \u200b "],
    "'": ["'", "\u2019", "\u2018"],
    '"': ['"', "\u201c", "\u201d"],
    "-": ["-", "\u2013", "\u2014"],
}


@given(
    before=texts,
    words=st.lists(st.sampled_from(["the", "it's", '"Fee"', "12-13", "中文", "é"]), min_size=1),
    after=texts,
    data=st.data(),
)
def test_another_spelling_is_found_and_its_offsets_normalise_to_the_quotation(before, words, after, data):
    quote = " ".join(words)
    spelled = "".join(data.draw(st.sampled_from(SPELLINGS.get(char, [char, char + "\u00ad"]))) for char in quote)
    source = before + spelled + after
    found = find_citation(quote, source)
    assert found is not None
    assert found.method in ("exact", "normalised")
    assert normalise(source[found.start : found.end]) == normalise(quote)
    assert source[found.start].strip("\u00ad\u200b\ufeff \t\n\u00a0\u2028")


@given(text=texts)
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize("quote", ["", "  ", "\n\t\u00a0", "\u200b"])
def test_an_empty_quotation_is_no_citation(quote):
    assert find_citation(quote, "some text with   blanks") is None


def test_a_small_slip_is_found_by_similarity_at_the_right_place():
    source = (
        "PREAMBLE. " * 40 + "This Agreement shall be governed by the laws of  the State of New York. " + "END. " * 40
    )
    found = find_citation("This Agreement shall be goverened by the laws of the State of New York.", source)
    assert found is not None
    assert found.method == "fuzzy"
    assert 90 <= found.score < 100
    assert source[found.start : found.end].startswith("This Agreement shall be governed")
    assert source[found.start : found.end].endswith("New York.")


def test_a_similar_sentence_with_another_amount_is_no_citation():
    source = "The Licensee shall pay to the Licensor a fee of 1,000 dollars within thirty days of the invoice."
    assert (
        find_citation("The Licensee shal pay to the Licensor a fee of 9,000 dollars within thirty days", source) is None
    )


def test_an_invented_sentence_is_no_citation():
    assert (
        find_citation("The parties agree to arbitrate in Geneva.", "Nothing of the kind is written here. " * 100)
        is None
    )


def test_a_text_that_is_nowhere_costs_little_even_in_a_long_source():
    random = Random(7)
    words = ["".join(random.choices("abcdefghijklmnop", k=random.randint(2, 9))) for _ in range(3000)]
    source = "  \n".join(random.choices(words, k=48_000))[:300_000]
    quote = " ".join(random.choices(words, k=400))[:2000]
    started = time.perf_counter()
    assert find_citation(quote, source) is None
    assert find_citation("ab " * 100_000, source) is None
    assert time.perf_counter() - started < 10
