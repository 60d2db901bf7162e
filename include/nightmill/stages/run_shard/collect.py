"""Collecting an ended provider batch: download, keep as evidence, settle line by line, name what is missing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from msgspec import structs

from nightmill.domain.classification import lost_line
from nightmill.domain.errors import (
    AnswerTooLarge,
    Blocked,
    ProviderRefused,
    ProviderUnavailable,
    StaleWriter,
    Unstorable,
)
from nightmill.domain.failures import FailureClass, does_not_fit
from nightmill.jobs.rules.breaker import Verdict
from nightmill.providers.port import ResultFile
from nightmill.stages.run_shard import breaker
from nightmill.stages.run_shard.results import ResultReader
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import attempts, breakers, fence, payloads, provider_batches, settlement
from nightmill.storage.breakers import Kind
from nightmill.storage.fence import writing
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import reading
from nightmill.storage.settlement import Arrival, Settled

_STEP = 1 << 20  # bytes
CHUNK = 5_000  # lines settled per transaction: well under a second, so that a cancel never waits long
FURTHER_LOOKS_S = (0.0, 0.5, 2.0)  # pauses before each further look at files that lack lines


class Collection:
    """The results of one provider batch: fetched first, settled once nothing is missing or what is missing counts as
    lost. Safe to repeat from any point: items that are in the ledger already are passed over."""

    def __init__(self, wake_up: WakeUp, one: ProviderBatch) -> None:
        self._wake_up = wake_up
        self._batch = one
        self._files = _ResultFiles(wake_up, one)
        with reading(wake_up.conn):
            self._reader = ResultReader(wake_up, one, attempts.attempted(wake_up.conn, one))
        self._disagreement = ""

    def fetch(self) -> int:
        """Fetch and read the results, without settling anything; how many requests no line of them speaks of."""
        wake_up, one = self._wake_up, self._batch
        since = one.over_at or one.ended_at or one.intent_at
        grace_ends = since + timedelta(seconds=wake_up.live.provider.results_grace_s)
        pauses_s = FURTHER_LOOKS_S if wake_up.env.now() >= grace_ends else FURTHER_LOOKS_S[:1]
        _look(wake_up, one, self._reader, self._files, pauses_s)
        self._reader.give_up_none = breaker.look(wake_up, one, self._files.paths)
        missing = len(self._reader.unspoken())
        self._disagreement = _disagreement(one, missing)
        if self._disagreement:
            wake_up.note(f"provider batch {one.provider_batch_id}: {self._disagreement}")
        return missing

    def settle(self) -> ProviderBatch:
        """Bring all of it into the ledger and end the provider batch as COLLECTED. Raises Blocked where the account has
        no budget left."""
        wake_up, one = self._wake_up, self._batch
        failures: Counter[FailureClass] = Counter()
        total = _settled(wake_up, one, self._reader, self._files.paths, failures)
        if not wake_up.winding_down:  # what a stopped batch did not answer was not executed
            total += _lost(wake_up, one, self._reader)
        self._files.drop()
        with writing(wake_up.conn, wake_up.holder):
            _ask_if_stopped_by_hand(wake_up, one)
            collected = provider_batches.collected(wake_up.conn, wake_up.holder, one, self._disagreement)
        told = f"{_told(wake_up, total)}{self._reader.oddities()}"
        wake_up.note(f"provider batch {one.provider_batch_id}: collected, {told}")
        if total.again:
            wake_up.look_again_in(wake_up.live.provider.poll_interval_s)
        discard_input(wake_up, collected)
        if failures[FailureClass.CAPACITY] and not wake_up.winding_down:
            raise Blocked(
                f"{failures[FailureClass.CAPACITY]} lines of provider batch {one.provider_batch_id} failed because the "
                "account has no budget left.",
                "Raise the account's budget or quota, then clear this task: these items lost no attempt.",
            )
        return collected


def _disagreement(one: ProviderBatch, missing: int) -> str:
    """What its files, its counts and what was sent say of each other, with all numbers; empty where they agree."""
    total = one.requests_total
    if not missing and total in (None, one.requests):
        return ""
    counted_there = f"the provider counts {one.finished:,} of {total:,} finished" if total is not None else "no counts"
    return f"{one.requests:,} requests sent, {one.requests - missing:,} answered by its files, {counted_there}"


def _ask_if_stopped_by_hand(wake_up: WakeUp, one: ProviderBatch) -> None:
    """Somebody cancelled it at the provider: a person meant it, so the rest is not sent before a person says so. In the
    caller's transaction."""
    if wake_up.winding_down or not one.stopped_by_hand:
        return
    breakers.put(
        wake_up.conn,
        one.batch_id,
        Kind.CANCELLED,
        Verdict.OPEN,
        f"Somebody cancelled provider batch {one.provider_batch_id} ({one.provider_id}) at the provider: what it had "
        "finished is collected, and its other requests are not sent again before you say so.",
        "Ask who stopped it and why. Clear this task to send the rest; to stop for good, `python -m nightmill cancel "
        f"--batch {one.batch_id}`.",
    )


class _ResultFiles:
    """The result files of one provider batch, as often as they are looked at. A compressed copy of each is kept as
    evidence: of several looks, that of the longest."""

    def __init__(self, wake_up: WakeUp, one: ProviderBatch) -> None:
        self._wake_up = wake_up
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
        found = self._wake_up.transport.results(provider_id, refs, self._wake_up.directory, f"{token}-{self._count}")
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
                self._wake_up.pinned.name, self._batch.batch_id, self._batch.token, file.name
            )
            self._wake_up.env.payloads.keep_file(evidence, file.path)
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
    wake_up: WakeUp, one: ProviderBatch, reader: ResultReader, files: _ResultFiles, pauses_s: Sequence[float]
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
        wake_up.note(f"provider batch {one.provider_batch_id}: lines are missing, its files are fetched again")
        lines = look()


def _told(wake_up: WakeUp, total: Settled) -> str:
    if wake_up.winding_down:
        return f"{total.accepted} answers kept for reuse, {total.again} lines without a new one"
    in_review = f", {total.in_review} in review" if total.in_review else ""
    return f"{total.accepted} accepted, {total.dead_lettered} dead-lettered{in_review}, {total.again} to be sent again"


def _settled(
    wake_up: WakeUp,
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
            total += _settle(wake_up, one, chunk)
            chunk = []
    return total + _settle(wake_up, one, chunk)


def _settle(wake_up: WakeUp, one: ProviderBatch, chunk: list[Arrival]) -> Settled:
    """Settle one chunk in its own fenced transaction; a refused one is noted in quarantine.

    A chunk that the database cannot hold is settled in halves, until the answer that does not fit stands alone.
    """
    if not chunk:
        return Settled()
    try:
        with writing(wake_up.conn, wake_up.holder):
            return settlement.settle_arrivals(wake_up.conn, one, chunk, wake_up.settling)
    except Unstorable:
        if len(chunk) == 1:
            unfit = structs.replace(chunk[0], failure=does_not_fit(), answer=None, notes=(), citations=())  # still paid
            if chunk == [unfit]:  # not the answer's fault, then
                raise
            return _settle(wake_up, one, [unfit])
        middle = len(chunk) // 2
        return _settle(wake_up, one, chunk[:middle]) + _settle(wake_up, one, chunk[middle:])
    except StaleWriter as fault:
        fence.quarantine(wake_up.conn, wake_up.holder, f"results of {one.provider_id}", len(chunk), fault.cause)
        wake_up.conn.commit()
        raise


def _lost(wake_up: WakeUp, one: ProviderBatch, reader: ResultReader) -> Settled:
    total = Settled()
    missing = reader.missing()
    for first in range(0, len(missing), CHUNK):
        total += _settle(wake_up, one, [Arrival(ordinal, lost_line()) for ordinal in missing[first : first + CHUNK]])
    return total


def discard_input(wake_up: WakeUp, one: ProviderBatch) -> None:
    """Staged inputs count against the account's storage; the payload store has what they were made from. A provider
    that refuses, or cannot be reached, keeps it and stops nothing."""
    if one.input_ref is None:
        return
    try:
        wake_up.transport.discard_input(one.input_ref)
    except (ProviderRefused, ProviderUnavailable, AnswerTooLarge):
        wake_up.note("its staged input could not be deleted")
