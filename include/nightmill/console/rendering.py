"""HTML from templates: every value is escaped, whatever it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from nightmill.domain import addresses


def render(template: str, **values: Any) -> str:
    """A page as text."""
    return _templates.get_template(template).render(**values)


def _moment(value: datetime | None) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if value is not None else "–"


def _number(value: int | None) -> str:
    return f"{value:,}" if value is not None else "–"


def _batch_link(dag_id: str, run_id: str) -> str:
    """From one page to another, wherever Airflow is mounted itself."""
    return addresses.batch_page(dag_id, run_id).removeprefix(f"{addresses.MOUNT}/")


def _shard_link(dag_id: str, shard_id: int) -> str:
    return addresses.shard_page(dag_id, shard_id).removeprefix(f"{addresses.MOUNT}/")


def _compare_link(dag_id: str, batch_id: int) -> str:
    """From a page beside it."""
    return addresses.compare_page(dag_id, batch_id).removeprefix(f"{addresses.MOUNT}/")


def _percent(value: float | None) -> str:
    return f"{value:.1%}" if value is not None else "–"


def _share(counted: list[int]) -> str:
    """Of two counts, the first one's share in the second."""
    count, of = counted
    return f"{count:,} ({count / of:.1%})" if of else f"{count:,}"


_templates = Environment(
    loader=PackageLoader("nightmill.console"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {"moment": _moment, "number": _number, "percent": _percent, "share": _share}
_templates.globals |= {"batch_link": _batch_link, "shard_link": _shard_link, "compare_link": _compare_link}
