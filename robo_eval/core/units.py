"""How a number of each unit is written for people: the only place that rounds for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from robo_eval.core.estimate import Estimate

DAY_NS: Final = 86_400 * 10**9
"""Nanoseconds of a day."""


class Format(NamedTuple):
    """How numbers of a unit are written.

    Attributes:
        digits: Decimals; None for three significant digits.
        after: What stands behind the value.
        signed: Whether a plus is written.
    """

    digits: int | None
    after: str = ""
    signed: bool = False


_ELSE: Final = Format(None)
FORMATS: Final[dict[str, Format]] = {
    "ratio": Format(2),
    "difference": Format(2, signed=True),
    "incidents/100 h": Format(2),
    "h": Format(None, " h"),
    "s": Format(None, " s"),
    "p": Format(3),
    "correlation": Format(2),
    "count": Format(0),
}
"""By unit; of any other three significant digits are written."""

Writer = Callable[[float, int | None, bool], str]
"""Writes a value with so many decimals, or three significant digits, and a plus if asked for."""


def written(value: float, digits: int | None = 2, signed: bool = False) -> str:  # noqa: FBT001, FBT002
    """A value with a fixed count of decimals, or of digits, and no minus before a zero.

    Example:
        >>> written(-0.001), written(0.00628, None), written(1234.5, None), written(0.5, 1, True)
        ('0.00', '0.00628', '1,234', '+0.5')
    """
    sign = "+" if signed else ""
    if digits is None and abs(value) >= 1000.0:
        return f"{value:{sign},.0f}"
    text = f"{value:{sign}.3g}" if digits is None else f"{value:{sign}.{digits}f}"
    return text.lstrip("+-") if float(text) == 0.0 else text


def format_of(unit: str) -> Format:
    """How numbers of a unit are written."""
    return FORMATS.get(unit, _ELSE)


def text_of(estimate: Estimate, *, write: Writer = written, none: str = "-") -> str:
    """Value and interval; a bound where that is all; a dash where there is neither.

    Args:
        estimate: The number.
        write: Writes one value.
        none: Stands for a missing number.

    Example:
        >>> text_of(Estimate(value=0.5, low=0.25, high=0.75, n=9, method="wilson", unit="ratio"))
        '0.50 [0.25, 0.75]'
        >>> bound = Estimate(value=None, low=2, n=0, method="garwood", unit="h", reason="none such")
        >>> text_of(bound), text_of(Estimate.missing(reason="no exposure", unit="h"))
        ('at least 2 h', '-')
    """
    digits, after, signed = format_of(estimate.unit)
    if estimate.value is None:
        if estimate.low is None:
            return none
        return f"at least {write(estimate.low, digits, signed)}{after}"
    if estimate.unit == "p" and estimate.value < 0.0005:
        return "< 0.001"
    value = f"{write(estimate.value, digits, signed)}{after}"
    if estimate.low is None or estimate.high is None:
        return value if estimate.method in WITHOUT_INTERVAL else f"{value} [-]"
    if estimate.low == estimate.value == estimate.high and estimate.method in WITHOUT_INTERVAL:
        return value
    low, high = (write(end, digits, signed) for end in (estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


WITHOUT_INTERVAL: Final = ("counted", "mcnemar", "pairs_exact")
"""Methods of numbers that need no interval: a count is what it is, and so is a p value."""
ROS_NS: Final = 1_167_609_600_000_000_000
"""The year 2007, in which ROS began: no clock of a robot that was set shows an earlier time."""
