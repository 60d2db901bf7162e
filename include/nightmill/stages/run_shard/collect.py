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
from nightmill.providers.port import ResultFile
from nightmill.stages.run_shard import awaited, breaker
from nightmill.stages.run_shard.context import ShardContext
from nightmill.stages.run_shard.results import ResultReader
from nightmill.storage import fence, payloads, provider_batches, settlement
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.settlement import Arrival, Settled

_STEP = 1 << 20  # bytes
CHUNK = 5_000  # lines settled per transaction: well under a second, so that a cancel never waits long
FURTHER_LOOKS_S = (0.0, 0.5, 2.0)  # pauses before each further look at files that lack lines


def results(context: ShardContext, one: ProviderBatch) -> None:
    """Bring both result files into the ledger and end the provider batch as COLLECTED, unless it still owes answers
    that may come: then nothing is settled, it stays ENDED, and is looked at again.

    Safe to repeat from any point: items that are in the ledger already are passed over.
    """
    files = _ResultFiles(context, one)
    reader = ResultReader(context, one, settlement.attempted(context.conn, one))
    context.conn.commit()
    waits_until = awaited.until(context, one)
    pauses_s = FURTHER_LOOKS_S if context.env.now() >= waits_until else FURTHER_LOOKS_S[:1]
    _look(context, one, reader, files, pauses_s)
    reader.give_up_none = breaker.look(context, one, files.paths)
    missing = len(reader.unspoken())
    told = awaited.told(one, missing)
    if told:
        context.note(f"provider batch {one.provider_batch_id}: {told}")
    if missing and awaited.may_come(context, one, missing, waits_until):
        return
    failures: Counter[FailureClass] = Counter()
    total = _settled(context, one, reader, files.paths, failures)
    if not context.winding_down:  # what a stopped batch did not answer was not executed
        total += _lost(context, one, reader)
    files.drop()
    awaited.ask_if_stopped_by_hand(context, one)
    collected = provider_batches.move(
        context.conn, context.holder, one, ProviderBatchState.COLLECTED, told or "every line is in the ledger"
    )
    context.conn.commit()
    context.note(f"provider batch {one.provider_batch_id}: collected, {_told(context, total)}{reader.oddities()}")
    if total.again:
        context.look_again_in(context.live.provider.poll_interval_s)
    discard_input(context, collected)
    if failures[FailureClass.CAPACITY] and not context.winding_down:
        raise Blocked(
            f"{failures[FailureClass.CAPACITY]} lines of provider batch {one.provider_batch_id} failed because the "
            "account has no budget left.",
            "Raise the account's budget or quota, then clear this task: these items lost no attempt.",
        )


class _ResultFiles:
    """The result files of one provider batch, as often as they are looked at. A compressed copy of each is kept as
    evidence: of several looks, that of the longest."""

    def __init__(self, context: ShardContext, one: ProviderBatch) -> None:
        self._context = context
        self._batch = one
        self._kept: dict[str, int] = {}
        self._looks: dict[str, list[Path]] = {}
        self._count = 0
        self.expected_lines: int | None = None  # as the provider said at the last look

    @property
    def paths(self) -> list[Path]:
        """What all looks brought, each content once."""
        return [path for looks in self._looks.values() for path in looks]

    def fetch(self) -> list[Path]:
        """Download those that there are, beside what was fetched before."""
        provider_id, refs, token = self._batch.provider_id, self._batch.result_refs, self._batch.token
        assert provider_id is not None
        self._count += 1
        found = self._context.transport.results(provider_id, refs, self._context.directory, f"{token}-{self._count}")
        self.expected_lines = found.expected_lines
        for file in found.files:
            self._keep_evidence(file)
        return [file.path for file in found.files]

    def keep(self, fetched: Sequence[Path]) -> None:
        """Take a look's files. Where a file only goes on where an earlier look ended, or the other way round, the
        longer one says all."""
        for path in fetched:
            looks = self._looks.setdefault(path.suffix, [])
            for earlier in looks:
                if _goes_on(path, earlier):
                    earlier.unlink()
                    looks.remove(earlier)
                    break
                if _goes_on(earlier, path):
                    path.unlink()
                    break
            if path.exists():
                looks.append(path)

    def drop(self) -> None:
        """Free their room: the evidence has them."""
        for path in self.paths:
            path.unlink()

    def _keep_evidence(self, file: ResultFile) -> None:
        if file.size > self._kept.get(file.name, -1):
            evidence = payloads.evidence_path(
                self._context.pinned.name, self._batch.batch_id, self._batch.token, file.name
            )
            self._context.env.payloads.keep_file(evidence, file.path)
            self._kept[file.name] = file.size


def _goes_on(longer: Path, shorter: Path) -> bool:
    """Whether a file begins with all of another one."""
    if longer.stat().st_size < shorter.stat().st_size:
        return False
    with longer.open("rb") as one, shorter.open("rb") as other:
        while block := other.read(_STEP):
            if one.read(len(block)) != block:
                return False
    return True


def _look(
    context: ShardContext, one: ProviderBatch, reader: ResultReader, files: _ResultFiles, pauses_s: Sequence[float]
) -> None:
    """Fetch the files, and again before items count as lost: asking for them again is paid, and a transfer can be cut
    at the end of a line where nobody says how long the file is. Once more in any case; then, after growing pauses,
    while they hold fewer lines than the provider says it finished. Nothing is settled meanwhile, so that what stands in
    one file or look can be held against all others."""

    def look() -> int:
        fetched = files.fetch()
        lines = reader.look(fetched)
        files.keep(fetched)
        return lines

    lines = look()
    for number, pause_s in enumerate(pauses_s):
        expected = one.finished if files.expected_lines is None else files.expected_lines
        if not reader.unspoken() or (number and lines >= expected):
            return
        time.sleep(pause_s)
        context.note(f"provider batch {one.provider_batch_id}: lines are missing, its files are fetched again")
        lines = look()


def _told(context: ShardContext, total: Settled) -> str:
    if context.winding_down:
        return f"{total.accepted} answers kept for reuse, {total.again} lines without a new one"
    in_review = f", {total.in_review} in review" if total.in_review else ""
    return f"{total.accepted} accepted, {total.dead_lettered} dead-lettered{in_review}, {total.again} to be sent again"


def _settled(
    context: ShardContext,
    one: ProviderBatch,
    reader: ResultReader,
    paths: Sequence[Path],
    failures: Counter[FailureClass],
) -> Settled:
    total = Settled()
    chunk: list[Arrival] = []
    for arrival in reader.arrivals(paths):
        if arrival.failure is not None:
            failures[arrival.failure.kind] += 1
        chunk.append(arrival)
        if len(chunk) >= CHUNK:
            total += _settle(context, one, chunk)
            chunk = []
    return total + _settle(context, one, chunk)


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


def discard_input(context: ShardContext, one: ProviderBatch) -> None:
    """Staged inputs count against the account's storage; the payload store has what they were made from. A provider
    that refuses, or cannot be reached, keeps it and stops nothing."""
    if one.input_ref is None:
        return
    try:
        context.transport.discard_input(one.input_ref)
    except (ProviderRefused, ProviderUnavailable, AnswerTooLarge):
        context.note("its staged input could not be deleted")
