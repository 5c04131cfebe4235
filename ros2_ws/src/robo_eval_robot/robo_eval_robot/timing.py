"""When control ticks really came, and how long the policy took: one episode's figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from robo_eval_robot.snapshot import Snapshot

_CLOCK_SET_S: Final = 2.0
"""Stamps that are further from what passed here are of a clock that was set."""


class Timing:
    """Collects action periods, missed ticks and inference times of an episode.

    Args:
        tick_s: Control period, seconds.
    """

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self._periods: list[float] = []
        self._inference: list[float] = []
        self._missed = 0
        self._last: Snapshot | None = None
        self._seen_s = 0.0

    def observed(self, snapshot: Snapshot) -> None:
        """A state arrived that the policy acts on."""
        if self._last is not None:
            self._periods.append(snapshot.received_s - self._last.received_s)
            passed_s = (snapshot.stamp_ns - self._last.stamp_ns) / 1e9
            # Stamps tell ticks from jitter of the network, unless somebody set the driver's clock.
            if abs(passed_s - self._periods[-1]) > _CLOCK_SET_S:
                passed_s = self._periods[-1]
            self._missed += max(0, round(passed_s / self._tick_s) - 1)
        self._last = snapshot
        self._seen_s = time.monotonic()

    def requested(self) -> None:
        """The policy has decided."""
        self._inference.append(time.monotonic() - self._seen_s)

    @property
    def missed_ticks(self) -> int:
        """Control ticks that passed without an action of their own."""
        return self._missed

    def as_measures(self) -> dict[str, float]:
        """Figures for the row, unit in the name; nothing for an episode without ticks.

        Example:
            >>> Timing(0.02).as_measures()
            {}
        """
        found: dict[str, float] = {}
        for name, values in (
            ("action_period", self._periods),
            ("inference", self._inference),
        ):
            if values:
                found[f"{name}_p50_s"] = quantile(values, 0.5)
                found[f"{name}_p99_s"] = quantile(values, 0.99)
                found[f"{name}_max_s"] = max(values)
        if self._periods:
            found["missed_ticks"] = float(self._missed)
        return found


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lie, interpolated.

    Example:
        >>> quantile([3.0, 1.0, 2.0], 0.5)
        2.0
    """
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
