"""The declared schema: storage/schema.sql says in one file what all migrations together make.

`python -m dev.write.ledger_schema` writes it from a freshly migrated database; a test compares the two.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from dev.stack.postgres import start_server
from dev.stack.postgres_account import binaries
from nightmill import storage
from nightmill.domain.errors import ConfigError
from nightmill.storage.migrate import init_db

DECLARED = Path(storage.__file__).parent / "schema.sql"
HEADER = "-- What the migrations make, for reading. Written by `make schema`; never run.\n\n"

# Comments name versions, settings and \restrict change from dump to dump.
_NOISE = ("--", "SET ", "SELECT pg_catalog.set_config", "\\restrict", "\\unrestrict")


def dump(dsn: str) -> str:
    """The schemas `nightmill` and `results` of a database as normalised SQL. Raises ConfigError."""
    parts = conninfo_to_dict(dsn)
    password = str(parts.pop("password", ""))
    done = subprocess.run(
        [
            str(binaries() / "pg_dump"), "--schema-only", "--schema=nightmill", "--schema=results",
            f"--host={parts['host']}", f"--port={parts['port']}", f"--username={parts['user']}",
            f"--dbname={parts['dbname']}",
        ],
        env={"PGPASSWORD": password, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ConfigError(f"pg_dump failed: {done.stderr.strip()}", "See its message.")
    return HEADER + _normalised(done.stdout)


def _normalised(text: str) -> str:
    kept: list[str] = []
    for line in text.splitlines():
        if line.startswith(_NOISE) or (not line.strip() and (not kept or not kept[-1])):
            continue
        kept.append(line.rstrip())
    return "\n".join(kept).strip() + "\n"


def write() -> Path:
    """Migrate an empty database of a temporary server and write what it became."""
    home = Path(tempfile.mkdtemp(prefix="nightmill-schema-"))
    server = start_server(home, durable=False)
    try:
        server.create_database("declared")
        init_db(server.dsn("declared"))
        DECLARED.write_text(dump(server.dsn("declared")), "utf-8")
    finally:
        server.stop()
        shutil.rmtree(home)
    return DECLARED


if __name__ == "__main__":
    print(f"wrote {write()}")
