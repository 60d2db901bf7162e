"""docs/guides/compare.md: its settings are sound, its tables are the code's."""

from __future__ import annotations

import re

import pytest
import yaml

from dev.stack.settings import REPOSITORY
from nightmill.cli.commands import main
from nightmill.console.comparing import MOST_ROWS
from nightmill.domain.comparison import BANDS, band_name
from nightmill.domain.field_measures import Measure
from nightmill.jobs.settings.gate_settings import Compare, ComparedField, Gold

TEXT = (REPOSITORY / "docs" / "guides" / "compare.md").read_text("utf-8")


def table(head: str) -> dict[str, str]:
    """First and second column of a table, keys in backticks."""
    rows = TEXT.split(head)[1].split("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", rows, re.MULTILINE))


def test_each_example_of_settings_is_sound() -> None:
    blocks = [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]
    assert len(blocks) == 2
    for block in blocks:
        chosen = Compare.model_validate(block["compare"])
        if "gold" in block:
            known = Gold.model_validate(block["gold"])
            assert set(known.fields) & chosen.fields.keys()


def test_every_setting_stands_in_a_table_with_its_default() -> None:
    told = table("| key | default | stops a batch when |") | table("| key | default | what it does |")
    defaults = {
        name: ", ".join(one.default) if isinstance(one.default, tuple) else str(one.default or "null")
        for name, one in Compare.model_fields.items()
        if name != "fields"
    }
    assert told == {name: "null" if value == "None" else value for name, value in defaults.items()}
    own = re.search(r"^(.*) can be given for one field", TEXT, re.MULTILINE)
    assert own is not None
    assert set(re.findall(r"`(\w+)`", own[1])) == ComparedField.model_fields.keys() - {"measure", "tolerance"}


def test_every_measure_stands_in_its_table() -> None:
    assert list(table("| measure | two values are the same when | default for |")) == [str(one) for one in Measure]


def test_the_numbers_of_the_page_are_the_codes() -> None:
    assert f"up to {MOST_ROWS} changed rows" in TEXT
    schema = REPOSITORY / "include" / "nightmill" / "storage" / "migrations" / "0001_schema.sql"
    (values,) = re.findall(
        r"^create function nightmill.cut_values.*?^\$\$;$", schema.read_text(), re.MULTILINE | re.DOTALL
    )
    assert "400" in values
    (lengths,) = re.findall(r"^Lengths are .*: (.*)$", TEXT, re.MULTILINE)
    named = [band_name(one) for one in range(len(BANDS))]
    assert re.findall(r"[\d,]*\d", lengths) == [re.findall(r"[\d,]*\d", one)[-1] for one in named]


def test_the_command_is_one() -> None:
    (command,) = re.findall(r"^python -m nightmill (compare \d+ \d+)$", TEXT, re.MULTILINE)
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
