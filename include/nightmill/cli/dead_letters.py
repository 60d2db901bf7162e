"""dead-letters: the items that gave up or wait in review, with their context.

Messages can quote a document: only on request.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from typing import Any

from nightmill.domain.errors import ConfigError
from nightmill.domain.suggestions import aside, listed
from nightmill.jobs.rules.dead_letters import DeadLetterFilter
from nightmill.jobs.rules.gaps import Facts, told
from nightmill.services.connections import environment_of
from nightmill.stages.run_shard.record_ids import record_id
from nightmill.storage import batches, dead_letters, gaps
from nightmill.storage.dead_letters import DeadLetter, Group, Scope
from nightmill.storage.session import Connection


def run(arguments: argparse.Namespace) -> int:
    """Print those that match."""
    scope = Scope(arguments.job, arguments.batch)
    with environment_of(os.environ).ledger() as conn:
        conn.read_only = True
        _refuse_unknown(conn, scope)
        if arguments.count:
            recorded = gaps.facts(conn, scope.batch_id) if scope.batch_id is not None else None
            return _say_counts(dead_letters.count(conn, scope, choice_of(arguments)), arguments.json, recorded)
        found = list(dead_letters.search(conn, scope, choice_of(arguments), arguments.limit + 1))
    letters = found[: arguments.limit]
    if arguments.json:
        print(json.dumps([fields(letter, messages=arguments.messages) for letter in letters]))
    else:
        print("\n".join(line(letter, messages=arguments.messages) for letter in letters) or "no dead letters")
    if len(found) > len(letters):
        print(f"there are more than {arguments.limit:,}: narrow the search, or raise --limit", file=sys.stderr)
    return 0


def _refuse_unknown(conn: Connection, scope: Scope) -> None:
    """No dead letters of a job or batch that does not exist would look like good news."""
    if scope.batch_id is not None:
        batches.get(conn, scope.batch_id)
    jobs = batches.jobs(conn) if scope.job is not None else set()
    if scope.job is not None and scope.job not in jobs:
        raise ConfigError(
            f"No batch of a job {scope.job!r} is in the ledger{aside(scope.job, jobs)}.",
            f"Jobs that have batches: {listed(jobs)}.",
        )


def choice_of(arguments: argparse.Namespace) -> DeadLetterFilter:
    """The conditions of a command line."""
    return DeadLetterFilter(
        classes=arguments.classes,
        codes=arguments.codes,
        ended_as=arguments.ended_as,
        tenants=arguments.tenants,
        ids=arguments.ids,
        since=arguments.since,
    )


def fields(letter: DeadLetter, *, messages: bool) -> dict[str, Any]:
    """One dead letter as JSON."""
    known = asdict(letter) | {"created_at": letter.created_at.isoformat()}
    known["class"] = known.pop("kind")
    del known["answer_token"]
    known |= {"answer_object": letter.answer_object, "answer_record_id": _answer_record_id(letter)}
    if not messages:
        del known["message"]
    return known


def line(letter: DeadLetter, *, messages: bool) -> str:
    """One dead letter for people."""
    parts = [
        f"batch {letter.batch_id}",
        letter.source_id or f"ordinal {letter.ordinal}",
        f"{letter.kind}/{letter.code}",
        f"attempts {letter.attempts}",
        f"{letter.created_at:%Y-%m-%d %H:%M:%S} UTC",
    ]
    parts += ["in review"] if letter.ended_as == "in_review" else []
    parts += [f"tenant {letter.tenant}"] if letter.tenant else []
    parts += [f"shard {letter.shard_id}"] if letter.shard_id else []
    parts += [f"gave up in batch {letter.gave_up_in}"] if letter.gave_up_in != letter.batch_id else []
    parts += [f"{letter.payload_object}:{letter.payload_line}"] if letter.payload_object else []
    below = [" ".join(letter.message.split())] if messages else []
    if messages and letter.answer_object:
        below.append(f"its answer: {letter.answer_object}, record id {_answer_record_id(letter)}")
    return "\n    ".join(["  ".join(parts), *below])


def _answer_record_id(letter: DeadLetter) -> str | None:
    """What names the line of the rejected answer in its file."""
    return record_id(letter.answer_token, letter.gave_up_ordinal) if letter.answer_token else None


def _say_counts(groups: list[Group], as_json: bool, recorded: Facts | None) -> int:
    if as_json:
        rows = [asdict(group) | {"oldest": group.oldest.isoformat()} for group in groups]
        print(json.dumps([{"class": row.pop("kind"), **row} for row in rows]))
        return 0
    lines = [
        f"{group.job}: batch {group.batch_id}  {group.kind}/{group.code}  {group.letters:,}  "
        f"{'in review  ' if group.ended_as == 'in_review' else ''}"
        f"since {group.oldest:%Y-%m-%d %H:%M:%S} UTC"
        for group in groups
    ]
    print("\n".join([*(lines or ["no dead letters"]), *told(recorded or {})]))
    return 0
