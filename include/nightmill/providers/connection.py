"""What an adapter needs to know: where and as whom it calls, and what every request of a job has in common."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from nightmill.domain.errors import ConfigError

_KEY = re.compile(r"[\x21-\x7e]+")
# What parsers of URLs read differently, so that what is checked here could be another host than what is called.
_UNCLEAR = re.compile(r"[\s\\\x00-\x20\x7f]")

MIB = 1 << 20
LEAST_LINE_BYTES = MIB
# Keys of a connection's extra that decide beside its key whose batches are seen there.
SCOPES = ("organization", "project", "workspace", "region", "resource")


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The most bytes that are taken from a server, unpacked: far more than any honest answer has. Each is a key of the
    connection's extra, for a server whose answers are larger."""

    max_answer_bytes: int = 16 * MIB  # one JSON answer: a batch object, a page of a listing
    max_result_bytes: int = 4096 * MIB  # one result file
    max_line_bytes: int = 16 * MIB  # one line of it


@dataclass(frozen=True, slots=True)
class ProviderConnection:
    """An account at a provider. `conn_id` is the name people know it by; it appears in messages, the key never does.

    `timeout_s` bounds connecting and each wait for bytes, not a whole transfer. `max_retries` is for calls that are
    safe to repeat; creating a batch is always sent once. `scopes` are what decides beside the key whose batches are
    seen, by a name of `SCOPES`; which of them a provider has, its capabilities say (`pinned_scopes`). `allow_http`: the
    key and the documents may travel unencrypted to another machine.
    """

    conn_id: str
    base_url: str
    api_key: str = field(repr=False)
    scopes: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0
    max_retries: int = 2
    allow_http: bool = False
    answers: AnswerLimits = AnswerLimits()

    def __post_init__(self) -> None:
        url = _split(self.base_url)
        if url is None:
            raise ConfigError(
                f"The base URL of connection {self.conn_id!r} is not an http(s) address.",
                "Write it like https://api.openai.com/v1 in the connection's host.",
            )
        if url.username or url.password or url.query or url.fragment:
            raise ConfigError(
                f"The base URL of connection {self.conn_id!r} carries a user, password, query or fragment.",
                "Keep the key in the connection's password and nothing but the address in its host.",
            )
        if not _KEY.fullmatch(self.api_key):
            raise ConfigError(
                f"The key of connection {self.conn_id!r} is empty or has blanks or non-ASCII characters.",
                "Put the key into the connection's password; a server that needs none takes any word.",
            )
        if not self.may_be_called(url.scheme, url.hostname or ""):
            raise ConfigError(
                f"Connection {self.conn_id!r} would send its key and the documents unencrypted to {url.hostname} "
                "(http).",
                "Write https:// in the connection's host. Where nobody else can read that network, put "
                '{"allow_http": true} into its extra.',
            )

    def may_be_called(self, scheme: str, host: str) -> bool:
        """Whether documents may travel there: by https, or by http on this machine or where that is allowed."""
        return scheme == "https" or (scheme == "http" and (self.allow_http or is_loopback(host)))

    @property
    def fingerprint(self) -> str:
        """Names address, scopes and key without showing the key: 16 hex digits.

        Batches are visible only to the account that made them, so a handle is kept with this fingerprint. A different
        one means another account or a key that was changed; only polling tells which, and "not found" under a
        different fingerprint proves nothing.
        """
        parts = (self.base_url.rstrip("/"), *(self.scopes.get(name, "") for name in SCOPES), self.api_key)
        digest = hashlib.sha256()
        for part in parts:
            digest.update(hashlib.sha256(part.encode()).digest())
        return digest.hexdigest()[:16]

    @property
    def is_loopback(self) -> bool:
        """True for a server on this machine: a proxy from the environment must not be asked for it."""
        return is_loopback(urlsplit(self.base_url).hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name or address alone: 127.0.0.0/8, ::1 and localhost."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _split(url: str) -> SplitResult | None:
    """The parts of an http(s) address that every parser of URLs reads alike, else None."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:  # half a bracket, a port beyond 65535
        return None
    return parts if usable and not _UNCLEAR.search(url) else None


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What all requests of a job have in common.

    `task` is a key of the adapter's dialects. `max_output_tokens` limits each answer, under whatever name the
    dialect has for it; None leaves it to `parameters`. `response_schema` is a strict JSON schema.
    """

    model: str
    task: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    response_schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    completion_window: str = "24h"
    max_output_tokens: int | None = None
