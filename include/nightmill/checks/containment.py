"""A check that raises: a finding of its item, with a place, and never the end of a shard."""

from __future__ import annotations

import signal
import traceback
from pathlib import PurePath

from nightmill.checks.port import Check, Code, Finding
from nightmill.domain.failures import Action, FailureClass
from nightmill.jobs.output.job_code import asked_to_stop

_MEANING = "a check raised an error: the message names its place; the model is not asked again"
ANSWER_RAISED = Code("check_raised", FailureClass.OUTPUT, _MEANING, Action.GIVE_UP)
INPUT_RAISED = Code("check_raised", FailureClass.INPUT, "a check raised an error: the message names its place")


def raised(check: Check, fault: BaseException) -> Finding:
    """What is found where a check raised. Raises the fault again where it is a signal that ends the process.

    The words of an exception can quote the document, so only its kind and place are kept.
    """
    if asked_to_stop(fault, signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        raise fault
    frames = traceback.extract_tb(fault.__traceback__)
    place = f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
    return Finding(ANSWER_RAISED.word, f"the check `{check.name}` raised {type(fault).__name__} at {place}")
