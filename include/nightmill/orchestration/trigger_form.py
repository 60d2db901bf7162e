"""What the trigger form asks. Airflow validates values by these schemas; they are bound, never pasted into SQL."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from nightmill.domain.priority import Priority
from nightmill.jobs.filters import Filter, as_json
from nightmill.jobs.rules.data_interval import ONE_INTERVAL, is_window
from nightmill.jobs.rules.publishing import Publishing
from nightmill.jobs.settings.job import Job
from nightmill.jobs.settings.publish_settings import PublishMode

FILTERS, RUN, INTERVAL = "Filters", "This run", "Data interval"


def trigger_form(job: Job) -> dict[str, Param]:
    """The Params of a job's DAG: its own filters first. The data interval stands among them only where Airflow's form
    has no place for it (docs/explanation/adr/0012)."""
    filters = {name: _filter(name, one) for name, one in job.source.filters.items()}
    by_hand_only = job.schedule is None and job.dag.after_assets is None
    by_interval = job.publish.mode is PublishMode.BY_INTERVAL
    form = filters | _run(job) | (_interval() if by_hand_only else {})
    return form | (_replace_intervals() if by_interval else {})


def _filter(name: str, one: Filter) -> Param:
    words = [_sentence(one.description), *_range(one), *(["Empty: no restriction."] if one.nullable else [])]
    default = as_json({name: one.default})[name]
    title = name.replace("_", " ").capitalize()
    return Param(default, section=FILTERS, title=title, description=" ".join(words), **one.schema_of_value)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _range(one: Filter) -> list[str]:
    if one.minimum is None and one.maximum is None:
        return []
    return [f"{_end('From', one.minimum)}{_end(' to', one.maximum)}.".strip().capitalize()]


def _end(word: str, value: Any) -> str:
    return "" if value is None else f"{word} {value}"


_PUBLISHED = {
    PublishMode.REPLACE: "the result replaces what the view shows, for everybody",
    PublishMode.BY_INTERVAL: "the result replaces what the view shows of its interval, for everybody",
    PublishMode.BY_KEY: "the result replaces what the view shows of the ids that it carries, and other ids stay",
}


def _run(job: Job) -> dict[str, Param]:
    replaces_all = is_window(job.source.query) and job.publish.mode is PublishMode.REPLACE
    window = f" {ONE_INTERVAL[0].upper()}{ONE_INTERVAL[1:]}." if replaces_all else ""
    return {
        "limit": _field(
            "Limit",
            None,
            "At most this many source rows. Empty: all. Readers do not see the result unless publish says yes.",
            type=["null", "integer"],
            minimum=1,
        ),
        "dry_run": _field(
            "Dry run",
            False,
            "Freeze, plan and price; send nothing. The estimate stands in the report.",
            type="boolean",
        ),
        "publish": _field(
            "Publish",
            str(Publishing.AUTO),
            f"yes: {_PUBLISHED[job.publish.mode]}. no: it is a preview, and the view stays. "
            f"auto: no for a run with a limit or with a filter that differs from its default, else yes.{window}",
            type="string",
            enum=[str(one) for one in Publishing],
        ),
        "reprocess": _field(
            "Reprocess", False, "Ask and pay again, also where an accepted result exists.", type="boolean"
        ),
        "priority": _field(
            "Priority",
            str(Priority.NORMAL),
            "low: sends only while it leaves half of the account's enqueued-token limit to other runs. No effect where "
            "no limit is known.",
            type="string",
            enum=[str(one) for one in Priority],
        ),
        "note": _field("Note", None, "Why this run; kept with the batch.", type=["null", "string"], maxLength=500),
    }


def _field(title: str, default: Any, description: str, **schema: Any) -> Param:
    return Param(default, description=description, section=RUN, title=title, **schema)


def _interval() -> dict[str, Param]:
    return {name: _moment(name) for name in ("data_interval_start", "data_interval_end")}


def _replace_intervals() -> dict[str, Param]:
    words = "The result takes the place of all intervals that the view shows and this one covers wholly."
    return {
        "replace_intervals": Param(
            False, type="boolean", section=INTERVAL, title="Replace intervals", description=words
        )
    }


def _moment(name: str) -> Param:
    return Param(
        None,
        type=["null", "string"],
        format="date-time",
        section=INTERVAL,
        title=name.replace("_", " ").capitalize(),
        description=f"Bound as %({name})s. Empty: the run has none.",
    )
