"""How far along and how fast an agent is, and by when it would arrive; changes no level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NotRequired, TypedDict

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Real
from robo_eval.formulas.links import Link, link_value

ANCHORS: Final = (0.01, 0.99)
"""Capabilities at which the position is 0 and 1. This project's choice."""
SLOPE_SCALE: Final = 0.02
"""Slope on the link scale at which the velocity is one half. This project's choice."""
CURVATURE_SCALE: Final = 0.001
"""Curvature on the link scale that counts as one unit of acceleration. This project's choice."""
SHARES: Final = (0.7, 0.3)
"""Weights of position and velocity. This project's choice."""
SHARES_WITH_ACCELERATION: Final = (0.6, 0.25, 0.15)
"""Weights of position, velocity and acceleration. This project's choice."""
_STEEPNESS: Final = 4.0


class ContinuousScore(TypedDict):
    """Progress as one number; `acceleration` only if a curvature was given."""

    position: float
    velocity: float | None
    score: float | None
    acceleration: NotRequired[float]


class EscapeBounds(TypedDict):
    """How much it takes at most; None where nothing bounds it."""

    resource_bound: float | None
    time_bound: float | None


def continuous_score(
    c: float,
    link_slope: Real | None,
    link: Link = "surprisal",
    *,
    link_curvature: Real | None = None,
    signed: bool = True,
    anchors: tuple[float, float] = ANCHORS,
    slope_scale: float = SLOPE_SCALE,
    curvature_scale: float = CURVATURE_SCALE,
    shares: Sequence[float] | None = None,
) -> ContinuousScore:
    """Progress between levels: position, velocity, and acceleration if it is known.

    Args:
        c: Capability in [0, 1].
        link_slope: Slope of the capability on the link scale, per unit of resource, or draws of it;
            None if it is not known.
        link: `"surprisal"`, this project's choice, or `"logit"`.
        link_curvature: Curvature on the link scale, or draws of it; None to leave acceleration out.
        signed: Acceleration in [-1, 1]; otherwise in [0, 1], with 1/2 for none.
        anchors: Capabilities at which the position is 0 and 1; like all numbers that follow, this
            project's choice.
        slope_scale: Slope at which the velocity is one half.
        curvature_scale: Curvature that counts as one unit of acceleration.
        shares: Weights of position, velocity and, with a curvature, acceleration; none for
            `SHARES` or `SHARES_WITH_ACCELERATION`.

    Returns:
        Position and velocity in [0, 1], of draws arrays. Without a slope there is neither velocity
        nor score.

    Raises:
        InputError: If a number is out of range, the anchors are not rising, or the link is unknown.
        ShapeError: If there are not as many shares as parts.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.11 to 3.13.

    Example:
        >>> found = continuous_score(0.5, link_slope=0.03)
        >>> print(f"{found['position']:.4f} {found['velocity']:.4f} {found['score']:.4f}")
        0.1487 0.8808 0.3683
    """
    low, high = (link_value(checks.share("anchors", end), link) for end in anchors)
    if high <= low:
        raise InputError(f"anchors are {anchors}; the second must be above the first")
    position = checks.clip((link_value(c, link) - low) / (high - low))
    pace = checks.positive("slope_scale", slope_scale)
    unit = checks.positive("curvature_scale", curvature_scale)
    usual = SHARES if link_curvature is None else SHARES_WITH_ACCELERATION
    share = checks.weights_of("shares", usual if shares is None else shares, len(usual))
    velocity = None
    if link_slope is not None:
        velocity = _logistic(_STEEPNESS * (checks.real("link_slope", link_slope) / pace - 1.0))
    found: ContinuousScore = {"position": position, "velocity": velocity, "score": None}
    parts = [position]
    if link_curvature is not None:
        z = checks.as_number(np.tanh(checks.real("link_curvature", link_curvature) / unit))
        found["acceleration"] = z if signed else (1.0 + z) / 2.0
        parts.append(found["acceleration"])
    if velocity is not None:
        parts.insert(1, velocity)
        found["score"] = sum((w * x for w, x in zip(share.tolist(), parts, strict=True)), 0.0)
    return found


def _logistic(x: Real) -> float:
    # Of the two forms, the one whose exponential cannot overflow.
    small = np.exp(-np.abs(x))
    return checks.clip(np.where(np.greater_equal(x, 0.0), 1.0, small) / (1.0 + small))


def escape_velocity(
    c0: float,
    c_target: float,
    v: float,
    r_min: float | None = None,
    link: Link = "surprisal",
) -> EscapeBounds:
    """What it takes at most to reach a capability if the slope never falls below `v`.

    Args:
        c0: Capability now, in [0, 1].
        c_target: Capability to reach, in [0, 1]; the link takes it as at most 1 - 1e-6.
        v: Lower bound of the slope on the link scale, per unit of resource.
        r_min: Lower bound of the spending, resources per unit of time; None if there is none.
        link: `"surprisal"`, this project's choice, or `"logit"`.

    Returns:
        Resources, and time in the unit of `r_min`; both 0 if the target is reached already. None
        without a positive slope, the time also without spending.

    Raises:
        InputError: If a capability is not in [0, 1], a number not finite, `r_min` negative, or the
            link unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.11 to 3.13.

    Example:
        >>> found = escape_velocity(0.6, 0.9, v=0.05, r_min=2.0)
        >>> print(f"{found['resource_bound']:.2f} {found['time_bound']:.2f}")
        27.73 13.86
    """
    checks.share("c0", c0)
    checks.share("c_target", c_target)
    distance = link_value(c_target, link) - link_value(c0, link)
    slope = checks.number("v", v)
    rate = 0.0 if r_min is None else checks.number("r_min", r_min, low=0.0)
    if distance <= 0.0:
        return {"resource_bound": 0.0, "time_bound": 0.0}
    resources = checks.finite(distance / slope) if slope > 0.0 else None
    if resources is None or rate == 0.0:
        return {"resource_bound": resources, "time_bound": None}
    return {"resource_bound": resources, "time_bound": checks.finite(resources / rate)}


def rate_escape(rho0: float, eta: float, p: float) -> float | None:
    """Resources that lead from rate `rho0` to 1 at most, if it grows by at least eta (1 - rho)^p.

    Args:
        rho0: Rate now, in [0, 1].
        eta: Growth factor, per unit of resource.
        p: Exponent, strictly between 0 and 1: from 1 on the rest is never used up.

    Returns:
        (1 - rho0)^(1 - p) / (eta (1 - p)), 0 if the rate is 1 already; None if `eta` is not above
        0, as then nothing bounds it.

    Raises:
        InputError: If `rho0` is not in [0, 1], `p` not between 0 and 1, or a number not finite.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.11 to 3.13.

    Example:
        >>> print(f"{rate_escape(0.2, eta=0.1, p=0.5):.3f}")
        17.889
    """
    rest = 1.0 - checks.share("rho0", rho0)
    growth = checks.number("eta", eta)
    exponent = checks.number("p", p)
    if not 0.0 < exponent < 1.0:
        raise InputError(f"p is {exponent:g}; it must be between 0 and 1")
    if rest == 0.0:
        return 0.0
    if growth <= 0.0:
        return None
    return checks.finite(rest ** (1.0 - exponent) / (1.0 - exponent) / growth)
