"""`python -m nightmill publish`: what it triggers, and what it refuses before anything is triggered."""

from __future__ import annotations

from typing import Any

import pytest
from support.pipeline import Pipeline
from support.steps import run_unchecked

from nightmill.cli import publish
from nightmill.cli.commands import main


@pytest.fixture
def triggered(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was triggered. How: tests/cli/test_dead_letters.py, of replay."""
    found: list[dict[str, Any]] = []

    def trigger(dag_id: str, given: dict[str, Any], _variables: Any, by_hand: str) -> str:
        found.append({"dag_id": dag_id, "by_hand": by_hand, **given})
        return "manual__1"

    monkeypatch.setattr(publish, "environment_of", lambda _variables: pipeline.env)
    monkeypatch.setattr(publish, "trigger", trigger)
    return found


def test_a_preview_is_published_by_the_dag_of_that_name(
    pipeline: Pipeline, triggered: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    batch = str(run_unchecked(pipeline, by_hand=True, params={"limit": 3}).batch.batch_id)
    assert main(["publish", "--batch", batch]) == 1
    assert "has a limit of 3 rows" in capsys.readouterr().err
    assert triggered == []
    assert main(["publish", "--batch", batch, "--confirm-narrowed", "--note", "looks good"]) == 0
    assert f"results.notes shows batch {batch} once it is green" in capsys.readouterr().out
    dag = "nightmill_publish"
    wanted = {"dag_id": dag, "by_hand": dag, "batch": int(batch), "confirm_narrowed": True, "note": "looks good"}
    assert triggered == [wanted]
    assert main(["publish", "--batch", batch, "--confirm-narrowed", "--json"]) == 0
    assert '"run_id": "manual__1"' in capsys.readouterr().out


def test_what_is_no_preview_is_refused_before_anything_is_triggered(
    pipeline: Pipeline, triggered: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run_unchecked(pipeline).batch
    assert main(["publish", "--batch", str(shown.batch_id)]) == 1
    assert "is PUBLISHED (published): it is not a preview" in capsys.readouterr().err
    assert main(["publish", "--batch", "99"]) == 1
    assert "There is no batch 99" in capsys.readouterr().err
    assert triggered == []
