"""Finding and reading job folders on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nightmill.domain.contract import OPTIONAL_FILES, REQUIRED_FILES, JobDefinition
from nightmill.domain.errors import ConfigError

JOBS_PATH = "NIGHTMILL_JOBS_PATH"


def roots(built_in: Path) -> list[Path]:
    """The folders that hold job folders: the project's own, then those of NIGHTMILL_JOBS_PATH (colon-separated)."""
    extra = [Path(part) for part in os.environ.get(JOBS_PATH, "").split(":") if part]
    return [built_in, *extra]


def find(folders: Iterable[Path]) -> dict[str, Path]:
    """Job folders by name: every direct subfolder with a job.yaml. Raises ConfigError when a name stands twice."""
    found: dict[str, Path] = {}
    for root in folders:
        for job_yaml in sorted(root.glob("*/job.yaml")) if root.is_dir() else ():
            folder = job_yaml.parent
            if folder.name in found:
                raise ConfigError(
                    f"The job {folder.name!r} stands in {found[folder.name]} and in {folder}.", "Rename one of them."
                )
            found[folder.name] = folder
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
