"""A job folder as a value: checked as a whole; each version changes with what it stands for and with nothing else."""

from __future__ import annotations

import codecs
from collections.abc import Callable

import pytest

from nightmill.domain.errors import ConfigError
from nightmill.domain.keys import short_hash
from nightmill.jobs.contract import JobDefinition

JOB = """description: A job.
source:
  conn_id: source
  query: select * from documents
  columns: {id: id, text: body, version: version}
transform: {name: whole_document, version: "1"}
provider:
  conn_id: provider
  model: m-1
  parameters: {temperature: 0, max_completion_tokens: 50}
validation:
  citations: [{quote: evidence, source: body}]
retry: {max_attempts: 3}
gaps: {min_completion: 0.9}
publish: {view: things}
"""
PROMPT = "{{ title }} {{ body }}"
OUTPUT = """from pydantic import BaseModel

class Output(BaseModel):
    kind: str
    evidence: str
"""
CHECKS = """expectations:
  - {type: ExpectColumnValuesToNotBeNull, column: kind}
"""


def folder(name: str = "things", **files: str) -> JobDefinition:
    content = {"job.yaml": JOB, "prompt.md": PROMPT, "output.py": OUTPUT, "checks.yaml": CHECKS}
    content |= {name.replace("_", "."): text for name, text in files.items()}
    return JobDefinition(name, {name: text.encode() for name, text in content.items()})


def changed(file: str, old: str, new: str) -> JobDefinition:
    content = {"job.yaml": JOB, "prompt.md": PROMPT, "output.py": OUTPUT, "checks.yaml": CHECKS}[file]
    assert old in content
    return folder(**{file.replace(".", "_"): content.replace(old, new)})


def versions(one: JobDefinition) -> dict[str, str]:
    found = {name: getattr(one.versions, name) for name in one.versions.__slots__}
    return found | {"validators_hash": one.validators_hash}


@pytest.mark.parametrize(
    ("file", "old", "new", "moved"),
    [
        ("prompt.md", "{{ body }}", "{{ body }}!", {"prompt_version"}),
        ("job.yaml", "model: m-1", "model: m-2", {"model_policy_version"}),
        ("job.yaml", "temperature: 0", "temperature: 1", {"model_policy_version"}),
        ("job.yaml", "conn_id: provider", "conn_id: provider\n  task: embeddings", {"model_policy_version"}),
        ("job.yaml", 'version: "1"', 'version: "2"', {"transform_version"}),
        ("job.yaml", "name: whole_document", "name: pages", {"transform_name"}),
        ("output.py", "kind: str", "kind: str | None", {"output_schema_version", "validators_hash"}),
        ("output.py", "kind: str", "kind: str  # of thing", {"validators_hash"}),
        ("job.yaml", "source: body}]", "source: body, min_score: 80}]", {"validators_hash"}),
        ("job.yaml", "source: body}]", "source: body}]\n  time_zone: Europe/Berlin", {"validators_hash"}),
        ("job.yaml", "min_completion: 0.9", "min_completion: 0.5", set()),
        ("job.yaml", "max_attempts: 3", "max_attempts: 5", set()),
        ("job.yaml", "conn_id: provider", "conn_id: another", set()),
        ("job.yaml", "conn_id: provider", "conn_id: provider\n  limits: {requests_per_file: 5}", set()),
        ("job.yaml", "conn_id: provider", "conn_id: provider\n  poll_interval_s: 5", set()),
        ("job.yaml", "select * from documents", "select * from documents where true", set()),
        ("job.yaml", "description: A job.", "description: Another.", set()),
        ("job.yaml", "publish:", "shards: {count: 3}\npublish:", set()),
        ("checks.yaml", "column: kind", "column: evidence", set()),
    ],
)
def test_a_change_moves_the_versions_that_it_concerns_and_the_folders_hash(
    file: str, old: str, new: str, moved: set[str]
) -> None:
    before, after = folder(), changed(file, old, new)
    assert {name for name, value in versions(after).items() if value != versions(before)[name]} == moved
    assert after.folder_hash != before.folder_hash


def test_the_order_of_parameters_changes_no_version() -> None:
    after = changed(
        "job.yaml", "temperature: 0, max_completion_tokens: 50", "max_completion_tokens: 50, temperature: 0"
    )
    assert versions(after) == versions(folder())


def everywhere(change: Callable[[bytes], bytes], definition: JobDefinition | None = None) -> JobDefinition:
    return JobDefinition("things", {name: change(content) for name, content in (definition or folder()).files.items()})


MESSAGES = "<!-- system -->\nBe brief.\n\n<!-- user -->\n{{ title }}\n{{ body }}\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(b"\n", b"\r"),
        lambda content: content.replace(b"\n", b"\r\n", 1),
        lambda content: codecs.BOM_UTF8 + content,
        lambda content: codecs.BOM_UTF8 * 2 + content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(b"\n", b"\n" + codecs.BOM_UTF8, 1),  # as `cat a b` leaves it
    ],
    ids=["CRLF", "CR", "mixed", "mark", "marks and CRLF", "a mark between files"],
)
def test_two_checkouts_of_a_folder_share_their_answers_whatever_their_line_ends_and_marks(
    change: Callable[[bytes], bytes],
) -> None:
    described = OUTPUT.replace("(BaseModel):\n", '(BaseModel):\n    """Two\n    lines."""\n\n')
    here = folder(prompt_md=MESSAGES, output_py=described)
    there = everywhere(change, here)
    there.check()
    assert (versions(there), there.folder_hash) == (versions(here), here.folder_hash)
    assert there.prompt.render({"title": "T", "body": "a\r\nb"}) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "T\na\r\nb"},
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        MESSAGES.strip(),
        f"\n\n{MESSAGES}\n\n",
        MESSAGES.replace("<!-- user -->\n", "<!--user-->\n\n"),
        MESSAGES.replace("\n\n", "\n"),
        "{# what this is for #}\n" + MESSAGES,
        MESSAGES.replace("Be brief.", "Be{# very #} brief.{# said twice #}"),
    ],
)
def test_a_prompt_that_sends_the_same_has_the_same_version_as_the_file_has_always_had(prompt: str) -> None:
    assert folder(prompt_md=prompt).versions.prompt_version == short_hash(MESSAGES.encode())
    assert folder(prompt_md="{{ body }}\n").versions.prompt_version == short_hash(b"{{ body }}\n")


def test_white_space_within_a_message_is_sent_and_so_it_is_another_prompt() -> None:
    assert folder(prompt_md=MESSAGES.replace("Be brief", "Be  brief")).versions != folder(prompt_md=MESSAGES).versions


@pytest.mark.parametrize("file", ["job.yaml", "prompt.md", "output.py", "checks.yaml"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_in_utf16_is_called_so_and_quoted_nowhere(file: str, encoding: str) -> None:
    content = dict(folder().files)
    content[file] = content[file].decode().encode(encoding)
    with pytest.raises(
        ConfigError, match=rf"^{file}:1: is UTF-(16|32), not UTF-8. Remedy: Save it as UTF-8."
    ) as caught:
        JobDefinition("things", content).check()
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_content_moved_between_files_changes_the_folders_hash() -> None:
    one = JobDefinition("x", {"a": b"1", "b": b"2"})
    assert one.folder_hash == JobDefinition("x", {"b": b"2", "a": b"1"}).folder_hash
    assert len({one.folder_hash, JobDefinition("x", {"a": b"12", "b": b""}).folder_hash}) == 2


def test_the_payload_is_what_prompt_and_validation_use() -> None:
    assert folder().payload_columns == ("body", "title")
    assert changed("job.yaml", "source: body}", "source: appendix}").payload_columns == ("appendix", "body", "title")


def test_a_whole_folder_passes_its_check_also_without_checks() -> None:
    folder().check()
    without = {name: content for name, content in folder().files.items() if name != "checks.yaml"}
    JobDefinition("things", without).check()


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("job.yaml", "model: m-1", "model: [", r"job.yaml:\d+: "),
        ("job.yaml", "model: m-1", "modell: m-1", r"job.yaml:9: provider\.modell: unknown key; did you mean 'model'\?"),
        ("job.yaml", "{view: things}", "{view: Things-1}", r"job.yaml:15: publish\.view: "),
        ("job.yaml", "quote: evidence", "quote: proof", "no field 'proof'.*evidence, kind"),
        (
            "job.yaml",
            "publish:",
            "gold: {query: select 1, fields: [sort]}\npublish:",
            r"job.yaml:15: gold.fields.0: .*no field 'sort'",
        ),
        ("checks.yaml", "column: kind", "column: sort", "checks.yaml:2: ExpectColumn.*no field 'sort'"),
        ("checks.yaml", "ExpectColumnValuesToNotBeNull", "DropTable", r"checks.yaml:2: expectations\.0\.type: "),
        (
            "checks.yaml",
            "expectations:",
            "expectation:",
            "checks.yaml:1: expectation: unknown key; did you mean 'expectations'",
        ),
        ("prompt.md", "{{ body }}", "{{ body", "prompt.md:1: "),
        ("output.py", "class Output", "class Result", "no pydantic model named Output"),
        ("output.py", "kind: str", "kind: strr", "^output.py:4: NameError"),
        ("output.py", "kind: str", "kind: 'strr'", "^output.py:3: .*not fully defined"),
        ("output.py", "kind: str", "kind: type(lambda: 0)", "^output.py:3: Pydantic"),
        ("output.py", "kind: str", "kind str", "^output.py:4: SyntaxError"),
        ("output.py", "kind: str", "tenant: str", "Output.tenant: has the name of a provenance column"),
    ],
)
def test_a_broken_folder_is_refused_with_file_and_place(file: str, old: str, new: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        changed(file, old, new).check()
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["Things", "1st", "a-b", "a" * 49, "", "things\n"])
def test_a_folder_name_that_cannot_be_part_of_a_table_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be part of a DAG id"):
        folder(name).check()


def test_provenance_columns_may_be_checked() -> None:
    changed("checks.yaml", "column: kind", "column: source_id").check()


@pytest.mark.parametrize("content", ["", "[]", "just text"])
def test_a_job_yaml_that_is_no_mapping_is_a_configuration_fault(content: str) -> None:
    with pytest.raises(ConfigError, match=r"^job\.yaml:1: "):
        folder(job_yaml=content).check()
