"""What the pages of a competition tell of teams and episodes, and what they hide until when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from robo_eval.compete.competition import Competition, moment_text
from robo_eval.compete.draw import TrialDraw
from robo_eval.compete.ledger import Attempt, Ledger, Team
from robo_eval.compete.pages.desk import Place
from robo_eval.core.episode import Episode
from robo_eval.core.kinds import EndReason
from robo_eval.core.plan import PlannedCondition
from robo_eval.core.task import task_of
from robo_eval.core.wording import counted, in_short

MOST_NOTES: Final = 20
"""Notes that a page shows, of each kind."""
_MOST_READ: Final = 500
"""Notes among which those that are alike are found."""


def hidden_text(ledger: Ledger) -> str:
    """Why something is not told, and until when."""
    is_closed = "closed_ns" in ledger.meta()
    until = (
        "the organiser reveals the seeds, which may be done at any time now"
        if is_closed
        else "the organiser reveals the seeds, after the competition was closed or from"
        f" {moment_text(ledger.competition.closes_ns)} on"
    )
    return (
        "Levels, seeds, onsets, films of episodes and measures of detection and reaction would tell"
        f" what is novel and from when on. They are hidden until {until}."
    )


def where_text(competition: Competition, where: PlannedCondition) -> str:
    """What an episode was played under: its task where there are several, and its novelty."""
    task = competition.tasks[where.task]
    spec = task_of(task.env)
    parts = [spec.title if spec is not None else task.env] if len(competition.tasks) > 1 else []
    if where.novelty:
        parts += [f"{axis.replace('_', ' ')} {in_short(size)}" for axis, size in where.novelty]
    elif not where.level:
        parts.append("no novelty")
    else:
        name = "" if spec is None else spec.levels()[where.level].name.replace("_", " ")
        parts += [f"level {where.level} {name}".strip(), str(where.difficulty or "")]
    return ", ".join(filter(None, parts))


def cells(competition: Competition) -> dict[str, str]:
    """The cells of the map by key, in words."""
    plan = competition.plan()
    nominal = [plan.nominal(index) for index in range(len(competition.tasks))]
    return {one.key: where_text(competition, one) for one in (*nominal, *competition.cells())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An episode that a team did not solve.

    Attributes:
        attempt: Which of the team's attempts it was in.
        place: Where it is in the ledger.
        where: What it was played under.
        row: What was logged.
        phase: Where it stands in its trial, in words.
    """

    attempt: int
    place: Place
    where: str
    row: Episode
    phase: str


@lru_cache(maxsize=64)
def failed(ledger: Ledger, attempt: Attempt) -> tuple[Failed, ...]:
    """The episodes of an attempt that ended without success, by trial; only after the reveal."""
    drawn, runs = ledger.trials(attempt.attempt), ledger.ended_runs(attempt.number)
    found: list[Failed] = []
    for link in ledger.links(attempt.number):
        if link.kind != "episode" or link.run != runs[link.trial][0]:
            continue
        row, trial = link.row, drawn[link.trial]
        if row.end_reason is EndReason.SUCCESS:
            continue
        is_novel = trial.episodes[link.episode].is_novel
        found.append(
            Failed(
                attempt=attempt.attempt,
                place=(attempt.number, link.trial, link.episode),
                where=where_text(ledger.competition, trial.where if is_novel else trial.nominal),
                row=row,
                phase=_phase(trial, link.episode),
            )
        )
    return tuple(sorted(found, key=lambda one: one.place))


def _phase(trial: TrialDraw, episode: int) -> str:
    if trial.onset is None:
        return "nothing changes in this trial"
    if episode < trial.onset:
        return f"{trial.onset - episode} before the onset"
    return "the onset" if episode == trial.onset else f"{episode - trial.onset} after the onset"


def notes(ledger: Ledger, team: Team | None, attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """What was refused, forfeited or given back last, of one team or of all; alike ones together.

    A team is not told why something was given back: what an environment says when it breaks could
    tell what is novel in it.
    """
    own = None if team is None else [one.number for one in attempts]
    by_number = {one.number: one for one in attempts}
    names = {one.number: one.name for one in ledger.teams()} if team is None else {}
    alike: Counter[tuple[str, str, int, str]] = Counter()
    for one in ledger.breaks(_MOST_READ, own):
        attempt = by_number[one["attempt"]]
        is_forfeited = one["state"] == "forfeited"
        why = one["why"] if is_forfeited or team is None else "our fault, at no cost"
        kind = "forfeited" if is_forfeited else "given back"
        alike[kind, names.get(attempt.team, ""), attempt.attempt, why] += 1
    broken = [
        {
            "kind": kind,
            "team": whose,
            "at_ns": None,
            "detail": f"{counted(n, 'trial')} of attempt {attempt}: {why}",
        }
        for (kind, whose, attempt, why), n in alike.items()
    ]
    refused = []
    latest: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for note in ledger.latest_notes(_MOST_READ, team):
        latest.setdefault((note["team"], note["kind"], note["detail"]), []).append(note)
    for same in latest.values():
        again = f" ({len(same):,} times)" if len(same) > 1 else ""
        note = {**same[0], "team": names.get(same[0]["team"], "")}
        refused.append({**note, "detail": note["detail"] + again})
    return [*broken[:MOST_NOTES], *refused[:MOST_NOTES]]
