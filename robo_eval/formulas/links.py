"""How far a capability is from perfect, on scales where every step is as hard as the last."""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.formulas import checks
from robo_eval.formulas.checks import Real

Link = Literal["surprisal", "logit"]

LINKS: Final = ("surprisal", "logit")
DELTA: Final = math.log(2.0)
"""Length of a step: halves the shortfall, or doubles the odds. This project's choice."""
_EDGE: Final = 1e-6
"""How near to 0 or 1 a capability may come before its link would run away."""


def link_value(c: Real, link: Link = "surprisal") -> float:
    """A capability on a link scale: surprisal -ln(1 - c), or logit ln(c / (1 - c)).

    Args:
        c: Capability in [0, 1], or several; taken as at most 1 - 1e-6, and for the logit as at
            least 1e-6.
        link: `"surprisal"`, this project's choice, or `"logit"`.

    Raises:
        InputError: If `c` is not in [0, 1] or the link unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.7 to 3.9.

    Example:
        >>> print(f"{link_value(0.5):.4f} {link_value(0.5, 'logit'):.4f}")
        0.6931 0.0000
    """
    capability = np.minimum(checks.real("c", c, low=0.0, high=1.0), 1.0 - _EDGE)
    if checks.one_of("link", link, LINKS) == "surprisal":
        return checks.as_number(-np.log1p(-capability))
    capability = np.maximum(capability, _EDGE)
    return checks.as_number(np.log(capability) - np.log1p(-capability))


def link_step(c: float, delta: float = DELTA, link: Link = "surprisal") -> float:
    """The capability one step further on the link scale.

    With the surprisal a step multiplies the shortfall 1 - c by exp(-delta), with the logit the odds
    by exp(delta).

    Args:
        c: Capability in [0, 1]; see `link_value` for its ends.
        delta: Length of the step; ln 2 is this project's choice. Negative for a step back.
        link: `"surprisal"`, this project's choice, or `"logit"`.

    Returns:
        A number in [0, 1].

    Raises:
        InputError: If `c` is not in [0, 1], `delta` not finite, or the link unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.7 to 3.9.

    Example:
        >>> print(f"{link_step(0.4):.3f} {link_step(0.4, link='logit'):.3f}")
        0.700 0.571
    """
    reached = link_value(c, link) + checks.number("delta", delta)
    if link == "surprisal":
        return -math.expm1(-max(reached, 0.0))
    # Of the two forms, the one whose exponential cannot overflow.
    if reached >= 0.0:
        return 1.0 / (1.0 + math.exp(-reached))
    odds = math.exp(reached)
    return odds / (1.0 + odds)


def link_power_step(c: float, rho: float) -> float:
    """The capability one step further in the power form: the shortfall 1 - c raised to `rho`.

    Args:
        c: Capability in [0, 1].
        rho: Exponent, above 0; more than 1 for a step forward.

    Returns:
        1 - (1 - c)^rho, in [0, 1].

    Raises:
        InputError: If `c` is not in [0, 1] or `rho` not above 0.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.7 to 3.9.

    Example:
        >>> print(f"{link_power_step(0.4, rho=2.0):.2f}")
        0.64
    """
    capability = checks.share("c", c)
    exponent = checks.positive("rho", rho)
    if capability == 1.0:
        return 1.0
    return -math.expm1(exponent * math.log1p(-capability))


def link_steps_between(
    c0: float, c1: float, delta: float = DELTA, link: Link = "surprisal"
) -> float:
    """How many steps lead from one capability to another; negative if the second is lower.

    Args:
        c0: Capability to start from, in [0, 1]; see `link_value` for its ends.
        c1: Capability to reach, in [0, 1].
        delta: Length of a step, not 0; ln 2 is this project's choice.
        link: `"surprisal"`, this project's choice, or `"logit"`.

    Raises:
        InputError: If a capability is not in [0, 1], `delta` is 0 or so small that the steps cannot
            be counted, or the link unknown.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 3.7 to 3.9.

    Example:
        >>> print(f"{link_steps_between(0.4, 0.925):.3f}")
        3.000
    """
    checks.share("c0", c0)
    checks.share("c1", c1)
    length = checks.number("delta", delta)
    distance = link_value(c1, link) - link_value(c0, link)
    steps = checks.finite(distance / length) if length else None
    if steps is None:
        raise InputError(f"delta is {length:g}; a step must have a length, such as ln 2")
    return steps
