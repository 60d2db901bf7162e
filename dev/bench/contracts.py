"""Real contracts as source documents, because the lengths of documents decide how evenly shards can be cut."""

from __future__ import annotations

import gzip
import json
import random
from itertools import cycle, islice
from pathlib import Path

import psycopg

from dev.bench.site import WORDS

CUAD = Path("shared", "data", "cuad", "contracts.jsonl.gz")
# Of the logarithm of the lengths in characters of the 120 contracts: median 34,000, shortest 1,300, longest 290,000.
LOG_MEAN, LOG_DEVIATION = 10.27, 1.08
SHORTEST, LONGEST = 1_283, 289_615


def documents(count: int) -> list[str]:
    """`count` contracts, each a little different from all others; generated ones, and a line that says so, where the
    folder is missing."""
    file = next((one / CUAD for one in Path(__file__).resolve().parents if (one / CUAD).is_file()), None)
    if file is None:
        print(f"{CUAD} is not beside the repository: generated texts with lengths distributed like the contracts'.")
        return [generated(number) for number in range(count)]
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        texts = [str(json.loads(line)["text"]) for line in lines]
    return [f"Copy {number}. {text}" for number, text in enumerate(islice(cycle(texts), count))]


def generated(number: int) -> str:
    """Ordinary words, as many as a contract could have. The same for the same number."""
    chance = random.Random(number)
    length = min(max(round(chance.lognormvariate(LOG_MEAN, LOG_DEVIATION)), SHORTEST), LONGEST)
    words = chance.choices(WORDS, k=length // 4)  # more than enough: the words are longer on average
    return " ".join(words)[:length]


def fill(dsn: str, texts: list[str]) -> None:
    """Make the source table and COPY the texts in."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table documents (id text primary key, version text not null, body text not null)")
        with conn.cursor().copy("copy documents (id, version, body) from stdin") as copy:
            for number, text in enumerate(texts):
                copy.write_row((f"doc-{number:08d}", "1", text))
        conn.execute("vacuum analyze documents")
