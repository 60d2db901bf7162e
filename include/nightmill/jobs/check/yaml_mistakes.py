"""Reading a YAML file of a job folder, and saying in plain words what is wrong with it, line by line.

Values are never repeated: people paste connection URLs and keys into places where they do not belong.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.domain.suggestions import hint, listed, nearest
from nightmill.jobs.check.yaml_document import document
from nightmill.jobs.check.yaml_lines import Place, YamlLines
from nightmill.jobs.settings.forms import SAID

M = TypeVar("M", bound=BaseModel)

_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping of keys and values",
    "model": "a mapping of keys and values",
}
_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
}
MOST_MISTAKES = 50  # that are told of one kind in one file: each costs a search for what was meant
_LONGEST_PART = 100  # characters of a key that are shown
_SYMBOLS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_UNKNOWN = "extra_forbidden"
_KEY = "[key]"  # pydantic's mark for a fault of a mapping's key itself
NAME = "NAME"  # stands for the keys of a mapping that people name themselves


def read_yaml(model: type[M], file: str, content: bytes) -> M:
    """The file as its model. Raises BrokenJobFolder with every mistake in it."""
    value = document(file, content)
    if value is not None and not isinstance(value, dict):
        problem = f"expected keys and values such as `{next(iter(model.model_fields))}: ..`, found {kind_of(value)}"
        raise BrokenJobFolder((Mistake(file, 1, None, problem, f"Known keys: {listed(model.model_fields)}."),))
    try:
        return model.model_validate(value or {})
    except ValidationError as fault:
        found = _mistakes(model, file, fault, YamlLines(content))
        mistakes = [*first_of(found), *first_of(doubled_keys(file, content))]
    raise BrokenJobFolder(sorted(mistakes, key=lambda one: one.line or 0))  # without pydantic's text: it holds values


def first_of(found: Iterable[Mistake]) -> list[Mistake]:
    """As many mistakes of one kind as are told."""
    return list(islice(found, MOST_MISTAKES))


def doubled_keys(file: str, content: bytes) -> Iterator[Mistake]:
    """Keys that stand twice in one mapping. The content must be YAML."""
    for place, first, line in YamlLines(content).doubled():
        problem = f"stands in line {first} already, and only the last one would count"
        yield Mistake(file, line, _dotted(place), problem, "Keep one of them.")


def _mistakes(model: type[BaseModel], file: str, fault: ValidationError, lines: YamlLines) -> Iterator[Mistake]:
    errors = fault.errors(include_url=False)
    unknown = [error["loc"] for error in errors if error["type"] == _UNKNOWN][:MOST_MISTAKES]
    meant = {meant for place in unknown if (meant := _meant(model, place))}
    for error in errors:
        place = tuple(part for part in error["loc"] if part != _KEY)
        if error["type"] == "missing" and place in meant:
            continue  # the misspelt key says it already
        problem, remedy = _said(model, error)
        yield Mistake(file, lines.line(place), _dotted(place) or None, problem, remedy)


def _said(model: type[BaseModel], error: Mapping[str, Any]) -> tuple[str, str]:
    """Problem and remedy of one of pydantic's errors."""
    place, kind = tuple(part for part in error["loc"] if part != _KEY), str(error["type"])
    context = error.get("ctx") or {}
    if kind == _UNKNOWN:
        return _unknown(model, place)
    description = _description(model, place)
    if kind == "missing":
        parent = model_at(model, place[:-1])
        return "missing", description or f"Known keys here: {listed(parent.model_fields) if parent else ''}."
    if kind == "literal_error":
        choices = _choices(model, place)
        found = hint(str(error["input"]), choices)
        return f"expected one of {listed(choices)}{found}", description or "Use one of these words."
    form = _form(model, place)
    if kind == "string_pattern_mismatch":
        return f"expected {form}", description or "See docs/reference/job_reference.md."
    if kind == "string_type" and form and isinstance(error["input"], bool | int | float):
        return f"expected {form}, found {kind_of(error['input'])}", "Write it so; in quotes where it has digits only."
    if kind == "value_error":
        return str(context["error"]), description or "See docs/reference/job_reference.md."
    most = context.get("max_length")
    if most:
        what = "characters" if kind == "string_too_long" else "entries"
        return f"expected at most {most:,} {what}", description or "See docs/reference/job_reference.md."
    bound = next((f"{_SYMBOLS[name]} {context[name]}" for name in _SYMBOLS if name in context), None)
    if bound:
        return f"expected a value {bound}", description or "See docs/reference/job_reference.md."
    return _wrong_type(kind, error["input"], error["msg"]), _retype(kind, error["input"], description)


def _wrong_type(kind: str, value: Any, otherwise: str) -> str:
    expected = _EXPECTED.get(kind.split("_")[0])
    return f"expected {expected}, found {kind_of(value)}" if expected else otherwise


def _retype(kind: str, value: Any, description: str) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "Put it in quotes."
    if value is None:
        return "Give it a value, or leave the key out where it has a default."
    return description or "See docs/reference/job_reference.md."


def _unknown(model: type[BaseModel], place: Place) -> tuple[str, str]:
    parent = model_at(model, place[:-1])
    known = list(parent.model_fields) if parent else []
    name = str(place[-1])
    gone: Mapping[str, str] = getattr(parent, "GONE", {})
    if name in gone:
        return "is no key any more", gone[name]
    elsewhere = [path for path in _all_places(model) if path[-1] == name]
    if not nearest(name, known) and len(elsewhere) == 1:
        return f"unknown key here; did you mean {_dotted(elsewhere[0])!r}?", f"Known keys here: {listed(known)}."
    return f"unknown key{hint(name, known)}", f"Known keys here: {listed(known)}."


def _meant(model: type[BaseModel], place: Place) -> Place | None:
    parent = model_at(model, place[:-1])
    found = nearest(str(place[-1]), parent.model_fields) if parent else None
    return (*place[:-1], found) if found else None


def model_at(model: type[BaseModel], place: Iterable[str | int]) -> type[BaseModel] | None:
    """The model of the mapping at a place; list positions and names that people chose are skipped."""
    here: type[BaseModel] | None = model
    names = iter(part for part in place if isinstance(part, str))
    for name in names:
        field = here.model_fields.get(name) if here else None
        here = inner_model(field.annotation) if field else None
        if field is not None and here is not None and named_by_people(field.annotation):
            next(names, None)
    return here


def named_by_people(annotation: Any) -> bool:
    """Whether it is a mapping from free names to models."""
    return get_origin(annotation) is dict


def inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model inside `X`, `X | None`, `tuple[X, ...]` or `dict[str, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (types.UnionType, Union, tuple, list, dict, Annotated):
        return next((found for one in get_args(annotation) if (found := inner_model(one))), None)
    return None


def _all_places(model: type[BaseModel], above: Place = ()) -> Iterator[Place]:
    for name, field in model.model_fields.items():
        yield (*above, name)
        inner = inner_model(field.annotation)
        if inner:
            named = (NAME,) if named_by_people(field.annotation) else ()
            yield from _all_places(inner, (*above, name, *named))


def _field(model: type[BaseModel], place: Place) -> Any:
    names = [index for index, part in enumerate(place) if isinstance(part, str)]
    parent = model_at(model, place[: names[-1]]) if names else None
    return parent.model_fields.get(str(place[names[-1]])) if parent else None


def _description(model: type[BaseModel], place: Place) -> str:
    field = _field(model, place)
    return (field.description or "") if field is not None else ""


def _form(model: type[BaseModel], place: Place) -> str:
    """What text at a place must look like; empty where any text will do."""
    field = _field(model, place)
    patterns = (getattr(one, "pattern", None) for one in (field.metadata if field is not None else ()))
    return next((SAID[pattern] for pattern in patterns if pattern in SAID), "")


def _choices(model: type[BaseModel], place: Place) -> list[str]:
    field = _field(model, place)
    choices = get_args(field.annotation) if field is not None else ()
    of_each = next((get_args(one) for one in choices if get_origin(one) is Literal), choices)  # a list of them
    return [str(choice) for choice in of_each]


def kind_of(value: Any) -> str:
    """What a value is, in the words of a message."""
    if value is None or value == "":
        return "nothing"
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def _dotted(place: Iterable[str | int]) -> str:
    return ".".join(str(part)[:_LONGEST_PART] for part in place)
