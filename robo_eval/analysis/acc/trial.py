"""How able and how general the policies of a trial are, over its levels and difficulties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval.analysis.acc.agent import Analysis, analyse
from robo_eval.analysis.acc.group import Population, population
from robo_eval.analysis.acc.resample import AccIntervals, bootstrap
from robo_eval.analysis.acc.shapes import attainable_maximum
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm
from robo_eval.metrics.frame import episodes_frame

_METHOD: Final = "stratified_bootstrap_percentile"
_KEYS: Final = ("task", "profile", "level", "difficulty")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccRow:
    """One policy on one side.

    Attributes:
        side: Where the episodes were played.
        policy: Name.
        capability: In units of item difficulty.
        spread: In units of item difficulty.
        normalised_generality: In [-1, 1].
        generality: 1 / spread; None if the spread is 0.
        expected_difficulty: Centre of the area under the curve; None without any success.
        flag: `"floor"`, `"ceiling"`, `"single_level"` or None.
        n_items: Items with a scored episode.
        n_missing_items: Items of the trial without one; they are left out of the curve.
        n_episodes: Scored episodes the curve rests on.
        unreliable: Why the intervals are not to be trusted; None if they may be.
        levels: Difficulties of the curve, shape (L,).
        curve: Mean quality at each, shape (L,); NaN where nothing was scored.
    """

    side: str
    policy: str
    capability: Estimate
    spread: Estimate
    normalised_generality: Estimate
    generality: float | None
    expected_difficulty: float | None
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
            "generality": self.generality,
            "expected_difficulty": self.expected_difficulty,
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
        left_out: Conditions of the trial without a difficulty, as text.
        reason: Why there is no row.
        configuration: Resamples, coverage and seed of the intervals.
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
    items the trial played, the same for all its policies; controls are not items.

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
    episodes = episodes_frame(frame)
    episodes = episodes[episodes["arm"] == Arm.MAIN.value]
    keys, panel = _panel(item_difficulty)
    configuration = {"resamples": resamples, "level": level, "seed": seed, "method": _METHOD}
    cells = [tuple(cell) for cell in episodes[keys].itertuples(index=False, name=None)]
    items = sorted({cell for cell in cells if cell in panel}, key=lambda cell: (panel[cell], cell))
    unknown = {cell for cell in cells if cell not in panel}
    left_out = tuple(sorted(" ".join(str(part) for part in cell) for cell in unknown))
    if not items:
        return _empty(left_out, configuration)
    difficulty = np.array([panel[item] for item in items])
    index_of = {item: index for index, item in enumerate(items)}
    episodes = episodes.assign(item=[index_of.get(cell, -1) for cell in cells])
    scored = episodes[(episodes["item"] >= 0) & episodes["quality"].notna()]
    rows = []
    responses = []
    for (side, policy), own in scored.groupby(["side", "policy"], sort=True):
        outcomes = _outcomes(own, len(items))
        response = np.array([_mean(row) for row in outcomes])
        found = analyse(response, difficulty, nan="drop", h0=difficulty[0], q=difficulty[-1])
        intervals = bootstrap(outcomes, difficulty, resamples=resamples, level=level, seed=seed)
        rows.append(_row(str(side), str(policy), found, intervals, outcomes))
        responses.append(response)
    summary = population(responses, difficulty, nan="drop") if responses else None
    return AccTable(
        rows=tuple(rows),
        h0=float(difficulty[0]),
        q=float(difficulty[-1]),
        left_fill=1.0,
        right_fill=0.0,
        n_items=len(items),
        n_levels=len(summary.agents.levels) if summary else len(set(difficulty.tolist())),
        attainable_maximum=attainable_maximum(difficulty),
        population=_population_dict(summary) if summary else {},
        left_out=left_out,
        reason=None if rows else "no scored episode of an item with a difficulty",
        configuration=configuration,
    )


def _panel(table: pd.DataFrame) -> tuple[list[str], dict[tuple[Any, ...], float]]:
    needed = ("level", "difficulty", "item_difficulty")
    missing = [column for column in needed if column not in table.columns]
    if missing:
        raise InputError(
            f"item difficulties: column {missing[0]!r} is missing; needed: {', '.join(needed)}"
        )
    keys = [key for key in _KEYS if key in table.columns]
    panel: dict[tuple[Any, ...], float] = {}
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


def _outcomes(own: pd.DataFrame, n_items: int) -> NDArray[np.float64]:
    """Qualities of one agent's scored episodes, shape (I, E), NaN where there are fewer."""
    groups = [own.loc[own["item"] == item, "quality"].to_numpy() for item in range(n_items)]
    outcomes = np.full((n_items, max(len(group) for group in groups)), np.nan)
    for row, group in zip(outcomes, groups, strict=True):
        row[: len(group)] = np.sort(group)
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
) -> AccRow:
    n_episodes = int((~np.isnan(outcomes)).sum())
    has_data = (~np.isnan(outcomes)).any(axis=1)

    def estimate(value: float, ends: tuple[float, float] | None, unit: str) -> Estimate:
        if math.isnan(value):
            return Estimate.missing(
                reason=f"not defined at {found.flag}", unit=unit, n=n_episodes, method=_METHOD
            )
        low, high = ends or (None, None)
        reason = intervals.unreliable if ends else "undefined in most resamples"
        return Estimate(
            value=value,
            low=low,
            high=high,
            level=intervals.level,
            n=n_episodes,
            method=_METHOD,
            unit=unit,
            reason=reason,
        )

    flag = found.flag
    return AccRow(
        side=side,
        policy=policy,
        capability=estimate(found.capability, intervals.capability, "difficulty"),
        spread=estimate(found.spread, intervals.spread, "difficulty"),
        normalised_generality=estimate(
            found.normalised_generality, intervals.normalised_generality, "ratio"
        ),
        generality=_finite(found.generality),
        expected_difficulty=_finite(found.expected_difficulty),
        flag=flag if isinstance(flag, str) else None,
        n_items=int(has_data.sum()),
        n_missing_items=int((~has_data).sum()),
        n_episodes=n_episodes,
        unreliable=intervals.unreliable,
        levels=found.levels,
        curve=found.curve,
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _population_dict(summary: Population) -> dict[str, object]:
    """Numbers over policies; correlations only where they can mean something."""
    caution = summary.caution
    if caution is None and summary.n - summary.n_undefined < 4:
        caution = f"{summary.n - summary.n_undefined} policies prove no correlation; 4 needed"
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
