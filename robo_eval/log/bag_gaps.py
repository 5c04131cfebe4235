"""Where a recording is silent for so long that it was interrupted, or its clock was set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

_NS: Final = 1e-9
_LEAST: Final = 10
"""Messages of a topic that have a usual period; of fewer none is known."""
_EVEN: Final = 3.0
"""How many times the median nine in ten periods of a topic with a usual period are at most."""
_UNEVEN: Final = 2.0
"""How many times the third longest period of an uneven topic its usual ones are taken to be."""
_FAR: Final = 10.0
"""How many times the usual period of some topic a gap lasts."""
_MISSED: Final = 2.0
"""How many times its usual period each topic is silent where there is a gap."""
_WITHIN_S: Final = 10.0
"""No shorter silence between two messages of a topic is a gap, seconds."""
_AROUND_S: Final = 60.0
"""The same before the first and behind the last message, while a robot starts or a person rates."""
_UNKNOWN_S: Final = 3600.0
"""From here on a silence is a gap where no topic has a usual period, seconds."""

Integers = NDArray[np.int64]
Span = tuple[int, int]
"""Two times, ns."""


def gaps(topics: Sequence[Integers]) -> list[Span]:
    """The silences of all topics that are far longer than their usual periods.

    Args:
        topics: Times of the messages of each topic, in the order of time, ns.

    Returns:
        Times of the message before and behind each gap, in the order of time.
    """
    stamps = np.sort(np.concatenate(topics), kind="stable") if topics else np.array([], np.int64)
    steps = np.diff(stamps)
    found = [
        (int(stamps[at]), int(stamps[at + 1])) for at in np.flatnonzero(steps * _NS > _WITHIN_S)
    ]
    periods = [(times, _period_s(times)) for times in topics] if found else []
    usual = [(int(t[0]), int(t[-1]), period) for t, period in periods if period is not None]
    return [span for span in found if _is_gap(span, usual)]


def lasting(seconds: float) -> str:
    """A length of time in a unit that people can imagine.

    Example:
        >>> lasting(51.0), lasting(5400.0), lasting(7776000.0)
        ('51.0 s', '1.5 h', '90.0 days')
    """
    for unit, length in (("days", 86400.0), ("h", 3600.0)):
        if seconds >= length * (2.0 if unit == "days" else 1.0):
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def _period_s(times: Integers) -> float | None:
    """The greatest usual period of a topic, seconds; None if it has none.

    Of bursts, and of several publishers of one topic, it is no less than what it takes to be far
    beyond all but the two longest.
    """
    if len(times) < _LEAST:
        return None
    steps = np.diff(times) * _NS
    middle, most = np.quantile(steps, (0.5, 0.9))
    if not 0.0 < most <= _EVEN * middle:
        most = _UNEVEN * np.partition(steps, -3)[-3]
    return float(most) or None


def _is_gap(span: Span, usual: Sequence[tuple[int, int, float]]) -> bool:
    low, high = span
    silent_s = (high - low) * _NS
    if not usual:
        return silent_s >= _UNKNOWN_S
    if any((max(high, one) - min(low, two)) * _NS <= _MISSED * p for one, two, p in usual):
        return False
    return any(
        silent_s > max(_FAR * period, _WITHIN_S if first <= low and high <= last else _AROUND_S)
        for first, last, period in usual
    )
