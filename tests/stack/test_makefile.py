"""The Makefile explains itself and says what to do when it cannot go on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def make(*arguments: str, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_make_alone_lists_every_target_with_its_purpose() -> None:
    shown = make()
    assert shown.returncode == 0, shown.stderr
    listed = re.findall(r"^  make ([a-z-]+) +\S.+$", shown.stdout, re.MULTILINE)
    declared = re.findall(r"^\.PHONY: ([a-z-]+)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert listed == declared
    assert {"setup", "demo", "up", "down", "test", "lint", "lock", "clean"} <= set(listed)


def test_without_a_suitable_python_setup_says_what_to_do(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements-dev.txt"):
        (tmp_path / name).write_bytes((REPOSITORY / name).read_bytes())
    refused = make("setup", "PYTHON=/no/such/python3", cwd=tmp_path)
    assert refused.returncode != 0
    assert "no Python >= 3.11, < 3.14 found" in refused.stderr
    assert "remedy:" in refused.stderr
    assert not (tmp_path / ".venv").exists()


OF_THE_CALL = ("ARGS", "JOB", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL")


@pytest.mark.parametrize("target", ["test", "sweep"])
def test_what_a_make_call_was_given_does_not_reach_the_make_calls_of_tests(tmp_path: Path, target: str) -> None:
    """pytest stands in for a test: it prints the environment that a test would hand on."""
    (tmp_path / "Makefile").write_bytes((REPOSITORY / "Makefile").read_bytes())
    (tmp_path / "requirements-dev.txt").touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "called with $*"\nenv\n')
    python.chmod(0o755)
    (tmp_path / ".venv" / ".nightmill-ready").touch()
    shown = make("-k", target, "ARGS=tests/local -k ports", "JOB=letters", cwd=tmp_path)
    assert "tests/local -k ports" in shown.stdout.partition("\n")[0], shown
    assert {line.partition("=")[0] for line in shown.stdout.splitlines()[1:]} & {*OF_THE_CALL} == set()


def test_a_test_below_any_make_call_sees_nothing_of_it() -> None:
    called = os.environ | dict.fromkeys(OF_THE_CALL, "k -- ARGS=--no-such-option")
    this = f"{__file__}::test_the_environment_of_a_test_holds_nothing_of_a_make_call"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", this]
    done = subprocess.run(command, cwd=REPOSITORY, env=called, capture_output=True, text=True, timeout=300, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_environment_of_a_test_holds_nothing_of_a_make_call() -> None:
    assert {*OF_THE_CALL} & os.environ.keys() == set()
