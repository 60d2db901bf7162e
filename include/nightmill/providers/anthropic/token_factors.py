"""How many tokens Anthropic's models make of a text. Imports no client."""

from __future__ import annotations

import re

# The API counts online only. Its models make more tokens of a text than our counter, and those from 4.7 on more than
# the earlier ones: users report about 1.1 to 1.2, and up to 1.5. Upper bounds, so that limits are kept.
_EARLIER, _LATER = 1.3, 1.6
_FIRST_OF_THE_LATER = (4, 7)
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![\d.])")


def token_factor(model: str) -> float:
    """Tokens of a model for one of our own counter, at the most."""
    version = _VERSION.match(model)
    if version is None:
        return _LATER
    return _EARLIER if (int(version[1]), int(version[2] or 0)) < _FIRST_OF_THE_LATER else _LATER
