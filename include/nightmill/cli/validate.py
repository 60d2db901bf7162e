"""validate: every mistake of every job folder, with file, line and key. Touches no service."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from nightmill.domain.errors import BrokenJobFolder, ConfigError, Mistake
from nightmill.domain.suggestions import aside, listed
from nightmill.gates.argument_types import with_argument_types
from nightmill.jobs import job_folders
from nightmill.jobs.check.schedule import unpublished_views
from nightmill.jobs.output.job_code import said_by


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a folder, and what is probably wrong."""

    job: str
    mistakes: tuple[Mistake, ...]
    warnings: tuple[Mistake, ...] = ()


_UNFORESEEN = "Take the last change of the folder back, and report this with the version of nightmill."


def run(arguments: argparse.Namespace) -> int:
    """Print the verdicts on all folders, or on those that are named; 1 when one has mistakes. Warnings fail nothing.

    Raises ConfigError for a name that no folder has.
    """
    _refuse_unknown(arguments.jobs, arguments.names)
    verdicts = list(examine(arguments.jobs, frozenset(arguments.names)))
    if arguments.json:
        print(json.dumps({one.job: _fields(one) for one in verdicts}))
    else:
        print("\n".join(line for one in verdicts for line in _lines(one)) or "no jobs")
    return 1 if any(one.mistakes for one in verdicts) else 0


def _refuse_unknown(built_in: Path, names: Sequence[str]) -> None:
    known = job_folders.find(job_folders.roots(built_in)).folders
    for name in names:
        if name not in known:
            raise ConfigError(
                f"There is no job folder {name!r}{aside(name, known)}.",
                f"Use one of {listed(known)}, or name its parent with --jobs or {job_folders.JOBS_PATH}.",
            )


def examine(built_in: Path, names: Set[str] = frozenset()) -> Iterator[Verdict]:
    """One verdict per job folder, or per named one; `(folders)` stands for what is wrong beside them."""
    found = job_folders.find(job_folders.roots(built_in))
    if found.faults and not names:
        beside = (Mistake("", None, None, fault.cause.rstrip("."), fault.remedy) for fault in found.faults)
        yield Verdict("(folders)", tuple(beside))
    views: dict[str, str] = {}
    for name, folder in found.folders.items():
        if names and name not in names:
            with suppress(Exception):  # whatever is wrong with it, nobody asked
                views.setdefault(job_folders.read(folder).job.publish.view, name)
            continue
        verdict = _of_folder(name, folder)
        if not verdict.mistakes:
            definition = job_folders.read(folder)
            view = definition.job.publish.view
            if views.setdefault(view, name) != name:
                problem = f"the job {views[view]!r} publishes {view!r} too"
                twice = Mistake(str(folder / "job.yaml"), None, "publish.view", problem, "Give each job its own view.")
                verdict = replace(verdict, mistakes=(twice,))
            if definition.job.dag.after_assets is not None:
                waits = unpublished_views(definition.job, definition.files["job.yaml"], _views_of(found))
                verdict = replace(verdict, warnings=(*verdict.warnings, *_in(folder, list(waits))))
        yield verdict


def _views_of(found: job_folders.Found) -> frozenset[str]:
    """The views that all these folders publish, whatever else is wrong with one."""
    views = []
    for folder in found.folders.values():
        with suppress(Exception):
            views.append(job_folders.read(folder).job.publish.view)
    return frozenset(views)


def _of_folder(name: str, folder: Path) -> Verdict:
    try:
        definition = job_folders.read(folder)
        mistakes = with_argument_types(definition)
        warnings = [*definition.warnings(), *job_folders.unread_files(folder)]
    except BrokenJobFolder as fault:
        return Verdict(name, fault.mistakes)
    except Exception as fault:  # nobody foresaw it: the other folders are examined all the same
        return Verdict(name, (Mistake(str(folder), None, None, f"cannot be checked ({said_by(fault)})", _UNFORESEEN),))
    return Verdict(name, tuple(_in(folder, mistakes)), tuple(_in(folder, warnings)))


def _in(folder: Path, mistakes: list[Mistake]) -> Iterator[Mistake]:
    """With paths that an editor or a terminal can open."""
    for mistake in mistakes:
        yield replace(mistake, file=str(folder / mistake.file) if (folder / mistake.file).exists() else str(folder))


def _lines(verdict: Verdict) -> Iterator[str]:
    if not verdict.mistakes:
        yield f"{verdict.job}: valid"
    else:
        count = len(verdict.mistakes)
        yield f"{verdict.job}: {count} {'mistake' if count == 1 else 'mistakes'}"
    for mistake in verdict.mistakes:
        yield f"  {mistake}\n    {mistake.remedy}"
    for warning in verdict.warnings:
        yield f"  warning: {warning}\n    {warning.remedy}"


def _fields(verdict: Verdict) -> dict[str, object]:
    return {
        "valid": not verdict.mistakes,
        "mistakes": [asdict(one) for one in verdict.mistakes],
        "warnings": [asdict(one) for one in verdict.warnings],
    }
