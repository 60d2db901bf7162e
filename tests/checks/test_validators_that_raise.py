"""Whatever the validators and serializers of output.py raise settles one answer, and says nothing of it."""

import asyncio
import os
import signal

import pytest
from pydantic import BaseModel, field_serializer, field_validator, model_serializer

from nightmill.jobs.output.answer_schema import AnswerReader, Invalid, Valid

CANARY = "CANARY-7f3a"


class Own(BaseException):
    """What nobody expects a validator to raise; its text quotes the answer."""


def _endless(value):
    return _endless(value)


RAISED = [SystemExit, KeyboardInterrupt, GeneratorExit, Own, asyncio.CancelledError, RecursionError, MemoryError]
RAISED += [StopIteration, lambda text: BaseExceptionGroup(text, [KeyboardInterrupt()])]


@pytest.mark.parametrize("kind", RAISED)
def test_whatever_a_validator_raises_settles_its_own_answer_only(kind):
    class Judged(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def judged(cls, value):
            if value == CANARY:
                raise kind(value)
            return value

    reader = AnswerReader(Judged)
    name = getattr(kind, "__name__", "")
    found = reader.read(f'{{"text": "{CANARY}"}}')
    assert found.code == "validator_raised"
    assert CANARY not in str(found)
    assert found.findings == ((name if name != "<lambda>" else "BaseExceptionGroup"),)
    assert reader.read('{"text": "fine"}') == Valid({"text": "fine"})


def test_a_validator_that_recurses_without_end_settles_its_own_answer_only():
    class Judged(BaseModel):
        text: str

        judged = field_validator("text")(lambda value: _endless(value))

    assert AnswerReader(Judged).read('{"text": "x"}') == Invalid("validator_raised", ("RecursionError",))


def test_whatever_a_serializer_raises_or_returns_settles_its_own_answer_only():
    class Exits(BaseModel):
        text: str

        @field_serializer("text", when_used="json")
        def exits(self, value: str) -> str:
            raise SystemExit(value)

    class Nothing(BaseModel):
        text: str

        @model_serializer
        def nothing(self) -> dict[str, str]:
            return None

    class Less(BaseModel):
        text: str

        @model_serializer
        def less(self) -> dict[str, str]:
            return {}

    schema = {"properties": {"text": {"type": "number"}}}  # as a hook of theirs can claim
    for model in (Exits, Nothing, Less):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model, "model_json_schema", lambda **_: schema)
            assert AnswerReader(model).read('{"text": "x"}').code == "validator_raised"


def test_a_signal_that_stops_the_process_passes_through_a_validator():
    class Pressed(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def press(cls, value):
            os.kill(os.getpid(), signal.SIGINT)
            return value

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            AnswerReader(Pressed).read('{"text": "x"}')
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_limit_of_airflow_passes_through_a_validator():
    """execution_timeout raises in a handler of SIGALRM, and no Exception."""

    def expired(_number, _frame):
        raise Own("airflow")

    class Slow(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def slow(cls, value):
            signal.raise_signal(signal.SIGALRM)
            return value

    before = signal.signal(signal.SIGALRM, expired)
    try:
        with pytest.raises(Own):
            AnswerReader(Slow).read('{"text": "x"}')
    finally:
        signal.signal(signal.SIGALRM, before)
