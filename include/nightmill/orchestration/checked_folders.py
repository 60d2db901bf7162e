"""Remembers on disk which job folders were checked and found good, so that a parse checks only what has changed.

Airflow parses each DAG file every half minute in a new process. What is remembered of a folder is one empty file, its
mark: its name is a hash of the folder's name and files, and its directory stands for the code that checked them. So
there is nothing to lock, nothing that can be half written, and nothing to correct: another content has another name.

Only good folders have marks. A broken one is checked at every parse until it is mended: what is wrong with it may be
the machine's fault. No task trusts a mark: whatever spends money checks the folder itself (stages/freeze.py).
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import nightmill
from nightmill.jobs.contract import JobDefinition

log = logging.getLogger(__name__)

CACHE = "NIGHTMILL_CACHE"
KEPT_DAYS = 30  # marks of other versions of the code, since the last of them was made
_JUDGES = ("apache-airflow", "great-expectations", "jinja2", "pydantic", "pyyaml")  # a check's outcome depends on them


class CheckedFolders:
    """The marks of this version of the code. Where no directory is safe and writable, none is found and none is kept:
    every parse then checks everything, as the first one does."""

    def __init__(self) -> None:
        self._marks = next(_usable(), None)

    def __contains__(self, definition: JobDefinition) -> bool:
        return self._marks is not None and (self._marks / _name_of(definition)).exists()

    def add(self, definition: JobDefinition) -> None:
        """Called when everything about the folder has been found good, the building of its DAG too."""
        if self._marks is None:
            return
        try:
            (self._marks / _name_of(definition)).touch(mode=0o600)
        except OSError as fault:
            log.debug("the next parse checks %a again: %s", definition.name, fault.strerror)

    def discard(self, definition: JobDefinition) -> None:
        """For a folder that was good and of which no DAG can be made now."""
        if self._marks is not None:
            (self._marks / _name_of(definition)).unlink(missing_ok=True)


def _name_of(definition: JobDefinition) -> str:
    parts = [os.fsencode(definition.name)]
    for name, content in sorted(definition.files.items()):
        parts += [name.encode(), content]
    return _hash_of(parts)


def _hash_of(parts: list[bytes]) -> str:
    return hashlib.sha256(b"".join(b"%d\0%b" % (len(part), part) for part in parts)).hexdigest()


def _usable() -> Iterator[Path]:
    for place in _places():
        try:
            if _is_ours(place):
                yield _marks_in(place)
        except OSError as fault:  # a read-only or full file system, a place of somebody else's
            log.debug("%a keeps no marks: %s", str(place), fault.strerror)


def _places() -> Iterator[Path]:
    """NIGHTMILL_CACHE alone if it is set; else the cache of this user, then temporary files, for which a container with
    a read-only root has a place. Directories that many may write to (an emptyDir, /tmp) get one of this user's own."""
    own = f"nightmill-{os.geteuid()}"
    if chosen := os.environ.get(CACHE):
        yield Path(chosen) / own
        return
    user_cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path's raises
    if os.path.isabs(user_cache):  # noqa: PTH117 - a user without a home keeps the ~
        yield Path(user_cache) / "nightmill"
    yield Path(tempfile.gettempdir()) / own


def _is_ours(place: Path) -> bool:
    """Make it if need be. Nobody else may be able to write there: a mark hides what is wrong with a folder."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        log.debug("%a keeps no marks: somebody else may write there", str(place))
        return False
    return os.access(place, os.W_OK | os.X_OK)


def _marks_in(place: Path) -> Path:
    checked = place / "checked"
    marks = checked / _code()
    if not marks.is_dir():
        checked.mkdir(mode=0o700, exist_ok=True)
        marks.mkdir(mode=0o700, exist_ok=True)
        _forget_other_versions(checked)
    return marks


def _forget_other_versions(checked: Path) -> None:
    oldest = time.time() - KEPT_DAYS * 24 * 3600
    for other in checked.iterdir():
        if other.lstat().st_mtime < oldest:
            shutil.rmtree(other, ignore_errors=True)


@cache
def _code() -> str:
    """Stands for everything but the folder that decides a check: this code, Python, and the libraries. Files are known
    by size and time, so that an edit counts as another version too."""
    parts = [sys.version.encode(), *(f"{name} {_version_of(name)}".encode() for name in _JUDGES)]
    root = Path(nightmill.__file__).parent
    for file in sorted(root.rglob("*.py")):
        found = file.stat()
        parts.append(f"{file.relative_to(root)} {found.st_size} {found.st_mtime_ns}".encode())
    return _hash_of(parts)[:32]


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"
