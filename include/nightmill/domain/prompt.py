"""prompt.md: a sandboxed Jinja template whose variables are columns of the source query.

Text that comes from a document is a value, never a template: braces in it stay as they are. A marker line
`<!-- system -->` or `<!-- user -->` starts a message; a file without markers is one user message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from nightmill.domain.errors import ConfigError, SourceError

_MARKER = re.compile(r"^<!--\s*(system|user|assistant)\s*-->[ \t]*$", re.MULTILINE)


class Prompt:
    """A parsed prompt.md. Thread-safe; rendering has no side effects."""

    def __init__(self, text: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False
        )
        try:
            parts = _split(text)
            self.variables = frozenset(meta.find_undeclared_variables(environment.parse(text)))
            self._messages = [(role, environment.from_string(body)) for role, body in parts]
        except TemplateError as fault:
            line = getattr(fault, "lineno", None)
            where = f"prompt.md:{line}" if line else "prompt.md"
            raise ConfigError(f"{where}: {fault}", "Mend the Jinja syntax at that line.") from fault

    def render(self, values: Mapping[str, Any]) -> list[dict[str, str]]:
        """The messages for one item. Raises SourceError naming the variable that the row lacks."""
        try:
            return [{"role": role, "content": _render(template, values)} for role, template in self._messages]
        except Exception as fault:
            # What templates, filters and operators raise can quote the document: the original must not reach a log.
            raise SourceError(
                f"prompt.md cannot be rendered: {type(fault).__name__} for one of the variables "
                f"{', '.join(sorted(self.variables))}.",
                "Make the source query return each variable that prompt.md uses, with the type that it expects.",
            ) from None


def _render(template: Template, values: Mapping[str, Any]) -> str:
    """Template.render without its copies of the values and globals, which cost more than the rendering itself."""
    context = template.new_context({**template.globals, **values}, shared=True)
    return "".join(template.root_render_func(context))


def _split(text: str) -> list[tuple[str, str]]:
    marks = list(_MARKER.finditer(text))
    if not marks:
        return [("user", text.strip())]
    if text[: marks[0].start()].strip():
        raise ConfigError(
            "prompt.md: text stands before the first marker line.",
            "Start the file with `<!-- system -->` or `<!-- user -->`, or remove all markers.",
        )
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return [(mark.group(1), text[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)]
