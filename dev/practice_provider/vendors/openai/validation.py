"""The provider's check of a batch input file, after create and before execution.

Codes follow OpenAI (invalid_json_line, missing_required_parameter, duplicate_custom_id, invalid_url,
token_limit_exceeded, as public reports quote them) and, where OpenAI documents none, Azure's list for the same API
(empty_file, model_mismatch, too_many_tasks, model_not_found).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from dev.practice_provider.tokens import Count, embedding_inputs, prompt_tokens

MOST_PROBLEMS = 100  # how many complaints one batch object carries

Problem = dict[str, Any]


def problem(code: str, message: str, line: int | None = None, param: str | None = None) -> Problem:
    return {"code": code, "line": line, "message": message, "param": param}


@dataclass(slots=True)
class Checked:
    """What one pass over the file found. `lines` counts every line, good or bad."""

    model: str = ""
    lines: int = 0
    problems: list[Problem] = field(default_factory=list)
    starts: array[int] = field(default_factory=lambda: array("Q", [0]))
    prompt_tokens: array[int] = field(default_factory=lambda: array("I"))


class FileValidator:
    """Reads one input file once, line by line; memory is 12 bytes per line and the custom_ids."""

    def __init__(
        self,
        endpoint: str,
        knows_model: Callable[[str, str], bool],
        count: Count,
        most_requests: int,
        most_inputs: int,
    ) -> None:
        self._endpoint = endpoint
        self._knows_model = knows_model
        self._count = count
        self._most_requests = most_requests
        self._most_inputs = most_inputs
        self._seen: set[str] = set()
        self._inputs = 0

    def check(self, path: Path) -> Checked:
        checked = Checked()
        end = 0
        with path.open("rb", buffering=1024 * 1024) as source:
            for raw in source:
                end += len(raw)
                checked.lines += 1
                if checked.lines > self._most_requests:
                    continue
                complaints = self._check_line(raw, checked)
                checked.problems.extend(complaints[: MOST_PROBLEMS - len(checked.problems)])
                checked.starts.append(end)
        if checked.lines == 0:
            checked.problems.append(problem("empty_file", "The batch input file is empty."))
        if checked.lines > self._most_requests:
            limit = f"{self._most_requests:,}"
            checked.problems.insert(0, problem("too_many_tasks", f"The input file has more than {limit} requests."))
        if self._inputs > self._most_inputs:
            limit = f"{self._most_inputs:,}"
            message = f"The requests of this batch hold more than {limit} embedding inputs."
            checked.problems.insert(0, problem("too_many_tasks", message))
        return checked

    def _check_line(self, raw: bytes, checked: Checked) -> list[Problem]:
        number = checked.lines
        try:
            line = orjson.loads(raw)
        except orjson.JSONDecodeError:
            line = None
        if not isinstance(line, dict):
            return [problem("invalid_json_line", "This line is not parseable as valid JSON.", number)]
        problems = [
            problem("missing_required_parameter", f"Missing required parameter: '{name}'.", number, name)
            for name in ("custom_id", "method", "url", "body")
            if line.get(name) is None
        ]
        if problems:
            return problems
        problems = self._check_fields(line, number)
        if not problems and isinstance(line["body"], dict):
            problems = self._check_model(line["body"], checked)
            checked.prompt_tokens.append(prompt_tokens(line["body"], self._count))
            if self._endpoint == "/v1/embeddings":
                self._inputs += len(embedding_inputs(line["body"]))
        return problems

    def _check_fields(self, line: dict[str, Any], number: int) -> list[Problem]:
        problems: list[Problem] = []
        for name, kind in (("custom_id", str), ("body", dict)):
            if not isinstance(line[name], kind):
                message = f"Invalid type for '{name}': expected {'a string' if kind is str else 'an object'}."
                problems.append(problem("invalid_type", message, number, name))
        if line["method"] != "POST":
            problems.append(problem("invalid_method", "The only supported method is POST.", number, "method"))
        if line["url"] != self._endpoint:
            message = "The URL provided for this request does not match the batch endpoint."
            problems.append(problem("invalid_url", message, number, "url"))
        custom_id = line["custom_id"]
        if isinstance(custom_id, str):
            if custom_id in self._seen:
                message = "The custom_id of this request was used before in the same file."
                problems.append(problem("duplicate_custom_id", message, number, "custom_id"))
            self._seen.add(custom_id)
        return problems

    def _check_model(self, body: dict[str, Any], checked: Checked) -> list[Problem]:
        model = body.get("model")
        if not isinstance(model, str):
            message = "Missing required parameter: 'body.model'."
            return [problem("missing_required_parameter", message, checked.lines, "body.model")]
        if not checked.model:
            checked.model = model
            if not self._knows_model(self._endpoint, model):
                message = f"The model `{model}` does not exist or cannot be used with {self._endpoint}."
                return [problem("model_not_found", message, checked.lines, "body.model")]
        if model != checked.model:
            message = "All requests of a batch must use the same model; this one differs from those before it."
            return [problem("model_mismatch", message, checked.lines, "body.model")]
        return []
