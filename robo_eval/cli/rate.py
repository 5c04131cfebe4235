"""`robo-eval rate`: a second rater judges episodes without knowing the policy."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say
from robo_eval.core.errors import InputError, InterruptedRunError
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.ratings import append_rating, blind_links
from robo_eval.log.store import EpisodeStore

if TYPE_CHECKING:
    from robo_eval.conduct.judging import Case, Cases

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "?": None}


def rate(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    rater: Annotated[str, typer.Option("--rater", "-r", help="Who judges.")],
    every: Annotated[
        bool, typer.Option("--all", help="Judge every physical episode, not only the sample.")
    ] = False,
    answers: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="Answers given elsewhere, CSV or JSON; - reads them."
        ),
    ] = None,
    show_policy: Annotated[
        bool, typer.Option("--show-policy", help="Name episode and policy: not blind.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Judge episodes of a robot or twin a second time, and keep the verdicts in ratings.csv.

    You are asked about the sample that the plan's judging.second_share drew before the first
    episode. Each answer is kept at once, and no episode is asked about twice. With --json and
    without --from it asks nothing, and prints what is left to judge.

    Example: robo-eval rate runs/matched --rater NAME
    """
    from robo_eval.conduct.judging import Cases

    rater = " ".join(rater.split())
    if not rater:
        raise InputError("--rater is empty; it needs the name of the person who judges")
    opened = TrialDirectory.open(trial)
    with EpisodeStore(opened.path, durable=False, read_only=True) as store:
        try:
            cases = Cases(opened.plan, opened.plan_digest, store.episodes(), every=every)
        except InputError as err:
            raise InputError(f"{trial}: {err}") from err
    desk = _Desk(opened, cases, rater, blind=not show_policy)
    if answers is not None:
        desk.take(answers)
    elif not json:
        desk.ask()
    if json:
        print_json(desk.as_dict())
    else:
        desk.say_rest()


class _Desk:
    """Where one rater judges the episodes of one trial."""

    def __init__(self, trial: TrialDirectory, cases: Cases, rater: str, *, blind: bool) -> None:
        self._trial = trial
        self._cases = cases
        self._rater = rater
        self._blind = blind
        self._written = 0
        self._skipped = 0

    def due(self) -> tuple[Case, ...]:
        """What is left to judge."""
        from robo_eval.log.evidence_read import read_evidence

        ratings = read_evidence(self._trial.path).ratings or ()
        return self._cases.due(ratings, self._rater)

    # Answers in a terminal ---------------------------------------------------------------------

    def ask(self) -> None:
        """Show and ask, one episode after the other.

        Raises:
            InputError: If there is no terminal.
            InterruptedRunError: On Ctrl-C; what was answered is kept.
        """
        due = self.due()
        if due and not sys.stdin.isatty():
            raise InputError(
                "nobody can be asked: standard input is not a terminal; give answers by --from FILE"
            )
        where = f"{quoted(self._trial.path)} --rater {quoted(self._rater)}"
        try:
            for number, case in enumerate(due, start=1):
                say(f"{number} of {len(due)}  {case.code}")
                self._judge(case)
        except (KeyboardInterrupt, typer.Abort):
            say()
            raise InterruptedRunError(
                f"stopped after {self._written} of {len(due)} verdicts, which are kept; the same"
                f" command goes on: robo-eval rate {where}"
            ) from None

    def _judge(self, case: Case) -> None:
        blind = self._show(case)
        success = _answer("success")
        milestones = {name: _answer(name) for name in self._trial.plan.judging.milestones}
        self._keep(case, success=success, milestones=milestones, blind=blind)

    def _show(self, case: Case) -> bool:
        """Print what may be known of an episode; whether that leaves the rater blind."""
        blind = self._blind
        say(f"  {case.condition}")
        paths: Sequence[Path] = ()
        if case.trace is not None and blind:
            paths = blind_links(self._trial.path, case.trace, case.code)
            if not paths and (self._trial.path / case.trace).exists():
                say("  links cannot be made here: the path names the policy, so this is not blind")
                blind = False
        if case.trace is not None and not blind:
            paths = [self._trial.path / case.trace]
        for path in paths:
            say(f"  recording {path}")
        if not paths:
            say("  no recording")
        if not self._blind:
            say(f"  episode {case.episode_id}, policy {case.policy}")
        return blind

    # Answers given elsewhere -------------------------------------------------------------------

    def take(self, source: str) -> None:
        """Keep answers from a file, all of them or none.

        Raises:
            InputError: If the file cannot be read, or an answer not be kept; the message names it.
        """
        from robo_eval.cli.rate_answers import read_answers
        from robo_eval.core.errors import InputError

        due = {case.episode_id for case in self.due()}
        taken = []
        for answer in read_answers(source, self._trial.plan.judging.milestones):
            try:
                case = self._cases.named(answer.episode, self._rater)
            except InputError as err:
                raise answer.wrong(err) from err
            taken.append((case, answer))
        seen: set[str] = set()
        for case, answer in taken:
            if case.episode_id in seen:
                raise answer.wrong(f"episode {answer.episode!r} is judged twice")
            seen.add(case.episode_id)
        for case, answer in taken:
            if case.episode_id not in due:
                self._skipped += 1
                continue
            # Who was given a code was not told the policy.
            blind = answer.episode != case.episode_id if answer.blind is None else answer.blind
            self._keep(case, success=answer.success, milestones=answer.milestones, blind=blind)

    def _keep(
        self,
        case: Case,
        *,
        success: bool | None,
        milestones: Mapping[str, bool | None],
        blind: bool,
    ) -> None:

        append_rating(
            self._trial.path,
            episode_id=case.episode_id,
            rater=self._rater,
            success=success,
            side=case.side,
            blind=blind,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            milestones=milestones,
        )
        self._written += 1

    # What is left ------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, object]:
        """What was done and what is left, as JSON would have it."""
        return {
            "trial": str(self._trial.path),
            "rater": self._rater,
            "milestones": list(self._trial.plan.judging.milestones),
            "written": self._written,
            "skipped": self._skipped,
            "left": [self._left(case) for case in self.due()],
        }

    def _left(self, case: Case) -> dict[str, object]:

        paths: Sequence[Path] = ()
        if case.trace is not None:
            paths = blind_links(self._trial.path, case.trace, case.code) if self._blind else ()
            paths = paths or ([] if self._blind else [self._trial.path / case.trace])
        return {**case.as_dict(blind=self._blind), "recordings": [str(path) for path in paths]}

    def say_rest(self) -> None:
        """Print how many verdicts were kept, and how many are missing."""
        left, own = len(self.due()), self._cases.own(self._rater)
        say(f"{self._written} verdicts of {self._rater} kept, {left} left to judge")
        if self._skipped:
            say(f"{self._skipped} were judged before and stay as they are")
        if own:
            say(f"{own} run by {self._rater} are left to somebody else")
        next_steps(f"robo-eval metrics {quoted(self._trial.path)}")


def _answer(what: str) -> bool | None:
    """Yes, no, or None for what the rater cannot say."""
    while True:
        text = str(typer.prompt(f"  {what}? [y/n/?]", prompt_suffix=" ", type=str))
        found = text.strip().lower()
        if found in _ANSWERS:
            return _ANSWERS[found]
        say("  y for yes, n for no, ? if you cannot say")
