"""Numbers in messages for people."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import zip_longest


def truncated(text: str, most: int) -> str:
    """The text in at most that many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def pluralised(number: int, noun: str) -> str:
    """`1 shard`, `2,000 batches`: the noun in its number. Regular nouns only."""
    plural = noun + ("es" if noun.endswith(("ch", "s", "x")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def batches_named(numbers: Sequence[int]) -> str:
    """`no batch`, `batch 3`, `batches 3, 4`."""
    if not numbers:
        return "no batch"
    return f"{'batch' if len(numbers) == 1 else 'batches'} {', '.join(map(str, numbers))}"


def aligned(rows: Sequence[Sequence[object]]) -> list[str]:
    """Rows as lines with aligned columns: the first to the left, the others to the right; numbers with commas."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in cells
    ]


def duration(seconds: float) -> str:
    """About how long, in the unit a person would use."""
    if seconds < 90:
        return pluralised(max(1, round(seconds)), "second")
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def dollars(amount: Decimal | str | None) -> str:
    """US dollars to a hundredth of a cent; None is a price that nobody knows."""
    return "price unknown" if amount is None else f"${Decimal(amount):,.4f}"


# For what a batch keeps as it was frozen: an edit of job.yaml changes the next run.
START_ANEW = "cancel this run and start a new one: a run keeps what it was frozen with, so clearing it changes nothing."
