"""check_staging: Great Expectations on the batch's staging rows, before anybody can see them.

Count equality is always one of the checks. Reports hold rules, columns, numbers and a query to look with, never a text
of an answer (validators/check_report.py). The checks are read live, so that a rule that is too strict can be loosened
and the task cleared.
"""

from __future__ import annotations

import logging
from typing import Any

from nightmill.domain.contract import JobDefinition
from nightmill.domain.errors import Blocked, ConfigError
from nightmill.domain.gate_settings import Expectation
from nightmill.domain.keys import content_hash
from nightmill.domain.nearest import aside, listed
from nightmill.domain.output_module import json_schema
from nightmill.domain.states import BatchState
from nightmill.environment import Environment
from nightmill.storage import batches, contracts, gates, ledger, views
from nightmill.storage.batches import Batch
from nightmill.storage.ledger import Connection
from nightmill.validators.argument_types import library, refusals
from nightmill.validators.check_report import Staged, declared_words, described, verdict
from nightmill.validators.expectations import NO_ARGUMENTS

log = logging.getLogger(__name__)

STAGE = "check_staging"
LIMIT_S = 3600  # of one check
_NO_ADDRESS = "postgresql+psycopg://creator@ledger/ledger"  # it wants one; `creator` makes the connections


def run(env: Environment, live: JobDefinition, batch_id: int) -> bool:
    """Check the staging rows and record the verdict. Raises Blocked when a check fails. False for one at rest."""
    with env.ledger() as conn:
        batch = batches.get(conn, batch_id)
        batches.refuse_without_data(batch)
        if batch.at_rest:
            log.info("batch %s is %s: nothing to check", batch_id, batch.state)
            return False
        batch = batches.unblock(conn, batch, STAGE)
        conn.commit()
        checks = [_count_check(batch), *live.checks.expectations]
        staged = _staged(conn, batch)
        conn.commit()
        report = _validate(env.ledger_dsn, staged, checks)
        passed = all(one["passed"] for one in report)
        hashed = content_hash({"checks": [one.model_dump() for one in checks]}).hex()[:16]
        gates.record(conn, batch.holder, STAGE, passed, {"checks": report}, hashed)
        conn.commit()
        failed = [one for one in report if not one["passed"]]
        log.info("batch %s: %s of %s checks passed", batch_id, len(report) - len(failed), len(report))
        if not failed:
            return True
        reason = f"{len(failed)} of {len(report)} checks failed: {'; '.join(map(described, failed))}"
        if batch.state is BatchState.VALIDATING:
            batches.block(conn, batch, STAGE, reason)
        conn.commit()
        queries = dict.fromkeys(one["query"] for one in failed)
        raise Blocked(
            "\n".join((f"Batch {batch_id}: {reason}.", *(f"To look, as nightmill_owner: {one};" for one in queries))),
            "Look at the rows with these queries; then loosen checks.yaml and clear check_staging, or correct the "
            "prompt and trigger a new run.",
        )


def _staged(conn: Connection, batch: Batch) -> Staged:
    pinned = contracts.load(conn, batch.contract_id)
    columns = views.existing_columns(conn, batch.view_name)
    return Staged(batch.batch_id, batch.view_name, columns, declared_words(json_schema(pinned.output)))


def _count_check(batch: Batch) -> Expectation:
    counts = batch.counts or {}
    expected = counts.get("accepted", 0) + counts.get("reused", 0)
    return Expectation.model_validate({"type": "ExpectTableRowCountToEqual", "value": expected})


def _validate(dsn: str, staged: Staged, checks: list[Expectation]) -> list[dict[str, Any]]:
    gx = library()
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_postgres("ledger", connection_string=_NO_ADDRESS, kwargs=_reading_only(dsn))
    asset = source.add_query_asset(
        "staging", query=f'select * from nightmill."rows_{staged.view}" where part_id = {int(staged.batch_id)}'
    )
    suite = gx.ExpectationSuite("checks", expectations=[_expectation(gx, check) for check in checks])
    rows = asset.add_batch_definition_whole_table("batch").get_batch()
    try:
        result = rows.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0})
    finally:
        rows.data.execution_engine.close()
        source.get_engine().dispose()
    return [verdict(one, staged) for one in result.results]


def _reading_only(dsn: str) -> dict[str, Any]:
    """How SQLAlchemy connects: as everything does, whatever the address looks like. Some expectations take SQL of their
    own, and this is the ledger: each statement is prepared, so that it is one, in a READ ONLY transaction that nobody
    commits, and ends in time."""

    def opened() -> Connection:
        conn = ledger.connect(dsn, application="nightmill checks")
        conn.prepare_threshold = 0
        conn.execute("select pg_catalog.set_config('statement_timeout', %s, false)", (f"{LIMIT_S}s",))
        conn.commit()
        return conn

    return {"creator": opened, "execution_options": {"postgresql_readonly": True}}


def _expectation(gx: Any, check: Expectation) -> Any:
    kind = getattr(gx.expectations, check.type, None)
    if kind is None:
        known = [name for name in dir(gx.expectations) if name.startswith("Expect")]
        raise ConfigError(
            f"checks.yaml: Great Expectations has no {check.type}{aside(check.type, known)}.",
            "Use a class name of gx.expectations.",
        )
    unknown = sorted(check.arguments.keys() - kind.__fields__.keys())
    if unknown:
        known = sorted(kind.__fields__.keys() - NO_ARGUMENTS)
        raise ConfigError(
            f"checks.yaml: {check.type}: unknown argument {unknown[0]!r}{aside(unknown[0], known)}.",
            f"Its arguments are {listed(known)}.",
        )
    try:
        return kind(**check.arguments)
    except (TypeError, ValueError) as fault:
        said = "; ".join(": ".join((*map(str, place), problem)) for place, problem in refusals(fault, check.arguments))
    raise ConfigError(
        f"checks.yaml: {check.type}: {said}.",
        f"Correct it by the documentation of {check.type}; `python -m nightmill validate` names the line.",
    )
