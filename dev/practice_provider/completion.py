"""Ending a batch: lines that were never executed, the result files, the last status."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from itertools import islice

import orjson

from dev.practice_provider.batch_states import BatchRow, Status
from dev.practice_provider.execution import append_at, error_id, output_id
from dev.practice_provider.fault_board import FaultBoard, record_expired
from dev.practice_provider.file_store import FileStore
from dev.practice_provider.input_index import InputIndex
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.result_lines import unanswered_line

# Source of the codes: OpenAI's batch guide ("Batch expiration") and its API description of BatchRequestOutput.error.
_UNFINISHED = {
    Status.EXPIRED: ("batch_expired", "This request could not be executed before the completion window expired."),
    Status.CANCELLED: ("batch_cancelled", "The batch was cancelled before this request was executed."),
}


def finish(
    ledger: Ledger,
    files: FileStore,
    faults: FaultBoard,
    batch: BatchRow,
    index: InputIndex | None,
    to: Status,
    now: float,
) -> None:
    """Write what is missing from the error file, publish the files that are not empty, and set the final status.

    Repeatable: until its commit a killed attempt leaves nothing that counts. `index` is None when a batch was
    cancelled before its input was read.
    """
    error_bytes, unfinished = batch.error_bytes, list[str]()
    if index is not None and to in _UNFINISHED:
        error_bytes = _write_unfinished(ledger, batch, index, to, unfinished)
    published = [(output_id(batch.id), f"{batch.id}_output.jsonl", batch.output_bytes)] if batch.output_bytes else []
    if error_bytes or faults.plan.empty_error_files:
        ledger.path_of(error_id(batch.id)).touch()
        published.append((error_id(batch.id), f"{batch.id}_error.jsonl", error_bytes))
    known = {file_id for file_id, _, _ in published}
    named = [one if one in known else None for one in (output_id(batch.id), error_id(batch.id))]
    with ledger.transaction() as connection:
        ended = connection.execute(
            f"update batch set status = ?, {to.value}_at = ?, error_bytes = ?, output_file_id = ?, error_file_id = ?"
            " where id = ? and status = ?",
            (to.value, now, error_bytes, *named, batch.id, batch.status),
        ).rowcount
        if not ended:  # cancelled at this very moment: the next step sees it
            return
        _make_known(connection, batch, published, now)
        if to is Status.EXPIRED and faults.stop_at(batch.id) is not None:
            record_expired(connection, now, batch.id, unfinished)
    files.sweep(batch.input_file_id)


def _make_known(
    connection: sqlite3.Connection, batch: BatchRow, published: list[tuple[str, str, int]], now: float
) -> None:
    """Make result files, as (id, name, bytes), visible."""
    expires_at = None if batch.output_expires_s is None else now + batch.output_expires_s
    connection.executemany(
        "insert into file (id, purpose, filename, bytes, created_at, expires_at)"
        " values (?, 'batch_output', ?, ?, ?, ?)",
        [(*one, now, expires_at) for one in published],
    )


def _write_unfinished(ledger: Ledger, batch: BatchRow, index: InputIndex, to: Status, custom_ids: list[str]) -> int:
    """The size of the error file with a line for each request that was not executed; adds their custom_ids."""
    code, message = _UNFINISHED[to]
    size = batch.error_bytes
    input_fd = os.open(ledger.path_of(batch.input_file_id), os.O_RDONLY | os.O_CLOEXEC)
    try:
        lines = _unfinished_lines(input_fd, batch, index, code, message, custom_ids)
        while pieces := list(islice(lines, 2000)):
            size = append_at(ledger.path_of(error_id(batch.id)), size, pieces)
    finally:
        os.close(input_fd)
    return size


def _unfinished_lines(
    input_fd: int, batch: BatchRow, index: InputIndex, code: str, message: str, custom_ids: list[str]
) -> Iterator[bytes]:
    for position in range(batch.done, batch.total):
        raw, _ = index.line(input_fd, position)
        request_id = f"batch_req_{batch.id[6:]}{position:08x}"
        custom_ids.append(orjson.loads(raw)["custom_id"])
        yield unanswered_line(request_id, custom_ids[-1], code, message)
