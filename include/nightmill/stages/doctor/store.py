"""The check of the object store."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from nightmill.domain.errors import Terminal
from nightmill.stages.doctor.findings import Finding, attempt
from nightmill.storage.payloads import PayloadStore


def examine_store(store: Callable[[], PayloadStore]) -> Finding:
    """Write, read and delete a small object."""

    def look() -> str:
        here, path, content = store(), f"doctor-{secrets.token_hex(8)}", secrets.token_bytes(64)
        here.write(path, content)
        same = here.read(path) == content
        here.delete(path)
        if not same:
            raise Terminal("The object store returned other bytes than were written.", "Look for a cache in between.")
        return "written, read and deleted a small object"

    return attempt("object store", look)
