"""What Airflow's plugin manager mounts. Workers load plugins for every task too, so nothing heavy is imported here."""

from __future__ import annotations

from typing import Any

from nightmill.domain.addresses import MOUNT


class LateApp:
    """An ASGI app that becomes the console at its first request, which only the API server gets."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if self._app is None:
            from nightmill.console.access import build

            self._app = build()
        await self._app(scope, receive, send)


def mounted() -> dict[str, Any]:
    """The console as an entry of a plugin's fastapi_apps."""
    return {"name": "nightmill", "app": LateApp(), "url_prefix": MOUNT}
