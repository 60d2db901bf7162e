"""The DAG file as Airflow sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.hostile_folders import write_some
from support.pipeline import JOB_YAML, OUTPUT, PROMPT

from nightmill.jobs.job_folders import JOBS_PATH
from nightmill.jobs.output import job_code

REPOSITORY = Path(__file__).resolve().parents[2]
DAGS = REPOSITORY / "dags"
EXAMPLES = REPOSITORY / "examples" / "jobs"
BUILT_IN = {"nightmill_license_audit", "nightmill_readme_vectors", "nightmill_requirement_lines"}
OPERATIONS = {f"nightmill_{name}" for name in ("cancel", "maintenance", "publish", "replay", "rollback")}
CHAIN = (
    "freeze_snapshot", "plan_shards", "preflight", "run_shard", "reconcile", "check_staging", "compare", "approve",
    "publish", "report",
)  # fmt: skip
PARSE_LIMIT_S = 1.0  # CPU seconds; about 0.1 s on an idle core
PARSE = """
import json, sys, time
import airflow.sdk
from pathlib import Path
airflow_itself = set(sys.modules)
began = time.process_time()
from nightmill.orchestration.dag_factory import job_dags
dags = list(job_dags(Path(sys.argv[1])))
print(json.dumps({
    "seconds": time.process_time() - began,
    "dags": [dag.dag_id for dag in dags],
    "imported": sorted({name.split(".")[0] for name in set(sys.modules) - airflow_itself}),
}))
"""


def bag() -> Any:
    from airflow.dag_processing.dagbag import DagBag

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(JOBS_PATH, ":".join(filter(None, [str(EXAMPLES), os.environ.get(JOBS_PATH)])))
        return DagBag(DAGS)


def write_job(root: Path, name: str, job_yaml: str = JOB_YAML) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    for file, content in (("job.yaml", job_yaml), ("prompt.md", PROMPT), ("output.py", OUTPUT)):
        (folder / file).write_text(content)
    return folder


@pytest.fixture(scope="module")
def dag() -> Any:
    found = bag()
    assert found.import_errors == {}
    return found.dags["nightmill_license_audit"]


def test_every_built_in_job_becomes_a_dag_without_import_errors() -> None:
    found = bag()
    assert found.import_errors == {}
    names = {path.parent.name for path in EXAMPLES.glob("*/job.yaml")}
    assert names
    assert set(found.dags) == {f"nightmill_{name}" for name in names} | OPERATIONS


def test_the_stages_stand_in_one_row_in_the_order_of_the_design(dag: Any) -> None:
    assert set(dag.task_ids) == set(CHAIN)
    assert [task.task_id for task in dag.topological_sort()] == list(CHAIN)
    for before, after in pairwise(CHAIN):
        assert after in dag.get_task(before).downstream_task_ids


def test_what_follows_the_mapped_task_runs_although_it_was_skipped(dag: Any) -> None:
    rules = {task.task_id: task.trigger_rule.value for task in dag.tasks}
    before, after = CHAIN[: CHAIN.index("reconcile")], CHAIN[CHAIN.index("reconcile") :]
    assert {rules[name] for name in before} == {"all_success"}
    assert {rules[name] for name in after} == {"none_failed"}


def test_the_tasks_that_move_documents_take_slots_of_the_batch_pool(dag: Any) -> None:
    assert {task.task_id for task in dag.tasks if task.pool == "nightmill_batch"} == {
        "freeze_snapshot", "plan_shards", "run_shard",
    }  # fmt: skip


def test_every_task_is_retried_because_a_retry_is_free(dag: Any) -> None:
    assert all(task.retries >= 2 for task in dag.tasks)


def test_the_retries_of_a_task_outlast_a_database_that_fails_over_for_some_minutes(dag: Any) -> None:
    for task in dag.tasks:
        waits = [task.retry_delay * task.retry_exponential_backoff**tried for tried in range(task.retries)]
        assert sum((min(wait, task.max_retry_delay) for wait in waits), timedelta()) >= timedelta(minutes=10)
        assert waits[0] <= timedelta(seconds=10)


def test_runs_of_a_job_do_not_overlap_and_the_past_is_not_caught_up(dag: Any) -> None:
    assert dag.max_active_runs == 1
    assert dag.catchup is False
    assert {"nightmill", "demo", "compliance"} == set(dag.tags)


def test_the_documentation_names_the_view_and_what_clearing_does(dag: Any) -> None:
    assert "results.license_audit" in dag.doc_md
    assert "Clearing a task never pays twice" in dag.doc_md


def test_the_mapped_instances_are_named_by_their_label(dag: Any) -> None:
    assert dag.get_task("run_shard").partial_kwargs["map_index_template"] == "{{ task.shard_label }}"


def test_only_publish_emits_the_asset(dag: Any) -> None:
    outlets = {task.task_id: [one.name for one in task.outlets] for task in dag.tasks if getattr(task, "outlets", None)}
    assert outlets == {"publish": ["nightmill_license_audit"]}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"dry_run": True, "limit": 1, "reprocess": True, "note": "why"},
        {"data_interval_start": "2026-01-01T00:00:00+00:00", "data_interval_end": "2026-01-02T00:00:00Z"},
        {"parent_batch": 7, "replay": {"classes": ["input"]}, "note": "replay of batch 7", "requested_by": None},
    ],
)
def test_good_params_pass_the_schema(dag: Any, params: dict[str, Any]) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    served = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    served.params.deep_merge(params).validate()


@pytest.mark.parametrize(
    "params",
    [
        {"dry_run": "yes"},
        {"limit": 0},
        {"limit": 1.5},
        {"reprocess": None},
        {"data_interval_start": "yesterday"},
        {"note": "x" * 501},
    ],
)
def test_bad_params_are_refused_before_a_run_exists(dag: Any, params: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import ParamValidationError
    from airflow.serialization.serialized_objects import DagSerialization

    served = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    with pytest.raises((ParamValidationError, ValueError)):
        served.params.deep_merge(params).validate()


def test_two_parses_in_two_processes_serialise_equal() -> None:
    """Anything unstable would make a new DAG version at every parse."""
    code = (
        "import json, sys; from airflow.dag_processing.dagbag import DagBag\n"
        "from airflow.serialization.serialized_objects import DagSerialization\n"
        "bag = DagBag(sys.argv[1])\n"
        "print(json.dumps({name: DagSerialization.to_dict(dag) for name, dag in bag.dags.items()}))"
    )
    first, second = (run_python(code, {"PYTHONHASHSEED": seed, JOBS_PATH: str(EXAMPLES)}) for seed in ("1", "2"))
    assert first["nightmill_license_audit"]
    assert first["nightmill_maintenance"]
    assert first == second


def test_a_schedule_is_read_in_utc_with_data_intervals(jobs_folder: Path) -> None:
    write_job(jobs_folder, "nightly", JOB_YAML + 'schedule: "0 2 * * *"\n')
    dag = bag().dags["nightmill_nightly"]
    assert type(dag.timetable).__name__ == "CronDataIntervalTimetable"
    assert dag.timetable.expression == "0 2 * * *"


@pytest.mark.parametrize(
    ("broken_file", "content", "word"),
    [
        ("job.yaml", "description: [", "job.yaml"),
        ("job.yaml", JOB_YAML + "colour: blue\n", "colour"),
        ("job.yaml", JOB_YAML + 'schedule: "at night"\n', "schedule"),
        ("prompt.md", "{{ unclosed", "prompt.md"),
        ("output.py", "this is no Python", "output.py"),
        ("output.py", "import sys; sys.exit(3)", "output.py"),
        ("checks.yaml", "expectations: 7", "checks.yaml"),
    ],
)
def test_a_broken_job_folder_is_an_import_error_that_names_it_and_hides_no_other_job(
    jobs_folder: Path, broken_file: str, content: str, word: str
) -> None:
    write_job(jobs_folder, "good")
    (write_job(jobs_folder, "broken") / broken_file).write_text(content)
    found = bag()
    assert set(found.dags) == {*BUILT_IN, *OPERATIONS, "nightmill_good"}
    [(file, error)] = found.import_errors.items()
    assert (
        Path(file).name == "nightmill_broken_jobs.py"
    )  # Airflow takes all DAGs of a file with an import error off the schedule
    assert str(jobs_folder / "broken") in error
    assert word in error


def test_hostile_folders_are_one_import_error_that_names_each_and_every_other_job_is_a_dag(
    jobs_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_code, "LIMIT_S", 1.0)
    said = write_some(jobs_folder)
    (jobs_folder / os.fsdecode(b"caf\xe9")).mkdir()
    (jobs_folder / os.fsdecode(b"caf\xe9") / "job.yaml").write_text("description: x")
    found = bag()
    assert set(found.dags) == {*BUILT_IN, *OPERATIONS, "nightmill_a_good_one", "nightmill_z_good_one"}
    [(file, error)] = found.import_errors.items()
    assert Path(file).name == "nightmill_broken_jobs.py"
    for name, words in said.items():
        assert str(jobs_folder / name) in error
        assert words in error
    assert error.encode("utf-8")  # the metadata database stores it


def test_the_import_error_lists_every_mistake_of_a_folder_with_its_line(jobs_folder: Path) -> None:
    folder = write_job(jobs_folder, "broken", JOB_YAML.replace("model:", "modle:").replace("count: 2", "count: two"))
    (folder / "checks.yaml").write_text("expectations:\n- {type: ExpectColumnToExist, column: titel}\n")
    (error,) = bag().import_errors.values()
    assert "job.yaml:9: provider.modle: unknown key; did you mean 'model'?" in error
    assert "job.yaml:15: shards.count: expected a whole number, found text" in error
    assert "checks.yaml:2: ExpectColumnToExist.column: output.py has no field 'titel'; did you mean 'title'?" in error


def test_a_name_that_stands_twice_is_said_and_hides_no_other_job(jobs_folder: Path) -> None:
    write_job(jobs_folder, "license_audit")
    write_job(jobs_folder, "good")
    found = bag()
    (error,) = found.import_errors.values()
    assert "license_audit" in error
    assert "nightmill_good" in found.dags
    assert "nightmill_license_audit" in found.dags


def test_a_running_task_builds_only_its_own_dag_and_no_broken_neighbour_stops_it(
    jobs_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nightmill.orchestration.dag_factory import job_dags

    write_job(jobs_folder, "good")
    (write_job(jobs_folder, "broken") / "output.py").write_text("raise SystemExit")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "nightmill_good")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "run_shard")
    assert [dag.dag_id for dag in job_dags(EXAMPLES)] == ["nightmill_good"]


def test_parsing_is_fast_and_imports_nothing_heavy() -> None:
    """Each task parses the file again before it works."""
    seen = run_python(PARSE, {}, str(EXAMPLES))
    assert set(seen["dags"]) == BUILT_IN
    heavy = {"great_expectations", "openai", "psycopg", "pandas", "numpy", "s3fs", "httpx2", "bpe_openai", "gigatoken"}
    assert heavy & set(seen["imported"]) == set()
    assert seen["seconds"] < PARSE_LIMIT_S


def run_python(code: str, variables: dict[str, str], folder: str = str(DAGS)) -> Any:
    env = os.environ | {"PYTHONPATH": str(REPOSITORY / "include")} | variables
    done = subprocess.run([sys.executable, "-c", code, folder], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
