"""The gate check_staging: Great Expectations on the batch's staging rows, before anybody can see them.

Count equality is always one of the checks. Reports hold rules, columns, numbers and a query to look with, never a text
of an answer (check_report.py). The checks are read live, so that a rule that is too strict can be loosened
and the task cleared.
"""

from __future__ import annotations

import logging
from typing import Any

from nightmill.domain.errors import ConfigError
from nightmill.domain.gates import GateName
from nightmill.domain.keys import content_hash
from nightmill.domain.suggestions import aside, listed
from nightmill.gates.argument_types import library, refusals
from nightmill.gates.check_report import COUNT_RULE, Staged, count_verdict, declared_words, described, verdict
from nightmill.gates.port import Gate, Look, Passed, Refused, Verdict, always
from nightmill.jobs.check.expectations import NO_ARGUMENTS
from nightmill.jobs.output.output_module import json_schema
from nightmill.jobs.settings.gate_settings import Expectation
from nightmill.storage import contracts, session, views
from nightmill.storage.batches import Batch
from nightmill.storage.session import Connection

log = logging.getLogger(__name__)

LIMIT_S = 3600  # of one check
_NO_ADDRESS = "postgresql+psycopg://creator@ledger/ledger"  # it wants one; `creator` makes the connections


def evaluate(look: Look) -> Verdict:
    """Check the staging rows."""
    batch = look.batch
    expected = _expected_rows(batch)
    checks = [_count_check(expected), *look.live.checks.expectations]
    staged = _staged(look.conn, batch)
    rows = views.count_rows(look.conn, batch.view_name, batch.batch_id)
    look.conn.commit()  # the checks take their time on a connection of their own
    if look.live.checks.expectations:
        report = _validate(look.env.ledger_dsn, staged, checks)
    else:  # Great Expectations is an extra, and takes 7 s to be imported
        report = [count_verdict(rows, expected, staged)]
    hashed = content_hash({"checks": [one.model_dump() for one in checks]}).hex()[:16]
    failed = [one for one in report if not one["passed"]]
    log.info("batch %s: %s of %s checks passed", batch.batch_id, len(report) - len(failed), len(report))
    if not failed:
        return Passed({"checks": report}, hashed)
    return Refused(
        f"{len(failed)} of {len(report)} checks failed: {'; '.join(map(described, failed))}",
        "Look at the rows with these queries; then loosen checks.yaml and clear check_staging, or correct the "
        "prompt and trigger a new run.",
        {"checks": report},
        hashed,
        queries=tuple(one["query"] for one in failed),
    )


def _staged(conn: Connection, batch: Batch) -> Staged:
    pinned = contracts.load(conn, batch.contract_id)
    columns = views.existing_columns(conn, batch.view_name)
    return Staged(batch.batch_id, batch.view_name, columns, declared_words(json_schema(pinned.output)))


def _expected_rows(batch: Batch) -> int:
    counts = batch.counts or {}
    return int(counts.get("accepted", 0) + counts.get("reused", 0))


def _count_check(expected: int) -> Expectation:
    return Expectation.model_validate({"type": COUNT_RULE, "value": expected})


def _validate(dsn: str, staged: Staged, checks: list[Expectation]) -> list[dict[str, Any]]:
    gx = library()
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_postgres("ledger", connection_string=_NO_ADDRESS, kwargs=_reading_only(dsn))
    asset = source.add_query_asset(
        "staging",
        query=f'select * from nightmill."rows_{staged.view}" where part_id = {int(staged.batch_id)} '
        "and gap_reason is null",
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
        conn = session.connect(dsn, application="nightmill checks")
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


GATE = Gate(GateName.CHECK_STAGING, always, evaluate)
