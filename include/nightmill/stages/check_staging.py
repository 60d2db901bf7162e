"""check_staging: Great Expectations on the batch's staging rows, before anybody can see them.

Count equality is always one of the checks. Reports hold rule names and counts, never a value of a row. The checks are
read live, so that a rule that is too strict can be loosened and the task cleared.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from nightmill.domain.contract import JobDefinition
from nightmill.domain.errors import Blocked, ConfigError
from nightmill.domain.job import Expectation
from nightmill.domain.keys import content_hash
from nightmill.domain.nearest import aside, listed
from nightmill.domain.states import BatchState
from nightmill.environment import Environment
from nightmill.storage import batches, gates, ledger
from nightmill.storage.batches import Batch
from nightmill.storage.connection_parameters import PATIENCE
from nightmill.validators.argument_types import library, refusals
from nightmill.validators.expectations import NO_ARGUMENTS

log = logging.getLogger(__name__)

STAGE = "check_staging"
LIMIT_S = 3600  # of one check


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
        report = _validate(env.ledger_dsn, batch, checks)
        passed = all(one["passed"] for one in report)
        hashed = content_hash({"checks": [one.model_dump() for one in checks]}).hex()[:16]
        gates.record(conn, batch.holder, STAGE, passed, {"checks": report}, hashed)
        conn.commit()
        failed = [one for one in report if not one["passed"]]
        log.info("batch %s: %s of %s checks passed", batch_id, len(report) - len(failed), len(report))
        if not failed:
            return True
        reason = f"{len(failed)} of {len(report)} checks failed: {'; '.join(_describe(one) for one in failed)}"
        if batch.state is BatchState.VALIDATING:
            batches.block(conn, batch, STAGE, reason)
        conn.commit()
        raise Blocked(
            f"Batch {batch_id}: {reason}.",
            "Look at the rows of this batch in the rows table; then loosen checks.yaml and clear this task, or correct "
            "the prompt and trigger a new run.",
        )


def _count_check(batch: Batch) -> Expectation:
    counts = batch.counts or {}
    expected = counts.get("accepted", 0) + counts.get("reused", 0)
    return Expectation.model_validate({"type": "ExpectTableRowCountToEqual", "value": expected})


def _validate(dsn: str, batch: Batch, checks: list[Expectation]) -> list[dict[str, Any]]:
    gx = library()
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_postgres(
        "ledger", connection_string=_sqlalchemy_url(dsn), kwargs=_reading_only(dsn)
    )
    asset = source.add_query_asset(
        "staging", query=f'select * from nightmill."rows_{batch.view_name}" where batch_id = {int(batch.batch_id)}'
    )
    suite = gx.ExpectationSuite("checks", expectations=[_expectation(gx, check) for check in checks])
    rows = asset.add_batch_definition_whole_table("batch").get_batch()
    try:
        result = rows.validate(suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0})
    finally:
        rows.data.execution_engine.close()
        source.get_engine().dispose()
    return [_verdict(one) for one in result.results]


def _reading_only(dsn: str) -> dict[str, Any]:
    """How SQLAlchemy connects. Some expectations take SQL of their own, and this is the ledger: each statement is
    prepared, so that it is one, in a READ ONLY transaction that nobody commits, and ends in time."""
    options = conninfo_to_dict(dsn).get("options") or ""
    timeout = f"{options} -c statement_timeout={LIMIT_S}s".strip()
    return {
        "connect_args": {"prepare_threshold": 0, "options": timeout},
        "execution_options": {"postgresql_readonly": True},
    }


def _sqlalchemy_url(dsn: str) -> str:
    """The ledger's address for a library that opens the connection itself, as it is opened everywhere."""
    from sqlalchemy.engine import make_url

    url = make_url("postgresql+psycopg://" + dsn.split("://", 1)[1])
    arguments = {name: value for name, value in ledger.arguments(dsn).items() if name in (*PATIENCE, "options")}
    return url.update_query_dict(arguments).render_as_string(hide_password=False)


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


def _verdict(one: Any) -> dict[str, Any]:
    """Rule, column and counts; everything else that Great Expectations reports could hold values."""
    config = one.expectation_config
    result = json.loads(json.dumps(one.result or {}, default=str))
    counts = {name: result[name] for name in ("element_count", "unexpected_count", "missing_count") if name in result}
    raised = _raised(one.exception_info or {})
    return {
        "rule": "".join(word.capitalize() for word in config.type.split("_")),  # as checks.yaml writes it
        "column": config.kwargs.get("column"),
        "passed": bool(one.success),
        "raised": raised,
        **counts,
    }


def _raised(info: dict[str, Any]) -> bool:
    """Whether the check itself failed; Great Expectations reports it flat or once per metric."""
    return bool(info.get("raised_exception")) or any(_raised(part) for part in info.values() if isinstance(part, dict))


def _describe(one: dict[str, Any]) -> str:
    column = f" on {one['column']}" if one["column"] else ""
    unexpected = f" ({one['unexpected_count']} unexpected)" if one.get("unexpected_count") is not None else ""
    return f"{one['rule']}{column}{unexpected}{' raised an error' if one['raised'] else ''}"
