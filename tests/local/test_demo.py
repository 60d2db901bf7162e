"""What `make demo` prints."""

from __future__ import annotations

from nightmill.local.demo import progress, text_table


def instance(task_id: str, state: str | None) -> dict[str, object]:
    return {"task_id": task_id, "state": state}


def test_progress_counts_mapped_tasks_by_state_and_leaves_out_what_has_not_begun() -> None:
    shards = [instance("run_shard", "success")] * 3 + [instance("run_shard", "deferred")] * 5
    line = progress([instance("freeze_snapshot", "success"), *shards, instance("reconcile", None)])
    assert line == "1/3 tasks done; run_shard 5/8 deferred, 3/8 success"


def test_a_table_keeps_each_row_on_one_line_and_cuts_long_values() -> None:
    table = text_table(["id", "text"], [(1, "two\nlines"), (2, "x" * 100)], width=10)
    assert table.splitlines() == ["id  text", "--  ----------", "1   two lines", "2   xxxxxxx..."]
