"""A number with its interval, its sample size, and the reason when there is none."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a statistic or a metric returns.

    Attributes:
        value: Point estimate; None when nothing was measured, never 0 in its place.
        low: Lower end of the interval; None when there is no interval.
        high: Upper end of the interval; None when there is no interval.
        level: Coverage the interval aims at, e.g. 0.95.
        n: How many observations (episodes, pairs, ...) the value rests on.
        method: How the interval was made, e.g. `"wilson"`.
        unit: Unit of value, low and high; `"ratio"` for a share in [0, 1].
        reason: Why value or interval is missing or unreliable; None when all is well.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int
    method: str
    unit: str
    reason: str | None = None

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(f"estimate.{name} is {number}; use None with a reason instead")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"estimate.low is {self.low}, which is above high, {self.high}")
        if self.n < 0:
            raise ValueError(f"estimate.n is {self.n}; it is a number of observations")
        if self.value is None and self.reason is None:
            raise ValueError("an estimate without a value needs a reason")

    @classmethod
    def missing(cls, *, reason: str, unit: str, n: int = 0, method: str = "none") -> Estimate:
        """The estimate for a quantity that was not measured."""
        return cls(value=None, n=n, method=method, unit=unit, reason=reason)

    @classmethod
    def exact(cls, value: float, *, unit: str, n: int, reason: str | None = None) -> Estimate:
        """A count or a measured length, which has no interval to speak of: it is its own."""
        return cls(
            value=value, low=value, high=value, n=n, method="counted", unit=unit, reason=reason
        )

    def as_dict(self) -> dict[str, object]:
        """The fields by name, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.value is None:
            return f"- ({self.reason})"
        if self.low is None or self.high is None:
            return f"{self.value:.3f} n={self.n} (no interval: {self.reason or 'none computed'})"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] n={self.n}"


def without_interval(
    value: float | None, *, n: int, reason: str, level: float, unit: str = "ratio"
) -> Estimate:
    """An estimate that has no interval, or no value either, where `level` was aimed at."""
    return Estimate(value=value, level=level, n=n, method="none", unit=unit, reason=reason)
