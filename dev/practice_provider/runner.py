"""Drives every unfinished batch, whether or not anybody asks about it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

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
from dev.practice_provider.file_store import FileStore
from dev.practice_provider.inference import Inference
from dev.practice_provider.input_index import InputIndex
from dev.practice_provider.ledger import Ledger
from dev.practice_provider.refused_files import refusals
from dev.practice_provider.settings import Settings
from dev.practice_provider.tokens import counter
from dev.practice_provider.validation import FileValidator, problem

logger = logging.getLogger(__name__)

TICK_S = 0.05


class BatchRunner:
    """One thread looks at all unfinished batches; a pool takes one step of each at a time.

    All state is in the ledger: a restarted runner goes on where the killed one had committed.
    """

    def __init__(
        self, settings: Settings, ledger: Ledger, files: FileStore, inference: Inference, faults: FaultBoard
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._files = files
        self._batches = BatchStore(ledger)
        self._inference = inference
        self._faults = faults
        self._executor = LineExecutor(ledger, inference, faults)
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
                finish(self._ledger, self._files, self._faults, batch, index, to, time.time())
                self._forget(batch)
            case Wait():
                pass

    def _validate(self, batch: BatchRow) -> None:
        validator = FileValidator(
            batch.endpoint,
            self._inference.knows,
            counter(self._settings.count_tokens),
            self._settings.requests_per_file,
            self._settings.embedding_inputs_per_batch,
        )
        checked = validator.check(self._files.path_of(batch.input_file_id))
        problems = checked.problems or refusals(self._faults, batch, self._files.path_of(batch.input_file_id))
        if problems:
            self._batches.fail(batch, problems, checked.lines, time.time())
            self._files.sweep(batch.input_file_id)
            return
        input_index.save(self._index_path(batch), checked.starts, checked.prompt_tokens)
        self._indexes[batch.id] = input_index.shuffled(checked.starts, checked.prompt_tokens, self._seed(checked.lines))
        limit = self._settings.enqueued_limit(checked.model)
        if not self._batches.accept(batch, checked.model, checked.lines, sum(checked.prompt_tokens), limit):
            message = (
                f"Enqueued token limit reached for {checked.model} in organization org-simulator. Limit: {limit:,}"
                " enqueued tokens. Please try again once some in_progress batches have been completed."
            )
            self._batches.fail(batch, [problem("token_limit_exceeded", message)], checked.lines, time.time())
            self._forget(batch)
            return
        self._faults.take_expiry(batch.id, checked.lines)

    def _index(self, batch: BatchRow) -> InputIndex:
        index = self._indexes.get(batch.id)
        if index is None:
            index = self._indexes[batch.id] = input_index.load(self._index_path(batch), self._seed(batch.total))
        return index

    def _index_path(self, batch: BatchRow) -> Path:
        return self._ledger.path_of(f"{batch.id}.index")

    def _seed(self, lines: int) -> str:
        return f"{self._settings.seed}:{lines}"

    def _forget(self, batch: BatchRow) -> None:
        if Status(self._batches.get(batch.id).status) in TERMINAL:
            self._indexes.pop(batch.id, None)
            self._index_path(batch).unlink(missing_ok=True)
