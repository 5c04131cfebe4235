"""What recordings will tell of constants before anything is fitted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robo_eval_calibration.fit import free_names, units_of
from robo_eval_calibration.innovations import Model, physics_of
from robo_eval_calibration.intervals import (
    Judged,
    correlations_of,
    covariance_of,
    judged,
    multiple_of,
)
from robo_eval_calibration.recordings import Array, Recording
from robo_eval_calibration.unit_fit import bounds_of
from robo_eval_calibration.whole import JOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a fit of some recordings will say.

    Attributes:
        half_widths: Of the intervals, by free constant.
        judged: Verdicts that follow, by constant.
        correlations: Of the constants in the order of `half_widths`, shape (P, P).
        singular_value: The smallest of all columns, each times the wanted half-width: how many
            standard deviations the errors change by where constants change by what is wanted, along
            what is told worst.
    """

    half_widths: Mapping[str, float]
    judged: Mapping[str, Judged]
    correlations: Array
    singular_value: float


def expected(
    model: Model,
    recordings: Sequence[Recording],
    constants: Mapping[str, float],
    noise: Mapping[str, float],
    given: Mapping[str, float] | None = None,
) -> Expected:
    """Half-widths and correlations that a fit of recordings such as these will have.

    Args:
        model: The simulator.
        recordings: Measured, or simulated with these constants; a group is one unit.
        constants: Those of the physics, as they may be: nominal, or found last.
        noise: Of sensors and hidden force, by constant.
        given: Constants that will not be looked for.
    """
    task = model.task
    names = free_names(task, recordings, given or {})
    free = [physics_of(task)[name] for name in names]
    spans = np.subtract(*bounds_of(free)[::-1])
    every, variances = [], []
    for unit in units_of(recordings):
        rows = JOBS[task.replay](
            model=model, unit=unit, start={**constants, **(given or {})}, names=names, noise=noise
        ).columns()
        every.append(rows)
        variances.append(np.diag(covariance_of(rows, spans)))
    # As the mean of so many recordings that weigh what they tell.
    sds = np.sqrt(1.0 / (1.0 / np.array(variances)).sum(axis=0))
    halves = dict(zip(names, (multiple_of(len(every)) * sds).tolist(), strict=True))
    stacked = np.vstack(every)
    scaled = stacked * np.array([one.wanted for one in free])
    least = float(np.linalg.eigvalsh(scaled.T @ scaled)[0]) if names else 0.0
    return Expected(
        half_widths=halves,
        judged=judged(free, halves, stacked),
        correlations=correlations_of(covariance_of(stacked, spans)),
        singular_value=math.sqrt(max(0.0, least)),
    )
