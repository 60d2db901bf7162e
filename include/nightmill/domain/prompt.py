"""prompt.md: a sandboxed Jinja template whose variables are columns of the source query.

Text that comes from a document is a value, never a template: braces in it stay as they are. A marker line
`<!-- system -->` or `<!-- user -->` starts a message; a file without markers is one user message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from jinja2 import Environment, StrictUndefined, TemplateError, UndefinedError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from nightmill.domain.errors import BrokenJobFolder, Mistake, SourceError
from nightmill.domain.nearest import hint

_MARKER = re.compile(r"^<!--\s*(system|user|assistant)\s*-->[ \t]*$", re.MULTILINE)

Renderer = Callable[[Mapping[str, Any]], str]


class Prompt:
    """A parsed prompt.md. Thread-safe; rendering has no side effects."""

    def __init__(self, text: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, finalize=written
        )
        self._text = text
        try:
            parts = _split(text)
            self.variables = frozenset(meta.find_undeclared_variables(environment.parse(text)))
            self._messages = [(role, _renderer(environment, body)) for role, body in parts]
        except TemplateError as fault:
            raise BrokenJobFolder((_syntax(environment, text, fault),)) from fault

    @property
    def roles(self) -> tuple[str, ...]:
        """Who speaks in each message."""
        return tuple(role for role, _ in self._messages)

    @property
    def lines(self) -> dict[str, int]:
        """Where each variable stands first."""
        found: dict[str, int] = {}
        for node in ImmutableSandboxedEnvironment().parse(self._text).find_all(nodes.Name):
            if node.name in self.variables:
                found[node.name] = min(node.lineno, found.get(node.name, node.lineno))
        return found

    def render(self, values: Mapping[str, Any]) -> list[dict[str, str]]:
        """The messages for one item. Raises SourceError naming the variable that the row lacks."""
        try:
            return [{"role": role, "content": render(values)} for role, render in self._messages]
        except Exception as fault:
            # What templates, filters and operators raise can quote the document: the original must not reach a log.
            raise SourceError(
                f"prompt.md cannot be rendered: {type(fault).__name__} for one of the variables "
                f"{', '.join(sorted(self.variables))}.",
                "Make the source query return each variable that prompt.md uses, with the type that it expects.",
            ) from None


def _renderer(environment: Environment, body: str) -> Renderer:
    """How to fill in one message. Text with plain variables, the usual case, needs no template engine, which takes ten
    times as long for the same string."""
    parts: list[nodes.Expr] = []
    for node in environment.parse(body).body:
        if not isinstance(node, nodes.Output):
            return environment.from_string(body).render
        parts += node.nodes
    if not all(isinstance(part, nodes.TemplateData | nodes.Name) for part in parts):
        return environment.from_string(body).render
    pieces = [(part.data, None) if isinstance(part, nodes.TemplateData) else ("", part.name) for part in parts]  # type: ignore[attr-defined]

    def fill_in(values: Mapping[str, Any]) -> str:
        try:
            return "".join([text if name is None else written(values[name]) for text, name in pieces])
        except KeyError as missing:
            raise UndefinedError(f"{missing} is undefined") from None

    return fill_in


def written(value: Any) -> str:
    """What stands in the prompt for a value: JSON columns and arrays are JSON again."""
    return orjson.dumps(value, default=str).decode() if isinstance(value, dict | list | tuple) else str(value)


def _syntax(environment: Environment, text: str, fault: TemplateError) -> Mistake:
    """A message's own lines count from its marker, so the whole text is asked for the line in the file."""
    try:
        environment.from_string(text)
    except TemplateError as whole:
        fault = whole
    remedy = "Mend the Jinja syntax there. Braces that shall stay as they are: {{ '{{' }}."
    if "No filter named" in str(fault) or "No test named" in str(fault):
        name = str(fault).split("'")[1]
        known = environment.filters if "filter" in str(fault) else environment.tests
        return Mistake(
            "prompt.md", getattr(fault, "lineno", None), None, f"{fault}".rstrip(".") + hint(name, known), remedy
        )
    return Mistake("prompt.md", getattr(fault, "lineno", None), None, str(fault).rstrip("."), remedy)


def _split(text: str) -> list[tuple[str, str]]:
    marks = list(_MARKER.finditer(text))
    if not marks:
        return [("user", text.strip())]
    if text[: marks[0].start()].strip():
        first = next(number for number, line in enumerate(text.split("\n"), 1) if line.strip())
        problem = "text stands before the first marker line"
        remedy = "Start the file with `<!-- system -->` or `<!-- user -->`, or remove all markers."
        raise BrokenJobFolder((Mistake("prompt.md", first, None, problem, remedy),))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [(mark.group(1), text[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)]
