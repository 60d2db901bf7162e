"""replay: sends dead letters of a batch again, through the job's own DAG."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from typing import Any

from nightmill.cli.dead_letters import choice_of
from nightmill.cli.estimate import job_of
from nightmill.domain.errors import ConfigError
from nightmill.operations import replay
from nightmill.operations.replay import Prospect
from nightmill.services.airflow_rest import (
    AIRFLOW_PASSWORD,
    AIRFLOW_URL,
    AIRFLOW_USER,
    AirflowClient,
    AirflowRefused,
)
from nightmill.services.connections import environment_of


def run(arguments: argparse.Namespace) -> int:
    """Say what is sent again and, unless it is a dry run, trigger it."""
    choice = choice_of(arguments)
    prospect = replay.look(environment_of(os.environ), job_of(arguments), arguments.batch, choice)
    run_id = None
    if not arguments.dry_run:
        given = replay.configuration(prospect, choice, arguments.note)
        run_id = trigger(prospect.parent.dag_id, given, os.environ)
    if arguments.json:
        print(json.dumps(fields(prospect, run_id)))
    else:
        print(prospect)
        print(f"triggered {prospect.parent.dag_id}, run {run_id}" if run_id else "dry run: nothing was triggered")
    return 0


def trigger(
    dag_id: str, given: Mapping[str, Any], variables: Mapping[str, str], by_hand: str = "nightmill_replay"
) -> str:
    """Start the run and return its id; `by_hand` is the DAG that a person triggers instead.

    Raises ConfigError where Airflow's address or login is missing, or the DAG is unknown or paused.
    """
    missing = [name for name in (AIRFLOW_URL, AIRFLOW_USER, AIRFLOW_PASSWORD) if not variables.get(name)]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)} not set: Airflow cannot be reached.",
            f"Set them, or trigger the DAG {by_hand} in the UI.",
        )
    with AirflowClient(variables[AIRFLOW_URL], variables[AIRFLOW_USER], variables[AIRFLOW_PASSWORD]) as client:
        try:
            paused = client.dag(dag_id)["is_paused"]
        except AirflowRefused as refusal:
            if refusal.status != 404:
                raise
            raise ConfigError(f"Airflow has no DAG {dag_id}.", "Is its job folder deployed there, and valid?") from None
        if paused:
            raise ConfigError(f"The DAG {dag_id} is paused: its run would not start.", "Unpause it.")
        return client.trigger(dag_id, given)


def fields(prospect: Prospect, run_id: str | None) -> dict[str, Any]:
    """What is sent again, as JSON; `run_id` is null on a dry run."""
    return {
        "job": prospect.parent.job,
        "parent_batch": prospect.parent.batch_id,
        "sent_again": prospect.chosen.items,
        "dead_letters": _by_reason(prospect.chosen.dead_letters),
        "in_review": _by_reason(prospect.chosen.in_review),
        "unsettled": prospect.chosen.unsettled,
        "carried": prospect.carried,
        "contract_changed": prospect.contract_changed,
        "dag_id": prospect.parent.dag_id,
        "run_id": run_id,
    }


def _by_reason(counts: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [{"class": kind, "code": code, "letters": count} for (kind, code), count in counts.items()]
