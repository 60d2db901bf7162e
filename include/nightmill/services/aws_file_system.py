"""fsspec's S3 with an Airflow connection of type aws, which the amazon provider itself reads: keys, a session token, a
profile, a role to assume; where it names none of them, what boto3 finds on the machine (an instance's or a pod's role).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

SCHEMES = frozenset({"s3", "s3a"})


def options_of(conn_id: str, login: str, password: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of s3fs's file system. Raises what the provider and boto3 raise: a role is assumed here, and again by
    itself before it expires."""
    return _options(json.dumps([conn_id, login, password, extra], sort_keys=True))


@lru_cache(maxsize=8)
def _options(fields: str) -> dict[str, Any]:
    """One session for each connection: fsspec keeps a file system, with its threads and sockets, for every session."""
    from airflow.providers.amazon.aws.hooks.base_aws import resolve_session_factory
    from airflow.providers.amazon.aws.utils.connection_wrapper import AwsConnectionWrapper

    conn_id, login, password, extra = json.loads(fields)
    connection = AwsConnectionWrapper.from_connection_metadata(conn_id, login or None, password or None, extra)
    factory = resolve_session_factory()(conn=connection, config=connection.botocore_config)
    config = dict(extra.get("config_kwargs") or {})
    unsigned = config.get("signature_version") == "unsigned"
    if unsigned:
        del config["signature_version"]  # s3fs has a word of its own for it
    client = {"region_name": connection.region_name, "verify": connection.verify}
    return {
        "session": factory.create_session(deferrable=True),
        "anon": unsigned,
        "endpoint_url": connection.get_service_endpoint_url("s3"),
        "client_kwargs": {name: value for name, value in client.items() if value is not None},
        "config_kwargs": config,
    }
