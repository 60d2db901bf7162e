"""Parses DAG files as Airflow's DAG processor does: each in a fork of a process that has Airflow imported, serialised
as it is sent back. Arguments: the number of cycles, then the files. Prints one JSON list of what each cycle gave:
{file name: {"cpu": seconds, "dags": [...], "errors": [...]}}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import structlog
from airflow.dag_processing.processor import DagFileParseRequest, _parse_file


def parsed(file: str) -> dict[str, Any]:
    request = DagFileParseRequest(file=file, bundle_path=Path(file).parent, bundle_name="dags")
    before = sum(os.times()[:2])
    result = _parse_file(request, structlog.get_logger())
    assert result is not None
    return {
        "cpu": sum(os.times()[:2]) - before,
        "dags": sorted(dag.dag_id for dag in result.serialized_dags),
        "errors": list((result.import_errors or {}).values()),
    }


def in_a_child(file: str) -> dict[str, Any]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(write, "w") as out:
            out.write(json.dumps(parsed(file)))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        told: dict[str, Any] = json.loads(said.read())
    os.waitpid(child, 0)
    return told


if __name__ == "__main__":
    files = sys.argv[2:]
    sys.stdout.write(
        json.dumps([{Path(file).name: in_a_child(file) for file in files} for _ in range(int(sys.argv[1]))])
    )
