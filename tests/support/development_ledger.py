"""What the migration table of a ledger holds that a version before the first release made."""

from __future__ import annotations

import psycopg

# The numbered files of that version, from 1.
NAMES = [
    "states", "ledger", "guards", "publication", "partitions", "grants", "console", "settling", "cancelling",
    "replay", "retries", "review", "rows_index", "shard_ordinals", "revisions", "attached", "reuse_usage",
    "rows_indexed_late", "packed_checksums", "search_paths", "function_grants", "partition_locks", "deployment",
    "view_owner", "citations_of_rows", "usage", "suspects", "waiting", "staged", "said", "parts", "holds",
    "gate_words", "compare_samples", "gaps", "built_parts",
]  # fmt: skip


def pretend(dsn: str) -> None:
    """Give a ledger the migration table of a development version."""
    with psycopg.connect(dsn) as conn:
        conn.execute("delete from nightmill.migration")
        conn.cursor().executemany(
            "insert into nightmill.migration (number, name) values (%s, %s)", list(enumerate(NAMES, start=1))
        )
