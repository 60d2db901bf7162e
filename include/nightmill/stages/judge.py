"""compare and approve: gates that no job can configure yet. That is what is recorded and said; it opens them."""

from __future__ import annotations

import logging
from typing import Literal

from nightmill.environment import Environment
from nightmill.storage import batches, gates
from nightmill.storage.gates import NOT_CONFIGURED

log = logging.getLogger(__name__)


def run(env: Environment, gate: Literal["compare", "approve"], batch_id: int) -> str:
    """Record the gate's verdict for this generation and return it in words; a batch at rest passes by."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        if batch.at_rest:
            log.info("batch %s is %s: nothing to judge", batch_id, batch.state)
            return str(batch.state)
        gates.record(conn, batch.holder, gate, None, {"verdict": NOT_CONFIGURED}, NOT_CONFIGURED)
        conn.commit()
    log.info("%s: %s", gate, NOT_CONFIGURED)
    return NOT_CONFIGURED
