"""Finding and reading job folders on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nightmill.domain.contract import OPTIONAL_FILES, REQUIRED_FILES, JobDefinition
from nightmill.domain.errors import ConfigError

JOBS_PATH = "NIGHTMILL_JOBS_PATH"


def roots(built_in: Path) -> list[Path]:
    """The folders that hold job folders: the project's own, then those of NIGHTMILL_JOBS_PATH (colon-separated)."""
    extra = [Path(part) for part in os.environ.get(JOBS_PATH, "").split(":") if part]
    return [built_in, *extra]


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
    return found


def read(folder: Path) -> JobDefinition:
    """A job folder as it stands on disk now. Raises ConfigError when a file is missing or is not UTF-8."""
    files = {}
    for name in (*REQUIRED_FILES, *OPTIONAL_FILES):
        path = folder / name
        if path.is_file():
            files[name] = path.read_bytes()
        elif name in REQUIRED_FILES:
            raise ConfigError(f"{path} is missing.", f"A job folder holds {', '.join(REQUIRED_FILES)}.")
    for name, content in files.items():
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as fault:
            raise ConfigError(f"{folder / name} is not UTF-8 (byte {fault.start}).", "Save it as UTF-8.") from fault
    return JobDefinition(folder.name, files)
