"""What a reader of a page does: saves the files it shows and types its commands, in order."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# An optional line that is nothing but a path (with a slash) in backticks, then a fenced block.
_BLOCK = re.compile(
    r"(?:^`(?P<path>[^`\n]*/[^`\n]*)`:\n\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Saved:
    """A file that the page shows under its path."""

    path: str
    text: str


@dataclass(frozen=True)
class Typed:
    """A block of commands for the shell."""

    text: str


def steps(page: str) -> Iterator[Saved | Typed]:
    """The steps of a page. Blocks that are neither files nor `sh` are there to be read."""
    for block in _BLOCK.finditer(page):
        if block["path"]:
            yield Saved(block["path"], block["text"])
        elif block["kind"] == "sh":
            yield Typed(block["text"])


class Reader:
    """Follows a page in a directory. What was exported stays, as in one terminal; `said` is what each block of
    commands printed."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self._home = home
        self._env = {**env, "PWD": str(home)}
        self.said: list[tuple[str, str]] = []

    def follow(self, page: str) -> None:
        """Do every step. AssertionError with the output of a command that fails."""
        for step in steps(page):
            if isinstance(step, Saved):
                path = self._home / step.path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step.text, "utf-8")
            else:
                self._type(step.text)

    def output_of(self, command: str) -> str:
        """What the block printed that holds this command, of its last time."""
        return next(output for text, output in reversed(self.said) if command in text)

    def _type(self, text: str) -> None:
        exported = self._home / ".exported"
        script = f"set -e\n{text}\nenv -0 > {exported}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self._home, env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
        )  # fmt: skip
        self.said.append((text, done.stdout))
        assert done.returncode == 0, f"{text}\n{done.stdout}"
        pairs = (entry.partition("=") for entry in exported.read_text().split("\0") if entry)
        self._env = {name: value for name, _, value in pairs} | {"PWD": str(self._home)}
        exported.unlink()
