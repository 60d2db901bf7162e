"""A job folder as a value: parsed, checked as a whole, and hashed.

The contract is what gives a result its meaning. It is pinned per batch: a copy of the folder's files is kept with its
hash, and a run works from that copy. Gates, thresholds, retry budgets and capacity are read live instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
from pydantic import BaseModel

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.domain.keys import ContractVersions, short_hash
from nightmill.jobs.check.known_parameters import doubtful_parameters, vendor_mistakes
from nightmill.jobs.check.references import doubtful_names, unknown_check_columns, unknown_fields, wrong_parameters
from nightmill.jobs.check.request_parameters import adapter_mistakes, parameter_mistakes
from nightmill.jobs.check.yaml_mistakes import doubled_keys, first_of, read_yaml
from nightmill.jobs.job_text import plain, unreadable
from nightmill.jobs.output.columns import Column, typed_columns
from nightmill.jobs.output.embeddings import embedding_mistakes
from nightmill.jobs.output.job_code import contained
from nightmill.jobs.output.output_module import TYPES, json_schema, load_output
from nightmill.jobs.prompt.prompt import Prompt
from nightmill.jobs.settings.gate_settings import Checks
from nightmill.jobs.settings.job import JOB_NAME, OPERATIONS, Job

REQUIRED_FILES = ("job.yaml", "prompt.md", "output.py")
OPTIONAL_FILES = ("checks.yaml",)
# Raised when a check refuses what it accepted before: stored answers are then checked again.
CITATION_CHECK = 2
TIME_CHECK = 1
_TIMES = (b'"format":"date', b'"format":"time"', b'"format":"duration"')


@dataclass(frozen=True)
class JobDefinition:
    """One job folder. `files` maps file names to their bytes; everything else follows from them. Line ends and byte
    order marks are taken off, so that they change nothing: no prompt, and no hash."""

    name: str
    files: Mapping[str, bytes]

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", {name: plain(content) for name, content in self.files.items()})

    @cached_property
    def job(self) -> Job:
        """job.yaml. Raises BrokenJobFolder."""
        return read_yaml(Job, "job.yaml", self.files["job.yaml"])

    @cached_property
    def checks(self) -> Checks:
        """checks.yaml; no file means no expectations. Raises BrokenJobFolder."""
        return read_yaml(Checks, "checks.yaml", self.files.get("checks.yaml", b"{}"))

    @cached_property
    def prompt(self) -> Prompt:
        """prompt.md. Raises BrokenJobFolder."""
        return Prompt(self.files["prompt.md"].decode("utf-8"))

    @property
    def output(self) -> type[BaseModel]:
        """The one pydantic model named Output in output.py. Raises BrokenJobFolder."""
        if isinstance(self._loaded, BrokenJobFolder):
            raise self._loaded
        return self._loaded

    @cached_property
    def _loaded(self) -> type[BaseModel] | BrokenJobFolder:
        """Runs output.py once, also where it fails: that can take its whole time limit."""
        try:
            return load_output(self.name, self.files["output.py"])
        except BrokenJobFolder as fault:
            return fault

    @cached_property
    def columns(self) -> list[Column]:
        """The view's typed columns."""
        schema = json_schema(self.output)
        with contained("output.py", "Output", TYPES):
            return typed_columns(schema, marked=True)

    @property
    def payload_columns(self) -> tuple[str, ...]:
        """The query's columns that a request or its validation uses: exactly these are kept as the payload."""
        cited = {rule.source for rule in self.job.validation.citations}
        return tuple(sorted(self.prompt.variables | cited | {self.job.source.columns.text}))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The query's columns beside id, version, tenant and domain that a freeze reads: the payload, and the mark of
        deleted ids."""
        name = self.deleted_in_source
        return self.payload_columns if name is None else tuple(sorted({*self.payload_columns, name}))

    @property
    def deleted_in_source(self) -> str | None:
        """The column of the source query that marks an id as deleted, where no field of output.py does."""
        name = self.job.publish.deleted
        return None if name in {column.name for column in self.columns} else name

    @cached_property
    def versions(self) -> ContractVersions:
        """What enters the idempotency keys."""
        provider = self.job.provider
        policy: dict[str, Any] = {"adapter": provider.adapter, "model": provider.model, "task": provider.task}
        policy |= {} if provider.max_output_tokens is None else {"max_output_tokens": provider.max_output_tokens}
        return ContractVersions(
            job=self.name,
            transform_name=self.job.transform.name,
            transform_version=self.job.transform.version,
            prompt_version=short_hash(self.prompt.source.encode()),
            model_policy_version=short_hash(_canonical({**policy, "parameters": provider.parameters})),
            output_schema_version=short_hash(_canonical(json_schema(self.output))),
        )

    @cached_property
    def validators_hash(self) -> str:
        """Changes with any rule that an answer must pass; stored answers are then checked again before reuse."""
        rules = self.job.validation.model_dump(mode="json", exclude_none=True)  # no rule is no change
        if self.job.validation.citations:
            rules["citation_check"] = CITATION_CHECK
        if any(form in _canonical(json_schema(self.output)) for form in _TIMES):
            rules["time_check"] = TIME_CHECK
        return short_hash(self.files["output.py"] + _canonical(rules))

    @cached_property
    def folder_hash(self) -> str:
        """Names the pinned copy."""
        return hash_of(self.files)

    def check(self) -> None:
        """Parse everything and hold the parts against each other. Raises BrokenJobFolder with all mistakes."""
        mistakes = self.mistakes()
        if mistakes:
            raise BrokenJobFolder(mistakes)

    def mistakes(self) -> list[Mistake]:
        """Everything that is wrong with the folder. A part that cannot be read hides only what depends on it."""
        unread = [mistake for file, content in self.files.items() for mistake in unreadable(file, content)]
        if unread:
            return unread
        found = [] if JOB_NAME.match(self.name) else [Mistake("job folder", None, repr(self.name), *_NO_NAME)]
        if self.name in OPERATIONS:
            found.append(Mistake("job folder", None, repr(self.name), *_TAKEN_NAME))
        readable = {part for part in ("job", "prompt", "columns", "checks") if self._reads(part, found)}
        for part, file in (("job", "job.yaml"), ("checks", "checks.yaml")):
            if part in readable and file in self.files:
                found += first_of(doubled_keys(file, self.files[file]))
        if "job" in readable:
            found += first_of(wrong_parameters(self.job.source, self.files["job.yaml"]))
            found += adapter_mistakes(self.job, self.files["job.yaml"])
            found += parameter_mistakes(self.job, self.files["job.yaml"])
            found += vendor_mistakes(self.job.provider, self.files["job.yaml"])
        if "prompt" in readable:
            found += self.prompt.mistakes()
        if "columns" in readable:
            fields = {column.name for column in self.columns}
            found += first_of(unknown_fields(self.files["job.yaml"], fields))
            found += first_of(unknown_check_columns(self.files.get("checks.yaml", b""), fields))
        if {"job", "prompt", "columns"} <= readable:
            found += embedding_mistakes(self.job, self.prompt, self.columns, self.files["job.yaml"])
        return found

    def warnings(self) -> list[Mistake]:
        """What is probably wrong, and only the source query could tell. Empty for a folder with mistakes."""
        if self.mistakes():
            return []
        content = self.files["job.yaml"]
        return [*doubtful_parameters(self.job.provider, content), *doubtful_names(self.job, self.prompt, content)]

    def _reads(self, part: str, found: list[Mistake]) -> bool:
        try:
            getattr(self, part)
        except BrokenJobFolder as fault:
            found += fault.mistakes
            return False
        return True


_TAKEN_NAME = ("has the name of one of nightmill's operations DAGs", "Give the folder another name.")
_NO_NAME = (
    "has a name that cannot be part of a DAG id and a table name",
    "Use lower-case letters, digits and _, starting with a letter, at most 48 characters.",
)


def hash_of(files: Mapping[str, bytes]) -> str:
    """SHA-256 prefix over all files, byte by byte."""
    return short_hash(b"".join(b"%b\0%d\0%b" % (n.encode(), len(b), b) for n, b in sorted(files.items())))


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
