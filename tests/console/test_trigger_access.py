"""Who may not touch a job's DAG cannot cancel, replay or roll back its batches through the operations DAGs: asked of
Airflow's own API server, with the plugin as Airflow loads it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.per_dag_access import JOB_DAG
from support.pipeline import Pipeline

REPOSITORY = Path(__file__).resolve().parents[2]
ROLLBACK = "/api/v2/dags/nightmill_rollback/dagRuns"
NOWHERE = "postgres://x:y@127.0.0.1:1/none"
CANCEL, PUBLISH, REPLAY = (f"/api/v2/dags/nightmill_{name}/dagRuns" for name in ("cancel", "publish", "replay"))


def test_operations_need_the_right_to_the_jobs_own_dag(pipeline: Pipeline, tmp_path: Path) -> None:
    mine = pipeline.freeze("run-1").batch_id
    foreign = pipeline.freeze("run-2", dag_id="nightmill_other").batch_id
    pipeline.sql("insert into nightmill.view_definition (view_name, job, columns) values ('mine', 'test', '[]')")
    by_run = {"dag_id": JOB_DAG, "run_id": "run-1"}
    refused = [403, "right to"]
    asked: list[tuple[dict[str, Any], list[Any]]] = [
        ({"who": "bob", "path": CANCEL, "conf": {"batch": mine}}, refused),
        ({"who": "bob", "path": CANCEL, "conf": {"batch": float(mine)}}, refused),
        ({"who": "bob", "path": CANCEL, "conf": {"batch": mine, "dag_id": "nightmill_other", "run_id": "x"}}, refused),
        ({"who": "bob", "path": CANCEL, "conf": by_run}, refused),
        ({"who": "bob", "path": CANCEL, "conf": by_run, "cookie": True}, refused),
        ({"who": "bob", "path": CANCEL.replace("cancel", "%63ancel"), "conf": by_run}, refused),
        ({"who": "bob", "path": REPLAY, "conf": {"job": "test"}}, refused),
        ({"who": "bob", "path": REPLAY, "conf": {"job": "license_audit", "batch": mine}}, refused),
        ({"who": "bob", "path": ROLLBACK, "conf": {"view": "mine"}}, refused),
        ({"who": "bob", "path": ROLLBACK, "conf": {"view": "nobody"}}, [404, "no such view"]),
        ({"who": "bob", "path": CANCEL, "conf": {"batch": mine + 99}}, [404, "no such batch"]),  # not even in advance
        ({"who": "bob", "path": CANCEL, "conf": {"batch": str(mine)}}, [404, "no such batch"]),
        ({"who": "bob", "path": CANCEL, "body": f'{{"conf": {{"batch": {mine}, "x": {"[" * 9000}'}, [400, "too deep"]),
        ({"who": "bob", "path": CANCEL, "body": "{" + " " * 1_000_000}, [413, "too large"]),
        ({"who": "bob", "path": PUBLISH, "conf": {"batch": mine}}, refused),
        ({"who": "bob", "path": PUBLISH, "conf": {"batch": foreign}}, [200, "bob"]),
        ({"who": "bob", "path": CANCEL, "conf": {"batch": foreign}}, [200, "bob"]),
        ({"who": "bob", "path": REPLAY, "conf": {"job": "license_audit"}}, [200, "bob"]),
        ({"who": "ann", "path": CANCEL, "conf": {"batch": mine}}, [200, "ann"]),
        ({"who": "ann", "path": CANCEL, "conf": {**by_run, "requested_by": "bob"}, "cookie": True}, [200, "ann"]),
        ({"who": "eve", "path": CANCEL, "conf": {"batch": mine}}, [403, ""]),
        ({"who": "", "path": CANCEL, "conf": {"batch": mine}}, [401, "Not authenticated"]),
        ({"who": "ann", "path": CANCEL, "body": "no JSON"}, [422, ""]),
        ({"who": "ann", "path": CANCEL, "conf": {"batch": 0.5}}, [404, "no such batch"]),
        ({"who": "ann", "path": CANCEL, "conf": {"batch": mine}, "ledger": NOWHERE}, [503, "cannot be reached"]),
    ]  # fmt: skip
    airflow = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__CORE__AUTH_MANAGER": "support.per_dag_access.PerDag",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ann:user,bob:user,eve:viewer",
        "AIRFLOW__API_AUTH__JWT_SECRET": "0" * 64,
        "AIRFLOW_CONN_NIGHTMILL_DB": pipeline.writer_dsn,
        "PYTHONPATH": f"{REPOSITORY / 'include'}:{REPOSITORY / 'tests'}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "support.per_dag_access", str(REPOSITORY / "dags")],
        input=json.dumps([one for one, _ in asked]),
        env=os.environ | airflow,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    for (request, (status, words)), answer in zip(asked, answers, strict=True):
        assert answer[0] == status, (request, answer)
        assert words in answer[1], (request, answer)
