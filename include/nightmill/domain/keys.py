"""Idempotency keys and content hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson


def length_prefixed(fields: tuple[str, ...]) -> bytes:
    """The fields as one byte string in which no two different tuples collide."""
    encoded = [field.encode() for field in fields]
    return b"".join([b"%d:%b" % (len(field), field) for field in encoded])


@dataclass(frozen=True, slots=True)
class ContractVersions:
    """The parts of a contract that enter every key of a batch. All but the transform are content hashes."""

    job: str
    transform_name: str
    transform_version: str
    prompt_version: str
    model_policy_version: str
    output_schema_version: str


class KeyMaker:
    """Makes the keys of one batch: the fields that all its items share are hashed once."""

    def __init__(self, versions: ContractVersions) -> None:
        self._scope = length_prefixed((versions.job,))
        self._tail = length_prefixed(
            (
                versions.transform_name,
                versions.transform_version,
                versions.prompt_version,
                versions.model_policy_version,
                versions.output_schema_version,
            )
        )
        self._begun = hashlib.sha256(self._scope)

    @property
    def frame(self) -> dict[str, bytes]:
        """What stands around an item's own fields, for queries that make keys set by set."""
        return {"key_scope": self._scope, "key_tail": self._tail}

    def key(self, tenant: str, source_id: str, source_version: str) -> bytes:
        """The 32-byte key of one item. Job and tenant are its scope: results are never shared across them."""
        # length_prefixed() written out: this runs once per item.
        a, b, c = tenant.encode(), source_id.encode(), source_version.encode()
        whole = self._begun.copy()
        whole.update(b"%d:%b%d:%b%d:%b%b" % (len(a), a, len(b), b, len(c), c, self._tail))
        return whole.digest()


def content_hash(value: Mapping[str, Any]) -> bytes:
    """SHA-256 over the canonical JSON (sorted keys) of the given values."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()


def short_hash(data: bytes) -> str:
    """The first 16 hex digits of SHA-256: a version name that people can compare by eye."""
    return hashlib.sha256(data).hexdigest()[:16]
