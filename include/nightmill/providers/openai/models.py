"""The models that an account may use: a cheap call that shows whether address and key are right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import httpx2
import openai

from nightmill.domain.errors import NightmillError, ProviderRefused
from nightmill.providers.call_faults import malformed
from nightmill.providers.cleaning import MOST_MODEL, word
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.json_answers import MalformedAnswerError, json_object
from nightmill.providers.listing import time_in
from nightmill.providers.openai.client import open_client
from nightmill.providers.openai.faults import fault_of

_DOING = "listing models"


def clock_behind(connection: ProviderConnection) -> timedelta | None:
    """How far the provider's clock is behind ours, by the Date of its answer, whatever that says; None without one.
    Raises ProviderUnavailable where there is no answer."""
    client = open_client(connection, max_retries=0)
    before = datetime.now(UTC)
    try:
        there = time_in(_headers(client))
        return None if there is None else before - there
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        fault = fault_of(error, "asking for the time", connection, lagging=False)
    finally:
        client.close()
    raise fault


def _headers(client: openai.OpenAI) -> Mapping[str, str]:
    try:
        return client.models.with_raw_response.list().http_response.headers
    except openai.APIStatusError as error:
        return error.response.headers


def list_models(connection: ProviderConnection) -> frozenset[str]:
    """Ids from GET /models. Raises ProviderUnavailable or ProviderRefused (401, 403: the key; 404, 405, 501: none)."""
    client = open_client(connection, max_retries=0)
    fault: NightmillError
    try:
        answer = json_object(client.models.with_raw_response.list().http_response.content)
        entries = answer.get("data")
        listed = [entry for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict)]
        return frozenset(name for entry in listed if (name := word(entry.get("id"), MOST_MODEL)))
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        fault = fault_of(error, _DOING, connection, lagging=False)
        if isinstance(error, openai.APIStatusError) and error.status_code == 501:  # not for a while, as other 5xx
            cause = f"The provider of connection {connection.conn_id!r} lists no models (HTTP 501)."
            fault = ProviderRefused(cause, "Look the model's name up in its documentation.", 501)
    except MalformedAnswerError as error:
        fault = malformed(str(error), _DOING, connection)
    finally:
        client.close()
    raise fault
