"""What a person is told about each mistake in a job folder: file, line, key, what is wrong, the nearest valid name."""

# ruff: noqa: E501 - messages are quoted whole

from __future__ import annotations

import pytest

from nightmill.domain.errors import BrokenJobFolder, Mistake
from nightmill.jobs.check.definition import check_definition, mistakes_of
from nightmill.jobs.check.yaml_lines import YamlLines
from nightmill.jobs.contract import JobDefinition

JOB = """description: A job.
source:
  conn_id: source
  query: select * from documents
  columns:
    id: id
    text: body
transform: {version: "1"}
provider:
  conn_id: provider
  model: m-1
  parameters: {temperature: 0}
validation:
  citations:
    - {quote: evidence, source: body}
publish:
  view: things
"""
PROMPT = """<!-- system -->
You are brief.
<!-- user -->
{{ title }}
{{ body }}
"""
OUTPUT = """from pydantic import BaseModel


class Line(BaseModel):
    amount: float


class Output(BaseModel):
    kind: str
    evidence: str
    lines: list[Line]
"""
CHECKS = """expectations:
  - type: ExpectColumnValuesToNotBeNull
    column: kind
  - type: ExpectCompoundColumnsToBeUnique
    column_list: [source_id, kind]
"""
A_NAME = "lower-case letters (a to z), digits and _, a letter first, at most 48 characters"
FILES = {"job.yaml": JOB, "prompt.md": PROMPT, "output.py": OUTPUT, "checks.yaml": CHECKS}


def folder(**files: str) -> JobDefinition:
    content = FILES | {name.replace("_", "."): text for name, text in files.items()}
    return JobDefinition("things", {name: text.encode() for name, text in content.items()})


def edited(file: str, old: str, new: str) -> JobDefinition:
    assert FILES[file].count(old) == 1
    return folder(**{file.replace(".", "_"): FILES[file].replace(old, new)})


def only(definition: JobDefinition) -> Mistake:
    (mistake,) = mistakes_of(definition)
    return mistake


def test_a_good_folder_has_no_mistakes_and_no_warnings() -> None:
    assert mistakes_of(folder()) == []
    assert folder().warnings() == []
    check_definition(folder())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("model: m-1", "modle: m-1", "job.yaml:11: provider.modle: unknown key; did you mean 'model'?"),
        ("text: body", "txt: body", "job.yaml:7: source.columns.txt: unknown key; did you mean 'text'?"),
        ("{quote: evidence,", "{quot: evidence,", "job.yaml:15: validation.citations.0.quot: unknown key; did you mean 'quote'?"),
        ("publish:", "model: x\npublish:", "job.yaml:16: model: unknown key here; did you mean 'provider.model'?"),
        ("publish:", "zzz: x\npublish:", "job.yaml:16: zzz: unknown key"),
        ("  conn_id: provider\n", "", "job.yaml:9: provider.conn_id: missing"),
        ("publish:\n  view: things\n", "", "job.yaml:1: publish: missing"),
        ('version: "1"', "version: 1", "job.yaml:8: transform.version: expected text, found a whole number"),
        ("model: m-1", "model:", "job.yaml:11: provider.model: expected text, found nothing"),
        ("model: m-1", "model: [m-1]", "job.yaml:11: provider.model: expected text, found a list"),
        ("{temperature: 0}", "7", "job.yaml:12: provider.parameters: expected a mapping of keys and values, found a whole number"),
        ("publish:\n", "shards: {count: true}\npublish:\n", "job.yaml:16: shards.count: expected a whole number, found true or false"),
        ("publish:\n", "shards: {count: many}\npublish:\n", "job.yaml:16: shards.count: expected a whole number, found text"),
        ("publish:\n", "shards: {count: 300}\npublish:\n", "job.yaml:16: shards.count: expected a value <= 256"),
        ("publish:\n", "retry: 3\npublish:\n", "job.yaml:16: retry: expected a mapping of keys and values, found a whole number"),
        ("publish:\n", "tags: demo\npublish:\n", "job.yaml:16: tags: expected a list, found text"),
        ("  conn_id: source", "  kind: postgre\n  conn_id: source", "job.yaml:3: source.kind: expected one of postgres; did you mean 'postgres'?"),
        ("  conn_id: provider", "  adapter: opnai\n  conn_id: provider", "job.yaml:10: provider.adapter: expected one of anthropic, openai; did you mean 'openai'?"),
        ("view: things", "view: Things-1", f"job.yaml:17: publish.view: expected {A_NAME}"),
        ("view: things", "view: 2026", f"job.yaml:17: publish.view: expected {A_NAME}, found a whole number"),
        ("conn_id: provider", "conn_id: my provider", "job.yaml:10: provider.conn_id: expected a connection's id of letters, digits and _ . -, at most 200 characters"),
        ("model: m-1", "model: m-1\n  completion_window: 24", "job.yaml:12: provider.completion_window: expected a number with its unit, such as 24h, found a whole number"),
        ("model: m-1", "model: m-1\n  completion_window: '24'", "job.yaml:12: provider.completion_window: expected a number with its unit, such as 24h"),
        ("publish:", "schedule: 0 2 1 * * 5\npublish:", "job.yaml:16: schedule: expected five fields, found 6: a sixth one would be the seconds at which it runs"),
        ("publish:", "schedule: '*/5 * * * * *'\npublish:", "job.yaml:16: schedule: expected five fields, found 6: a sixth one would be the seconds at which it runs"),
        ("publish:", "schedule: R 2 * * *\npublish:", "job.yaml:16: schedule: R stands for a moment at random, another one at each look"),
        ("publish:", "quality: {min_completion_rate: 0.9}\npublish:", "job.yaml:16: quality: is no key any more"),
        ("publish:", "gaps:\n  rules:\n    - {show: absent}\npublish:", "job.yaml:17: gaps.rules: say which gaps are allowed, and without gaps.min_completion none is: add it"),
        ("publish:", "gaps:\n  min_completion: 0.9\n  rules:\n    - {show: absent}\n    - {fill: never}\npublish:", "job.yaml:18: gaps.rules: rule 1 fits every gap, so the rules behind it never count: put it last"),
        ("publish:", "gaps:\n  min_completion: 0.9\n  rules:\n    - {show: null_rows}\npublish:", "job.yaml:19: gaps.rules.0.show: expected one of absent, null_row, previous; did you mean 'null_row'?"),
        ("publish:", "gaps:\n  min_completion: 0.9\n  rules:\n    - {classes: [inputs]}\npublish:", "job.yaml:19: gaps.rules.0.classes.0: expected one of input, output, policy, sink, transient; did you mean 'input'?"),
        ("publish:", "gaps:\n  min_completion: 0.9\n  rules:\n    - {fill: person}\npublish:", "job.yaml:19: gaps.rules.0.fill: expected rerun, never, or a person and a time in UTC such as `person by 17:00`"),
        ("publish:", "gaps:\n  min_completion: 0.9\n  rules:\n    - {searchable: maybe}\npublish:", "job.yaml:19: gaps.rules.0.searchable: expected true or false, found text"),
        ("publish:", "gaps: {min_completion: 98}\npublish:", "job.yaml:16: gaps.min_completion: expected a value <= 1.0"),
        ("view: things", "view: published_views", "job.yaml:17: publish.view: nightmill has a view results.published_views itself: give this one another name"),
        ("{temperature: 0}", "{model: x}", "job.yaml:12: provider.parameters: nightmill sets model itself; remove it from provider.parameters"),
        ("{temperature: 0}", "{n: 2}", "job.yaml:12: provider.parameters.n: buys more answers than the one that is read"),
        ("{temperature: 0}", "{n: true}", "job.yaml:12: provider.parameters.n: buys more answers than the one that is read"),
        ("{temperature: 0}", "{best_of: 3}", "job.yaml:12: provider.parameters.best_of: buys more answers than the one that is read"),
        ("{temperature: 0}", "{candidateCount: 2}", "job.yaml:12: provider.parameters.candidateCount: buys more answers than the one that is read"),
        ("{temperature: 0}", "{logprobs: true}", "job.yaml:12: provider.parameters.logprobs: buys probabilities or an echo that nobody reads"),
        ("{temperature: 0}", "{top_logprobs: 5}", "job.yaml:12: provider.parameters.top_logprobs: buys probabilities or an echo that nobody reads"),
        ("{temperature: 0}", "{store: true}", "job.yaml:12: provider.parameters.store: has the provider keep answers that nobody reads there"),
        ("{temperature: 0}", "{modalities: [text, audio]}", "job.yaml:12: provider.parameters.modalities: buys an answer in a form that nobody reads"),
        ("{temperature: 0}", "{audio: {voice: alloy}}", "job.yaml:12: provider.parameters.audio: buys an answer in a form that nobody reads"),
        ("{temperature: 0}", "{stream_options: {include_usage: true}}", "job.yaml:12: provider.parameters.stream_options: buys an answer in a form that nobody reads"),
        ("{temperature: 0}", "{tools: [{type: function}]}", "job.yaml:12: provider.parameters.tools: lets the model call a tool that nobody runs, instead of answering"),
        ("{temperature: 0}", "{encoding_format: base64}", "job.yaml:12: provider.parameters.encoding_format: buys an answer in a form that nobody reads"),
        ("{temperature: 0}", "{extra_body: {n: 2}}", "job.yaml:12: provider.parameters.extra_body.n: buys more answers than the one that is read"),
        ("{temperature: 0}", "{generationConfig: {candidateCount: 2}}", "job.yaml:12: provider.parameters.generationConfig.candidateCount: buys more answers than the one that is read"),
        ("{temperature: 0}", "{guided_json: {}}", "job.yaml:12: provider.parameters.guided_json: competes with the schema of output.py, which nightmill asks for"),
        ("{temperature: 0}", "{max_tokens: 5, max_completion_tokens: 5}", "job.yaml:12: provider.parameters.max_tokens: limits the answer's tokens a second time, after max_completion_tokens"),
        ("{temperature: 0}", "{max_tokens: 5}\n  max_output_tokens: 9", "job.yaml:12: provider.parameters.max_tokens: limits the answer's tokens a second time, after provider.max_output_tokens"),
        ("{temperature: 0}", "{messages: []}", "job.yaml:12: provider.parameters: nightmill sets messages itself; remove it from provider.parameters"),
        ("{temperature: 0}", "{response_format: {type: text}}", "job.yaml:12: provider.parameters: nightmill sets response_format itself; remove it from provider.parameters"),
        ("{temperature: 0}", "{stream: true}", "job.yaml:12: provider.parameters: nightmill sets stream itself; remove it from provider.parameters"),
        ("model: m-1", "model: m-1\n  model: m-2", "job.yaml:12: provider.model: stands in line 11 already, and only the last one would count"),
        ("quote: evidence", "quote: evidnce", "job.yaml:15: validation.citations.0.quote: output.py has no field 'evidnce'; did you mean 'evidence'?"),
        ("publish:", "gold:\n  query: select 1\n  fields:\n    - kind\n    - knd\npublish:", "job.yaml:20: gold.fields.1: output.py has no field 'knd'; did you mean 'kind'?"),
        ("publish:", "schedule: '@dayly'\npublish:", "job.yaml:16: schedule: no cron expression; did you mean '@daily'?"),
        ("publish:", "schedule: 0 0 30 2 *\npublish:", "job.yaml:16: schedule: this moment never comes"),
        ("publish:\n", "retry: {max_delay_s: .inf}\npublish:\n", "job.yaml:16: retry.max_delay_s: expected a number of at most 1,000,000,000,000,000"),
        ("publish:\n", "retry: {max_delay_s: 1.0e+9}\npublish:\n", "job.yaml:16: retry.max_delay_s: expected a value <= 604800.0"),
        ("{temperature: 0}", "{seeds: [.nan]}", "job.yaml:12: provider.parameters: holds what JSON does not have: dates go in quotes, numbers are finite"),
        ("{temperature: 0}", "{since: 2026-01-01}", "job.yaml:12: provider.parameters: holds what JSON does not have: dates go in quotes, numbers are finite"),
        ("publish:", "schedule: at night\npublish:", "job.yaml:16: schedule: no cron expression"),
    ],
)  # fmt: skip
def test_a_mistake_in_job_yaml_is_named_with_its_line(old: str, new: str, said: str) -> None:
    mistake = only(edited("job.yaml", old, new))
    assert str(mistake) == said
    assert mistake.remedy


@pytest.mark.parametrize(
    "parameters",
    [
        "{n: 1, best_of: null, logprobs: false, top_logprobs: 0, store: false}",
        "{modalities: [text], tools: [], echo: false, max_tokens: 5, max_completion_tokens: null}",
        "{seed: 1, reasoning_effort: low, service_tier: default, web_search_options: {}}",
    ],
)
def test_parameters_that_buy_nothing_more_than_an_answer_are_taken(parameters: str) -> None:
    assert mistakes_of(edited("job.yaml", "{temperature: 0}", parameters)) == []


def test_a_contract_that_was_pinned_with_a_parameter_of_that_kind_can_still_be_read() -> None:
    assert edited("job.yaml", "{temperature: 0}", "{n: 2}").job.provider.parameters == {"n": 2}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("expectations:", "expectation:", "checks.yaml:1: expectation: unknown key; did you mean 'expectations'?"),
        ("    column: kind", "    column: knd", "checks.yaml:3: ExpectColumnValuesToNotBeNull.column: output.py has no field 'knd'; did you mean 'kind'?"),
        ("[source_id, kind]", "[source_i, kind]", "checks.yaml:5: ExpectCompoundColumnsToBeUnique.column_list: output.py has no field 'source_i'; did you mean 'source_id'?"),
        ("ExpectColumnValuesToNotBeNull", "ExpectColumnValuesNotNull", "checks.yaml:2: expectations.0.type: Great Expectations has no ExpectColumnValuesNotNull; did you mean 'ExpectColumnValuesToNotBeNull'?"),
        ("ExpectColumnValuesToNotBeNull", "not_null", "checks.yaml:2: expectations.0.type: expected a class name that starts with Expect and has letters only"),
        ("    column: kind", "    column: kind\n    mosty: 0.9", "checks.yaml:4: ExpectColumnValuesToNotBeNull.mosty: unknown; did you mean 'mostly'?"),
        ("    column: kind\n", "", "checks.yaml:2: ExpectColumnValuesToNotBeNull.column: missing"),
        ("type: ExpectColumnValuesToNotBeNull\n    ", "", "checks.yaml:2: expectations.0.type: missing"),
    ],
)  # fmt: skip
def test_a_mistake_in_checks_yaml_is_named_with_its_line(old: str, new: str, said: str) -> None:
    assert str(only(edited("checks.yaml", old, new))) == said


def test_an_argument_whose_name_is_a_number_is_a_mistake_like_any_other() -> None:
    definition = edited("checks.yaml", "    column: kind", "    column: kind\n    5: x")
    assert [str(one) for one in mistakes_of(definition)] == [
        "checks.yaml:4: expectations.0.5: Keys should be strings",
        "checks.yaml:4: ExpectColumnValuesToNotBeNull.5: unknown",
    ]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("job.yaml", "model: m-1", "model: [m-1", "job.yaml:12: not YAML: "),
        ("job.yaml", "model: m-1", "model: m: 1", "job.yaml:11: not YAML: mapping values are not allowed here"),
        ("job.yaml", "  model: m-1", "\tmodel: m-1", "job.yaml:11: not YAML: "),
        ("checks.yaml", "expectations:", "expectations: [", "checks.yaml:2: not YAML: "),
        ("checks.yaml", "    column: kind", "\tcolumn: kind", "checks.yaml:3: not YAML: "),
    ],
)
def test_what_is_no_yaml_is_named_with_its_line(file: str, old: str, new: str, said: str) -> None:
    assert str(only(edited(file, old, new))).startswith(said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{{ body }}", "{{ body", "prompt.md:5: unexpected end of template, expected 'end of print statement'"),
        ("{{ body }}", "{{ body | uper }}", "prompt.md:5: No filter named 'uper'; did you mean 'upper'?"),
        ("{{ body }}", "{% iff body %}", "prompt.md:5: Encountered unknown tag 'iff'"),
        ("<!-- system -->", "Hello\n<!-- system -->", "prompt.md:1: text stands before the first marker line"),
    ],
)
def test_a_mistake_in_the_prompt_is_named_with_its_line_in_the_file(old: str, new: str, said: str) -> None:
    assert str(only(edited("prompt.md", old, new))) == said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: str", "kind str", "output.py:9: SyntaxError: invalid syntax"),
        ("kind: str", "kind: strr", "output.py:9: NameError: name 'strr' is not defined"),
        ("from pydantic", "from pydantik", "output.py:1: ModuleNotFoundError: No module named 'pydantik'"),
        ("class Output", "class Answer", "output.py:8: no pydantic model named Output; did you mean 'Answer'?"),
        ("kind: str", "tenant: str", "output.py:9: Output.tenant: has the name of a provenance column"),
        ("kind: str", "kind: dict[str, str]", "output.py:9: Output.kind: cannot be asked for as structured output: a map with free keys"),
        ("amount: float", "amount: dict[str, str]", "output.py:5: Line.amount: cannot be asked for as structured output: a map with free keys"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_output_model_is_named_with_its_line(old: str, new: str, said: str) -> None:
    definition = edited("output.py", old, new)
    found = [str(one) for one in mistakes_of(definition) if one.file == "output.py"]
    assert found == [said]


def test_all_mistakes_of_all_files_are_said_at_once() -> None:
    definition = folder(
        job_yaml=JOB.replace("model:", "modle:").replace('"1"', "1").replace("evidence", "evidnce"),
        prompt_md=PROMPT.replace("{{ body }}", "{{ body | uper }}"),
        checks_yaml=CHECKS.replace("kind\n", "knd\n").replace("BeUnique", "BeUniqu"),
    )
    with pytest.raises(BrokenJobFolder) as caught:
        check_definition(definition)
    assert [one.place for one in caught.value.mistakes] == [
        "job.yaml:8", "job.yaml:11", "job.yaml:15", "prompt.md:5", "checks.yaml:3", "checks.yaml:4",
    ]  # fmt: skip
    lines = str(caught.value).split("\n")
    assert lines[1].startswith("job.yaml:11: provider.modle: unknown key; did you mean 'model'?")
    assert lines[-1].startswith("Remedy: ")
    assert "?." not in str(caught.value)


def test_one_mistake_keeps_its_own_remedy() -> None:
    said = (
        r"unknown key; did you mean 'view'\? Remedy: Known keys here: deleted, keep_intervals, max_loss, mode, view\."
    )
    with pytest.raises(BrokenJobFolder, match=said):
        check_definition(edited("job.yaml", "view:", "veiw:"))


def test_no_value_is_repeated_because_people_paste_secrets() -> None:
    secret = "postgresql://admin:hunter2@db/x"
    for definition in (
        edited("job.yaml", "conn_id: provider", f"conn_id: '{secret}'"),
        edited("job.yaml", "{temperature: 0}", f"'{secret}'"),
        edited("job.yaml", "publish:", f"retry: ['{secret}']\npublish:"),
    ):
        with pytest.raises(BrokenJobFolder) as caught:
            check_definition(definition)
        fault: BaseException | None = caught.value
        while fault is not None:
            assert "hunter2" not in str(fault)
            fault = fault.__cause__


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("prompt.md", "{{ body }}", "{{ bdy }}", ["prompt.md: the document is not in the prompt: source.columns.text is 'body'", "prompt.md:5: bdy: no column of source.columns; did you mean 'body'?"]),
        ("prompt.md", "{{ body }}", "<!-- usr -->\n{{ body }}", ["prompt.md:5: <!-- usr --> starts no message; did you mean 'user'?"]),
        ("prompt.md", "<!-- user -->", "  <!-- user -->", ["prompt.md:3: <!-- user --> starts no message; did you mean 'user'?"]),
        ("prompt.md", "<!-- user -->", "{# the document #}<!-- user -->", ["prompt.md:3: <!-- user --> starts no message; did you mean 'user'?"]),
        ("prompt.md", "<!-- user -->", "<!-- user -->{# the document #}", ["prompt.md:3: <!-- user --> starts no message; did you mean 'user'?"]),
        ("prompt.md", "{{ body }}", "no variable", ["prompt.md: the document is not in the prompt: source.columns.text is 'body'"]),
        ("job.yaml", "{temperature: 0}", "{temprature: 0}", ["job.yaml:12: provider.parameters.temprature: no parameter that is known here; did you mean 'temperature'?"]),
        ("job.yaml", "{temperature: 0}", "{max_token: 5, top-p: 1}", ["job.yaml:12: provider.parameters.max_token: no parameter that is known here; did you mean 'max_tokens'?", "job.yaml:12: provider.parameters.top-p: no parameter that is known here; did you mean 'top_p'?"]),
        ("job.yaml", "{temperature: 0}", "{Temperature: 0}", ["job.yaml:12: provider.parameters.Temperature: no parameter that is known here; did you mean 'temperature'?"]),
        ("job.yaml", "source: body}", "source: boddy}", ["job.yaml:15: validation.citations.0.source: 'boddy' is no column of source.columns and not in prompt.md; did you mean 'body'?"]),
    ],
)  # fmt: skip
def test_what_only_the_query_could_prove_wrong_is_a_warning(file: str, old: str, new: str, said: list[str]) -> None:
    definition = edited(file, old, new)
    assert mistakes_of(definition) == []
    assert [str(warning) for warning in definition.warnings()] == said


def test_a_parameter_of_a_servers_own_is_no_warning() -> None:
    assert edited("job.yaml", "{temperature: 0}", "{min_p: 0.1, guided_json: {}, house_rules: strict}").warnings() == []


def test_lines_are_found_through_lists_and_mappings_in_any_style() -> None:
    lines = YamlLines(b"a: 1\nb:\n  - {c: 1,\n     d: 2}\n  - e: [1,\n        2]\n")
    places = [("a",), ("b",), ("b", 0, "c"), ("b", 0, "d"), ("b", 1, "e", 1), ("b", 7), ("zz",)]
    assert [lines.line(place) for place in places] == [1, 2, 3, 4, 6, 2, 1]
    assert YamlLines(b"").line(("a",)) == 1
    assert list(YamlLines(b"a: &x\n  b: 1\nc: *x\na: 2\n").doubled()) == [(("a",), 1, 4)]


def test_what_deletes_ids_fits_the_mode_only() -> None:
    with pytest.raises(
        BrokenJobFolder, match=r"job.yaml:\d+: publish.deleted: publish.mode is replace, which deletes no"
    ):
        check_definition(edited("job.yaml", "publish:\n", "publish:\n  deleted: gone\n"))
    for mode in ("by_key", "by_interval"):
        assert mistakes_of(edited("job.yaml", "publish:\n", f"publish:\n  mode: {mode}\n")) == []
