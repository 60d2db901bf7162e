"""A whole job under a fault: small in `make test`, with 2,000 items in `make sweep`."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest

from nightmill.storage.batches import Batch
from support.pipeline import Pipeline
from support.steps import counts
from support.vendors import VENDORS, speak, spoken

Answers = list[tuple[str, float]]
SMALL, LARGE = 200, 2_000


def sized(vendor: str, items: int) -> Any:
    """A job of that vendor with so many items; the large ones belong to the sweep."""
    marks = [pytest.mark.slow] if items == LARGE else []
    return pytest.param((vendor, items), id=f"{vendor}-{items}", marks=marks)


OPENAI_SIZES, ANTHROPIC_SIZES = ([sized(vendor, items) for items in (SMALL, LARGE)] for vendor in VENDORS)
SIZES = [*OPENAI_SIZES, *ANTHROPIC_SIZES]
SECONDS = 240


@pytest.fixture
def job(pipeline: Pipeline, request: pytest.FixtureRequest) -> tuple[Pipeline, int]:
    """A job over as many documents as the test says. Several files per shard, retries without a pause."""
    vendor, items = request.param
    speak(pipeline, VENDORS[vendor])
    pipeline.sql("delete from documents")
    pipeline.documents([(f"doc-{n:05}", "1", f"tenant-{n % 3}", f"Text number {n}. Pages.") for n in range(items)])
    limits = f"poll_interval_s: 1\n  limits: {{requests_per_file: {max(items // 4, 1)}}}"
    pipeline.edit("job.yaml", "poll_interval_s: 1", limits)
    return pipeline, items


def driven(pipeline: Pipeline) -> Batch:
    """Run every shard to its end."""
    batch = pipeline.freeze()
    pipeline.drive(pipeline.plan(batch), SECONDS)
    return batch


def all_accepted(pipeline: Pipeline, items: int) -> Batch:
    """Run every shard to its end; every item is accepted."""
    batch = driven(pipeline)
    assert counts(pipeline, batch) == {"accepted": items}
    return batch


def given(pipeline: Pipeline, answers: Answers) -> Answers:
    """Those that the job's vendor can give."""
    found = [(kind, rate) for kind, rate in answers if kind in spoken(pipeline).odd_kinds]
    return found or pytest.skip("this vendor has no such answers")


def odd(answers: Answers) -> list[dict[str, Any]]:
    """Faults side by side, so that none strikes an item that another one strikes."""
    starts = accumulate((rate for _, rate in answers), initial=0.0)
    return [{"kind": kind, "rate": rate, "start": start} for (kind, rate), start in zip(answers, starts, strict=False)]


def no_wrong_value(pipeline: Pipeline, batch: Batch) -> None:
    """Every accepted answer is what the model says of its own document. The model echoes, so what was repaired says
    something else by design: it is left out."""
    accepted = pipeline.sql(
        "select result.source_id, result.answer ->> 'title' from nightmill.outcome "
        "join nightmill.result using (result_id) where outcome.batch_id = %s and outcome.kind = 'accepted' "
        "and not exists (select from nightmill.attempt where attempt.batch_id = outcome.batch_id "
        "and attempt.ordinal = outcome.ordinal and attempt.class = 'output')",
        batch.batch_id,
    )
    assert accepted
    for source_id, title in accepted:
        assert title == f"Summarise this document.\n\nText number {int(str(source_id)[4:])}. Pages."
