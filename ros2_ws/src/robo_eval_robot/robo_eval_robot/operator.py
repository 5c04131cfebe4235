"""The person at the robot: what is asked, which answers there are, and who waits meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from robo_eval.core.blinding import Blinding
from robo_eval.core.errors import InterruptedRunError
from robo_eval_robot.attempt import SkippedError
from robo_eval_robot.terminal import Terminal, TerminalGoneError

Answer = Literal["yes", "no", "cannot say"]
"""What may be said of a verdict or a milestone."""
_JUDGED: Final[dict[str, Answer]] = {"yes": "yes", "no": "no", "cannot say": "cannot say"}
_PAUSE: Final = "pause"
_STOP: Final = "stop"
_VOID: Final = "void"
_BACK: Final = "back"


@dataclass(slots=True)
class Person:
    """Asks the person at the robot, and keeps the robot's connection alive until they answer.

    Every question can also be answered by `pause` and `stop`; the first letter of an answer is
    enough.

    Attributes:
        terminal: Where the person sits.
        poll: Keeps the connection alive for a moment; raises InterruptedRunError on a signal.
        void_reasons: Reasons for which an attempt may be declared void.
        blinding: How policies are called.
        on_pause: Called after a pause with its start, ns, and its length, seconds.
    """

    terminal: Terminal
    poll: Callable[[], None]
    void_reasons: Sequence[str] = ()
    blinding: Blinding = field(default_factory=lambda: Blinding({}))
    on_pause: Callable[[int, float], None] = lambda _start, _seconds: None
    stopped_by: str | None = None
    """Who asked to end the run; None if nobody did."""

    def confirm(self, text: str) -> bool:
        """Ask whether something may be done.

        Raises:
            InterruptedRunError: If the run is to end.
        """
        answer = self._choose(text, ("yes", "no"), default="yes")
        self._leave_if_stopped()
        return answer == "yes"

    def ready(self, text: str) -> bool:
        """Ask for an episode to be set up; returns when it is.

        Raises:
            SkippedError: If the attempt is declared void before it began.
            InterruptedRunError: If the run is to end.
        """
        while True:
            words = ("ready", _VOID) if self.void_reasons else ("ready",)
            answer = self._choose(text, words, default="ready")
            self._leave_if_stopped()
            if answer == "ready":
                return True
            reason = self.void_reason()
            self._leave_if_stopped()
            if reason is not None:
                raise SkippedError(*reason)

    def verdict(self, text: str) -> Answer | Literal["void"]:
        """Ask whether an episode succeeded, or is void.

        Raises:
            InterruptedRunError: On a signal, or if nobody can answer; there is no verdict then.
        """
        words = (*_JUDGED, _VOID) if self.void_reasons else tuple(_JUDGED)
        answer = self._choose(text, words, stays=True)
        return _JUDGED.get(answer, "void")

    def keeps(self, text: str) -> bool:
        """Ask whether an episode counts; False if it is to be void.

        Raises:
            InterruptedRunError: On a signal, or if nobody can answer.
        """
        if not self.void_reasons:
            return True
        return self._choose(text, ("keep", _VOID), default="keep", stays=True) == "keep"

    def milestone(self, name: str) -> Answer:
        """Ask whether a step was reached.

        Raises:
            InterruptedRunError: On a signal, or if nobody can answer.
        """
        return _JUDGED[self._choose(f"Milestone: {name}?", tuple(_JUDGED), stays=True)]

    def void_reason(self) -> tuple[str, str] | None:
        """Ask why an attempt is void: a reason of the plan, and a note; None to go back.

        Raises:
            InterruptedRunError: On a signal, or if nobody can answer.
        """
        listed = "; ".join(f"{i} {reason}" for i, reason in enumerate(self.void_reasons, 1))
        question = f"Void, why? {listed} (a note may follow; back: not void)"
        with self.terminal.asking():
            while True:
                text = self._line(question)
                if text.lower() == _BACK:
                    return None
                found = _reason_of(text, self.void_reasons)
                if found is not None:
                    return found
                self.terminal.say(f"{text!r}: the plan has no such reason")

    # Asking ------------------------------------------------------------------------------------

    def _choose(
        self, text: str, words: Sequence[str], *, default: str | None = None, stays: bool = False
    ) -> str:
        """One of some words, or `stop`; an episode that `stays` is judged before the run ends."""
        all_words = (*words, _PAUSE, _STOP)
        shown = ", ".join(f"{word} (Enter)" if word == default else word for word in all_words)
        question = f"{self.blinding.text(text)} [{shown}]"
        with self.terminal.asking():
            while True:
                answer = _word_of(self._line(question), all_words, default)
                if answer is None:
                    self.terminal.say(f"please answer one of: {', '.join(all_words)}")
                elif answer == _PAUSE:
                    self._pause()
                elif answer == _STOP:
                    self.stopped_by = "the operator"
                    if not stays:
                        return answer
                    self.terminal.say("the run ends after this answer")
                else:
                    return answer

    def _line(self, question: str) -> str:
        """Ask, and wait for a line while the robot is kept waiting safely."""
        self.terminal.say(question, end=" ")
        while True:
            try:
                line = self.terminal.line()
            except TerminalGoneError as err:
                self.stopped_by = "the end of its terminal"
                raise InterruptedRunError(str(err)) from err
            if line is not None:
                return line.strip()
            self.poll()

    def _pause(self) -> None:
        """Wait until the person goes on; the guard keeps the robot closed."""
        start_ns, began = time.time_ns(), time.monotonic()
        try:
            while True:
                text = self._line("paused, the robot stays still; Enter: go on")
                if text.lower() in ("", "ready", "r", "go", "go on"):
                    return
                self.terminal.say("Enter first, then stop, void or whatever else")
        finally:
            self.on_pause(start_ns, time.monotonic() - began)

    def _leave_if_stopped(self) -> None:
        if self.stopped_by is not None:
            raise InterruptedRunError(f"stopped by {self.stopped_by}")


def _word_of(text: str, words: Sequence[str], default: str | None) -> str | None:
    """The word that was meant: it, the beginning of one word only, or nothing for the default."""
    typed = text.lower()
    if not typed:
        return default
    if typed in words:
        return typed
    meant = [word for word in words if word.startswith(typed)]
    return meant[0] if len(meant) == 1 else None


def _reason_of(text: str, reasons: Sequence[str]) -> tuple[str, str] | None:
    """Which reason a line names, by number or in full, and the note after it."""
    numbered: Mapping[str, str] = {str(i): reason for i, reason in enumerate(reasons, 1)}
    # The longest first: one reason may be the beginning of another.
    for name in sorted((*numbered, *reasons), key=len, reverse=True):
        rest = text[len(name) :]
        if text.startswith(name) and not rest[:1].isalnum() and not rest.startswith("_"):
            return numbered.get(name, name), rest.strip(" \t:,;-")
    return None
