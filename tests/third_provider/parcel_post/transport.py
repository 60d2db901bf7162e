"""How slips travel: a parcel goes out with one call, and its replies come back as lines."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

import parcel_post
from nightmill.domain.errors import ProviderRefused, ProviderUnavailable, SubmitUnknown
from nightmill.domain.snapshots import OUTPUT, Absent, BatchStatus, Found, LookupResult, Snapshot, Stopped
from nightmill.providers.answers import Reply, Unreadable
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.port import Handle, Listing, ResultFile, Results, SentCreate

_STATUSES = {"sorting": BatchStatus.RUNNING, "delivered": BatchStatus.ENDED, "returned": BatchStatus.ENDED}
_OURS = "nm-"


class Parcels:
    capabilities = parcel_post.CAPABILITIES
    id_key = "no"

    def __init__(self, connection: ProviderConnection) -> None:
        self._connection = connection

    def wrap(self, record_id: str, body: bytes) -> bytes:
        return b'{"no":%b,"slip":%b}\n' % (json.dumps(record_id).encode(), body)

    def unwrap(self, line: bytes) -> tuple[str, Reply] | Unreadable:
        try:
            told = json.loads(line)
            body, trouble = json.dumps(told.get("reply")).encode(), told.get("trouble")
            status = 503 if trouble and trouble["word"] == "mislaid" else 400 if trouble else 200
            return told["no"], Reply(msgspec.Raw(body), status, [trouble] if trouble else [])
        except (ValueError, KeyError, TypeError, AttributeError):
            return Unreadable("not a reply")

    def stage_input(self, path: Path) -> None:
        return None

    def create(self, requests: str | Path, token: str) -> Handle:
        slips = [json.loads(line) for line in Path(requests).read_bytes().split(b"\n") if line]
        try:
            made = self._call("POST", "/parcels", {"label": _OURS + token, "slips": slips})
        except ProviderUnavailable as fault:
            raise SubmitUnknown(fault.cause, "It is looked for by its label.") from None
        return Handle(made["parcel"], made["state"])

    def lookup(self, sent: SentCreate) -> LookupResult:
        mine = [one for one in self.list_ours(sent.since).found if one.token == sent.token]
        return Found(mine[0], mine[1:]) if mine else Absent()

    def list_ours(self, since: datetime) -> Listing:
        listed = [_snapshot(one) for one in self._call("GET", "/parcels")["parcels"]]
        return Listing([one for one in listed if one.token is not None], complete=True)

    def poll(self, provider_id: str) -> Snapshot:
        return _snapshot(self._call("GET", f"/parcels/{provider_id}"))

    def cancel(self, provider_id: str) -> Snapshot:
        return _snapshot(self._call("POST", f"/parcels/{provider_id}/return"))

    def results(self, provider_id: str, refs: Mapping[str, str], folder: Path, stem: str) -> Results:
        files = []
        for name, ref in refs.items():
            content = self._bytes("GET", ref)
            path = folder / f"{stem}.{name}"
            path.write_bytes(content)
            files.append(ResultFile(name, path, len(content)))
        return Results(files, expected_lines=self._call("GET", f"/parcels/{provider_id}")["done"])

    def discard_input(self, ref: str) -> None:
        raise AssertionError("nothing is ever staged")

    def ask(self, body: bytes) -> Reply:
        return Reply(msgspec.Raw(json.dumps(self._call("POST", "/desk", json.loads(body))).encode()), 200)

    def close(self) -> None:
        return

    def _call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._bytes(method, path, body))
        return told

    def _bytes(self, method: str, path: str, body: object = None) -> bytes:
        client = http.client.HTTPConnection(urlsplit(self._connection.base_url).netloc, timeout=10)
        try:
            client.request(method, path, None if body is None else json.dumps(body), {"key": self._connection.api_key})
            answer = client.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ProviderUnavailable(f"The post office did not answer ({type(error).__name__}).", "Wait.") from None
        finally:
            client.close()
        if answer.status == 404:
            raise ProviderUnavailable("The post office does not know it.", "Wait.")
        if answer.status >= 400:
            raise ProviderRefused("The post office refuses.", "Ask the clerk.", answer.status)
        return content


def _snapshot(told: Mapping[str, Any]) -> Snapshot:
    made_at = datetime.fromisoformat(told["made_at"])
    status = _STATUSES.get(told["state"], BatchStatus.UNKNOWN)
    return Snapshot(
        provider_id=told["parcel"],
        status=status,
        raw_status=told["state"],
        token=told["label"].removeprefix(_OURS) if told["label"].startswith(_OURS) else None,
        created_at=made_at,
        window_ends_at=made_at + timedelta(hours=6),
        results_until=made_at + timedelta(hours=48),
        stopped=Stopped.CANCELLED if told["state"] == "returned" else None,
        requests_done=told["done"],
        requests_answered=told["answered"],
        requests_total=told["slips"],
        result_refs={OUTPUT: f"/parcels/{told['parcel']}/replies"} if status is BatchStatus.ENDED else {},
        raw=dict(told),
    )
