"""Names of request parameters, to find misspelt ones. A provider may know others: those go out as they are."""

from __future__ import annotations

from collections.abc import Iterator

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


def doubtful_parameters(provider: Provider, content: bytes) -> Iterator[Mistake]:
    """Warnings: parameters that look like a known one misspelt, and such as embeddings do not have. `content` is
    job.yaml, for the lines."""
    known = _EMBEDDINGS if provider.embeds else _CHAT
    for name in provider.parameters:
        if name in known:
            continue
        meant = nearest(name, known)
        if meant:
            problem = f"no parameter that is known here; did you mean {meant!r}?"
        elif provider.embeds and name in _CHAT:
            problem = f"no parameter of a request for {provider.task}"
        else:
            continue
        line = YamlLines(content).line(("provider", "parameters", name))
        remedy = "Correct it, unless the provider's documentation has a parameter of this name: it goes out as it is."
        yield Mistake("job.yaml", line, f"provider.parameters.{name}", problem, remedy)
