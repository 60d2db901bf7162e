"""Job folders that try to take others down: each one file that replaces a good one, and the words of its mistake."""

from __future__ import annotations

from pathlib import Path

from support.pipeline import JOB_YAML, OUTPUT, PROMPT

P = "from pydantic import BaseModel\n"
GOOD = {"job.yaml": JOB_YAML, "prompt.md": PROMPT, "output.py": OUTPUT}


def _bomb(line: str, first: str) -> str:
    """Nine levels, each of nine aliases of the one before: 9**9 values."""
    levels = [f"{below}: &{below} {first}" if below == "a" else "" for below in "a"]
    for below, level in zip("abcdefgh", "bcdefghi", strict=True):
        levels.append(f"{level}: &{level} {line.format(', '.join([f'*{below}'] * 9))}")
    return "\n".join(levels) + "\n"


LAUGHS = _bomb("[{}]", "[x, x, x, x, x, x, x, x, x]")
MERGED = _bomb("{{<<: [{}]}}", "{k: 1}")


def parameters(text: str) -> str:
    """job.yaml with these request parameters; they stand in line 10."""
    return JOB_YAML.replace("{max_completion_tokens: 50}", text)


def output(body: str) -> str:
    """output.py whose model has one field and this."""
    return P + "class Output(BaseModel):\n    title: str\n" + body


# name: (what it says, output.py)
OUTPUTS = {
    "exits": ("output.py:2: SystemExit: 3", "import sys\nsys.exit(3)"),
    "raises_system_exit": ("output.py:1: SystemExit", "raise SystemExit"),
    "raises_keyboard_interrupt": ("output.py:1: KeyboardInterrupt", "raise KeyboardInterrupt"),
    "raises_generator_exit": ("output.py:1: GeneratorExit", "raise GeneratorExit"),
    "raises_stop_iteration": ("output.py:1: StopIteration", "raise StopIteration"),
    "raises_its_own": ("output.py:3: Own", "class Own(BaseException):\n    def __str__(self): 1 / 0\nraise Own"),
    "is_cancelled": ("output.py:2: CancelledError", "import asyncio\nraise asyncio.CancelledError"),
    "raises_a_group": ("output.py:1: BaseExceptionGroup", "raise BaseExceptionGroup('x', [KeyboardInterrupt()])"),
    "recurses": ("output.py:1: RecursionError", "def again(): again()\nagain()"),
    "fills_the_memory": ("output.py:1: MemoryError", "raise MemoryError"),
    "loops": ("did not end within", "while True:\n    pass"),
    "sleeps": ("output.py:2: did not end within", "import time\ntime.sleep(1000)"),
    "is_nested": ("output.py:1: SyntaxError: too many nested parentheses", "x = " + "(" * 500 + ")" * 500),
    "says_much": ("output.py:1: ValueError: xxx", "raise ValueError('x' * 10**7 + '\\ud800')"),
    "has_no_attribute": (
        "output.py: no pydantic model named Output",
        "def __getattr__(name): raise KeyboardInterrupt",
    ),
    "lies_of_its_class": (
        "output.py:4: SystemExit",
        "class Odd:\n    @property\n    def __class__(self):\n        raise SystemExit\nOutput = Odd()",
    ),
    "exits_in_a_hook": (
        "output.py:6: Output: SystemExit: 1",
        output("    @classmethod\n    def model_json_schema(cls, **_):\n        raise SystemExit(1)"),
    ),
    "has_a_schema_without_end": (
        "output.py:2: Output: RecursionError",
        output(
            "    @classmethod\n    def __get_pydantic_json_schema__(cls, *_):\n"
            "        found = {'type': 'object'}\n        return found | {'properties': {'title': found}} if False else "
            "found.setdefault('properties', {'title': found}) and found"
        ),
    ),
    "has_no_schema": (
        "output.py:2: Output: TypeError: model_json_schema returns no mapping",
        output("    @classmethod\n    def model_json_schema(cls, **_):\n        return None"),
    ),
    "exits_in_the_third_schema": (
        "output.py:11: Output: SystemExit",
        output(
            "    @classmethod\n    def model_json_schema(cls, **options):\n        asked.append(1)\n"
            "        if len(asked) < 3:\n            return super().model_json_schema(**options)\n"
            "        raise SystemExit\nasked = []\n"
        ).replace("class Output", "\n\nclass Output", 1),
    ),
    "has_a_type_in_itself": (
        "output.py:4: Output: RecursionError",
        P + "from typing_extensions import TypeAliasType\nNested = TypeAliasType('Nested', 'list[Nested]')\n"
        "class Output(BaseModel):\n    title: Nested",
    ),
    "has_a_deep_type": (
        "output.py:4: RecursionError",
        P + "kind = str\nfor _ in range(3000): kind = list[kind]\nclass Output(BaseModel):\n    title: kind",
    ),
    "has_a_bound_over_64_bits": (
        "output.py:3: Output: TypeError: Integer exceeds 64-bit range",
        P + "from pydantic import Field\nclass Output(BaseModel):\n    title: int = Field(le=10**30)",
    ),
    "allows_no_recursion": (
        "output.py: no pydantic model named Output",
        "import sys\nsys.setrecursionlimit(150)",
    ),
}  # fmt: skip

# name: (what it says, job.yaml)
_JSON = "job.yaml:10: provider.parameters: holds what "
YAMLS = {
    "laughs": ("job.yaml:22: has more than 20,000 entries once its aliases are written out", JOB_YAML + LAUGHS),
    "laughs_first": ("job.yaml:5: has more than 20,000 entries", LAUGHS + parameters("{x: *i}")),
    "merges": ("job.yaml:22: has more than 20,000 entries", JOB_YAML + MERGED),
    "holds_itself": ("job.yaml:10: an alias stands for something that it is part of", parameters("&a [*a]")),
    "merges_itself": ("job.yaml:10: an alias stands for something that it is part of", parameters("&a {<<: *a}")),
    "nests": ("job.yaml:10: is nested more than 50 levels deep", parameters("{x: " + "[" * 60 + "]" * 60 + "}")),
    "nests_deeper": ("job.yaml:10: is nested more than 50 levels deep", parameters("[" * 100_000)),
    "nests_in_blocks": (
        "is nested more than 50 levels deep",
        JOB_YAML + "x:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 1200)),
    ),
    "nests_by_aliases": (
        "is nested more than 50 levels deep",
        "a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40 + "\n" + JOB_YAML,
    ),
    "is_no_number": (f"{_JSON}JSON does not have", parameters("{temperature: .nan}")),
    "is_infinite": (f"{_JSON}JSON does not have", parameters("{temperature: [-.inf]}")),
    "is_huge": (f"{_JSON}cannot be hashed", parameters("{seed: 99999999999999999999}")),
    "is_endless": ("job.yaml:10: looks like a value of the kind int", parameters(f"{{seed: {'9' * 5000}}}")),
    "has_a_number_for_a_key": (f"{_JSON}cannot be hashed", parameters("{logit_bias: {50256: -100}}")),
    "is_no_day": ("job.yaml:10: looks like a value of the kind timestamp", parameters("{since: 2026-02-30}")),
    "runs_python": ("job.yaml:10: not YAML: the tag 'tag:yaml.org,2002:python/object/apply:os.abort' is not allowed",
                    parameters("!!python/object/apply:os.abort []")),
    "names_python": ("job.yaml:10: not YAML: the tag", parameters("{x: !!python/name:os.abort }")),
    "has_two_anchors": ("job.yaml:10: not YAML: second occurrence", parameters("{x: &a 1, y: &a 2}")),
    "holds_nul": ("job.yaml:2: holds NUL", JOB_YAML.replace("A job for tests.", '"\\0"')),
    "holds_half_a_pair": ("job.yaml:2: not YAML", JOB_YAML.replace("A job for tests.", '"\\ud800"')),
    "has_a_long_owner": ("owner: expected at most 200 characters", JOB_YAML + f"owner: {'x' * 3000}\n"),
    "has_a_long_tag": ("tags.0: expected at most 100 characters", JOB_YAML + f"tags: [{'x' * 300}]\n"),
    "has_many_keys": ("unknown key", JOB_YAML + "".join(f"modle{number}: 1\n" for number in range(9000))),
    "has_many_percents": ("a % that starts no", JOB_YAML.replace("select id", f"select '{'%(' * 200_000}', id")),
    "is_large": ("job.yaml: is larger than 1,000,000 bytes", JOB_YAML + "# " + "x" * 1_000_000),
}  # fmt: skip

# name: (what it says, checks.yaml)
CHECKS = {
    "checks_laugh": ("checks.yaml:5: has more than 20,000 entries", LAUGHS + "expectations: *i\n"),
    "checks_laugh_within": (
        "checks.yaml:5: has more than 20,000 entries",
        LAUGHS + "expectations:\n- {type: ExpectColumnToExist, column: *i}\n",
    ),
    "checks_nest": ("is nested more than 50 levels deep", "expectations:\n  " + "[" * 500),
    "checks_hold_no_number": (
        "checks.yaml:2: expectations.0: holds what JSON does not have",
        "expectations:\n- {type: ExpectTableRowCountToBeBetween, min_value: .nan}\n",
    ),
    "checks_hold_a_huge_number": (
        "checks.yaml:2: expectations.0: holds what cannot be hashed",
        "expectations:\n- {type: ExpectTableRowCountToBeBetween, min_value: 99999999999999999999}\n",
    ),
    "checks_run_python": ("checks.yaml:1: not YAML: the tag", "expectations: !!python/name:os.abort ''\n"),
    "checks_are_many": (
        "checks.yaml:1: expectations: expected at most 500 entries",
        "expectations:\n" + "- {type: ExpectNothing}\n" * 600,
    ),
}

# name: (what it says, prompt.md); the second line is the one
_SIZE = "makes more than 50,000,000 characters"
_DOUBLED = "{% for i in range(100) %}{% set n.x = n.x SIGN n.x %}{% endfor %}{{ n.x }}"
PROMPTS = {
    "multiplies": (_SIZE, "{{ 'x' * 10**9 }}"),
    "takes_a_power": (_SIZE, "{{ 2 ** 999999999 }}"),
    "takes_powers": (_SIZE, "{% set n = namespace(x=3) %}{% for i in range(99) %}{% set n.x = n.x ** 9 %}{% endfor %}"),
    "multiplies_numbers": (
        _SIZE,
        "{% set n = namespace(x=3) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}",
    ),
    "rounds": (_SIZE, "{{ 1.5 | round(999999999, 'ceil') }}"),
    "counts_far": ("counts more than 100,000 numbers with range()", "{% for i in range(10**9) %}x{% endfor %}"),
    "loops_in_loops": (
        "takes more than 1,000,000 steps",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    ),
    "centres": (_SIZE, "{{ 'x' | center(1000000000) }}"),
    "centres_a_block": (_SIZE, "{% filter center(1000000000) %}x{% endfilter %}"),
    "pads": (_SIZE, "{{ 'x'.ljust(1000000000) }}"),
    "indents": (_SIZE, "{{ ('\\n' * 1000000) | indent(1000) }}"),
    "formats": (_SIZE, "{{ '%1000000000d' | format(1) }}"),
    "formats_by_a_value": (_SIZE, "{{ '%*d' % (1000000000, 1) }}"),
    "formats_by_a_method": (_SIZE, "{{ '{:{w}}'.format(1, w=1000000000) }}"),
    "formats_precisely": (_SIZE, "{{ '{:.1000000000f}'.format(1.5) }}"),
    "replaces": (_SIZE, "{{ ('a' * 10000) | replace('a', 'b' * 10000) }}"),
    "joins": (_SIZE, "{{ range(99999) | join('x' * 10000) }}"),
    "wraps": (_SIZE, "{{ ('a ' * 100000) | wordwrap(1, wrapstring='x' * 1000) }}"),
    "slices": (_SIZE, "{{ [1] | slice(1000000000) | list }}"),
    "writes_json_wide": (_SIZE, "{{ [1] | tojson(indent=1000000000) }}"),
    "doubles": (_SIZE, "{% set n = namespace(x='ab') %}" + _DOUBLED.replace("SIGN", "+")),
    "doubles_by_joining": (_SIZE, "{% set n = namespace(x='ab') %}" + _DOUBLED.replace("SIGN", "~")),
    "doubles_a_block": (
        _SIZE,
        "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}",
    ),
    "doubles_a_list": (
        "writes out more than 1,000,000 values",
        "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    ),
    "collects": (
        "makes texts of more than 200,000,000 characters in all",
        "{{ range(99999) | map('string') | map('center', 100000) | list | length }}",
    ),
    "calls_itself": ("calls itself without end", "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"),
    "includes": ("it cannot load another file", "{% include 'other' %}"),
}
# Those whose line nobody knows.
UNPLACED_PROMPTS = {
    "is_nested_deep": ("cannot be compiled", "{{ " + "(" * 5000 + ")" * 5000 + " }}"),
    "nests_loops": ("cannot be compiled", "{% for a in body %}" * 25 + "{% endfor %}" * 25),
    "holds_a_long_number": ("cannot be compiled", "{{ " + "9" * 5000 + " }}"),
    "has_many_expressions": ("has more than 10,000 expressions", "{{ body }}" * 20_000),
    "has_many_messages": ("has more than 1,000 messages", "<!-- user -->\nx\n" * 2000),
}


def prompt(text: str) -> str:
    """prompt.md with this in its second line."""
    return f"Summarise {{{{ body }}}}\n{text}\n"


def everything() -> dict[str, tuple[str, str, str]]:
    """Of each hostile folder: the file, what is said of it, its content."""
    found = {name: ("output.py", said, text) for name, (said, text) in OUTPUTS.items()}
    found |= {name: ("job.yaml", said, text) for name, (said, text) in YAMLS.items()}
    found |= {name: ("checks.yaml", said, text) for name, (said, text) in CHECKS.items()}
    found |= {name: ("prompt.md", f"prompt.md:2: {said}", prompt(text)) for name, (said, text) in PROMPTS.items()}
    return found | {name: ("prompt.md", f"prompt.md: {said}", text) for name, (said, text) in UNPLACED_PROMPTS.items()}


# One of each kind, and what only a folder on disk can show.
SOME = (
    "exits", "raises_keyboard_interrupt", "raises_its_own", "loops", "exits_in_a_hook", "has_a_type_in_itself",
    "laughs", "nests_deeper", "is_huge", "runs_python", "is_large", "checks_laugh_within", "multiplies",
    "counts_far", "includes",
)  # fmt: skip


def write_some(root: Path) -> dict[str, str]:
    """Hostile folders, with good ones before and behind them; what is said of each."""
    for name in ("a_good_one", "z_good_one"):
        _write(root / name, GOOD | {"job.yaml": JOB_YAML.replace("view: notes", f"view: {name}")})
    found = everything()
    for name in SOME:
        file, _, text = found[name]
        _write(root / name, GOOD | {file: text})
    return {name: found[name][1] for name in SOME}


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
