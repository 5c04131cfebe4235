"""When control ticks really came, how long the policy took, and when the robot answered."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from robo_eval.conduct.answers import Answers
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.snapshot import Snapshot

_CLOCK_SET_S: Final = 2.0
"""Stamps that are further from what passed here are of a clock that was set."""


class Pace:
    """When control ticks are due on the driver's clock: a period apart, on average.

    States that come at another rate are taken a little sooner or later. After a late tick, or if
    the clock was set, a period begins anew.

    Args:
        tick_s: Control period, seconds.
        state_hz: Rate of the states.
    """

    def __init__(self, tick_s: float, state_hz: float) -> None:
        self._tick_ns, self._state_ns = round(1e9 * tick_s), round(1e9 / state_hz)
        self._at_ns = 0

    def next(self, last_ns: int) -> int:
        """Earliest stamp of a state that the next tick may act on.

        Args:
            last_ns: Stamp of the one that this tick acts on.
        """
        if abs(last_ns - self._at_ns) > self._state_ns:
            self._at_ns = last_ns
        self._at_ns += self._tick_ns
        # Half a state's period early, so that rounding of stamps costs no tick.
        return self._at_ns - self._state_ns // 2


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
        self._answers = Answers()

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
        self._own_s = max(0.0, now - self._seen_s - self._queued_s)
        self._answers.asked(command, now)

    def answered(self, snapshots: Iterable[Snapshot]) -> None:
        """States arrived, in order, that may show a command."""
        if self._config is None:
            return
        names, interface = self._config.commanded, self._config.controller.interface
        for snapshot in snapshots:
            shown = [getattr(snapshot.joints.get(name), interface, None) for name in names]
            self._answers.shown(shown, snapshot.received_s)

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
            ("command_latency", self._answers.latencies_s),
        ):
            if values:
                found[f"{name}_p50_s"] = float(np.quantile(values, 0.5))
                found[f"{name}_p99_s"] = float(np.quantile(values, 0.99))
                found[f"{name}_max_s"] = max(values)
        if self._periods:
            found["missed_ticks"] = float(self._missed)
            found["late_ticks"] = float(self.late_ticks)
        return found
