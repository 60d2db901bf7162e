"""A provider that nightmill knows nothing of: an adapter outside the product, found by its entry point, runs a whole
job to its view."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pipeline import Pipeline
from support.steps import counts, one_shard, run_unchecked

from nightmill.domain.errors import BrokenJobFolder
from nightmill.jobs.check.definition import check_definition
from nightmill.jobs.settings.adapters import adapters
from nightmill.providers.answers import Answer
from nightmill.providers.registry import adapter, known_adapters
from nightmill.stages.run_shard import Finished
from nightmill.upkeep import orphans

HOME = Path(__file__).parents[1] / "third_provider"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The third party's distribution lies on the path, as if it had been installed."""
    monkeypatch.syspath_prepend(HOME)
    importlib.invalidate_caches()
    adapters.cache_clear()
    yield
    adapters.cache_clear()
    for name in [one for one in sys.modules if one.startswith("parcel_post")]:
        del sys.modules[name]


@pytest.fixture
def by_post(pipeline: Pipeline, installed: None) -> Pipeline:
    pipeline.edit(
        "job.yaml", "  model: echo-1\n", "  adapter: parcel_post\n  model: clerk-1\n  max_output_tokens: 50\n"
    )
    pipeline.edit("job.yaml", "  parameters: {max_completion_tokens: 50}\n", "")
    return pipeline


def test_its_entry_point_is_all_that_a_third_provider_needs(by_post: Pipeline) -> None:
    from parcel_post.office import opened

    assert "parcel_post" in known_adapters()
    with opened() as office:
        by_post.base_url = office.base_url
        made = run_unchecked(by_post)
    assert made.counts == {"accepted": 20}
    assert by_post.sql("select count(*), sum(pages) from results.notes") == [(20, 210)]
    assert set(office.answered.values()) == {1}
    assert max(one["slips"] for one in office.parcels.values()) == 7  # as its capabilities say
    assert all("It must match this JSON schema" in text for text in office.asked)  # it takes no schema of its own


def test_its_lost_replies_mislaid_slips_and_clumsy_answers_cost_no_item_and_nothing_twice(by_post: Pipeline) -> None:
    from parcel_post.office import opened

    with opened(loses_replies=1, mislays={"number 3."}, clumsy={"number 5."}) as office:
        by_post.base_url = office.base_url
        batch, shard = one_shard(by_post)
        by_post.drive([shard])
        assert counts(by_post, batch) == {"accepted": 20}
        assert {one: times for one, times in office.answered.items() if times > 1} == {"5": 2}
        adopted = by_post.sql("select count(*) from nightmill.provider_batch where adopted")
        assert adopted == [(1,)]
        assert isinstance(by_post.wake(shard), Finished)
        assert orphans.run(by_post.env, {"notes": by_post.live}) == []


def test_a_prompt_can_be_tried_with_one_plain_call(by_post: Pipeline) -> None:
    from parcel_post.office import opened

    with opened() as office:
        by_post.base_url = office.base_url
        with by_post.env.provider(by_post.live) as provider:
            asked = provider.dialect.encode([{"role": "user", "content": "Text number 4."}])
            said = provider.dialect.read(provider.transport.ask(asked))
    assert isinstance(said, Answer)
    assert said.text == '{"title": "Note 4", "pages": 4}'
    assert said.usage.prompt == 12


def test_without_its_distribution_the_job_folder_names_the_adapters_that_there_are(pipeline: Pipeline) -> None:
    adapters.cache_clear()
    pipeline.edit("job.yaml", "  model: echo-1\n", "  adapter: parcel_post\n  model: clerk-1\n")
    with pytest.raises(BrokenJobFolder, match=r"provider.adapter: expected one of .*openai"):
        check_definition(pipeline.live)


def test_it_lives_outside_the_product(installed: None) -> None:
    module = sys.modules[type(adapter("parcel_post")).__module__]
    assert "include" in str(module.__file__)  # the value's type is the port's
    assert str(importlib.import_module("parcel_post").__file__).startswith(str(HOME))
