"""Sends dead letters of a batch again, as a child batch."""

from nightmill.operations.replay.taking_over import Prospect, ReplayRequest, configuration, look, run

__all__ = ["Prospect", "ReplayRequest", "configuration", "look", "run"]
