"""Output models become schemas that strict structured output accepts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest
from pydantic import BaseModel, ConfigDict, Field

from nightmill.domain.errors import ConfigError
from nightmill.jobs.output.answer_schema import AnswerReader, Valid, strict_schema

ACCEPTED = {
    "$defs", "$ref", "type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "description",
    "format", "pattern", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf",
}  # fmt: skip


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=1, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    tag: Annotated[str, Field(pattern="^[A-Z]+$", min_length=1)] = "A"


class Node(BaseModel):
    label: str
    below: list[Node] = []
    twin: Optional[Node] = Field(None, description="the other one")  # noqa: UP045


class Everything(BaseModel):
    """What a document says."""

    model_config = ConfigDict(extra="forbid")
    title: str = Field(description="as printed", min_length=1, max_length=80, examples=["x"])
    signed: date | None = None
    seen: datetime | None = None
    colour: Colour = Field(Colour.RED, description="main colour")
    pet: Cat | Dog = Field(discriminator="kind")
    amount: Decimal | None = None
    scores: list[float] = Field([], max_length=5)
    tree: Node | None = None
    link: str = Field("", json_schema_extra={"format": "uri", "x-note": "y"})
    type: str = "a field whose name is a keyword"


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    yield node
    for key in ("properties", "$defs"):
        for child in node.get(key, {}).values():
            yield from nodes(child)
    for child in node.get("anyOf", []):
        yield from nodes(child)
    if "items" in node:
        yield from nodes(node["items"])


@pytest.mark.parametrize("model", [Everything, Node, Cat])
def test_every_object_is_closed_and_asks_for_all_of_its_properties(model):
    schema = strict_schema(model)
    jsonschema.Draft202012Validator.check_schema(schema)
    for node in nodes(schema):
        assert set(node) <= ACCEPTED
        assert "$ref" not in node or set(node) == {"$ref"}
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
    assert schema["type"] == "object"


def test_an_instance_of_the_strict_schema_is_a_valid_answer():
    answer = {
        "title": "T", "signed": "2024-01-31", "seen": None, "colour": "blue", "pet": {"kind": "dog", "tag": "AB"},
        "amount": "1.50", "scores": [1.0], "tree": {"label": "a", "below": [], "twin": None}, "link": "", "type": "t",
    }  # fmt: skip
    jsonschema.validate(answer, strict_schema(Everything))
    assert AnswerReader(Everything).read(json.dumps(answer)) == Valid(answer)


def test_descriptions_reach_the_model_also_beside_a_reference():
    properties = strict_schema(Everything)["properties"]
    assert properties["title"]["description"] == "as printed"
    assert properties["colour"] == {"type": "string", "enum": ["red", "blue"], "description": "main colour"}


def test_what_strict_mode_has_no_word_for_is_refused_with_its_place():
    class Map(BaseModel):
        inner: list[dict[str, int]]

    class Untyped(BaseModel):
        value: Any

    class Pair(BaseModel):
        pair: tuple[int, str]

    for model, place in ((Map, r"Map\.inner\[\]"), (Untyped, r"Untyped\.value"), (Pair, r"Pair\.pair")):
        with pytest.raises(ConfigError, match=place):
            strict_schema(model)


def test_every_choice_and_every_decimal_goes_out_with_its_type():
    class Grade(Enum):
        GOOD = "good"
        UNKNOWN = None

    class Chosen(BaseModel):
        side: Literal["a", "b", None] = Field(description="which one")
        rank: Literal[1, 2, None]
        odd: Literal["a", 1.5, True]
        grade: Grade
        amount: Decimal = Field(ge=0, decimal_places=2)
        amounts: list[Decimal | None]

    digits = r"^-?[0-9]+(\.[0-9]+)?$"
    schema = strict_schema(Chosen)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"] == {
        "side": {"type": ["string", "null"], "enum": ["a", "b", None], "description": "which one"},
        "rank": {"type": ["integer", "null"], "enum": [1, 2, None]},
        "odd": {"type": ["string", "number", "boolean"], "enum": ["a", 1.5, True]},
        "grade": {"$ref": "#/$defs/Grade"},
        "amount": {"type": "string", "pattern": digits},
        "amounts": {"type": "array", "items": {"anyOf": [{"type": "string", "pattern": digits}, {"type": "null"}]}},
    }
    assert schema["$defs"]["Grade"] == {"type": ["string", "null"], "enum": ["good", None]}
    answer = {"side": None, "rank": 2, "odd": 1.5, "grade": None, "amount": "0.10", "amounts": ["12.5", None]}
    jsonschema.validate(answer, schema)
    assert AnswerReader(Chosen).read(json.dumps(answer)) == Valid(answer)
    for one in ("1,234.50", "12 EUR", "1e5", ""):
        assert not jsonschema.Draft202012Validator(schema).is_valid(answer | {"amount": one})
