"""Fills the demo's source tables, as a nightly import would: set-based, idempotent, in one transaction.

Loading twice from the same environment changes nothing, so a second run of the demo job reuses every result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, LiteralString

import psycopg

from dev.demo.distribution_texts import DistributionText, collect_texts
from dev.demo.requirement_lines import RequirementLine, collect_requirements

# Only one load at a time: two that start on a fresh database would both create the schema. Any constant will do.
_LOCK_KEY = 7_230_415
_COPY_TEXTS = """copy arriving_text (source_id, source_version, distribution, version, kind, file_name, body, spdx_ids)
from stdin"""
_COPY_REQUIREMENTS = """copy arriving_requirement (source_id, distribution, line, parsed, package, extras,
version_range, marker, is_optional) from stdin"""


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """What the tables hold after a load, and how many rows it inserted, updated and deleted."""

    licences: int
    readmes: int
    declared: int
    requirements: int
    inserted: int
    updated: int
    deleted: int

    def __str__(self) -> str:
        return (
            f"{self.licences} licence texts ({self.declared} with a declared licence), {self.readmes} READMEs and "
            f"{self.requirements} requirement lines; {self.inserted} new, {self.updated} changed, {self.deleted} gone"
        )


def load(dsn: str) -> LoadSummary:
    """Bring schema `demo` of this database in line with the distributions installed here.

    `dsn` is of a role that may create schemas; the role nightmill_demo, where it exists, may read the tables. Rows that
    did not change are not touched.
    """
    texts, requirements = collect_texts(), collect_requirements()
    with psycopg.connect(dsn) as connection:
        return load_texts(connection, texts, requirements)


def load_texts(
    connection: psycopg.Connection[Any],
    texts: Sequence[DistributionText],
    requirements: Sequence[RequirementLine] = (),
) -> LoadSummary:
    """The same for given texts and lines; in a transaction of its own, so the connection must not be in one."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(%s)", [_LOCK_KEY])
        cursor.execute(_query("create_demo_schema"))
        _stage(cursor, "stage_demo_texts", _COPY_TEXTS, map(_row, texts))
        deleted = cursor.execute(_query("delete_vanished_demo_texts")).rowcount
        updated = cursor.execute(_query("update_changed_demo_texts")).rowcount
        inserted = cursor.execute(_query("insert_new_demo_texts")).rowcount
        cursor.execute(_query("delete_vanished_demo_licences"))
        cursor.execute(_query("upsert_demo_licences"))
        _stage(cursor, "stage_demo_requirements", _COPY_REQUIREMENTS, map(_requirement_row, requirements))
        deleted += cursor.execute(_query("delete_vanished_demo_requirements")).rowcount
        inserted += cursor.execute(_query("insert_new_demo_requirements")).rowcount
        cursor.execute(_query("delete_unparsed_demo_requirements"))
        cursor.execute(_query("upsert_parsed_demo_requirements"))
    return LoadSummary(
        licences=sum(1 for text in texts if text.kind == "licence"),
        readmes=sum(1 for text in texts if text.kind == "readme"),
        declared=sum(1 for text in texts if text.spdx_ids),
        requirements=len(requirements),
        inserted=inserted,
        updated=updated,
        deleted=deleted,
    )


def _stage(cursor: psycopg.Cursor[Any], query: str, copy_into: LiteralString, rows: Iterable[tuple[Any, ...]]) -> None:
    """Put what arrives into its temporary table."""
    cursor.execute(_query(query))
    with cursor.copy(copy_into) as copy:
        for row in rows:
            copy.write_row(row)


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


def _requirement_row(requirement: RequirementLine) -> tuple[Any, ...]:
    parsed = requirement.parsed
    return (
        requirement.source_id,
        requirement.distribution,
        requirement.line,
        parsed is not None,
        parsed.package if parsed else None,
        list(parsed.extras) if parsed else None,
        parsed.version_range if parsed else None,
        parsed.marker if parsed else None,
        parsed.is_optional if parsed else None,
    )


def _query(name: str) -> bytes:
    return resources.files(__package__).joinpath("queries", f"{name}.sql").read_bytes()
