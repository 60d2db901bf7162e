"""Operations in the Airflow UI, a DAG each."""

from pathlib import Path

from nightmill.orchestration.replay_dag import replay_dag

nightmill_replay = replay_dag(Path(__file__).parent / "jobs")
