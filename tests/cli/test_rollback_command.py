"""`rollback`, `release`, `history` and `retire` on a real ledger."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from support.pipeline import Pipeline

from nightmill.cli.commands import main


def said(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def batches_shown(pipeline: Pipeline) -> list[tuple[int]]:
    return pipeline.sql("select distinct batch_id from results.notes")


def test_a_person_rolls_back_reads_the_history_and_releases(
    shown: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["rollback", "notes", "--revoke", "--reason", "bad prompt"]
    assert main([*asked, "--dry-run"]) == 0
    planned = capsys.readouterr().out
    assert "after the rollback it shows what publication 1 showed" in planned
    assert "taken back: batch 2" in planned
    assert "dry run: nothing was done" in planned
    assert batches_shown(shown) == [(2,)]

    assert main(asked) == 1  # no terminal to ask on
    assert "Run the command again with --yes" in capsys.readouterr().err
    assert main([*asked, "--yes"]) == 0
    done = capsys.readouterr().out
    assert "done: results.notes shows publication 3" in done
    assert "20 answers revoked" in done
    assert "to let runs publish again: python -m nightmill release notes" in done
    assert "DAGs that are scheduled on results.notes were not triggered" in done
    assert batches_shown(shown) == [(1,)]

    assert main(["history", "notes"]) == 0
    told = capsys.readouterr().out
    assert "*    3" in told
    assert "took back 2" in told
    assert "20 rows, 0 gaps, by tester, rows kept" in told
    assert "HELD the view results.notes is held: " in told
    assert main(["history", "notes", "--limit", "2", "--json"]) == 0
    found = said(capsys)
    assert [(one["publish_seq"], one["kind"], one["kept"], one["shown"]) for one in found["publications"]] == [
        (3, "rollback", True, True),
        (2, "publish", True, False),
    ]
    assert found["held"][0]["reason"] == "bad prompt"
    assert found["publications"][0]["published_by"].endswith("(command line)")

    assert main(["status"]) == 0
    assert "ALERT     the view results.notes is held: " in capsys.readouterr().out
    assert main(["doctor", "--jobs", str(shown.folder.parent)]) in (0, 1)
    assert "rolled back batch 2" in capsys.readouterr().out
    assert main(["release", "notes"]) == 0
    assert "released the view results.notes" in capsys.readouterr().out
    assert main(["release", "notes"]) == 1
    assert "Nothing of results.notes is held" in capsys.readouterr().err


def test_json_tells_what_was_done(shown: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollback", "notes", "--to", "1", "--yes", "--json"]) == 0
    assert said(capsys) == {
        "view": "notes", "from": 2, "to": 1, "interval": None, "taken_back": [2], "shown_again": [1],
        "publish_seq": 3, "revoked": None, "release": "python -m nightmill release notes",
    }  # fmt: skip
    assert main(["release", "notes", "--json"]) == 0
    assert said(capsys)[0]["taken_back"] == [2]


def test_who_says_no_on_the_terminal_changes_nothing(
    shown: Pipeline, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for answer, code, batch in (("\n", 1, 2), ("n\n", 1, 2), ("y\n", 0, 1)):
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        assert main(["rollback", "notes"]) == code
        assert batches_shown(shown) == [(batch,)]
    assert "Roll back results.notes? [y/N]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rollback", "nobody"], "No batch was published to a view 'nobody'"),
        (["rollback", "notes", "--to", "9"], "has no publication 9"),
        (["rollback", "notes", "--interval", "2026-01-01"], "No interval begins at '2026-01-01'"),
        (["rollback", "notes", "--interval", "soon"], "No interval begins at 'soon'"),
        (["history", "nobody"], "No batch was published to a view 'nobody'"),
        (["release", "notes"], "Nothing of results.notes is held"),
        (["retire", "nobody"], "No job 'nobody' has a view"),
    ],
)
def test_what_cannot_be_done_is_an_error_with_its_remedy(
    shown: Pipeline, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(arguments) == 1
    told = capsys.readouterr().err
    assert words in told
    assert "remedy: " in told


def test_a_job_is_retired_after_a_question(shown: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retire", "notes"]) == 1
    assert "Run the command again with --yes" in capsys.readouterr().err
    assert main(["retire", "notes", "--yes"]) == 0
    told = capsys.readouterr().out
    assert "notes: dropped results.notes; what its runs paid stays in the ledger" in told
    assert shown.sql("select to_regclass('results.notes')") == [(None,)]
    assert shown.sql("select count(*) from nightmill.result") == [(40,)]
