"""The gate compare: the staged batch against what readers see. No job can configure it yet."""

from __future__ import annotations

from nightmill.domain.contract import JobDefinition
from nightmill.domain.gates import GateName
from nightmill.gates.port import Gate, Look, NotConfigured, Verdict


def configured(_live: JobDefinition) -> bool:
    """Whether the job compares."""
    return False


def evaluate(_look: Look) -> Verdict:
    """Compare."""
    return NotConfigured()


GATE = Gate(GateName.COMPARE, configured, evaluate)
