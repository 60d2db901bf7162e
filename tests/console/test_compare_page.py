"""The page Compare: the verdict, the numbers of each slice, and changed rows for those who may read answers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient
from support.pipeline import Pipeline
from support.steps import batch_of, reconciled, run_unchecked

from dev.stack.postgres import Server
from nightmill.console.app import create_app
from nightmill.console.comparing import MOST_ROWS
from nightmill.domain.addresses import MOUNT, batch_page, compare_page
from nightmill.domain.errors import Blocked
from nightmill.storage import session

DAG = "nightmill_test"
CONSOLE, REVIEWER = "nightmill_test_console", "nightmill_test_reviewer"
ATTACK = "<script>alert(1)</script>"


@pytest.fixture
def dsn(pipeline: Pipeline, postgres_server: Server) -> Iterator[Any]:
    """Gives the address of a login with the console's role, and one that may read answers too."""
    for login in (CONSOLE, REVIEWER):
        postgres_server.create_login(login)
        pipeline.sql(f"grant nightmill_console to {login}")
    pipeline.sql(f"grant nightmill_reviewer to {REVIEWER}")
    database = pipeline.admin_dsn.rsplit("/", 1)[1]
    yield lambda login: postgres_server.dsn(database, login)


@pytest.fixture
def browser(dsn: Any) -> TestClient:
    return TestClient(create_app(lambda: None, lambda: session.connect(dsn(CONSOLE)), "s3://here"))


@pytest.fixture
def reviewer(dsn: Any) -> TestClient:
    return TestClient(create_app(lambda: None, lambda: session.connect(dsn(REVIEWER)), "s3://here"))


@pytest.fixture
def stopped(pipeline: Pipeline) -> int:
    """A batch that compare has stopped: a tenant's documents have changed, and with them its titles."""
    pipeline.documents([(f"few-{n}", "1", "small", "A few words here.") for n in range(3)])
    pipeline.edit("job.yaml", "publish:", "compare: {max_changed_share: 0.5, min_slice_items: 5}\npublish:")
    pipeline.edit("job.yaml", "max_completion_tokens: 50", "max_completion_tokens: 900")
    run_unchecked(pipeline)
    pipeline.sql(
        "update documents set version = '2', body = %s || body where tenant in ('umbrella', 'small')",
        f"{ATTACK} {'endless' * 200} ",
    )
    batch = pipeline.freeze("run-2")
    pipeline.drive(pipeline.plan(batch))
    with pytest.raises(Blocked):
        reconciled(pipeline, batch)
    return batch.batch_id


def words(answer: Any) -> str:
    assert answer.status_code == 200, answer.text
    body = re.sub(r"(?s)<style>.*</style>", "", answer.text)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def page(browser: TestClient, batch_id: int) -> Any:
    return browser.get(compare_page(DAG, batch_id).removeprefix(MOUNT))


def test_the_verdict_the_slices_and_the_fields_are_shown(browser: TestClient, stopped: int) -> None:
    text = words(page(browser, stopped))
    assert "refused at " in text
    assert re.search(r"tenant umbrella: 100\.0% of the rows that stayed have changed \(at least \d\d\.\d%, 11 co", text)
    assert "Beside batch 1, which publication 1 showed." in text
    assert re.search(r"tenant umbrella breaks a limit 11 0 0 11 \(100\.0%\) 0 \$", text)
    assert re.search(r"tenant acme – 9 0 0 0 \(0\.0%\) 0 \$", text)
    assert re.search(r"title exact 14 \(60\.9%\) – – – –", text)
    assert "items 23 23" in text


def test_changed_rows_are_shown_to_a_login_that_may_read_answers_and_to_no_other(
    browser: TestClient, reviewer: TestClient, stopped: int
) -> None:
    hidden = page(browser, stopped)
    assert "let an administrator of the ledger grant it the role nightmill_reviewer" in words(hidden)
    assert "alert(1)" not in hidden.text
    shown = page(reviewer, stopped)
    assert ATTACK not in shown.text
    assert "&lt;script&gt;alert(1)" in shown.text
    cells = re.findall(r"<td>([^<]*)</td>", shown.text)
    assert max(map(len, map(html.unescape, cells))) == 400
    rows = re.findall(r'<th scope="row">((?:doc|few)-\w+)</th><td>(\w+)</td><td>(\w+)</td>', shown.text)
    assert len(rows) == 14
    assert {tenant for _, tenant, _ in rows[:11]} == {"umbrella"}  # what broke a limit comes first
    assert {field for _, _, field in rows} == {"title"}
    assert shown.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "<script" not in shown.text


def test_a_sample_is_no_more_than_a_sample(pipeline: Pipeline, reviewer: TestClient) -> None:
    pipeline.edit("job.yaml", "publish:", "compare: {}\npublish:")
    pipeline.documents([(f"more-{n}", "1", "acme", f"More {n}.") for n in range(100)])
    run_unchecked(pipeline)
    pipeline.write("prompt.md", "Another prompt. {{ body }}")
    made = run_unchecked(pipeline, "run-2")
    text = page(reviewer, made.batch.batch_id).text
    assert text.count("<td>title</td>") == MOST_ROWS


def sample(browser: TestClient, batch_id: int) -> list[str]:
    """The ids of the changed rows."""
    return re.findall(r'<th scope="row">(doc-\d+)</th><td>\w+</td><td>title</td>', page(browser, batch_id).text)


def test_by_key_the_sample_is_of_all_rows_that_readers_see(pipeline: Pipeline, reviewer: TestClient) -> None:
    pipeline.edit("job.yaml", "publish: {view: notes}", "compare: {}\npublish: {view: keyed, mode: by_key}")
    pipeline.apply()
    run_unchecked(pipeline)
    pipeline.sql("delete from documents where id > 'doc-02'")
    for number, changed in enumerate(("doc-01", "doc-02")):
        pipeline.sql("update documents set version = '2', body = 'Other words. ' || body where id = %s", changed)
        made = run_unchecked(pipeline, f"delta-{number}")
        assert sample(reviewer, made.batch.batch_id) == [changed]
        pipeline.sql("delete from documents where id = %s", changed)


def test_by_interval_the_sample_is_of_all_intervals_that_a_run_replaces(
    pipeline: Pipeline, reviewer: TestClient
) -> None:
    pipeline.edit("job.yaml", "publish: {view: notes}", "compare: {}\npublish: {view: nights, mode: by_interval}")
    pipeline.apply()
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
    pipeline.sql("create table everything as select * from documents")
    for number, half in enumerate(("id = 'doc-01'", "id = 'doc-02'")):
        pipeline.sql("delete from documents")
        pipeline.sql(f"insert into documents select * from everything where {half}")
        run_unchecked(pipeline, f"night-{number}", data_interval_start=days[number], data_interval_end=days[number + 1])
    pipeline.sql("insert into documents select * from everything where id = 'doc-01'")
    pipeline.sql("update documents set version = '2', body = 'Other words. ' || body")
    both: dict[str, Any] = {"data_interval_start": days[0], "data_interval_end": days[2]}
    made = run_unchecked(pipeline, "wide", params={"replace_intervals": True}, **both)
    assert sorted(sample(reviewer, made.batch.batch_id)) == ["doc-01", "doc-02"]


def test_a_batch_without_a_comparison_says_how_to_get_one(pipeline: Pipeline, reviewer: TestClient) -> None:
    made = run_unchecked(pipeline)
    text = words(page(reviewer, made.batch.batch_id))
    assert "compare: not configured. Write compare: {} into job.yaml" in text
    link = re.search(r'href="(compare/[^"]+)"', reviewer.get(batch_page(DAG, "run-1").removeprefix(MOUNT)).text)
    assert link is not None
    assert reviewer.get(f"/{html.unescape(link[1])}").status_code == 200


def test_the_first_batch_is_beside_nothing(pipeline: Pipeline, reviewer: TestClient) -> None:
    pipeline.edit("job.yaml", "publish:", "compare: {}\npublish:")
    made = run_unchecked(pipeline)
    text = words(page(reviewer, made.batch.batch_id))
    assert "Readers saw nothing then" in text
    assert "No limit is broken." in text
    assert "Changed rows" not in text


def test_a_batch_of_another_dag_is_not_found_and_a_stranger_sees_nothing(
    pipeline: Pipeline, dsn: Any, reviewer: TestClient, stopped: int
) -> None:
    assert batch_of(pipeline, stopped).dag_id == DAG
    other = reviewer.get(compare_page("nightmill_other", stopped).removeprefix(MOUNT))
    assert other.status_code == 404
    assert "nightmill_other has no batch" in other.text
    assert reviewer.get(compare_page(DAG, 10**30).removeprefix(MOUNT)).status_code in (400, 404)

    def refuse() -> None:
        raise HTTPException(401, "Not authenticated")

    stranger = TestClient(create_app(refuse, lambda: session.connect(dsn(REVIEWER)), "s3://here"))
    assert page(stranger, stopped).status_code == 401


def test_only_the_reviewers_role_may_call_for_rows(pipeline: Pipeline, dsn: Any, stopped: int) -> None:
    call = "select count(*) from nightmill.changed_rows(2, 1, 1, array['title'], null, 5)"
    with session.connect(dsn(REVIEWER)) as conn:
        assert conn.execute(call).fetchall() == [(5,)]
        nothing = "select count(*) from nightmill.changed_rows(2, 99, 1, array['title'], null, 5)"
        assert conn.execute(nothing).fetchall() == [(0,)]
    for refused in (dsn(CONSOLE), pipeline.writer_dsn):
        with session.connect(refused) as conn, pytest.raises(Exception, match="permission denied"):
            conn.execute(call)
