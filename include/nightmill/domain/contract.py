"""A job folder as a value: parsed, checked as a whole, and hashed.

The contract is what gives a result its meaning. It is pinned per batch: a copy of the folder's files is kept with its
hash, and a run works from that copy. Gates, thresholds, retry budgets and capacity are read live instead.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

import orjson
import yaml
from pydantic import BaseModel, PydanticUserError, ValidationError

from nightmill.domain.columns import Column, typed_columns
from nightmill.domain.errors import ConfigError
from nightmill.domain.job import JOB_NAME, Checks, Job
from nightmill.domain.keys import ContractVersions, short_hash
from nightmill.domain.prompt import Prompt

REQUIRED_FILES = ("job.yaml", "prompt.md", "output.py")
OPTIONAL_FILES = ("checks.yaml",)

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class JobDefinition:
    """One job folder. `files` maps file names to their bytes; everything else follows from them."""

    name: str
    files: Mapping[str, bytes]

    @cached_property
    def job(self) -> Job:
        """job.yaml. Raises ConfigError."""
        return _parse_yaml(Job, "job.yaml", self.files["job.yaml"])

    @cached_property
    def checks(self) -> Checks:
        """checks.yaml; no file means no expectations. Raises ConfigError."""
        return _parse_yaml(Checks, "checks.yaml", self.files.get("checks.yaml", b"{}"))

    @cached_property
    def prompt(self) -> Prompt:
        """prompt.md. Raises ConfigError."""
        return Prompt(self.files["prompt.md"].decode("utf-8"))

    @cached_property
    def output(self) -> type[BaseModel]:
        """The one pydantic model named Output in output.py. Raises ConfigError."""
        return load_output(self.name, self.files["output.py"])

    @cached_property
    def columns(self) -> list[Column]:
        """The view's typed columns."""
        return typed_columns(self.output.model_json_schema())

    @property
    def payload_columns(self) -> tuple[str, ...]:
        """The query's columns that a request or its validation uses: exactly these are kept as the payload."""
        cited = {rule.source for rule in self.job.validation.citations}
        return tuple(sorted(self.prompt.variables | cited | {self.job.source.columns.text}))

    @cached_property
    def versions(self) -> ContractVersions:
        """What enters the idempotency keys."""
        provider = self.job.provider
        policy = {"adapter": provider.adapter, "model": provider.model, "endpoint": provider.endpoint}
        return ContractVersions(
            job=self.name,
            transform_name=self.job.transform.name,
            transform_version=self.job.transform.version,
            prompt_version=short_hash(self.files["prompt.md"]),
            model_policy_version=short_hash(_canonical({**policy, "parameters": provider.parameters})),
            output_schema_version=short_hash(_canonical(self.output.model_json_schema())),
        )

    @cached_property
    def validators_hash(self) -> str:
        """Changes with any rule that an answer must pass; stored answers are then checked again before reuse."""
        rules = self.job.validation.model_dump(mode="json")
        return short_hash(self.files["output.py"] + _canonical(rules))

    @cached_property
    def folder_hash(self) -> str:
        """SHA-256 prefix over all files: names the pinned copy."""
        return short_hash(b"".join(b"%b\0%d\0%b" % (n.encode(), len(b), b) for n, b in sorted(self.files.items())))

    def check(self) -> None:
        """Parse everything and hold the parts against each other. Raises ConfigError with file and key."""
        if not JOB_NAME.match(self.name):
            raise ConfigError(
                f"The job folder {self.name!r} has a name that cannot be part of a DAG id and a table name.",
                "Use lower-case letters, digits and _, starting with a letter, at most 48 characters.",
            )
        fields = {column.name for column in self.columns}
        _ = self.checks, self.prompt
        for rule in self.job.validation.citations:
            _require_field("job.yaml: validation.citations.quote", rule.quote, fields)
        for name in self.job.gold.fields if self.job.gold else ():
            _require_field("job.yaml: gold.fields", name, fields)
        for expectation in self.checks.expectations:
            column = expectation.arguments.get("column")
            if column is not None and column not in fields | {"source_id", "source_version", "tenant", "domain"}:
                _require_field(f"checks.yaml: {expectation.type}.column", column, fields)


def _require_field(where: str, name: str, fields: set[str]) -> None:
    if name not in fields:
        raise ConfigError(f"{where}: output.py has no field {name!r}.", f"Use one of {', '.join(sorted(fields))}.")


def load_output(job: str, source: bytes) -> type[BaseModel]:
    """Execute output.py and return its model `Output`. Raises ConfigError naming the line of a fault in it."""
    module = ModuleType(f"nightmill_job_{job}_{short_hash(source)}")
    module.__file__ = f"{job}/output.py"
    sys.modules[module.__name__] = module  # pydantic resolves annotations through it
    try:
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as fault:
        line = getattr(fault, "lineno", None) or _line_in(module.__file__, fault)
        raise ConfigError(
            f"{module.__file__}:{line or '?'}: {type(fault).__name__}: {fault}",
            "Mend output.py: it may import pydantic and the standard library and must define a model named Output.",
        ) from fault
    output = getattr(module, "Output", None)
    if not (isinstance(output, type) and issubclass(output, BaseModel)):
        raise ConfigError(f"{module.__file__}: no pydantic model named Output.", "Define `class Output(BaseModel)`.")
    try:
        output.model_json_schema()
    except PydanticUserError as fault:
        raise ConfigError(
            f"{module.__file__}: {fault.message.splitlines()[0]}", "Use types that can be written as a JSON schema."
        ) from fault
    return output


def _line_in(file: str, fault: BaseException) -> int | None:
    line, frame = None, fault.__traceback__
    while frame:
        if frame.tb_frame.f_code.co_filename == file:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _parse_yaml(model: type[M], file: str, content: bytes) -> M:
    try:
        return model.model_validate(yaml.safe_load(content) or {})
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else file
        raise ConfigError(f"{where}: {getattr(fault, 'problem', fault)}", "Mend the YAML at that line.") from fault
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "(top)"
        more = f" (and {fault.error_count() - 1} more)" if fault.error_count() > 1 else ""
        raise ConfigError(f"{file}: {key}: {first['msg']}{more}", f"Correct {key} in {file}.") from fault
