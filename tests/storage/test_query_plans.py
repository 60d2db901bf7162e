"""Hot queries keep their indexes, and other batches' partitions stay untouched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.ledger import Ledger, apply, definition

from nightmill.checks.inputs import judged_anew
from nightmill.storage import reuse, sending, shards, sql
from nightmill.storage.ranges import multirange
from nightmill.storage.session import Connection

BATCHES = 3
SIZES = [2_000, pytest.param(1_000_000, marks=pytest.mark.slow)]

Node = dict[str, Any]


@pytest.fixture(params=SIZES)
def items(request: pytest.FixtureRequest) -> int:
    """Items of each batch. A million is for `make sweep`."""
    return int(request.param)


@pytest.fixture
def filled(ledger: Ledger, items: int) -> Ledger:
    """Three batches over the same keys with statistics; the newest one is published, and the first one's results are
    stored."""
    made = [ledger.validating(items) for _ in range(BATCHES)]
    ledger.store_results(made[0])
    ledger.publish(made[-1])
    ledger.sql("analyze")
    return ledger


def plan(conn: Connection, query: Any, values: Any = None) -> list[Node]:
    """All nodes of the executed plan."""
    text = query.as_string(conn) if hasattr(query, "as_string") else query
    row = conn.execute("explain (analyze, format json) " + text, values).fetchone()
    assert row is not None
    tree = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return list(_nodes(tree[0]["Plan"]))


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def touched(nodes: list[Node], parent: str) -> set[str]:
    """The partitions of a table that the execution read from."""
    return {
        node["Relation Name"]
        for node in nodes
        if node.get("Relation Name", "").startswith(f"{parent}_") and node["Actual Loops"] > 0
    }


def _joins_reading(nodes: list[Node], table: str) -> list[Node]:
    """The joins that have a read of this table below them and no join in between."""
    return [
        node
        for node in nodes
        if "Join Type" in node and table in {below.get("Relation Name") for below in _without_joins(node)}
    ]


def _without_joins(node: Node) -> Iterator[Node]:
    for child in node.get("Plans", ()):
        if "Join Type" not in child:
            yield child
            yield from _without_joins(child)


def test_a_point_read_of_the_view_uses_the_index_of_the_shown_partition_only(filled: Ledger) -> None:
    with filled.reader() as conn:
        for prepared in (False, True):
            conn.execute(f"set plan_cache_mode = {'force_generic_plan' if prepared else 'auto'}")
            nodes = plan(conn, "select * from results.notes where source_id = 'doc-77'")
            assert touched(nodes, "rows") == {f"rows_{BATCHES}"}
            scans = [node for node in nodes if node.get("Relation Name") == f"rows_{BATCHES}"]
            assert {node["Node Type"] for node in scans} <= {"Index Scan", "Bitmap Heap Scan"}
            assert nodes[0]["Actual Rows"] == 1


BY_INDEX = (
    "select title from results.notes where source_id = any (array(select 'doc-' || n from generate_series(1, 9) as n))",
    "select title from results.notes where source_id between 'doc-100' and 'doc-101'",
    "select title from results.notes where source_id ^@ 'doc-199'",
    "select title from results.notes join (values ('doc-5'), ('doc-6')) as mine (source_id) using (source_id)",
    "select title from results.notes order by source_id limit 3",
)


def test_look_ups_joins_and_pages_read_the_view_by_its_index(filled: Ledger) -> None:
    with filled.reader() as conn:
        for query in BY_INDEX:
            nodes = plan(conn, query)
            assert touched(nodes, "rows") == {f"rows_{BATCHES}"}, query
            scans = [node for node in nodes if node.get("Relation Name") == f"rows_{BATCHES}"]
            assert {node["Node Type"] for node in scans} <= {"Index Scan", "Bitmap Heap Scan"}, query


def test_a_scan_of_the_view_reads_no_other_batchs_partition(filled: Ledger) -> None:
    with filled.reader() as conn:
        nodes = plan(conn, "select avg(pages) from results.notes")
        assert touched(nodes, "rows") == {f"rows_{BATCHES}"}


def test_looking_for_keys_in_flight_reads_no_items_when_nothing_else_is_in_flight(filled: Ledger, items: int) -> None:
    batch, (shard,) = filled.running(items)
    _, holder = filled.taken(batch, shard)
    filled.intent(holder, range(10))
    filled.sql("analyze")
    with filled.writer() as conn:
        scope = {"batch_id": batch.batch_id, "job": filled.job.name, "cancelled_wait_s": 60}
        nodes = plan(conn, sql.text("batch/in_flight"), scope)
        assert touched(nodes, "item") == set()
        ordinals = multirange(range(items))
        assert sending.carried_elsewhere(conn, batch.batch_id, filled.job.name, ordinals) == set()


def test_keys_in_flight_are_found_through_the_two_batches_partitions_only(filled: Ledger, items: int) -> None:
    mine, _ = filled.running(items)
    other, (shard,) = filled.running(items)
    _, holder = filled.taken(other, shard)
    filled.intent(holder, range(100, 120))
    filled.sql("analyze")
    ordinals = multirange(range(110, items))
    with filled.writer() as conn:
        nodes = plan(
            conn,
            sql.text("item/keys_in_flight"),
            {
                "batch_id": mine.batch_id,
                "ordinals": ordinals,
                "other": other.batch_id,
                "carried": multirange(range(100, 120)),
            },
        )
        scans = [node for node in nodes if node.get("Relation Name", "").startswith("item_")]
        assert "Seq Scan" not in {
            node["Node Type"] for node in scans if node["Relation Name"].endswith(f"_{other.batch_id}")
        }
        assert touched(nodes, "item") <= {f"item_{mine.batch_id}", f"item_{other.batch_id}"}
        found = sending.carried_elsewhere(conn, mine.batch_id, filled.job.name, ordinals)
    assert found == set(range(110, 120))


def test_keys_of_another_job_or_of_an_ended_batch_are_not_in_flight(filled: Ledger) -> None:
    mine, _ = filled.running(10)
    other, (shard,) = filled.running(10)
    _, holder = filled.taken(other, shard)
    one = filled.ended(holder, filled.intent(holder, range(10)))
    ordinals = multirange(range(10))
    with filled.writer() as conn:
        assert sending.carried_elsewhere(conn, mine.batch_id, filled.job.name, ordinals) == set(range(10))
        assert sending.carried_elsewhere(conn, mine.batch_id, "another_job", ordinals) == set()
        assert sending.carried_elsewhere(conn, other.batch_id, filled.job.name, ordinals) == set()
    assert one.live


def test_looking_for_reusable_results_touches_this_batchs_partitions_only(filled: Ledger, items: int) -> None:
    batch = filled.frozen(items)
    filled.sql("analyze")
    values = {"batch_id": batch.batch_id, "validators_hash": filled.job.validators_hash}
    with filled.writer() as conn:
        reuse.prepare(conn)
        nodes = plan(conn, sql.text("reuse/find"), values)
        assert touched(nodes, "item") == {f"item_{batch.batch_id}"}
        assert touched(nodes, "outcome") <= {f"outcome_{batch.batch_id}"}
        assert [node["Node Type"] for node in _joins_reading(nodes, "result")] in (["Hash Join"], ["Merge Join"])
        assert reuse.find(conn, batch.batch_id, filled.job.validators_hash) == items
        few = plan(conn, sql.text("reuse/find_among"), values | {"ordinals": "{1,5,1999}"})
        assert touched(few, "item") == {f"item_{batch.batch_id}"}
        assert not [node for node in few if node["Node Type"] == "Seq Scan"]
        assert reuse.find_among(conn, batch.batch_id, [1, 5, 1999], filled.job.validators_hash) == 3


def test_looking_for_a_shards_unsettled_items_reads_only_where_they_were(filled: Ledger, items: int) -> None:
    batch, [shard] = filled.running(items)
    whole = sql.text("shard/unsettled")
    values = {"batch_id": batch.batch_id, "shard_id": shard.shard_id}
    filled.sql("update nightmill.shard set ordinals = '{[5,6),[700,703)}' where shard_id = %s", shard.shard_id)
    filled.sql("analyze")
    with filled.writer() as conn:
        nodes = plan(conn, whole, values)
        assert touched(nodes, "item") == {f"item_{batch.batch_id}"}
        assert touched(nodes, "outcome") <= {f"outcome_{batch.batch_id}"}
        assert "Seq Scan" not in {node["Node Type"] for node in nodes if "item_" in node.get("Relation Name", "")}
        assert [ordinal for ordinal, _ in shards.unsettled(conn, shard)] == [5, 700, 701, 702]
    filled.sql("update nightmill.shard set ordinals = default where shard_id = %s", shard.shard_id)  # an earlier plan's
    with filled.writer() as conn:
        assert [ordinal for ordinal, _ in shards.unsettled(conn, shard)] == list(range(items))


def test_looking_up_a_few_keys_for_an_estimate_reads_no_items_and_not_all_results(filled: Ledger) -> None:
    keys = [row[0] for row in filled.sql("select key from nightmill.result limit 5")]
    judged = judged_anew()
    values = {
        "keys": [*keys, b"unknown"],
        "validators_hash": filled.job.validators_hash,
        "judged_anew": judged,
    }
    with filled.writer() as conn:
        nodes = plan(conn, sql.text("item/keys_settled"), values)
        assert touched(nodes, "item") == set()
        assert not [node for node in nodes if node.get("Relation Name") == "result" and node["Node Type"] == "Seq Scan"]
        found = reuse.settled_keys(conn, values["keys"], filled.job.validators_hash, judged)
    assert {one.key for one in found} == set(keys)
    assert all(one.reused and not one.outdated for one in found)


def test_counting_a_batchs_items_reads_its_outcomes_once_and_nothing_else(filled: Ledger, items: int) -> None:
    (last,) = filled.sql("select max(batch_id) from nightmill.batch")[0]
    with filled.writer() as conn:
        nodes = plan(conn, sql.text("outcome/count_by_bucket"), {"batch_id": last})
    reads = [node for node in nodes if node.get("Relation Name", "").startswith("outcome_")]
    assert [node["Relation Name"] for node in reads if node["Actual Loops"] > 0] == [f"outcome_{last}"]
    assert round(sum(node["Actual Rows"] * node["Actual Loops"] for node in reads)) == items  # workers share the scan


def test_the_longest_view_name_still_gives_each_batch_its_own_partition(ledger: Ledger) -> None:
    name = "v" * 48
    job = definition("long_name", name)
    apply(ledger.admin_dsn, job)
    ledger.sql("alter sequence nightmill.batch_batch_id_seq restart with 123456789")
    ledger.job = job
    first, second = ledger.validating(3), ledger.validating(4)
    for batch, rows in ((first, 3), (second, 4)):
        ledger.publish(batch)
        assert ledger.sql(f"select count(*) from results.{name}") == [(rows,)]
