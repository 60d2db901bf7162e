"""status: where batches stand now, as values and in words. Reads only; not a task, a person's command."""

from nightmill.stages.status.standing import Standing, look
from nightmill.stages.status.words import block, line

__all__ = ["Standing", "block", "line", "look"]
