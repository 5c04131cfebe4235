"""Whether order, starts, software, robot and people stayed what they were, or should be."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.conduct.attempts import AttemptTable, is_missing
from robo_eval.core.kinds import Side
from robo_eval.core.names import listing
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import PlannedIds
from robo_eval.core.wording import counted
from robo_eval.metrics.compatible import levels_by_name
from robo_eval.metrics.deviation import Deviation
from robo_eval.metrics.initial_state import TOLERANCE, state_difference
from robo_eval.metrics.tables import Rows, numbered
from robo_eval.metrics.tasks import VARIANT

Tolerances = Mapping[str, Mapping[str, float]]
"""By task, how far the fields of a measured start may be from the planned one."""
_NOBODY: Final = "none named"
_GIVEN: Final = ("seed", "state")
"""Starts that were set to the last digit; others were measured."""
_CONTEXT: Final = (
    "side", "task", VARIANT, "profile", "level", "difficulty", "seed", "calibration",
)  # fmt: skip


# Order --------------------------------------------------------------------------------------------


def order_deviations(
    log: AttemptTable, plan: TrialPlan, planned: Mapping[Side, PlannedIds]
) -> Iterator[Deviation]:
    """Physical episodes that were started out of the plan's order, by side.

    What is told is how few would have to move for the order to be the planned one. Only first
    attempts have a place in it: when a lost one is tried again depends on when the run ended.
    Simulated episodes depend on their seed alone, and are played in any order.
    """
    for side in plan.sides:
        if side is Side.SIM:
            continue
        rows = np.flatnonzero(log.on(side.value) & (log.numbers == 1) & ~np.isnan(log.starts))
        if len(rows) < 2:
            continue
        places = _places(plan, planned[side])
        place = np.array([places.get(name, -1) for name in log.base_ids[rows]], dtype=np.int64)
        rows, place = rows[place >= 0], place[place >= 0]
        # Among equal starts the planned order, so that a coarse clock is no deviation.
        order = np.lexsort((place, log.starts[rows]))
        moved = rows[order][out_of_order(place[order])]
        if len(moved):
            yield log.deviation("order", moved, side=side.value)


def _places(plan: TrialPlan, planned: PlannedIds) -> dict[str, int]:
    names = planned.base_ids
    if plan.stopping is not None:
        # All episodes of a seed are one look of the rule, see `core.series.next_block`.
        names = [names[at] for at in np.argsort(planned.numbers, kind="stable")]
    return {name: place for place, name in enumerate(names)}


def out_of_order(values: NDArray[np.int64]) -> NDArray[np.intp]:
    """Indices of the fewest values without which the others ascend, shape (moved,).

    Example:
        >>> out_of_order(np.array([0, 1, 5, 2, 3, 4]))
        array([2])
    """
    if (np.diff(values) > 0).all():
        return np.zeros(0, dtype=np.intp)
    ends: list[int] = []  # least last value of an ascending sequence of each length
    last: list[int] = []  # where that value is
    before: list[int] = []
    for index, value in enumerate(values.tolist()):
        length = bisect_left(ends, value)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        last[length : length + 1] = [index]
    stays = np.zeros(len(values), dtype=np.bool_)
    index = last[-1]
    while index >= 0:
        stays[index] = True
        index = before[index]
    return np.flatnonzero(~stays)


# What changed -------------------------------------------------------------------------------------


def change_deviations(log: AttemptTable, plan: TrialPlan) -> Iterator[Deviation]:
    """Software, levels, robot, operator and so on that are not the same throughout."""
    everywhere = np.ones(len(log), dtype=np.bool_)
    yield from _changes(log, "software", "software", everywhere)
    # A row made from what a dead run left does not say who ran it.
    alive = ~np.asarray(log.column("recovered").astype(bool))
    for side in plan.sides:
        own = log.on(side.value) & alive
        # Where the plan chooses calibrations, another one makes an episode it does not name.
        is_chosen = side is Side.SIM and bool(plan.calibrations)
        for name in ("robot", "operator", *(() if is_chosen else ("calibration",))):
            yield from _changes(log, name, name, own, side=side.value)
        for name in ("engine", "numerics"):
            said = own & ~is_missing(log.column(name))
            yield from _changes(log, name, name, said, side=side.value)
    policies = log.column("policy")
    for entry in plan.policies:
        own = np.asarray(policies == entry.name, dtype=np.bool_)
        yield from _changes(log, "policy", "policy_digest", own, text=entry.name)
    changed = {}
    for name, rows in levels_by_name(log.table.reset_index(drop=True)).items():
        said = rows["behaviour"].dropna()
        if len(set(said)) > 1:
            changed[name] = said.index[said != said.iloc[0]].to_numpy()
    if changed:
        newer = np.concatenate(list(changed.values()))
        yield log.deviation("level", newer, count=len(changed), text=listing(list(changed)))


def _changes(
    log: AttemptTable,
    kind: str,
    column: str,
    where: NDArray[np.bool_],
    *,
    side: str = "",
    text: str = "",
) -> Iterator[Deviation]:
    """The values of a column in the order in which they appear, where there are several."""
    rows = np.flatnonzero(where)
    cells = log.column(column)[rows]
    if not len(rows) or all_same(cells):
        return
    values = np.where(is_missing(cells), _NOBODY, cells).astype(str)
    kinds, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(kinds) < 2:
        return
    starts = np.where(np.isnan(log.starts[rows]), np.inf, log.starts[rows])
    began = np.full(len(kinds), np.inf)
    np.minimum.at(began, code, starts)
    order = sorted(range(len(kinds)), key=lambda kind: (began[kind], kinds[kind]))
    newer = rows[code != order[0]]
    told = ", then ".join(
        f"{_short(kind, str(kinds[i]))} ({counted(counts[i], 'attempt')})" for i in order
    )
    yield log.deviation(
        kind,
        newer,
        side=side,
        count=len(kinds) - 1,
        text=f"{text}: {told}" if text else told,
    )


def _short(kind: str, value: str) -> str:
    return value[:12] if kind == "policy" else value


def all_same(cells: NDArray[Any]) -> bool:
    """Whether all cells hold the same, or all nothing."""
    if cells[0] is None:
        return bool(is_missing(cells).all())
    return bool(np.all(cells == cells[0]))


# Starts -------------------------------------------------------------------------------------------


def start_deviations(
    log: AttemptTable, plan: TrialPlan, tolerances: Tolerances
) -> Iterator[Deviation]:
    """Episodes that did not start as those of another policy with the same seed did.

    Simulated episodes that were given the state of their physical half are left out: that half
    says it. Measured starts may differ by the tolerance of the robot file, if it names one.
    """
    if len(plan.policies) < 2 or not len(log):
        return
    states, sources = log.column("initial_state"), log.column("initial_state_source")
    has_state = np.asarray(states.astype(bool)) & ~np.asarray(sources == "state")
    rows = np.flatnonzero(has_state & ~is_missing(log.column("seed")))
    if not len(rows):
        return
    first = _first_of_seed(log, rows)
    policies = log.column("policy")
    is_other = policies[rows] != policies[first]
    unlike = np.asarray(states[rows] != states[first], dtype=np.bool_) & is_other
    tasks = log.column("task")
    found: dict[str, list[int]] = {}
    most: dict[str, str] = {}
    for row, reference in zip(rows[unlike].tolist(), first[unlike].tolist(), strict=True):
        allowed = {} if sources[row] in _GIVEN else tolerances.get(str(tasks[row]), {})
        clash = start_difference(states[row], states[reference], allowed)
        if clash is not None:
            found.setdefault(log.sides[row], []).append(row)
            name = f"{log.ids[row]}: {clash[0]} is {_shown(clash[1])}, in"
            text = f"{name} {log.ids[reference]} {_shown(clash[2])}"
            most[log.sides[row]] = min(text, most.get(log.sides[row], text))
    for side in sorted(found):
        own = np.array(found[side], dtype=np.intp)
        yield log.deviation("starts", own, side=side, text=f"for example {most[side]}")


def _first_of_seed(log: AttemptTable, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each of some rows, the one of its condition and seed that was started first."""
    import pandas as pd

    own = Rows.of(log.table, _CONTEXT).take(rows)
    group, firsts = numbered(own, _CONTEXT)
    code, names = pd.factorize(log.column("policy")[rows])
    rank = np.argsort(np.argsort(np.asarray(names, dtype=str)))[code]
    order = np.lexsort((log.numbers[rows], rank, log.starts[rows], group))
    place = np.searchsorted(group[order], np.arange(len(firsts)))
    return rows[order[place]][group]


def start_difference(
    one: object, other: object, tolerance: Mapping[str, float]
) -> tuple[str, Any, Any] | None:
    """Where two starts contradict each other by more than is allowed.

    Args:
        one: State as a mapping, or its JSON text.
        other: The state it is compared with.
        tolerance: By field, the greatest distance; the others are not compared then. Without any,
            states must agree up to rounding.

    Returns:
        Name of the field, and what each says of it; None if they agree.
    """
    clash = state_difference(one, other)
    if clash is None or not tolerance:
        return clash
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return clash
    for name, limit in tolerance.items():
        if name in one and name in other:
            distance = _distance(one[name], other[name])
            if distance is not None and distance > limit + TOLERANCE:
                return name, one[name], other[name]
    return None


def _distance(one: Any, other: Any) -> float | None:
    """Euclidean distance of two numbers or lists of numbers; None if they are none."""
    try:
        return math.dist(*(x if isinstance(x, Sequence) else [x] for x in (one, other)))
    except (TypeError, ValueError):
        return None


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else f"{value!r:.40}"
