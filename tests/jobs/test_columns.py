"""From output.py's model to typed columns."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, JsonValue

from nightmill.domain.errors import ConfigError
from nightmill.jobs.output.columns import PROVENANCE_COLUMNS, typed_columns
from nightmill.jobs.output.output_module import json_schema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Grade(Enum):
    GOOD = "good"
    UNKNOWN = None


class Party(BaseModel):
    name: str


class Everything(BaseModel):
    text: str
    whole: int
    part: float
    flag: bool
    day: date
    moment: datetime
    ident: UUID
    maybe: str | None
    maybe_day: date | None = None
    colour: Colour
    maybe_colour: Colour | None
    one_of: Literal["a", "b"]
    always: Literal["a"]
    number: Literal[7]
    words: list[str]
    numbers: list[int] | None
    days: list[date]
    grid: list[list[int]]
    party: Party
    parties: list[Party]
    by_name: dict[str, int]
    amount: Decimal
    maybe_amount: Decimal | None
    bounded: Decimal = Field(ge=0, max_digits=8, decimal_places=2)
    amounts: list[Decimal]
    choice: Literal["a", "b", None]
    numbered: Literal[1, 2, None]
    yes_or_unknown: Literal[True, None]
    choices: list[Literal["a", None]]
    none_among: Grade
    mixed: Literal["a", 1, None]
    either_word: Literal["a"] | Literal["b"]
    either: int | str
    anything: Any


@pytest.mark.parametrize("ours", [True, False], ids=["as nightmill writes the schema", "as pydantic writes it"])
def test_each_kind_of_field_has_its_type(ours: bool) -> None:
    columns = typed_columns(json_schema(Everything) if ours else Everything.model_json_schema(), marked=ours)
    assert {column.name: column.sql_type for column in columns} == {
        "text": "text",
        "whole": "bigint",
        "part": "double precision",
        "flag": "boolean",
        "day": "date",
        "moment": "timestamp with time zone",
        "ident": "uuid",
        "maybe": "text",
        "maybe_day": "date",
        "colour": "text",
        "maybe_colour": "text",
        "one_of": "text",
        "always": "text",
        "number": "bigint",
        "words": "text[]",
        "numbers": "bigint[]",
        "days": "date[]",
        "grid": "jsonb",
        "party": "jsonb",
        "parties": "jsonb",
        "by_name": "jsonb",
        "amount": "numeric",
        "maybe_amount": "numeric",
        "bounded": "numeric",
        "amounts": "numeric[]",
        "choice": "text",
        "numbered": "bigint",
        "yes_or_unknown": "boolean",
        "choices": "text[]",
        "none_among": "text",
        "mixed": "jsonb",
        "either_word": "text",
        "either": "jsonb",
        "anything": "jsonb",
    }
    assert [column.name for column in columns] == list(Everything.model_fields)


def test_a_number_or_text_is_no_decimal() -> None:
    class Either(BaseModel):
        either: float | str

    assert typed_columns(json_schema(Either), marked=True)[0].sql_type == "jsonb"


def test_a_type_that_refers_to_itself_is_one_json_column() -> None:
    class Tree(BaseModel):
        tree: JsonValue

    assert typed_columns(json_schema(Tree), marked=True)[0].sql_type == "jsonb"


def test_a_field_whose_name_postgres_would_cut_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"Output.{'f' * 64}: is too long for a column"):
        typed_columns({"properties": {"f" * 63: {"type": "string"}, "f" * 64: {"type": "string"}}})


@pytest.mark.parametrize("name", PROVENANCE_COLUMNS)
def test_a_field_with_the_name_of_a_provenance_column_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Output.{name}: has the name of a provenance column"):
        typed_columns({"properties": {name: {"type": "string"}}})
