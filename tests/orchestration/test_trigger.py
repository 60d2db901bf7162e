"""What the triggerer stores of a waiting shard."""

from __future__ import annotations

import json

from nightmill.orchestration import trigger
from nightmill.orchestration.trigger import ShardTrigger


def test_a_trigger_is_stored_as_ids_only_and_comes_back_equal() -> None:
    from airflow.serialization.serialized_objects import BaseSerialization

    path, kwargs = ShardTrigger(7, "provider", "openai", 30).serialize()
    assert path == "nightmill.orchestration.trigger.ShardTrigger"
    assert kwargs == {"shard_id": 7, "provider_conn_id": "provider", "adapter": "openai", "poll_interval_s": 30}
    stored = BaseSerialization.deserialize(json.loads(json.dumps(BaseSerialization.serialize(kwargs))))
    assert ShardTrigger(**stored).serialize() == (path, kwargs)


def test_the_first_event_comes_late_enough_for_the_scheduler() -> None:
    assert trigger.FIRST_EVENT_S >= 10
