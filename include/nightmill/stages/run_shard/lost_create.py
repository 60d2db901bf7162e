"""Looking for a create whose reply was lost: it is adopted where it is found, and given up only where it is surely
absent. What cannot be proved is asked, and never paid for a second time in silence.
"""

from __future__ import annotations

from datetime import timedelta

from nightmill.domain.errors import Blocked
from nightmill.domain.snapshots import Absent, Found, Unclear
from nightmill.providers.port import SentCreate
from nightmill.stages.run_shard import poll
from nightmill.stages.run_shard.context import ShardContext
from nightmill.stages.run_shard.refused import abandon
from nightmill.storage import provider_batches
from nightmill.storage.provider_batches import ProviderBatch

UNPROVEN = timedelta(hours=1)  # after the quiet period, for a listing that can be read better soon


def looked_for(context: ShardContext, one: ProviderBatch) -> ProviderBatch:
    """What became of a create that may have been sent. Raises Blocked where only a person can tell.

    What is given up is sent anew with an intent of its own, so that the next create has a quiet period of its own.
    Its input file is deleted first: a create that is still on its way then finds nothing to execute.
    """
    assert one.creating_at is not None
    behind = provider_batches.clock_behind(context.conn, one.account)
    context.conn.commit()
    sent = SentCreate(one.token, one.creating_at - behind, one.requests, one.input_ref)
    found = context.transport.lookup(sent)
    if isinstance(found, Found):
        if found.others:
            context.note(f"provider batch {one.provider_batch_id}: {len(found.others) + 1} batches carry its token")
        return poll.known(context, one, found.snapshot, adopted=True)
    if one.account != context.account:
        raise Blocked(
            f"Provider batch {one.provider_batch_id} was sent by another account or key than connection "
            f"{context.pinned.job.provider.conn_id!r} has now, so not finding it proves nothing.",
            "Put the former account back into the connection and clear this task; or wait until the batch has ended "
            "there and trigger a new run.",
        )
    quiet_until, now = one.creating_at + context.quiet_period, context.env.now()
    if isinstance(found, Absent) and now >= quiet_until:
        if one.input_ref is not None:
            context.transport.discard_input(one.input_ref)
        return abandon(context, one, "absent at the provider after the quiet period")
    if isinstance(found, Unclear) and now >= quiet_until + (UNPROVEN if found.can_change else timedelta()):
        raise _cannot_tell(one, found)
    proof = f", and that proves nothing: {found.why}" if isinstance(found, Unclear) else ""
    context.note(f"provider batch {one.provider_batch_id}: not seen at the provider so far{proof}")
    context.look_again_in(context.live.provider.poll_interval_s)
    return one


def _cannot_tell(one: ProviderBatch, found: Unclear) -> Blocked:
    return Blocked(
        f"The reply to the create of provider batch {one.provider_batch_id} was lost, and whether the provider took it "
        f"cannot be told: {found.why}.",
        f"Look there for a batch {_marks(one)}. "
        f"If there is one: `python -m nightmill lost-create --provider-batch {one.provider_batch_id} --taken-as ID`; "
        f"if there is none: the same with `--not-taken`. Then clear this task.",
    )


def _marks(one: ProviderBatch) -> str:
    """What it can be known by at the provider."""
    made_from = f"made from {one.input_ref} or " if one.input_ref is not None else ""
    return f"{made_from}with the token {one.token}"
