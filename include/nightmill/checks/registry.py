"""The lists of checks. To add a check is to add its value here; docs/guides/write_a_check.md says how to write one."""

from __future__ import annotations

from typing import Final

from nightmill.checks.citation_rules import CITATIONS
from nightmill.checks.documents import FITS_WINDOW, NOT_EMPTY
from nightmill.checks.port import AnswerCheck, InputCheck
from nightmill.checks.schema import SCHEMA
from nightmill.checks.unfinished import UNFINISHED
from nightmill.checks.vector import DIMENSIONS, FINITE

# In this order; the first that refuses an answer gives the failure its code. What stands behind SCHEMA can rely on a
# parsed answer of the right shape.
ANSWER_CHECKS: Final[list[AnswerCheck]] = [UNFINISHED, FINITE, SCHEMA, DIMENSIONS, CITATIONS]

# In this order; those that look at the rendered request come after all others.
INPUT_CHECKS: Final[list[InputCheck]] = [NOT_EMPTY, FITS_WINDOW]
