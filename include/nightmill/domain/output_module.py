"""output.py: executed once, its model `Output` taken from it. Faults name the line in the file."""

from __future__ import annotations

import ast
import sys
from types import ModuleType

from pydantic import BaseModel, PydanticUserError

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.domain.keys import short_hash

FILE = "output.py"


def load_output(job: str, source: bytes) -> type[BaseModel]:
    """The pydantic model named Output. Raises BrokenJobFolder."""
    module = ModuleType(f"nightmill_job_{job}_{short_hash(source)}")
    module.__file__ = f"{job}/{FILE}"
    sys.modules[module.__name__] = module  # pydantic resolves annotations through it
    try:
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as fault:
        line = getattr(fault, "lineno", None) or _line_in(module.__file__, fault)
        said = fault.msg if isinstance(fault, SyntaxError) else str(fault).partition("\n")[0]
        remedy = "Mend output.py: it may import pydantic and the standard library and must define a model named Output."
        raise _broken(line, None, f"{type(fault).__name__}: {said}", remedy) from fault
    output = getattr(module, "Output", None)
    if not (isinstance(output, type) and issubclass(output, BaseModel)):
        raise _no_output(module, source)
    try:
        output.model_json_schema()
    except Exception as fault:  # a hook of somebody's model can raise anything
        said = fault.message if isinstance(fault, PydanticUserError) else f"{type(fault).__name__}: {fault}"
        said = said.partition("\n")[0]
        raise _broken(
            line_of(source, "Output"), "Output", said, "Use types that can be written as a JSON schema."
        ) from (fault)
    return output


def line_of(source: bytes, name: str, field: str | None = None) -> int | None:
    """The line of a top-level class, or of one of its fields; None where there is none (it can be inherited)."""
    for node in ast.parse(source).body:
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


def _line_in(file: str, fault: BaseException) -> int | None:
    line, frame = None, fault.__traceback__
    while frame:
        if frame.tb_frame.f_code.co_filename == file:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line
