"""Dates, times, decimals and whole numbers of an answer mean what ISO 8601 and JSON mean by them."""

import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Literal

import pytest
from pydantic import AwareDatetime, BaseModel, Field, NaiveDatetime, PastDate, field_validator

from nightmill.domain.errors import ConfigError
from nightmill.jobs.check.definition import mistakes_of
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.answer_schema import AnswerReader, Invalid, Valid

JOB = """description: A job.
source: {conn_id: s, query: select 1, columns: {id: id, text: body}}
provider: {conn_id: p, model: m}
validation: {time_zone: %s}
publish: {view: v}
"""


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Inner(BaseModel):
    day: date
    pages: int = 0


class Event(BaseModel):
    moment: datetime | None = None
    day: date | None = None
    clock: time | None = None
    took: timedelta | None = None
    either: date | datetime | None = None
    past: PastDate | None = None
    aware: AwareDatetime | None = None
    naive: NaiveDatetime | None = None
    inner: list[Inner] = []


class Numbers(BaseModel):
    pages: int | None = None
    level: Level | None = None
    fixed: Literal[3] | None = None
    share: float | None = None
    either: int | float | None = None
    inner: list[Inner] = []


EVENTS, IN_BERLIN = AnswerReader(Event), AnswerReader(Event, zone="Europe/Berlin")


def read(reader: AnswerReader, **fields: object) -> object:
    """What becomes of the fields that were given, or the rules that they break."""
    found = reader.read(json.dumps(fields))
    if isinstance(found, Invalid):
        return [finding.rpartition(": ")[2] for finding in found.findings]
    (name,) = fields
    assert reader.read(json.dumps(found.answer)) == Valid(found.answer)  # stored, it reads the same again
    return found.answer[name]


@pytest.mark.parametrize(
    ("field", "written"),
    [
        ("moment", "1985"), ("moment", "-1"), ("moment", "1985.5"), ("moment", "1700000000"), ("moment", 1985),
        ("moment", "2024-01-31"), ("moment", "20240131T100000Z"), ("moment", "2024-01-31_10:00:00Z"),
        ("moment", "31.01.2024 10:00"), ("moment", "2024-01-31T10:00:00Z\n"), ("moment", "٢٠٢٤-01-31T10:00:00Z"),
        ("day", "0"), ("day", "86400"), ("day", "20240131"), ("day", "2024-01-31T00:00:00Z"), ("day", 0), ("day", "-0"),
        ("clock", "36000"), ("clock", "10"), ("clock", 36000), ("clock", "10:00 Z"),
        ("took", "3600"), ("took", 3600), ("took", "1 day, 10:00:00"), ("took", "01:00:00"),
        ("past", "0"), ("aware", "1985"), ("naive", "1985"), ("inner", [{"day": "0"}]),
    ],
)  # fmt: skip
def test_a_date_or_time_that_is_not_written_as_iso_says_is_refused(field: str, written: object) -> None:
    for reader in (EVENTS, IN_BERLIN):
        (rule,) = read(reader, **{field: written})
        assert rule.endswith(("_parsing", "_type"))


def test_a_union_of_date_and_time_takes_iso_forms_only() -> None:
    assert read(EVENTS, either="2024-01-31") == "2024-01-31"
    assert read(EVENTS, either="2024-01-31T10:00:00Z") == "2024-01-31T10:00:00Z"
    assert read(EVENTS, either="1985") == ["date_parsing", "datetime_parsing"]


@pytest.mark.parametrize(
    ("field", "written", "kept"),
    [
        ("moment", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ("moment", "2024-01-31t10:00:00.25z", "2024-01-31T10:00:00.250000Z"),
        ("moment", "2024-01-31 10:00+02:00", "2024-01-31T10:00:00+02:00"),
        ("day", "2024-02-29", "2024-02-29"),
        ("clock", "10:30:00+01:00", "10:30:00+01:00"),
        ("took", "P1DT12H", "P1DT12H"),
        ("aware", "2024-01-31T10:00:00-05:00", "2024-01-31T10:00:00-05:00"),
    ],
)
def test_iso_forms_are_taken(field: str, written: str, kept: str) -> None:
    assert read(EVENTS, **{field: written}) == kept


@pytest.mark.parametrize(
    ("field", "naive", "kept"),
    [
        ("moment", "2024-01-31T10:00:00", "2024-01-31T10:00:00+01:00"),
        ("moment", "2024-07-31 10:00", "2024-07-31T10:00:00+02:00"),
        ("aware", "2024-01-31T10:00:00", "2024-01-31T10:00:00+01:00"),
        ("naive", "2024-01-31T10:00:00", "2024-01-31T10:00:00+01:00"),
        ("clock", "10:00", "10:00:00"),  # of no day, so no offset can be told
    ],
)
def test_a_time_without_a_zone_is_taken_only_where_the_job_names_the_zone(field: str, naive: str, kept: str) -> None:
    assert read(EVENTS, **{field: naive}) == ["timezone_aware"]
    found = IN_BERLIN.read(json.dumps({field: naive}))
    assert isinstance(found, Valid)
    assert found.answer[field] == kept


def test_a_zone_that_nobody_knows_and_times_that_can_have_none_are_told_by_validate() -> None:
    def told(zone: str, kind: str) -> list[str]:
        output = f"from datetime import datetime\nfrom pydantic import *\nclass Output(BaseModel):\n    seen: {kind}\n"
        files = {"job.yaml": JOB % zone, "prompt.md": "{{ body }}", "output.py": output}
        return [
            str(one) for one in mistakes_of(JobDefinition("v", {name: one.encode() for name, one in files.items()}))
        ]

    assert told("Europe/Berlin", "NaiveDatetime") == told("null", "datetime") == []
    assert told("Europe/Berln", "datetime") == [
        "job.yaml:4: validation.time_zone: is no time zone of the IANA list; did you mean 'Europe/Berlin'?"
    ]
    assert told("null", "NaiveDatetime") == [
        "output.py:3: Output: asks for times without a zone (NaiveDatetime), and the job names no zone for them"
    ]


def test_a_datetime_that_a_validator_of_the_job_makes_is_taken() -> None:
    class Year(BaseModel):
        since: datetime

        @field_validator("since", mode="before")
        @classmethod
        def _a_year(cls, value: object) -> object:
            return f"{value}-01-01T00:00:00Z" if isinstance(value, str) and len(value) == 4 else value

    assert AnswerReader(Year).read('{"since": "1985"}') == Valid({"since": "1985-01-01T00:00:00Z"})


@pytest.mark.parametrize("written", ["3.0", "3e0", "0.3e1", "3.000"])
def test_a_number_without_a_fraction_is_a_whole_number_however_it_is_written(written: str) -> None:
    reader = AnswerReader(Numbers)
    for field in ("pages", "fixed"):
        assert reader.read(f'{{"{field}": {written}}}').answer[field] == 3  # type: ignore[union-attr]
    assert reader.read(f'{{"inner": [{{"day": "2024-01-31", "pages": {written}}}]}}').answer["inner"][0]["pages"] == 3  # type: ignore[union-attr]
    assert reader.read('{"level": 2.0, "pages": -4.0}').answer["pages"] == -4  # type: ignore[union-attr]
    assert type(reader.read(f'{{"pages": {written}}}').answer["pages"]) is int  # type: ignore[union-attr]


@pytest.mark.parametrize("written", ["3.5", "true", '"3"', "1e300", "9007199254740993.0", "null"])
def test_what_is_no_whole_number_stays_refused(written: str) -> None:
    class Pages(BaseModel):
        pages: int

    assert AnswerReader(Pages).read(f'{{"pages": {written}}}') == Invalid("schema", ("pages: int_type",))


def test_a_float_stays_one_where_a_float_may_stand() -> None:
    found = AnswerReader(Numbers).read('{"share": 3.0, "pages": 3.0}')
    assert isinstance(found, Valid)
    assert (repr(found.answer["share"]), repr(found.answer["pages"])) == ("3.0", "3")


class Price(BaseModel):
    amount: Decimal = Field(decimal_places=8, max_digits=28)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('"0.10"', "0.10"), ('"12345678901234567890.12345678"', "12345678901234567890.12345678"), ("7", "7"),
        ("0.1", "0.1"), ("19.99", "19.99"), ("-1234567890.12345", "-1234567890.12345"),
    ],
)  # fmt: skip
def test_a_decimal_keeps_its_digits_also_where_it_comes_as_a_number(written: str, kept: str) -> None:
    assert AnswerReader(Price).read(f'{{"amount": {written}}}') == Valid({"amount": kept})


@pytest.mark.parametrize("written", ["12345678901234567890.12", "0.12345678901234567", "1e22", "1e999"])
def test_a_decimal_written_as_a_number_that_has_lost_digits_is_refused(written: str) -> None:
    assert AnswerReader(Price).read(f'{{"amount": {written}}}') == Invalid("schema", ("amount: decimal_digits",))


@pytest.mark.parametrize("written", ["true", "[1]", '"1,234.50"', '"NaN"', "NaN"])
def test_what_is_no_decimal_is_refused(written: str) -> None:
    assert isinstance(AnswerReader(Price).read(f'{{"amount": {written}}}'), Invalid)


def test_a_choice_that_may_be_null_is_read_as_it_was_written() -> None:
    class Kind(Enum):
        LEASE = "lease"
        NONE = None

    class Chosen(BaseModel):
        kind: Kind
        side: Literal["a", "b", None]

    for kind, side in (("lease", "a"), (None, None)):
        assert AnswerReader(Chosen).read(json.dumps({"kind": kind, "side": side})) == Valid(
            {"kind": kind, "side": side}
        )


def test_a_model_with_such_fields_is_still_refused_for_what_could_not_be_read_again() -> None:
    class Aliased(BaseModel):
        day: date = Field(alias="Day")

    with pytest.raises(ConfigError, match="Aliased"):
        AnswerReader(Aliased)
