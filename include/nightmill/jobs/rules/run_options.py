"""What a run was asked to do, beside the values of its job's filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightmill.domain.priority import Priority
from nightmill.jobs.rules.publishing import Publishing


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a batch, as its params keep them.

    `limit` is in rows of the source; `reprocess`: answers of earlier runs are not taken; `publish` NO makes it a
    preview; `replace_intervals`: it may replace intervals of others that it covers. A replay has its parent's number
    and what of it is sent again (`replay`, as the ledger has it; None: whatever is not settled). `publish_run` is the
    run that publishes a preview.
    """

    limit: int | None = None
    priority: Priority = Priority.NORMAL
    reprocess: bool = False
    publish: Publishing = Publishing.AUTO
    replace_intervals: bool = False
    parent_batch: int | None = None
    replay: Mapping[str, Any] | None = None
    publish_run: str | None = None

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> RunOptions:
        """Read the params of a trigger form or of a batch. Other keys are filters' values."""
        return cls(
            limit=params.get("limit"),
            priority=Priority(params.get("priority") or Priority.NORMAL),
            reprocess=bool(params.get("reprocess")),
            publish=Publishing(params.get("publish") or Publishing.AUTO),
            replace_intervals=bool(params.get("replace_intervals")),
            parent_batch=params.get("parent_batch"),
            replay=params.get("replay"),
            publish_run=params.get("publish_run"),
        )

    @property
    def is_preview(self) -> bool:
        """Whether it was asked to leave the view as it is."""
        return self.publish is Publishing.NO
