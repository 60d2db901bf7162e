"""Pinned contracts: a copy of the job folder per content, kept in the ledger."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from nightmill.domain.errors import Terminal
from nightmill.jobs.contract import JobDefinition, hash_of
from nightmill.storage import sql
from nightmill.storage.session import Connection


def pin(conn: Connection, definition: JobDefinition) -> int:
    """Keep a copy of the folder and return its contract id; the same content is kept once per job."""
    versions = definition.versions
    values = {
        "job": definition.name,
        "folder_hash": definition.folder_hash,
        "files": Jsonb({name: content.decode("utf-8") for name, content in definition.files.items()}),
        "prompt_version": versions.prompt_version,
        "output_schema_version": versions.output_schema_version,
        "model_policy_version": versions.model_policy_version,
        "transform_name": versions.transform_name,
        "transform_version": versions.transform_version,
        "validators_hash": definition.validators_hash,
    }
    row = conn.execute(sql.text("contract/pin"), values).fetchone()
    if row is None:  # it stands already, or another run pinned it just now
        row = conn.execute(sql.text("contract/find"), values).fetchone()
    assert row is not None
    return int(row[0])


def load(conn: Connection, contract_id: int) -> JobDefinition:
    """The pinned folder, verified against its hash. Raises Terminal when the copy was tampered with."""
    row = conn.execute(sql.text("contract/get"), {"contract_id": contract_id}).fetchone()
    assert row is not None, f"contract {contract_id} is referenced but missing"
    job, folder_hash, files = row
    pinned = {name: content.encode("utf-8") for name, content in files.items()}
    if hash_of(pinned) != folder_hash:  # before anything is taken off them: older copies have their line ends
        raise Terminal(
            f"The pinned copy of job {job} (contract {contract_id}) does not match its hash.",
            "Somebody changed nightmill.contract by hand: restore it from a backup, or trigger a new run.",
        )
    return JobDefinition(job, pinned)
