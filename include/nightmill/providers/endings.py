"""The words that vendors have for how an answer ended: OpenAI, Anthropic, Mistral, Cohere, Google, DeepSeek, Zhipu,
AWS, vLLM, TGI. Words are compared without case; blanks and hyphens count as underscores. A dialect whose vendor means
something else by one of them reads it itself."""

from __future__ import annotations

from functools import lru_cache

from nightmill.domain.endings import Ending

WORDS = {
    Ending.FINISHED: "stop eos eos_token end_of_sequence end_turn stop_sequence stop_token stop_word stop_str complete "
    "completed finished finish done endoftext end_of_text",
    Ending.TRUNCATED: "length max_tokens max_length model_length max_output_tokens max_completion_tokens "
    "max_new_tokens token_limit error_limit context_length context_length_exceeded model_context_window_exceeded "
    "incomplete truncated repetition repetition_truncation",
    Ending.FILTERED: "content_filter content_filtered safety recitation blocklist prohibited_content spii language "
    "image_safety image_prohibited_content image_recitation model_armor guardrail_intervened sensitive moderation "
    "content_moderation blocked error_toxic flagged",
    Ending.REFUSED: "refusal refused",
    Ending.TOOLS: "tool_calls tool_call tool_use function_call malformed_function_call malformed_tool_call "
    "unexpected_tool_call too_many_tool_calls",
    Ending.FAILED: "error failed failure server_error internal_error engine_error network_error timeout time_limit "
    "abort aborted cancelled canceled user_cancel interrupted insufficient_system_resource overloaded pause_turn other "
    "malformed_response",
}
_BY_WORD = {word: ending for ending, words in WORDS.items() for word in words.split()}


@lru_cache(maxsize=1_000)
def ending(finish_reason: str | None) -> Ending:
    """What a finish reason says; UNKNOWN for a word that stands in no table, and for none."""
    if finish_reason is None:
        return Ending.UNKNOWN
    word = finish_reason.rpartition(".")[2]  # as Python prints an enum
    return _BY_WORD.get(word.strip().casefold().replace("-", "_").replace(" ", "_"), Ending.UNKNOWN)
