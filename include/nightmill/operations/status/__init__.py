"""status: where batches stand now, as values and in words. Reads only; not a task, a person's command."""

from nightmill.operations.status.standing import Standing, look
from nightmill.operations.status.words import block, line

__all__ = ["Standing", "block", "line", "look"]
