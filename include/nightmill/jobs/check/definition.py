"""A job folder checked as a whole: everything that can be wrong with it before a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pydantic import TypeAdapter

from nightmill.domain.errors import BrokenJobFolder, MissingExtra, Mistake
from nightmill.domain.suggestions import hint, listed
from nightmill.jobs.check.expectations import arguments_of, installed, known_expectations
from nightmill.jobs.check.references import expectations_in
from nightmill.jobs.check.schedule import schedule_mistakes
from nightmill.jobs.check.yaml_lines import YamlLines
from nightmill.jobs.check.yaml_mistakes import first_of
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output.answer_schema import AnswerReader, strict_schema
from nightmill.jobs.output.answer_types import asks_for_naive_times
from nightmill.jobs.output.job_code import contained
from nightmill.jobs.output.output_module import FILE, TYPES, line_of
from nightmill.jobs.settings.publish_settings import PublishMode

_ORDER = ("job.yaml", "prompt.md", "output.py", "checks.yaml")  # in which people read a folder


def check_definition(definition: JobDefinition) -> None:
    """Raise BrokenJobFolder with all mistakes of a job folder."""
    found = mistakes_of(definition)
    if found:
        raise BrokenJobFolder(found)


def mistakes_of(definition: JobDefinition) -> list[Mistake]:
    """All mistakes of a job folder, those in output.py with their line; but for what only Great Expectations itself can
    tell of checks.yaml (`gates.argument_types`)."""
    found = definition.mistakes()
    if not any(mistake.file == "output.py" for mistake in found):
        for examine in (strict_schema, AnswerReader):
            try:
                examine(definition.output)
            except BrokenJobFolder as fault:
                found += fault.mistakes
        if not found:
            found += _times_of_no_zone(definition)
    checks = definition.files.get("checks.yaml", b"")
    found += first_of(_unknown_expectations(checks))
    found += first_of(_unfit_arguments(checks))
    if not any(mistake.file == "job.yaml" for mistake in found):
        found += schedule_mistakes(definition.job, definition.files["job.yaml"])
        found += _unfit_deletion(definition)
    return in_order(_with_line(mistake, definition.files["output.py"]) for mistake in found)


def in_order(mistakes: Iterable[Mistake]) -> list[Mistake]:
    """By file, then by line."""
    return sorted(mistakes, key=lambda one: (_ORDER.index(one.file) if one.file in _ORDER else -1, one.line or 0))


def _with_line(mistake: Mistake, source: bytes) -> Mistake:
    """The line of `Output.lines[].amount` is that of the field `lines` of the class `Output`."""
    if mistake.file != "output.py" or mistake.line is not None or not mistake.key:
        return mistake
    name, field = re.match(r"(\w+)(?:\.(\w+))?", mistake.key).groups()  # type: ignore[union-attr]
    return replace(mistake, line=line_of(source, name, field))


def _times_of_no_zone(definition: JobDefinition) -> Iterator[Mistake]:
    with contained(FILE, "Output", TYPES):
        naive = asks_for_naive_times(TypeAdapter(definition.output))
    if naive and definition.job.validation.time_zone is None:
        problem = "asks for times without a zone (NaiveDatetime), and the job names no zone for them"
        remedy = "Set validation.time_zone in job.yaml, such as Europe/Berlin, or use datetime."
        yield Mistake("output.py", None, "Output", problem, remedy)


def _unfit_deletion(definition: JobDefinition) -> Iterator[Mistake]:
    publish = definition.job.publish
    if publish.deleted is None:
        return
    line = YamlLines(definition.files["job.yaml"]).line(("publish", "deleted"))
    if publish.mode is not PublishMode.BY_KEY:
        problem = f"publish.mode is {publish.mode}, which deletes no single ids"
        yield Mistake("job.yaml", line, "publish.deleted", problem, "Leave it out, or set publish.mode: by_key.")
    with contained(FILE, "Output", TYPES):
        types = {column.name: column.sql_type for column in definition.columns}
    if types.get(publish.deleted, "boolean") != "boolean":
        problem = f"the field {publish.deleted!r} of output.py is no boolean but {types[publish.deleted]}"
        yield Mistake("job.yaml", line, "publish.deleted", problem, "Name a field of type bool.")


def _unknown_expectations(content: bytes) -> Iterator[Mistake]:
    known = known_expectations()
    for index, kind, _ in expectations_in(content):
        if not installed():
            missing = MissingExtra("Great Expectations, which judges them,", "gx")
            line = YamlLines(content).line(("expectations",))
            yield Mistake("checks.yaml", line, "expectations", missing.cause.rstrip("."), missing.remedy)
            return
        if known and kind.startswith("Expect") and kind not in known:
            line = YamlLines(content).line(("expectations", index, "type"))
            problem = f"Great Expectations has no {kind}{hint(kind, known)}"
            remedy = "Use a class name of gx.expectations."
            yield Mistake("checks.yaml", line, f"expectations.{index}.type", problem, remedy)


def _unfit_arguments(content: bytes) -> Iterator[Mistake]:
    lines = YamlLines(content)
    for index, kind, given in expectations_in(content):
        arguments = arguments_of(kind)
        if arguments is None:
            continue
        remedy = f"Its arguments are {listed(arguments.known)}."
        for name in sorted(given.keys() - arguments.known - {"type"}):
            line = lines.line(("expectations", index, name))
            yield Mistake("checks.yaml", line, f"{kind}.{name}", f"unknown{hint(name, arguments.known)}", remedy)
        for name in sorted(arguments.required - given.keys()):
            yield Mistake("checks.yaml", lines.line(("expectations", index)), f"{kind}.{name}", "missing", remedy)
