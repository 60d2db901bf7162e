"""estimate: what a run of a job would send and cost, before anything is frozen or paid."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from datetime import datetime
from typing import Any

from nightmill.domain.errors import ConfigError
from nightmill.domain.estimate import described
from nightmill.domain.suggestions import aside, listed
from nightmill.domain.wording import pluralised
from nightmill.jobs import job_folders
from nightmill.jobs.contract import JobDefinition
from nightmill.jobs.filters import read_all
from nightmill.jobs.prompt.prompt import written
from nightmill.operations import estimate
from nightmill.operations.estimate import Forecast, Question
from nightmill.services.connections import environment_of


def run(arguments: argparse.Namespace) -> int:
    """Print the estimate."""
    env = environment_of(os.environ)
    live = job_of(arguments)
    start, end = arguments.data_interval or (arguments.data_interval_start, arguments.data_interval_end)
    question = Question(
        limit=arguments.limit,
        reprocess=arguments.reprocess,
        priority=arguments.priority,
        filters=read_all(live.job.source.filters, arguments.filter),
        data_interval_start=start,
        data_interval_end=end,
    )
    forecast = estimate.run(env, live, question)
    print(json.dumps(fields(live, forecast)) if arguments.json else text(live, forecast, env.now()))
    return 0


def job_of(arguments: argparse.Namespace) -> JobDefinition:
    """The job folder that a command names. Raises ConfigError with the nearest name."""
    folders = job_folders.find(job_folders.roots(arguments.jobs)).folders
    if arguments.job not in folders:
        raise ConfigError(
            f"There is no job folder {arguments.job!r}{aside(arguments.job, folders)}.",
            f"Use one of {listed(folders)}, or name its parent with --jobs or {job_folders.JOBS_PATH}.",
        )
    return job_folders.read(folders[arguments.job])


def text(live: JobDefinition, forecast: Forecast, now: datetime) -> str:
    """For people: the words of the dry run, and what else was seen."""
    lines = [f"{live.name}: nothing was written or sent", *described(forecast.estimate, now)]
    chosen = ", ".join(f"{name}={written(value)}" for name, value in forecast.parameters.items())
    if chosen:
        lines.append(f"query parameters: {chosen}")
    if forecast.never_sent:
        lines.append(f"{pluralised(forecast.never_sent, 'item')} never sent: blank, or longer than the context window")
    if forecast.gave_up:
        lines.append(f"{pluralised(forecast.gave_up, 'item')} gave up before under this contract and not asked again")
    if forecast.checked_again:
        again = pluralised(forecast.checked_again, "stored answer")
        lines.append(f"{again} of other rules than today's, counted as reused and checked again first")
    return "\n".join(lines)


def fields(live: JobDefinition, forecast: Forecast) -> dict[str, Any]:
    """For scripts; money as text."""
    seen = asdict(forecast)
    return {"job": live.name, **seen, "estimate": forecast.estimate.as_json()}
