"""Starts the simulator: as a process of its own, or in a thread of a test."""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from dev.practice_provider.app import application, build
from dev.practice_provider.books import Books
from dev.practice_provider.routes.context import Address, Simulator
from dev.practice_provider.settings import AnthropicSettings, Settings
from nightmill.domain.errors import ConfigError

_START_S = 30.0


class _Server(uvicorn.Server):
    """Calls back once connections are accepted, and can drop one client's connection without an answer."""

    def __init__(self, settings: Settings, on_started: Callable[[], None]) -> None:
        self.simulator: Simulator = build(settings, self.drop_connection)
        config = uvicorn.Config(
            application(self.simulator),
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=1,
            date_header=False,  # the clock that is shown is the fault plan's
        )
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    def drop_connection(self, client: Address) -> None:
        for connection in list(self.server_state.connections):
            if getattr(connection, "client", None) == client:
                transport: Any = getattr(connection, "transport", None)
                transport.abort()


@dataclass(frozen=True, slots=True)
class RunningSimulator:
    """A simulator in a thread of this process. `base_url` ends in /v1, as OpenAI's clients want it."""

    base_url: str
    port: int
    _server: _Server
    _thread: threading.Thread

    @property
    def control_url(self) -> str:
        """Where /_books and /_faults are. Anthropic's clients want this as their base URL."""
        return self.base_url.removesuffix("/v1")

    def books(self, *, summary: bool = False) -> dict[str, Any]:
        """The same as GET /_books."""
        books: Books = self._server.simulator.books
        return books.summary() if summary else books.summary() | {"requests": dict(books.requests())}

    def ask_to_stop(self) -> None:
        """What `stop` does, without waiting for it: uvicorn takes a fifth of a second."""
        self._server.should_exit = True

    def stop(self) -> None:
        """Ends running steps at their next commit and closes everything; the data folder can be opened again."""
        self.ask_to_stop()
        self._thread.join()


def start_in_thread(settings: Settings) -> RunningSimulator:
    """Returns when connections are accepted."""
    listener = _bind(settings)
    port = int(listener.getsockname()[1])
    started = threading.Event()
    try:
        server = _Server(settings, started.set)
    except BaseException:
        listener.close()
        raise
    thread = threading.Thread(target=server.run, args=([listener],), name="simulator", daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_S
    while not started.wait(0.1):
        if not thread.is_alive() or time.monotonic() > deadline:
            raise ConfigError("The simulator did not start.", "Look for its error above; is its data folder writable?")
    return RunningSimulator(f"http://{settings.host}:{port}/v1", port, server, thread)


def main(argv: list[str]) -> int:
    """Runs until SIGTERM or SIGINT. Prints one line with its address when it accepts connections."""
    arguments = _parser().parse_args(argv)
    try:
        settings = _settings(arguments)
        listener = _bind(settings)
        port = int(listener.getsockname()[1])
        server = _Server(settings, lambda: _announce(settings.host, port, arguments.port_file))
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again once it has shut down
            server.run([listener])
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _bind(settings: Settings) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"The simulator cannot listen on {settings.host}:{settings.port}: {error.strerror}.",
            "Give another --port, or --port 0 for a free one.",
        ) from error
    return listener


def _announce(host: str, port: int, port_file: Path | None) -> None:
    if port_file is not None:
        partial = port_file.with_name(f".{port_file.name}.{os.getpid()}")
        partial.write_text(f"{port}\n")
        partial.replace(port_file)
    sys.stdout.write(f"practice provider listening on http://{host}:{port}/v1\n")
    sys.stdout.flush()


def _settings(arguments: argparse.Namespace) -> Settings:
    values = {name: value for name, value in vars(arguments).items() if value is not None}
    values.pop("port_file", None)
    if "data_dir" not in values:
        values["data_dir"] = Path(tempfile.mkdtemp(prefix="nightmill-simulator-"))
    limits = values.pop("enqueued_tokens", None) or []
    values["enqueued_tokens_by_model"] = dict(limit for limit in limits if limit[0])
    values["enqueued_tokens"] = next((tokens for model, tokens in limits if not model), None)
    # Keys come by environment only: arguments are visible to everybody on the machine.
    values["upstream_key"] = os.environ.get("NIGHTMILL_SIMULATOR_UPSTREAM_KEY")
    return Settings(**values)


def _model_limit(text: str) -> tuple[str, int]:
    model, _, tokens = text.rpartition("=")
    return model, int(tokens)


def _parser() -> argparse.ArgumentParser:
    description = "A local provider that speaks OpenAI and Anthropic."
    parser = argparse.ArgumentParser(prog="python -m dev.practice_provider", description=description)
    add = parser.add_argument
    add("--host")
    add("--port", type=int, help="0 (default) picks a free one")
    add("--port-file", type=Path, help="write the port here once connections are accepted")
    add("--data-dir", type=Path, help="where everything is kept (default: a new temporary folder)")
    add("--api-key", help="refuse other keys with 401 (default: accept every key)")
    add("--batch-seconds", dest="batch_s", type=float, help="from create to end (default 12; 0 = as fast as possible)")
    add("--cancel-seconds", dest="cancel_s", type=float)
    add("--completion-window-seconds", dest="completion_window_s", type=float, help='what "24h" means (for expiry)')
    add("--requests-per-file", type=int)
    add("--bytes-per-file", type=int)
    add("--enqueued-tokens", type=_model_limit, action="append", metavar="[MODEL=]N", help="per model; repeatable")
    add("--count-tokens", choices=("exact", "approx"))
    add("--seed", type=int, help="of the order of lines")
    add("--workers", type=int)
    add("--gold", dest="gold_path", type=Path, help="JSONL of answers for gold-1")
    add("--upstream", dest="upstream_url", help="base URL behind upstream/<model>")
    add("--anthropic", type=AnthropicSettings.model_validate_json, help="Anthropic's own settings as JSON")
    add("--faults", help="a fault plan as JSON")
    return parser
