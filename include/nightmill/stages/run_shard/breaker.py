"""The circuit breaker of a batch: looked at before the lines of a file are settled, kept in the ledger, asked before
every file. So it holds for all shards, and through every crash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nightmill.domain.errors import Blocked
from nightmill.domain.failure_rules import NEVER_EXECUTED
from nightmill.domain.failures import FailureClass
from nightmill.domain.wording import pluralised
from nightmill.jobs.rules.breaker import Count, Verdict, judge, most_at_first, needed
from nightmill.jobs.rules.repair import is_truncation
from nightmill.stages.run_shard.result_lines import places
from nightmill.stages.run_shard.results import ResultReader
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import attempts, breakers
from nightmill.storage.breakers import Kind
from nightmill.storage.fence import writing
from nightmill.storage.provider_batches import ProviderBatch
from nightmill.storage.session import reading

SAMPLE = 500  # lines of one file, spread over its items
_WINDOW = 24  # characters; a message that shares as many with the prompt may quote it
_MOST_SHOWN = 200
_REMEDY = (
    "If the job is the reason (its parameters, prompt.md, output.py), cancel this batch, correct it and trigger a new "
    "run. If the documents are, clear this task: they are sent once more and then dead-lettered."
)
_MORE_ROOM = (
    "Raise repair.max_output_tokens_cap in job.yaml and clear this task: each item is asked for again with twice "
    "the room. Or cancel this batch, raise the answer's limit in provider.parameters and trigger a new run."
)


@dataclass(frozen=True, slots=True)
class _Sampled:
    count: Count
    messages: dict[str, set[str]]  # by code, at most two of each
    mending: set[tuple[str, str]]  # (class, code) that every one of them gets a better attempt for


def look(wake_up: WakeUp, one: ProviderBatch, files: Sequence[Path]) -> bool:
    """Judge the batch with the lines of a file that has just arrived, and keep the verdict. Returns whether no item of
    the file may be given up, because what failed may be the job's mistake."""
    conn, batch_id = wake_up.conn, one.batch_id
    if wake_up.winding_down:
        return False
    with reading(conn):
        standing = breakers.standing(conn, batch_id)
    to_send, probing = standing.to_send or 0, standing.verdict is Verdict.PROBING
    judged = standing.verdict in (Verdict.PASSED, Verdict.OPEN) or needed(wake_up.live.breaker, to_send) is None
    before = standing.since is not None and one.intent_at <= standing.since
    if judged or before:
        with reading(conn):
            return standing.verdict in (Verdict.OPEN, Verdict.PROBING) and attempts.untried(conn, one)
    with reading(conn):
        earlier = breakers.count(conn, batch_id, standing.since, but=one.provider_batch_id)
        sampled = _sample(wake_up, one, files)
        untried = attempts.untried(conn, one)
    count = earlier + sampled.count
    verdict = judge(count, wake_up.live.breaker, to_send, probing=probing, mending=sampled.mending)
    if verdict is not standing.verdict:
        opens = verdict is Verdict.OPEN
        cause = _cause(wake_up, one, count, sampled, untried) if opens else None
        with writing(conn, wake_up.holder):
            breakers.put(conn, batch_id, Kind.FAILURES, verdict, cause, _remedy(count) if opens else None)
    if verdict is Verdict.PROBING:
        wake_up.note(f"{count.commonest[1]} of {count.settled} requests failed alike: a few are sent again at first")
    return verdict in (Verdict.OPEN, Verdict.PROBING) and untried


def refuse_open(wake_up: WakeUp) -> None:
    """Raises Blocked where a breaker of the batch is open."""
    with reading(wake_up.conn):
        standing = breakers.standing(wake_up.conn, wake_up.batch.batch_id)
    if standing.cause is not None and standing.remedy is not None:
        raise Blocked(standing.cause, standing.remedy)


def most_now(wake_up: WakeUp) -> int | None:
    """How many requests the next file may have: None = as many as fit, 0 = none now. Says in the wake_up why not, and
    when to look again."""
    conn, rules = wake_up.conn, wake_up.live.breaker
    standing = breakers.standing(conn, wake_up.batch.batch_id)
    poll_s = wake_up.live.provider.poll_interval_s
    if standing.cause is not None:
        return 0
    if standing.unknown_status is not None:
        wake_up.note(f"nothing is sent while the provider shows the status {standing.unknown_status!r} for a batch")
        wake_up.look_again_in(poll_s * 4)
        return 0
    to_send, large = standing.to_send or 0, rules.pilot_above_items
    pilot = standing.verdict is Verdict.WATCHING and large is not None and to_send > large
    if needed(rules, to_send) is None or not (pilot or standing.verdict is Verdict.PROBING):
        return None
    proven = pilot and breakers.proven(conn, wake_up.batch.contract_id)
    settled = 0 if proven else breakers.count(conn, wake_up.batch.batch_id, standing.since).settled
    most = most_at_first(rules, standing.verdict, to_send, settled, proven=proven)
    if most is None:
        return None
    what = "pilot" if pilot else "probe"
    if standing.in_flight:
        wake_up.note(f"the {what} of this batch is under way: the others follow when it has come back")
        wake_up.look_again_in(poll_s * 4)
        return 0
    if not pilot and standing.since is not None:
        due = standing.since + timedelta(seconds=wake_up.live.retry.base_delay_s)
        if wake_up.env.now() < due:
            wake_up.note("requests failed alike: a few are sent again at first, after a pause")
            wake_up.wake_times.append(due)
            return 0
    wake_up.note(f"{pluralised(most, 'item')} at most as a {what}")
    return most


def _sample(wake_up: WakeUp, one: ProviderBatch, files: Sequence[Path]) -> _Sampled:
    """What some of the lines come to, spread evenly over the items; all lines of a small file."""
    carried = set(one.carries())
    found = [
        (file, [line for line in places(file, one.token, wake_up.provider) if line[0] in carried]) for file in files
    ]
    ordinals = sorted({ordinal for _, lines in found for ordinal, _, _ in lines})
    chosen = set(ordinals[:: max(1, -(-len(ordinals) // SAMPLE))])
    path = wake_up.directory / f"{one.token}-sample.jsonl"
    with path.open("wb") as sample:
        for file, lines in found:
            with file.open("rb") as source:
                for ordinal, at, size in lines:
                    if ordinal in chosen:
                        source.seek(at)
                        sample.write(source.read(size).rstrip(b"\r\n") + b"\n")
    accepted, failed, messages = 0, Counter[tuple[str, str]](), defaultdict[str, set[str]](set)
    beyond: set[tuple[str, str]] = set()
    for arrival in ResultReader(wake_up, one, set()).arrivals([path]):
        failure = arrival.failure
        if failure is None:
            accepted += 1
        elif failure.kind is not FailureClass.CAPACITY and failure.code not in NEVER_EXECUTED:
            failed[str(failure.kind), failure.code] += 1
            if not arrival.retryable:
                beyond.add((str(failure.kind), failure.code))
            if len(messages[failure.code]) < 2:
                messages[failure.code].add(failure.message)
    path.unlink()
    return _Sampled(Count(accepted, failed), messages, set(failed) - beyond)


def _cause(wake_up: WakeUp, one: ProviderBatch, count: Count, sampled: _Sampled, untried: bool) -> str:
    code, requests = count.commonest
    messages = sampled.messages.get(code, set())
    kinds = {kind for kind, of in count.failed if of == code}
    what = code
    if len(messages) == 1 and FailureClass.OUTPUT not in kinds:
        what += f": {_shown(next(iter(messages)), wake_up.pinned.files['prompt.md'].decode())}"
    kept = f"; no item of provider batch {one.provider_batch_id} was given up" if untried else ""
    if requests == count.settled == one.requests:
        return (
            f"All {requests} lines of provider batch {one.provider_batch_id} failed with the same error ({what}), and "
            f"nothing of this batch was accepted so far{kept}."
        )
    none = "" if count.accepted else ", and none was accepted"
    return (
        f"{requests:,} of the first {count.settled:,} requests of this batch failed with the same error ({what}){none}"
        f"{kept}."
    )


def _remedy(count: Count) -> str:
    truncated = {kind for kind, code in count.failed if code == count.commonest[0] and is_truncation(kind, code)}
    return _MORE_ROOM if truncated else _REMEDY


def _shown(message: str, prompt: str) -> str:
    """A message that is the same for all documents quotes none of them; it may still quote the prompt."""
    quotes = any(message[at : at + _WINDOW] in prompt for at in range(max(1, len(message) - _WINDOW + 1)))
    return "(its message repeats the prompt)" if quotes else message[:_MOST_SHOWN]
