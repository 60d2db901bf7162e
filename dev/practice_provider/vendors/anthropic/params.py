"""The check of a request's parameters. It takes place when the request is executed: a batch is created unchecked.

Source: the API reference of the Messages API and its SDK's types. The wording is this simulator's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dev.practice_provider.refusal import Refusal
from dev.practice_provider.vendors.anthropic.question import Params
from dev.practice_provider.vendors.anthropic.schema_subset import complaint

MOST_OUTPUT, MOST_OUTPUT_LONG = 64_000, 300_000
LONG_OUTPUT = "output-300k-2026-03-24"  # the beta header that allows the second
FIRST_GENERATION_WITHOUT_SAMPLING = 2  # echo-1 takes a temperature, echo-2 refuses it, as newer models do
EFFORTS = ("low", "medium", "high", "xhigh", "max")
_SAMPLING = ("temperature", "top_p", "top_k")
_KNOWN = frozenset(
    {
        *("model", "messages", "max_tokens", "system", "stop_sequences", "stream", "metadata", "service_tier"),
        *("thinking", "tools", "tool_choice", "output_config", "cache_control", "container", "inference_geo"),
        *("user_profile_id", "diagnostics", "speed", *_SAMPLING),
    }
)


def check(params: Params, knows_model: Callable[[str], bool], most_output: int) -> Refusal | None:
    """What is wrong with the parameters first; None for parameters that can be executed."""
    model = params.get("model")
    if not isinstance(model, str):
        return _bad("model: Field required")
    unknown = sorted(params.keys() - _KNOWN)
    if unknown:
        return _bad(f"{unknown[0]}: Extra inputs are not permitted")
    if not knows_model(model):
        return Refusal(404, f"model: {model}")
    found = (
        _output(params, most_output)
        or _sampling(params, model)
        or _messages(params)
        or _thinking(params)
        or _output_config(params)
        or _tools(params)
    )
    return None if found is None else _bad(found)


def _output(params: Params, most: int) -> str | None:
    given = params.get("max_tokens")
    if given is None:
        return "max_tokens: Field required"
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        return "max_tokens: Input should be greater than or equal to 1"
    if given > most:
        return f"max_tokens: {given} > {most}, which is the maximum allowed number of output tokens"
    stops = params.get("stop_sequences") or []
    if not isinstance(stops, list) or not all(isinstance(one, str) and one.strip() for one in stops):
        return "stop_sequences: each stop sequence must contain non-whitespace"
    for name in ("stream", "speed"):
        if params.get(name):
            return f"{name}: not supported here"
    return None


def _sampling(params: Params, model: str) -> str | None:
    generation = re.search(r"-(\d+)$", model)
    if generation is None or int(generation[1]) < FIRST_GENERATION_WITHOUT_SAMPLING:
        return None
    given = next((one for one in _SAMPLING if params.get(one) is not None), None)
    return None if given is None else f"{given}: not supported by this model"


def _messages(params: Params) -> str | None:
    messages = params.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages: at least one message is required"
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
            return f"messages.{number}.role: Input should be 'user', 'assistant' or 'system'"
        found = _content(message.get("content"))
        if found is not None:
            return f"messages.{number}.content: {found}"
    system = params.get("system")
    found = None if system is None or system == "" else _content(system)
    return None if found is None else f"system: {found}"


def _content(content: Any) -> str | None:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list) or not blocks:
        return "Input should be a text or a list of content blocks"
    for block in blocks:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            return "a content block needs a type"
        if block["type"] == "text" and not (isinstance(block.get("text"), str) and block["text"]):
            return "text content blocks must be non-empty"
    return None


def _thinking(params: Params) -> str | None:
    given = params.get("thinking")
    if given is None:
        return None
    kind = given.get("type") if isinstance(given, dict) else None
    if kind not in ("enabled", "adaptive", "disabled", "between_tools"):
        return "thinking.type: unknown"
    budget = given.get("budget_tokens")
    if kind == "enabled" and not (isinstance(budget, int) and 1024 <= budget < params["max_tokens"]):
        return "thinking.budget_tokens: must be at least 1024 and less than max_tokens"
    return None


def _output_config(params: Params) -> str | None:
    config = params.get("output_config")
    if config is None:
        return None
    if not isinstance(config, dict) or config.keys() - {"effort", "format"}:
        return "output_config: Extra inputs are not permitted"
    if config.get("effort") not in (None, *EFFORTS):
        return f"output_config.effort: Input should be one of {', '.join(EFFORTS)}"
    form = config.get("format")
    if form is None:
        return None
    if not isinstance(form, dict) or form.get("type") != "json_schema" or not isinstance(form.get("schema"), dict):
        return "output_config.format: needs the type json_schema and a schema"
    found = complaint(form["schema"])
    return None if found is None else f"output_config.format.schema: {found}"


def _tools(params: Params) -> str | None:
    tools, choice = params.get("tools"), params.get("tool_choice")
    if tools is None:
        return None if choice is None else "tool_choice: may only be specified while providing tools"
    if not isinstance(tools, list) or not all(isinstance(one, dict) and one.get("name") for one in tools):
        return "tools: every tool needs a name"
    if not all(isinstance(one.get("input_schema"), dict) for one in tools):
        return "tools: every tool needs an input_schema"
    names = [one["name"] for one in tools]
    if isinstance(choice, dict) and choice.get("type") == "tool" and choice.get("name") not in names:
        return f"tool_choice.name: no tool is called {choice.get('name')}"
    for number, tool in enumerate(tools):
        found = complaint(tool["input_schema"]) if tool.get("strict") else None
        if found is not None:
            return f"tools.{number}.input_schema: {found}"
    return None


def _bad(message: str) -> Refusal:
    return Refusal(400, message)
