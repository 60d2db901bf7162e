"""What a Messages request asks, in the words that the models of this simulator read: an OpenAI chat body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dev.practice_provider.tokens import Count

Params = Mapping[str, Any]


def question(params: Params) -> dict[str, Any]:
    """Also of parameters that are not valid: faults and books name them by what they ask."""
    given = params.get("messages")
    messages = [_message(one) for one in given] if isinstance(given, list) else []
    if params.get("system"):
        messages.insert(0, {"role": "system", "content": _plain(params["system"])})
    asked = {"model": params.get("model"), "messages": messages, "max_tokens": params.get("max_tokens")}
    schema = _schema(params)
    if schema is not None:
        asked["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    return asked


def forced_tool(params: Params) -> Mapping[str, Any] | None:
    """The tool that the answer must call: the one named, or the only one where some call is demanded."""
    choice, tools = params.get("tool_choice"), params.get("tools")
    if not isinstance(choice, dict) or not isinstance(tools, list):
        return None
    if choice.get("type") == "any":
        return next((one for one in tools if isinstance(one, dict)), None)
    named = [one for one in tools if isinstance(one, dict) and one.get("name") == choice.get("name")]
    return named[0] if choice.get("type") == "tool" and named else None


def cached_text_tokens(params: Params, count: Count) -> tuple[int, bool]:
    """Tokens of the texts up to the last block that is marked for the cache, and whether it is kept for an hour."""
    texts, marked, hour = list[str](), 0, False
    for text, mark in _texts(params):
        texts.append(text)
        if mark is not None:
            marked, hour = len(texts), mark.get("ttl") == "1h"
    whole = params.get("cache_control")
    if isinstance(whole, dict):
        marked, hour = len(texts), whole.get("ttl") == "1h"
    return sum(count(text) for text in texts[:marked]), hour


def _texts(params: Params) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """The texts in the order of the prompt, each with the mark behind it."""
    contents = [params.get("system"), *(one.get("content") for one in params.get("messages") or ())]
    for content in contents:
        if isinstance(content, str):
            yield content, None
        for block in content if isinstance(content, list) else ():
            mark = block.get("cache_control")
            yield str(block.get("text") or ""), mark if isinstance(mark, dict) else None


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    return {"role": message.get("role"), "content": _plain(message.get("content"))}


def _plain(content: Any) -> Any:
    """Text blocks as one text, so that the same words are the same question however they are cut and marked."""
    if isinstance(content, list) and all(isinstance(one, dict) and one.get("type") == "text" for one in content):
        return "".join(str(one.get("text") or "") for one in content)
    return content


def _schema(params: Params) -> Mapping[str, Any] | None:
    tool = forced_tool(params)
    if tool is not None:
        found = tool.get("input_schema")
    else:
        config = params.get("output_config")
        form = config.get("format") if isinstance(config, dict) else None
        found = form.get("schema") if isinstance(form, dict) else None
    return found if isinstance(found, dict) else None
