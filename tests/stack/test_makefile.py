"""The Makefile explains itself and says what to do when it cannot go on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

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
