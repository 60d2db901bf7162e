"""Reading result files: from raw lines to arrivals, joined with their payloads by custom id only.

Lines come in any order, in two files, and in several looks at them; payloads and tables lie in item order. So a first
pass over all files notes where each item's lines stand, and a second one reads the lines in item order: all that was
said of an item together, beside a sequential read of the payloads, where a check needs the document, and with index
pages filled one after the other. Memory: some 100 bytes per line and one payload segment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from mmap import ACCESS_READ, mmap
from operator import itemgetter
from pathlib import Path
from typing import Any

from nightmill.checks.checker import Checker
from nightmill.domain.classification import classify_line_error, never_processed
from nightmill.domain.endings import Ending
from nightmill.domain.errors import AnswerTooLarge
from nightmill.domain.failures import Failure
from nightmill.domain.outcomes import Accepted, Verdict
from nightmill.jobs.rules.repair import is_truncation, output_reserve
from nightmill.providers.answers import Failed, ResultLine, Said, Unreadable, Vector
from nightmill.providers.result_files import BOM
from nightmill.stages.run_shard.one_answer import one_of
from nightmill.stages.run_shard.record_ids import ordinal_of
from nightmill.stages.run_shard.result_lines import places, spoken_of
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import attempts, payloads
from nightmill.storage.attempts import FailedItem
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.settlement import Arrival

SPARE_LINES = 100_000  # beyond ten for each request: what a file may hold, and what memory is for
MOST_DISTINCT = 16  # lines of one item that are compared; so many differing ones are a conflict whatever follows


class ResultReader:
    """Reads the result files of one provider batch. `seen` are ordinals that are in the ledger already; where
    `give_up_none`, no failure is final."""

    def __init__(self, wake_up: WakeUp, one: ProviderBatch, seen: set[int]) -> None:
        self._wake_up = wake_up
        self._batch = one
        self._checker = Checker(wake_up.pinned)
        self._seen = seen
        self.give_up_none = False
        self._earlier: dict[int, FailedItem] | None = None
        self._known = frozenset(one.carries())
        self._spoken_of = set(seen)
        self._odd: Counter[str] = Counter()

    def oddities(self) -> str:
        """What was passed over, for the log line; empty when nothing was."""
        return "".join(f", {count} {what}" for what, count in sorted(self._odd.items()))

    def look(self, paths: Sequence[Path]) -> int:
        """Note which items the files speak of, without settling anything; returns how many lines they have."""
        lines = 0
        for path in paths:
            for ordinal in spoken_of(path, self._batch.token, self._wake_up.provider):
                lines += 1
                if ordinal is not None:
                    self._spoken_of.add(ordinal)
        return lines

    def unspoken(self) -> set[int]:
        """Items that no line of any look speaks of."""
        return set(self._known - self._spoken_of)

    def missing(self) -> list[int]:
        """Items that no line answered, once all files were read."""
        return sorted(self._known - self._seen)

    def arrivals(self, paths: Sequence[Path]) -> Iterator[Arrival]:
        """One arrival per item that the files speak of and that is not in the ledger so far."""
        wake_up = self._wake_up
        documents = payloads.Documents(wake_up.conn, wake_up.env.payloads, wake_up.batch.batch_id)
        for ordinal, group in groupby(self._that_count(paths), key=itemgetter(0)):
            line = self._one_of(one for _, one in group)
            self._seen.add(ordinal)
            yield self._arrival(ordinal, line, documents.of(ordinal) if self._checker.needs_payload else {})

    def _that_count(self, paths: Sequence[Path]) -> Iterator[tuple[int, Said]]:
        """The lines of all files in item order, without those that count for nothing."""
        for line in self._wake_up.provider.read_lines(self._in_item_order(paths)):
            ordinal = self._ordinal(line)
            if ordinal is not None and not isinstance(line, Unreadable):
                yield ordinal, line.said

    def _one_of(self, lines: Iterator[Said]) -> Said:
        first = next(lines)
        distinct, further = [first], 0
        for further, line in enumerate(lines, 1):  # noqa: B007
            if len(distinct) < MOST_DISTINCT and line not in distinct:
                distinct.append(line)
        counts = one_of(distinct)
        if further:
            self._odd["conflicting lines" if counts.conflicting else "repeated lines"] += further
        return counts.line

    def _ordinal(self, line: ResultLine | Unreadable) -> int | None:
        """The item of a line that counts, or None for an unreadable, foreign or repeated one."""
        if isinstance(line, Unreadable):
            self._odd["unreadable lines"] += 1
            return None
        ordinal = ordinal_of(self._batch.token, line.record_id)
        if ordinal is None or ordinal not in self._known:
            self._odd["foreign lines"] += 1
            return None
        if ordinal in self._seen:
            self._odd["repeated lines"] += 1
            return None
        return ordinal

    def _arrival(self, ordinal: int, line: Said, document: dict[str, Any]) -> Arrival:
        usage = line.usage
        model = finish_reason = None
        processed = True
        if isinstance(line, Failed):
            verdict: Verdict = classify_line_error(line.status, line.code, line.message, line.type)
            refused = never_processed(line.status, line.code, line.message, line.type)
            processed = not refused or bool(usage.prompt)
        elif isinstance(line, Vector):
            model = line.model
            verdict = self._checker.check_vector(line.vector, document)
        else:
            model, finish_reason = line.model, line.finish_reason
            if finish_reason is not None and line.ending is Ending.UNKNOWN:
                self._odd["answers with an unknown finish_reason"] += 1
            verdict = self._checker.check_message(line.ending, line.refusal, line.text, document, line.instead)
        accepted = verdict if isinstance(verdict, Accepted) else None
        return Arrival(
            ordinal=ordinal,
            failure=verdict if isinstance(verdict, Failure) else None,
            answer=accepted.answer if accepted else None,
            notes=accepted.notes if accepted else (),
            citations=accepted.citations if accepted else (),
            uncached_tokens=usage.uncached,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
            reasoning_tokens=usage.reasoning,
            odd_usage=usage.odd,
            model=model,
            finish_reason=finish_reason,
            sent_upstream=processed,
            retryable=self._retryable(ordinal, verdict),
        )

    def _retryable(self, ordinal: int, verdict: Verdict) -> bool | None:
        """Whether another attempt can help, where the failure's class alone does not say it."""
        if isinstance(verdict, Accepted):
            return None
        if self.give_up_none:
            return True
        if not is_truncation(verdict.kind, verdict.code):
            return None
        if self._earlier is None:
            self._earlier = attempts.failed_items(self._wake_up.conn, self._batch.batch_id, self._batch.ordinals)
        cut = self._earlier[ordinal].truncations if ordinal in self._earlier else 0
        asked, live = self._wake_up.pinned.job, self._wake_up.live
        return output_reserve(asked, live, cut + 1) > output_reserve(asked, live, cut)

    def _in_item_order(self, paths: Sequence[Path]) -> Iterator[bytes]:
        """Raw lines of all files sorted by item; lines without a readable id come last."""
        found = sorted(line for number, path in enumerate(paths) for line in self._places(number, path))
        with ExitStack() as stack:
            contents = [_mapped(stack, path) for path in paths]
            for _, number, offset, length in found:
                line = contents[number][offset : offset + length].rstrip(b"\r\n")
                yield line.removeprefix(BOM) if offset == 0 else line

    def _places(self, number: int, path: Path) -> list[tuple[int, int, int, int]]:
        """Where the lines of one file stand, with the number of the file."""
        most = SPARE_LINES + 10 * self._batch.requests
        lines = places(path, self._batch.token, self._wake_up.provider)
        found = [(ordinal, number, offset, length) for ordinal, offset, length in islice(lines, most + 1)]
        if len(found) > most:
            raise AnswerTooLarge(
                f"A result file of provider batch {self._batch.provider_batch_id} ({self._batch.provider_id}) has more "
                f"than {most:,} lines for {self._batch.requests:,} requests.",
                "It is kept as evidence. Ask the provider what it is; clear this task to fetch it again, or cancel "
                "this batch.",
            )
        return found


def _mapped(stack: ExitStack, path: Path) -> mmap | bytes:
    if path.stat().st_size == 0:
        return b""  # nothing can be mapped
    file = stack.enter_context(path.open("rb"))
    return stack.enter_context(mmap(file.fileno(), 0, access=ACCESS_READ))
