"""Every remedy can be carried out: the commands, options, targets, tasks, DAGs and keys that texts name do exist."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from dev.stack.settings import REPOSITORY
from nightmill.cli import commands
from nightmill.jobs.settings.job import Job

CODE = REPOSITORY / "include" / "nightmill"
PAGES = [REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md")]
ROLES = {
    "nightmill_owner", "nightmill_writer", "nightmill_reader", "nightmill_console", "nightmill_view_owner",
    "nightmill_reviewer",
}  # fmt: skip
CONNECTIONS = {
    "nightmill_db", "nightmill_owner", "nightmill_provider", "nightmill_anthropic", "nightmill_demo_source",
}  # fmt: skip
OTHERS = {  # pools, plugins, a variable, the demo's database, examples of logins and jobs
    "nightmill_batch", "nightmill_online", "nightmill_access", "nightmill_console", "nightmill_listener",
    "nightmill_deployment", "nightmill_demo", "nightmill_job", "nightmill_my_job", "nightmill_token",
    "nightmill_ticket_topics", "nightmill_airflow", "nightmill_deploy",
}  # fmt: skip


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """(place, text) of everything that the code can say, with ␀ for values, and of the pages for people."""
    return tuple(_of_code()) + tuple((page.name, page.read_text("utf-8")) for page in PAGES)


def _of_code() -> Iterator[tuple[str, str]]:
    for path in CODE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        inside |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree):
            place = f"{path.relative_to(CODE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.JoinedStr):
                yield place, "".join(str(one.value) if isinstance(one, ast.Constant) else "␀" for one in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                yield place, node.value


def found(pattern: str) -> list[tuple[str, Any]]:
    """(place, groups) of every match in any text."""
    return [(place, groups) for place, text in texts() for groups in re.findall(pattern, text)]


@cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    (actions,) = [
        one
        for one in commands._parser()._actions
        if isinstance(one, argparse._SubParsersAction)  # of argparse
    ]
    return dict(actions.choices)


def test_each_command_and_option_that_a_text_names_exists() -> None:
    named = found(r"`(?:python -m nightmill|nightmill) ([a-z][a-z-]*)([^`\n]*)")
    assert len(named) > 30
    for place, (command, rest) in named:
        assert command in parsers(), f"{place}: there is no command {command}"
        options = set(parsers()[command]._option_string_actions)
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)) <= options, f"{place}: {command}{rest}"


def test_each_command_in_a_block_of_a_page_can_be_parsed_up_to_its_values() -> None:
    lines = [
        (page.name, line)
        for page in PAGES
        for line in re.findall(r"^\$? ?python -m nightmill ([a-z].*)$", page.read_text("utf-8"), re.MULTILINE)
    ]
    assert lines
    for page, line in lines:
        command, *rest = line.split("#")[0].split()
        assert command in parsers(), f"{page}: {line}"
        used = {word.split("=")[0] for word in rest if word.startswith("--")}
        assert used <= set(parsers()[command]._option_string_actions), f"{page}: {line}"


def test_each_target_of_make_that_a_text_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = found(r"`make ([a-z][a-z-]*)")
    assert {target for _, target in named} >= {"up", "demo", "run"}
    assert [(place, target) for place, target in named if target not in targets] == []


def test_each_task_that_a_text_says_to_clear_exists_and_so_does_each_dag(
    dag_ids_and_tasks: tuple[set[str], set[str]],
) -> None:
    dag_ids, tasks = dag_ids_and_tasks
    named = found(
        r"\b[Cc]lear (?:the task (?:of )?)?`?([a-z]+_[a-z_]+|preflight|reconcile|compare|approve|publish|report)\b"
    )
    assert len(named) > 10
    assert [(place, task) for place, task in named if task not in tasks] == []
    known = dag_ids | ROLES | CONNECTIONS | OTHERS
    names = found(r"(?<![\w./-])(nightmill_[a-z_]*[a-z])\b(?!\.py|[:@])")
    assert [(place, name) for place, name in names if name not in known] == []


def test_what_blocks_a_batch_is_called_as_a_task_that_can_be_cleared(
    dag_ids_and_tasks: tuple[set[str], set[str]],
) -> None:
    _, tasks = dag_ids_and_tasks
    stages = {stage for _, stage in found(r"^(preflight|check_staging|reconcile|freeze_snapshot|compare|approve)$")}
    assert {"check_staging", "freeze_snapshot"} <= stages <= tasks


@pytest.fixture(scope="module")
def dag_ids_and_tasks() -> tuple[set[str], set[str]]:
    from airflow.dag_processing.dagbag import DagBag

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NIGHTMILL_JOBS_PATH", str(REPOSITORY / "examples" / "jobs"))
        dags = DagBag(REPOSITORY / "dags").dags
    return set(dags), {task for dag in dags.values() for task in dag.task_ids}


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The keys of job.yaml, dotted."""
    for name, field in model.model_fields.items():
        yield prefix + name
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from keys(kind, f"{prefix}{name}.")


def test_each_key_of_job_yaml_that_a_text_names_exists() -> None:
    known = set(keys(Job))
    sections = "|".join({key.split(".")[0] for key in known if "." in key})
    named = found(rf"(?<![\w./%({{\"'-])((?:{sections})\.[a-z_]+)\b(?![.(]\w|\()")
    assert len(named) > 40
    wrong = [(place, key) for place, key in named if key not in known and Path(key).suffix not in (".py", ".md")]
    assert wrong == []
