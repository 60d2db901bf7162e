"""The arithmetic of the shard curve."""

from __future__ import annotations

from random import Random

import pytest

from dev.bench.contracts import LONGEST, SHORTEST, generated
from dev.bench.shares import AirflowRun, InProcess, StateClock, airflow_share, figures, mapped_seconds, per_shard, table

RUN = AirflowRun(
    shards=16,
    wall_s=80.0,
    mapped_s=40.0,
    task_s=100.0,
    waiting_s=30.0,
    deferred_s=200.0,
    provider_s=25.0,
    cpu_s=90.0,
)
FLOOR = InProcess(stages_s=15.0, stages_cpu_s=12.0, provider_wait_s=5.0)


def test_what_neither_a_stage_nor_the_provider_needed_is_airflows_share() -> None:
    assert airflow_share(RUN, FLOOR) == pytest.approx(60 / 80)


def test_shards_per_minute_count_only_the_time_with_shards() -> None:
    assert figures(RUN, FLOOR)["mapped_per_min"] == 24.0


def test_a_state_clock_adds_up_task_seconds_between_readings() -> None:
    clock = StateClock()
    clock.read(10.0, {"running": 2, "queued": 1})
    clock.read(11.5, {"deferred": 3})
    clock.read(13.5, {"success": 3})
    assert clock.seconds == {"running": 3.0, "queued": 1.5, "deferred": 6.0}


def test_seconds_of_one_task_in_one_state_are_the_same_however_often_it_is_read() -> None:
    chance = Random(3)
    clock = StateClock()
    for at in sorted([0.0, 60.0, *(chance.uniform(0, 60) for _ in range(200))]):
        clock.read(at, {"running": 1})
    assert clock.seconds["running"] == pytest.approx(60)


def test_the_price_of_one_more_shard_is_the_slope_of_the_curve() -> None:
    curve = {shards: {"wall_s": 50 + 1.5 * shards} for shards in (4, 16, 64)}
    assert per_shard(curve, "wall_s") == pytest.approx(1.5)
    assert per_shard({4: {"wall_s": 56.0}}, "wall_s") == 0.0


def test_mapped_seconds_run_from_the_first_start_to_the_last_end_of_mapped_tasks_only() -> None:
    instances = [
        {"map_index": -1, "start_date": "2026-01-01T00:00:00Z", "end_date": "2026-01-01T01:00:00Z"},
        {"map_index": 0, "start_date": "2026-01-01T00:10:05Z", "end_date": "2026-01-01T00:10:30Z"},
        {"map_index": 1, "start_date": "2026-01-01T00:10:00Z", "end_date": "2026-01-01T00:10:20Z"},
    ]
    assert mapped_seconds(instances) == 30.0


def test_the_table_has_a_line_per_number_of_shards_in_order() -> None:
    lines = table({64: figures(RUN, FLOOR), 4: figures(RUN, FLOOR)}).splitlines()
    assert [line.split()[0] for line in lines] == ["shards", "4", "64"]
    assert "75%" in lines[1]
    assert len({len(line) for line in lines}) == 1


def test_generated_documents_repeat_and_have_the_lengths_of_contracts() -> None:
    lengths = sorted(len(generated(number)) for number in range(60))
    assert generated(7) == generated(7) != generated(8)
    assert lengths[0] >= SHORTEST
    assert lengths[-1] <= LONGEST
    assert 20_000 < lengths[30] < 60_000
