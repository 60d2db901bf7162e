"""Running the Python of a job folder: whatever comes out of it is a fault of that folder and of nothing else.

output.py is somebody's program. It can raise what is no Exception, run for ever, recurse without end or print. What
nothing here can stop: a process that ends itself (os._exit, a crash of the interpreter).
docs/explanation/trust.md says so.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from opcode import opname
from threading import current_thread, main_thread
from time import monotonic
from types import FrameType, TracebackType

from nightmill.domain.errors import BrokenJobFolder, Mistake

LIMIT_S = 10.0  # for output.py and for its schema; they take milliseconds. Airflow gives all DAGs of a file 30 s
_LONGEST_TEXT = 300  # of what an exception says
_RAISING = frozenset({"RAISE_VARARGS", "RERAISE"})


class TookTooLong(BaseException):
    """The code did not end in time. No Exception: `except Exception` in a loop must not swallow it."""


@contextmanager
def contained(file: str, key: str | None, remedy: str, line: int | None = None) -> Iterator[None]:
    """Run somebody's code: BrokenJobFolder for all that it raises. Only a person's Ctrl-C and SIGTERM pass.

    What it prints goes to stderr: stdout belongs to the command. `line` is told where the fault has none in the file.
    """
    depth = sys.getrecursionlimit()
    try:
        with redirect_stdout(sys.stderr), _time_limit(LIMIT_S):
            yield
    except BrokenJobFolder:
        raise
    except BaseException as fault:
        if asked_to_stop(fault, signal.SIGINT, signal.SIGTERM):
            raise
        mistake = Mistake(file, _line_in(file, fault) or line, key, said_by(fault), remedy)
        raise BrokenJobFolder((mistake,)) from fault
    finally:
        sys.setrecursionlimit(depth)


def asked_to_stop(fault: BaseException, *signals: signal.Signals) -> bool:
    """Whether an exception was raised by a signal, and not by the code that it interrupted."""
    way = list(_way(fault.__traceback__))
    if isinstance(fault, KeyboardInterrupt) and not (way and _raises(way[-1])):
        return True  # Python's own handler is no function with a frame
    handlers = {getattr(signal.getsignal(one), "__code__", None) for one in signals}
    return any(step.tb_frame.f_code in handlers for step in way)


def said_by(fault: BaseException) -> str:
    """Kind and first line of what an exception says, which can be anything: cut, and without what a terminal or a
    database cannot take."""
    if isinstance(fault, TookTooLong):
        return str(fault)
    try:
        text = (fault.msg or "") if isinstance(fault, SyntaxError) else str(fault)
        first = text.partition("\n")[0][:_LONGEST_TEXT]
    except BaseException:  # its own __str__ failed
        first = ""
    first = first.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return ": ".join(part for part in (type(fault).__name__, first) if part)


def _way(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _raises(step: TracebackType) -> bool:
    """Whether the interrupted instruction is itself a raise statement."""
    return opname[step.tb_frame.f_code.co_code[step.tb_lasti]] in _RAISING


def _line_in(file: str, fault: BaseException) -> int | None:
    """Where in the file: of a syntax error its own line, else the innermost one on the way to the fault."""
    if isinstance(fault, SyntaxError) and _is(file, fault.filename):
        return fault.lineno
    lines = [step.tb_lineno for step in _way(fault.__traceback__) if _is(file, step.tb_frame.f_code.co_filename)]
    return lines[-1] if lines else None


def _is(file: str, path: str | None) -> bool:
    """Whether it is the job's own: compiled under its job's name, not under a path."""
    return path is not None and path.partition("/")[2] == file


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """TookTooLong after that time. In the main thread only, where Python runs signal handlers; an alarm that somebody
    else has set and that comes sooner counts instead, and a later one is set again afterwards."""
    began, earlier = monotonic(), signal.getitimer(signal.ITIMER_REAL)[0]
    if current_thread() is not main_thread() or 0 < earlier <= seconds:
        yield
        return

    def expired(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong(f"did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
        if earlier:
            signal.setitimer(signal.ITIMER_REAL, max(earlier - (monotonic() - began), 0.001))
