"""Collecting an ended provider batch: download, keep as evidence, settle line by line, name what is missing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from nightmill.domain.errors import (
    AnswerTooLarge,
    Blocked,
    ProviderRefused,
    ProviderUnavailable,
    StaleWriter,
    Unstorable,
)
from nightmill.domain.failures import FailureClass, does_not_fit, lost_line
from nightmill.domain.states import ProviderBatchState
from nightmill.stages.run_shard import awaited, breaker
from nightmill.stages.run_shard.context import ShardContext
from nightmill.stages.run_shard.results import ResultReader
from nightmill.storage import fence, payloads, provider_batches, settlement
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.settlement import Arrival, Settled

CHUNK = 5_000  # lines settled per transaction: well under a second, so that a cancel never waits long
FURTHER_LOOKS_S = (0.0, 0.5, 2.0)  # pauses before each further look at files that lack lines


def results(context: ShardContext, one: ProviderBatch) -> None:
    """Bring both result files into the ledger and end the provider batch as COLLECTED, unless it still owes answers
    that may come: then it stays ENDED, and is looked at again.

    Safe to repeat from any point: lines that are in the ledger already are passed over.
    """
    files = _ResultFiles(context, one)
    paths = files.fetch()
    keep_all = breaker.look(context, one, paths)
    reader = ResultReader(context, one, settlement.attempted(context.conn, one), give_up_none=keep_all)
    context.conn.commit()
    total = Settled()
    failures: Counter[FailureClass] = Counter()
    for path in paths:
        total += _file(context, one, reader, path, failures)
    waits_until = awaited.until(context, one)
    looks = FURTHER_LOOKS_S if context.env.now() >= waits_until else FURTHER_LOOKS_S[:1]
    total += _further_looks(context, one, reader, files, failures, looks)
    missing = len(reader.missing())
    told = awaited.told(one, missing)
    if told:
        context.note(f"provider batch {one.provider_batch_id}: {told}")
    if missing and awaited.may_come(context, one, missing, waits_until):
        _say_settled(context, one, total, reader)
        return
    if not context.winding_down:  # what a stopped batch did not answer was not executed
        total += _lost(context, one, reader)
    awaited.ask_if_stopped_by_hand(context, one)
    collected = provider_batches.move(
        context.conn, context.holder, one, ProviderBatchState.COLLECTED, told or "every line is in the ledger"
    )
    context.conn.commit()
    _say_settled(context, one, total, reader)
    drop_input_file(context, collected)
    if failures[FailureClass.CAPACITY] and not context.winding_down:
        raise Blocked(
            f"{failures[FailureClass.CAPACITY]} lines of provider batch {one.provider_batch_id} failed because the "
            "account has no budget left.",
            "Raise the account's budget or quota, then clear this task: these items lost no attempt.",
        )


def _say_settled(context: ShardContext, one: ProviderBatch, total: Settled, reader: ResultReader) -> None:
    context.note(f"provider batch {one.provider_batch_id}: collected, {_told(context, total)}{reader.oddities()}")
    if total.again:
        context.look_again_in(context.live.provider.poll_interval_s)


class _ResultFiles:
    """The result files of one provider batch. A compressed copy of each is kept as evidence: of several looks, that of
    the longest."""

    def __init__(self, context: ShardContext, one: ProviderBatch) -> None:
        self._context = context
        self._batch = one
        self._kept: dict[str, int] = {}

    def fetch(self) -> list[Path]:
        """Download those that there are."""
        named = (("output", self._batch.output_file_id), ("error", self._batch.error_file_id))
        return [self._download(kind, file_id) for kind, file_id in named if file_id is not None]

    def _download(self, kind: str, file_id: str) -> Path:
        context, token = self._context, self._batch.token
        path = context.directory / f"{token}-{kind}.jsonl"
        size = context.provider.download(file_id, path)
        if size > self._kept.get(kind, -1):
            evidence = payloads.evidence_path(context.pinned.name, self._batch.batch_id, token, kind)
            context.env.payloads.keep_file(evidence, path)
            self._kept[kind] = size
        return path


def _further_looks(
    context: ShardContext,
    one: ProviderBatch,
    reader: ResultReader,
    files: _ResultFiles,
    failures: Counter[FailureClass],
    looks: Sequence[float],
) -> Settled:
    """Fetch the files again before items count as lost: asking for them again is paid, and a transfer can be cut at
    the end of a line where nobody says how long the file is. Once in any case; then, after growing pauses, while they
    hold fewer lines than the provider says it finished."""
    total = Settled()
    looked = reader
    for pause_s in looks:
        if not reader.missing() or (looked is not reader and looked.lines >= one.finished):
            break
        time.sleep(pause_s)
        context.note(f"provider batch {one.provider_batch_id}: lines are missing, its files are fetched again")
        looked = reader.again()
        for path in files.fetch():
            total += _file(context, one, looked, path, failures)
    return total


def _told(context: ShardContext, total: Settled) -> str:
    if context.winding_down:
        return f"{total.accepted} answers kept for reuse, {total.again} lines without a new one"
    in_review = f", {total.in_review} in review" if total.in_review else ""
    return f"{total.accepted} accepted, {total.dead_lettered} dead-lettered{in_review}, {total.again} to be sent again"


def _file(
    context: ShardContext, one: ProviderBatch, reader: ResultReader, path: Path, failures: Counter[FailureClass]
) -> Settled:
    total = Settled()
    chunk: list[Arrival] = []
    for arrival in reader.arrivals(path):
        if arrival.failure is not None:
            failures[arrival.failure.kind] += 1
        chunk.append(arrival)
        if len(chunk) >= CHUNK:
            total += _settle(context, one, chunk)
            chunk = []
    total += _settle(context, one, chunk)
    path.unlink()
    return total


def _settle(context: ShardContext, one: ProviderBatch, chunk: list[Arrival]) -> Settled:
    """Settle one chunk in its own fenced transaction; a refused one is noted in quarantine.

    A chunk that the database cannot hold is settled in halves, until the answer that does not fit stands alone.
    """
    if not chunk:
        return Settled()
    try:
        fence.enter(context.conn, context.holder)
        settled = settlement.arrive(context.conn, one, chunk, context.settling)
        context.conn.commit()
        return settled
    except Unstorable:
        context.conn.rollback()
        if len(chunk) == 1:
            unfit = structs.replace(chunk[0], failure=does_not_fit(), answer=None, notes=(), citations=())  # still paid
            if chunk == [unfit]:  # not the answer's fault, then
                raise
            return _settle(context, one, [unfit])
        middle = len(chunk) // 2
        return _settle(context, one, chunk[:middle]) + _settle(context, one, chunk[middle:])
    except StaleWriter as fault:
        context.conn.rollback()
        fence.quarantine(context.conn, context.holder, f"results of {one.provider_id}", len(chunk), fault.cause)
        context.conn.commit()
        raise


def _lost(context: ShardContext, one: ProviderBatch, reader: ResultReader) -> Settled:
    total = Settled()
    missing = reader.missing()
    for first in range(0, len(missing), CHUNK):
        total += _settle(context, one, [Arrival(ordinal, lost_line()) for ordinal in missing[first : first + CHUNK]])
    return total


def drop_input_file(context: ShardContext, one: ProviderBatch) -> None:
    """Input files count against the account's storage; the payload store has what they were made from. A provider that
    refuses, or cannot be reached, keeps the file and stops nothing."""
    assert one.input_file_id is not None
    try:
        context.provider.delete_file(one.input_file_id)
    except (ProviderRefused, ProviderUnavailable, AnswerTooLarge):
        context.note("its input file could not be deleted")
