"""Links from tasks to the console. Airflow stores each as an XCom when its task defers or ends; it holds ids only."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, BaseOperatorLink
from airflow.sdk.configuration import conf

from nightmill.domain import addresses


class BatchLink(BaseOperatorLink):
    """The batch of the task's run."""

    name = "Batch"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Runs in the worker."""
        return _below_airflow(addresses.batch_page(ti_key.dag_id, ti_key.run_id))


class PublishedViewLink(BatchLink):
    """The same page, by what a person looks for at publish."""

    name = "Published view"


class ReceiptLink(BatchLink):
    """The same page, by what a person looks for at report."""

    name = "Receipt"


class EvidenceLink(BaseOperatorLink):
    """The shard of a mapped task: why it waits, and what is at the provider."""

    name = "Provider batch evidence"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Runs in the worker, where `operator` is the unmapped sensor."""
        return _below_airflow(addresses.shard_page(ti_key.dag_id, operator.shard_id))


def attach(dag: DAG) -> None:
    """Give every task that has no link of its own one to the run's batch."""
    names = {"publish": PublishedViewLink(), "report": ReceiptLink()}
    for task in dag.tasks:
        if not task.operator_extra_links:
            task.operator_extra_links = (names.get(task.task_id, BatchLink()),)


def page_of(dag_id: str, run_id: str) -> str:
    """The address of a batch's page, for people."""
    return _below_airflow(addresses.batch_page(dag_id, run_id))


def _below_airflow(path: str) -> str:
    return str(conf.get("api", "base_url", fallback="/")).rstrip("/") + path
