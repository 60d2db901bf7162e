"""A job folder that exits, loops, recurses or asks for more memory than there is: a mistake of that folder, with its
file, its line where there is one, and a remedy."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from support.hostile_folders import GOOD, P, everything, output, parameters

from nightmill.domain.errors import BrokenJobFolder, SourceError
from nightmill.jobs import job_folders
from nightmill.jobs.check.definition import mistakes_of
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.output import job_code
from nightmill.jobs.prompt.prompt import Prompt

HOSTILE = everything()


def definition(**files: str) -> JobDefinition:
    content = GOOD | {name.replace("_", "."): text for name, text in files.items()}
    return JobDefinition("notes", {name: text.encode() for name, text in content.items()})


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_code, "LIMIT_S", 0.2)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "is_large"])
def test_a_hostile_file_is_a_mistake_of_its_folder(name: str, request: pytest.FixtureRequest) -> None:
    file, said, text = HOSTILE[name]
    if "did not end" in said:
        request.getfixturevalue("short_limit")
    found = mistakes_of(definition(**{file.replace(".", "_"): text}))
    assert said in "\n".join(map(str, found))
    assert all(one.file == file and one.remedy for one in found)
    assert max(len(str(one)) for one in found) < 700
    assert sys.getrecursionlimit() > 900


def test_a_hostile_output_is_run_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    broken = definition(output_py=f"with open({str(runs)!r}, 'a') as runs: runs.write('x')\nraise SystemExit")
    for _ in range(3):
        with pytest.raises(BrokenJobFolder):
            _ = broken.output
    assert runs.read_text() == "x"


@pytest.mark.usefixtures("short_limit")
def test_a_sooner_alarm_of_somebody_else_counts_and_a_later_one_is_set_again() -> None:
    """Airflow limits the import of a DAG file by the same timer."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: heard.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 60)
        assert mistakes_of(definition(output_py="while True: pass"))
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] < 60
        assert not heard
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        _ = definition(output_py=P + "import time\ntime.sleep(0.1)\n" + output("")).output
        assert heard == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_of_a_person_is_no_mistake_of_the_folder() -> None:
    pressed = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            mistakes_of(definition(output_py=pressed))
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_output_py_prints_does_not_stand_in_the_output_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    hook = "    @classmethod\n    def model_json_schema(cls, **o):\n        print('hook')\n"
    hook += "        return super().model_json_schema(**o)"
    assert mistakes_of(definition(output_py="print('imported')\n" + output(hook))) == []
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("imported\nhook\n")


def test_anchors_and_merge_keys_within_bounds_are_welcome() -> None:
    job_yaml = parameters("&common {max_completion_tokens: 50, seed: 1}")
    assert mistakes_of(definition(job_yaml=job_yaml)) == []
    merged = definition(job_yaml=job_yaml + "repair: {<<: &one {attempts: 2}}\ngaps: {<<: *one}\n")
    (mistake,) = mistakes_of(merged)
    assert str(mistake) == "job.yaml:19: gaps.attempts: unknown key here; did you mean 'repair.attempts'?"


def test_a_file_over_the_limit_is_not_read_to_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in GOOD.items():
        (folder / name).write_text(text)
    with (folder / "prompt.md").open("r+b") as sparse:
        sparse.truncate(50_000_000_000)
    with pytest.raises(BrokenJobFolder, match=r"prompt\.md: is larger than 1,000,000 bytes\. Remedy: Make it smaller"):
        job_folders.read(folder)


def test_a_file_with_nul_or_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in GOOD.items():
        (folder / name).write_text(text)
    (folder / "prompt.md").write_text("one\ntwo \0 {{ body }}")
    (folder / "output.py").unlink()
    (folder / "output.py").symlink_to("/proc/self/mem")
    with pytest.raises(BrokenJobFolder) as caught:
        job_folders.read(folder)
    said = str(caught.value)
    assert "prompt.md:2: holds the character NUL. Remove it." in said
    assert "output.py: cannot be read (Input/output error). Give this process the right to read it." in said


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ 'x' * n }}", "prompt.md:1: {{ 'x' * n }}: makes more than 50,000,000 characters or list entries."),
        ("\n{{ body | center(n) }}", "prompt.md:2: {{ body | center(n) }}: makes more than 50,000,000 characters"),
        ("{{ wide.format(1) }}", "makes more than 50,000,000 characters"),
        ("{{ percent % 1 }}", "makes more than 50,000,000 characters"),
        ("{{ long | replace('a', long) }}", "makes more than 50,000,000 characters"),
        ("{{ long.replace('a', long) }}", "makes more than 50,000,000 characters"),
        ("{{ long | list | join(long) }}", "makes more than 50,000,000 characters"),
        ("{{ body.translate({104: long * 99}) }}{{ long.join(long) }}", "makes more than 50,000,000 characters"),
        ("{{ long }}" * 600, "makes more than 50,000,000 characters"),
        ("{{ long | upper }}" * 600, "makes more than 50,000,000 characters"),
        ("{% for a in long %}{% for b in long %}{% endfor %}{% endfor %}", "takes more than 1,000,000 steps"),
        (
            "{% for a in long recursive %}{{ loop([1]) if a == 'a' }}{{ loop(long) if a == 'a' }}{% endfor %}",
            "without end",
        ),
    ],
)
def test_a_prompt_that_grows_over_every_bound_at_run_time_is_a_fault_that_names_its_line(
    template: str, said: str
) -> None:
    values = {"body": "hello", "n": 10**9, "wide": "{:1000000000}", "percent": "%1000000000d", "long": "a" * 100_000}
    prompt = Prompt(template)
    with pytest.raises(SourceError) as caught:
        prompt.render(values)
    assert said in str(caught.value)
    assert "aaaa" not in str(caught.value)


def test_a_document_over_the_bound_is_written_all_the_same() -> None:
    """Whether it fits into the context window is said later, of this item only."""
    long = "a" * 51_000_000
    assert len(Prompt("{{ body }}").render({"body": long})[0]["content"]) == len(long)
    assert len(Prompt("{{ body | upper }}!").render({"body": long})[0]["content"]) == len(long) + 1


def test_what_templates_do_every_day_is_within_the_bounds() -> None:
    template = """{{ body | upper }} {{ meta.a | join('-') }} {{ tags | map('upper') | list }} {{ meta | tojson(2) }}
{% for t in tags %}{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ t ~ '!' }}{% else %}none{% endfor %}
{{ 7 // 2 + 2 * 3 ** 2 % 5 }} {{ '%05.2f' % 3.14159 }} {{ '{:,}'.format(12345678) }} {{ '%*d' | format(4, 7) }}
{{ 'call %s at 4915112345678' % 'me' }} {{ '{{}} {}'.format(4915112345678) }} {{ [1, 2, 3] | sum }}
{{ tags | batch(2) | list }} {{ body | indent(2) }} {{ 'a-b'.split('-') }} {{ range(3) | list }}
{% for one in tree recursive %}({{ one.n }}{{ loop(one.below) }}){% endfor %}"""
    tree = [{"n": 1, "below": [{"n": 2, "below": []}]}]
    values = {"body": "hi\nho", "meta": {"a": [1, 2]}, "tags": ["a", "b"], "tree": tree}
    prompt = Prompt(template)
    assert list(prompt.mistakes()) == []
    assert prompt.render(values)[0]["content"].splitlines() == [
        'HI', 'HO 1-2 ["A","B"] {', '  "a": [', "    1,", "    2", "  ]", "}", '1/2falsea!2/2trueb!',
        "6 03.14 12,345,678    7", "call me at 4915112345678 {} 4915112345678 6", '[["a","b"]] hi',
        '  ho ["a","b"] [0,1,2]', "(1(2))",
    ]  # fmt: skip
