"""Token counts: exact, offline, of any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightmill.jobs.tokens import TokenCounter

COUNTER = TokenCounter("gpt-4.1-mini")


# Counts that OpenAI's own encoder gives for o200k_base and cl100k_base.
@pytest.mark.parametrize(
    ("text", "new", "old"),
    [("hello world", 2, 2), ("", 0, 0), ("tiktoken is great!", 6, 6)],
)
def test_known_texts_have_their_known_counts(text: str, new: int, old: int) -> None:
    assert COUNTER.count(text) == new
    assert TokenCounter("gpt-4").count(text) == old


@pytest.mark.parametrize("marker", ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>"])
def test_a_special_marker_in_a_document_is_counted_as_plain_text(marker: str) -> None:
    assert COUNTER.count(marker) > 1
    assert COUNTER.count(f"before {marker} after") > COUNTER.count("before  after")


def test_a_document_of_more_than_a_million_characters_is_counted() -> None:
    page = "The parties agree as follows. "
    text = page * 40_000
    assert len(text) > 1_000_000
    assert abs(COUNTER.count(text) - 40_000 * COUNTER.count(page)) <= 40_000


@given(st.text(max_size=300))
def test_any_text_has_between_no_and_as_many_tokens_as_bytes(text: str) -> None:
    assert (0 if not text else 1) <= COUNTER.count(text) <= len(text.encode("utf-8"))


def test_models_use_their_own_encoding_and_unknown_ones_the_newest() -> None:
    chinese = "合同双方同意如下条款。" * 20
    new, old = TokenCounter("gpt-4o").count(chinese), TokenCounter("gpt-4-turbo").count(chinese)
    assert new < old
    for model in ("gpt-4.1", "gpt-5-mini", "my-own-model"):
        assert TokenCounter(model).count(chinese) == new
    for model in ("gpt-4", "gpt-3.5-turbo"):
        assert TokenCounter(model).count(chinese) == old


def test_a_request_costs_its_messages_and_their_frame() -> None:
    assert COUNTER.count_messages([]) == 3
    assert TokenCounter("embed-1", "embeddings").count_messages([{"role": "user", "content": "hello world"}]) == 2
    messages = [{"role": "system", "content": "hello world"}, {"role": "user", "content": "hello world"}]
    assert COUNTER.count_messages(messages) == 3 + 2 * (4 + 2)
