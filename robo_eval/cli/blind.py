"""What `run` and `resume` print of a blind trial while it is not complete: codes, no names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from robo_eval.cli.output import interval, percent, print_table, say
from robo_eval.core.errors import RoboEvalError
from robo_eval.core.kinds import Side
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore

if TYPE_CHECKING:
    from robo_eval.core.blinding import Blinding
    from robo_eval.metrics.summary import TrialSummary


def blinding_until_complete(trial: TrialDirectory) -> Blinding:
    """The codes of a trial that is blind and still to be played on; no codes for any other."""
    from robo_eval.core.blinding import Blinding, blinding_of
    from robo_eval.core.schedule import attempts_of
    from robo_eval.core.series import due

    plan = trial.plan
    physical = [side for side in plan.sides if side is not Side.SIM]
    if not plan.blind or not physical:
        return Blinding({})
    with EpisodeStore(trial.path, durable=False) as store:
        rows = list(store.episodes())
    if any(due(plan, side, attempts_of(rows, side)) for side in physical):
        return blinding_of(plan, trial.plan_digest)
    return Blinding({})


def coded(text: str, trial: TrialDirectory, blinding: Blinding) -> str:
    """A message without names, but for those in the path of the trial, which is to be typed."""
    path = str(trial.path)
    return path.join(blinding.text(part) for part in text.split(path))


@contextmanager
def coded_errors(trial: TrialDirectory) -> Iterator[None]:
    """Errors that leave a run on a robot name no policy of a blind trial."""
    from robo_eval.core.blinding import blinding_of

    try:
        yield
    except RoboEvalError as err:
        text = coded(str(err), trial, blinding_of(trial.plan, trial.plan_digest))
        if text == str(err):
            raise
        raise type(err)(text) from None


def print_coded(summary: TrialSummary, blinding: Blinding) -> None:
    """How far each policy is, by its code, and how it does so far."""
    rows = [
        (
            blinding.policy(row.policy),
            row.side,
            f"{row.coverage.scored} of {row.coverage.expected} scored",
            interval(row.performance) if row.is_sayable else "-",
            interval(row.success_exact) if row.is_sayable else "-",
        )
        for row in summary.policies
    ]
    title = f"{summary.name}, blind: mean [{percent(summary.config.level)} interval]"
    print_table(title, ["policy", "side", "episodes", "performance", "success"], sorted(rows))
    say("names and the report come when every episode of the robot is played")
