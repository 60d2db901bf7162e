"""history: the publications of a view, and what of them can still be shown again."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from nightmill.cli.rollback import hold_fields
from nightmill.domain.wording import pluralised
from nightmill.operations import rollback as stage
from nightmill.services.connections import environment_of
from nightmill.storage.view_history import Event


def run(arguments: argparse.Namespace) -> int:
    """Print the newest publications, and what is held."""
    events, held = stage.history(environment_of(os.environ), arguments.view, arguments.limit)
    if arguments.json:
        found = {"publications": [fields(one) for one in events], "held": [hold_fields(one) for one in held]}
        print(json.dumps(found))
        return 0
    for event in events:
        print("\n".join(lines(event)))
    for hold in held:
        print(f"HELD {hold}; to lift it: {hold.release}")
    return 0


def lines(one: Event) -> list[str]:
    """One publication for people."""
    mark = "*" if one.shown else " "
    head = f"{mark}{one.publish_seq:>5}  {one.published_at:%Y-%m-%d %H:%M} UTC  {one.kind:<9} {_what(one)}"
    rows = sum(one.counts.get(bucket, 0) for bucket in ("accepted", "reused"))
    facts = [pluralised(rows, "row"), pluralised(one.gaps, "gap"), f"by {one.published_by}"]
    if one.approved_by:
        facts.append(f"approved by {one.approved_by}")
    facts.append("rows kept" if one.kept else "rows no longer kept")
    told = [head, f"        {', '.join(facts)}"]
    if one.note:
        told.append(f"        {one.note}")
    if one.hold and one.hold.released_at:
        told.append(f"        released by {one.hold.released_by} on {one.hold.released_at:%Y-%m-%d %H:%M} UTC")
    return told


def _what(one: Event) -> str:
    if one.hold:
        numbers = ", ".join(map(str, one.hold.taken_back))
        interval = f" of {one.hold.interval[0].isoformat()}" if one.hold.interval else ""
        return f"took back {numbers or 'nothing'}{interval}"
    interval = f" of {one.interval_start.isoformat()}" if one.interval_start else ""
    among = f", {pluralised(one.intervals, 'interval')} in all" if one.intervals > 1 else ""
    return (f"batch {one.batch_id}{interval}" if one.batch_id else "") + among


def fields(one: Event) -> dict[str, Any]:
    """One publication as JSON."""
    return {
        "publish_seq": one.publish_seq,
        "kind": one.kind,
        "batch_id": one.batch_id,
        "data_interval_start": one.interval_start.isoformat() if one.interval_start else None,
        "data_interval_end": one.interval_end.isoformat() if one.interval_end else None,
        "intervals": one.intervals,
        "batches": one.batch_ids,
        "published_at": one.published_at.isoformat(),
        "published_by": one.published_by,
        "approved_by": one.approved_by,
        "note": one.note,
        "counts": one.counts,
        "gaps": one.gaps,
        "shown": one.shown,
        "kept": one.kept,
        "hold": hold_fields(one.hold) if one.hold else None,
    }
