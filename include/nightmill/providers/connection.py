"""What an adapter needs to know: where and as whom it calls, and what every request of a job has in common."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from nightmill.domain.errors import ConfigError
from nightmill.domain.job import CHAT

_KEY = re.compile(r"[\x21-\x7e]+")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class ProviderConnection:
    """An account at a provider. `conn_id` is the name people know it by; it appears in messages, the key never does.

    `timeout_s` bounds connecting and each wait for bytes, not a whole transfer. `max_retries` is for calls that are
    safe to repeat; creating a batch is always sent once.
    """

    conn_id: str
    base_url: str
    api_key: str = field(repr=False)
    project: str | None = None
    organization: str | None = None
    timeout_s: float = 60.0
    max_retries: int = 2

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ConfigError(
                f"The base URL of connection {self.conn_id!r} is not an http(s) address.",
                "Write it like https://api.openai.com/v1 in the connection's host.",
            )
        if url.username or url.password or url.query:
            raise ConfigError(
                f"The base URL of connection {self.conn_id!r} carries a user, password or query.",
                "Keep the key in the connection's password and nothing but the address in its host.",
            )
        if not _KEY.fullmatch(self.api_key):
            raise ConfigError(
                f"The key of connection {self.conn_id!r} is empty or has blanks or non-ASCII characters.",
                "Put the key into the connection's password; a server that needs none takes any word.",
            )

    @property
    def fingerprint(self) -> str:
        """Names address, organisation, project and key without showing the key: 16 hex digits.

        Batches are visible only to the account that made them, so a handle is kept with this fingerprint. A different
        one means another account or a key that was changed; only polling tells which, and "not found" under a
        different fingerprint proves nothing.
        """
        parts = (self.base_url.rstrip("/"), self.organization or "", self.project or "", self.api_key)
        digest = hashlib.sha256()
        for part in parts:
            digest.update(hashlib.sha256(part.encode()).digest())
        return digest.hexdigest()[:16]

    @property
    def is_loopback(self) -> bool:
        """True for a server on this machine: a proxy from the environment must not be asked for it."""
        return urlsplit(self.base_url).hostname in _LOOPBACK


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """The part of a job's requests that is the same on every line of a file.

    `endpoint` is a path as the provider's batch file wants it (`/v1/chat/completions`). `response_schema` is a strict
    JSON schema that goes out as structured output.
    """

    model: str
    endpoint: str = CHAT
    parameters: Mapping[str, Any] = field(default_factory=dict)
    response_schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    completion_window: str = "24h"
