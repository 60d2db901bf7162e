"""Who triggers nightmill_cancel, _publish, _replay or _rollback must be allowed to do the same to the job's own DAG.

Their tasks cannot ask that: a task knows the name of the person, and no permissions. So it is asked where Airflow has
the person's token, in the API server, before its own route gets the request. Checked against apache-airflow-core 3.3.2:
the UI and REST trigger a run by this one route. A cleared task is refused by the task itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

ROUTE = re.compile(r"/dags/([^/]+)/dagRuns/?\Z")
CANCEL, PUBLISH, REPLAY = "nightmill_cancel", "nightmill_publish", "nightmill_replay"
ROLLBACK = "nightmill_rollback"
# What Airflow asks for where a run is marked as failed, and where one is triggered.
METHODS = {CANCEL: "PUT", PUBLISH: "POST", REPLAY: "POST", ROLLBACK: "POST"}
MOST_BYTES = 1_000_000


class TriggerAccess:
    """ASGI middleware around Airflow's API. Workers load plugins too, so nothing heavy is imported before a request
    that concerns it."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        operation = _operation(scope)
        if operation is None:
            await self._app(scope, receive, send)
            return
        from starlette.responses import JSONResponse

        body = await _body(receive)
        status, detail = (413, "The request is too large.") if body is None else await _judge(scope, operation, body)
        if detail:
            await JSONResponse({"detail": detail}, status)(scope, receive, send)
        else:
            await self._app(scope, _again(body or b"", receive), send)


def _operation(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    found = ROUTE.search(scope["path"])
    dag_id = found[1].strip().casefold() if found else ""  # a database may compare names so
    return dag_id if dag_id in METHODS else None


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None for one that is too large, or that its sender gave up."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body for the application behind this one, then whatever comes."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return again


async def _judge(scope: Scope, operation: str, body: bytes) -> tuple[int, str | None]:
    """Status and text of a refusal; no text where the request is passed on: Airflow itself refuses one without a valid
    token or body."""
    from airflow.api_fastapi.core_api.security import bearer_scheme, get_user
    from fastapi import HTTPException
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request

    request = Request(scope)
    try:
        user = await get_user(request, None, await bearer_scheme(request))
        conf = json.loads(body).get("conf")  # read as FastAPI reads it
    except RecursionError:  # where Airflow's own route stands, it may have room for it
        return 400, "The request is nested too deep."
    except (HTTPException, ValueError, AttributeError):
        return 0, None
    return await run_in_threadpool(_refusal, request, user, operation, conf if isinstance(conf, dict) else {})


def _refusal(request: Any, user: Any, operation: str, conf: dict[str, Any]) -> tuple[int, str | None]:
    from airflow.api_fastapi.core_api.security import DagAccessEntity, requires_access_dag
    from fastapi import HTTPException

    from nightmill.domain.errors import NightmillError
    from nightmill.storage.session import DatabaseError

    try:
        dags = _dags(operation, conf)
    except NightmillError as fault:
        return 503, f"{fault.cause} {fault.remedy}"
    except DatabaseError as fault:
        return 503, f"The ledger did not answer ({type(fault).__name__}): who may do this cannot be told. Try again."
    if dags is None:
        if operation == ROLLBACK:
            return 404, "There is no such view. It stands as `publish.view` in job.yaml."
        return 404, "There is no such batch. `python -m nightmill status` shows the last ones."
    for dag_id in dags:
        try:
            requires_access_dag(METHODS[operation], DagAccessEntity.RUN, dag_id)(request, user)
        except HTTPException as refusal:
            right = "change" if operation == CANCEL else "trigger"
            return refusal.status_code, f"{operation} needs the right to {right} runs of the job's own DAG. Ask for it."
    return 0, None


def _dags(operation: str, conf: dict[str, Any]) -> set[str] | None:
    """The DAGs that the request is about; none where it names nothing, which its task refuses. None for a batch or view
    that does not exist: one of that name can come to be before the task runs."""
    from nightmill.console.access import open_ledger
    from nightmill.domain.errors import IllegalTransition
    from nightmill.orchestration.listener import OURS
    from nightmill.storage import batches

    if operation == ROLLBACK:
        return _dags_of_view(conf.get("view"))
    named, batch = conf.get("dag_id") if operation == CANCEL else conf.get("job"), conf.get("batch")
    found = {named if operation == CANCEL else f"{OURS}{named}"} if isinstance(named, str) else set()
    if isinstance(batch, float) and batch.is_integer():
        batch = int(batch)  # a whole number to JSON's schema, and to the form
    if batch is None and (operation == CANCEL or not found):
        return found
    if batch is not None and not (isinstance(batch, int) and 0 < batch < 2**63):
        return None
    with open_ledger() as conn:
        number = batch if batch is not None else batches.newest_settled(conn, str(named))
        try:
            return found if number is None else found | {batches.get(conn, number).dag_id}
        except IllegalTransition:
            return None


def _dags_of_view(view: object) -> set[str] | None:
    from nightmill.console.access import open_ledger
    from nightmill.orchestration.listener import OURS
    from nightmill.storage import views

    if not isinstance(view, str):
        return set()
    with open_ledger() as conn:
        job = views.job_of(conn, view)
    return None if job is None else {f"{OURS}{job}"}
