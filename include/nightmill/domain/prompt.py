"""prompt.md: a sandboxed Jinja template whose variables are columns of the source query.

Text that comes from a document is a value, never a template: braces in it stay as they are. A marker line
`<!-- system -->` or `<!-- user -->` starts a message; a file without markers is one user message.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from jinja2 import Environment, StrictUndefined, TemplateError, Undefined, UndefinedError, meta, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from nightmill.domain.errors import BrokenJobFolder, Mistake, SourceError
from nightmill.domain.nearest import hint

ROLES = ("system", "user", "assistant")
_MARKER = re.compile(rf"^<!--\s*({'|'.join(ROLES)})\s*-->[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"^<!--\s*(\w+)\s*-->[ \t]*$", re.MULTILINE)
_OTHER_FILES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)

_JSON = (bool, dict, list, tuple, type(None))

Renderer = Callable[[Mapping[str, Any]], str]


class _Environment(ImmutableSandboxedEnvironment):
    """Where a JSON column has a key of this name, a dot reaches that: `{{ order.items }}` is no method of dict."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)


class Prompt:
    """A parsed prompt.md. Thread-safe; rendering has no side effects."""

    def __init__(self, text: str) -> None:
        environment = _Environment(
            undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, finalize=written
        )
        self._text = text
        try:
            parts = _split(text)
            parsed = environment.parse(text)
            self.variables = frozenset(meta.find_undeclared_variables(parsed))
            self._messages = [(role, first, _renderer(environment, body)) for role, first, body in parts]
        except TemplateError as fault:
            raise BrokenJobFolder((_syntax(environment, text, fault),)) from fault
        other = next(parsed.find_all(_OTHER_FILES), None)
        if other is not None:
            remedy = "Put the text in here: each job has one prompt.md."
            raise BrokenJobFolder((Mistake("prompt.md", other.lineno, None, "it cannot load another file", remedy),))

    @property
    def roles(self) -> tuple[str, ...]:
        """Who speaks in each message."""
        return tuple(role for role, _, _ in self._messages)

    @property
    def comments(self) -> dict[str, int]:
        """Words that stand alone in a comment like a marker, and are none; each with its line."""
        found = {one[1]: self._text.count("\n", 0, one.start()) + 1 for one in _COMMENT.finditer(self._text)}
        return {word: line for word, line in found.items() if word not in ROLES}

    @property
    def lines(self) -> dict[str, int]:
        """Where each variable stands first."""
        found: dict[str, int] = {}
        for node in ImmutableSandboxedEnvironment().parse(self._text).find_all(nodes.Name):
            if node.name in self.variables:
                found[node.name] = min(node.lineno, found.get(node.name, node.lineno))
        return found

    def render(self, values: Mapping[str, Any]) -> list[dict[str, str]]:
        """The messages for one item. Raises SourceError naming the line that cannot be filled in."""
        messages = []
        for role, first, fill_in in self._messages:
            try:
                messages.append({"role": role, "content": fill_in(values)})
            except Exception as fault:
                # What templates, filters and operators raise can quote the document: the original must not reach a log.
                raise self._refusal(fault, first) from None
        return messages

    def _refusal(self, fault: Exception, first: int) -> SourceError:
        lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == "<template>"]
        where = "prompt.md"
        if lines:
            number = first + (lines[-1] or 1) - 1
            line = self._text.split("\n")[number - 1].strip()
            where = f"prompt.md:{number}: {line}"
        undefined = isinstance(fault, UndefinedError)
        return SourceError(
            f"{where}: cannot be filled in ({type(fault).__name__}).", _UNDEFINED if undefined else _UNSUITABLE
        )


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
    """What stands in the prompt for a value: null, true, false, JSON columns and arrays as JSON has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, _JSON):
        return orjson.dumps(value, default=str).decode()
    if callable(value) and not isinstance(value, Undefined):  # which says itself what is missing
        raise TypeError("a method is no value")
    return str(value)


_UNDEFINED = (
    "Correct the name. Where not every row has such a value, say what stands there instead: "
    "{{ meta.title | default('none') }}, {% if tags %}{{ tags[0] }}{% endif %}."
)
_UNSUITABLE = (
    "Make the expression suit the column: numeric columns, dates and times are text ({{ total | float }} is a number), "
    "null is none, and a method is called with ()."
)


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


def _split(text: str) -> list[tuple[str, int, str]]:
    """Who speaks, the line where it starts, and the text of each message."""
    marks = list(_MARKER.finditer(text))
    if not marks:
        return [("user", *_trimmed(text, 0, len(text)))]
    if text[: marks[0].start()].strip():
        first = next(number for number, line in enumerate(text.split("\n"), 1) if line.strip())
        problem = "text stands before the first marker line"
        remedy = "Start the file with `<!-- system -->` or `<!-- user -->`, or remove all markers."
        raise BrokenJobFolder((Mistake("prompt.md", first, None, problem, remedy),))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [(mark[1], *_trimmed(text, mark.end(), end)) for mark, end in zip(marks, ends, strict=True)]


def _trimmed(text: str, start: int, end: int) -> tuple[int, str]:
    """A part of the text without white space around it, and the line where that starts."""
    body = text[start:end]
    skipped = len(body) - len(body.lstrip())
    return text.count("\n", 0, start + skipped) + 1, body.strip()
