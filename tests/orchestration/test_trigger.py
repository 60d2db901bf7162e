"""What the triggerer stores of a waiting shard."""

from __future__ import annotations

import json
import re
from pathlib import Path

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


def test_c95_a_trigger_only_wakes_its_task_and_never_fails_it() -> None:
    """A failure that a trigger raises skips retries and callbacks; so does an end that it declares."""
    source = Path(trigger.__file__).read_text("utf-8")
    assert "yield TriggerEvent(" in source
    assert not re.search(r"TaskFailedEvent|TaskSuccessEvent|TaskSkippedEvent", source)
