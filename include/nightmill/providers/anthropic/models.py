"""What doctor asks: the models that an account may use, the provider's clock, and whether it has batches at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import anthropic
import httpx2

from nightmill.domain.errors import NightmillError
from nightmill.providers.anthropic.client import open_clients
from nightmill.providers.anthropic.faults import fault_of
from nightmill.providers.call_faults import malformed
from nightmill.providers.cleaning import MOST_MODEL, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.json_answers import MalformedAnswerError, json_object
from nightmill.providers.listing import time_in
from nightmill.providers.port import Routes

_PAGE_SIZE = 1000
BATCHES = "/v1/messages/batches"
_NOT_THERE = frozenset({404, 405, 501})


def list_models(connection: ProviderConnection) -> frozenset[str]:
    """Ids from GET /v1/models. Raises ProviderUnavailable or ProviderRefused."""
    doing = "listing models"
    answer = _answered(connection, doing, lambda client: client.models.with_raw_response.list(limit=_PAGE_SIZE))
    try:
        entries = json_object(answer.content).get("data")
    except MalformedAnswerError as error:
        fault = malformed(str(error), doing, connection)
    else:
        listed = [entry for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict)]
        return frozenset(name for entry in listed if (name := word(entry.get("id"), MOST_MODEL)))
    raise fault


def clock_behind(connection: ProviderConnection) -> timedelta | None:
    """How far the provider's clock is behind ours, by the Date of its answer, whatever that says; None without one."""
    before = datetime.now(UTC)
    answer = _answered(
        connection, "asking for the time", lambda client: client.models.with_raw_response.list(limit=1), any_status=True
    )
    there = time_in(answer.headers)
    return None if there is None else before - there


def batch_routes(connection: ProviderConnection) -> Routes:
    """Whether the server has message batches: gateways and other clouds answer the Messages API alone."""
    answer = _answered(
        connection,
        f"asking for {BATCHES}",
        lambda client: client.messages.batches.with_raw_response.list(limit=1),
        also=_NOT_THERE,
    )
    missing = answer.status_code in _NOT_THERE
    return Routes({BATCHES: answer.status_code} if missing else {}, {})


def _answered(
    connection: ProviderConnection,
    doing: str,
    send: Any,
    *,
    any_status: bool = False,
    also: frozenset[int] = frozenset(),
) -> httpx2.Response:
    """The answer, sent once; one of an error only where its status is asked for."""
    clients = open_clients(connection, max_retries=0)
    fault: NightmillError
    try:
        answer: httpx2.Response = send(clients.once).http_response
        return answer
    except anthropic.APIStatusError as error:
        if any_status or error.status_code in also:
            return error.response
        fault = fault_of(error, doing, connection, lagging=False)
    except (anthropic.AnthropicError, httpx2.HTTPError) as error:
        fault = fault_of(error, doing, connection, lagging=False)
    finally:
        clients.close()
    raise fault
