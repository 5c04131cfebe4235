"""How able and how general the policies of a trial are, over its levels and difficulties."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.analysis.acc.agent import Analysis, analyse
from robo_eval.analysis.acc.curve import make_scale
from robo_eval.analysis.acc.group import Population, population
from robo_eval.analysis.acc.resample import AccIntervals, bootstrap
from robo_eval.analysis.acc.shapes import attainable_maximum
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm
from robo_eval.metrics.frame import episodes_frame, is_missing
from robo_eval.metrics.words import counted

_METHOD: Final = "stratified_bootstrap_percentile"
_ALL_ALIKE: Final = "all episodes of each level ended alike; resampling them shows no spread"
_KEYS: Final = ("task", "profile", "level", "difficulty")

Cell: TypeAlias = tuple[Any, ...]
"""Values of those of the keys that the table of difficulties has."""


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
        n_missing_items: Items of the trial without one; they are left out of the curve.
        n_episodes: Scored episodes the curve rests on; those of level 0 that differ in the
            difficulty only, and so in nothing, count once.
        unreliable: Why the intervals are not to be trusted; None if they may be.
        levels: Difficulties of the curve, shape (L,).
        curve: Mean quality at each, shape (L,); NaN where nothing was scored.
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
    levels: NDArray[np.float64]
    curve: NDArray[np.float64]

    def as_dict(self) -> dict[str, object]:
        """The row as JSON would have it."""
        known = ~np.isnan(self.curve)
        return {
            "side": self.side,
            "policy": self.policy,
            "capability": self.capability.as_dict(),
            "spread": self.spread.as_dict(),
            "normalised_generality": self.normalised_generality.as_dict(),
            "generality": self.generality.as_dict(),
            "expected_difficulty": self.expected_difficulty.as_dict(),
            "flag": self.flag,
            "n_items": self.n_items,
            "n_missing_items": self.n_missing_items,
            "n_episodes": self.n_episodes,
            "unreliable": self.unreliable,
            "curve": {
                "difficulty": self.levels[known].tolist(),
                "response": self.curve[known].tolist(),
            },
        }


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

    def as_dict(self) -> dict[str, object]:
        """The table as JSON would have it: no NaN, no infinity."""
        return {
            "rows": [row.as_dict() for row in self.rows],
            "h0": self.h0,
            "q": self.q,
            "left_fill": self.left_fill,
            "right_fill": self.right_fill,
            "n_items": self.n_items,
            "n_levels": self.n_levels,
            "attainable_maximum": self.attainable_maximum,
            "population": dict(self.population),
            "left_out": list(self.left_out),
            "reason": self.reason,
            "configuration": dict(self.configuration),
            "warnings": list(self.warnings),
            "panel_members": dict(self.panel_members),
        }


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
    as one, and episodes of one seed in them are one observation.

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
) -> AccTable:
    """`acc_for_trial` of a table that was checked already."""
    episodes = table[table["arm"] == Arm.MAIN.value]
    keys, panel = _panel(item_difficulty)
    configuration = {"resamples": resamples, "level": level, "seed": seed, "method": _METHOD}
    cells = [tuple(cell) for cell in episodes[keys].itertuples(index=False, name=None)]
    item_of = _items(cells, keys, panel)
    items = sorted(set(item_of.values()), key=lambda item: (panel[item], item))
    left_out = tuple(sorted(_cell_text(cell) for cell in set(cells) - item_of.keys()))
    if not items:
        return _empty(left_out, configuration)
    difficulty = np.array([panel[item] for item in items])
    n_cells = np.array([sum(item_of[cell] == item for cell in item_of) for item in items])
    place_of = {item: place for place, item in enumerate(items)}
    index_of = {cell: place_of[item] for cell, item in item_of.items()}
    played = _outcomes(episodes, [index_of.get(cell) for cell in cells], len(items))
    rows = []
    responses = []
    for side, policy in sorted(played):
        outcomes = played[side, policy]
        response = np.array([_mean(row) for row in outcomes])
        found = analyse(response, difficulty, nan="drop", h0=difficulty[0], q=difficulty[-1])
        intervals = bootstrap(outcomes, difficulty, resamples=resamples, level=level, seed=seed)
        rows.append(_row(side, policy, found, intervals, outcomes, n_cells))
        if found.flag != "single_level":  # which has no capability that could enter a mean
            responses.append(response)
    summary = population(responses, difficulty, nan="drop") if responses else None
    return AccTable(
        rows=tuple(rows),
        h0=float(difficulty[0]),
        q=float(difficulty[-1]),
        left_fill=1.0,
        right_fill=0.0,
        n_items=int(n_cells.sum()),
        n_levels=len(make_scale(difficulty).levels),
        attainable_maximum=attainable_maximum(difficulty),
        population=_population_dict(summary) if summary else {},
        left_out=left_out,
        reason=None if rows else "no scored episode of an item with a difficulty",
        configuration=configuration,
    )


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


def _empty(left_out: tuple[str, ...], configuration: Mapping[str, Any]) -> AccTable:
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
        reason="no condition of this trial has an item difficulty",
        configuration=configuration,
    )


def _outcomes(
    episodes: pd.DataFrame, item_of_row: Sequence[int | None], n_items: int
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Qualities of each agent's scored episodes by side and policy.

    Args:
        episodes: Rows, scored or not.
        item_of_row: Index of the item of each row; None without one.
        n_items: How many items there are.

    Returns:
        Arrays of shape (I, E), NaN where an item has fewer than E episodes.
    """
    found: dict[tuple[str, str], list[dict[object, list[float]]]] = {}
    columns = (episodes[name] for name in ("side", "policy", "level", "seed", "quality"))
    for row, (item, side, policy, level, seed, quality) in enumerate(
        zip(item_of_row, *columns, strict=True)
    ):
        if item is None or math.isnan(quality):
            continue
        agent = found.setdefault((side, policy), [{} for _ in range(n_items)])
        # At level 0 one seed is one episode, whatever the difficulty it was played under.
        is_repeat = level == 0 and not is_missing(seed)
        agent[item].setdefault(("seed", seed) if is_repeat else row, []).append(quality)
    return {name: _padded(agent) for name, agent in found.items()}


def _padded(items: Sequence[Mapping[object, Sequence[float]]]) -> NDArray[np.float64]:
    outcomes = np.full((len(items), max(len(item) for item in items)), np.nan)
    for row, item in zip(outcomes, items, strict=True):
        # Sorted, so that sums do not depend on the order of the rows.
        row[: len(item)] = sorted(_mean(np.sort(values)) for values in item.values())
    return outcomes


def _mean(outcomes: NDArray[np.float64]) -> float:
    known = outcomes[~np.isnan(outcomes)]
    return float(known.mean()) if known.size else math.nan


def _row(
    side: str,
    policy: str,
    found: Analysis,
    intervals: AccIntervals,
    outcomes: NDArray[np.float64],
    n_cells: NDArray[np.int64],
) -> AccRow:
    n_episodes = int((~np.isnan(outcomes)).sum())
    has_data = (~np.isnan(outcomes)).any(axis=1)
    # Next to the ends of the axis the spread is rounding noise, and one over it is no number.
    generality = math.nan if found.flag else found.generality

    def estimate(value: float, ends: tuple[float, float] | None, unit: str) -> Estimate:
        if not math.isfinite(value) or found.flag == "single_level":
            return Estimate.missing(
                reason=_undefined(found.flag), unit=unit, n=n_episodes, method=_METHOD
            )
        reason = intervals.unreliable
        if ends is None:
            reason = "undefined in many resamples"
        elif math.isclose(*ends, rel_tol=1e-9, abs_tol=1e-12):
            ends, reason = None, _ALL_ALIKE
        return Estimate(
            value=value,
            low=ends[0] if ends else None,
            high=ends[1] if ends else None,
            level=intervals.level,
            n=n_episodes,
            method=_METHOD,
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
        n_items=int(n_cells[has_data].sum()),
        n_missing_items=int(n_cells[~has_data].sum()),
        n_episodes=n_episodes,
        unreliable=intervals.unreliable,
        levels=found.levels,
        curve=found.curve,
    )


def _undefined(flag: object) -> str:
    """Why a number is not there."""
    if flag == "single_level":
        return "all scored items are equally difficult; a curve needs two difficulties"
    if flag is None:
        return "not defined at a spread of 0"
    return f"not defined at {flag}"


def _population_dict(summary: Population) -> dict[str, object]:
    """Numbers over policies; correlations only where they can mean something."""
    caution = summary.caution
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
