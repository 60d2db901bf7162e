"""Files that the provider's validation refused as a whole. Nothing was executed; one bad item must not stop the rest.

A full queue waits, a file that is too large makes smaller ones. Items that are surely meant are cut out; what a line
number may mean is sent apart from the others. Where no line is named, the file's items are sent again in halves, one
after the other, until the bad ones stand alone. What all lines share needs a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nightmill.domain.classification import classify_line_error
from nightmill.domain.errors import Blocked
from nightmill.domain.failures import Failure, FailureClass
from nightmill.domain.limits import Dimensions, Limit, limit_of, too_large_in
from nightmill.domain.snapshots import Complaint
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.wording import START_ANEW, pluralised
from nightmill.jobs.rules.breaker import FEWEST
from nightmill.stages.run_shard import throttle
from nightmill.stages.run_shard.named_lines import Judged, Named, named_by
from nightmill.stages.run_shard.wake_up import WakeUp
from nightmill.storage import attempts, provider_batches, settlement
from nightmill.storage.attempts import FailedItem
from nightmill.storage.fence import writing
from nightmill.storage.provider_batches import ProviderBatch, Refusal
from nightmill.storage.session import reading
from nightmill.storage.settlement import Arrival

# Complaints about what all lines of a job share, even where the provider names the first line that has it.
SHARED_CODES = {
    "model_not_found",
    "model_mismatch",
    "mismatched_model",
    "invalid_url",
    "invalid_method",
    "invalid_endpoint",
    "empty_file",
}
_PARAMETERS = frozenset({"completion_window", "endpoint", "metadata", "model"})  # of the batch itself
_FOR_ITS_LINES = (Refusal.NAMED, Refusal.UNNAMED)
MOST_IN_A_ROW = 16  # refused files of a shard without one that was taken: the halves of halves of halves, all bad
MOST_OF_A_SHARD = 100
MOST_NAMED = 8  # codes in one message


def handle(wake_up: WakeUp, one: ProviderBatch, problems: Sequence[Complaint]) -> ProviderBatch:
    """Do what can be done about a refused file. Raises Blocked where a person must act."""
    if wake_up.winding_down:
        return abandon(wake_up, one, "refused by the provider's validation")
    codes = {problem.code for problem in problems}
    of_the_file = [problem for problem in problems if problem.line is None]
    limits = [limit_of(problem.code, "", problem.message) for problem in of_the_file]
    if Limit.QUEUE in limits:
        return throttle.refused(wake_up, one, Limit.QUEUE)
    if Limit.SIZE in limits:
        said = of_the_file[limits.index(Limit.SIZE)]
        return too_large(wake_up, one, too_large_in(said.code, said.message))
    complaints = [(problem, classify_line_error(400, problem.code, problem.message)) for problem in problems]
    out_of_credit = any(failure.kind is FailureClass.CAPACITY for _, failure in complaints)
    if codes & SHARED_CODES or out_of_credit or _same_error_everywhere(wake_up, one, complaints):
        what = _words(map(_in_words, problems))
        abandon(wake_up, one, f"refused by the provider's validation: {what}")
        raise Blocked(
            f"The provider refused provider batch {one.provider_batch_id} as a whole ({what}).",
            "Correct provider.model, provider.parameters or provider.completion_window in job.yaml, then "
            f"{START_ANEW} Where the account's limits or rights are the reason, correct them and clear this task.",
        )
    named = named_by(complaints, one)
    if one.requests == 1 and not named.bad:
        named = Named(dict.fromkeys(one.carries(), complaints[0][1] if complaints else _UNEXPLAINED), ())
    if named.bad or named.suspects:
        given_up = _cut_out(wake_up, one, named)
    else:
        given_up = abandon(
            wake_up, one, f"refused by the provider's validation without naming a line: {_words(codes)}",
            Refusal.UNNAMED,
        )  # fmt: skip
    wake_up.look_again_in(wake_up.live.provider.poll_interval_s)
    _refuse_to_go_on_for_ever(wake_up, codes)
    return given_up


def too_large(wake_up: WakeUp, one: ProviderBatch, found: Dimensions) -> ProviderBatch:
    """Send smaller files after this one; a request that is too large alone gives up."""
    if one.requests == 1 and not wake_up.winding_down:
        return _cut_out(wake_up, one, Named(dict.fromkeys(one.carries(), _TOO_LARGE), ()))
    return throttle.refused(wake_up, one, Limit.SIZE, found=found)


_TOO_LARGE = Failure(FailureClass.INPUT, "file_too_large", "its file of one request is too large for the provider")
_UNEXPLAINED = Failure(FailureClass.INPUT, "refused_without_reason", "the provider refused this request's file")


def _same_error_everywhere(wake_up: WakeUp, one: ProviderBatch, complaints: Sequence[Judged]) -> bool:
    """Whether every line from the first on is bad for the same reason, as far as the provider goes on naming them. A
    file of suspects is expected to be."""
    lines = {problem.line for problem, _ in complaints if problem.line is not None and 0 < problem.line <= one.requests}
    alike = len(lines) >= FEWEST and lines == set(range(1, len(lines) + 1))
    if not alike or len({failure.code for problem, failure in complaints if problem.line in lines}) > 1:
        return False
    with reading(wake_up.conn):
        former = provider_batches.of_shard(wake_up.conn, wake_up.shard.shard_id)
    carried = set(one.carries())
    return not any(carried <= set(group) for file in former for group in file.suspects or ())


def _in_words(problem: Complaint) -> str:
    """The code, and of a complaint about the batch itself its parameter and what is wrong with it. What is said of a
    line can quote a document."""
    if problem.line is not None or not problem.param:
        return problem.code
    said = f": {problem.message.rstrip('.')}" if problem.param in _PARAMETERS and problem.message else ""
    return f"{problem.code}, {problem.param}{said}"


def _words(words: Iterable[str]) -> str:
    told = sorted(set(words))
    rest = f"; and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
    return "; ".join(told[:MOST_NAMED]) + rest or "no reason given"


def _cut_out(wake_up: WakeUp, one: ProviderBatch, named: Named) -> ProviderBatch:
    """Give up what is surely bad, and note what is to be tested apart from the others."""
    with writing(wake_up.conn, wake_up.holder):
        done = attempts.attempted(wake_up.conn, one)  # by a worker that was killed before it could abandon the file
        arrivals = [
            Arrival(ordinal, failure, sent_upstream=False)
            for ordinal, failure in named.bad.items()
            if ordinal not in done
        ]
        settlement.settle_arrivals(wake_up.conn, one, arrivals, wake_up.settling)
    told = [f"{pluralised(len(named.bad), 'named line')} cut out"] if named.bad else []
    if named.suspects:
        told.append(f"{pluralised(sum(map(len, named.suspects)), 'item')} that its line numbers may mean tested apart")
    reason = f"refused by the provider's validation; {', '.join(told)}"
    return abandon(wake_up, one, reason, Refusal.NAMED, named.suspects)


def _refuse_to_go_on_for_ever(wake_up: WakeUp, codes: Iterable[str]) -> None:
    """A file for a person to look at, rather than one refused file after another: each takes its time."""
    in_a_row = total = 0
    with reading(wake_up.conn):
        former = provider_batches.of_shard(wake_up.conn, wake_up.shard.shard_id)
    for one in former:
        if one.refused in _FOR_ITS_LINES:
            in_a_row, total = in_a_row + 1, total + 1
        elif one.state is not ProviderBatchState.ABANDONED:
            in_a_row = 0
    if in_a_row >= MOST_IN_A_ROW or total >= MOST_OF_A_SHARD:
        raise Blocked(
            f"The provider's validation refused {pluralised(total, 'file')} of this shard, {in_a_row} of them without "
            f"one that it took between ({_words(codes)}).",
            "Look at what it says of them (nightmill.provider_batch, nightmill.dead_letter). Clear this task to cut "
            "out more items; otherwise cancel, correct the job and trigger a new run.",
        )


def abandon(
    wake_up: WakeUp,
    one: ProviderBatch,
    reason: str,
    refused: Refusal | None = None,
    suspects: Sequence[Sequence[int]] | None = None,
) -> ProviderBatch:
    """Give a provider batch up; its items are free again."""
    with writing(wake_up.conn, wake_up.holder):
        abandoned = provider_batches.abandoned(wake_up.conn, wake_up.holder, one, reason, refused, suspects)
    wake_up.note(f"provider batch {one.provider_batch_id}: abandoned, {reason}")
    return abandoned


def split_suspects(
    wanted: Mapping[int, int], refused: Iterable[ProviderBatch], failed: Mapping[int, FailedItem]
) -> tuple[dict[int, int], list[dict[int, int]]]:
    """The wanted items (ordinal -> tokens) that nothing is held against; and the groups of the others that share a
    file: the suspects of a refused one, and in two halves what was refused without a word on which.

    `refused` is oldest first: an item belongs to the last file, the smallest one, that it was refused with, unless it
    was executed after that.
    """
    rest = dict(wanted)
    groups: list[dict[int, int]] = []
    for one in reversed([one for one in refused if one.refused in _FOR_ITS_LINES]):
        held = {
            ordinal
            for ordinal in one.carries()
            if ordinal in rest and (ordinal not in failed or failed[ordinal].provider_batch_id < one.provider_batch_id)
        }
        for group in _halves(sorted(held)) if one.refused == Refusal.UNNAMED else one.suspects or ():
            taken = {ordinal: rest.pop(ordinal) for ordinal in group if ordinal in held and ordinal in rest}
            groups += [taken] if taken else []
    return rest, groups


def _halves(suspects: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    middle = (len(suspects) + 1) // 2
    return suspects[:middle], suspects[middle:]


def is_one_tried(former: Iterable[ProviderBatch]) -> bool:
    """Whether a file that may hold a suspect is under way: while it is, the other groups wait."""
    last = max((one.provider_batch_id for one in former if one.refused in _FOR_ITS_LINES), default=0)
    return any(one.live and one.taken_at is None and one.provider_batch_id > last for one in former)
