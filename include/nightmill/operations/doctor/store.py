"""The check of the object store."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from nightmill.domain.errors import Terminal
from nightmill.operations.doctor.findings import Doubt, Finding, attempt
from nightmill.storage.payloads import PayloadStore


def examine_store(store: Callable[[], PayloadStore], *, found_by_all: bool) -> Finding:
    """Write, read and delete a small object. A store that another worker may not find is a doubt."""

    def look() -> str | Doubt:
        here, path, content = store(), f"doctor-{secrets.token_hex(8)}", secrets.token_bytes(64)
        here.write(path, content)
        same = here.read(path) == content
        here.delete(path)
        if not same:
            raise Terminal("The object store returned other bytes than were written.", "Look for a cache in between.")
        if not found_by_all:
            return Doubt(
                "a small object was written, read and deleted in a folder of this machine: a worker on another one does"
                " not find what this one froze",
                "Set NIGHTMILL_OBJECT_STORE for all workers to one place (s3://bucket/prefix, or file:// on a shared "
                "file system), or set AIRFLOW__CORE__EXECUTOR=LocalExecutor here if every task runs on this machine.",
            )
        return "written, read and deleted a small object"

    return attempt("object store", look)
