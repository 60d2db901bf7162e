from __future__ import annotations

from support.fault_jobs import job
from support.pipeline_fixtures import pipeline, simulator, start_simulator

__all__ = ["job", "pipeline", "simulator", "start_simulator"]
