"""What the console's pages say to a person, seen with a login that may read as little as possible."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import psycopg
import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient
from support.gated import APPROVE, approve, ask, checked, settled
from support.pipeline import Pipeline
from support.rolled_back import two_versions
from support.steps import cancel, one_shard, run_unchecked, set_faults

from dev.stack.postgres import Server
from nightmill.console.app import create_app
from nightmill.domain.addresses import MOUNT, batch_page, shard_page
from nightmill.domain.errors import NightmillError, SourceError
from nightmill.gates.approve import Answer, answered
from nightmill.operations import rollback
from nightmill.operations.rollback import Wish
from nightmill.storage import batches, session
from nightmill.storage.session import Connection

DAG = "nightmill_test"
CONSOLE = "nightmill_test_console"
ROOT = "s3://evidence/here"
Login = Callable[[], AbstractContextManager[Connection]]


@pytest.fixture
def login(pipeline: Pipeline, postgres_server: Server) -> Login:
    """Connects as a login that has the console's role only."""
    postgres_server.create_login(CONSOLE)
    pipeline.sql(f"grant nightmill_console to {CONSOLE}")
    dsn = postgres_server.dsn(pipeline.admin_dsn.rsplit("/", 1)[1], CONSOLE)
    return lambda: session.connect(dsn)


@pytest.fixture
def browser(login: Login) -> TestClient:
    return TestClient(create_app(lambda: None, login, ROOT))


@pytest.fixture
def stranger(login: Login) -> TestClient:
    """Somebody whom Airflow does not know."""

    def refuse() -> None:
        raise HTTPException(401, "Not authenticated")

    return TestClient(create_app(refuse, login, ROOT))


@pytest.fixture
def stranded() -> TestClient:
    """The console of a ledger that does not answer."""
    return TestClient(create_app(lambda: None, lambda: session.connect("postgresql://127.0.0.1:1/none"), ROOT))


@pytest.fixture
def outdated() -> TestClient:
    """The console of a database in which something fails."""

    def fail() -> AbstractContextManager[Connection]:
        raise psycopg.errors.InsufficientPrivilege("the statement's text")

    return TestClient(create_app(lambda: None, fail, ROOT))


def text_of(browser: TestClient, address: str, status: int = 200) -> str:
    """The words of a page, as a screen reader has them."""
    answer = browser.get(address.removeprefix(MOUNT))
    assert answer.status_code == status, answer.text
    body = re.sub(r"(?s)<style>.*</style>", "", answer.text)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_a_waiting_shard_says_what_the_provider_says_and_when_it_looks_again(
    pipeline: Pipeline, browser: TestClient
) -> None:
    _, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, hold=True)
    pipeline.wake(shard, restarted=True)
    done = "select requests_done from nightmill.provider_batch where raw_status = 'in_progress'"
    while pipeline.sql(done) != [(20,)]:
        pipeline.wake(shard)
    page = text_of(browser, shard_page(DAG, shard))
    ((provider_id, file_id),) = pipeline.sql("select provider_id, input_ref from nightmill.provider_batch")
    assert "Why it waits" in page
    assert re.search(rf"has it as {provider_id} and says in_progress, for \d+ s; 20 of 20 requests are done", page)
    assert re.search(r"What its last wake-up saw: .*provider batch \d+: in_progress 20/20\.", page)
    assert re.search(r"wakes up by \d\d:\d\d:\d\d UTC, or as soon as the provider reports a change", page)
    assert f"staged input {file_id}" in page
    assert "prompt tokens of all runs wait at the provider for echo-1" in page
    assert "No request has come back so far." in page


def test_a_running_batch_sums_up_its_shards_and_links_to_each(pipeline: Pipeline, browser: TestClient) -> None:
    batch = pipeline.freeze()
    first, second = pipeline.plan(batch)
    set_faults(pipeline.simulator, hold=True)
    pipeline.wake(first, restarted=True)
    page = text_of(browser, batch_page(DAG, "run-1"))
    assert "2 shards: 1 not started, 1 under way." in page
    assert "and says" in page
    assert "results.notes shows nothing so far" in page
    answer = browser.get(batch_page(DAG, "run-1").removeprefix(MOUNT)).text
    for shard in (first, second):
        (link,) = re.findall(rf'href="(shard\?[^"]*shard_id={shard})"', answer)
        assert f"shard {shard} is " in text_of(browser, f"/{html.unescape(link)}")
    assert "It has not started: its task waits for a free slot" in text_of(browser, shard_page(DAG, second))


def test_a_shard_that_waits_for_its_next_round_says_so(pipeline: Pipeline, browser: TestClient) -> None:
    pipeline.edit("job.yaml", "base_delay_s: 0", "base_delay_s: 600")
    _, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[{"match": "-3$", "times": None, "status": 500}])
    for _ in range(3):
        pipeline.wake(shard)
    page = text_of(browser, shard_page(DAG, shard))
    assert "is RETRY_WAIT" in page
    assert "1 items wait for their next round" in page


def test_a_shard_whose_task_failed_says_so_and_why_and_not_that_it_is_at_work(
    pipeline: Pipeline, browser: TestClient
) -> None:
    _, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, hold=True)
    pipeline.wake(shard, restarted=True)
    store, pipeline.store = pipeline.store, pipeline.folder / "job.yaml"  # no folder
    set_faults(pipeline.simulator)
    with pytest.raises(NightmillError) as failed:
        pipeline.drive([shard], restarted=False)
    page = text_of(browser, shard_page(DAG, shard))
    assert "at work" not in page
    assert re.search(r"Its task failed \d+ s ago: ", page)
    assert failed.value.cause.rstrip(".")[:40] in page
    assert "clear run_shard of this shard" in page
    assert f"The task of shard {shard} failed: its page says why." in text_of(browser, batch_page(DAG, "run-1"))
    pipeline.store = store
    pipeline.wake(shard, restarted=True)
    assert "Its task failed" not in text_of(browser, shard_page(DAG, shard))


def test_a_shard_that_was_due_long_ago_is_not_said_to_be_at_work(pipeline: Pipeline, browser: TestClient) -> None:
    _, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, hold=True)
    pipeline.wake(shard, restarted=True)
    pipeline.sql("update nightmill.shard set wake_at = now() - interval '5 minutes'")
    page = text_of(browser, shard_page(DAG, shard))
    assert "It was due 5 min ago" in page
    assert "at work" not in page


def test_a_gate_that_nobody_configured_and_a_preview_are_called_so(pipeline: Pipeline, browser: TestClient) -> None:
    run_unchecked(pipeline, publish="no")
    page = text_of(browser, batch_page(DAG, "run-1"))
    assert "compare: not configured at" in page
    assert "compare: passed" not in page
    assert "It is a preview, and waits for a person: readers do not see it" in page


def test_a_blocked_batch_says_what_to_do_and_which_task_to_clear(pipeline: Pipeline, browser: TestClient) -> None:
    batch, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, hold=True)
    pipeline.wake(shard, restarted=True)
    with pipeline.env.ledger() as conn:
        batches.block(conn, batches.get(conn, batch.batch_id), "preflight", "The budget is used up.")
    for address in (batch_page(DAG, "run-1"), shard_page(DAG, shard)):
        page = text_of(browser, address)
        assert "The batch waits for a person: The budget is used up." in page
        assert "clear the task of preflight" in page


def test_a_batch_that_waits_for_an_approval_says_where_to_answer_and_afterwards_by_whom_it_was_given(
    pipeline: Pipeline, browser: TestClient
) -> None:
    pipeline.edit("job.yaml", "publish:", APPROVE)
    batch = settled(pipeline)
    checked(pipeline, batch)
    approve(pipeline, batch)
    page = text_of(browser, batch_page(DAG, "run-1"))
    assert "The batch waits for a person: waits for an approval, until 20" in page
    assert "Answer in Airflow, on the task approve" in page
    assert "approve: waiting at" in page
    ask(pipeline, batch, answered(Answer(True, "anna", pipeline.env.now())))
    assert "approve: passed by anna at" in text_of(browser, batch_page(DAG, "run-1"))


def test_a_batch_whose_freezing_failed_says_which_task_to_clear(pipeline: Pipeline, browser: TestClient) -> None:
    pipeline.sql("insert into documents values (null, '1', 'acme', 'Nameless.')")
    with pytest.raises(SourceError):
        pipeline.freeze()
    text = text_of(browser, batch_page(DAG, "run-1"))
    assert "Freezing failed (The source returns a row whose" in text
    assert "clear the task freeze_snapshot" in text


def test_a_published_batch_names_its_view_and_shows_the_receipt(pipeline: Pipeline, browser: TestClient) -> None:
    report = run_unchecked(pipeline)
    page = text_of(browser, batch_page(DAG, "run-1"))
    assert f"batch {report.batch.batch_id} is PUBLISHED" in page
    assert "select * from results.notes" in page
    assert "results.notes shows this batch since" in page
    assert "accepted 20" in page
    assert f"prompt tokens {report.spent.prompt:,}" in page
    assert report.receipt is not None
    assert f"paid ${report.receipt.paid:.4f}" in page
    assert "check_staging: passed" in page
    run_unchecked(pipeline, "run-2")
    assert "results.notes shows batch " in text_of(browser, batch_page(DAG, "run-1"))


def test_the_publications_of_the_view_and_what_is_held_stand_on_the_page(
    pipeline: Pipeline, browser: TestClient
) -> None:
    two_versions(pipeline)
    wish = Wish("notes", reason="<b>bad</b> prompt")
    rollback.run(pipeline.env, wish, rollback.look(pipeline.env, wish), "ann")
    page = text_of(browser, batch_page(DAG, "run-2"))
    assert "Held: ann rolled back batch 2 on " in page
    assert "python -m nightmill release notes" in page
    assert re.search(r"3 \S+ .* rollback, shown now took back 2 \(<b>bad</b> prompt\) 0 ann yes", page)
    assert re.search(r"2 \S+ .* publish 2 0 tester yes", page)


def test_a_settled_shard_shows_attempts_cost_and_where_the_raw_files_are(
    pipeline: Pipeline, browser: TestClient
) -> None:
    _, shard = one_shard(pipeline)
    set_faults(pipeline.simulator, line_error=[{"match": "-3$", "times": 1, "status": 500}])
    pipeline.drive([shard])
    page = text_of(browser, shard_page(DAG, shard))
    assert "It waits for nothing: the shard is settled" in page
    assert re.search(r"accepted – 20 [\d,]+ [\d,]+ 0", page)
    assert re.search(r"transient \S+ 1 ", page)
    assert re.search(r"Paid: \$\d", page)
    paths = re.findall(rf"Raw file: {ROOT}/(\S+)", page)
    assert len(paths) >= 2
    assert all((pipeline.store / path).is_file() for path in paths)


def test_a_cancelled_batch_waits_for_nothing(pipeline: Pipeline, browser: TestClient) -> None:
    batch, shard = one_shard(pipeline)
    cancel(pipeline, batch.batch_id)
    assert "It waits for nothing: it has ended (asked for)." in text_of(browser, batch_page(DAG, "run-1"))
    assert "is cancelled, its batch CANCELLED" in text_of(browser, shard_page(DAG, shard))


def test_what_people_typed_is_escaped_and_nothing_on_a_page_can_run(pipeline: Pipeline, browser: TestClient) -> None:
    note = "<script>alert('&')</script>"
    pipeline.freeze(note=note)
    answer = browser.get(batch_page(DAG, "run-1").removeprefix(MOUNT))
    assert "<script" not in answer.text
    assert note in html.unescape(answer.text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_a_shard_is_shown_below_its_own_dag_only(pipeline: Pipeline, browser: TestClient) -> None:
    """Airflow lets a person see DAGs one by one; the shard's number must not open another's."""
    _, shard = one_shard(pipeline)
    assert f"another has no shard {shard}" in text_of(browser, shard_page("another", shard), 404)
    doubled = f"{shard_page(DAG, shard)}&dag_id=another"
    assert f"another has no shard {shard}" in text_of(browser, doubled, 404)


def test_a_run_without_a_batch_says_where_to_look(pipeline: Pipeline, browser: TestClient) -> None:
    assert "freeze_snapshot makes it" in text_of(browser, batch_page(DAG, "never"), 404)


def test_a_mistyped_address_says_what_is_wrong(browser: TestClient) -> None:
    assert "shard_id" in text_of(browser, f"/shard?dag_id={DAG}&shard_id=x", 400)


def test_a_person_who_is_not_logged_in_sees_nothing(pipeline: Pipeline, stranger: TestClient) -> None:
    _, shard = one_shard(pipeline)
    for address in (batch_page(DAG, "run-1"), shard_page(DAG, shard), "/batch", "/shard"):
        page = text_of(stranger, address, 401)
        assert "Log in to Airflow" in page
        assert "notes" not in page
    assert stranger.get("/openapi.json").status_code == 404


def test_a_ledger_that_does_not_answer_is_said_with_the_remedy(stranded: TestClient, outdated: TestClient) -> None:
    assert "cannot be reached" in text_of(stranded, batch_page(DAG, "run-1"), 503)
    page = text_of(outdated, batch_page(DAG, "run-1"), 503)
    assert "InsufficientPrivilege" in page
    assert "statement's text" not in page


@pytest.mark.parametrize(
    "statement",
    [
        "select answer from nightmill.result",
        "select source_id from nightmill.item",
        "select message from nightmill.dead_letter",
        "select files from nightmill.contract",
        "select * from nightmill.rows_notes",
        "update nightmill.batch set note = 'x'",
    ],
)
def test_the_consoles_login_reads_no_text_and_writes_nothing(pipeline: Pipeline, login: Login, statement: str) -> None:
    pipeline.freeze()
    with login() as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute(statement)
