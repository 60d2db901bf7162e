"""prompt.md: a sandboxed Jinja template whose variables are columns of the source query.

Text that comes from a document is a value, never a template: braces in it stay as they are.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import orjson
from jinja2 import (
    ChainableUndefined,
    Environment,
    StrictUndefined,
    TemplateError,
    UndefinedError,
    meta,
    nodes,
)

from nightmill.domain.errors import BrokenJobFolder, Mistake, SourceError
from nightmill.domain.suggestions import hint
from nightmill.jobs.prompt.limits import METER, MOST_NODES, SHARE, LimitedEnvironment, Meter, TooMuch
from nightmill.jobs.prompt.messages import SHORTEN, canonical, like_markers, split
from nightmill.jobs.prompt.names import NoValueError, refuse_no_value, taken_word

_OTHER_FILES = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)

_LONGEST_LINE = 200  # characters that are shown
_ENDLESS = (TooMuch, RecursionError, MemoryError)
_JSON = (bool, dict, list, tuple, type(None))

Renderer = Callable[[Mapping[str, Any]], str]


class _Environment(LimitedEnvironment):
    """Where a JSON column has a key of this name, a dot reaches that: `{{ order.items }}` is no method of dict."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)


class Prompt:
    """A parsed prompt.md. Thread-safe; rendering has no side effects."""

    def __init__(self, text: str) -> None:
        environment = _environment()
        self._text = text
        try:
            parts = split(text)
            _refuse_too_many(_EXPRESSIONS, text.count("{{") + text.count("{%"), MOST_NODES)
            parsed = environment.parse(text)
            _refuse_too_many(_EXPRESSIONS, sum(1 for _ in parsed.find_all(nodes.Node)), MOST_NODES)
            self.variables = frozenset(meta.find_undeclared_variables(parsed))
            self._messages = [(role, first, _renderer(environment, body)) for role, first, body in parts]
            self.source = canonical(parts, environment)
        except BrokenJobFolder:
            raise
        except TemplateError as fault:
            raise BrokenJobFolder((_syntax(environment, text, fault),)) from fault
        except Exception as fault:  # of Python, which compiles a template: nested too deep, a number too long
            problem = f"cannot be compiled ({type(fault).__name__}): it is nested too deep, or a number is too long"
            raise BrokenJobFolder((Mistake("prompt.md", None, None, problem, "Simplify it."),)) from fault
        other = next(parsed.find_all(_OTHER_FILES), None)
        if other is not None:
            remedy = "Put the text in here: each job has one prompt.md."
            raise BrokenJobFolder((Mistake("prompt.md", other.lineno, None, "it cannot load another file", remedy),))
        taken = taken_word(parsed)
        if taken is not None:
            remedy = f"Give the column another name in the source query: {taken.name} as <name>."
            problem = f"{taken.name} is a word of Jinja's and never means a column"
            raise BrokenJobFolder((Mistake("prompt.md", taken.lineno, None, problem, remedy),))

    @property
    def roles(self) -> tuple[str, ...]:
        """Who speaks in each message."""
        return tuple(role for role, _, _ in self._messages)

    @property
    def comments(self) -> dict[str, int]:
        """Words that stand like a marker, and are none; each with its line."""
        return like_markers(self._text)

    @property
    def lines(self) -> dict[str, int]:
        """Where each variable stands first."""
        found: dict[str, int] = {}
        for node in _environment().parse(self._text).find_all(nodes.Name):
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

    def mistakes(self) -> Iterator[Mistake]:
        """What goes over a limit whatever the row holds: each message is tried with values that are nothing."""
        for _, first, fill_in in self._messages:
            try:
                fill_in(dict.fromkeys(self.variables, _Nothing()))
            except _ENDLESS as fault:
                yield Mistake("prompt.md", _line(fault, first), None, _excess(fault), SHORTEN)
            except NoValueError as fault:
                yield Mistake("prompt.md", _line(fault, first), None, str(fault), _UNSUITABLE)
            except Exception:  # no row is like that: nothing is known
                continue

    def _refusal(self, fault: Exception, first: int) -> SourceError:
        where, number = "prompt.md", _line(fault, first)
        if number is not None:
            line = self._text.split("\n")[number - 1].strip()[:_LONGEST_LINE]
            where = f"prompt.md:{number}: {line}"
        if isinstance(fault, _ENDLESS):
            return SourceError(f"{where}: {_excess(fault)}.", SHORTEN)
        why = str(fault) if isinstance(fault, NoValueError) else type(fault).__name__
        remedy = _UNDEFINED if isinstance(fault, UndefinedError) else _UNSUITABLE
        return SourceError(f"{where}: cannot be filled in ({why}).", remedy)


@cache  # made once: it is the same for every prompt, and holds no state of any
def _environment() -> _Environment:
    return _Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, finalize=written)


class _Nothing(ChainableUndefined):
    """A value that is nothing, whatever is done with it: empty text, no entries, 0."""

    __slots__ = ()


def _itself(one: _Nothing, *_: Any, **__: Any) -> _Nothing:
    return one


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(_Nothing, f"__{_operator}__", _itself)
    setattr(_Nothing, f"__r{_operator}__", _itself)
for _name, _method in {
    **dict.fromkeys(("pos", "neg", "call"), _itself),
    **dict.fromkeys(("lt", "le", "gt", "ge"), lambda _, __: False),
    "int": lambda _: 0,
    "float": lambda _: 0.0,
}.items():
    setattr(_Nothing, f"__{_name}__", _method)


def _refuse_too_many(what: str, count: int, most: int) -> None:
    if count > most:
        raise BrokenJobFolder((Mistake("prompt.md", None, None, f"has more than {most:,} {what}", SHORTEN),))


def _excess(fault: Exception) -> str:
    return (
        str(fault)
        if isinstance(fault, TooMuch)
        else f"calls itself without end, or fills the memory ({type(fault).__name__})"
    )


def _line(fault: Exception, first: int) -> int | None:
    """The line of prompt.md where a message could not be filled in, which starts at `first`."""
    lines = [frame.lineno for frame in traceback.extract_tb(fault.__traceback__) if frame.filename == "<template>"]
    return first + (lines[-1] or 1) - 1 if lines else None


def _renderer(environment: _Environment, body: str) -> Renderer:
    """How to fill in one message. Text with plain variables, the usual case, needs no template engine, which takes ten
    times as long for the same string."""
    parts: list[nodes.Expr] = []
    for node in environment.parse(body).body:
        if not isinstance(node, nodes.Output):
            return _template(environment, body)
        parts += node.nodes
    if not all(isinstance(part, nodes.TemplateData | nodes.Name) for part in parts):
        return _template(environment, body)
    pieces = [(part.data, None) if isinstance(part, nodes.TemplateData) else ("", part.name) for part in parts]  # type: ignore[attr-defined]
    uses = Counter(name for _, name in pieces if name is not None)

    def fill_in(values: Mapping[str, Any]) -> str:
        try:
            return "".join([text if name is None else written(values[name]) for text, name in pieces])
        except KeyError as missing:
            raise UndefinedError(f"{missing} is undefined") from None

    def fill_in_often(values: Mapping[str, Any]) -> str:
        try:
            once = {name: written(values[name]) for name in uses}
        except KeyError as missing:
            raise UndefinedError(f"{missing} is undefined") from None
        texts = [text if name is None else once[name] for text, name in pieces]
        Meter(values).hold(sum(map(len, texts)))
        return "".join(texts)

    return fill_in_often if max(uses.values(), default=0) > SHARE else fill_in


def _template(environment: _Environment, body: str) -> Renderer:
    render = environment.from_string(body).render

    def fill_in(values: Mapping[str, Any]) -> str:
        token = METER.set(Meter(values))
        try:
            return render(values)
        finally:
            METER.reset(token)

    return fill_in


def written(value: Any) -> str:
    """What stands in the prompt for a value: null, true, false, JSON columns and arrays as JSON has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, _JSON):
        return orjson.dumps(value, default=_in_json).decode()
    refuse_no_value(value)
    return str(value)


def _in_json(value: Any) -> Any:
    if isinstance(value, tuple):  # what groupby makes
        return list(value)
    refuse_no_value(value)
    return str(value)


_EXPRESSIONS = "expressions and statements"
_UNDEFINED = (
    "Correct the name. Where not every row has such a value, say what stands there instead: "
    "{{ meta.title | default('none') }}, {% if tags %}{{ tags[0] }}{% endif %}."
)
_UNSUITABLE = (
    "Make the expression suit the column: numeric columns, dates and times are text ({{ total | float }} is a number), "
    "null is none, and a method is called with (). What map, select or keys() return ends with | list or | join(', ')."
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
