"""What is written down beside the episodes of a run: drafts of incidents, faults, pauses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import PlannedEpisode, task_and_policy
from robo_eval.log.notes import iso_time, note
from robo_eval_robot.attempt import Attempt

if TYPE_CHECKING:
    from robo_eval_robot.drafting import Drafts
    from robo_eval_robot.link import Trip


class Notebook:
    """The notes of one run.

    Args:
        trial: The trial directory.
        plan: Its plan.
        planned: Its episodes on this side.
        side: Where they are played.
        drafts: Where incidents are drafted.
    """

    def __init__(
        self,
        trial: Path,
        plan: TrialPlan,
        planned: Sequence[PlannedEpisode],
        side: Side,
        drafts: Drafts,
    ) -> None:
        self._trial = trial
        self._plan = plan
        self._planned = planned
        self._side = side
        self._drafts = drafts

    def attempt(self, planned: PlannedEpisode, attempt: Attempt) -> None:
        """Write down what the guard reported and how injected faults went."""
        self.trips(attempt.trips)
        common = self._whose(planned)
        for fault in attempt.faults:
            note(self._trial, "faults", injected=True, **common, **_cells(fault))

    def trips(self, trips: Iterable[Trip]) -> None:
        """Draft incidents of what the guard reported; each report names its episode.

        Args:
            trips: What it reported.
        """
        by_episode: dict[str, list[Trip]] = {}
        for trip in trips:
            by_episode.setdefault(trip.values.get("episode_id", ""), []).append(trip)
        for episode_id, own in by_episode.items():
            # An id that begins so is of a later attempt.
            owner = next((p for p in self._planned if episode_id.startswith(p.base_id)), None)
            if owner is None:
                self._drafts.heard(own, episode_id, policy=None, task=None)
            else:
                task, policy = task_and_policy(self._plan, owner)
                name = task.family or task.env
                self._drafts.heard(own, episode_id, policy=policy.name, task=name)

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
