"""Request parameters that a job cannot set: what nightmill writes itself, and what buys answers that nobody reads.

Checked with the folder and not with each reading of job.yaml, so that what an older version pinned can still be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nightmill.domain.errors import Mistake
from nightmill.domain.suggestions import hint
from nightmill.jobs.check.yaml_lines import Place, YamlLines
from nightmill.jobs.settings.adapters import adapters
from nightmill.jobs.settings.job import Job
from nightmill.jobs.settings.provider_settings import RESERVES

_SECOND_ANSWERS = (
    "n best_of num_return_sequences num_generations num_completions num_choices num_samples candidate_count"
)
_PROBABILITIES = (
    "logprobs top_logprobs prompt_logprobs return_logprob return_logprobs response_logprobs n_probs top_n_tokens echo "
    "return_full_text"
)
_TOOLS = "tools functions"
_OTHER_FORMS = "audio stream_options background"
_SCHEMAS = (
    "guided_json guided_regex guided_choice guided_grammar structured_outputs json_schema output_format text format"
)
_LIMITS = (*RESERVES, "max_output_tokens", "max_new_tokens")
_HOLDERS = frozenset(
    ("extrabody", "generationconfig", "samplingparams", "outputconfig")
)  # bare names: parameters lie in them
_OFF: tuple[Any, ...] = (None, False, 0, [], {})


def _bare(name: str) -> str:
    return name.replace("_", "").casefold()


# Name -> the values that buy nothing, and what any other value would do.
_NOBODY_READS: Mapping[str, tuple[tuple[Any, ...], str]] = {
    **dict.fromkeys(_SECOND_ANSWERS.split(), ((None, 1), "buys more answers than the one that is read")),
    **dict.fromkeys(_PROBABILITIES.split(), (_OFF, "buys probabilities or an echo that nobody reads")),
    **dict.fromkeys(_TOOLS.split(), (_OFF, "lets the model call a tool that nobody runs, instead of answering")),
    **dict.fromkeys(_OTHER_FORMS.split(), (_OFF, "buys an answer in a form that nobody reads")),
    "modalities": ((None, ["text"], []), "buys an answer in a form that nobody reads"),
    "encoding_format": ((None, "float"), "buys an answer in a form that nobody reads"),
    "store": (_OFF, "has the provider keep answers that nobody reads there"),
    **dict.fromkeys(_SCHEMAS.split(), ((None,), "competes with the schema of output.py, which nightmill asks for")),
}

_BY_BARE_NAME = {_bare(name): rule for name, rule in _NOBODY_READS.items()}  # candidateCount is candidate_count


def parameter_mistakes(job: Job, content: bytes) -> Iterator[Mistake]:
    """What is wrong with provider.parameters. `content` is job.yaml, for the lines."""
    parameters, lines = job.provider.parameters, YamlLines(content)

    def wrong(names: Place, problem: str, remedy: str) -> Mistake:
        place: Place = ("provider", "parameters", *names)
        return Mistake("job.yaml", lines.line(place), ".".join(map(str, place)), problem, remedy)

    for names, value in _set(parameters):
        allowed, problem = _BY_BARE_NAME.get(_bare(str(names[-1])), ((value,), ""))
        if not any(value == one and type(value) is type(one) for one in allowed):
            yield wrong(names, problem, f"Take {names[-1]} out of provider.parameters.")
    limits = [name for name in _LIMITS if parameters.get(name) is not None]
    if job.provider.max_output_tokens is not None:
        limits.insert(0, "provider.max_output_tokens")
    for name in limits[1:]:
        problem = f"limits the answer's tokens a second time, after {limits[0]}"
        yield wrong((name,), problem, f"Keep {limits[0]} and take {name} out.")


def adapter_mistakes(job: Job, content: bytes) -> Iterator[Mistake]:
    """An adapter that is not installed."""
    name, known = job.provider.adapter, adapters()
    if name not in known:
        line = YamlLines(content).line(("provider", "adapter"))
        problem = f"expected one of {', '.join(sorted(known))}{hint(name, known)}"
        remedy = "Name one of these, or install the distribution that brings this adapter."
        yield Mistake("job.yaml", line, "provider.adapter", problem, remedy)


def _set(parameters: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    """Each parameter, also those that some servers take in an object of their own."""
    for name, value in parameters.items():
        yield (name,), value
        if _bare(str(name)) in _HOLDERS and isinstance(value, Mapping):
            yield from (((name, *names), inner) for names, inner in _set(value))
