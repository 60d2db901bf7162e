"""Finding and reading job folders on disk."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nightmill.domain.errors import BrokenJobFolder, ConfigError, Mistake
from nightmill.domain.suggestions import nearest
from nightmill.jobs.contract import OPTIONAL_FILES, REQUIRED_FILES, JobDefinition
from nightmill.jobs.job_text import unreadable
from nightmill.jobs.settings.job import Job

log = logging.getLogger(__name__)

JOBS_PATH = "NIGHTMILL_JOBS_PATH"
MOST_BYTES = 1_000_000  # of each file


def roots(built_in: Path) -> list[Path]:
    """The folders that hold job folders: the project's own, then those of NIGHTMILL_JOBS_PATH (colon-separated)."""
    extra = [Path(part) for part in os.environ.get(JOBS_PATH, "").split(":") if part]
    return [*([built_in] if built_in.is_dir() else []), *extra]


@dataclass(frozen=True, slots=True)
class Found:
    """Job folders by name, and what is wrong beside them. Nothing wrong hides a job."""

    folders: dict[str, Path]
    faults: list[ConfigError]


def find(roots: Iterable[Path]) -> Found:
    """Every direct subfolder of the roots with a job.yaml. Of a name that stands twice the first one stays: a folder
    that somebody adds stops no job that runs."""
    found = Found({}, [])
    for root in roots:
        try:
            _look_into(root, found)
        except OSError as fault:
            remedy = "Give this process the right to read it."
            found.faults.append(ConfigError(f"{root} cannot be read ({fault.strerror}).", remedy))
    return found


def _look_into(root: Path, found: Found) -> None:
    if not root.is_dir():
        found.faults.append(
            ConfigError(f"{root} is no directory.", f"Correct {JOBS_PATH}: it lists directories of job folders.")
        )
    for job_yaml in sorted(root.glob("*/job.yaml")):
        folder = job_yaml.parent
        first = found.folders.setdefault(folder.name, folder)
        if first != folder:
            found.faults.append(
                ConfigError(f"{folder}: the job {folder.name!r} stands in {first} too.", "Rename one of them.")
            )
    if (root / "job.yaml").is_file():
        found.faults.append(
            ConfigError(f"{root} is a job folder itself.", f"Name the directory that holds it in {JOBS_PATH}.")
        )
    for misnamed in sorted(root.glob("*/job.yml")):
        if not misnamed.with_suffix(".yaml").exists():
            found.faults.append(ConfigError(f"{misnamed} is not read.", "Name it job.yaml."))


def named(roots: Iterable[Path], name: str) -> Path | None:
    """The job folder of this name that `find` finds, without a look at any other; None where there is none."""
    folders = (root / name for root in roots)
    return next((folder for folder in folders if os.path.isfile(folder / "job.yaml")), None)  # noqa: PTH113 - Path's raises


def read(folder: Path) -> JobDefinition:
    """A job folder as it stands on disk now. Raises BrokenJobFolder when files are missing, not UTF-8,
    too large or unreadable."""
    files, faults = {}, []
    for name in (*REQUIRED_FILES, *OPTIONAL_FILES):
        path = folder / name
        try:
            if path.is_file():
                files[name] = _content(path)
            elif name in REQUIRED_FILES:
                remedy = f"A job folder holds {', '.join(REQUIRED_FILES)}."
                faults.append(Mistake(str(path), None, None, f"is missing{_stranger(folder, name)}", remedy))
        except OSError as fault:
            remedy = "Give this process the right to read it."
            faults.append(Mistake(str(path), None, None, f"cannot be read ({fault.strerror})", remedy))
        except BrokenJobFolder as fault:
            faults += fault.mistakes
    for name, content in files.items():
        faults += unreadable(str(folder / name), content)
    if faults:
        raise BrokenJobFolder(faults)
    return JobDefinition(folder.name, files)


def readable(built_in: Path) -> list[Job]:
    """The jobs of all folders that can be read, for what serves every job. The others are import errors elsewhere."""
    jobs = []
    for folder in find(roots(built_in)).folders.values():
        try:
            jobs.append(read(folder).job)
        except Exception as fault:
            log.debug("%a is left out: %s", str(folder), type(fault).__name__)  # a name can be no UTF-8
    return jobs


def _content(path: Path) -> bytes:
    """Never more than the limit is read, whatever the file is."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        remedy = f"Make it smaller: at most {MOST_BYTES:,} bytes. Data belongs into the source query."
        raise BrokenJobFolder((Mistake(str(path), None, None, f"is larger than {MOST_BYTES:,} bytes", remedy),))
    return content


def _stranger(folder: Path, name: str) -> str:
    """A file that is not read and whose name looks like the missing one's."""
    others = {path.name for path in folder.glob("*.*")} - {*REQUIRED_FILES, *OPTIONAL_FILES}
    found = nearest(name, others)
    return f"; did you mean to name {found!r} so?" if found else ""


def unread_files(folder: Path) -> list[Mistake]:
    """Warnings: files that look like checks.yaml misspelt, whose checks nobody would make."""
    if (folder / "checks.yaml").exists():
        return []
    found = nearest("checks.yaml", {path.name for path in folder.glob("*.y*ml")} - {*REQUIRED_FILES})
    remedy = "Name it checks.yaml."
    return [Mistake(found, None, None, "is not read; did you mean 'checks.yaml'?", remedy)] if found else []
