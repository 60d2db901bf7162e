"""How much a template may make of a row: a text of bounded size, in a bounded number of steps.

A template is a program: `{{ 'x' * 10**9 }}` fills the memory, and four nested loops never end. So what makes text
larger is asked for its size before it runs, and each pass of a loop, operator, filter and call is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from time import thread_time
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.filters import FILTERS
from jinja2.runtime import LoopContext
from jinja2.sandbox import MAX_RANGE, ImmutableSandboxedEnvironment

from nightmill.jobs.prompt import text_sizes
from nightmill.jobs.prompt.names import FUNCTIONS, function, listed, refuse_no_value, separate_functions

MOST_CHARACTERS = 50_000_000  # of a prompt, and of any text on the way; or four times the row's own, if that is more
SHARE = 4
_TOGETHER = 4  # times that, of all texts that one rendering makes: lists can keep them
MOST_STEPS = 1_000_000
MOST_VALUES = 1_000_000  # in a list or mapping that is written out
LONGEST_S = 5.0  # of processor time
MOST_NODES = 10_000  # expressions and statements of a file
_STEPS_BETWEEN_LOOKS = 64  # at the clock
_NESTING = (dict, list, tuple)

# Filters that look at their value and do not write it out.
_LOOKING = frozenset({
    "attr", "batch", "count", "d", "default", "dictsort", "first", "groupby", "items", "last", "length", "list", "map",
    "max", "min", "random", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "sort", "sum", "unique",
})  # fmt: skip


class TooMuch(Exception):
    """A limit was reached. Says which, and nothing of the row."""


class Meter:
    """What one rendering has used of its limits."""

    __slots__ = ("_made", "_steps", "_until", "_values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._steps = 0
        self._made = 0
        self._until = 0.0

    @property
    def characters(self) -> int:
        """The longest text, asked for only where a text is long."""
        own = sum(len(value) for value in self._values.values() if isinstance(value, str))
        return max(MOST_CHARACTERS, SHARE * own)

    def step(self) -> None:
        """Count one step."""
        self._steps += 1
        if self._steps % _STEPS_BETWEEN_LOOKS == 0:
            self._look()

    def _look(self) -> None:
        if self._steps > MOST_STEPS:
            raise TooMuch(f"takes more than {MOST_STEPS:,} steps (passes of loops, operators, filters, calls)")
        now = thread_time()
        self._until = self._until or now + LONGEST_S
        if now > self._until:
            raise TooMuch(f"takes more than {LONGEST_S:g} s")

    def hold(self, size: float) -> None:
        """Refuse a text or list of this size."""
        if size > MOST_CHARACTERS and size > self.characters:
            raise TooMuch(f"makes more than {self.characters:,} characters or list entries")

    def made(self, result: Any) -> Any:
        """Count what was made, and hand it on."""
        size = text_sizes.size(result)
        self._made += size
        if self._made > MOST_CHARACTERS:
            self.hold(size)
            if self._made > _TOGETHER * self.characters:
                raise TooMuch(f"makes texts of more than {_TOGETHER * self.characters:,} characters in all")
        return result

    def write_out(self, *values: Any) -> int:
        """Count the parts of nested values, and refuse too many: lists that share parts say more than they hold. What
        is no value is refused too."""
        waiting, seen = list(values), 0
        while waiting:
            one = waiting.pop()
            if not isinstance(one, _NESTING):
                refuse_no_value(one)
                continue
            seen += len(one)
            if seen > MOST_VALUES:
                raise TooMuch(f"writes out more than {MOST_VALUES:,} values")
            waiting += [part for part in (one.values() if isinstance(one, dict) else one) if type(part) is not str]
        return seen


METER: ContextVar[Meter | None] = ContextVar("meter", default=None)


def _meter() -> Meter:
    return METER.get() or Meter({})


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with these limits."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})  # and so never worked out while a template is compiled

    def __init__(self, *, finalize: Callable[[Any], str], **options: Any) -> None:
        def written(value: Any) -> str:
            if type(value) is str:
                return value
            if isinstance(value, _NESTING):
                _meter().write_out(value)
            return finalize(value)

        super().__init__(finalize=written, **options)
        self.filters = {name: _limited(name, one) for name, one in FILTERS.items()}
        self.filters |= {"_passes": _passes, "_concat": _concat}
        functions = {**self.globals, "range": _range}
        self.globals = {function(name): functions[name] for name in FUNCTIONS}

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """What a template, a macro or a block has written."""
        meter, size, texts = _meter(), 0, []
        for part in parts:
            size += len(part)
            if size > MOST_CHARACTERS:
                meter.hold(size)
            texts.append(part)
        return str(meter.made("".join(texts)))

    def _parse(self, *args: Any) -> nodes.Template:
        """Jinja's hook for a template's text."""
        return separate_functions(super()._parse(*args))

    def _generate(self, source: nodes.Template, *args: Any, **options: Any) -> str:
        """Jinja's hook before it writes Python. What it cannot intercept, loops and `a ~ b`, becomes a filter."""
        for loop in source.find_all(nodes.For):
            loop.iter = _filtered("_passes", loop.iter)
        _replace_concats(source)
        return super()._generate(source, *args, **options)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Jinja's hook for an operator."""
        meter = _meter()
        meter.step()
        if operator == "%":
            meter.write_out(right)
        meter.hold(text_sizes.of_operation(operator, left, right))
        return meter.made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Jinja's hook for a call."""
        meter = _meter()
        meter.step()
        if isinstance(__obj, LoopContext):  # the next level of a recursive loop
            args = (_passes(__context, *args),)
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(owner, str | bytes | int):
            if name == "join":
                args = tuple(map(listed, args))
            meter.hold(text_sizes.of_method(name, owner, (*args, *kwargs.values())))
        return meter.made(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Jinja's hook for `'{:9}'.format(..)`, wherever it is called from."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def limited(*args: Any, **kwargs: Any) -> str:
            given = [*args, *kwargs.values()]
            _meter().write_out(given)
            _meter().hold(text_sizes.of_format(value.__self__, given))
            return wrapped(*args, **kwargs)

        return limited


def _limited(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of Jinja's. One that takes the context is never worked out while a template is compiled."""
    wanted = getattr(getattr(function, "jinja_pass_arg", None), "name", None)
    writes, grows, counts = name not in _LOOKING, name in text_sizes.GROWING, name in ("join", "sum")

    @pass_context
    def limited(context: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        meter = _meter()
        meter.step()
        if counts:
            value = listed(value)
        parts = meter.write_out(value, *args, *kwargs.values()) if writes else 0
        if grows:
            meter.hold(text_sizes.of_filter(name, value, args, kwargs, parts))
        if wanted is None:
            return meter.made(function(value, *args, **kwargs))
        first = {"context": context, "eval_context": context.eval_ctx, "environment": context.environment}[wanted]
        return meter.made(function(first, value, *args, **kwargs))

    return limited


@pass_context
def _passes(_context: Any, values: Any) -> Iterator[Any]:
    meter = _meter()
    for value in values:
        meter.step()
        yield value


@pass_context
def _concat(_context: Any, parts: list[Any]) -> str:
    _meter().step()
    _meter().write_out(parts)
    return LimitedEnvironment.concat(map(str, parts))


def _range(*ends: int) -> range:
    made = range(*ends)
    if len(made) > MAX_RANGE:
        raise TooMuch(f"counts more than {MAX_RANGE:,} numbers with range()")
    return made


def _filtered(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno, environment=node.environment)


def _replace_concats(node: nodes.Node) -> None:
    for name, value in node.iter_fields():
        if isinstance(value, nodes.Node):
            setattr(node, name, _without_concats(value))
        elif isinstance(value, list):
            value[:] = [_without_concats(one) if isinstance(one, nodes.Node) else one for one in value]


def _without_concats(node: nodes.Node) -> nodes.Node:
    _replace_concats(node)
    if not isinstance(node, nodes.Concat):
        return node
    return _filtered("_concat", nodes.List(node.nodes, lineno=node.lineno, environment=node.environment))
