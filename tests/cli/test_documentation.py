"""The pages: their links lead somewhere, and the messages they explain are said by the code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from support.walkthrough import Saved, Typed, steps

from dev.stack.settings import REPOSITORY
from nightmill.cli.commands import main
from nightmill.gates import checks
from nightmill.jobs import job_folders
from nightmill.jobs.check import yaml_document
from nightmill.jobs.check.definition import mistakes_of
from nightmill.jobs.output import job_code
from nightmill.jobs.prompt import limits
from nightmill.jobs.prompt.messages import MOST_MESSAGES
from nightmill.jobs.settings.gate_settings import MOST_EXPECTATIONS

PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])
OPERATIONS = REPOSITORY / "docs" / "guides" / "operations.md"


def prose(page: Path) -> str:
    """A page without its fenced blocks, mermaid diagrams excepted: they hold links too."""
    return re.sub(r"^```(?!mermaid)\w*\n.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> set[str]:
    """Targets of Markdown links and of clicks in diagrams that stay in the repository."""
    found = re.findall(r"\]\(([^)\s]+)\)", prose(page)) + re.findall(r'^\s*click \w+ "([^"]+)"', prose(page), re.M)
    return {target for target in found if not re.match(r"[a-z]+:", target)}


def anchors(page: Path) -> set[str]:
    """The anchors that a renderer makes of the headings."""
    heads = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in sorted(links(page)):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name} links to {link}"
        assert REPOSITORY in target.parents or target == REPOSITORY, f"{link} leads out of the repository"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name} links to {link}"


def test_every_page_that_code_or_a_page_names_by_its_path_exists() -> None:
    code = [path for room in ("include", "dev", "plugins", "dags") for path in REPOSITORY.glob(f"{room}/**/*.py")]
    named = {
        (str(path.relative_to(REPOSITORY)), page)
        for path in (*PAGES, *code)
        for page in re.findall(r"(?<![\w/.])docs/[\w/.-]+?\.(?:md|json)\b", path.read_text("utf-8"))
    }
    assert len(named) > 20
    assert {(path, page) for path, page in named if not (REPOSITORY / page).exists()} == set()


def test_every_stage_of_the_picture_can_be_clicked_and_stands_in_the_table() -> None:
    text = (REPOSITORY / "README.md").read_text("utf-8")
    clicks = dict(re.findall(r'^\s*click (\w+) "([^"]+)"', text, re.MULTILINE))
    table = text.split("| task | what it does |")[1].split("\n\n")[0]
    assert {"freeze_snapshot", "run_shard", "publish", "report"} <= clicks.keys()
    assert [target for target in clicks.values() if f"({target})" not in table] == []


def explained() -> list[str]:
    """The messages of the table "When a run fails"."""
    table = OPERATIONS.read_text("utf-8").split("| the task's log says | do |")[1].split("\n\n")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


@cache
def said() -> str:
    """Every text in the code, one a line, with ␀ where a value is filled in."""
    texts = []
    for path in (REPOSITORY / "include" / "nightmill").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "␀" for part in node.values]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value.replace("%s", "␀"))
    return "\n".join(text.replace("\n", " ") for text in texts)


@pytest.mark.parametrize("message", [one for one in explained() if one != "output.py …"])
def test_each_message_that_the_page_on_operations_explains_is_one_of_the_codes(message: str) -> None:
    parts = [re.escape(part) for part in re.split(r" ?… ?", message)]
    assert re.search(".*".join(parts), said()), message


def test_the_table_of_messages_was_found() -> None:
    assert len(explained()) > 25


def test_the_files_of_the_tutorial_are_a_sound_job(tmp_path: Path) -> None:
    taken = list(steps((REPOSITORY / "docs" / "start" / "tutorial.md").read_text("utf-8")))
    files = {step.path: step.text for step in taken if isinstance(step, Saved)}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    definition = job_folders.read(tmp_path / "my_jobs" / "ticket_topics")
    assert mistakes_of(definition) == []
    assert definition.warnings() == []
    assert len(files) == 5
    assert "make run JOB=ticket_topics\n" in [step.text for step in taken if isinstance(step, Typed)]


def test_the_commands_dags_and_limits_that_the_page_on_trust_names_are_the_codes() -> None:
    text = (REPOSITORY / "docs" / "explanation" / "trust.md").read_text("utf-8")
    commands = re.findall(r"`(?:python -m nightmill )?([a-z][a-z-]+)`", text)
    assert {"validate", "apply", "doctor", "estimate", "replay", "cancel", "maintain", "dead-letters"} <= set(commands)
    for command in re.findall(r"`python -m nightmill ([a-z-]+)`", text):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command
    for limit in (
        f"{job_folders.MOST_BYTES:,} bytes",
        f"{job_code.LIMIT_S:g} s for its import",
        f"{yaml_document.MOST_NESTED} levels of nesting, {yaml_document.MOST_ENTRIES:,} entries",
        f"{MOST_EXPECTATIONS} expectations",
        f"{limits.MOST_NODES:,} expressions, {MOST_MESSAGES:,} messages",
        f"{limits.MOST_CHARACTERS:,} characters",
        f"{limits.MOST_STEPS:,} steps; {limits.LONGEST_S:g} s of processor time",
        f"{limits.MOST_VALUES:,} parts of a list or mapping",
    ):
        assert limit in text
    assert (checks.LIMIT_S, limits.SHARE) == (3600, 4)  # an hour, four times


def test_every_example_of_a_connection_to_another_machine_verifies_the_server() -> None:
    found = [
        line for page in PAGES for line in re.findall(r"postgres(?:ql)?://\S*example\.org\S*", page.read_text("utf-8"))
    ]
    assert len(found) > 5
    assert [line for line in found if "sslmode=verify-full&sslrootcert=" not in line] == []
