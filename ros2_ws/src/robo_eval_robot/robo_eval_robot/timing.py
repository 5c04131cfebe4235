"""When control ticks really came, how long the policy took, and when the robot answered."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.snapshot import Snapshot

_CLOCK_SET_S: Final = 2.0
"""Stamps that are further from what passed here are of a clock that was set."""
_ANSWER_S: Final = 1.0
"""A command that shows later than this was overtaken by others."""
_SETTLED: Final = 0.1
"""A state shows the last command if it is no further from it than this share of the way."""
_Values = Sequence[float]


class Timing:
    """Collects action periods, missed ticks, inference times and latencies of an episode.

    Args:
        tick_s: Control period, seconds.
        config: The robot; without it no latency is measured.
    """

    def __init__(self, tick_s: float, config: RobotConfig | None = None) -> None:
        self._tick_s = tick_s
        self._config = config
        self._periods: list[float] = []
        self._inference: list[float] = []
        self._missed = 0
        self.late_ticks = 0
        """Missed ticks whose state was there in time, and that the policy's own time does not
        explain."""
        self._queued_s = 0.0
        self._own_s = 0.0
        self._last: Snapshot | None = None
        self._seen_s = 0.0
        self._latencies: list[float] = []
        self._asked: deque[tuple[float, _Values, _Values]] = deque()
        self._command: _Values | None = None
        self._shown: _Values | None = None

    def observed(self, snapshot: Snapshot, arrived: Iterable[Snapshot] = ()) -> None:
        """A state arrived that the policy acts on.

        Args:
            snapshot: The state.
            arrived: All that arrived since the last one it acted on.
        """
        if self._last is not None:
            self._periods.append(snapshot.received_s - self._last.received_s)
            passed_s = (snapshot.stamp_ns - self._last.stamp_ns) / 1e9
            # Stamps tell ticks from jitter of the network, unless somebody set the driver's clock.
            if abs(passed_s - self._periods[-1]) > _CLOCK_SET_S:
                passed_s = self._periods[-1]
            missed = max(0, round(passed_s / self._tick_s) - 1)
            self._missed += missed
            ages_s = ((one.stamp_ns - self._last.stamp_ns) / 1e9 for one in arrived)
            passed_by = {round(age_s / self._tick_s) for age_s in ages_s}
            unused = len(passed_by.intersection(range(1, missed + 1)))
            self.late_ticks += max(0, unused - int(self._own_s / self._tick_s))
        self._last = snapshot
        self._seen_s = time.monotonic()
        self._queued_s = self._own_s = 0.0

    def queued(self, seconds: float) -> None:
        """Policy and conductor had no processor for so long while the policy decided."""
        self._queued_s = seconds

    def requested(self, command: Sequence[float]) -> None:
        """The policy has decided on a command, in the order of the controller's joints."""
        now = time.monotonic()
        self._inference.append(now - self._seen_s)
        self._own_s = now - self._seen_s - self._queued_s
        # Squares of the smallest changes are 0: of those nobody can see half.
        if self._command is not None and _along(command, command, self._command) > 0.0:
            self._asked.append((now, self._command, command))
        self._command = command

    def answered(self, snapshots: Iterable[Snapshot]) -> None:
        """States arrived, in order: a command shows in the first that goes half of the way to it.

        The way is from the command before, in the quantity that the controller takes. Once the last
        command shows, none that did not is waited for: it was overtaken.
        """
        for snapshot in snapshots:
            now, before, shown = snapshot.received_s, self._shown, self._measured(snapshot)
            self._shown = shown
            while self._asked and self._asked[0][0] < now - _ANSWER_S:
                self._asked.popleft()
            if before is None or shown is None:
                continue
            answered = [
                place
                for place, (asked_s, old, new) in enumerate(self._asked)
                if asked_s <= now and _way(shown, old, new) >= 0.5 > _way(before, old, new)
            ]
            if answered:
                self._latencies.append(now - self._asked[answered[0]][0])
                for _ in range(answered[0] + 1):
                    self._asked.popleft()
            elif self._asked and abs(_way(shown, *self._asked[-1][1:]) - 1.0) < _SETTLED:
                self._asked.clear()

    def _measured(self, snapshot: Snapshot) -> _Values | None:
        """What a state shows of a command; None where it is not measured."""
        if self._config is None:
            return None
        found = [
            getattr(snapshot.joints.get(name), self._config.controller.interface, None)
            for name in self._config.commanded
        ]
        known = tuple(value for value in found if value is not None and math.isfinite(value))
        return known if len(known) == len(found) else None

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
            ("command_latency", self._latencies),
        ):
            if values:
                found[f"{name}_p50_s"] = quantile(values, 0.5)
                found[f"{name}_p99_s"] = quantile(values, 0.99)
                found[f"{name}_max_s"] = max(values)
        if self._periods:
            found["missed_ticks"] = float(self._missed)
            found["late_ticks"] = float(self.late_ticks)
        return found


def _way(shown: _Values, old: _Values, new: _Values) -> float:
    """Which share of the way from one command to the next a state has gone.

    Example:
        >>> _way([2.0, 0.0], [0.0, 0.0], [4.0, 0.0])
        0.5
    """
    return _along(shown, new, old) / _along(new, new, old)


def _along(one: _Values, other: _Values, start: _Values) -> float:
    """Product of two ways from a start, over the joints that all of them have."""
    return sum((a - c) * (b - c) for a, b, c in zip(one, other, start, strict=False))


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
