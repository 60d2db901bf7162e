"""Embedding jobs: provider.task makes a job one, and its prompt and output model must fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightmill.domain.errors import Mistake
from nightmill.jobs.check.yaml_lines import Place, YamlLines
from nightmill.jobs.output.columns import Column
from nightmill.jobs.prompt.prompt import Prompt
from nightmill.jobs.settings.job import Job
from nightmill.jobs.settings.provider_settings import EMBEDDINGS

VECTOR = "vector"
_COLUMNS = [Column(VECTOR, "double precision[]")]


def dimensions_of(job: Job) -> int | None:
    """How many numbers each vector must have; None when the job does not say."""
    if job.validation.embedding is not None:
        return job.validation.embedding.dimensions
    asked = job.provider.parameters.get("dimensions")
    return asked if isinstance(asked, int) else None


def embedding_mistakes(job: Job, prompt: Prompt, columns: Sequence[Column], content: bytes) -> Iterator[Mistake]:
    """What does not fit the task. `content` is job.yaml, for the lines."""
    lines = YamlLines(content)

    def wrong(place: Place, problem: str, remedy: str) -> Mistake:
        return Mistake("job.yaml", lines.line(place), ".".join(map(str, place)), problem, remedy)

    rule, parameters = job.validation.embedding, job.provider.parameters
    if not job.provider.embeds:
        if rule is not None:
            remedy = f"Take it out, or set provider.task: {EMBEDDINGS}."
            yield wrong(("validation", "embedding"), "this is no embedding job", remedy)
        return
    asked = parameters.get("dimensions")
    place: Place = ("provider", "parameters", "dimensions")
    if "dimensions" in parameters and (type(asked) is not int or asked < 1):
        yield wrong(place, "expected a whole number >= 1", "Numbers in each vector, as the model offers them.")
    elif asked is not None and rule is not None and rule.dimensions != asked:
        problem = f"{asked} numbers are asked for and validation.embedding.dimensions wants {rule.dimensions}"
        yield wrong(place, problem, "Write the same number, or leave validation.embedding out.")
    if job.validation.citations:
        yield wrong(("validation", "citations"), "a vector quotes nothing", "Take it out.")
    yield from _unfit(prompt, columns)


def _unfit(prompt: Prompt, columns: Sequence[Column]) -> Iterator[Mistake]:
    if prompt.roles != ("user",):
        problem = f"an embedding job embeds one text, and here are the messages {', '.join(prompt.roles)}"
        yield Mistake("prompt.md", None, None, problem, "Remove the marker lines and what is not to be embedded.")
    if list(columns) != _COLUMNS:
        remedy = f"Give Output this one field: `{VECTOR}: list[float]`."
        yield Mistake("output.py", None, "Output", f"a request for {EMBEDDINGS} is answered with a vector only", remedy)
