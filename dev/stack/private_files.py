"""Files that hold passwords, keys or process records: mode 0600, replaced in one step."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write `text` so that other users never see it and a crash leaves the old or the new content, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    part.replace(path)


def new_password() -> str:
    """A random password of letters, digits, `-` and `_`: safe in a URL, on a command line and in JSON."""
    return secrets.token_urlsafe(18)


def new_signing_key() -> str:
    """A key for HMAC signatures: 64 characters, the least that HS512 wants."""
    return secrets.token_urlsafe(48)


def new_fernet_key() -> str:
    """A Fernet key: exactly 32 bytes in URL-safe base64 with padding."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


class SecretBook:
    """Generated secrets by name, kept in one private JSON file and never shown in logs."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}

    def __repr__(self) -> str:
        return f"SecretBook({self._path})"

    def get(self, name: str, make: Callable[[], str] = new_password) -> str:
        """The secret of this name; made up on first use."""
        if name not in self._values:
            self._values[name] = make()
            write_private(self._path, json.dumps(self._values, indent=2))
        return self._values[name]
