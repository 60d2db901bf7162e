"""Names in one file of a job folder that must exist in another: fields of output.py, columns, prompt variables."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.domain.suggestions import hint, listed, nearest
from nightmill.jobs.check.yaml_document import document
from nightmill.jobs.check.yaml_lines import Place, YamlLines
from nightmill.jobs.filters import INTERVAL, lone_percents, parameters_of
from nightmill.jobs.output.columns import PROVENANCE_COLUMNS
from nightmill.jobs.prompt.messages import ROLES
from nightmill.jobs.prompt.prompt import Prompt
from nightmill.jobs.rules.data_interval import ONE_INTERVAL, is_window
from nightmill.jobs.settings.gate_settings import MOST_EXPECTATIONS
from nightmill.jobs.settings.job import Job, Source
from nightmill.jobs.settings.publish_settings import PublishMode

_COLUMN_ARGUMENTS = ("column", "column_A", "column_B", "column_list")


def unknown_fields(content: bytes, fields: Set[str]) -> Iterator[Mistake]:
    """What job.yaml names that output.py does not have. Reads plain YAML: the file may have other mistakes."""
    raw = _plain(content)
    named: list[tuple[Place, Any]] = []
    for index, rule in enumerate(_entries(raw, "validation", "citations")):
        named.append(
            (("validation", "citations", index, "quote"), rule.get("quote") if isinstance(rule, dict) else None)
        )
    for index, field in enumerate(_entries(raw, "gold", "fields")):
        named.append((("gold", "fields", index), field))
    named += [(("compare", "fields", field), field) for field in _names(raw, "compare", "fields")]
    for place, name in named:
        if isinstance(name, str) and name not in fields:
            key, line = ".".join(map(str, place)), YamlLines(content).line(place)
            problem = f"output.py has no field {name!r}{hint(name, fields)}"
            yield Mistake("job.yaml", line, key, problem, f"Use one of {listed(fields)}.")


def unknown_check_columns(content: bytes, fields: Set[str]) -> Iterator[Mistake]:
    """What checks.yaml names that the staging table does not have. Reads plain YAML too."""
    known = fields | set(PROVENANCE_COLUMNS)
    for index, kind, arguments in expectations_in(content):
        for argument, name in _named_columns(arguments):
            if name not in known:
                line = YamlLines(content).line(("expectations", index, argument))
                problem = f"output.py has no field {name!r}{hint(name, known)}"
                remedy = f"Use one of {listed(fields)}, or a column that every row has: {listed(PROVENANCE_COLUMNS)}."
                yield Mistake("checks.yaml", line, f"{kind}.{argument}", problem, remedy)


def wrong_parameters(source: Source, content: bytes) -> Iterator[Mistake]:
    """%(name)s of the query that nothing fills in, and filters that the query does not use."""
    lines, place = YamlLines(content), ("source", "query")
    used = parameters_of(source.query)
    known = INTERVAL | source.filters.keys()
    for offset in lone_percents(source.query):
        line = lines.line_in_text(place, offset)
        yield Mistake("job.yaml", line, "source.query", "a % that starts no %(name)s", "Write a literal % as %%.")
    for name, offset in dict(reversed(used)).items():  # where each stands first
        if name not in known:
            problem = f"%({name})s is no filter of source.filters{hint(name, known)}"
            remedy = f"Declare it there, or use one of {listed(known)}. A literal % is written %%."
            yield Mistake("job.yaml", lines.line_in_text(place, offset), "source.query", problem, remedy)
    for name in sorted(source.filters.keys() - {name for name, _ in used}):
        problem = "the query does not use this filter: choosing a value would change nothing"
        remedy = f"Write %({name})s where its value belongs in source.query, or remove the filter."
        key = ("source", "filters", name)
        yield Mistake("job.yaml", lines.line(key), ".".join(key), problem, remedy)


def expectations_in(content: bytes) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Position, type and arguments of each entry of checks.yaml that has a type, whatever else is wrong there."""
    for index, entry in enumerate(_entries(_plain(content), "expectations")[:MOST_EXPECTATIONS]):
        if isinstance(entry, dict) and isinstance(entry.get("type"), str):
            yield index, entry["type"], {str(name): value for name, value in entry.items()}


def _plain(content: bytes) -> Any:
    try:
        return document("", content)
    except BrokenJobFolder:
        return None


def _entries(value: Any, *keys: str) -> list[Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def _names(value: Any, *keys: str) -> list[Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return list(value) if isinstance(value, dict) else []


def _named_columns(arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for argument in _COLUMN_ARGUMENTS:
        value = arguments.get(argument)
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str):
                yield argument, name


def doubtful_names(job: Job, prompt: Prompt, content: bytes) -> Iterator[Mistake]:
    """Warnings: what may be meant. A prompt that leaves the document out, words that look like a misspelt column of
    source.columns or a misspelt marker, and a query of one interval."""
    columns = job.source.columns
    roles = {
        name
        for name in (columns.id, columns.text, columns.version, columns.tenant, columns.domain, columns.required)
        if name
    }
    if columns.text not in prompt.variables:
        yield Mistake(
            "prompt.md",
            None,
            None,
            f"the document is not in the prompt: source.columns.text is {columns.text!r}",
            f"Add {{{{ {columns.text} }}}} where the document shall stand, or correct source.columns.text in job.yaml.",
        )
    for name, line in sorted(prompt.lines.items(), key=lambda one: one[1]):
        if name not in roles and (found := nearest(name, roles)):
            yield Mistake("prompt.md", line, name, f"no column of source.columns; did you mean {found!r}?", _FINE)
    for word, line in prompt.comments.items():
        if found := nearest(word, ROLES):
            problem = f"<!-- {word} --> starts no message; did you mean {found!r}?"
            yield Mistake("prompt.md", line, None, problem, "Correct it, unless it is part of the prompt.")
    for index, rule in enumerate(job.validation.citations):
        if rule.source not in roles | prompt.variables and (found := nearest(rule.source, roles | prompt.variables)):
            place: Place = ("validation", "citations", index, "source")
            key, line = ".".join(map(str, place)), YamlLines(content).line(place)
            problem = f"{rule.source!r} is no column of source.columns and not in prompt.md; did you mean {found!r}?"
            yield Mistake("job.yaml", line, key, problem, _FINE)
    yield from _one_interval(job, content)


def _one_interval(job: Job, content: bytes) -> Iterator[Mistake]:
    """A view of mode replace is one batch: a query of one night's rows takes all other nights from its readers."""
    if not is_window(job.source.query) or job.publish.mode is not PublishMode.REPLACE:
        return
    offset = next(at for name, at in parameters_of(job.source.query) if name == "data_interval_start")
    line = YamlLines(content).line_in_text(("source", "query"), offset)
    yield Mistake("job.yaml", line, "source.query", f"binds %(data_interval_start)s: {ONE_INTERVAL}", _ALL_NIGHTS)


_ALL_NIGHTS = (
    "Leave the interval out, so that each run reads all rows (those that have not changed are reused without a call), "
    "or set publish.mode to by_interval, so that the view grows by each interval; keep it as it is only where readers "
    "want the newest interval alone."
)
_FINE = "Correct it, unless the source query returns a column of this name."
