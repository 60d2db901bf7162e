"""The output model on its way out (a strict JSON schema in the request) and back (an answer's text, checked)."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from zoneinfo import ZoneInfo

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.jobs.output.answer_text import doubled_key, has_escaped_key, mend, unwrap
from nightmill.jobs.output.answer_types import iso_only, whole_numbers
from nightmill.jobs.output.job_code import asked_to_stop, contained, said_by
from nightmill.jobs.output.output_module import FILE, TYPES, json_schema
from nightmill.jobs.output.strict_schema import strict_schema

__all__ = ["AnswerReader", "Invalid", "Valid", "strict_schema"]

_MAX_FINDINGS = 20
_LONGEST_TOLD = 300  # characters of what a validator says
_BIGINT = 2**63


class Valid(msgspec.Struct, frozen=True, gc=False):
    """An answer that holds to its model. `answer` is JSON-ready and reads as valid again when it is written out.

    `notes` tells what was done to the text before: `unwrapped_fence`, `decoded_twice`, `sanitised` (NUL and half
    surrogate pairs became U+FFFD, because neither the database nor UTF-8 can hold them).
    """

    answer: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Invalid:
    """An answer that is not accepted.

    `code` is `not_json`, `schema`, `number_range`, `duplicate_key` or `validator_raised`. `findings` name place and
    rule ("lines.0.amount: float_type"), `where` says the same of text that is no JSON or says a key twice; neither
    holds anything that the model wrote, so they may be logged. `told` is for the model alone: it can quote its answer.
    """

    code: str
    findings: tuple[str, ...] = ()
    where: str = field(default="", compare=False)
    told: str = field(default="", compare=False, repr=False)

    @property
    def message(self) -> str:
        """What the ledger keeps."""
        return "; ".join(self.findings) or self.where or self.code


class AnswerReader:
    """Reads answers against one output model: strict types, no unknown fields, no guessing.

    What is mended is only what is lossless (see Valid.notes). Times without a zone are in `zone`, and refused without
    one. With `explain`, a refusal has words for the model. Raises BrokenJobFolder for a model with field aliases or
    computed fields: its stored answers could not be read again.
    """

    def __init__(self, model: type[BaseModel], *, zone: str | None = None, explain: bool = False) -> None:
        self._explain = explain
        with contained(FILE, model.__name__, TYPES):
            self._prepare(model, ZoneInfo(zone) if zone else None)

    def _prepare(self, model: type[BaseModel], zone: ZoneInfo | None) -> None:
        schema = json_schema(model)
        names = frozenset(_property_names(schema))
        by_name = frozenset(_property_names(json_schema(model, by_alias=False)))
        written = frozenset(_property_names(json_schema(model, mode="serialization")))
        if not names == by_name == written:
            problem = "uses field aliases or computed fields"
            remedy = "Name the fields as they shall appear in answers and columns, and compute in the query."
            raise BrokenJobFolder((Mistake("output.py", None, model.__name__, problem, remedy),))
        adapter = TypeAdapter(model)
        self._validator, self._serializer = iso_only(adapter, zone), adapter.serializer  # no layers around them
        self._lenient = whole_numbers(adapter, zone)
        self._names = names
        self._keys = ", ".join(schema.get("properties", ()))
        properties = schema.get("properties", {})
        self._numeric = tuple(name for name in properties if _may_hold_numbers([properties[name], schema.get("$defs")]))
        self._key_marks = tuple(f'"{name}"' for name in sorted(names))
        self._free_keys = _has_free_keys(schema)

    def read(self, text: str) -> Valid | Invalid:
        """The answer in a message's text. Never raises for anything that a model or provider can write."""
        body, notes = unwrap(text)
        mended = mend(body)
        if mended is not body:
            body, notes = mended, (*notes, "sanitised")
        if self._may_say_a_key_twice(body) and (twice := doubled_key(body)) is not None:
            known = twice if twice in self._names else "a key"
            return Invalid("duplicate_key", (), f"{known} stands twice in one object", self._told([f"{twice!r} twice"]))
        return self._validate(body, notes)

    def _may_say_a_key_twice(self, body: str) -> bool:
        """The quick question. A key can be written with escapes, and in a map there is no telling what it is."""
        return (
            self._free_keys
            or any(body.count(mark) > 1 for mark in self._key_marks)
            or ("\\" in body and has_escaped_key(body))
        )

    def _validate(self, body: str, notes: tuple[str, ...]) -> Valid | Invalid:
        """Validators and serializers of output.py run in here. What they raise of their own, whatever it is, settles
        this one answer, and the batch goes on."""
        try:
            try:
                return self._checked(self._validator, body, notes)
            except ValidationError:
                if self._lenient is None:
                    raise
            return self._checked(self._lenient, body, notes)
        except ValidationError as error:
            return self._findings(error)
        except BaseException as error:
            if asked_to_stop(error, signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
                raise
            return Invalid("validator_raised", (type(error).__name__,), told=self._told([said_by(error)]))

    def _checked(self, validator: SchemaValidator, body: str, notes: tuple[str, ...]) -> Valid | Invalid:
        valid = validator.validate_json(body, strict=True, extra="forbid")
        answer = self._serializer.to_python(valid, mode="json")
        if type(answer) is not dict:
            raise TypeError("a serializer of output.py writes no object")
        if not all(map(_fits, map(answer.__getitem__, self._numeric))):
            findings = tuple(self._out_of_range(answer, ()))
            return Invalid("number_range", findings[:_MAX_FINDINGS])
        return Valid(answer, notes)

    def _findings(self, error: ValidationError) -> Invalid:
        """Place and rule only: messages and contexts can quote the answer, also those of a job's own validators. They
        are for the model."""
        entries = error.errors(include_url=False, include_context=False, include_input=False)
        for entry in entries:
            if entry["type"] == "json_invalid":  # pydantic's text names a line and column, and quotes nothing
                where = f"{entry['msg']}; expected one JSON object with the keys {self._keys}"
                return Invalid("not_json", (), where, self._told([where]))
        findings = (f"{self._place(entry['loc'])}: {entry['type']}" for entry in entries[:_MAX_FINDINGS])
        told = (f"{_dotted(entry['loc'])}: {_in_words(entry)}" for entry in entries[:_MAX_FINDINGS])
        return Invalid("schema", tuple(findings), told=self._told(told))

    def _told(self, sentences: Iterable[str]) -> str:
        return "; ".join(one[:_LONGEST_TOLD] for one in sentences) if self._explain else ""

    def _out_of_range(self, value: object, place: tuple[str | int, ...]) -> Iterator[str]:
        """Numbers that a bigint or a double precision column cannot hold."""
        if isinstance(value, bool):
            return
        if isinstance(value, int):
            if not -_BIGINT <= value < _BIGINT:
                yield f"{self._place(place)}: integer_range"
        elif isinstance(value, float):
            if not math.isfinite(value):
                yield f"{self._place(place)}: not_finite"
        elif isinstance(value, dict):
            for key, child in value.items():
                yield from self._out_of_range(child, (*place, key))
        elif isinstance(value, list):
            for index, child in enumerate(value):
                yield from self._out_of_range(child, (*place, index))

    def _place(self, loc: Iterable[str | int]) -> str:
        """A dotted place; a key that the model made up is written as `?`."""
        return _dotted(part if isinstance(part, int) or part in self._names else "?" for part in loc)


def _dotted(loc: Iterable[str | int]) -> str:
    return ".".join(map(str, loc)) or "(answer)"


def _in_words(entry: Mapping[str, Any]) -> str:
    """The rule, and what its validator says where the rule's name does not say it already."""
    kind = str(entry["type"])
    plain = kind.endswith("_type") or kind in ("missing", "extra_forbidden")
    return kind if plain else f"{kind}: {entry['msg']}"


def _fits(value: object) -> bool:
    """Whether every number in a dumped answer fits a bigint or a double: the quick question, asked of each answer."""
    kind = type(value)
    if kind is dict:
        return all(map(_fits, cast(dict[str, object], value).values()))
    if kind is list:
        return all(map(_fits, cast(list[object], value)))
    if kind is int:
        return -_BIGINT <= cast(int, value) < _BIGINT
    return kind is not float or math.isfinite(cast(float, value))


def _property_names(node: object) -> Iterator[str]:
    if isinstance(node, Mapping):
        properties = node.get("properties")
        if isinstance(properties, Mapping):
            yield from properties
        for child in node.values():
            yield from _property_names(child)
    elif isinstance(node, list):
        for child in node:
            yield from _property_names(child)


def _has_free_keys(node: object) -> bool:
    """Whether some object may have keys that the schema does not name."""
    if isinstance(node, list):
        return any(map(_has_free_keys, node))
    if not isinstance(node, Mapping):
        return False
    free = node.get("type") == "object" and ("properties" not in node or node.get("additionalProperties"))
    return bool(free) or any(map(_has_free_keys, node.values()))


def _may_hold_numbers(node: object) -> bool:
    """True unless every value that the schema allows is text, truth or a fixed choice."""
    if isinstance(node, list):
        return any(_may_hold_numbers(child) for child in node)
    if not isinstance(node, Mapping):
        return False
    if node.get("type") in ("number", "integer") or not node:
        return True
    open_map = node.get("type") == "object" and "properties" not in node
    untyped = "title" in node and not {"type", "anyOf", "oneOf", "allOf", "enum", "const", "$ref"} & set(node)
    return open_map or untyped or any(_may_hold_numbers(child) for child in node.values())
