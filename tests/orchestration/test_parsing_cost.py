"""What job folders cost the DAG processor, and a task that runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.figures import note

REPOSITORY = Path(__file__).resolve().parents[2]
DAGS = REPOSITORY / "dags"
EXAMPLES = REPOSITORY / "examples" / "jobs"
FILES = [str(file) for file in sorted(DAGS.glob("*.py"))]
FOLDERS, LIMIT_S = 100, 3.0
OPERATIONS = 5
OPENED = """
import json, os, sys
from pathlib import Path
opened, read = [], []
EVENTS = ("open", "os.listdir", "os.scandir")
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event in EVENTS else None)
from airflow.dag_processing.dagbag import DagBag
cases, roots = json.loads(sys.argv[1]), tuple(sys.argv[2:])
for file, dag_id, task_id in cases:
    os.environ |= {"_AIRFLOW_PARSING_CONTEXT_DAG_ID": dag_id, "_AIRFLOW_PARSING_CONTEXT_TASK_ID": task_id}
    del opened[:]
    dags = sorted(DagBag(file).dags)
    read.append((dags, sorted({file for file in opened if file.startswith(roots)})))
print(json.dumps(read))
"""


def hundred_jobs(root: Path) -> None:
    """Copies of the examples, each of another content."""
    examples = sorted(path.parent for path in EXAMPLES.glob("*/job.yaml"))
    for number in range(FOLDERS):
        one = examples[number % len(examples)]
        folder = root / f"copy_{number}"
        shutil.copytree(one, folder, ignore=shutil.ignore_patterns("__pycache__"))
        text = (folder / "job.yaml").read_text()
        (folder / "job.yaml").write_text(text.replace(f"view: {one.name}", f"view: copy_{number}"))
        with (folder / "output.py").open("a") as file:
            file.write(f"\n# {number}\n")


def run(arguments: list[str], **variables: str) -> Any:
    env = os.environ | {"PYTHONPATH": str(REPOSITORY / "include")} | variables
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_cycle_over_a_hundred_job_folders_costs_three_cpu_seconds(jobs_folder: Path, tmp_path: Path) -> None:
    """Serialising included, as Airflow does after each parse."""
    hundred_jobs(jobs_folder)
    script = REPOSITORY / "tests" / "support" / "processor_cycle.py"
    cycles = run([str(script), "2", *FILES], NIGHTMILL_CACHE=str(tmp_path / "cache"))
    first, second = (sum(file["cpu"] for file in cycle.values()) for cycle in cycles)
    note(f"a cycle over {FOLDERS} job folders: {first:.1f} CPU s; unchanged, {second:.1f} CPU s")
    for cycle in cycles:
        assert [error for file in cycle.values() for error in file["errors"]] == []
        assert len(cycle["nightmill_jobs.py"]["dags"]) == FOLDERS
        assert len(cycle["nightmill_ops.py"]["dags"]) == OPERATIONS
    assert second <= LIMIT_S
    assert second < first


def test_the_parse_of_a_running_task_reads_its_own_folder_and_no_other(jobs_folder: Path) -> None:
    """A task of an operations DAG that no job shapes reads none."""
    for name in ("mine", "neighbour"):
        shutil.copytree(EXAMPLES / "license_audit", jobs_folder / name)
    jobs, operations = str(DAGS / "nightmill_jobs.py"), str(DAGS / "nightmill_ops.py")
    cases = [
        (jobs, "nightmill_mine", "publish"),
        (operations, "nightmill_maintenance", "orphans"),
        (operations, "nightmill_publish", "compare"),
        (operations, "nightmill_replay", "choose"),
    ]
    mine, *others = run(["-c", OPENED, json.dumps(cases), str(jobs_folder), str(DAGS / "jobs")])
    assert mine[0] == ["nightmill_mine"]
    assert {Path(file).name for file in mine[1]} >= {"job.yaml", "prompt.md", "output.py"}
    assert {Path(file).parent for file in mine[1]} == {jobs_folder / "mine"}
    for (_, dag_id, _), (dags, read) in zip(cases[1:], others, strict=True):
        assert dag_id in dags
        assert read == []
