"""The errors robo-eval raises on purpose, each with the exit code the command line gives it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

TRACEBACK: Final = "ROBO_EVAL_TRACEBACK"
"""Environment variable that also shows where an error comes from."""
DISTRIBUTION: Final = "robo-eval-stack"
"""What pip calls us."""


class RoboEvalError(Exception):
    """Base of every error raised on purpose.

    The message is one line: what was wrong and where, what was given, and what would do.
    """

    exit_code: ClassVar[int] = 2


class InputError(RoboEvalError, ValueError):
    """What was given cannot be used; nothing was changed."""

    http_status: ClassVar[int] = 422
    """What a web page answers with."""


class UnknownNameError(InputError):
    """A name is not among the valid ones; the message names the nearest."""


class ShapeError(InputError):
    """An array has the wrong shape or holds a non-finite number."""


class PlanError(InputError):
    """A trial plan is not valid; the message names file and field."""


class TrialDirectoryError(InputError):
    """A trial directory cannot be read, written or locked."""


class MissingExtraError(RoboEvalError, ImportError):
    """An optional part is not installed; the message holds the pip command that adds it."""


class NotHereError(InputError):
    """What is to be played is not at hand on this machine, such as a robot; elsewhere it may be."""


def pip_install(extra: str) -> str:
    """The command that adds an optional part, for messages of a `MissingExtraError`."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'


class CheckFailedError(RoboEvalError):
    """The input was fine, and what was checked does not hold."""

    exit_code: ClassVar[int] = 1


class InterruptedRunError(RoboEvalError):
    """A run stopped before its plan was done; `robo-eval resume` goes on from there."""

    exit_code: ClassVar[int] = 3


def said(err: BaseException, *, named: bool = True) -> str:
    """An error of somebody else's code in one line: its kind, and what it says.

    Without `named`, its kind only where it says nothing.
    """
    try:
        text = " ".join(str(err).split())
    except Exception:  # noqa: BLE001 - an error that cannot even say what it is
        text = ""
    kind = type(err).__name__
    return (f"{kind}: {text:.500}" if named else text) if text else kind


@contextmanager
def foreign(where: str, what: str) -> Iterator[None]:
    """Turn whatever somebody else's code raises into one line; ours and Ctrl-C stay as they are.

    Args:
        where: What the line begins with.
        what: What fails then, such as `importing it`.

    Raises:
        InputError: In place of any other error of the body, an end of the program included.
    """
    try:
        yield
    except (RoboEvalError, KeyboardInterrupt):
        raise
    except BaseException as err:
        raise InputError(f"{where}: {what} fails: {said(err)}") from err
