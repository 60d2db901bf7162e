"""An answer's quotations by the job's rules: what is kept, what the model is told, what is too much."""

from dataclasses import replace

import pytest

from nightmill.checks import citation_rules
from nightmill.checks.citation_rules import CitationRules
from nightmill.checks.port import Finding
from nightmill.domain.outcomes import CitedSpan
from nightmill.jobs.settings.job import CitationRule

TEXT = "The Licensee shall pay a fee of $1,000 within thirty days. The term is five years."
RULE = CitationRule(quote="evidence", source="body_text")


def check(quotes: object, text: str = TEXT, *, explain: bool = False) -> tuple[CitedSpan, ...] | Finding:
    """What is kept; else the finding, whose `told` has that of all the others too."""
    spans, findings = CitationRules([RULE], explain=explain).find({"evidence": quotes}, {"body_text": text})
    told = "; ".join(finding.told for finding in findings)
    return replace(findings[0], told=told) if findings else tuple(spans)


def test_every_quotation_is_kept_with_its_place_method_score_and_differing_words():
    spans = check(["a fee of $1,000", "The term is fivc years"])
    assert spans == (
        CitedSpan("evidence", "body_text", 23, 38, "exact", 100.0),
        CitedSpan("evidence", "body_text", 59, 81, "fuzzy", 94.4, (("fivc", "five"),)),
    )


def test_a_refused_quotation_is_named_by_number_and_field_and_nothing_of_the_document_is_stored():
    failure = check(["a fee of $1,000", "The Licensee may pay a fee"])
    assert isinstance(failure, Finding)
    assert (failure.code, failure.message) == ("citation_missing", "quote 2 of `evidence` is not in the document")
    single = check("The Licensee may pay")
    assert isinstance(single, Finding)
    assert single.message == "`evidence` is not in the document"


def test_the_model_is_told_of_each_refused_quotation_in_its_own_terms():
    failure = check(["The Licensee may pay a fee", "a fee of $1,000", "The term is nine years"], explain=True)
    assert isinstance(failure, Finding)
    first, second = failure.told.split("; quote 3 of ")
    assert first.startswith('quote 1 of `evidence` is not in the document; nearest: "The Licensee shall pay a fee"')
    assert '"may" is "shall" there' in first
    assert '"nine" is "five" there' in second
    assert "body_text" not in failure.told
    assert failure.message == "quote 1 of `evidence` is not in the document"


@pytest.mark.parametrize("quote", [None, 5, {"quote": "The term"}])
def test_what_is_no_text_is_no_quotation(quote):
    failure = check([quote])
    assert isinstance(failure, Finding)
    assert failure.code == "citation_missing"


def test_an_answer_with_too_many_quotations_is_refused_and_told_how_many_it_may_have(monkeypatch):
    many = check(["a fee"] * (citation_rules.MOST_QUOTES + 1))
    assert isinstance(many, Finding)
    assert (many.code, "give the 1000 best" in many.message) == ("too_many_citations", True)
    monkeypatch.setattr(citation_rules, "MOST_WORK", 11 * len(TEXT))
    folded = check(["A FEE"] * 20)  # not word for word: ten times the work
    assert isinstance(folded, Finding)
    assert "give the 10 best" in folded.message
    assert not isinstance(check(["a fee"] * 20), Finding)
