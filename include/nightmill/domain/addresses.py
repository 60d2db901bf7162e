"""Addresses of the console's pages below Airflow's own address: tasks link to them, the console serves them."""

from __future__ import annotations

from urllib.parse import urlencode

MOUNT = "/nightmill"
BATCH, SHARD, COMPARE = "/batch", "/shard", "/compare"


def batch_page(dag_id: str, run_id: str) -> str:
    """The page of a DAG run's newest batch."""
    return f"{MOUNT}{BATCH}?{urlencode({'dag_id': dag_id, 'run_id': run_id})}"


def shard_page(dag_id: str, shard_id: int) -> str:
    """The page of one shard."""
    return f"{MOUNT}{SHARD}?{urlencode({'dag_id': dag_id, 'shard_id': shard_id})}"


def compare_page(dag_id: str, batch_id: int) -> str:
    """The page of a batch's comparison with what was shown before it."""
    return f"{MOUNT}{COMPARE}/{batch_id}?{urlencode({'dag_id': dag_id})}"
