"""Writes that the database itself refuses to the writer's login: plain statements, as somebody would type them."""

from __future__ import annotations

import pytest
from psycopg import errors
from support.ledger import Ledger

from nightmill.domain.errors import StaleWriter, Terminal
from nightmill.domain.states import ProviderBatchState
from nightmill.storage import batches, partitions, provider_batches
from nightmill.storage.session import refusals

EDGE, MANIFEST, SETTLING, PARTITION = "NM001", "NM003", "NM004", "NM005"

MANIFEST_CHANGES = (
    "item_count = 3",
    "content_hash = '\\x00'",
    "prompt_tokens = 1",
    "frozen_at = now()",
    "frozen_at = null",
    "source_query = 'select 2'",
    "source_parameters = '{\"x\": 1}'",
    "source_snapshot = 'another'",
)


def test_a_frozen_manifest_never_changes(ledger: Ledger) -> None:
    batch = ledger.frozen()
    for assignment in MANIFEST_CHANGES:
        assert ledger.refused(f"update nightmill.batch set {assignment}") == MANIFEST, assignment
    with ledger.writer() as conn, pytest.raises(Terminal, match="frozen manifest never changes"), refusals():
        conn.execute("update nightmill.batch set item_count = 3 where batch_id = %s", (batch.batch_id,))


def test_payload_objects_cannot_be_added_to_a_frozen_manifest(ledger: Ledger) -> None:
    batch = ledger.frozen()
    values = f"({batch.batch_id}, 99, 0, 1, 'elsewhere', 1, '')"
    assert ledger.refused(f"insert into nightmill.payload_segment values {values}") == MANIFEST


WRITTEN_ONCE = (
    "item", "outcome", "attempt", "rows_notes", "transition", "publication", "contract", "payload_segment",
    "dead_letter", "quarantine", "gate_verdict", "state_edge", "result", "migration",
)  # fmt: skip


def test_what_was_written_is_neither_updated_nor_deleted(ledger: Ledger) -> None:
    for table in WRITTEN_ONCE:
        column = _column(table)
        for statement in ("update {0} set {1} = {1}", "delete from {0}", "truncate {0}"):
            assert ledger.refused(statement.format(f"nightmill.{table}", column)) == "42501", f"{statement} {table}"


def _column(table: str) -> str:
    return {"contract": "files", "state_edge": "entity", "migration": "name", "result": "answer"}.get(table, "batch_id")


def test_an_attached_partition_cannot_be_written_past_its_parent(ledger: Ledger) -> None:
    batch = ledger.frozen(settle=True)
    for parent in ("item", "outcome", "attempt", "rows"):
        table = f"nightmill.{parent}_{batch.batch_id}"
        for statement in (
            "update {0} set ordinal = 0",
            "delete from {0}",
            "insert into {0} (batch_id) select batch_id from {0}",
        ):
            assert ledger.refused(statement.format(table)) == "42501"
    with ledger.writer() as conn, pytest.raises(Terminal, match="attached already"):
        partitions.create(conn, "outcome", batch.batch_id)


def test_items_cannot_be_added_to_a_manifest(ledger: Ledger) -> None:
    ledger.frozen()
    assert ledger.refused("insert into nightmill.item select * from nightmill.item") == "42501"


INSERTS = {
    "outcome": "insert into nightmill.outcome (batch_id, ordinal, kind) values (%(b)s, %(o)s, 'excluded')",
    "attempt": (
        "insert into nightmill.attempt (batch_id, ordinal, provider_batch_id, sent_upstream) "
        "values (%(b)s, %(o)s, 1, true)"
    ),
    "rows_notes": (
        "insert into nightmill.rows_notes (part_id, batch_id, ordinal, source_id, source_version, tenant, domain, "
        "result_id, reused, model, prompt_version, answered_at) "
        "values (%(b)s, %(b)s, %(o)s, 's', '1', '', '', 1, false, 'm', 'p', now())"
    ),
}


@pytest.mark.parametrize("table", list(INSERTS))
def test_nothing_is_settled_in_a_batch_that_is_past_settling(ledger: Ledger, table: str) -> None:
    running, _ = ledger.running()
    values = {"b": running.batch_id, "o": 3}
    with ledger.writer() as conn:
        conn.execute(INSERTS[table], values)
        conn.rollback()
    validating = ledger.validating(rows=False)
    assert ledger.refused(INSERTS[table], values | {"b": validating.batch_id}) == SETTLING
    ledger.publish(validating)
    assert ledger.refused(INSERTS[table], values | {"b": validating.batch_id}) == SETTLING
    with ledger.writer() as conn:
        batches.cancel(conn, running.batch_id, "test")
    assert ledger.refused(INSERTS[table], values) == SETTLING
    with ledger.writer() as conn, pytest.raises(StaleWriter, match="is CANCELLED"), refusals():
        conn.execute(INSERTS[table], values)


def test_nothing_is_settled_outside_the_manifest(ledger: Ledger) -> None:
    batch, _ = ledger.running(10)
    for statement in INSERTS.values():
        for ordinal in (-1, 10):
            assert ledger.refused(statement, {"b": batch.batch_id, "o": ordinal}) == SETTLING


def test_an_item_is_settled_once(ledger: Ledger) -> None:
    batch, _ = ledger.running(10)
    with ledger.writer() as conn:
        conn.execute(INSERTS["outcome"], {"b": batch.batch_id, "o": 3})
    assert ledger.refused(INSERTS["outcome"], {"b": batch.batch_id, "o": 3}) == errors.UniqueViolation.sqlstate


def test_an_outcome_without_its_reason_is_refused(ledger: Ledger) -> None:
    batch, _ = ledger.running(10)
    for kind, result, failure in (
        ("accepted", "null", "null"),
        ("dead_lettered", "null", "null"),
        ("dead_lettered", "1", "'x'"),
        ("in_review", "null", "null"),
        ("lost", "null", "null"),
    ):
        statement = (
            "insert into nightmill.outcome (batch_id, ordinal, kind, result_id, class, code) "
            f"values ({batch.batch_id}, 1, '{kind}', {result}, {failure}, {failure})"
        )
        assert ledger.refused(statement) == errors.CheckViolation.sqlstate, kind


def test_two_live_provider_batches_never_carry_the_same_item(ledger: Ledger) -> None:
    batch, (first, second) = ledger.running(10, shard_count=2)
    _, holder = ledger.taken(batch, first)
    _, other = ledger.taken(batch, second)
    one = ledger.intent(holder, range(3))
    overlapping = (
        "insert into nightmill.provider_batch (batch_id, shard_id, job, token, account, adapter, model, ordinals, "
        f"requests, prompt_tokens, file_bytes) values ({batch.batch_id}, {second.shard_id}, 'notes', 'again', 'a', "
        "'openai', 'm', "
        "'{[2,3),[7,9)}', 3, 30, 300)"
    )
    assert ledger.refused(overlapping) == errors.ExclusionViolation.sqlstate
    with ledger.writer() as conn:
        provider_batches._edge(conn, holder, one, ProviderBatchState.ABANDONED, "test")
        conn.execute(overlapping)  # the items of an abandoned one are free again
    assert other.batch_id == batch.batch_id


def test_a_key_has_one_effective_result(ledger: Ledger) -> None:
    batch, _ = ledger.running(3)
    ledger.store_results(batch)
    again = (
        "insert into nightmill.result (key, revision, job, tenant, source_id, source_version, content_hash, answer, "
        "validators_hash, contract_id, prompt_version, model, batch_id) select key, 2, job, tenant, source_id, "
        "source_version, content_hash, answer, validators_hash, contract_id, prompt_version, model, batch_id "
        "from nightmill.result limit 1"
    )
    assert ledger.refused(again) == errors.UniqueViolation.sqlstate
    with ledger.writer() as conn:
        conn.execute("update nightmill.result set effective = false")
        conn.execute(again)  # the earlier revision was superseded first


def test_a_view_shows_published_batches_of_its_own_only(ledger: Ledger) -> None:
    shown, other = ledger.validating(), ledger.validating()
    ledger.publish(shown)
    assert ledger.refused(f"update nightmill.published set batch_id = {other.batch_id}") == EDGE
    copied = "select 'another', batch_id, publish_seq, published_at, gaps, part_id from nightmill.published"
    names = "view_name, batch_id, publish_seq, published_at, gaps, part_id"
    statement = f"insert into nightmill.published ({names}) {copied}"
    assert ledger.refused(statement) == EDGE
    assert ledger.refused(f"update nightmill.published set part_id = {other.batch_id}") == EDGE
    assert ledger.refused("update nightmill.publication_part set gaps = 0") == "42501"
    assert ledger.refused("delete from nightmill.published") == "42501"


def test_a_publication_lists_parts_of_published_batches_of_its_view_only(ledger: Ledger) -> None:
    shown, other = ledger.validating(), ledger.validating()
    ledger.publish(shown)
    listed = (
        "insert into nightmill.publication_part (publish_seq, part_id, batch_id, frozen_at, counts, gaps, shown_since) "
        "select publish_seq, %s, %s, now(), '{}', 0, now() from nightmill.published"
    )
    assert (
        ledger.refused(listed.replace("select publish_seq,", "select 9999,"), (shown.batch_id, shown.batch_id)) == EDGE
    )
    ledger.sql("delete from nightmill.publication_part")
    for part, batch in ((other.batch_id, other.batch_id), (other.batch_id, shown.batch_id), (-1, shown.batch_id)):
        assert ledger.refused(listed, (part, batch)) == EDGE
    ledger.sql("select nightmill.create_partition('rows_notes', -1), nightmill.attach_partition('rows_notes', -1)")
    with ledger.writer() as conn:
        conn.execute(listed, (-1, shown.batch_id))


def test_rows_lie_in_the_part_of_their_own_batch(ledger: Ledger) -> None:
    one, _ = ledger.running(10)
    other, _ = ledger.running(10)
    values = {"b": one.batch_id, "o": 1}
    strange = INSERTS["rows_notes"].replace("values (%(b)s", f"values ({other.batch_id}")
    assert ledger.refused(strange, values) == SETTLING


def test_partitions_of_other_tables_are_not_made_for_anybody(ledger: Ledger) -> None:
    with ledger.writer() as conn, pytest.raises(Terminal, match="batch has no partitions"):
        partitions.create(conn, "batch", 1)
    assert ledger.refused("select nightmill.create_partition('rows_x; drop table y', 1)") == PARTITION
    assert ledger.refused("select nightmill.drop_detached_partition('item', 1)") == "42501"
