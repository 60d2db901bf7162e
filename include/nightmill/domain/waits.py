"""Everything that waits, until when at the longest, and who hears of it. Nothing waits for ever.

A test finds the waits in the code and holds them against this list; docs/guides/operations.md shows it as a table.
"""

from __future__ import annotations

from dataclasses import dataclass

from nightmill.domain.steps import ENDINGS

_SHARD = "stages/run_shard"
_STUCK = "alert of nightmill_maintenance"


@dataclass(frozen=True, slots=True)
class Wait:
    """`places` are `file:function` below include/nightmill, where it waits or says until when."""

    what: str
    until: str
    alert: str
    places: tuple[str, ...]


WAITS = (
    Wait(
        "a shard, for anything",
        "its own time, at most 24 h; a change at the provider wakes it sooner",
        f"an hour after that time: {_STUCK}",
        (
            f"{_SHARD}/wake_up.py:WakeUp.look_again_in",
            f"{_SHARD}/wake.py:_wait",
            "orchestration/sensor.py:ShardSensor._drive",
            "orchestration/trigger.py:ShardTrigger.run",
            "orchestration/poller.py:ShardPoller._run",
            "orchestration/poller.py:ShardPoller._tick",
        ),
    ),
    *(
        Wait(f"a provider batch, for {what}", ending.until, ending.alert, (f"{_SHARD}/follow.py:_wait",))
        for what, ending in ENDINGS.items()
    ),
    Wait(
        "a provider batch that a person is asked about, and that goes on by itself where the provider answers",
        "its next look, which is as far off as the waits above say",
        f"an ALERT in the shard's log, or an {_STUCK}",
        (f"{_SHARD}/follow.py:_ask",),
    ),
    Wait(
        "a provider batch that lasts too long in one state",
        "6 h on our side; at the provider 6 h while it is validated, else 30 h",
        _STUCK,
        ("domain/deadlines.py:overdue", "upkeep/stuck.py:_stopped"),
    ),
    Wait(
        "files, while their account's queue is full or it asks to slow down",
        "one probe goes out at a time, after pauses that double up to 15 min; no end of its own",
        f"after 30 min of refusals an ALERT in the shard's log, {_STUCK}",
        (f"{_SHARD}/throttle.py:is_open", f"{_SHARD}/throttle.py:refused"),
    ),
    Wait(
        "a batch of a new contract, for its pilot; one that failed alike, for its probe",
        "the end of those few requests, as of every provider batch",
        "the shard's log; a batch whose pilot failed is BLOCKED: [the breaker](#the-breaker)",
        (f"{_SHARD}/breaker.py:most_now", f"{_SHARD}/send.py:_intended_now"),
    ),
    Wait(
        "a cut download",
        "3 attempts within some seconds, each bounded by the create timeout per read; then as above",
        "the shard's log",
        ("providers/download.py:Download.run",),
    ),
    Wait(
        "result files that lack lines, for those lines",
        "further looks with growing pauses within provider.results_grace_s",
        "the lines are lost ones, named in the shard's log",
        (f"{_SHARD}/collect.py:_look",),
    ),
    Wait(
        "failed items, for their next round",
        "retry.max_delay_s, as often as retry.max_attempts allows",
        "dead letters",
        (
            f"{_SHARD}/send.py:send_due",
            f"{_SHARD}/send.py:_postpone",
            f"{_SHARD}/collect.py:Collection.settle",
            f"{_SHARD}/follow.py:_abandon",
            f"{_SHARD}/refused_file.py:handle",
        ),
    ),
    Wait(
        "items, for room in the account's enqueued tokens",
        "no end of its own: capacity fails no item; what a cancelled batch holds counts for 24 h at most",
        f"after 24 h without progress: {_STUCK}, with the reason",
        (f"{_SHARD}/send.py:_no_room", f"{_SHARD}/refused_file.py:handle", "upkeep/stuck.py:_shards"),
    ),
    Wait(
        "a shard, where the provider asked to be left alone (Retry-After)",
        "as long as it asked, at most 24 h; clearing the task does not wait",
        "the shard's log",
        (f"{_SHARD}/wake.py:_held", "upkeep/wind_down.py:_provider_batches"),
    ),
    Wait(
        "items, for the answer that another run is getting",
        "that provider batch's end, see above; 2 h where the other run was cancelled, then they are sent",
        f"after 24 h without progress: {_STUCK}, with the reason",
        (
            f"{_SHARD}/send.py:_candidates",
            f"{_SHARD}/send.py:_taken_elsewhere",
            "storage/sending.py:carried_elsewhere",
        ),
    ),
    Wait(
        "a preview (STAGED), to be shown or cancelled",
        "maintenance.batch_days (90 days), then it is cancelled",
        "`nightmill.maintenance_action`",
        ("upkeep/retention.py:run",),
    ),
    Wait(
        "a BLOCKED batch, or one whose task failed, for a person",
        "maintenance.abandoned_after_s (7 days), then it is cancelled",
        "the failed task; then " + _STUCK,
        (f"{_SHARD}/send.py:send_due", "upkeep/abandoned.py:run"),
    ),
    Wait(
        "a cancelled batch, to be wound down",
        "48 h, then it is given up; what the provider still has is read and booked when it ends, for 30 days",
        _STUCK,
        ("upkeep/wind_down.py:_given_up",),
    ),
    Wait(
        "maintenance itself, to run",
        "15 min",
        "after an hour: a warning of doctor",
        ("operations/doctor/ledger.py:examine_maintenance",),
    ),
    Wait(
        "a sweep of maintenance",
        "30 min for each; 30 s for the readers of one partition",
        "the task and the run fail; the next run goes on",
        ("orchestration/operations.py:maintenance_dag", "storage/partitions.py:retire"),
    ),
    Wait(
        "a statement, for a lock or for the ledger's server",
        "60 s for a lock, 10 s to connect; about a minute for a server that vanished",
        "the task is retried for 10 minutes or longer, then fails",
        ("storage/session.py:connect",),
    ),
    Wait(
        "the source query",
        "source.statement_timeout_s (1 h)",
        "freeze_snapshot fails",
        ("storage/sources.py:SourceSnapshot",),
    ),
    Wait(
        "a call to the provider",
        "provider.create_timeout_s for each wait for bytes; for a whole answer that time and 1 s for each 10 kB of it, "
        "at most 2 h",
        "the shard's log; it looks again later",
        ("providers/*/client.py:open_client", "providers/http_guard.py:_Meter.received"),
    ),
    Wait(
        "status --watch",
        "Ctrl-C, the end of the --batch it was given, or nothing open but batches whose freezing failed",
        "none: a person looks at it",
        ("cli/status.py:watch",),
    ),
)


def table() -> str:
    """The list as a Markdown table."""
    rows = [f"| {one.what} | {one.until} | {one.alert} |" for one in WAITS]
    return "\n".join(("| what waits | until | who hears of it |", "|---|---|---|", *rows))
