"""Driving one provider batch as far as it goes now: INTENT -> CREATING -> SUBMITTED -> ENDED -> COLLECTED."""

from __future__ import annotations

from pathlib import Path

from nightmill.domain.capabilities import Input
from nightmill.domain.errors import AnswerTooLarge, Blocked, ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.states import ProviderBatchState
from nightmill.stages.run_shard import breaker, collect, lost_create, poll, refused, render, throttle
from nightmill.stages.run_shard.context import ShardContext
from nightmill.storage import provider_batches
from nightmill.storage.provider_batches import ProviderBatch


def provider_batch(context: ShardContext, one: ProviderBatch, file: render.RequestFile | None = None) -> None:
    """Take every next step of one live provider batch. What keeps it waiting is noted in the context.

    `file` is its rendered request file, if this wake-up made it just now.
    """
    name = f"provider batch {one.provider_batch_id}"
    try:
        one = _until_submitted(context, one, file)
        if one.state is ProviderBatchState.SUBMITTED and context.winding_down:
            assert one.provider_id is not None
            context.transport.cancel(one.provider_id)
        if one.state is ProviderBatchState.SUBMITTED:
            one = poll.submitted(context, one)
        elif one.state is ProviderBatchState.ENDED:
            one = poll.again(context, one)
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
        poll.refuse_overdue(context, one)
        context.note(f"{name}: provider not reachable ({type(fault).__name__}): {fault.cause}")
        context.look_again_in(context.live.provider.poll_interval_s)
    except AnswerTooLarge as fault:
        context.conn.rollback()
        raise Blocked(fault.cause, fault.remedy) from fault
    except ProviderRefused as fault:
        context.conn.rollback()
        raise Blocked(f"The provider refuses {name}: {fault.cause}", fault.remedy) from fault


def _until_submitted(context: ShardContext, one: ProviderBatch, file: render.RequestFile | None) -> ProviderBatch:
    """What of it has to happen before the provider's id is known."""
    if one.state is ProviderBatchState.CREATING:
        return lost_create.looked_for(context, one)
    if one.state is not ProviderBatchState.INTENT:
        return one
    if context.winding_down:
        return _give_up_unsent(context, one, "cancelled before it was sent")
    if one.account != context.account:
        return refused.abandon(context, one, "not sent before the connection got another account or key")
    if context.blocked():
        context.note(f"provider batch {one.provider_batch_id} is not sent: the batch is BLOCKED")
        context.look_again_in(300)
        return one
    breaker.refuse_open(context)
    if context.transport.capabilities.input is Input.INLINE:
        return _create(context, one, (file or render.again(context, one)).path)
    staged = _stage(context, one, file)
    if staged.state is not ProviderBatchState.INTENT:
        return staged
    assert staged.input_ref is not None
    return _create(context, staged, staged.input_ref)


def _give_up_unsent(context: ShardContext, one: ProviderBatch, reason: str) -> ProviderBatch:
    collect.discard_input(context, one)
    return refused.abandon(context, one, reason)


def _stage(context: ShardContext, one: ProviderBatch, file: render.RequestFile | None) -> ProviderBatch:
    """Bring the requests to the provider and commit their reference before anything can be created from it.

    What a worker staged that died before its create call is taken as it is.
    """
    if one.input_ref is not None:
        return one
    try:
        ref = context.transport.stage_input((file or render.again(context, one)).path)
    except ProviderRefused as fault:
        if fault.too_large is None:
            raise
        return refused.too_large(context, one, fault.too_large)
    except ProviderUnavailable as fault:
        if fault.limit is None:
            raise
        context.leave_alone(fault.retry_after_s)
        return throttle.refused(context, one, fault.limit, fault.retry_after_s)
    assert ref is not None
    staged = provider_batches.record_input(context.conn, context.holder, one, ref)
    context.conn.commit()
    return staged


def _create(context: ShardContext, one: ProviderBatch, requests: str | Path) -> ProviderBatch:
    """Send the create call once, with a staged reference or the file itself. The edge right before it rechecks the
    fence, so that a zombie pays for nothing, and the account, which may refuse since a moment; it begins the quiet
    period.

    Raises SubmitUnknown when it is not known whether the provider accepted it.
    """
    if not throttle.admits(context, one):
        context.conn.rollback()
        context.send_nothing = True
        return _give_up_unsent(context, one, "not sent: the account takes one file at a time just now")
    one = provider_batches.move(
        context.conn,
        context.holder,
        one,
        ProviderBatchState.CREATING,
        "its create call goes out",
        window_ends_at=context.env.now() + window if (window := context.transport.capabilities.window) else None,
    )
    context.conn.commit()
    try:
        handle = context.transport.create(requests, one.token)
    except ProviderRefused as fault:
        if fault.too_large is not None:
            return refused.too_large(context, one, fault.too_large)
        refused.abandon(context, one, f"create refused: {fault.code or fault.status}")
        raise
    except ProviderUnavailable as fault:
        if fault.limit is not None:
            context.leave_alone(fault.retry_after_s)
            return throttle.refused(context, one, fault.limit, fault.retry_after_s)
        refused.abandon(context, one, "the provider takes no new batches now")
        raise
    return poll.known(context, one, handle, adopted=False)
