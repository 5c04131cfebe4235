"""How able and how general the policies of a trial are, over its levels and difficulties."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.analysis.acc.agent import Analysis, analyse
from robo_eval.analysis.acc.curve import make_scale
from robo_eval.analysis.acc.group import Population, population
from robo_eval.analysis.acc.resample import (
    INDEPENDENT,
    AccIntervals,
    bootstrap,
    bootstrap_seeds,
)
from robo_eval.analysis.acc.shapes import attainable_maximum
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm
from robo_eval.core.plain import UNSAID, plain
from robo_eval.core.wording import counted
from robo_eval.metrics.coverage import Coverage, coverage_of
from robo_eval.metrics.frame import episodes_frame, is_missing
from robo_eval.metrics.tables import groups, main_rows, sort_key

_ALL_ALIKE: Final = "all episodes of each level ended alike; resampling them shows no spread"
_ONE_EACH: Final = "one episode at each level; it cannot be resampled"
_KEYS: Final = ("task", "profile", "level", "difficulty")

Cell: TypeAlias = tuple[Any, ...]
"""Values of those of the keys that the table of difficulties has."""

Planned: TypeAlias = Mapping[tuple[str, str], Mapping[tuple[Any, ...], int]]
"""Episodes a plan asks for, by side and policy, then by task, profile, level and difficulty."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccRow:
    """One policy on one side.

    Attributes:
        side: Where the episodes were played.
        policy: Name.
        capability: In units of item difficulty.
        spread: In units of item difficulty.
        normalised_generality: In [-1, 1].
        generality: 1 / spread; no value if the spread is 0.
        expected_difficulty: Centre of the area under the curve; no value without any success.
        flag: `"floor"`, `"ceiling"`, `"single_level"` or None.
        n_items: Items with a scored episode.
        n_missing_items: Items without one of those the plan asks for, or of those of the trial
            where there is no plan; they are left out of the curve.
        n_episodes: Scored episodes the curve rests on; those of level 0 that differ in the
            difficulty only, and so in nothing, count once.
        unreliable: Why the intervals are not to be trusted; None if they may be.
        levels: Difficulties of the curve, shape (L,).
        curve: Mean quality at each, shape (L,); NaN where nothing was scored.
        coverage: Scored episodes of items out of those there should be.
        is_partial: Whether another row has items that this one lacks, so that the two must not
            be compared.
    """

    side: str
    policy: str
    capability: Estimate
    spread: Estimate
    normalised_generality: Estimate
    generality: Estimate
    expected_difficulty: Estimate
    flag: str | None
    n_items: int
    n_missing_items: int
    n_episodes: int
    unreliable: str | None
    levels: NDArray[np.float64] = field(metadata=UNSAID)
    curve: NDArray[np.float64]
    coverage: Coverage | None = None
    is_partial: bool = False

    SAID: ClassVar = ("is_covered",)

    @property
    def points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Difficulties at which something was scored, and the mean quality at each."""
        known = ~np.isnan(self.curve)
        return self.levels[known], self.curve[known]

    @property
    def is_covered(self) -> bool:
        """Whether enough of the episodes are scored to compare the row with others."""
        return self.coverage is None or self.coverage.is_sufficient

    @property
    def n_expected_items(self) -> int:
        """Items there should be a scored episode of."""
        return self.n_items + self.n_missing_items

    def as_dict(self) -> dict[str, object]:
        """The row as JSON would have it."""
        difficulty, response = self.points
        return {**plain(self), "curve": plain({"difficulty": difficulty, "response": response})}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccTable:
    """Capability and generality of every policy of a trial, on one axis.

    Attributes:
        rows: One for each side and policy, in the order of their names; empty if no condition of
            the trial has a difficulty.
        h0: Lower end of the axis, in units of item difficulty.
        q: Upper end of the axis.
        left_fill: Response assumed below the lowest difficulty of a curve.
        right_fill: Response assumed above the highest.
        n_items: Items of the trial that have a difficulty.
        n_levels: Different difficulties among them.
        attainable_maximum: Normalised generality of the best falling step on this axis.
        population: Correlations over the policies, not shown where they would mislead.
        left_out: Conditions, tasks and policies of the trial that are not in it, each with the
            reason, as text.
        reason: Why there is no row.
        configuration: Resamples, coverage and seed of the intervals.
        warnings: What makes all numbers doubtful, as whole sentences.
        panel_members: Policies that are left out because they are members of the panel, with the
            name they have there.
        uncovered: Policies with too few scored episodes to be compared, each with its counts, as
            text.
    """

    rows: tuple[AccRow, ...]
    h0: float | None
    q: float | None
    left_fill: float
    right_fill: float
    n_items: int
    n_levels: int
    attainable_maximum: float | None
    population: Mapping[str, Any]
    left_out: tuple[str, ...]
    reason: str | None
    configuration: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    panel_members: Mapping[str, str] = field(default_factory=dict)
    uncovered: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The table as JSON would have it: no NaN, no infinity."""
        return {**plain(self), "rows": [row.as_dict() for row in self.rows]}


def acc_for_trial(
    frame: pd.DataFrame,
    item_difficulty: pd.DataFrame,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> AccTable:
    """Agent characteristic curve of every policy; an item is a level at a difficulty.

    The response to an item is the mean quality of its scored episodes. The axis runs over the
    items the trial played, the same for all its policies; controls are not items. Level 0 has no
    novelty whose difficulty could differ: where the panel found its items alike they are resampled
    as one, and episodes of one seed in them are one observation. Where items share their seeds,
    seeds are resampled, each with its episodes in all items.

    Args:
        frame: Episodes with the columns of `core.episode.COLUMNS`.
        item_difficulty: One row an item: `level`, `difficulty` (easy, medium or hard) and
            `item_difficulty`, and `task` and `profile` if the items differ in them. It comes
            from a reference panel, never from the policies under test.
        resamples: Bootstrap resamples.
        level: Coverage the intervals aim at.
        seed: Seed of the bootstrap.

    Raises:
        InputError: If either table is not as described.
    """
    return acc_of_table(
        episodes_frame(frame), item_difficulty, resamples=resamples, level=level, seed=seed
    )


def acc_of_table(
    table: pd.DataFrame,
    item_difficulty: pd.DataFrame,
    *,
    resamples: int,
    level: float,
    seed: int,
    planned: Planned | None = None,
    min_coverage: float = 0.95,
) -> AccTable:
    """`acc_for_trial` of a table that was checked already.

    Args:
        table: Episodes.
        item_difficulty: See `acc_for_trial`, like the three arguments that follow.
        resamples: See `acc_for_trial`.
        level: See `acc_for_trial`.
        seed: See `acc_for_trial`.
        planned: What the plan asks for; None without a plan.
        min_coverage: Share of the episodes that must be scored for a policy to be compared.
    """
    episodes = table[table["arm"] == Arm.MAIN.value]
    keys, panel = _panel(item_difficulty)
    configuration = {"resamples": resamples, "level": level, "seed": seed, "method": INDEPENDENT}
    cells = [tuple(cell) for cell in episodes[keys].itertuples(index=False, name=None)]
    asked = _asked(planned or {}, keys)
    item_of = _items([*cells, *(cell for own in asked.values() for cell in own)], keys, panel)
    played_cells = {cell for cell in cells if cell in item_of}
    items = sorted({item_of[cell] for cell in played_cells}, key=lambda item: (panel[item], item))
    counts = _counts(table, cells, item_of, asked, min_coverage)
    names = _names(counts)
    unscored = {name: cover for name, cover in counts.items() if not cover.scored}
    left_out = (
        *sorted(_cell_text(cell) for cell in set(cells) - item_of.keys()),
        *(f"{names[name]}: {_unscored_text(cover)}" for name, cover in unscored.items()),
    )
    uncovered = {name: f"{names[name]}: {cover.text}" for name, cover in unscored.items()}
    if not items:
        reason = "no scored episode of an item with a difficulty" if item_of else None
        return _empty(left_out, configuration, tuple(uncovered.values()), reason)
    difficulty = np.array([panel[item] for item in items])
    place_of = {item: place for place, item in enumerate(items)}
    index_of = {cell: place_of[item_of[cell]] for cell in played_cells}
    played = _outcomes(episodes, [index_of.get(cell) for cell in cells], len(items))
    scored = {name: _scored_items(agent, items) for name, agent in played.items()}
    anyone_s = set[Cell]().union(*scored.values())
    rows = []
    responses = []
    for name in sorted(played):
        agent = played[name]
        response = np.array([_mean(row) for row in agent.episodes])
        found = analyse(response, difficulty, nan="drop", h0=difficulty[0], q=difficulty[-1])
        intervals = agent.intervals(difficulty, resamples=resamples, level=level, seed=seed)
        expected = played_cells if planned is None else set(asked.get(name, ()))
        expected = expected | {cell for cell in played_cells if item_of[cell] in scored[name]}
        n_items = sum(item_of[cell] in scored[name] for cell in expected)
        doubts = []
        if not counts[name].is_sufficient:
            doubts.append(_coverage_text(n_items, len(expected), counts[name]))
            uncovered[name] = f"{names[name]}: {doubts[0]}"
        is_partial = scored[name] != anyone_s
        if is_partial:
            lacking = counted(len(anyone_s - scored[name]), "item")
            doubts.append(f"{lacking} of other policies missing, so not to be compared with them")
        rows.append(
            _row(
                *name,
                found,
                intervals,
                agent,
                doubts,
                n_items=n_items,
                n_missing_items=len(expected) - n_items,
                coverage=counts[name],
                is_partial=is_partial,
            )
        )
        if found.flag != "single_level":  # which has no capability that could enter a mean
            responses.append(response)
    summary = population(responses, difficulty, nan="drop") if responses else None
    methods = sorted({row.capability.method for row in rows}) or [INDEPENDENT]
    has_gaps = bool(uncovered) or any(row.is_partial for row in rows)
    doubt = "policies have gaps, or scored episodes of different items" if has_gaps else None
    return AccTable(
        rows=tuple(rows),
        h0=float(difficulty[0]),
        q=float(difficulty[-1]),
        left_fill=1.0,
        right_fill=0.0,
        n_items=len(played_cells),
        n_levels=len(make_scale(difficulty).levels),
        attainable_maximum=attainable_maximum(difficulty),
        population=_population_dict(summary, doubt) if summary else {},
        left_out=left_out,
        reason=None if rows else "no scored episode of an item with a difficulty",
        configuration={**configuration, "method": ", ".join(methods)},
        uncovered=tuple(uncovered[name] for name in sorted(uncovered)),
    )


def _asked(planned: Planned, keys: Sequence[str]) -> dict[tuple[str, str], dict[Cell, int]]:
    """What the plan asks for, by the keys that the table of difficulties has."""
    asked: dict[tuple[str, str], dict[Cell, int]] = {}
    for name, conditions in planned.items():
        own = asked.setdefault(name, {})
        for condition, count in conditions.items():
            cell = tuple(part for key, part in zip(_KEYS, condition, strict=True) if key in keys)
            own[cell] = own.get(cell, 0) + count
    return asked


def _counts(
    table: pd.DataFrame,
    cells: Sequence[Cell],
    item_of: Mapping[Cell, Cell],
    asked: dict[tuple[str, str], dict[Cell, int]],
    minimum: float,
) -> dict[tuple[str, str], Coverage]:
    """Coverage of every policy that has, or should have, episodes of items; in their order.

    Conditions without a difficulty are taken out of `asked`.
    """
    for name, own in asked.items():
        asked[name] = {cell: count for cell, count in own.items() if cell in item_of}
    rows = main_rows(table)
    rows = rows.take(np.array([cell in item_of for cell in cells], dtype=np.bool_))
    tables = groups(rows, ("side", "policy"))
    expected = {name for name, own in asked.items() if own}
    return {
        name: coverage_of(
            tables.get(name, rows.take([])),
            planned=sum(asked[name].values()) if name in asked else None,
            minimum=minimum,
        )
        for name in sorted({(str(side), str(policy)) for side, policy in tables} | expected)
    }


def _names(counts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What policies are called: with their side where there are several."""
    found = list(counts)
    has_sides = len({side for side, _ in found}) > 1
    return {(side, policy): f"{policy} ({side})" if has_sides else policy for side, policy in found}


def _unscored_text(coverage: Coverage) -> str:
    what = coverage.text.partition("(")[2]
    return "no scored episode" + (f" ({what}" if what else "")


def _coverage_text(n_items: int, n_expected: int, coverage: Coverage) -> str:
    episodes = f"{coverage.scored} of {coverage.expected} episodes scored"
    return f"{n_items} of {counted(n_expected, 'item')}, {episodes}"


def _items(
    cells: Iterable[Cell], keys: Sequence[str], panel: Mapping[Cell, float]
) -> dict[Cell, Cell]:
    """The cell that stands for the item of each cell that has a difficulty."""
    level, difficulty = keys.index("level"), keys.index("difficulty")
    alike: dict[Cell, set[float]] = {}
    first: dict[Cell, Cell] = {}

    def shared(cell: Cell) -> Cell:
        return tuple(part for place, part in enumerate(cell) if place != difficulty)

    for cell, value in panel.items():
        if cell[level] == 0:
            alike.setdefault(shared(cell), set()).add(value)
            first.setdefault(shared(cell), cell)
    return {
        cell: first[shared(cell)] if len(alike.get(shared(cell), ())) == 1 else cell
        for cell in cells
        if cell in panel
    }


def _cell_text(cell: Cell) -> str:
    return f"{' '.join(str(part) for part in cell if part is not None)} (no known difficulty)"


def _panel(table: pd.DataFrame) -> tuple[list[str], dict[Cell, float]]:
    needed = ("level", "difficulty", "item_difficulty")
    missing = [column for column in needed if column not in table.columns]
    if missing:
        raise InputError(
            f"item difficulties: column {missing[0]!r} is missing; needed: {', '.join(needed)}"
        )
    keys = [key for key in _KEYS if key in table.columns]
    panel: dict[Cell, float] = {}
    for number, row in enumerate(table.to_dict(orient="records")):
        cell = tuple(int(row[key]) if key == "level" else str(row[key]) for key in keys)
        value = float(row["item_difficulty"])
        if not math.isfinite(value):
            raise InputError(
                f"item difficulties: row {number}, column 'item_difficulty' is {value}; it must be"
                " finite"
            )
        if cell in panel:
            raise InputError(
                f"item difficulties: row {number} names {' '.join(str(part) for part in cell)} a"
                " second time"
            )
        panel[cell] = value
    return keys, panel


def _empty(
    left_out: tuple[str, ...],
    configuration: Mapping[str, Any],
    uncovered: tuple[str, ...],
    reason: str | None,
) -> AccTable:
    return AccTable(
        rows=(),
        h0=None,
        q=None,
        left_fill=1.0,
        right_fill=0.0,
        n_items=0,
        n_levels=0,
        attainable_maximum=None,
        population={},
        left_out=left_out,
        reason=reason or "no condition of this trial has an item difficulty",
        configuration=configuration,
        uncovered=uncovered,
    )


@dataclass(frozen=True, slots=True)
class _Agent:
    """What one policy did on one side.

    Attributes:
        episodes: Qualities of its observations in each item, shape (I, E), NaN where an item has
            fewer than E.
        by_seed: Mean quality of each item at each seed, shape (I, S), NaN where there is none,
            and the number of observations behind it; None if items share no seed.
    """

    episodes: NDArray[np.float64]
    by_seed: tuple[NDArray[np.float64], NDArray[np.float64]] | None

    def intervals(
        self, difficulty: NDArray[np.float64], *, resamples: int, level: float, seed: int
    ) -> AccIntervals:
        """Intervals by the bootstrap that fits the seeds."""
        if self.by_seed is None:
            return bootstrap(self.episodes, difficulty, resamples=resamples, level=level, seed=seed)
        means, counts = self.by_seed
        return bootstrap_seeds(
            means, difficulty, counts=counts, resamples=resamples, level=level, seed=seed
        )


def _scored_items(agent: _Agent, items: Sequence[Cell]) -> set[Cell]:
    return {item for item, row in zip(items, agent.episodes, strict=True) if np.isfinite(row).any()}


Observation: TypeAlias = tuple[object, list[float]]
"""Seed of an observation and the qualities of its episodes, of which there is mostly one."""


def _outcomes(
    episodes: pd.DataFrame, item_of_row: Sequence[int | None], n_items: int
) -> dict[tuple[str, str], _Agent]:
    """Qualities of each agent's scored episodes by side and policy.

    Args:
        episodes: Rows, scored or not.
        item_of_row: Index of the item of each row; None without one.
        n_items: How many items there are.
    """
    found: dict[tuple[str, str], list[dict[object, Observation]]] = {}
    columns = (episodes[name] for name in ("side", "policy", "level", "seed", "quality"))
    for row, (item, side, policy, level, seed, quality) in enumerate(
        zip(item_of_row, *columns, strict=True)
    ):
        if item is None or math.isnan(quality):
            continue
        agent = found.setdefault((side, policy), [{} for _ in range(n_items)])
        known = None if is_missing(seed) else seed
        # At level 0 one seed is one episode, whatever the difficulty it was played under.
        is_repeat = level == 0 and known is not None
        agent[item].setdefault(("seed", known) if is_repeat else row, (known, []))[1].append(
            quality
        )
    return {
        name: _Agent(_padded(agent), _by_seed([list(item.values()) for item in agent]))
        for name, agent in found.items()
    }


def _padded(items: Sequence[Mapping[object, Observation]]) -> NDArray[np.float64]:
    outcomes = np.full((len(items), max(len(item) for item in items)), np.nan)
    for row, item in zip(outcomes, items, strict=True):
        # Sorted, so that sums do not depend on the order of the rows.
        row[: len(item)] = sorted(_mean(np.sort(values)) for _, values in item.values())
    return outcomes


def _by_seed(
    items: Sequence[Sequence[Observation]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Mean quality and observations of each item at each seed, where items share seeds."""
    table: dict[tuple[int, object], list[float]] = {}
    for index, item in enumerate(items):
        for seed, values in item:
            if seed is None:
                return None
            table.setdefault((index, seed), []).append(_mean(np.sort(values)))
    seeds = sorted({seed for _, seed in table}, key=lambda seed: sort_key((seed,)))
    if len(seeds) == len(table):
        return None
    place = {seed: column for column, seed in enumerate(seeds)}
    means = np.full((len(items), len(seeds)), np.nan)
    counts = np.zeros(means.shape)
    for (index, seed), values in table.items():
        means[index, place[seed]] = _mean(np.sort(values))
        counts[index, place[seed]] = len(values)
    return means, counts


def _mean(outcomes: NDArray[np.float64]) -> float:
    known = outcomes[~np.isnan(outcomes)]
    if not known.size:
        return math.nan
    # 3 x 0.1 / 3 is not 0.1: repeats of one episode must come to exactly what it was.
    return float(known[0] if (known == known[0]).all() else known.mean())


def _row(
    side: str,
    policy: str,
    found: Analysis,
    intervals: AccIntervals,
    agent: _Agent,
    doubts: Sequence[str],
    *,
    n_items: int,
    n_missing_items: int,
    coverage: Coverage,
    is_partial: bool,
) -> AccRow:
    n_episodes = int((~np.isnan(agent.episodes)).sum())
    # Next to the ends of the axis the spread is rounding noise, and one over it is not a number.
    generality = math.nan if found.flag else found.generality
    unreliable = _unreliable(doubts, intervals)
    is_one_each = intervals.n_seeds is None and n_episodes == intervals.n_levels
    alike = _ONE_EACH if is_one_each else _ALL_ALIKE

    def estimate(value: float, ends: tuple[float, float] | None, unit: str) -> Estimate:
        if not math.isfinite(value) or found.flag == "single_level":
            return Estimate.missing(
                reason=_undefined(found.flag), unit=unit, n=n_episodes, method=intervals.method
            )
        reason = unreliable
        if ends is None:
            reason = intervals.reason or "undefined in many resamples"
        elif math.isclose(*ends, rel_tol=1e-9, abs_tol=1e-12):
            ends, reason = None, alike
        return Estimate(
            value=value,
            low=ends[0] if ends else None,
            high=ends[1] if ends else None,
            level=intervals.level,
            n=n_episodes,
            method=intervals.method,
            unit=unit,
            reason=reason,
        )

    return AccRow(
        side=side,
        policy=policy,
        capability=estimate(found.capability, intervals.capability, "difficulty"),
        spread=estimate(found.spread, intervals.spread, "difficulty"),
        normalised_generality=estimate(
            found.normalised_generality, intervals.normalised_generality, "ratio"
        ),
        generality=estimate(generality, intervals.generality, "1/difficulty"),
        expected_difficulty=estimate(
            found.expected_difficulty, intervals.expected_difficulty, "difficulty"
        ),
        flag=found.flag if isinstance(found.flag, str) else None,
        n_items=n_items,
        n_missing_items=n_missing_items,
        n_episodes=n_episodes,
        unreliable=unreliable,
        levels=found.levels,
        curve=found.curve,
        coverage=coverage,
        is_partial=is_partial,
    )


def _unreliable(doubts: Sequence[str], intervals: AccIntervals) -> str | None:
    """What speaks against a row, gaps in its data first."""
    found = [*doubts]
    if intervals.unreliable:
        found.append(intervals.unreliable.removeprefix("unreliable: "))
    return f"unreliable: {'; '.join(found)}" if found else None


def _undefined(flag: object) -> str:
    """Why a number is not there."""
    if flag == "single_level":
        return "all scored items are equally difficult; a curve needs two difficulties"
    if flag is None:
        return "not defined at a spread of 0"
    return f"not defined at {flag}"


def _population_dict(summary: Population, doubt: str | None) -> dict[str, object]:
    """Numbers over policies; correlations only where they can mean something."""
    caution = doubt or summary.caution
    if caution is None and summary.n - summary.n_undefined < 4:
        defined = counted(summary.n - summary.n_undefined, "policy", "policies")
        caution = f"{defined} with a defined generality; a correlation needs 4"
    return {
        "n": summary.n,
        "n_undefined": summary.n_undefined,
        "mean_capability": summary.mean_capability,
        "mean_spread": summary.mean_spread,
        "mean_normalised_generality": summary.mean_normalised_generality,
        "capability_generality": None if caution else summary.capability_generality,
        "capability_spread": None if caution else summary.capability_spread,
        "n_abstruse": summary.n_abstruse,
        "caution": caution,
    }
