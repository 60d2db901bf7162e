"""docs/reference/failures.md: what nightmill makes of each failure, written from the rules that decide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightmill.checks.containment import ANSWER_RAISED, INPUT_RAISED
from nightmill.checks.port import Check, Code
from nightmill.checks.registry import ANSWER_CHECKS, INPUT_CHECKS
from nightmill.domain.failure_rules import RULES
from nightmill.domain.failures import Action, FailureClass

PAGE = "failures.md"
_INTRODUCTION = """# What nightmill makes of a failure

Written by `make docs` from [failure_rules.py](../../include/nightmill/domain/failure_rules.py) and the checks in
[registry.py](../../include/nightmill/checks/registry.py); do not edit it. The class of a failure decides what happens
next. It stands with its code beside every attempt and every dead letter.
"""
_CLASSES = {
    FailureClass.TRANSIENT: "trying again can help",
    FailureClass.CAPACITY: "an account's money, quota or queue is used up; never the item's fault",
    FailureClass.INPUT: "the request itself cannot be served",
    FailureClass.OUTPUT: "an answer came that the contract does not accept",
    FailureClass.POLICY: "refused or filtered by a rule",
    FailureClass.SINK: "our own database or object store",
    FailureClass.UNKNOWN: "a state that nobody knows; the raw word is kept",
}
_ACTIONS = {
    Action.RETRY: "the item is sent again after a backoff with jitter",
    Action.WAIT: "a full queue is waited for; without money the batch stops and asks a person; no item fails",
    Action.GIVE_UP: "the item becomes a dead letter at once",
    Action.REPAIR: "the item is asked again, within the job's cap; then it ends as `repair.exhausted` says",
    Action.WRITE_AGAIN: "the write is repeated; writes are idempotent",
    Action.ASK: "nothing more is sent; it is polled, then a person is asked; it goes on once the state is known",
}
_RULES = """## Rules

The first rule that holds decides. Where no code stands, the provider's own code is kept, else its type, else
`http_<status>`.

A line without a usable status (none, -1, a text, a number that is no HTTP status) is classified by what stands there: a
status in the error object, in its code or type ("BadRequestError", "RESOURCE_EXHAUSTED"), or in its message ("Error
code: 400 - ..."). Finish reasons are read in the words of all vendors
([endings.py](../../include/nightmill/providers/endings.py)); an unknown word decides nothing: the
answer is judged by its text, and the log counts it.

| seen | class | code |
|---|---|---|
"""
_CHECKS = """
## What our checks find

An answer goes through these checks in this order, one that was stored before it is used again likewise; the first that
refuses it gives the failure its code. Inputs are checked while a batch is frozen: nothing is sent for what is refused
there. [write_a_check.md](../guides/write_a_check.md) shows how to add one.

| check | found | class | code | what happens |
|---|---|---|---|---|
"""
_MENDED = """
## What is no failure

Read without another request and noted beside the result: a code fence around the whole answer (`unwrapped_fence`), an
answer that is JSON inside a JSON string (`decoded_twice`), reasoning in tags before it (`dropped_reasoning`), NUL
characters and half surrogate pairs, which Postgres cannot hold and which become U+FFFD (`sanitised`). Nothing is
guessed: prose around an answer, a number with a unit, or a truncated text is a failure.

Passed over and counted in the log: lines of nobody's request, the same answer twice (also with other usage), an error
line beside an answer to the same request, lines that cannot be read. Items that no line answers are lost, and only
after their files were fetched again for `provider.results_grace_s`: files grow, are empty or are named after their
batch has ended. An error object or a page in the place of a result file is no result file: it is fetched again later.

Of several choices the one with index 0 is read, of content in parts the text parts. All lines of a request, in both
files and in all looks at them, are settled together: an answer wins over an error, and two answers that differ are
none, however many there are.

## Usage

Cache reads, cache writes and reasoning tokens have columns of their own in `nightmill.attempt` and `nightmill.result`;
they are part of the prompt or the completion and are paid once. Usage that cannot be (more cached than prompt tokens, a
total that is no sum, negative or broken numbers) is kept as it was told in `nightmill.attempt.odd_usage`, is marked in
the report, status and console, and makes no price: the prompt is then estimated from the manifest. A request that the
provider refused before a model worked on it has `sent_upstream = false`, and is not estimated as paid.

## Files that validation refused

A request id beside or in a complaint is believed. A line number is not, because some providers count from 1 and some
from 0: the items that it may mean are sent again in files of their own (`nightmill.provider_batch.suspects`), and only
what is refused there is given up. Where no line is named, the file is sent again in halves.

## What is refused as a whole

A limit is known by its meaning: by code, status 413 or 429, or words, as the answer to an upload or a create, or in the
validation of a file. A full queue waits and is probed by one create at a time; a file that is too large makes smaller
ones; a request to slow down waits. No item fails by it. See [Operate](../guides/operations.md#limits-and-full-queues).
"""


def page() -> str:
    """The page as Markdown."""
    classes = ["## Classes\n", "| class | meaning | what happens | spends the retry budget |", "|---|---|---|---|"]
    for kind in FailureClass:
        spends = "yes" if kind.spends_retry_budget else "no"
        classes.append(f"| {kind} | {_CLASSES[kind]} | {_ACTIONS[kind.action]} | {spends} |")
    rules = [f"| {rule.evidence} | {rule.kind} | {f'`{rule.code}`' if rule.code else ''} |" for rule in RULES]
    checks = [*_rows("answers", ANSWER_CHECKS, ANSWER_RAISED), *_rows("inputs", INPUT_CHECKS, INPUT_RAISED)]
    return "\n".join([_INTRODUCTION, *classes, "", _RULES + "\n".join(rules), _CHECKS + "\n".join(checks), _MENDED])


def _rows(of: str, checks: Sequence[Check], raised: Code) -> Iterator[str]:
    for name, code in [*((check.name, code) for check in checks for code in check.codes), ("any", raised)]:
        action = code.action or code.kind.action
        yield f"| {of}: {name} | {code.meaning} | {code.kind} | `{code.word}` | {action} |"
