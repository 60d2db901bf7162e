from __future__ import annotations

import pytest
from support.pipeline import Pipeline
from support.pipeline_fixtures import pipeline, simulator
from support.steps import run_unchecked

__all__ = ["pipeline", "shown", "simulator"]


@pytest.fixture
def shown(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Two batches were published, of different versions of the prompt, and commands find the ledger."""
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_DB", pipeline.writer_dsn)
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTMILL_OWNER", pipeline.admin_dsn)
    monkeypatch.setenv("NIGHTMILL_OBJECT_STORE", f"file://{pipeline.store}")
    monkeypatch.delenv("NIGHTMILL_OBJECT_STORE_CONN_ID", raising=False)
    run_unchecked(pipeline)
    pipeline.edit("prompt.md", "Summarise", "Describe")
    run_unchecked(pipeline, "run-2")
    return pipeline
