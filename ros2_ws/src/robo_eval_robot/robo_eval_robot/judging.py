"""What the person at the robot says about an episode, and what becomes of its attempt."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from robo_eval.core.errors import InterruptedRunError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import PlannedEpisode
from robo_eval.log.notes import iso_time, note
from robo_eval_robot.attempt import OPERATOR, Attempt
from robo_eval_robot.operator import Answer, Person

BY_ITSELF: Final = (EndReason.SUCCESS, EndReason.FAILURE, EndReason.TIMEOUT)
"""Ends that a person may judge; what was stopped is no success, whatever anybody says."""
NOBODY: Final = "nobody was asked"


@dataclass(slots=True)
class _Said:
    """What one person said about one episode."""

    verdict: str = ""
    note: str = ""
    milestones: dict[str, Answer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judge:
    """Asks about each episode that has ended, and writes down who said what, and when.

    Attributes:
        trial: The trial directory.
        plan: Its plan.
        side: Where it is played.
        person: Who is asked; None if nobody is there.
        operator: Name of that person.
        shown: How the id of an episode is shown.
    """

    trial: Path
    plan: TrialPlan
    side: Side
    person: Person | None
    operator: str | None = None
    shown: Callable[[str], str] = str

    def judge(self, planned: PlannedEpisode, attempt: Attempt) -> Attempt:
        """The attempt with the person's verdict, where the plan wants one; void if they say so.

        Where nobody answers there is no verdict: success is missing, and the detail says why.

        Args:
            planned: What was played.
            attempt: How it went, as far as the task can tell.

        Raises:
            TrialDirectoryError: If what was said cannot be written down.
        """
        is_open = self.plan.judging.asks(self.side) and attempt.end_reason in BY_ITSELF
        if self.person is None:
            return unjudged(attempt, NOBODY) if is_open else attempt
        if attempt.end_reason is EndReason.VOID:
            if attempt.void_by is None:
                return attempt  # by a signal, not by a person who judged it
            self._write(planned, _Said(verdict="void", note=attempt.detail or ""))
            return replace(attempt, void_by=self.operator or attempt.void_by)
        said = _Said()
        try:
            judged = self._ask(self.person, planned, attempt, said, is_open=is_open)
        except InterruptedRunError as err:
            said.note = str(err)
            if is_open and not said.verdict:
                judged = unjudged(attempt, str(err))
            else:
                judged = _as_said(attempt, said)
        if said.verdict or said.milestones or is_open:
            self._write(planned, said)
        return judged

    def _ask(
        self,
        person: Person,
        planned: PlannedEpisode,
        attempt: Attempt,
        said: _Said,
        *,
        is_open: bool,
    ) -> Attempt:
        name = self.shown(planned.episode_id)
        while True:
            if is_open:
                said.verdict = person.verdict(f"{name} has ended. Did it succeed?")
            else:
                how = attempt.end_reason.value + (f", {attempt.detail}" if attempt.detail else "")
                said.verdict = "" if person.keeps(f"{name} has ended: {how}.") else "void"
            if said.verdict != "void":
                break
            said.verdict = ""
            reason = person.void_reason()
            if reason is not None:
                said.verdict, said.note = "void", ": ".join(filter(None, reason))
                return voided(attempt, said.note, self.operator)
        if attempt.end_reason in BY_ITSELF:
            for milestone in self.plan.judging.milestones:
                said.milestones[milestone] = person.milestone(milestone)
        return _as_said(attempt, said)

    def _write(self, planned: PlannedEpisode, said: _Said) -> None:
        note(
            self.trial,
            "verdicts",
            episode_id=planned.episode_id,
            side=self.side.value,
            operator=self.operator or "",
            time=iso_time(time.time_ns()),
            verdict=_WRITTEN.get(said.verdict, said.verdict),
            blind=self.plan.blind,
            milestones=json.dumps(said.milestones, ensure_ascii=False),
            note=said.note,
        )


_WRITTEN: Final = {"yes": "success", "no": "failure", "cannot say": "cannot_say"}


def _as_said(attempt: Attempt, said: _Said) -> Attempt:
    """The attempt with a verdict in place of what the task says."""
    if said.verdict in ("yes", "no"):
        return judged_as(attempt, success=said.verdict == "yes")
    return unjudged(attempt, "the operator cannot say") if said.verdict else attempt


def judged_as(attempt: Attempt, *, success: bool) -> Attempt:
    """The attempt with a person's verdict; its quality stays what the task measured."""
    end_reason = EndReason.SUCCESS if success else EndReason.FAILURE
    quality = attempt.quality
    return replace(
        attempt,
        end_reason=end_reason,
        success=success,
        # A row has both or neither; a task that measures nothing leaves the verdict alone.
        quality=float(success) if quality is None else quality,
        detail=_task_says(attempt) if end_reason is not attempt.end_reason else attempt.detail,
    )


def unjudged(attempt: Attempt, why: str) -> Attempt:
    """The attempt without a verdict: neither a success nor a failure, and not to be repeated."""
    return replace(
        attempt,
        end_reason=EndReason.NO_VERDICT,
        success=None,
        quality=None,
        detail=f"no verdict: {why}; {_task_says(attempt)}",
    )


def voided(attempt: Attempt, why: str, operator: str | None) -> Attempt:
    """The attempt declared void."""
    return replace(
        attempt,
        end_reason=EndReason.VOID,
        success=None,
        quality=None,
        episode_return=None,
        detail=why,
        void_by=operator or OPERATOR,
    )


def _task_says(attempt: Attempt) -> str:
    return f"the task says {attempt.end_reason.value}"
