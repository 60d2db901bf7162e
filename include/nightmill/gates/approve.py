"""The gate approve: a person says yes or no. No job can configure it yet."""

from __future__ import annotations

from nightmill.domain.contract import JobDefinition
from nightmill.domain.gates import GateName
from nightmill.gates.port import Gate, Look, NotConfigured, Verdict


def configured(_live: JobDefinition) -> bool:
    """Whether the job asks a person."""
    return False


def evaluate(_look: Look) -> Verdict:
    """Ask."""
    return NotConfigured()


GATE = Gate(GateName.APPROVE, configured, evaluate, for_previews=False)
