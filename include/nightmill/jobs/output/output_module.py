"""output.py: executed once, its model `Output` taken from it. Faults name the line in the file."""

from __future__ import annotations

import ast
import sys
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import orjson
from pydantic import BaseModel, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.domain.keys import short_hash
from nightmill.jobs.output.columns import DECIMAL
from nightmill.jobs.output.job_code import contained

FILE = "output.py"
_MEND = "Mend output.py: it may import pydantic and the standard library and must define a model named Output."
TYPES = "Use types that can be written as a JSON schema."


def load_output(job: str, source: bytes) -> type[BaseModel]:
    """The pydantic model named Output. Raises BrokenJobFolder."""
    module = ModuleType(f"nightmill_job_{job}_{short_hash(source)}")
    module.__file__ = f"{job}/{FILE}"
    sys.modules[module.__name__] = module  # pydantic resolves annotations through it
    with contained(FILE, None, _MEND):
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)
        output = vars(module).get("Output")
        if not (isinstance(output, type) and issubclass(output, BaseModel)):
            raise _no_output(module, source)
    _require_schema(output, source)
    return output


class _Generator(GenerateJsonSchema):
    """As pydantic writes it, but for decimals, which are text: a number would lose digits on its way."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:  # noqa: ARG002
        return {"type": "string", "format": DECIMAL}


def json_schema(model: type[BaseModel], **options: Any) -> dict[str, Any]:
    """The model's JSON schema, written once and a copy each time: a dozen places ask for it during one wake-up.
    Raises BrokenJobFolder: a hook of somebody's model can do and return anything."""
    with contained(FILE, model.__name__, TYPES):
        known = _written.setdefault(model, {})
        form = repr(sorted(options.items()))
        if form not in known:
            schema = model.model_json_schema(schema_generator=_Generator, **options)
            if not isinstance(schema, dict):
                raise TypeError("model_json_schema returns no mapping")
            known[form] = orjson.dumps(schema)  # fails for what is no JSON, and for what is nested without an end
        copy: dict[str, Any] = orjson.loads(known[form])
        return copy


_written: WeakKeyDictionary[type[BaseModel], dict[str, bytes]] = WeakKeyDictionary()


def _require_schema(model: type[BaseModel], source: bytes) -> None:
    try:
        json_schema(model)
    except BrokenJobFolder as fault:
        said = fault.__cause__
        problem = said.message.partition("\n")[0] if isinstance(said, PydanticUserError) else fault.mistakes[0].problem
        line = fault.mistakes[0].line or line_of(source, "Output")
        raise _broken(line, "Output", problem, TYPES) from said


def line_of(source: bytes, name: str, field: str | None = None) -> int | None:
    """The line of a top-level class, or of one of its fields; None where there is none (it can be inherited)."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a text that runs can be too deep for this
        return None
    for node in statements:
        if isinstance(node, ast.ClassDef) and node.name == name:
            for entry in node.body if field else ():
                if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name) and entry.target.id == field:
                    return entry.lineno
            return node.lineno
    return None


def _no_output(module: ModuleType, source: bytes) -> BrokenJobFolder:
    models = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.__module__ == module.__name__
    ]
    if not models:
        return _broken(None, None, "no pydantic model named Output", "Define `class Output(BaseModel)`.")
    last = models[-1]  # models are written before those that use them
    return _broken(
        line_of(source, last),
        None,
        f"no pydantic model named Output; did you mean {last!r}?",
        f"Name it Output, not {last}.",
    )


def _broken(line: int | None, key: str | None, problem: str, remedy: str) -> BrokenJobFolder:
    return BrokenJobFolder((Mistake(FILE, line, key, problem, remedy),))
