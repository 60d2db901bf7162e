"""Drives every unfinished batch, whether or not anybody asks about it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from dev.practice_provider import input_index
from dev.practice_provider.batch_states import (
    TERMINAL,
    BatchRow,
    Execute,
    Finish,
    Move,
    Pace,
    Status,
    Step,
    Validate,
    Wait,
    next_step,
)
from dev.practice_provider.batch_store import BatchStore
from dev.practice_provider.completion import finish
from dev.practice_provider.execution import LineExecutor
from dev.practice_provider.fault_board import FaultBoard
from dev.practice_provider.input_index import InputIndex
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.settings import Settings
from dev.practice_provider.vendor import Vendors

logger = logging.getLogger(__name__)

TICK_S = 0.05


class BatchRunner:
    """One thread looks at all unfinished batches; a pool takes one step of each at a time.

    All state is in the ledger: a restarted runner goes on where the killed one had committed.
    """

    def __init__(self, settings: Settings, ledger: Ledger, faults: FaultBoard, vendors: Vendors) -> None:
        self._settings = settings
        self._ledger = ledger
        self._batches = BatchStore(ledger)
        self._vendors = vendors
        self._faults = faults
        self._executor = LineExecutor(ledger, vendors, faults)
        self._pace = Pace(settings.batch_s, settings.cancel_s)
        self._indexes: dict[str, InputIndex] = {}
        self._busy: set[str] = set()
        self._wake = threading.Event()
        self._stopping = False
        self._pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="simulator-batch")
        self._thread = threading.Thread(target=self._watch, name="simulator-runner", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something changed: look now instead of at the next tick."""
        self._wake.set()

    def stop(self) -> None:
        """Return when no step is running any more."""
        self._stopping = True
        self.wake()
        self._thread.join()
        self._pool.shutdown(wait=True)

    def _watch(self) -> None:
        while not self._stopping:
            try:
                self._look()
            except Exception:
                logger.exception("unfinished batches could not be read; tried again")
            self._wake.wait(TICK_S)
            self._wake.clear()

    def _look(self) -> None:
        for batch in self._batches.unfinished():
            if batch.id not in self._busy and not isinstance(self._step(batch), Wait):
                self._busy.add(batch.id)
                self._pool.submit(self._advance, batch.id)

    def _step(self, batch: BatchRow) -> Step:
        return next_step(batch, time.time(), self._pace, self._faults.plan, self._faults.stop_at(batch.id))

    def _advance(self, batch_id: str) -> None:
        more = False
        try:
            # Read again: the row that the watcher saw may be older than the step before this one.
            batch = self._batches.get(batch_id)
            if Status(batch.status) in TERMINAL:
                return
            self._take(batch)
            batch = self._batches.get(batch_id)
            # Waking for every step would make the watcher look at all batches for each line of each of them.
            more = Status(batch.status) not in TERMINAL and not isinstance(self._step(batch), Wait)
        except Exception:
            logger.exception("a step of %s failed; it is tried again", batch_id)
            time.sleep(1.0)
        finally:
            self._busy.discard(batch_id)
            if more:
                self.wake()

    def _take(self, batch: BatchRow) -> None:
        match self._step(batch):
            case Validate():
                self._validate(batch)
            case Move(to):
                self._batches.move(batch, to, time.time())
            case Execute(due):
                self._executor.execute(batch, self._index(batch), due)
            case Finish(to):
                index = self._index(batch) if batch.validated else None
                finish(self._ledger, self._vendors[batch.endpoint], self._faults, batch, index, to, time.time())
                self._forget(batch)
            case Wait():
                pass

    def _validate(self, batch: BatchRow) -> None:
        if self._vendors[batch.endpoint].admit(batch):
            self._faults.take_expiry(batch.id, self._batches.get(batch.id).total)
        else:
            self._forget(batch)

    def _index(self, batch: BatchRow) -> InputIndex:
        index = self._indexes.get(batch.id)
        if index is None:
            index = self._indexes[batch.id] = input_index.load(
                input_index.path_of(self._ledger, batch.id), self._seed(batch.total)
            )
        return index

    def _seed(self, lines: int) -> str:
        return f"{self._settings.seed}:{lines}"

    def _forget(self, batch: BatchRow) -> None:
        if Status(self._batches.get(batch.id).status) in TERMINAL:
            self._indexes.pop(batch.id, None)
            input_index.path_of(self._ledger, batch.id).unlink(missing_ok=True)
