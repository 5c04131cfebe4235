"""What recordings will tell of constants before anything is fitted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robo_eval.core.task import Constant
from robo_eval_calibration.fit import free_names, units_of
from robo_eval_calibration.innovations import DELAY, Model, physics_of
from robo_eval_calibration.intervals import (
    Judged,
    covariance_of,
    judged,
    judged_alone,
    multiple_of,
)
from robo_eval_calibration.recordings import Array, Recording
from robo_eval_calibration.unit_fit import bounds_of, late_of
from robo_eval_calibration.whole import JOBS


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a fit of some recordings will say.

    Attributes:
        half_widths: Of the intervals, by free constant.
        judged: Verdicts that follow, by constant.
        singular_value: The smallest of all columns, each times the wanted half-width: how many
            standard deviations the errors change by where constants change by what is wanted, along
            what is told worst.
    """

    half_widths: Mapping[str, float]
    judged: Mapping[str, Judged]
    singular_value: float


def expected(
    model: Model,
    recordings: Sequence[Recording],
    constants: Mapping[str, float],
    noise: Mapping[str, float],
    given: Mapping[str, float] | None = None,
) -> Expected:
    """Half-widths and verdicts that a fit of recordings such as these will have.

    Args:
        model: The simulator.
        recordings: Measured, or simulated with these constants; a group is one unit.
        constants: Those of the physics, as they may be: nominal, or found last.
        noise: Of sensors and hidden force, by constant.
        given: Constants that will not be looked for.
    """
    task, physics, known = model.task, physics_of(model.task), given or {}
    names = free_names(task, recordings, known)
    free = [physics[name] for name in names]
    spans = np.subtract(*bounds_of(free)[::-1])
    every, variances, units = [], [], units_of(recordings)
    for unit in units:
        rows = JOBS[task.replay](
            model=model, unit=unit, start={**constants, **known}, names=names, noise=noise
        ).columns()
        every.append(rows)
        variances.append(np.diag(covariance_of(rows, spans)))
    halves = dict(zip(names, _half_widths(np.array(variances), free), strict=True))
    stacked = np.vstack(every)
    scaled = stacked * np.array([one.wanted for one in free])
    least = float(np.linalg.eigvalsh(scaled.T @ scaled)[0]) if names else 0.0
    said = judged(free, halves, stacked)
    if DELAY in physics and DELAY not in (*names, *known):  # measured efforts tell it
        late = np.array([late_of(task, unit)[1:] for unit in units])
        (halves[DELAY],) = _half_widths(late**2, [physics[DELAY]])
        said[DELAY] = judged_alone(physics[DELAY], halves[DELAY], late)
    return Expected(half_widths=halves, judged=said, singular_value=math.sqrt(max(0.0, least)))


def _half_widths(variances: Array, constants: Sequence[Constant]) -> list[float]:
    """Of means over units that weigh what they tell, from the variances of each, shape (N, P)."""
    sds = np.sqrt(1.0 / (1.0 / np.maximum(variances, 1e-24)).sum(axis=0))
    least = [one.quantum / 2.0 for one in constants]
    found: list[float] = np.maximum(multiple_of(len(variances)) * sds, least).tolist()
    return found
