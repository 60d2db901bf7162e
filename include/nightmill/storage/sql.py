"""SQL lives in queries/<entity>/<verb>.sql, one file per query. Identifiers go through psycopg.sql."""

from __future__ import annotations

from functools import cache
from importlib import resources

from psycopg import sql

from nightmill.jobs.output.columns import Column

# For a few look-ups among many rows: by Postgres' default costs, which are those of a rotating disk, it reads them all.
BY_INDEX = "set local random_page_cost = 1.1"


@cache
def text(name: str) -> sql.SQL:
    """The query of queries/<name>.sql: "batch/get"."""
    content = resources.files("nightmill.storage").joinpath("queries", *f"{name}.sql".split("/")).read_text("utf-8")
    return sql.SQL(content)


def rows_table(view: str) -> sql.Identifier:
    """The partitioned table behind a view."""
    return sql.Identifier("nightmill", f"rows_{view}")


def published(view: str) -> sql.Identifier:
    """What readers see."""
    return sql.Identifier("results", view)


def names(columns: list[Column]) -> sql.Composable:
    """`, "a", "b"`: typed columns to append to a list of fixed ones."""
    return sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(column.name)) for column in columns)


def typed(columns: list[Column], prefix: str) -> sql.Composable:
    """`, typed."a", typed."b"`: the same with a table alias."""
    return sql.SQL("").join(sql.SQL(", {}").format(sql.Identifier(prefix, column.name)) for column in columns)


def record(columns: list[Column]) -> sql.Composable:
    """`"a" text, "b" bigint[]`: the column list of jsonb_to_record."""
    parts = [sql.SQL("{} {}").format(sql.Identifier(column.name), sql.SQL(column.sql_type)) for column in columns]
    return sql.Composed(parts).join(", ")
