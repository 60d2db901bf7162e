"""The arguments of checks.yaml held against the classes that take them.

Great Expectations tells types by its classes alone: a `column` must be text, a `regex` may be a number, and its JSON
schemas say the same of both. Importing the classes takes 7 s and 250 MB, so that parsing a DAG never does.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from nightmill.domain.errors import MissingExtra, Mistake
from nightmill.domain.suggestions import hint, listed
from nightmill.jobs.check.definition import in_order, mistakes_of
from nightmill.jobs.check.expectations import arguments_of, known_expectations
from nightmill.jobs.check.references import expectations_in
from nightmill.jobs.check.yaml_lines import Place, YamlLines
from nightmill.jobs.check.yaml_mistakes import first_of, kind_of
from nightmill.jobs.contract import JobDefinition

_MISSING = "value_error.missing"
_UNKNOWN = "value_error.extra"
_TOGETHER = "__root__"  # pydantic's name for a fault of the arguments together
_MAPPING = "type_error.dict"
_EXPECTED = {
    "type_error.str": "text",
    "type_error.integer": "a whole number",
    "type_error.float": "a number",
    "type_error.bool": "true or false",
    "type_error.list": "a list",
    "type_error.sequence": "a list",
    "type_error.set": "a list",
    "type_error.tuple": "a list",
    "type_error.none.not_allowed": "a value",
    "value_error.any_str.min_length": "text",
    "value_error.date": "a date",
    "value_error.datetime": "a date and time",
    _MAPPING: "a mapping of keys and values",
}
_BOUNDS = {
    "value_error.number.not_gt": ">",
    "value_error.number.not_ge": ">=",
    "value_error.number.not_lt": "<",
    "value_error.number.not_le": "<=",
}


def library() -> Any:
    """Great Expectations, imported so that it reports to nobody and logs errors only. Raises MissingExtra."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    try:
        import great_expectations
    except ModuleNotFoundError as fault:
        if fault.name == "great_expectations":
            raise MissingExtra("Great Expectations", "gx") from None
        raise
    return great_expectations


def with_argument_types(definition: JobDefinition) -> list[Mistake]:
    """All mistakes of a job folder, the arguments of checks.yaml included. Takes 7 s and 250 MB where it has built-in
    expectations."""
    checks = definition.files.get("checks.yaml", b"")
    return in_order([*mistakes_of(definition), *first_of(unfit_values(checks))])


def unfit_values(content: bytes) -> Iterator[Mistake]:
    """What the classes would refuse in checks.yaml, but for the names that `arguments_of` tells without them. Reads
    plain YAML: the file may have other mistakes. Imports nothing where no built-in expectation stands."""
    known = known_expectations()
    checks = [check for check in expectations_in(content) if check[1] in known]
    if not checks:
        return
    classes, lines = library().expectations, YamlLines(content)
    for index, kind, entry in checks:
        given, told = {name: value for name, value in entry.items() if name != "type"}, arguments_of(kind)
        try:
            getattr(classes, kind)(**given)
        except (TypeError, ValueError) as fault:
            for place, problem in refusals(fault, given):
                if told and place and not (place[0] in told.known and place[0] in given):
                    continue
                line = lines.line(("expectations", index, *place))
                key = ".".join(map(str, (kind, *place)))
                yield Mistake("checks.yaml", line, key, problem, f"Correct it by the documentation of {kind}.")


def refusals(fault: Exception, given: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Which arguments a class did not take, and what it expected; no place is the arguments together. Repeats no
    value."""
    by_argument: dict[str, list[dict[str, Any]]] = {}
    for error in fault.errors() if hasattr(fault, "errors") else ():
        by_argument.setdefault(error["loc"][0], []).append(error)
    if not by_argument:
        yield (), f"Great Expectations refuses the arguments ({type(fault).__name__})"
    if len(by_argument) > 1:
        by_argument.pop(_TOGETHER, None)  # follows from the others
    for name, errors in by_argument.items():
        place, alternatives = _outermost(errors)
        yield (() if name == _TOGETHER else place), _problem(alternatives, place, given)


def _outermost(errors: list[dict[str, Any]]) -> tuple[Place, list[dict[str, Any]]]:
    """What each type that an argument may have says of it. A mapping is left out where there are others: it names a
    suite parameter, and checks.yaml has none."""
    alternatives = [error for error in errors if error["type"] != _MAPPING] or errors
    place = min((error["loc"] for error in alternatives), key=len)
    return place, [error for error in alternatives if error["loc"] == place]


def _problem(alternatives: list[dict[str, Any]], place: Place, given: Mapping[str, Any]) -> str:
    kinds = [error["type"] for error in alternatives]
    if _MISSING in kinds:
        return "missing"
    if _UNKNOWN in kinds:
        return "unknown"
    value = given.get(str(place[0]))
    for error in alternatives:
        context = error.get("ctx", {})
        if error["type"] in _BOUNDS:
            return f"expected a value {_BOUNDS[error['type']]} {context['limit_value']}"
        choices = context.get("permitted") or [one.value for one in context.get("enum_values", ())]
        if choices:
            return f"expected one of {listed(choices)}{hint(str(value), choices)}"
    expected = list(dict.fromkeys(_EXPECTED[kind] for kind in kinds if kind in _EXPECTED))
    if expected:
        found = f", found {kind_of(value)}" if len(place) == 1 else ""
        return f"expected {' or '.join(expected)}{found}"
    return _quoted(alternatives[0]["msg"], value)


def _quoted(message: str, value: Any) -> str:
    """What Great Expectations says, unless it repeats the value or a part of it."""
    parts = value if isinstance(value, list) else [value]
    texts = [part for part in parts if isinstance(part, str) and part]
    repeated = any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", message) for text in texts)
    return "is refused by Great Expectations" if repeated else message.rstrip(".")
