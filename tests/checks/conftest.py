from __future__ import annotations

from support.pipeline_fixtures import pipeline, simulator, start_simulator

__all__ = ["pipeline", "simulator", "start_simulator"]
