"""Quotations are found where they stand, or not at all: a changed meaning is none, another spelling is."""

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.checks.citations import find, find_citation, refusal
from nightmill.checks.citations.fold import Folded

SOURCE = (
    "PREAMBLE. The Licensee shall pay to the Licensor a fee of $1,000 within thirty (30) days, except on holidays. "
    "Liability is unlimited; the rate is 5.1% of 10² units, 5½ miles or (2,500) at most. The non-exclusive licence is "
    "agree-\nment bound. “Fee” is US$5 million, from 10-\n20 to -5. It is notable that x < 5 and y > 3. Sections "
    "1.1 . . . . 7 apply on 05 May; the day of ____, 2014 [***] is open. Twenty-five percent of the staff cannot vote. "
    "Licence 2026\n2027 fee."
)


def found(quote: str, source: str = SOURCE) -> str | None:
    citation = find_citation(quote, source)
    return source[citation.start : citation.end] if citation else None


@pytest.mark.parametrize(
    ("quote", "span"),
    [
        ("the licensee SHALL pay", "The Licensee shall pay"),
        ("a fee of $1,000 within\n  thirty (30)\u00a0days", "a fee of $1,000 within thirty (30) days"),
        ("agreement bound", "agree-\nment bound"),
        ("non‑exclusive licence", "non-exclusive licence"),
        ('"Fee" is US$5 million', "“Fee” is US$5 million"),
        ("**“Fee”** is US$5 million", "“Fee” is US$5 million"),
        ("<b>the rate</b> is 5.1%", "the rate is 5.1%"),
        ("x &lt; 5 and y &gt; 3", "x < 5 and y > 3"),
        ("５.１％ of 10", None),
        ("the rate is ５.１％", "the rate is 5.1%"),
        ("10^2 units", "10² units"),
        ("5 1/2 miles", "5½ miles"),
        ("from 10-20 to -5", "from 10-\n20 to -5"),
        ('"Liability is unlimited"', "Liability is unlimited"),
        ("5 May", "5 May"),  # a leading zero is cut
        ("... Liability is unlimited ...", "Liability is unlimited"),
        ("within thirty", "within thirty"),
        ("day of ____, 2014", "day of ____, 2014"),
        ("[***]", "[***]"),
    ],
)
def test_another_spelling_is_found_at_its_place(quote, span):
    assert found(quote) == span


@pytest.mark.parametrize(
    "quote",
    [
        "The Licensee may pay to the Licensor",
        "The Licensor shall pay to the Licensee",
        "a fee of $1000 within",
        "a fee of $1.000 within",
        "a fee of EUR 1,000 within",
        "a fee of $1,000 within sixty (30) days",
        "a fee of $1,000 within thirty days",
        "a fee of $1,000 within thirty (30) months",
        "000 within thirty",  # a part of a number
        "the rate is 5",
        "the rate is 5.",
        "US$5",
        "the rate is 51% of",
        "102 units",
        "51/2 miles",
        "licence 20262027 fee",  # a line break between numbers
        "2,500 at most",  # the brackets are part of the number
        "limited; the rate",
        "exclusive licence",
        "from 1020 to",
        "to 5. It",
        "It is not able that",
        "x 5 and y 3",
        "within thirty.",
        "within thirty (",
        "within thirty ()",
        "within thirty (30) days.",  # an exception follows
        "five percent of the staff",
        "the staff can",
        "shall pay ... within thirty",
        "1.1 7 apply",
        "day of 2014",
        "____ of ____",
        "is not unlimited",
        "The Licensee shall not pay to the Licensor",
    ],
)
def test_a_changed_or_cut_meaning_is_no_citation(quote):
    assert found(quote) is None


@pytest.mark.parametrize(
    ("quote", "differing"),
    [
        ("The Licensee shal pay to the Licensor", (("shal", "shall"),)),
        ("The Liccnsee shall pay t0 the Licensor", (("liccnsee", "licensee"), ("t0", "to"))),
        ("Tbe Licensee sha1l pay to the Licensor a fee", (("tbe", "the"), ("sha1l", "shall"))),
        ("The Licensee shallpay to the Licens or a fee", ()),
    ],
)
def test_misread_letters_are_found_and_the_words_that_differ_are_kept(quote, differing):
    citation = find_citation(quote, SOURCE)
    assert citation is not None
    assert citation.differing == differing
    assert SOURCE[citation.start :].startswith("The Licensee")
    assert (citation.method, citation.score < 100) == (("fuzzy", True) if differing else ("normalised", False))


def test_min_score_is_the_least_share_of_letters_that_are_as_in_the_source():
    quote = "The Liccnsee shall pay to the Licens0r a fee"
    citation = find_citation(quote, SOURCE)
    assert citation is not None
    assert find_citation(quote, SOURCE, citation.score) is not None
    assert find_citation(quote, SOURCE, citation.score + 0.5) is None
    assert find_citation("the licensee shall pay", SOURCE, 100) is not None  # spelling is no misread letter


LAW = "第五十条　罚款五十万元以上，当事人不得转让，应当在10日内办理；百分之二十以下的，除外。二〇〇五年施行。"


@pytest.mark.parametrize(
    ("quote", "span"),
    [
        ("罚款五十万元以上,当事人不得转让", "罚款五十万元以上，当事人不得转让"),
        ("应当在１０日内办理.", "应当在10日内办理；"),
        ("当事人\n 不得转让", "当事人不得转让"),
        ("「当事人不得转让」", "当事人不得转让"),
        ("百分之二十以下", "百分之二十以下"),
    ],
)
def test_a_chinese_quotation_in_another_spelling_is_found(quote, span):
    assert (found(quote, LAW) or "").rstrip("；") == span.rstrip("；")


@pytest.mark.parametrize(
    "quote",
    [
        "罚款五万元以上", "十万元以上", "罚款五十万元以下", "当事人得转让", "得转让", "当事人应当转让",
        "不得在10日内办理", "应当在1日内办理", "二十以下的", "二五年施行", "当事入不得转让",
    ],
)  # fmt: skip
def test_a_chinese_quotation_with_any_other_character_is_none(quote):
    assert found(quote, LAW) is None


@pytest.mark.parametrize("quote", ["", "  ", "\n\t\u00a0", "\u200b", "—", "().", "____x____"])
def test_a_quotation_without_words_of_the_source_is_no_citation(quote):
    assert find_citation(quote, "some text with   blanks") is None


def test_among_several_places_the_one_that_cuts_no_word_and_has_the_same_case_is_taken():
    source = "between us. THE SPONSOR pays. Sponsorship of the Sponsor ends"
    assert [find_citation("us", source).start, find_citation("Sponsor", source).start] == [
        8,
        source.index("Sponsor ends"),
    ]
    assert find_citation("the  sponsor", source).start == source.index("THE SPONSOR")
    assert find_citation("the  Sponsor", source).start == source.index("the Sponsor")


WORDS = ["the", "Licensee", "it's", '"Fee"', "12-13", "1,000", "中文", "é", "party", "shall", "(a)", "ﬁnal", "x²"]
GAPS = [" ", "\n", "\t ", "\u00a0", " \r\n  ", "\u2028", " \u200b "]


@given(
    before=st.lists(st.sampled_from(WORDS)),
    words=st.lists(st.sampled_from(WORDS), min_size=1),
    after=st.lists(st.sampled_from(WORDS)),
    data=st.data(),
)
def test_whole_words_are_found_whatever_the_white_space(before, words, after, data):
    spelled = [word + data.draw(st.sampled_from(GAPS)) for word in words]
    source = " ".join(before) + " ; " + "".join(spelled) + "; " + " ".join(after)
    quote = " ".join(words)
    citation = find_citation(quote, source)
    assert citation is not None
    assert Folded(source[citation.start : citation.end]).compact == Folded(quote).compact


TEXTS = st.text(alphabet='ab1,.(-)²½ﬁé\u0301\u00ad\u200b ’"<b>&;_*[]…中十不\n\U0001f600', max_size=60)


@given(text=TEXTS, data=st.data())
def test_offsets_of_the_compared_form_lead_back_to_the_characters_behind_it(text, data):
    folded = Folded(text)
    assert len(folded.marked) == len(text)
    if folded.compact:
        start = data.draw(st.integers(0, len(folded.compact) - 1))
        end = data.draw(st.integers(start + 1, len(folded.compact)))
        first, last = folded.span(start, end)
        assert 0 <= first < last <= len(text)
        part = "".join(folded.words(first, last))
        assert folded.compact[start:end] in part  # more where a character stands for several
        assert "".join(folded.words()) == folded.compact


@given(text=TEXTS, quote=TEXTS)
def test_nothing_that_a_model_can_write_raises(text, quote):
    find_citation(quote, text)
    refusal(quote, text)


def test_a_refusal_shows_the_passage_that_is_most_alike_and_what_differs():
    told = refusal("The Licensee may pay to the Licensor a fee of $1,000 within sixty (30) days", SOURCE)
    assert told.startswith('nearest: "The Licensee shall pay to the Licensor a fee of $1,000 within thirty (30) days"')
    assert '"may" is "shall" there' in told
    assert '"sixty" is "thirty" there' in told


def test_a_refusal_says_that_words_were_left_out_or_that_a_number_was_cut():
    assert "leaves words out" in refusal("shall pay ... within thirty", SOURCE)
    assert 'reads: "' in refusal("within thirty.", SOURCE)
    assert refusal("Arbitration takes place in Geneva every leap year", SOURCE) == "nothing in the document is like it"


SIZE, QUOTE = 500_000, 2_000


def _repeated(unit: str) -> str:
    return (unit * (SIZE // len(unit) + 1))[:SIZE]


def _misspelt(sentence: str, share: float) -> str:
    random = Random(7)
    return "".join(random.choice("abcdefgh") if char != " " and random.random() < share else char for char in sentence)


SENTENCE = "the licensee shall pay to the licensor a fee of ten dollars within thirty days of receipt. "
PERIODS = ["."] + ["abcdefg"[:size] for size in range(1, 8)]
REPETITIVE = {
    **{
        f"period of {unit}": lambda unit=unit: (_repeated(unit)[: QUOTE - 1] + "z", _repeated(unit)) for unit in PERIODS
    },
    "three letters": lambda: ("".join(Random(3).choices("abc", k=QUOTE)), "".join(Random(4).choices("abc", k=SIZE))),
    "ruler lines": lambda: ("-" * 1990 + " total", _repeated("-" * 78 + "\n")),
    "blanks": lambda: ("_" * 1990 + " total", _repeated("_" * 78 + "\n")),
    "redactions": lambda: ("[***] and " * 199 + "fee", _repeated("[***] or [***] and ")),
    "a sentence at 88%": lambda: (_misspelt(SENTENCE * 21, 0.12), SENTENCE * 5500),
    "a sentence at 91%": lambda: (_misspelt(SENTENCE * 21, 0.09), SENTENCE * 5500),
}
HOSTILE = {
    "zero width": "a\u200b", "opened": "(1", "numbers": "0.00|", "ligatures": "ﬁ", "marks": "e\u0301",
    "many marks": "e" + "\u0301\u0323" * 40, "superscripts": "1²", "halves": "5½", "tags": "<b>", "open tags": "<a b=",
    "entities": "&#8217;", "brackets": "[*", "hyphens": "a-\n", "apostrophes": "a'", "dots": ". . .", "blanks": "__a",
    "compatibility": "".join(map(chr, range(0x3200, 0x3400))), "line ends": "\n", "comments": "<!--",
    "jamo": "\u1100\u1161",
}  # fmt: skip


def _takes(limit: float, quote: str, source: str) -> bool:
    """Whether it takes at most so many CPU seconds of this process; tried again where other processes slow it down."""
    for _ in range(4):
        find.folded.cache_clear()
        started = time.process_time()
        find_citation(quote, source)
        if time.process_time() - started <= limit:
            return True
    return False


@pytest.mark.parametrize("name", REPETITIVE)
def test_repetitive_texts_cost_little(name):
    assert _takes(0.3, *REPETITIVE[name]())


@pytest.mark.parametrize("name", HOSTILE)
def test_texts_made_against_the_fold_cost_at_most_a_second(name):
    source = _repeated(HOSTILE[name])
    assert _takes(1, "The Licensee ﬁ " + source[:1900], source)


def test_a_quotation_of_more_than_two_thousand_characters_is_matched_by_the_fold_only():
    source = SENTENCE * 40
    assert find_citation(source[:2500].upper(), source) is not None
    assert find_citation("thc" + source[3:1500], source) is not None
    assert find_citation("thc" + source[3:2500], source) is None
