"""Airflow's API server with the plugins of this project and an auth manager that knows DAGs: `bob` may use every DAG
but the job's own. It runs in a process of its own, answers the requests that come on stdin, and prints
status and text of each answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

JOB_DAG = "nightmill_test"
USERS = {"ann": "user", "bob": "user", "eve": "viewer"}


class PerDag(SimpleAuthManager):
    """As an auth manager with rights per DAG answers."""

    def is_authorized_dag(self, *, user: Any, details: Any = None, **asked: Any) -> bool:
        forbidden = details is not None and details.id == JOB_DAG and user.username == "bob"
        return not forbidden and super().is_authorized_dag(user=user, details=details, **asked)


def main(requests: list[dict[str, Any]], dags_folder: Path) -> None:
    from airflow.api_fastapi.app import create_app
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
    from airflow.models.dag import DagModel
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session
    from fastapi.testclient import TestClient
    from sqlalchemy import update

    initdb()
    bag = DagBag(dags_folder / "nightmill_ops.py", bundle_path=dags_folder, bundle_name="dags-folder")
    assert {"nightmill_cancel", "nightmill_publish", "nightmill_replay"} <= set(bag.dags), bag.import_errors
    with create_session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
    sync_bag_to_db(bag, "dags-folder", None)
    with create_session() as session:
        session.execute(update(DagModel).values(is_paused=False))
    app = create_app(apps="core")
    tokens = {
        name: app.state.auth_manager.generate_jwt(SimpleAuthManagerUser(username=name, role=role))
        for name, role in USERS.items()
    }
    with TestClient(app, base_url="http://127.0.0.1") as client:
        sys.stdout.write(json.dumps([answer(client, tokens, **one) for one in requests]) + "\n")


def answer(client: Any, tokens: dict[str, str], who: str, path: str, conf: Any = None, **how: Any) -> list[Any]:
    headers = {"Content-Type": "application/json"}
    client.cookies.clear()
    os.environ["AIRFLOW_CONN_NIGHTMILL_DB"] = how.get("ledger") or os.environ["AIRFLOW_CONN_NIGHTMILL_DB"]
    if how.get("cookie"):
        client.cookies.set("_token", tokens[who])
    elif who:
        headers["Authorization"] = f"Bearer {tokens[who]}"
    body = how.get("body") or json.dumps({"logical_date": None, "conf": conf})
    said = client.post(path, content=body, headers=headers)
    told = said.json()
    return [said.status_code, told.get("triggering_user_name") or str(told.get("detail"))]


if __name__ == "__main__":
    main(json.load(sys.stdin), Path(sys.argv[1]))
