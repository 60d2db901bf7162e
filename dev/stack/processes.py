"""Long-lived processes: started detached in a session of their own, recognised again later, stopped with everything
that they started.

A process is known by its pid and an identity (boot and start time), so a pid that the system gave to somebody else
is never mistaken for ours. Each component leads its own session; children keep the session even when their leader is
gone, which is how leftovers of a killed scheduler are found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

LOG_LIMIT_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A started component. `fingerprint` tells whether it was started with today's settings; `started_at` is Unix
    time in seconds."""

    pid: int
    identity: str
    fingerprint: str
    log: str
    started_at: float


def identity_of(pid: int) -> str | None:
    """What tells this process from any other that had or will have its number; None if it is gone or a zombie.

    Linux: boot id and start time in clock ticks (exact, indifferent to clock changes). Elsewhere: creation time.
    """
    _reap(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()  # proc(5): state is field 3
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return None if Path("/proc/self/stat").exists() else _portable_identity(pid)
    if fields[0] in "ZX":
        return None
    return f"{_boot_id()}:{fields[19]}"  # starttime is field 22


def is_alive(record: ProcessRecord) -> bool:
    """Whether exactly the recorded process still runs."""
    return identity_of(record.pid) == record.identity


def spawn(argv: Sequence[str], env: Mapping[str, str], log: Path, fingerprint: str) -> ProcessRecord:
    """Start a process as leader of a new session, its output appended to `log` (private; the last one is kept)."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(log.with_name(log.name + ".1"))
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    started_at = time.time()
    pid = os.posix_spawn(
        argv[0],
        list(argv),
        dict(env),
        file_actions=actions,
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
    )
    return ProcessRecord(pid, identity_of(pid) or "gone", fingerprint, str(log), started_at)


def members(record: ProcessRecord) -> list[psutil.Process]:
    """The recorded process and all that it started: its session, and descendants that opened one of their own.

    Empty when the pid now belongs to another process: the system hands a number out again only after the session
    with that number is empty.
    """
    identity = identity_of(record.pid)
    if identity is not None and identity != record.identity:
        return []
    found = {process.pid: process for process in psutil.process_iter() if _in_session(process, record)}
    for process in list(found.values()):
        with suppress(psutil.Error):
            found.update({child.pid: child for child in process.children(recursive=True)})
    return [process for process in found.values() if identity_of(process.pid) is not None]


def stop(records: Iterable[ProcessRecord], grace_s: float) -> None:
    """Ask the leaders to end, wait up to `grace_s` seconds for all members, then kill what is left. Leftovers of a
    dead leader have nobody to tell them to end and are killed at once.

    Members are looked up again before each round, so what was started meanwhile is caught too; those seen once are
    remembered, because a child in a session of its own cannot be found any more once its parent is gone.
    """
    families = {record: set(members(record)) for record in records}
    deadlines = {record: time.monotonic() + (grace_s if _terminate(record) else 0) for record in families}
    while families:
        for record, family in list(families.items()):
            family |= set(members(record))
            left = {process for process in family if identity_of(process.pid) and process.is_running()}
            if not left:
                del families[record]
            elif time.monotonic() >= deadlines[record]:
                _kill(left)
        time.sleep(0.1 if families else 0)


def _terminate(record: ProcessRecord) -> bool:
    """Send SIGTERM; False when the process is gone."""
    if not is_alive(record):
        return False
    with suppress(ProcessLookupError):
        os.kill(record.pid, signal.SIGTERM)
    return True


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            process.kill()  # psutil compares the creation time first


def _in_session(process: psutil.Process, record: ProcessRecord) -> bool:
    try:
        return os.getsid(process.pid) == record.pid and process.uids().real == os.getuid()
    except (OSError, psutil.Error):
        return False


def _reap(pid: int) -> None:
    """Collect the exit status if the process is a dead child of ours: until then its number lives on as a zombie."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else "unknown"


def _portable_identity(pid: int) -> str | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"created:{process.create_time():.2f}"
    except psutil.Error:
        return None
