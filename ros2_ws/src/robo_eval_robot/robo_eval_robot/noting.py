"""What is written down beside the episodes of a run: the guard's stops, injected faults, pauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import PlannedEpisode, task_and_policy
from robo_eval.log.notes import iso_time, note
from robo_eval_robot.attempt import Attempt

if TYPE_CHECKING:
    from robo_eval_robot.link import Trip

_NO_STANDSTILL: Final = "no_standstill"


class Notebook:
    """The notes of one run.

    Args:
        trial: The trial directory.
        plan: Its plan.
        planned: Its episodes on this side.
        side: Where they are played.
    """

    def __init__(
        self, trial: Path, plan: TrialPlan, planned: Sequence[PlannedEpisode], side: Side
    ) -> None:
        self._trial = trial
        self._plan = plan
        self._planned = planned
        self._side = side
        self._noted: Counter[str] = Counter()

    def attempt(self, planned: PlannedEpisode, attempt: Attempt) -> None:
        """Write down what the guard reported and how injected faults went."""
        for trip in attempt.trips:
            self.trip(trip, planned)
        common = self._whose(planned)
        for fault in attempt.faults:
            note(self._trial, "faults", injected=True, **common, **_cells(fault))

    def trip(self, trip: Trip, planned: PlannedEpisode | None = None) -> None:
        """One stop is one incident: its first cause, and that it did not succeed if so.

        Args:
            trip: What the guard reported.
            planned: The episode it is of if it names none; by default the last.
        """
        planned = planned or self._planned[-1]
        named = trip.values.get("episode_id", "")
        owner = next((p for p in self._planned if named.startswith(p.base_id)), planned)
        episode_id = named or planned.episode_id
        if episode_id in self._noted and trip.code != _NO_STANDSTILL:
            return
        self._noted[episode_id] += 1
        note(
            self._trial,
            "incidents",
            incident_id=f"{episode_id}-i{self._noted[episode_id]}",
            severity=trip.values.get("suggested_severity", "near_miss"),
            time=iso_time(trip.stamp_ns),
            description=f"{trip.code}: {trip.text}",
            **{**self._whose(owner), "episode_id": episode_id},
        )

    def pause(self, start_ns: int, seconds: float, *, operator: str | None, asked_by: str) -> None:
        """Write down that nothing was played for a while.

        Args:
            start_ns: Since when, UTC.
            seconds: How long.
            operator: Who was at the robot.
            asked_by: `prompt` or `command`.
        """
        note(
            self._trial,
            "pauses",
            time=iso_time(start_ns),
            duration_s=round(seconds, 3),
            side=self._side.value,
            operator=operator or "",
            asked_by=asked_by,
        )

    def _whose(self, planned: PlannedEpisode) -> dict[str, str]:
        _, policy = task_and_policy(self._plan, planned)
        return {
            "side": self._side.value,
            "episode_id": planned.episode_id,
            "policy": policy.name,
        }


def _cells(fault: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "fault": fault["fault"],
        "recovered": fault["recovered"],
        "recovered_by": "robot" if fault["recovered"] else "",
        "duration_s": fault["duration_s"],
    }
