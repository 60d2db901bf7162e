"""When a job runs: a cron expression that Airflow takes, and settings of `dag` that fit it and the rest of the job."""

from __future__ import annotations

from collections.abc import Iterator, Set

from nightmill.domain.errors import Mistake
from nightmill.domain.suggestions import hint, listed
from nightmill.jobs.check.yaml_lines import Place, YamlLines
from nightmill.jobs.settings.job import Job
from nightmill.jobs.settings.publish_settings import PublishMode

_PRESETS = frozenset({"@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly"})  # Airflow's


def schedule_mistakes(job: Job, content: bytes) -> Iterator[Mistake]:
    """What is wrong with `schedule` and `dag` of job.yaml beyond the value of one key."""
    lines = YamlLines(content)
    for place, problem, remedy in (*_bad_cron(job.schedule), *_bad_catchup(job), *_bad_overlap(job), *_bad_loop(job)):
        yield Mistake("job.yaml", lines.line(place), ".".join(map(str, place)), problem, remedy)


_Found = Iterator[tuple[Place, str, str]]


def _bad_cron(schedule: str | None) -> _Found:
    if schedule is None or schedule in _PRESETS:
        return
    from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]

    problem, fields = None, schedule.split()
    if not croniter.is_valid(schedule):
        problem = f"no cron expression{hint(schedule, _PRESETS)}"
    elif not schedule.startswith("@") and len(fields) != 5:
        problem = f"expected five fields, found {len(fields)}: a sixth one would be the seconds at which it runs"
    elif any(field.upper().startswith("R") for field in fields):
        problem = "R stands for a moment at random, another one at each look"
    else:
        try:
            croniter(schedule).get_next()
        except CroniterBadDateError:
            problem = "this moment never comes"
    if problem:
        form = f'Write minute, hour, day, month and weekday, such as "0 2 * * *", or one of {listed(_PRESETS)}'
        yield ("schedule",), problem, f"{form}; in dag.timezone."


def _bad_catchup(job: Job) -> _Found:
    """Each run of the past costs money, so where they begin is said, not inherited."""
    if not job.dag.catchup:
        return
    if job.schedule is None:
        yield ("dag", "catchup"), "the job has no schedule, so there are no intervals to run", "Set `schedule`."
    elif "start_date" not in job.dag.model_fields_set:
        problem = "a run for every interval since start_date starts at once, and the job names no start_date"
        yield ("dag", "catchup"), problem, "Set dag.start_date to the first day whose runs you want to pay for."


def _bad_overlap(job: Job) -> _Found:
    mode = job.publish.mode
    if job.dag.max_active_runs > 1 and mode is not PublishMode.BY_INTERVAL:
        problem = f"runs of a job with publish.mode {mode} replace each other's result, so they do not overlap"
        yield ("dag", "max_active_runs"), problem, f"Set it to 1, or use publish.mode {PublishMode.BY_INTERVAL}."


def _bad_loop(job: Job) -> _Found:
    for place, view in _followed(job):
        if view == job.publish.view:
            problem = "this is the job's own view: each run would start the next one"
            yield place, problem, "Name a view that another job publishes."


def unpublished_views(job: Job, content: bytes, known: Set[str]) -> Iterator[Mistake]:
    """Views in `after_assets` that no job publishes: the job would wait without end. A warning, because another
    deployment's jobs can stand elsewhere."""
    for place, view in _followed(job):
        if view not in known:
            problem = f"no job folder here publishes the view {view!r}{hint(view, known)}"
            remedy = "Correct it, unless its job folder is still to come: until then nothing starts this job."
            yield Mistake("job.yaml", YamlLines(content).line(place), ".".join(map(str, place)), problem, remedy)


def _followed(job: Job) -> Iterator[tuple[Place, str]]:
    """The nightmill views that a job follows, each with its place in job.yaml."""
    after = job.dag.after_assets
    for of in ("all", "any"):
        for index, one in enumerate(getattr(after, of, ())):
            if one.view is not None:
                yield ("dag", "after_assets", of, index, "view"), one.view
