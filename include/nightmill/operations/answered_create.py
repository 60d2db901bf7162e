"""A person's word on a create whose reply was lost, where the provider's listing cannot tell."""

from __future__ import annotations

from nightmill.domain.errors import Terminal
from nightmill.domain.snapshots import Snapshot
from nightmill.domain.states import ProviderBatchState
from nightmill.services.environment import Environment
from nightmill.storage import batches, contracts, provider_batches, shards
from nightmill.storage.fence import writing
from nightmill.storage.provider_batches import ProviderBatch


def run(env: Environment, provider_batch_id: int, taken_as: str | None) -> ProviderBatch:
    """Note that the provider took it under that id, or (None) that it did not take it; its items are then free again.

    Raises Terminal where nothing is asked of that provider batch, or where the id is that of another one.
    """
    with env.ledger() as conn:
        one = provider_batches.get(conn, provider_batch_id)
        if one.state is not ProviderBatchState.CREATING:
            raise Terminal(
                f"Provider batch {provider_batch_id} is {one.state}: nobody asks whether the provider took it.",
                "Nothing to do; clear the task that waits, if one does.",
            )
        batch, shard = batches.get(conn, one.batch_id), shards.get(conn, one.shard_id)
        pinned = contracts.load(conn, batch.contract_id)
        _, holder = shards.take_over(conn, shard, batch.generation, "a person says what became of a lost create")
        conn.commit()
        with env.provider(pinned) as provider:
            if taken_as is None:
                if one.input_ref is not None:  # a call that is still on its way then finds nothing to execute
                    provider.transport.discard_input(one.input_ref)
                with writing(conn, holder):
                    return provider_batches.abandoned(
                        conn, holder, one, "a person says that the provider did not take it"
                    )
            found = provider.transport.poll(taken_as)
            _refuse_another(one, found)
            with writing(conn, holder):
                return provider_batches.created(conn, holder, one, found, "a person says that the provider took it")


def _refuse_another(one: ProviderBatch, found: Snapshot) -> None:
    """What the batch says of where it comes from, if it says anything, must be ours."""
    if found.requests_total not in (None, one.requests):
        raise Terminal(
            f"The batch {found.provider_id} has {found.requests_total} requests, and provider batch "
            f"{one.provider_batch_id} {one.requests}.",
            "Look for the batch of that size.",
        )
    if found.token == one.token or found.input_ref == one.input_ref:
        return
    if found.token is None and not found.input_ref:
        return
    raise Terminal(
        f"The batch {found.provider_id} was made from {found.input_ref or '?'}, not from "
        f"{one.input_ref} of provider batch {one.provider_batch_id}.",
        "Look for the batch that was made from it.",
    )
