"""run_shard as a deferrable sensor: one wake-up of the reconciler per start, deferred in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import BaseSensorOperator, Context

from nightmill.orchestration.failing import as_airflow_failure
from nightmill.orchestration.links import EvidenceLink


class ShardSensor(BaseSensorOperator):
    """Drives one shard. `shard_label` is what the UI shows of it; `folder` is read anew at each wake-up."""

    template_fields = ()
    operator_extra_links = (EvidenceLink(),)
    ui_color = "#f2e6c9"

    def __init__(self, *, shard_id: int, shard_label: str, folder: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.shard_id = shard_id
        self.shard_label = shard_label
        self.folder = folder

    def execute(self, context: Context) -> None:
        """A first run, a retry, or a task that somebody cleared."""
        self._drive(restarted=True)

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """The trigger saw something to do."""
        self.log.info("woken: %s", event.get("reason"))
        self._drive(restarted=False)

    def _drive(self, *, restarted: bool) -> None:
        from nightmill.jobs import job_folders
        from nightmill.orchestration.connections import environment
        from nightmill.orchestration.trigger import ShardTrigger
        from nightmill.stages.run_shard import Finished, wake

        with as_airflow_failure():
            live = job_folders.read(Path(self.folder))
            decision = wake(environment(), live, self.shard_id, restarted=restarted)
            if isinstance(decision, Finished) and decision.fault is not None:
                raise decision.fault
        self.log.info("%s", decision.line)
        if isinstance(decision, Finished):
            return
        interval_s = live.job.provider.poll_interval_s
        self.defer(
            trigger=ShardTrigger(self.shard_id, decision.conn_id, decision.adapter, interval_s),
            method_name="resume",
        )
