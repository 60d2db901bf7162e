"""Answers are read strictly, mended only without loss, and judged without repeating what they say."""

import json
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, computed_field, field_validator

from nightmill.domain.errors import ConfigError
from nightmill.jobs.output.answer_schema import AnswerReader, Invalid, Valid

CANARY = "CANARY-7f3a"


class Kind(StrEnum):
    LEASE = "lease"
    SALE = "sale"


class Party(BaseModel):
    name: str = Field(max_length=200)
    share: float | None = None


class Terms(BaseModel):
    title: str
    total: float
    pages: int
    signed: date | None = None
    kind: Kind | None = None
    currency: Literal["EUR", "USD"] | None = None
    parties: list[Party] = []


GOOD = {"title": "Lease", "total": 1.5, "pages": 3, "signed": "2024-02-29", "kind": "lease", "currency": "EUR",
        "parties": [{"name": "A", "share": 0.5}]}  # fmt: skip
READER = AnswerReader(Terms)


def written(**changes: object) -> str:
    return json.dumps({**GOOD, **changes})


def test_a_valid_answer_comes_back_ready_for_json():
    assert READER.read(json.dumps(GOOD)) == Valid(GOOD)


def test_missing_optional_fields_are_filled_with_their_defaults():
    assert READER.read('{"title":"x","total":1,"pages":2}') == Valid(
        {"title": "x", "total": 1.0, "pages": 2, "signed": None, "kind": None, "currency": None, "parties": []}
    )


names = st.text(max_size=30)
answers = st.fixed_dictionaries(
    {
        "title": names,
        "total": st.floats(allow_nan=False, allow_infinity=False),
        "pages": st.integers(-(2**63), 2**63 - 1),
        "signed": st.none() | st.dates().map(str),
        "kind": st.sampled_from([None, "lease", "sale"]),
        "currency": st.sampled_from([None, "EUR", "USD"]),
        "parties": st.lists(st.fixed_dictionaries({"name": names, "share": st.none() | st.just(0.25)}), max_size=3),
    }
)


@given(answer=answers, ascii_only=st.booleans())
def test_an_accepted_answer_is_storable_and_reads_the_same_again(answer, ascii_only):
    first = READER.read(json.dumps(answer, ensure_ascii=ascii_only))
    assert isinstance(first, Valid)
    stored = json.dumps(first.answer, ensure_ascii=False).encode()
    assert b"\\u0000" not in stored
    assert READER.read(stored.decode()) == Valid(first.answer)


@given(text=st.text() | st.recursive(st.none() | st.text() | st.floats() | st.integers(), st.lists).map(json.dumps))
def test_no_text_makes_reading_raise(text):
    assert isinstance(READER.read(text), (Valid, Invalid))


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"pages": "3"}, "pages: int_type"),
        ({"pages": 3.5}, "pages: int_type"),
        ({"pages": True}, "pages: int_type"),
        ({"total": "1,234.50 EUR"}, "total: float_type"),
        ({"title": 5}, "title: string_type"),
        ({"currency": "GBP"}, "currency: literal_error"),
        ({"kind": "loan"}, "kind: enum"),
        ({"signed": "29.02.2024"}, "signed: date_parsing"),
        ({"parties": [{"name": "x" * 201}]}, "parties.0.name: string_too_long"),
        ({"parties": [{}]}, "parties.0.name: missing"),
    ],
)
def test_c83_types_are_strict_and_the_finding_names_place_and_rule(changes, finding):
    assert READER.read(written(**changes)) == Invalid("schema", (finding,))


@pytest.mark.parametrize("text", ["", "I cannot", "{", '{"title":', "[1", '{"title":"a\nb"}', "[" * 100_000, "\x00"])
def test_text_that_is_not_json_is_told_apart_from_a_wrong_shape(text):
    assert READER.read(text) == Invalid("not_json")


def test_another_shape_is_a_schema_finding_at_the_root():
    assert READER.read("[1]") == Invalid("schema", ("(answer): model_type",))


def test_findings_never_repeat_what_the_model_wrote():
    class Judged(BaseModel):
        amount: int
        note: str

        @field_validator("note")
        @classmethod
        def _judge(cls, note: str) -> str:
            raise ValueError(f"bad note {note}")

    result = AnswerReader(Judged).read(json.dumps({"amount": CANARY, "note": CANARY, CANARY: 1}))
    assert result == Invalid("schema", ("amount: int_type", "note: value_error", "?: extra_forbidden"))


def test_a_validator_of_the_job_that_breaks_makes_one_invalid_answer():
    class Broken(BaseModel):
        note: str

        @field_validator("note")
        @classmethod
        def _judge(cls, note: str) -> str:
            return {}[note]

    assert AnswerReader(Broken).read('{"note":"x"}') == Invalid("validator_raised", ("KeyError",))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_c74_numbers_that_are_not_finite_are_refused(number):
    text = written().replace('"total": 1.5', f'"total": {number}')
    assert READER.read(text) == Invalid("number_range", ("total: not_finite",))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_integers_beyond_a_bigint_are_refused(number):
    assert READER.read(written(pages=number)) == Invalid("number_range", ("pages: integer_range",))


def test_a_key_said_twice_is_refused_at_any_depth():
    assert READER.read('{"title":"a","title":"b","total":1,"pages":2}') == Invalid("duplicate_key")
    nested = '{"title":"a","total":1,"pages":2,"parties":[{"name":"x","name":"y"}]}'
    assert READER.read(nested) == Invalid("duplicate_key")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (r'{"title":"a","total":1,"pages":1,"\u0070ages":2}', "pages"),
        (r'{"title":"a","total":1,"\u0070ages":1,"p\u0061ges":2}', "pages"),
        (r'{"title":"a\\","total":1,"pages":1, "pages\u0020":1,"\u0070ages":2}', "pages"),
        (r'{"title":"a","total":1,"pages":2,"parties":[{"\u006eame":"x","name":"y"}]}', "name"),
        (r'{"title":"a","total":1,"pages":2,"x":1,"\u0078":2}', "a key"),
    ],
)
def test_a_key_said_twice_is_refused_however_it_is_written(text, key):
    found = READER.read(text)
    assert found == Invalid("duplicate_key")
    assert found.message == f"{key} stands twice in one object"


def test_a_key_said_twice_in_a_map_is_refused():
    class Counted(BaseModel):
        words: dict[str, int]
        deep: dict[str, dict[str, list[int]]] = {}

    reader = AnswerReader(Counted)
    assert reader.read('{"words":{"a":1,"a":2}}') == Invalid("duplicate_key")
    assert reader.read(r'{"words":{"a":1,"\u0061":2}}') == Invalid("duplicate_key")
    assert reader.read('{"words":{},"deep":{"a":{"b":[1]},"a":{}}}') == Invalid("duplicate_key")
    assert reader.read('{"words":{"\\u0000":1,"\ufffd":2}}') == Invalid("duplicate_key")  # mended into one
    assert isinstance(reader.read('{"words":{"a":1,"b":2},"deep":{"a":{"a":[1]}}}'), Valid)


def test_an_escape_in_a_value_or_a_key_of_its_own_is_no_duplicate():
    text = r'{"title":"\"pages\":1,\u0070","total":1,"p\u0061ges":2,"parties":[{"name":"\\"},{"n\u0061me":"b"}]}'
    found = READER.read(text)
    assert isinstance(found, Valid)
    assert found.answer["pages"] == 2


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (CANARY, "expected value at line 1 column 1"),
        (f'{{"title": "{CANARY}",\n "total": 1,}}', "trailing comma at line 2 column 13"),
        (f'{{"{CANARY}": "", "total"', "EOF while parsing an object at line 1 column 27"),
        (f'{{"title": "{CANARY}"}} {CANARY}', "trailing characters at line 1 column 26"),
    ],
)
def test_text_that_is_no_json_is_told_where_and_which_keys_are_expected(text, where):
    keys = "title, total, pages, signed, kind, currency, parties"
    found = READER.read(text)
    assert found.message == f"Invalid JSON: {where}; expected one JSON object with the keys {keys}"
    assert CANARY not in str(found)


def test_what_a_custom_validator_says_is_for_the_model_alone():
    class Judged(BaseModel):
        amount: int
        note: str
        lines: list[Party] = []

        @field_validator("note")
        @classmethod
        def _judge(cls, note: str) -> str:
            assert note != "assert", "never assert"
            raise ValueError(f"bad note {note}")

    text = json.dumps({"amount": 1, "note": CANARY, "lines": [{"name": "x" * 201}], f"{CANARY}_key": 1})
    silent, explained = AnswerReader(Judged).read(text), AnswerReader(Judged, explain=True).read(text)
    assert silent.told == ""
    assert explained == silent
    assert CANARY not in str(explained) + explained.message
    assert explained.told.split("; ") == [
        f"note: value_error: Value error, bad note {CANARY}",
        "lines.0.name: string_too_long: String should have at most 200 characters",
        f"{CANARY}_key: extra_forbidden",
    ]
    assert "never assert" in AnswerReader(Judged, explain=True).read('{"amount":1,"note":"assert"}').told


def test_what_a_validator_raises_of_its_own_is_for_the_model_alone_and_bounded():
    class Broken(BaseModel):
        note: str

        @field_validator("note")
        @classmethod
        def _judge(cls, note: str) -> str:
            raise RuntimeError(note * 1_000)

    found = AnswerReader(Broken, explain=True).read(json.dumps({"note": CANARY}))
    assert found.message == "RuntimeError"
    assert found.told.startswith(f"RuntimeError: {CANARY}")
    assert len(found.told) <= 400


def test_a_field_name_that_repeats_in_a_list_or_a_value_is_no_duplicate():
    result = READER.read(written(title='say "title": twice', parties=[{"name": "a"}, {"name": "b"}]))
    assert isinstance(result, Valid)


def test_c70_nul_characters_in_an_answer_are_replaced_and_noted():
    result = READER.read(written(title="A\x00B"))
    assert isinstance(result, Valid)
    assert (result.answer["title"], result.notes) == ("A\ufffdB", ("sanitised",))


@pytest.mark.parametrize("half", ["\\ud83d", "\\uDE00", "\\ud83d\\u0041"])
def test_c71_half_surrogate_pairs_in_an_answer_are_replaced_and_noted(half):
    result = READER.read(written().replace("Lease", f"ok {half} end"))
    assert isinstance(result, Valid)
    assert result.answer["title"].startswith("ok \ufffd")
    assert result.notes == ("sanitised",)


def test_c71_a_half_pair_in_the_text_itself_is_replaced_and_noted():
    result = READER.read(json.dumps({**GOOD, "title": "x\ud83d"}, ensure_ascii=False))
    assert isinstance(result, Valid)
    assert (result.answer["title"], result.notes) == ("x\ufffd", ("sanitised",))


def test_whole_pairs_and_escaped_backslashes_are_left_alone():
    title = "\U0001f600 \\ud83d \\u0000"
    assert READER.read(json.dumps({**GOOD, "title": title})) == Valid({**GOOD, "title": title})


@pytest.mark.parametrize(
    "fence", ["```json\n{}\n```", "```\n{}\n```", "  ```JSON\r\n{}\r\n```\n", "\ufeff```json\n{}```"]
)
def test_c80_one_enclosing_fence_is_taken_off_and_noted(fence):
    assert READER.read(fence.replace("{}", json.dumps(GOOD))) == Valid(GOOD, ("unwrapped_fence",))


@pytest.mark.parametrize("text", ["Here it is:\n```json\n{}\n```", "```json\n{}\n```\nHope this helps", "```json\n{}"])
def test_c80_prose_around_a_fence_is_not_guessed_away(text):
    assert READER.read(text.replace("{}", json.dumps(GOOD))) == Invalid("not_json")


def test_c80_a_fence_inside_a_value_survives():
    title = "```json\n{}\n```"
    assert READER.read(written(title=title)) == Valid({**GOOD, "title": title})


def test_c82_one_extra_layer_of_json_is_decoded_and_noted():
    once = json.dumps(json.dumps(GOOD))
    assert READER.read(once) == Valid(GOOD, ("decoded_twice",))
    assert isinstance(READER.read(json.dumps(once)), Invalid)
    assert READER.read('"just a string"') == Invalid("schema", ("(answer): model_type",))


def test_a_decimal_keeps_its_digits():
    class Price(BaseModel):
        amount: Decimal

    reader = AnswerReader(Price)
    assert reader.read('{"amount":"0.10"}') == Valid({"amount": "0.10"})
    assert reader.read('{"amount":"0.10","x":"\\u0000"}') == Invalid("schema", ("?: extra_forbidden",))


def test_models_whose_stored_answers_could_not_be_read_again_are_refused():
    class Aliased(BaseModel):
        name: str = Field(alias="Name")

    class Written(BaseModel):
        name: str = Field(serialization_alias="n")

    class Computed(BaseModel):
        name: str

        @computed_field
        def upper(self) -> str:
            return self.name.upper()

    for model in (Aliased, Written, Computed):
        with pytest.raises(ConfigError, match=model.__name__):
            AnswerReader(model)
