"""The AAI index: ten axes in one number, and how even they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.defaults import AXES as AXES
from robo_eval.core.errors import ShapeError
from robo_eval.formulas import checks

WEIGHT_PROFILES: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        name: MappingProxyType(dict(zip(AXES, weights, strict=True)))
        for name, weights in {
            "general": (1.0, 1.0, 1.0, 1.0, 1.0, 1.5, 1.0, 0.5, 1.0, 1.0),
            "software": (1.0, 1.0, 7 / 6, 7 / 6, 7 / 6, 1.5, 1.0, 0.0, 1.0, 1.0),
            "robotics": (1.0, 1.0, 1.0, 0.75, 0.75, 1.0, 0.5, 2.0, 1.0, 1.0),
        }.items()
    }
)
"""Weight of each axis, summing to 10. `general` is the paper's, `software` follows from its text;
`robotics` is this project's choice."""
GAMMA: Final = 0.5
"""How much unevenness lowers the adjusted index. This project's choice."""

AxisValues: TypeAlias = (
    Mapping[str, float | None]
    | Mapping[str, NDArray[np.float64]]
    | Sequence[float | None]
    | NDArray[np.floating]
)
"""A value an axis by name, None where it is missing, or its draws, shape (draws,); or ten values in
the order of `AXES`, shape (10,) or (10, draws)."""
AxisWeights: TypeAlias = str | Mapping[str, float] | Sequence[float] | NDArray[np.floating]
"""A profile's name; a weight an axis by name, absent is 0; or ten in the order of `AXES`."""
Uniformity = Literal["gm_am", "min_max", "one_minus_cv"]


class Jaggedness(TypedDict):
    """The index beside what unevenness does to it; all None if a required axis is missing."""

    index: float | None
    weighted_arithmetic_mean: float | None
    uniformity: float | None
    adjusted_index: float | None


class _Counted(NamedTuple):
    """The axes that count: values, shape (k,) or (k, draws), and their shares of the weights."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Their geometric mean; of draws as many."""
        with np.errstate(divide="ignore"):
            return checks.clip(np.exp(self.weights @ np.log(self.values)))


def aai_index(
    axes: AxisValues,
    weights: AxisWeights = "general",
    *,
    require_embodiment: bool | None = None,
    floor: float = 0.0,
) -> float | None:
    """AAI index: weighted geometric mean of the axes.

    An axis with weight 0 does not count, whatever its value. Of the others each must be there,
    but for E, whose weight is then spread over the rest.

    Args:
        axes: Values in [0, 1], None or absent where one is missing.
        weights: Weights, at least 0; divided by their sum.
        require_embodiment: Whether a missing E makes the index missing. None: only with the
            weights of the robotics profile.
        floor: Smallest value an axis counts with, so that a single 0 does not hide the rest. For
            telemetry; no gate uses it.

    Returns:
        A number in [0, 1], 0 if an axis that counts is 0, or as many as there are draws; None if a
        required axis is missing.

    Raises:
        InputError: If a value is not in [0, 1], a weight negative, all weights are 0, or an axis or
            a profile unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.2. That only E may be missing is this
        project's reading.

    Example:
        >>> print(f"{aai_index({'A': 0.9, 'G': 0.4}, {'A': 1, 'G': 1}):.3f}")
        0.600
    """
    lowest = checks.share("floor", floor)
    counted = _counted(axes, weights, require_embodiment=require_embodiment)
    if counted is None:
        return None
    return counted._replace(values=np.maximum(counted.values, lowest)).mean


def jaggedness(
    axes: AxisValues,
    weights: AxisWeights = "general",
    gamma: float = GAMMA,
    *,
    form: Uniformity = "gm_am",
    require_embodiment: bool | None = None,
) -> Jaggedness:
    """The index, how even the axes are, and the index lowered where they are not.

    Args:
        axes: See `aai_index`.
        weights: See `aai_index`.
        gamma: Exponent of the uniformity in the adjusted index, at least 0; 0.5 is this project's
            choice.
        form: What uniformity is: `"gm_am"`, weighted geometric over weighted arithmetic mean, this
            project's choice; `"min_max"`, smallest over largest axis; or `"one_minus_cv"`, 1 less
            the weighted coefficient of variation, at least 0.
        require_embodiment: See `aai_index`.

    Returns:
        See `Jaggedness`; of draws arrays, shape (draws,). Uniformity is 0 if all axes are 0.

    Raises:
        InputError: As `aai_index`, or if `gamma` is negative or `form` unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, section 4.5, asks for the penalty; its form is this
        project's choice.

    Example:
        >>> found = jaggedness({"A": 0.9, "G": 0.4}, {"A": 1, "G": 1})
        >>> print(f"{found['uniformity']:.3f} {found['adjusted_index']:.3f}")
        0.923 0.576
    """
    exponent = checks.number("gamma", gamma, low=0.0)
    checks.one_of("form", form, ("gm_am", "min_max", "one_minus_cv"))
    counted = _counted(axes, weights, require_embodiment=require_embodiment)
    if counted is None:
        return {
            "index": None,
            "weighted_arithmetic_mean": None,
            "uniformity": None,
            "adjusted_index": None,
        }
    index = counted.mean
    mean = checks.clip(counted.weights @ counted.values)
    uniformity = _uniformity(counted, index, mean, form)
    return {
        "index": index,
        "weighted_arithmetic_mean": mean,
        "uniformity": uniformity,
        "adjusted_index": index * uniformity**exponent,
    }


def _uniformity(counted: _Counted, index: float, mean: float, form: Uniformity) -> float:
    values, safe = counted.values, np.where(np.equal(mean, 0.0), 1.0, mean)
    even: Any
    if form == "gm_am":
        even = index / safe
    elif form == "min_max":
        even = values.min(axis=0) / np.where(np.equal(mean, 0.0), 1.0, values.max(axis=0))
    else:
        even = 1.0 - np.sqrt(counted.weights @ (values - mean) ** 2) / safe
    return checks.clip(np.where(np.equal(mean, 0.0), 0.0, even))


def index_delta_se(
    axes: AxisValues,
    se: AxisValues | float,
    weights: AxisWeights = "general",
    *,
    require_embodiment: bool | None = None,
) -> float | None:
    """Standard error of the index, for axes measured independently (delta method).

    Args:
        axes: See `aai_index`.
        se: Standard error of each axis, or one for all, at least 0.
        weights: See `aai_index`.
        require_embodiment: See `aai_index`.

    Returns:
        None if the index is missing or 0, where it has no slope, or if the error of an axis that
        counts is missing.

    Raises:
        InputError: As `aai_index`, or if an error is negative or not finite.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.2, whose first choice is to resample all axes.

    Example:
        >>> print(f"{index_delta_se({'A': 0.9, 'G': 0.4}, 0.02, {'A': 1, 'G': 1}):.4f}")
        0.0164
    """
    if checks.is_single(se):
        errors: dict[str, float | None] = dict.fromkeys(AXES, checks.number("se", se, low=0.0))
    else:
        errors = _axis_numbers("se", se, high=None)
    counted = _counted(axes, weights, require_embodiment=require_embodiment)
    if counted is None or not counted.mean:
        return None
    known = [errors[name] for name in counted.names]
    if None in known:
        return None
    with np.errstate(over="ignore"):
        relative = counted.weights * (np.array(known, dtype=np.float64) / counted.values)
    return checks.finite(counted.mean * math.hypot(*relative))


def _counted(
    axes: AxisValues, weights: AxisWeights, *, require_embodiment: bool | None
) -> _Counted | None:
    """The axes that count, or None if one that must be there is missing."""
    values = _axis_numbers("axes", axes, high=1.0)
    weight = _axis_weights(weights)
    if require_embodiment is None:
        require_embodiment = _is_robotics(weight)
    present: dict[str, float] = {}  # or draws
    for name in AXES:
        value = values[name]
        if weight[name] == 0.0:
            continue
        if value is not None:
            present[name] = value
        elif name != "E" or require_embodiment:
            return None
    if not present:
        return None
    own = np.array([weight[name] for name in present])
    table = np.stack(np.broadcast_arrays(*present.values()))
    return _Counted(tuple(present), table, own / math.fsum(own))


def _axis_numbers(name: str, values: object, *, high: float | None) -> dict[str, float | None]:
    if isinstance(values, Mapping):
        by_axis = checks.mapping(name, values, AXES)
    else:
        is_drawn = isinstance(values, np.ndarray) and values.ndim == 2
        items = list(np.asarray(values)) if is_drawn else checks.sequence(name, values)
        if len(items) != len(AXES):
            raise ShapeError(
                f"{name} has {len(items)} values; give {len(AXES)} in the order "
                f"{' '.join(AXES)}, or a mapping for fewer"
            )
        by_axis = dict(zip(AXES, items, strict=True))
    found: dict[str, float | None] = dict.fromkeys(AXES)
    for axis, value in by_axis.items():
        if value is not None:
            found[axis] = checks.real(f"{name}[{axis!r}]", value, low=0.0, high=high)
    return found


def _axis_weights(weights: AxisWeights) -> dict[str, float]:
    if isinstance(weights, str):
        return dict(WEIGHT_PROFILES[checks.one_of("weights", weights, list(WEIGHT_PROFILES))])
    found = {axis: w or 0.0 for axis, w in _axis_numbers("weights", weights, high=None).items()}
    checks.total_weight("weights", found.values())
    return found


def _is_robotics(weights: Mapping[str, float]) -> bool:
    total = math.fsum(weights.values())
    return all(
        math.isclose(10.0 * weights[axis] / total, w, abs_tol=1e-9)
        for axis, w in WEIGHT_PROFILES["robotics"].items()
    )
