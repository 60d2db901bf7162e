"""Driving one provider batch as far as it goes now: INTENT -> UPLOADED -> SUBMITTED -> ENDED -> COLLECTED."""

from __future__ import annotations

from datetime import timedelta

from nightmill.domain.errors import AnswerTooLarge, Blocked, ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.failures import Seen, classify
from nightmill.domain.progress import requests_done
from nightmill.domain.states import ProviderBatchState
from nightmill.domain.wording import counted
from nightmill.providers.port import BatchSnapshot, BatchStatus
from nightmill.stages.run_shard import collect, refused, render
from nightmill.stages.run_shard.context import ShardContext
from nightmill.stages.run_shard.refused import abandon
from nightmill.storage import provider_batches
from nightmill.storage.provider_batches import ProviderBatch

RESULTS_GRACE = timedelta(minutes=15)  # an ended batch may name its result files later than its status
LATE = timedelta(hours=48)  # twice the completion window of the Batch API


def provider_batch(context: ShardContext, one: ProviderBatch, file: render.RequestFile | None = None) -> None:
    """Take every next step of one live provider batch. What keeps it waiting is noted in the context.

    `file` is its rendered request file, if this wake-up made it just now.
    """
    name = f"provider batch {one.provider_batch_id}"
    try:
        if one.state is ProviderBatchState.INTENT and context.winding_down:
            one = _give_up_unsent(context, one)
        elif one.state is ProviderBatchState.INTENT and one.account != context.account:
            one = abandon(context, one, "not sent before the connection got another account or key")
        elif one.state is ProviderBatchState.INTENT and context.blocked():
            context.note(f"{name} is not sent: the batch is BLOCKED")
            context.look_again_in(300)
        elif one.state is ProviderBatchState.INTENT:
            one = _create(context, _upload(context, one, file))
        elif one.state is ProviderBatchState.UPLOADED:
            one = _adopt(context, one)
        if one.state is ProviderBatchState.SUBMITTED and context.winding_down:
            assert one.provider_id is not None
            context.provider.cancel(one.provider_id)
        if one.state is ProviderBatchState.SUBMITTED:
            one = _poll(context, one)
        if one.state is ProviderBatchState.ENDED:
            collect.results(context, one)
    except SubmitUnknown as fault:
        context.send_nothing = True
        context.leave_alone(fault.retry_after_s)
        context.note(
            f"{name}: the create call ended without an answer, looking for it at the provider next time: {fault.cause}"
        )
        context.look_again_in(context.live.provider.poll_interval_s)
    except ProviderUnavailable as fault:
        context.conn.rollback()
        context.send_nothing = True
        context.leave_alone(fault.retry_after_s)
        _refuse_overdue(context, one)
        context.note(f"{name}: provider not reachable ({type(fault).__name__}): {fault.cause}")
        context.look_again_in(context.live.provider.poll_interval_s)
    except AnswerTooLarge as fault:
        context.conn.rollback()
        raise Blocked(fault.cause, fault.remedy) from fault
    except ProviderRefused as fault:
        context.conn.rollback()
        raise Blocked(f"The provider refuses {name}: {fault.cause}", fault.remedy) from fault


def _give_up_unsent(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    if one.input_file_id is not None:
        collect.drop_input_file(context, one)
    return abandon(context, one, "cancelled before it was sent")


def _upload(context: ShardContext, one: ProviderBatch, file: render.RequestFile | None) -> ProviderBatch:
    """Upload the request file and commit its id before anything can be created from it.

    What a worker uploaded that died before its create call is taken as it is.
    """
    if one.input_file_id is not None:
        return one
    file_id = context.provider.upload((file or render.again(context, one)).path)
    uploaded = provider_batches.record_file(context.conn, context.holder, one, file_id)
    context.conn.commit()
    return uploaded


def _create(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    """Send the create call once. The edge right before it rechecks the fence, so that a zombie pays for nothing, and
    begins the quiet period.

    Raises SubmitUnknown when it is not known whether the provider accepted it.
    """
    one = provider_batches.move(
        context.conn, context.holder, one, ProviderBatchState.UPLOADED, "its create call goes out"
    )
    context.conn.commit()
    assert one.input_file_id is not None
    try:
        snapshot = context.provider.submit(one.input_file_id, one.token)
    except ProviderRefused as fault:
        abandon(context, one, f"create refused: {fault.code or fault.status}")
        raise
    except ProviderUnavailable:
        abandon(context, one, "the provider takes no new batches now")
        raise
    return _submitted(context, one, snapshot, adopted=False)


def _submitted(context: ShardContext, one: ProviderBatch, snapshot: BatchSnapshot, *, adopted: bool) -> ProviderBatch:
    submitted = provider_batches.move(
        context.conn,
        context.holder,
        one,
        ProviderBatchState.SUBMITTED,
        "adopted" if adopted else "created",
        provider_id=snapshot.provider_id,
        adopted=adopted,
        raw_status=snapshot.raw_status,
    )
    context.conn.commit()
    how = "adopted" if adopted else "sent"
    context.note(
        f"provider batch {one.provider_batch_id}: {how} {counted(one.requests, 'request')} as {snapshot.provider_id}"
    )
    context.look_again_in(context.live.provider.poll_interval_s * 20)
    return submitted


def _adopt(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    """A create may have been sent and its answer lost: look for it, and give it up only when it is surely absent.

    What is given up is sent anew with an intent of its own, so that the next create has a quiet period of its own.
    Its input file is deleted first: a create that is still on its way then finds nothing to execute.
    """
    assert one.input_file_id is not None and one.uploaded_at is not None
    search = context.provider.find_submitted(one.input_file_id, one.token, one.uploaded_at)
    if len(search.found) > 1:
        context.note(f"provider batch {one.provider_batch_id}: {len(search.found)} batches carry its token")
    if search.found:
        return _submitted(context, one, search.found[0], adopted=True)
    if one.account != context.account:
        raise Blocked(
            f"Provider batch {one.provider_batch_id} was sent by another account or key than connection "
            f"{context.pinned.job.provider.conn_id!r} has now, so not finding it proves nothing.",
            "Put the former account back into the connection and clear this task; or wait until the batch has ended "
            "there and trigger a new run.",
        )
    quiet_until = one.uploaded_at + timedelta(
        seconds=context.live.provider.create_timeout_s + context.live.provider.quiet_period_s
    )
    if search.complete and context.env.now() >= quiet_until:
        context.provider.delete_file(one.input_file_id)
        return abandon(context, one, "absent at the provider after the quiet period")
    context.note(f"provider batch {one.provider_batch_id}: not seen at the provider so far")
    context.look_again_in(context.live.provider.poll_interval_s)
    return one


def _poll(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    assert one.provider_id is not None
    snapshot = context.provider.poll(one.provider_id)
    provider_batches.record_poll(
        context.conn, context.holder, one, snapshot.raw_status, dict(snapshot.counts) if snapshot.counts else None
    )
    context.conn.commit()
    context.note(f"provider batch {one.provider_batch_id}: {_progress(snapshot)}")
    if classify(Seen(batch_status=snapshot.status)) is not None:
        raise Blocked(
            f"The provider reports the status {snapshot.raw_status!r} for batch {one.provider_id}, which nightmill "
            "does not know.",
            "Look at the batch at the provider; clear this task when it has a known status again.",
        )
    if snapshot.status is BatchStatus.FAILED:
        return refused.as_a_whole(context, one, snapshot.problems)
    if snapshot.status is BatchStatus.ENDED and not _results_awaited(context, one, snapshot):
        return _ended(context, one, snapshot)
    _refuse_overdue(context, one)
    context.look_again_in(context.live.provider.poll_interval_s * 20)
    return one


def _progress(snapshot: BatchSnapshot) -> str:
    counts = snapshot.counts or {}
    return f"{snapshot.raw_status} {requests_done(counts)}/{counts.get('total', '?')}"


def _results_awaited(context: ShardContext, one: ProviderBatch, snapshot: BatchSnapshot) -> bool:
    """Whether the result files may still appear: they are waited for a quarter of an hour after the batch's end.

    Raises Blocked when paid answers do not appear by then: sending their requests again is a person's decision.
    """
    if not snapshot.results_pending:
        return False
    context.look_again_in(context.live.provider.poll_interval_s)
    ended = snapshot.ended_at or one.submitted_at
    if ended is not None and context.env.now() < ended + RESULTS_GRACE:
        return True
    answered = (snapshot.counts or {}).get("completed", 0)
    if not answered or one.submitted_at is None or context.env.now() > one.submitted_at + LATE:
        return False
    raise Blocked(
        f"Provider batch {one.provider_batch_id} ({one.provider_id}) ended with {counted(answered, 'answer')}, which "
        "are paid for, and names no file that holds them.",
        f"Ask the provider for the output file, then clear this task; {LATE} after it was sent, its requests count as "
        "lost and clearing this task sends them again.",
    )


def _ended(context: ShardContext, one: ProviderBatch, snapshot: BatchSnapshot) -> ProviderBatch:
    usage = snapshot.raw.get("usage")
    ended = provider_batches.move(
        context.conn,
        context.holder,
        one,
        ProviderBatchState.ENDED,
        f"the provider says {snapshot.raw_status}",
        raw_status=snapshot.raw_status,
        output_file_id=snapshot.output_file_id,
        error_file_id=snapshot.error_file_id,
        usage=usage if isinstance(usage, dict) else None,
    )
    context.conn.commit()
    return ended


def _refuse_overdue(context: ShardContext, one: ProviderBatch) -> None:
    if one.submitted_at is not None and context.env.now() > one.submitted_at + LATE:
        raise Blocked(
            f"Provider batch {one.provider_batch_id} ({one.provider_id}) has not ended {LATE} after it was sent.",
            "Ask the provider, or cancel the batch there: what it finished is collected. Clear this task to wait on.",
        )
