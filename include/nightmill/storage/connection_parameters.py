"""What every connection to a Postgres server is opened with, unless its address says otherwise.

A host that vanishes (a failover, a cut network) sends no end of its connections. Whoever waits for its answer waits for
hours by the defaults of the operating system, and so does a server for a vanished client, whose locks it keeps.
"""

from __future__ import annotations

from typing import Any

from psycopg.conninfo import conninfo_to_dict

# A silent peer is given up after 30 + 3 * 10 s of waiting, or 60 s after something was sent to it.
PATIENCE = {
    "connect_timeout": "10",
    "keepalives": "1",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",  # ms
}
# The same, for the server's end of it.
_SERVERS_END = (
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 -c tcp_user_timeout=60000"
)


def parameters(dsn: str, *, defaults: str = "", settings: str = "") -> dict[str, Any]:
    """The arguments of psycopg's connect. `defaults` are options that the address may set otherwise (-c name=value),
    `settings` such as it may not. Raises psycopg.ProgrammingError for an address that is none; it quotes it."""
    given = conninfo_to_dict(dsn)
    options = " ".join(filter(None, [_SERVERS_END, defaults, str(given.get("options", "")), settings]))
    return {**PATIENCE, **given, "options": options}
