"""The console's FastAPI app: server-rendered pages, read only. It knows nothing of Airflow; who may look is handed in.

Airflow mounts plugin apps without any authentication, so every route depends on `access`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse

from nightmill.console import comparing, pages
from nightmill.console.rendering import render
from nightmill.domain.addresses import BATCH, COMPARE, SHARD
from nightmill.domain.errors import NightmillError
from nightmill.services.environment import utc_now
from nightmill.storage.session import Connection, DatabaseError

# Inline styles only: whatever a text on the page holds, nothing is loaded and nothing runs.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

OpenLedger = Callable[[], AbstractContextManager[Connection]]


def create_app(access: Callable[..., Any], open_ledger: OpenLedger, payload_root: str) -> FastAPI:
    """`access` is a FastAPI dependency that refuses whoever may not see the task instances of the query's dag_id;
    `open_ledger` gives a read-only connection; raw files lie below `payload_root`."""
    app = FastAPI(title="nightmill", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(access)])

    @app.get(BATCH)
    def batch(dag_id: str, run_id: str) -> HTMLResponse:
        with open_ledger() as conn:
            page = pages.batch_page(conn, dag_id, run_id, utc_now())
        if page is None:
            raise HTTPException(
                HTTPStatus.NOT_FOUND,
                f"Run {run_id} of {dag_id} has no batch. freeze_snapshot makes it: look at that task's log.",
            )
        return _html("batch.html", page=page)

    @app.get(SHARD)
    def shard(dag_id: str, shard_id: int) -> HTMLResponse:
        with open_ledger() as conn:
            page = pages.shard_page(conn, payload_root, dag_id, shard_id, utc_now())
        if page is None:
            raise HTTPException(
                HTTPStatus.NOT_FOUND,
                f"{dag_id} has no shard {shard_id}. If the batch was planned anew, follow the link of a newer try.",
            )
        return _html("shard.html", page=page)

    @app.get(f"{COMPARE}/{{batch_id}}")
    def compare(dag_id: str, batch_id: int) -> HTMLResponse:
        with open_ledger() as conn:
            page = comparing.compare_page(conn, dag_id, batch_id, utc_now())
        if page is None:
            raise HTTPException(
                HTTPStatus.NOT_FOUND, f"{dag_id} has no batch {batch_id}. Follow the link of the batch's page."
            )
        return _html("comparison.html", page=page)

    _answer_faults(app)
    return app


def _answer_faults(app: FastAPI) -> None:
    """Every fault is a page that says what is wrong and what to do, in words that quote nothing."""

    @app.exception_handler(HTTPException)
    def refused(_: Request, fault: HTTPException) -> HTMLResponse:
        return _fault(fault.status_code, str(fault.detail))

    @app.exception_handler(RequestValidationError)
    def misspelt(_: Request, fault: RequestValidationError) -> HTMLResponse:
        names = ", ".join(str(one["loc"][-1]) for one in fault.errors())
        return _fault(400, f"The address lacks or misspells: {names}. Follow the link of a task instead.")

    @app.exception_handler(NightmillError)
    def ours(_: Request, fault: NightmillError) -> HTMLResponse:
        return _fault(503, f"{fault.cause} {fault.remedy}")

    @app.exception_handler(DatabaseError)
    def database(_: Request, fault: DatabaseError) -> HTMLResponse:
        return _fault(
            503,
            f"The ledger did not answer ({type(fault).__name__}, SQLSTATE {fault.sqlstate}). Check that the login of "
            "nightmill_console is a member of the role nightmill_console, and that init-db ran after the last upgrade.",
        )


def _fault(status: int, text: str) -> HTMLResponse:
    return _html("fault.html", status, title=HTTPStatus(status).phrase, text=text, log_in=status == 401)


def _html(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(render(template, **values), status, HEADERS)
