"""docs/start/tutorial.md, followed to the letter beside the other jobs of the running stack."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.running_site import Site
from support.walkthrough import Reader

from dev.demo.run import load_input
from dev.stack.settings import REPOSITORY

PAGE = REPOSITORY / "docs" / "start" / "tutorial.md"


@pytest.fixture
def checkout(site: Site) -> Path:
    """The directory of the stack's foreign jobs, which are called my_jobs, with all else of the repository in it."""
    home = site.jobs.parent
    for path in REPOSITORY.iterdir():
        if path.name not in (".git", ".nightmill", "my_jobs") and not (home / path.name).exists():
            (home / path.name).symlink_to(path)
    return home


def test_the_tutorial_ends_with_published_rows(site: Site, checkout: Path) -> None:
    load_input(site.running)  # as the first `make up` does
    # The stack's own state directory and interpreter, or `make up` would start it anew.
    its_own = {"NIGHTMILL_HOME": str(site.stack.settings.home), "MAKEFLAGS": f"VENV={Path(sys.executable).parents[1]}"}
    reader = Reader(checkout, os.environ | its_own)

    reader.follow(PAGE.read_text("utf-8"))

    assert "already up" in reader.output_of("make up")  # the page says nothing that would disturb a running stack
    assert "INSERT 0 5" in reader.output_of("make psql < my_jobs/tickets.sql")
    assert "ticket_topics: valid" in reader.output_of("nightmill validate")
    assert "created results.ticket_topics" in "".join(output for _, output in reader.said)
    assert "is PUBLISHED" in reader.output_of("make run")
    assert "(5 rows)" in reader.output_of("make psql")
    rows = site.sql("select source_id, tenant, topic, summary from results.ticket_topics order by source_id")
    assert [row[:3] for row in rows] == [
        ("T-1", "acme", "billing"),
        ("T-2", "acme", "billing"),
        ("T-3", "umbrella", "billing"),
        ("T-4", "umbrella", "billing"),
        ("T-5", "umbrella", "billing"),
    ]
    assert all(row[3] for row in rows)
