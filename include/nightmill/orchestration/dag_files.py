"""What the files of a DAG folder ask for, each in a line or two: `globals().update(job_dags_of(__file__))`.

Airflow reads only files that contain both words "airflow" and "dag", so that each says in a comment what it is.
The job folders are those of jobs/ beside the file, and of every folder in NIGHTMILL_JOBS_PATH.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG

from nightmill.orchestration import dag_factory


def job_dags_of(file: str) -> dict[str, DAG]:
    """One DAG for each good job folder, by its id."""
    return {dag.dag_id: dag for dag in dag_factory.job_dags(_jobs(file))}


def operations_dags_of(file: str) -> dict[str, DAG]:
    """The DAGs that a person triggers or that run by themselves: replay, publish, rollback, cancel, maintenance."""
    from nightmill.orchestration.operations import cancel_dag, maintenance_dag
    from nightmill.orchestration.publish_dag import publish_dag
    from nightmill.orchestration.replay_dag import replay_dag
    from nightmill.orchestration.rollback_dag import rollback_dag

    jobs = _jobs(file)
    made = (replay_dag(jobs), publish_dag(jobs), rollback_dag(jobs), cancel_dag(), maintenance_dag(jobs))
    return {dag.dag_id: dag for dag in made}


def refuse_broken_jobs(file: str) -> None:
    """Raise ConfigError with what is wrong with the other job folders: the file's import error shows it."""
    dag_factory.refuse_broken_jobs(_jobs(file))


def _jobs(file: str) -> Path:
    return Path(file).parent / "jobs"
