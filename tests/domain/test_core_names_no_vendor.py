"""The core decides by capabilities and snapshots: no vendor and no vendor's field stands in it, comments included."""

from __future__ import annotations

import re
from pathlib import Path

CORE = Path(__file__).parents[2] / "include" / "nightmill"
ROOMS = ("domain", "stages", "operations", "upkeep", "gates", "storage")
VENDORS = re.compile(r"openai|anthropic|input_file|output_file|custom_id", re.IGNORECASE)


def test_no_vendor_stands_in_the_core() -> None:
    files = [path for room in ROOMS for path in (CORE / room).rglob("*") if path.suffix in (".py", ".sql", ".yaml")]
    assert len(files) > 100
    found = [str(path.relative_to(CORE)) for path in files if VENDORS.search(path.read_text("utf-8"))]
    assert found == []
