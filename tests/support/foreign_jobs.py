"""Jobs that stand outside the repository, with their source tables. The canaries are looked for afterwards."""

from __future__ import annotations

from pathlib import Path

import psycopg

CANARY = "canary-7d1f0e-document"
PROMPT_CANARY = "canary-7d1f0e-prompt"
NOTES, LETTERS, POSTCARDS = "nightmill_notes", "nightmill_letters", "nightmill_postcards"
PARCELS, NIGHTS, PERMITS = "nightmill_parcels", "nightmill_nights", "nightmill_permits"
ITEMS = 48

JOB_YAML = """
description: {name} for tests.
tags: [test]
source:
  conn_id: other_source
  query: select id, version, tenant, body, weight from {name}
  columns: {{id: id, version: version, text: body, tenant: tenant}}
provider:
  conn_id: {provider}
  model: echo-1
  parameters: {{max_completion_tokens: 60}}
  poll_interval_s: 2
  create_timeout_s: 20
  quiet_period_s: 5
shards: {{count: {shards}}}
retry: {{max_attempts: 2, base_delay_s: 1}}
gaps: {{min_completion: 0.9}}
compare: {{max_gone_share: null, fields: {{title: {{measure: normalised}}}}}}
publish: {{view: {name}}}
"""
PROMPT = f"""{{{{ body }}}}

Weigh the {{{{ weight }}}} note above. {PROMPT_CANARY}
"""
OUTPUT = '''
from pydantic import BaseModel, ConfigDict


class Output(BaseModel):
    """A note."""

    model_config = ConfigDict(extra="forbid")

    title: str
    pages: int
'''


def write_job(jobs: Path, name: str, provider: str, shards: int, schedule: str | None = None, more: str = "") -> None:
    folder = jobs / name
    folder.mkdir(parents=True)
    often = f'schedule: "{schedule}"\n' if schedule else ""
    (folder / "job.yaml").write_text(JOB_YAML.format(name=name, provider=provider, shards=shards) + often + more)
    (folder / "prompt.md").write_text(PROMPT)
    (folder / "output.py").write_text(OUTPUT)


def fill_source(dsn: str, table: str, count: int) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(f"create table {table} (id text, version text, tenant text, body text, weight int)")
        conn.execute(
            f"insert into {table} select 'doc-' || n, '1', case when n <= %s / 2 then 'acme' else 'umbrella' end, "
            f"%s || ' {table} number ' || n || repeat(' word', n), n from generate_series(1, %s) n",
            (count, CANARY, count),
        )
