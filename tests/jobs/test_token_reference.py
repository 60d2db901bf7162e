"""The counter against bpe-openai, the reference tokenizer.

Both count alike whatever Python calls a character. The some 4,700 that Unicode 17 added are letters to one and unknown
to the other, which can make a token of difference where one stands.
"""

from __future__ import annotations

import gzip
import json
import random
import string
import threading
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightmill.jobs.tokens import TokenCounter

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of importlib.resources
    from bpe_openai import _bindings

REFERENCE = {
    "gpt-4o": _bindings.tokenizer_for_encoding("o200k_base"),
    "gpt-4": _bindings.tokenizer_for_encoding("cl100k_base"),
}
DOCUMENTS = ("cuad/contracts.jsonl.gz", "zh_laws/laws.jsonl.gz")
MARKERS = ("<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "<|im_start|>")
BLOCKS = ((0x20, 0x250), (0x370, 0x600), (0x900, 0xA00), (0x3040, 0x3100), (0x4E00, 0x4F00), (0x1F300, 0x1F650))
SPACES_AND_MARKS = (
    "\0\t\n\r\x0b\x0c\x1c\x85\xa0\u1680\u180e\u2003\u2028\u2029\u200b\u200d\u0300\u0301\u3000\ufe0f\ufeff"
)
LETTERS = [chr(code) for first, end in BLOCKS for code in range(first, end)] + list(SPACES_AND_MARKS)
CHARACTERS = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
TRICKY = " \n\t\r'sdSDtTreveLLmM1.É中\u0301\u00a0\u2028_/-"
CODE = (
    "def f(x):\n",
    "    return ",
    "if (a != b) {\r\n",
    "}\n\n\n",
    "// ",
    "\t\t",
    "x += 1;",
    "0x1F",
    "aCamel",
    "HTTPServer",
)


def odd_text(draw: random.Random) -> str:
    """A text of up to 60 pieces of one kind."""
    kinds: tuple[Callable[[], str], ...] = (
        lambda: draw.choice(LETTERS),
        lambda: draw.choice(string.printable),
        lambda: draw.choice(TRICKY),
        lambda: draw.choice(CHARACTERS),
        lambda: draw.choice(string.digits) * draw.randint(1, 4) + draw.choice(("", ",", ".", " ")),
        lambda: draw.choice(CODE),
        lambda: draw.choice((*MARKERS, "<|", "|>", " ", "a")),
        lambda: draw.choice(" \n\r\ta") * draw.randint(1, 20),
    )
    piece = draw.choice(kinds)
    return "".join(piece() for _ in range(draw.randint(0, 60)))


@pytest.mark.parametrize("model", REFERENCE)
def test_odd_texts_are_counted_like_the_reference(model: str) -> None:
    draw, counter, reference = random.Random(7), TokenCounter(model), REFERENCE[model]
    texts = ["", *(odd_text(draw) for _ in range(20_000))]
    assert [text for text in texts if counter.count(text) != reference.count(text)] == []


@pytest.mark.parametrize("model", REFERENCE)
def test_every_character_is_split_off_its_neighbours_like_the_reference_does(model: str) -> None:
    counter, reference = TokenCounter(model), REFERENCE[model]
    texts = [f"aB{one}b A{one} 1{one}\n{one}{one}{one} {one}'s" for one in CHARACTERS]
    assert [text for text in texts if counter.count(text) != reference.count(text)] == []


@pytest.mark.parametrize("model", REFERENCE)
@pytest.mark.parametrize("run", ["a", " ", "\n ", "7", "ab", "é", "中文", "\U0001f600", "=", "<|endoftext|>", "\u0301"])
def test_long_runs_are_counted_like_the_reference(model: str, run: str) -> None:
    text = run * 30_000
    assert TokenCounter(model).count(text) == REFERENCE[model].count(text)


@pytest.mark.parametrize("model", REFERENCE)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_real_documents_are_counted_like_the_reference(model: str, name: str) -> None:
    counter, reference = TokenCounter(model), REFERENCE[model]
    assert [text[:80] for text in documents(name) if counter.count(text) != reference.count(text)] == []


def documents(name: str) -> Iterator[str]:
    """Texts that lie beside the repository, not in it."""
    for parent in Path(__file__).resolve().parents:
        path = parent / "shared" / "data" / name
        if path.is_file():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    yield from (value for value in json.loads(line).values() if isinstance(value, str))
            return
    pytest.skip(f"the documents (shared/data/{name} beside the repository) are absent")


@pytest.mark.parametrize("text", ["\ud800", "before \udc00 after"])
def test_half_a_surrogate_pair_is_no_text(text: str) -> None:
    with pytest.raises(UnicodeEncodeError):
        TokenCounter("gpt-4o").count(text)


def test_threads_share_a_counter() -> None:
    draw, counter = random.Random(11), TokenCounter("gpt-4o")
    texts = [odd_text(draw) * 40 for _ in range(400)]
    expected = [counter.count(text) for text in texts]
    counts: list[list[int]] = []

    def count_all() -> None:
        counts.append([counter.count(text) for text in texts])

    threads = [threading.Thread(target=count_all) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert counts == [expected] * 8
