"""Free loopback ports: found once, remembered by name, used again as long as they are free."""

from __future__ import annotations

import json
import socket
from collections.abc import Collection
from pathlib import Path

from dev.stack.private_files import write_private

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def find_free(avoid: Collection[int] = ()) -> int:
    """A loopback port that nobody listens on. Nothing keeps it reserved: whoever uses it must be ready to lose it."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port: int = probe.getsockname()[1]
        if port not in avoid:
            return port


class PortBook:
    """Ports by name in a small JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ports: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}

    def get(self, name: str) -> int | None:
        """The remembered port, whether it is free or not."""
        return self._ports.get(name)

    def remember(self, name: str, port: int) -> None:
        """Note the port a component really got."""
        if self._ports.get(name) != port:
            self._ports[name] = port
            write_private(self._path, json.dumps(self._ports, indent=2))

    def choose(self, name: str, in_use_by_us: bool) -> int:
        """The remembered port if our own component holds it or nobody does, otherwise a new one."""
        known = self._ports.get(name)
        if known is not None and (in_use_by_us or is_free(known)):
            return known
        port = find_free(avoid=self._ports.values())
        self.remember(name, port)
        return port
