"""How well a robot was controlled, against tolerances fixed beforehand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.names import unknown_name
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import is_missing
from robo_eval.metrics.performance import mean_by_seed
from robo_eval.metrics.tables import means_by
from robo_eval.stats.bounded import bounded_mean_interval

if TYPE_CHECKING:
    import pandas as pd

_DEFAULT: Final = MetricConfig()


def quality_of_control(
    samples: pd.DataFrame | Mapping[str, object],
    tolerances: Mapping[str, float],
    *,
    weights: Mapping[str, float] | None = None,
    seeds: Sequence[object] | None = None,
    earns: Sequence[bool] | None = None,
    config: MetricConfig = _DEFAULT,
) -> Estimate:
    """Quality of control QC: 1 within the tolerances, 0 at twice the tolerances.

    An episode's credit is the weighted mean over the measures of clip(2 - x / tolerance, 0, 1);
    the result is the mean over the episodes.

    Args:
        samples: One row per episode, one column per measure, in the unit of its tolerance. An
            episode in which a measure that counts is missing has no credit and is left out.
        tolerances: Greatest value with full credit, by measure.
        weights: Of the measures; by default all alike, which is this project's choice.
        seeds: Seed of each episode, None where there is none; those of a seed are one observation.
        earns: Whether each episode has the credit of its samples, else none, whatever was measured;
            all have it if not given.
        config: Settings of the interval.

    Returns:
        The mean with the interval of a mean that cannot leave 0 to 1; no value without a sample.

    Raises:
        InputError: If a measure has no column, a tolerance is not positive, a weight negative or
            all are 0, or a sample is negative or not finite; the message names row and measure.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7; the shape of the credit is this project's
        choice.
    """
    credit = control_credit(samples, tolerances, weights=weights)
    credit = credit if earns is None else np.where(earns, credit, 0.0)
    is_known = ~np.isnan(credit)
    if not is_known.any():
        return Estimate.missing(reason="no sample was logged", unit="ratio", method="none")
    group = np.arange(len(credit))
    if seeds is not None:
        first: dict[object, int] = {}
        group = np.array(
            [row if seed is None else first.setdefault(seed, row) for row, seed in enumerate(seeds)]
        )
    credit, group = credit[is_known], np.unique(group[is_known], return_inverse=True)[1]
    sizes = np.bincount(group)
    if len(sizes) == len(credit):
        return bounded_mean_interval(credit, level=config.level)
    value = float(np.sort(credit).mean())  # a sum depends on the order of its terms
    by_seed = means_by(group, credit, len(sizes)), sizes.astype(np.float64)
    return mean_by_seed(by_seed, value, len(credit), config)


def control_credit(
    samples: pd.DataFrame | Mapping[str, object],
    tolerances: Mapping[str, float],
    *,
    weights: Mapping[str, float] | None = None,
) -> NDArray[np.float64]:
    """Credit of each episode; see `quality_of_control`.

    Returns:
        Shape (N,), NaN where a measure that counts is missing.
    """
    if not tolerances:
        raise InputError("tolerances: name at least one measure and its tolerance")
    columns = {name: _column(samples, name) for name in tolerances}
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        raise InputError(f"samples: columns have {sorted(sizes)} rows; each episode needs one")
    weight = np.array([_weight(weights, name) for name in tolerances])
    if not weight.sum() > 0.0:
        raise InputError("weights: all are 0; at least one measure must count")
    table = np.column_stack(list(columns.values()))
    limit = np.array([_tolerance(name, value) for name, value in tolerances.items()])
    # What does not count may be missing.
    credit = np.where(weight == 0.0, 0.0, np.clip(2.0 - table / limit, 0.0, 1.0))
    found: NDArray[np.float64] = credit @ weight / weight.sum()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured of control in the episodes of one task.

    Attributes:
        tolerances: Greatest value with full credit, by measure.
        samples: What was measured in each episode, by measure; None where it was not.
        seeds: Seed of each episode; see `quality_of_control`.
        earns: Whether each episode has any credit; see `quality_of_control`.
    """

    tolerances: Mapping[str, float]
    samples: Mapping[str, Sequence[float | None]]
    seeds: Sequence[object]
    earns: Sequence[bool]

    def values(self, measure: str) -> list[float]:
        """The measured values, in rising order."""
        return sorted(value for value in self.samples[measure] if value is not None)


def measured_by_task(
    episodes: pd.DataFrame, earns: Sequence[bool], config: MetricConfig
) -> dict[str, Measured]:
    """What was measured in each task that has tolerances, in order of the tasks' names.

    Args:
        episodes: Scored episodes, with the columns of `core.episode.COLUMNS`.
        earns: Whether each of them has any credit.
        config: Settings; `tolerances` says what counts, by family, `*` for all others.
    """
    families = [
        str(family or task)
        for family, task in zip(episodes["family"], episodes["task"], strict=True)
    ]
    cells = [
        cell if isinstance(cell, Mapping) else {} for cell in episodes["control_quality"].tolist()
    ]
    seeds = [None if is_missing(seed) else seed for seed in episodes["seed"].tolist()]
    found = {}
    for family in sorted(set(families)):
        tolerances = config.tolerances.get(family, config.tolerances.get("*"))
        if tolerances:
            rows = [row for row, name in enumerate(families) if name == family]
            found[family] = Measured(
                tolerances=tolerances,
                samples={name: [cells[row].get(name) for row in rows] for name in tolerances},
                seeds=[seeds[row] for row in rows],
                earns=[earns[row] for row in rows],
            )
    return found


def _column(samples: pd.DataFrame | Mapping[str, Any], name: str) -> NDArray[np.float64]:
    if name not in samples:
        raise InputError(f"samples: {unknown_name('measure', name, list(samples))}")
    try:
        values = np.array(
            [math.nan if value is None else value for value in samples[name]],
            dtype=np.float64,
        )
    except (TypeError, ValueError) as err:
        raise InputError(f"samples: column {name!r} holds something that is not a number") from err
    wrong = np.flatnonzero((values < 0.0) | np.isinf(values))
    if len(wrong):
        raise InputError(
            f"samples: row {wrong[0]}, column {name!r} is {values[wrong[0]]:g}; it must be a finite"
            " number of at least 0, or missing"
        )
    return values


def _tolerance(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"tolerances: {name!r} is {value!r}; it must be a positive number")
    return float(value)


def _weight(weights: Mapping[str, float] | None, name: str) -> float:
    if weights is None:
        return 1.0
    value = weights.get(name)
    if value is None:
        raise InputError(f"weights: {name!r} is missing; every measure with a tolerance needs one")
    if not (math.isfinite(value) and value >= 0.0):
        raise InputError(f"weights: {name!r} is {value!r}; it must be a number of at least 0")
    return float(value)
