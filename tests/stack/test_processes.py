"""Pid bookkeeping: what we started is found and stopped with all its children, and nothing else is."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from pathlib import Path

import psutil

from dev.stack.processes import ProcessRecord, identity_of, is_alive, members, spawn, stop

FAMILY = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("ready", flush=True)
time.sleep(600)
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + FAMILY.replace("\n", "\n").strip("\n")


def start(tmp_path: Path, program: str) -> ProcessRecord:
    log = tmp_path / "program.log"
    record = spawn([sys.executable, "-c", program], os.environ, log, "fingerprint")
    deadline = time.monotonic() + 60
    while "ready" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return record


def test_stopping_ends_the_process_and_every_child_whatever_its_group_or_session(tmp_path: Path) -> None:
    record = start(tmp_path, FAMILY)
    family = members(record)
    assert len(family) == 4
    stop([record], grace_s=0.5)
    assert not is_alive(record)
    assert members(record) == []
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family)


def test_a_process_that_ignores_the_request_is_killed_after_the_grace(tmp_path: Path) -> None:
    record = start(tmp_path, STUBBORN)
    began = time.monotonic()
    stop([record], grace_s=0.5)
    assert not is_alive(record)
    assert 0.4 < time.monotonic() - began < 60  # its sleep is 600 s


def test_children_of_a_killed_leader_are_found_and_stopped_at_once(tmp_path: Path) -> None:
    record = start(
        tmp_path,
        FAMILY.replace(
            'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)\n', ""
        ),
    )
    psutil.Process(record.pid).kill()
    while is_alive(record):
        time.sleep(0.02)
    assert len(members(record)) == 2
    began = time.monotonic()
    stop([record], grace_s=30)
    assert members(record) == []
    assert time.monotonic() - began < 20  # the grace is 30 s


def test_a_pid_that_was_given_to_another_process_is_never_touched(tmp_path: Path) -> None:
    stranger = start(tmp_path, "import time; print('ready', flush=True); time.sleep(600)")
    try:
        remembered = dataclasses.replace(stranger, identity="another-boot:12345")
        assert not is_alive(remembered)
        assert members(remembered) == []
        stop([remembered], grace_s=0)
        assert is_alive(stranger)
    finally:
        stop([stranger], grace_s=0)


def test_the_identity_of_a_process_stays_and_ends_with_it(tmp_path: Path) -> None:
    record = start(tmp_path, "import time; print('ready', flush=True); time.sleep(600)")
    assert identity_of(record.pid) == identity_of(record.pid) == record.identity
    stop([record], grace_s=5)
    assert identity_of(record.pid) is None


def test_logs_are_private(tmp_path: Path) -> None:
    record = start(tmp_path, "print('ready', flush=True)")
    stop([record], grace_s=5)
    assert (tmp_path / "program.log").stat().st_mode & 0o077 == 0
