"""The reference and the JSON schema: committed as the models are, and true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dev.write import failure_page, job_reference
from nightmill.jobs.check.yaml_mistakes import inner_model
from nightmill.jobs.settings.job import Job
from nightmill.providers.registry import known_adapters

REPOSITORY = Path(__file__).resolve().parents[2]
DEMO = REPOSITORY / "examples" / "jobs" / "license_audit" / "job.yaml"


@pytest.mark.parametrize("name", [job_reference.PAGE, job_reference.SCHEMA, failure_page.PAGE])
def test_the_committed_file_is_what_make_docs_writes(tmp_path: Path, name: str) -> None:
    job_reference.write(tmp_path)
    committed = (job_reference.DOCS / name).read_text("utf-8")
    assert committed == (tmp_path / name).read_text("utf-8"), "the code changed: run `make docs`"


def test_every_key_stands_in_the_page_with_a_meaning() -> None:
    rows = [line.split(" | ") for line in job_reference.page().splitlines() if line.startswith(("| `", "| ["))]
    assert len(rows) == sum(1 for _ in _keys(Job))
    assert all(row[-1].removesuffix(" |").strip() for row in rows), "each field of job.py needs a description"


def test_links_lead_to_a_heading() -> None:
    page = job_reference.page()
    headings = {
        line.removeprefix("### ").replace(".", "").replace("[]", "").lower()
        for line in page.splitlines()
        if line[:4] == "### "
    }
    linked = {part.split(")")[0] for part in page.split("](#")[1:]}
    assert linked == headings


def test_the_schema_accepts_the_demo_job_and_refuses_an_unknown_key() -> None:
    job: dict[str, Any] = yaml.safe_load(DEMO.read_text("utf-8"))
    schema = job_reference.job_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(job, schema)
    job["provider"]["modle"] = "x"
    with pytest.raises(jsonschema.ValidationError, match="modle"):
        jsonschema.validate(job, schema)


def test_the_demo_job_tells_editors_where_the_schema_is() -> None:
    first = DEMO.read_text("utf-8").splitlines()[0]
    prefix, _, path = first.partition("$schema=")
    assert prefix == "# yaml-language-server: "
    assert (DEMO.parent / path).resolve() == job_reference.DOCS / job_reference.SCHEMA


def test_the_schema_knows_the_adapters_of_the_registry() -> None:
    provider = job_reference.job_schema()["$defs"]["Provider"]["properties"]["adapter"]
    assert tuple(provider["examples"]) == known_adapters()  # not an enum: a third party may bring others


def _keys(model: Any) -> Any:
    for name, field in model.model_fields.items():
        yield name
        inner = inner_model(field.annotation)
        if inner:
            yield from _keys(inner)
