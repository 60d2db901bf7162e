"""compare and approve: gates that a job can configure. Not configured is recorded as a pass, and said."""

from __future__ import annotations

import logging
from typing import Literal

from nightmill.environment import Environment
from nightmill.storage import batches, gates

log = logging.getLogger(__name__)

NOT_CONFIGURED = "not configured"


def run(env: Environment, gate: Literal["compare", "approve"], batch_id: int) -> str:
    """Record the gate's verdict for this generation and return it in words; a batch that ended passes by."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        if batch.ended:
            log.info("batch %s is %s: nothing to judge", batch_id, batch.state)
            return str(batch.state)
        gates.record(conn, batch.holder, gate, True, {"verdict": NOT_CONFIGURED}, NOT_CONFIGURED)
        conn.commit()
    log.info("%s: %s", gate, NOT_CONFIGURED)
    return NOT_CONFIGURED
