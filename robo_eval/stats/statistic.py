"""A number that may be undefined, with its interval and what to know about both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A statistic and its interval.

    `resampling.Interval` is the same for a mean, which always has a value.

    Attributes:
        value: The statistic; None if it is undefined for these data.
        low: Lower end; None if there is no interval.
        high: Upper end; None if there is no interval.
        n: Observations it rests on (pairs, policies, episodes, ...).
        method: How the interval was made; `"none"` if there is none.
        reason: Why there is no value or no interval.
        note: What to know when reading an interval that there is.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str | None = None
    note: str | None = None


def without_interval(value: float | None, *, n: int, reason: str) -> Statistic:
    """A statistic that has no interval, or no value either."""
    return Statistic(value=value, low=None, high=None, n=n, method="none", reason=reason)
