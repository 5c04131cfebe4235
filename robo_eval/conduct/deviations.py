"""Where a trial was played otherwise than its locked plan says: what, how often, which and when."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.conduct.attempts import FEW, AttemptTable, is_missing
from robo_eval.conduct.judging import is_same_person, second_sample
from robo_eval.conduct.steadiness import (
    Tolerances,
    change_deviations,
    order_deviations,
    start_deviations,
)
from robo_eval.core import door
from robo_eval.core.kinds import LATE_COMPUTER, UNPLAYED, EndReason, Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import (
    PlannedIds,
    count_failed,
    injections_of,
    planned_ids,
    schedule,
    simulated_id,
)
from robo_eval.core.series import Series, shortened
from robo_eval.log.directory import PREFLIGHT, ROBOT_FILE
from robo_eval.log.evidence import Evidence, Pause, Rating
from robo_eval.metrics.attribution import void_reason
from robo_eval.metrics.deviation import KINDS, Deviation

if TYPE_CHECKING:
    import pandas as pd

_SCORED: Final = tuple(reason for reason in EndReason if reason.is_scored)
_PLAYED: Final = tuple(reason for reason in EndReason if reason.is_final)
_BY_TASK: Final = (EndReason.SUCCESS, EndReason.FAILURE, EndReason.TIMEOUT)
_PLACE: Final = re.compile(r" \([^()]*tick \d+\)$")
"""Where a fault was raised, and when: the same fault may be raised anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What lies beside the rows of a trial and tells how it was played.

    Attributes:
        ratings: Second ratings.
        pauses: Pauses of the run.
        preflight_problem: Why the last preflight failed; None if it did not, or there was none.
        tolerances: By task and field, how far starts may be from the planned one.
    """

    ratings: Sequence[Rating] = ()
    pauses: Sequence[Pause] = ()
    preflight_problem: str | None = None
    tolerances: Tolerances = field(default_factory=dict)


def read_beside(folder: Path, evidence: Evidence) -> Beside:
    """What lies beside the rows in a trial directory; files that cannot be read say nothing."""
    preflight = _mapping(folder / PREFLIGHT)
    failed = preflight.get("passed") is False
    tasks = _mapping(folder / ROBOT_FILE).get("tasks")
    return Beside(
        ratings=evidence.ratings or (),
        pauses=evidence.pauses or (),
        preflight_problem=str(preflight.get("problem") or "no reason given") if failed else None,
        tolerances=_tolerances(tasks if isinstance(tasks, dict) else {}),
    )


def _mapping(file: Path) -> dict[str, Any]:
    try:
        text = door.bytes_of(file).decode()
    except (OSError, ValueError):
        return {}
    try:
        found = door.json_of(text) if file.suffix == ".json" else door.yaml_of(text, file)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _tolerances(tasks: Mapping[str, Any]) -> Tolerances:
    """The tolerances of starts in a robot file that has already been checked by its run."""
    found: dict[str, dict[str, float]] = {}
    for name, task in tasks.items():
        start = task.get("initial_state") if isinstance(task, dict) else None
        given = start.get("tolerance") if isinstance(start, dict) else None
        if isinstance(given, dict):
            found[str(name)] = {
                str(key): float(limit)
                for key, limit in given.items()
                if isinstance(limit, int | float)
            }
    return found


def deviations_of(
    table: pd.DataFrame,
    plan: TrialPlan,
    plan_digest: str,
    *,
    beside: Beside | None = None,
    series: Series | None = None,
) -> tuple[Deviation, ...] | None:
    """Everything in which a trial departed from its plan, in the order of `KINDS`.

    The order of the rows changes nothing.

    Args:
        table: A table from `episodes_frame`.
        plan: The locked plan.
        plan_digest: Its SHA-256.
        beside: What lies beside the rows.
        series: What the stopping rule says; the episodes it left out are no deviation.

    Returns:
        None if the trial was imported: nothing was planned then.
    """
    if plan.imported is not None:
        return None
    log, known = AttemptTable(table), beside or Beside()
    planned = {side: planned_ids(_unshuffled(plan, side), side) for side in plan.sides}
    found = [
        *_unplayed(log, plan, planned, series),
        *_retried(log, plan),
        *_unscored(log, plan),
        *_uninjected(log, plan),
        *order_deviations(log, plan, planned),
        *start_deviations(log, plan, known.tolerances),
        *change_deviations(log, plan),
        *_recovered(log),
        *_without_verdict(log),
        *_second_ratings(log, plan, plan_digest, known.ratings),
        *_preflight(known),
        *_pauses(known.pauses),
    ]
    rank = {kind: place for place, kind in enumerate(KINDS)}
    return tuple(sorted(found, key=lambda it: (rank[it.kind], it.side, it.text)))


def _unshuffled(plan: TrialPlan, side: Side) -> TrialPlan:
    """The plan as the order of a side needs it: in simulation none is kept, and shuffling takes."""
    return plan.model_copy(update={"order": "blocked"}) if side is Side.SIM else plan


# Attempts -----------------------------------------------------------------------------------------


def _unplayed(
    log: AttemptTable, plan: TrialPlan, planned: Mapping[Side, PlannedIds], series: Series | None
) -> Iterator[Deviation]:
    """Planned episodes without an attempt, and attempts of no planned episode."""
    needed = shortened(plan, series).episodes
    for side in plan.sides:
        rows = np.flatnonzero(log.on(side.value))
        tried = set(log.base_ids[rows].tolist())
        own = planned[side]
        if tried == set(own.base_ids):
            continue
        due = zip(own.base_ids, own.numbers, strict=True)
        missing = [name for name, number in due if number < needed and name not in tried]
        if missing:
            yield Deviation(
                kind="not_attempted",
                side=side.value,
                count=len(missing),
                reasons=_why_not(log, plan, side, missing),
                episodes=tuple(missing[:FEW]),
            )
        foreign = tried.difference(own.base_ids)
        if foreign:
            is_foreign = [name in foreign for name in log.base_ids[rows]]
            yield log.deviation("unplanned", rows[is_foreign], side=side.value)


def _why_not(
    log: AttemptTable, plan: TrialPlan, side: Side, missing: Sequence[str]
) -> Mapping[str, int]:
    """A simulated half is only played once its physical half has a score."""
    physical = [other for other in plan.sides if other is not Side.SIM]
    if side is not Side.SIM or not physical:
        return {}
    scored = log.ended(*_SCORED)
    partners = {
        simulated_id(name, other, way)
        for other in physical
        for name in log.base_ids[scored & log.on(other.value)]
        for way in plan.ways(side)
    }
    without = sum(name not in partners for name in missing)
    return {"physical half without a score": without} if without else {}


def _retried(log: AttemptTable, plan: TrialPlan) -> Iterator[Deviation]:
    """Attempts beyond the first, by how the attempt before ended."""
    again = log.numbers > 1
    if not again.any():
        return
    bases = set(log.base_ids[again].tolist())
    ended: dict[tuple[str, int], str] = {}
    past: defaultdict[str, list[EndReason]] = defaultdict(list)
    for row in np.flatnonzero([name in bases for name in log.base_ids]).tolist():
        end = str(log.ends[row])
        ended[log.base_ids[row], int(log.numbers[row])] = end
        if end in UNPLAYED:
            past[log.base_ids[row]].append(EndReason(end))
    for side in plan.sides:
        rows = np.flatnonzero(again & log.on(side.value))
        if not len(rows):
            continue
        keys = zip(log.base_ids[rows], log.numbers[rows].tolist(), strict=True)
        before = [ended.get((name, number - 1), "an unknown end") for name, number in keys]
        tried = set(log.base_ids[rows].tolist())
        over = sum(count_failed(past[name], side) > plan.retries + 1 for name in tried)
        yield log.deviation(
            "retried",
            rows,
            side=side.value,
            reasons=[f"after {end}" for end in before],
            text=f"{over} tried more often than the plan's `retries` allows"
            if over and plan.trials is None
            else "",
        )


def _unscored(log: AttemptTable, plan: TrialPlan) -> Iterator[Deviation]:
    """Attempts that were lost, ended by a fault, or were declared void, by why."""
    for end in (EndReason.LOST, EndReason.FAULT, EndReason.VOID):
        at = log.ended(end)
        if not at.any():
            continue
        for side in plan.sides:
            rows = np.flatnonzero(at & log.on(side.value))
            if not len(rows):
                continue
            details = log.details(rows)
            if end is not EndReason.VOID:
                reasons = [_PLACE.sub("", text) for text in details]
                yield log.deviation(end.value, rows, side=side.value, reasons=reasons)
                continue
            yield from _voids(log, plan, side, rows, [void_reason(text) for text in details])


def _uninjected(log: AttemptTable, plan: TrialPlan) -> Iterator[Deviation]:
    """Injections whose episode, although it was scored, ended before their tick came."""
    if not plan.injections:
        return
    planned = {episode.base_id: episode for episode in schedule(plan, Side.TWIN)}
    # The tick in which a guard stops the robot had begun, and is not counted.
    begun = log.table["ticks"].to_numpy(dtype=np.float64, na_value=np.nan)
    begun += ~log.ended(*_BY_TASK)
    rows, reasons = [], []
    for row in np.flatnonzero(log.on(Side.TWIN.value) & log.ended(*_SCORED)).tolist():
        episode = planned.get(log.base_ids[row])
        for injection in [] if episode is None else injections_of(plan, episode):
            if begun[row] <= injection.tick:
                rows.append(row)
                reasons.append(f"{injection.fault} was due at tick {injection.tick}")
    if rows:
        yield log.deviation("injections", np.array(rows), side=Side.TWIN.value, reasons=reasons)


def _voids(
    log: AttemptTable, plan: TrialPlan, side: Side, rows: NDArray[np.intp], reasons: Sequence[str]
) -> Iterator[Deviation]:
    is_late = np.array([reason == LATE_COMPUTER for reason in reasons], dtype=np.bool_)
    if is_late.any():
        text = f"the plan's max_missed_ticks is {plan.max_missed_ticks}"
        yield log.deviation("late_computer", rows[is_late], side=side.value, text=text)
    if not is_late.all():
        declared = [reason for reason in reasons if reason != LATE_COMPUTER]
        yield log.deviation("void", rows[~is_late], side=side.value, reasons=declared)
    known = plan.known_void_reasons
    foreign = [place for place, reason in enumerate(reasons) if reason not in known]
    if foreign:
        yield log.deviation(
            "void_unplanned",
            rows[foreign],
            side=side.value,
            reasons=[reasons[place] for place in foreign],
            text=f"the plan names {', '.join(plan.void_reasons) or 'none'}",
        )


def _recovered(log: AttemptTable) -> Iterator[Deviation]:
    rows = np.flatnonzero(log.column("recovered").astype(bool))
    if len(rows):
        yield log.deviation("recovered", rows)


# People -------------------------------------------------------------------------------------------


def _without_verdict(log: AttemptTable) -> Iterator[Deviation]:
    """Episodes that were played to an end of which nobody said whether they succeeded."""
    lacks = is_missing(log.column("success")) & log.ended(*_PLAYED)
    for side in sorted(set(log.sides[lacks])):
        rows = np.flatnonzero(lacks & log.on(side))
        yield log.deviation("verdicts", rows, side=side, reasons=log.details(rows))


def _second_ratings(
    log: AttemptTable, plan: TrialPlan, plan_digest: str, ratings: Sequence[Rating]
) -> Iterator[Deviation]:
    """Episodes of the second rater's sample that were played and that no second person rated."""
    sample = second_sample(plan, plan_digest)
    if not sample:
        return
    at = log.ended(*_PLAYED) & ~log.on(Side.SIM.value)
    due = np.array(
        [row for row in np.flatnonzero(at) if log.base_ids[row] in sample], dtype=np.intp
    )
    operators = dict(zip(log.ids[due], log.column("operator")[due], strict=True))
    rated = {
        rating.episode_id
        for rating in ratings
        if rating.episode_id in operators
        and not is_same_person(rating.rater, operators[rating.episode_id])
    }
    missing = np.array([log.ids[row] not in rated for row in due], dtype=np.bool_)
    if missing.any():
        share = f"{100 * plan.judging.second_share:g} % of the episodes have a second rater"
        text = f"{len(rated)} of {len(due)} that are due are there; {share} by plan"
        yield log.deviation("ratings", due[missing], text=text)


def _preflight(beside: Beside) -> Iterator[Deviation]:
    if beside.preflight_problem is not None:
        yield Deviation(kind="preflight", count=1, text=beside.preflight_problem)


def _pauses(pauses: Sequence[Pause]) -> Iterator[Deviation]:
    by_side: dict[str, list[Pause]] = {}
    for pause in sorted(pauses, key=lambda it: (it.time_ns, it.before_episode_id or "")):
        by_side.setdefault(pause.side, []).append(pause)
    for side, own in by_side.items():
        seconds = [pause.duration_s for pause in own]
        before = [pause.before_episode_id for pause in own if pause.before_episode_id]
        yield Deviation(
            kind="pauses",
            side=side,
            count=len(own),
            text=f"{_minutes(sum(seconds))} in all, the longest {_minutes(max(seconds))}",
            episodes=tuple(before[:FEW]),
            first_ns=own[0].time_ns,
            last_ns=own[-1].time_ns,
        )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100.0 else f"{seconds / 60.0:.0f} min"
