"""Ending a batch: lines that were never executed, the result files, the last status."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice

from dev.practice_provider.batch_states import BatchRow, Status, stem
from dev.practice_provider.execution import append_at, error_id, output_id
from dev.practice_provider.fault_board import FaultBoard, record_expired
from dev.practice_provider.input_index import InputIndex
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.vendor import Lines, ResultFile, Vendor

_UNFINISHED = (Status.EXPIRED, Status.CANCELLED)


def finish(
    ledger: Ledger,
    vendor: Vendor,
    faults: FaultBoard,
    batch: BatchRow,
    index: InputIndex | None,
    to: Status,
    now: float,
) -> None:
    """Write the lines of requests that were not executed, publish the result files, and set the final status.

    Repeatable: until its commit a killed attempt leaves nothing that counts. `index` is None when a batch was
    cancelled before its input was read.
    """
    sizes, unfinished = (batch.output_bytes, batch.error_bytes), list[str]()
    if index is not None and to in _UNFINISHED:
        sizes = _write_unfinished(ledger, vendor, batch, index, to, unfinished)
    published = vendor.result_files(batch, *sizes)
    known = {one.id for one in published}
    named = [one if one in known else None for one in (output_id(batch.id), error_id(batch.id))]
    with ledger.transaction() as connection:
        ended = connection.execute(
            f"update batch set status = ?, {to.value}_at = ?, output_bytes = ?, error_bytes = ?, output_file_id = ?,"
            " error_file_id = ? where id = ? and status = ?",
            (to.value, now, *sizes, *named, batch.id, batch.status),
        ).rowcount
        if not ended:  # cancelled at this very moment: the next step sees it
            return
        _make_known(connection, batch, published, now)
        if to is Status.EXPIRED and faults.stop_at(batch.id) is not None:
            record_expired(connection, now, batch.id, unfinished)
    vendor.release(batch)


def _make_known(connection: sqlite3.Connection, batch: BatchRow, published: Sequence[ResultFile], now: float) -> None:
    expires_at = None if batch.output_expires_s is None else now + batch.output_expires_s
    connection.executemany(
        "insert into file (id, purpose, filename, bytes, created_at, expires_at)"
        " values (?, 'batch_output', ?, ?, ?, ?)",
        [(one.id, one.name, one.bytes, now, expires_at) for one in published],
    )


def _write_unfinished(
    ledger: Ledger, vendor: Vendor, batch: BatchRow, index: InputIndex, to: Status, custom_ids: list[str]
) -> tuple[int, int]:
    """The sizes of both result files with a line for each request that was not executed; adds their custom_ids."""
    result_bytes, error_bytes = batch.output_bytes, batch.error_bytes
    input_fd = os.open(ledger.path_of(batch.input_file_id), os.O_RDONLY | os.O_CLOEXEC)
    try:
        lines = _unfinished_lines(vendor, input_fd, batch, index, to, custom_ids)
        while some := list(islice(lines, 2000)):
            results = [piece for one in some for piece in one.results]
            errors = [piece for one in some for piece in one.errors]
            result_bytes = append_at(ledger.path_of(output_id(batch.id)), result_bytes, results)
            error_bytes = append_at(ledger.path_of(error_id(batch.id)), error_bytes, errors)
    finally:
        os.close(input_fd)
    return result_bytes, error_bytes


def _unfinished_lines(
    vendor: Vendor, input_fd: int, batch: BatchRow, index: InputIndex, to: Status, custom_ids: list[str]
) -> Iterator[Lines]:
    for position in range(batch.done, batch.total):
        raw, _ = index.line(input_fd, position)
        custom_ids.append(vendor.read(raw).custom_id)
        yield vendor.unfinished_lines(f"{stem(batch.id)}{position:08x}", custom_ids[-1], to)
