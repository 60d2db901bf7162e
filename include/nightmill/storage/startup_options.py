"""Connecting where a pooler before the server takes no startup options (PgBouncer unless told to ignore them, RDS Proxy
and others): the same settings are made by SQL instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

Settings = Sequence[tuple[str, str]]

_REFUSAL = re.compile(r"unsupported startup parameter|command-line option|startup option", re.IGNORECASE)
_PART = re.compile(r"(?:[^\s\\]|\\.)+", re.DOTALL)  # a backslash keeps a blank within one
_SETTING = re.compile(r"(?:-c|--)?([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_OF_THE_PEER = re.compile(r"tcp_\w+")  # how the server looks after its client, which is the pooler here


def connect(arguments: Mapping[str, Any]) -> tuple[psycopg.Connection[Any], Settings]:
    """A connection, and what the caller must set in it by SQL. Raises what psycopg's connect raises."""
    try:
        return psycopg.connect(**arguments), ()
    except psycopg.OperationalError as fault:
        settings = _instead(fault, arguments)
        if settings is None:
            raise
    return psycopg.connect(**_without_options(arguments)), settings


async def connect_async(arguments: Mapping[str, Any]) -> tuple[psycopg.AsyncConnection[Any], Settings]:
    """The same for the triggerer."""
    try:
        return await psycopg.AsyncConnection.connect(**arguments), ()
    except psycopg.OperationalError as fault:
        settings = _instead(fault, arguments)
        if settings is None:
            raise
    return await psycopg.AsyncConnection.connect(**_without_options(arguments)), settings


def statement(settings: Settings, *, local: bool) -> tuple[str, list[Any]]:
    """One statement that makes the settings, and its values; `local`: for the transaction only."""
    calls = ", ".join(["pg_catalog.set_config(%s, %s, %s)"] * len(settings))
    return f"select {calls}", [value for name, text in settings for value in (name, text, local)]


def settings_of(options: str) -> Settings | None:
    """The settings of `-c name=value --name=value`, the last of each name; None where something else stands there."""
    parts = [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in _PART.findall(options)]
    found: dict[str, str] = {}
    while parts:
        part = parts.pop(0)
        if part == "-c" and parts:
            part += parts.pop(0)
        read = _SETTING.fullmatch(part) if part.startswith("-") else None
        if read is None:
            return None
        found[read[1].replace("-", "_")] = read[2]
    return list(found.items())


def _instead(refusal: psycopg.OperationalError, arguments: Mapping[str, Any]) -> Settings | None:
    """The settings of options that were refused; None where something else went wrong."""
    if not arguments.get("options") or not _REFUSAL.search(str(refusal)):
        return None
    settings = settings_of(str(arguments["options"]))
    return None if settings is None else [one for one in settings if not _OF_THE_PEER.fullmatch(one[0])]


def _without_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "options"}
