"""Names of provider adapters that a job may write: those that come with nightmill, and installed ones.

An adapter is an entry point of the group `nightmill.providers`. Only names are looked at here: nothing is imported.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "nightmill.providers"
# Also found where nightmill itself is not installed, as in a checkout.
BUILT_IN = {
    "anthropic": "nightmill.providers.anthropic:ADAPTER",
    "openai": "nightmill.providers.openai:ADAPTER",
}


@cache
def adapters() -> dict[str, EntryPoint]:
    """Each known adapter by its name. One of nightmill's own cannot be replaced."""
    own = {name: EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()}
    return {entry.name: entry for entry in entry_points(group=GROUP)} | own
