"""Fills the demo's source tables, as a nightly import would: set-based, idempotent, in one transaction.

Loading twice from the same environment changes nothing, so a second run of the demo job reuses every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg

from nightmill.local.distribution_texts import DistributionText, collect_texts

# Only one load at a time: two that start on a fresh database would both create the schema. Any constant will do.
_LOCK_KEY = 7_230_415
_COPY = """copy arriving_text (source_id, source_version, distribution, version, kind, file_name, body, spdx_ids)
from stdin"""


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """What the tables hold after a load, and how many texts it inserted, updated and deleted."""

    licences: int
    readmes: int
    declared: int
    inserted: int
    updated: int
    deleted: int

    def __str__(self) -> str:
        return (
            f"{self.licences} licence texts ({self.declared} with a declared licence) and {self.readmes} READMEs; "
            f"{self.inserted} new, {self.updated} changed, {self.deleted} gone"
        )


def load(dsn: str) -> LoadSummary:
    """Bring schema `demo` of this database in line with the distributions installed here.

    `dsn` is of a role that may create schemas; the role nightmill_demo, where it exists, may read the tables. Rows that
    did not change are not touched.
    """
    texts = collect_texts()
    with psycopg.connect(dsn) as connection:
        return load_texts(connection, texts)


def load_texts(connection: psycopg.Connection[Any], texts: Sequence[DistributionText]) -> LoadSummary:
    """The same for given texts; in a transaction of its own, so the connection must not be in one."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(%s)", [_LOCK_KEY])
        cursor.execute(_query("create_demo_schema"))
        cursor.execute(_query("stage_demo_texts"))
        with cursor.copy(_COPY) as copy:
            for text in texts:
                copy.write_row(_row(text))
        deleted = cursor.execute(_query("delete_vanished_demo_texts")).rowcount
        updated = cursor.execute(_query("update_changed_demo_texts")).rowcount
        inserted = cursor.execute(_query("insert_new_demo_texts")).rowcount
        cursor.execute(_query("delete_vanished_demo_licences"))
        cursor.execute(_query("upsert_demo_licences"))
    return LoadSummary(
        licences=sum(1 for text in texts if text.kind == "licence"),
        readmes=sum(1 for text in texts if text.kind == "readme"),
        declared=sum(1 for text in texts if text.spdx_ids),
        inserted=inserted,
        updated=updated,
        deleted=deleted,
    )


def _row(text: DistributionText) -> tuple[Any, ...]:
    return (
        text.source_id,
        text.source_version,
        text.distribution,
        text.version,
        text.kind,
        text.file_name,
        text.body,
        list(text.spdx_ids),
    )


def _query(name: str) -> bytes:
    return resources.files(__package__).joinpath("queries", f"{name}.sql").read_bytes()
