"""Names of request parameters, by the adapter that takes them: to find misspelt ones, and such as its requests cannot
have. What stands in no list goes out as it is: a provider may know others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nightmill.domain.errors import Mistake
from nightmill.domain.suggestions import nearest
from nightmill.jobs.check.yaml_lines import YamlLines
from nightmill.jobs.settings.provider_settings import Provider

_EMBEDDINGS = frozenset({"dimensions", "encoding_format", "truncate_prompt_tokens", "user"})
# OpenAI's (https://platform.openai.com/docs/api-reference/chat/create), then those of servers that speak its API.
_NAMES = """
audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata
modalities moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options

add_generation_prompt allowed_token_ids bad_words best_of chat_template chat_template_kwargs continue_final_message
dry_multiplier echo enable_thinking extra_body grammar guided_choice guided_decoding_backend guided_grammar
guided_json guided_regex guided_whitespace_pattern ignore_eos include_reasoning include_stop_str_in_output
json_schema length_penalty min_p min_tokens mirostat mirostat_eta mirostat_tau models n_predict presence_context
priority prompt_logprobs prompt_mode prompt_truncate_len provider random_seed reasoning reasoning_format
reasoning_split regex repeat_last_n repeat_penalty repetition_penalty return_token_ids route safe_prompt
skip_special_tokens spaces_between_special_tokens stop_token_ids structured_outputs tfs_z thinking thinking_budget
top_a top_k transforms truncate_prompt_tokens typical_p use_beam_search
"""
_CHAT = frozenset(_NAMES.split())
# The Messages API (https://docs.anthropic.com/en/api/messages); `betas` are header names, as its SDKs take them.
_MESSAGE_NAMES = """
betas cache_control container inference_geo max_tokens metadata output_config service_tier stop_sequences thinking
tool_choice tools user_profile_id
"""
_MESSAGES = frozenset(_MESSAGE_NAMES.split())
_NO_SAMPLING = "this provider's models take no sampling parameters: every request with it would fail"
_INSTEAD = {
    "max_completion_tokens": "Write provider.max_output_tokens.",
    "reasoning_effort": "Write it as output_config: {effort: ...}.",
    "stop": "Write it as stop_sequences: [...].",
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """What one task's requests may set. `refused`: what makes every one of them fail, with the reason."""

    known: frozenset[str]
    refused: Mapping[str, str] = field(default_factory=dict)
    needs_limit: bool = False  # a request without a limit to its answer's tokens fails


_OPENAI = {"chat": Parameters(_CHAT), "embeddings": Parameters(_EMBEDDINGS)}
_REFUSED = dict.fromkeys(_CHAT, "is a parameter of another provider's requests: every request with it would fail")
_ANTHROPIC = {
    "chat": Parameters(
        _MESSAGES,
        {name: why for name, why in _REFUSED.items() if name not in _MESSAGES}
        | dict.fromkeys(("temperature", "top_p", "top_k"), _NO_SAMPLING),
        needs_limit=True,
    )
}
BY_ADAPTER: Mapping[str, Mapping[str, Parameters]] = {"openai": _OPENAI, "anthropic": _ANTHROPIC}


def vendor_mistakes(provider: Provider, content: bytes) -> Iterator[Mistake]:
    """What would make every request of the job fail at its provider. `content` is job.yaml, for the lines."""
    tasks, lines = BY_ADAPTER.get(provider.adapter), YamlLines(content)
    if tasks is None:
        return
    if provider.task not in tasks:
        problem = f"the adapter {provider.adapter} takes no requests for {provider.task}"
        remedy = f"Use one of: {', '.join(tasks)}; or another adapter."
        yield Mistake("job.yaml", lines.line(("provider", "task")), "provider.task", problem, remedy)
        return
    rules = tasks[provider.task]
    for name in provider.parameters:
        if name in rules.refused:
            line, remedy = lines.line(("provider", "parameters", name)), _INSTEAD.get(name, f"Take {name} out.")
            yield Mistake("job.yaml", line, f"provider.parameters.{name}", rules.refused[name], remedy)
    if rules.needs_limit and provider.limited_by is None:
        problem = f"the adapter {provider.adapter} needs a limit to the tokens of each answer"
        remedy = "Write max_output_tokens, such as 1000, below `provider`."
        yield Mistake("job.yaml", lines.line(("provider",)), "provider.max_output_tokens", problem, remedy)


def doubtful_parameters(provider: Provider, content: bytes) -> Iterator[Mistake]:
    """Warnings: parameters that look like a known one misspelt, and such as embeddings do not have. `content` is
    job.yaml, for the lines."""
    rules = BY_ADAPTER.get(provider.adapter, {}).get(provider.task)
    if rules is None:
        return
    for name in provider.parameters:
        if name in rules.known:
            continue
        meant = nearest(name, rules.known)
        if meant:
            problem = f"no parameter that is known here; did you mean {meant!r}?"
        elif provider.embeds and name in _CHAT:
            problem = f"no parameter of a request for {provider.task}"
        else:
            continue
        line = YamlLines(content).line(("provider", "parameters", name))
        remedy = "Correct it, unless the provider's documentation has a parameter of this name: it goes out as it is."
        yield Mistake("job.yaml", line, f"provider.parameters.{name}", problem, remedy)
