"""A view with a good and a bad publication, and the rollback of the bad one."""

from __future__ import annotations

from nightmill.operations import rollback
from nightmill.operations.rollback import Done, Wish
from support.pipeline import Pipeline
from support.steps import run_unchecked


def two_versions(pipeline: Pipeline) -> tuple[int, int]:
    """A good batch, and one with another prompt that is shown now."""
    good = run_unchecked(pipeline).batch.batch_id
    pipeline.edit("prompt.md", "Summarise", "Describe")
    return good, run_unchecked(pipeline, "run-2").batch.batch_id


def rolled_back(pipeline: Pipeline, request: str) -> Done:
    """What the DAG nightmill_rollback does at each try of its task."""
    done = rollback.done_before(pipeline.env, request)
    if done is not None:
        return done
    wish = Wish("notes", revoke=True)
    return rollback.run(pipeline.env, wish, rollback.look(pipeline.env, wish), "ann", request)
