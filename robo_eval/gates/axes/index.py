"""The AAI index of one policy: ten axes in one number, with how far it could be off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.defaults import LEVEL
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import UNSAID
from robo_eval.formulas.composite import AXES, WEIGHT_PROFILES, Uniformity
from robo_eval.gates.axes.anchors import TITLES, Axis
from robo_eval.gates.axes.draws import estimate_of_draws
from robo_eval.gates.axes.episodes import EPISODE_AXES
from robo_eval.gates.axes.settings import IndexSettings

Array = NDArray[np.float64]
Weights = Mapping[str, float]

BOOTSTRAP: Final = "bootstrap_of_axes"
EQUAL: Final = "equal"
WITH_EMBODIMENT: Final = "with_embodiment"
WITHOUT_EMBODIMENT: Final = "without_embodiment"
_RATIO: Final = "ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The index, with and without what unevenness does to it.

    Attributes:
        index: Weighted geometric mean of the axes.
        adjusted: The index, lowered where the axes are uneven.
        delta: The index with the interval of the delta method, which takes the axes as independent.
        mean: Mean of the resampled index; None without an interval, like the two that follow.
        median: Its median.
        quartiles: Its lower and its upper quartile.
        uniformity: How even the axes are.
        arithmetic_mean: Weighted arithmetic mean of the axes.
        weights: Share of each axis that counts, by name; they sum to 1.
        missing: Axes that are needed and have no value.
        alternatives: The index with the weights of each profile, with equal ones, and with the
            chosen ones with and without E.
        gamma: How much unevenness lowers the adjusted index.
        form: What uniformity is.
        draws: The index of each resample, shape (resamples,); None without an interval.
    """

    index: Estimate
    adjusted: Estimate
    delta: Estimate
    mean: float | None = None
    median: float | None = None
    quartiles: tuple[float, float] | None = None
    uniformity: Estimate
    arithmetic_mean: Estimate
    weights: Weights
    missing: tuple[str, ...] = ()
    alternatives: Mapping[str, Estimate] = field(default_factory=dict)
    gamma: float
    form: str = field(metadata={"json": "uniformity_form"})
    draws: Array | None = field(default=None, metadata=UNSAID)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Values of the axes by name, and how they are resampled together.

    Attributes:
        values: None where an axis is missing.
        errors: Standard deviation of the draws; None without draws.
        draws: Shape (resamples,) each; an axis without draws is not in it.
        level: Coverage of intervals.
    """

    values: Mapping[str, float | None]
    errors: Mapping[str, float | None]
    draws: Mapping[str, Array]
    level: float


def index_of(
    axes: Sequence[Axis], settings: IndexSettings, *, level: float = LEVEL, seed: int = 0
) -> Index:
    """The index of ten axes by resampling all of them together.

    Each resample takes one draw of every axis: the same one of the axes that were measured on the
    same episodes, and any of the others. An axis whose doubt is not known leaves the index without
    an interval, as taking it as exact would make the index look too certain.

    Args:
        axes: The axes, each once; one that is not among them is missing.
        settings: Weights, penalty and resamples.
        level: Coverage of the intervals.
        seed: Seed of how draws are put together.

    Returns:
        The index; no value if a required axis is missing, which the reason names.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.2 and 4.5.
    """
    found = _Axes(
        values=dict.fromkeys(AXES) | {axis.name: axis.value.value for axis in axes},
        errors={axis.name: _spread(axis) for axis in axes},
        draws=_together(axes, settings.resamples, seed),
        level=level,
    )
    weights = _weights(settings.weights)
    counted, missing = _counted(found.values, weights)
    alternatives = {
        name: _index(found, own, require_embodiment=name == WITH_EMBODIMENT or None)
        for name, own in _alternatives(weights).items()
    }
    shown: dict[str, Any] = {
        "missing": missing, "alternatives": alternatives, "gamma": settings.gamma,
        "form": settings.uniformity,
    }  # fmt: skip
    if missing:
        none = _missing(missing)
        return Index(
            index=none, adjusted=none, delta=none, uniformity=none, arithmetic_mean=none,
            weights={}, **shown,
        )  # fmt: skip
    point = formulas.jaggedness(found.values, weights, settings.gamma, form=settings.uniformity)
    drawn = _drawn(found, counted, settings.gamma, settings.uniformity)
    indices = None if drawn is None else drawn["index"]
    silent = [name for name in counted if name not in found.draws]

    def estimate(key: str) -> Estimate:
        draws = None if drawn is None else drawn[key]
        return _estimate(point[key], draws, len(counted), silent, level)  # type: ignore[literal-required]

    quartiles = None if indices is None else np.quantile(indices, [0.25, 0.75])
    return Index(
        index=estimate("index"),
        adjusted=estimate("adjusted_index"),
        delta=_delta(found, weights, point["index"], len(counted)),
        mean=None if indices is None else float(indices.mean()),
        median=None if indices is None else float(np.median(indices)),
        quartiles=None if quartiles is None else (float(quartiles[0]), float(quartiles[1])),
        uniformity=estimate("uniformity"),
        arithmetic_mean=estimate("weighted_arithmetic_mean"),
        weights=counted,
        draws=indices,
        **shown,
    )


# Which axes count --------------------------------------------------------------------------------


def _weights(given: str | Mapping[str, float]) -> Weights:
    return WEIGHT_PROFILES[given] if isinstance(given, str) else given


def _alternatives(weights: Weights) -> dict[str, Weights]:
    """Weights the index is shown with beside the chosen ones."""
    total = sum(weights.values())
    general = WEIGHT_PROFILES["general"]
    usual = total * general["E"] / sum(general.values())
    found: dict[str, Weights] = {
        **WEIGHT_PROFILES,
        EQUAL: dict.fromkeys(AXES, 1.0),
        # Where E does not count at all, it is shown with the weight of the general profile.
        WITH_EMBODIMENT: {**weights, "E": weights.get("E", 0.0) or usual},
    }
    without = {**weights, "E": 0.0}
    return found | ({WITHOUT_EMBODIMENT: without} if any(without.values()) else {})


def _counted(
    values: Mapping[str, float | None],
    weights: Weights,
    *,
    require_embodiment: bool | None = None,
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Share of each axis that counts; and the axes that are needed and missing."""
    ones: dict[str, float | None] = {**dict.fromkeys(AXES, 1.0), "E": None}
    # Whether E may be missing is for the formula to say.
    needs_body = formulas.aai_index(ones, weights, require_embodiment=require_embodiment) is None
    used = [name for name in AXES if weights.get(name, 0.0) > 0.0]
    missing = tuple(name for name in used if values[name] is None and (name != "E" or needs_body))
    present = {name: weights[name] for name in used if values[name] is not None}
    total = sum(present.values())
    return {name: weight / total for name, weight in present.items()}, missing


def _missing(names: Sequence[str]) -> Estimate:
    text = ", ".join(f"{name} ({TITLES[name]})" for name in names)
    return Estimate.missing(reason=f"no value of {text}", unit=_RATIO, method=BOOTSTRAP)


# Resampling --------------------------------------------------------------------------------------


def _spread(axis: Axis) -> float | None:
    return None if axis.draws is None or len(axis.draws) < 2 else float(axis.draws.std(ddof=1))


def _together(axes: Sequence[Axis], resamples: int, seed: int) -> dict[str, Array]:
    """Draws of each axis in one order for those of the same episodes, and in any for the others.

    Put in order at random, draws that happen to be made of the same numbers hang together no more.
    """
    rng = np.random.default_rng([seed, len(AXES)])
    found = {axis.name: axis.draws for axis in axes if axis.draws is not None}
    orders: dict[tuple[str, int], NDArray[np.intp]] = {}
    drawn: dict[str, Array] = {}
    for name in AXES:
        if name not in found:
            continue
        key = ("episodes" if name in EPISODE_AXES else name, len(found[name]))
        if key not in orders:
            orders[key] = _order(key[1], resamples, rng)
        drawn[name] = found[name][orders[key]]
    return drawn


def _order(size: int, resamples: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Places of so many draws, each as often as any other but for one."""
    rounds = [rng.permutation(size) for _ in range(-(-resamples // size))]
    return np.concatenate(rounds)[:resamples]


def _drawn(
    found: _Axes, counted: Weights, gamma: float, form: Uniformity
) -> dict[str, Array] | None:
    """`formulas.jaggedness` of every resample; None if an axis has no draws."""
    if any(name not in found.draws for name in counted):
        return None
    drawn = formulas.jaggedness(
        {name: found.draws[name] for name in counted}, counted, gamma,
        form=form, require_embodiment=False,
    )  # fmt: skip
    return {name: np.asarray(one) for name, one in drawn.items()}


def _index(found: _Axes, weights: Weights, *, require_embodiment: bool | None) -> Estimate:
    """The index with other weights."""
    counted, missing = _counted(found.values, weights, require_embodiment=require_embodiment)
    if missing:
        return _missing(missing)
    value = formulas.aai_index(found.values, weights, require_embodiment=require_embodiment)
    drawn = _drawn(found, counted, 0.0, "gm_am")
    silent = [name for name in counted if name not in found.draws]
    draws = None if drawn is None else drawn["index"]
    return _estimate(value, draws, len(counted), silent, found.level)


def _estimate(
    value: float | None, draws: Array | None, n: int, silent: Sequence[str], level: float
) -> Estimate:
    if value is None:
        return Estimate.missing(reason="no axis counts", unit=_RATIO, method=BOOTSTRAP)
    if draws is None:
        return Estimate(
            value=value, n=n, method="none", unit=_RATIO,
            reason=f"no interval of {', '.join(silent)}",
        )  # fmt: skip
    return estimate_of_draws(value, draws, n=n, level=level, method=BOOTSTRAP)


def _delta(found: _Axes, weights: Weights, value: float | None, n: int) -> Estimate:
    errors = {name: error for name, error in found.errors.items() if error is not None}
    se = formulas.index_delta_se(found.values, errors, weights)
    if value is None or se is None:
        why = "an axis is 0, where the index has no slope" if value == 0.0 else "an axis has no se"
        if value is None:
            return Estimate.missing(reason="no axis counts", unit=_RATIO, method="delta")
        return Estimate(value=value, n=n, method="none", unit=_RATIO, reason=why)
    reach = NormalDist().inv_cdf(0.5 + found.level / 2.0) * se
    return Estimate(
        value=value, low=max(0.0, value - reach), high=min(1.0, value + reach),
        level=found.level, n=n, method="delta", unit=_RATIO,
    )  # fmt: skip
