"""doctor: looks at everything a run needs and says the remedy for what is wrong. Sends no paid call, changes nothing
but one small object that it writes to the object store and deletes again. Not a task: a person's command.
"""

from nightmill.operations.doctor.findings import Doubt, Finding, Status, attempt
from nightmill.operations.doctor.jobs import PATIENCE_S, examine_jobs
from nightmill.operations.doctor.ledger import (
    DECISIVE,
    examine_deployment,
    examine_ledger,
    examine_maintenance,
    open_ledger,
)
from nightmill.operations.doctor.store import examine_store

__all__ = [
    "DECISIVE",
    "PATIENCE_S",
    "Doubt",
    "Finding",
    "Status",
    "attempt",
    "examine_deployment",
    "examine_jobs",
    "examine_ledger",
    "examine_maintenance",
    "examine_store",
    "open_ledger",
]
