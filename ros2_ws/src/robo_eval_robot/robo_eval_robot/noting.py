"""What is written down beside the episodes of a run: drafts of incidents, faults, pauses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InterruptedRunError
from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import PlannedEpisode, task_and_policy
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.incident_log import incidents_of
from robo_eval.log.notes import iso_time, note
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents import open_log
from robo_eval_incidents.capture import BY, Capturing
from robo_eval_incidents.happened import Scene, guard_occurrence
from robo_eval_incidents.kinds import Nil
from robo_eval_incidents.log import DATABASE
from robo_eval_incidents.rule import read_rules
from robo_eval_incidents.words import Engagement, Via
from robo_eval_robot.attempt import Attempt
from robo_eval_robot.config import RobotConfig

if TYPE_CHECKING:
    from robo_eval_robot.link import Trip


class Drafts:
    """The incident log of a trial while a run lasts; made when the run begins.

    Entering it drafts what an earlier run recorded and did not live to draft. Leaving it files
    that nothing happened, if that is so, since the run began or since that was last said.

    Args:
        trial: The trial, locked by the caller.
        config: The robot.

    Raises:
        IncidentLogError: If the log cannot be opened or made.
        InputError: If the trial has a table of incidents as well.
    """

    def __init__(self, trial: TrialDirectory, config: RobotConfig) -> None:
        self._trial = trial
        self._config = config
        self._log: Final = open_log(trial.path / DATABASE, make=True)
        incidents_of(trial.path)  # refuses a table beside it before anything is played
        self._capturing: Final = Capturing(trial, self._log, read_rules())
        self._since_ns = time.time_ns()
        self._has_played = False

    def __enter__(self) -> Self:
        try:
            self._capturing.trial()
        except BaseException:
            self._log.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        # A run that broke off says nothing about what happened.
        ended = kind is None or issubclass(kind, InterruptedRunError)
        try:
            nothing = self._nothing() if ended else None
            if nothing is not None:
                self._log.file(nothing, by=BY, via=Via.RULE)
        finally:
            self._log.close()

    def heard(
        self, trips: Iterable[Trip], episode_id: str, *, policy: str | None, task: str | None
    ) -> None:
        """Draft what the guard reported of an episode, which need not be logged yet.

        Args:
            trips: What it reported.
            episode_id: The episode; empty between two.
            policy: Who played it.
            task: What was played.
        """
        scene = Scene(
            trial=self._trial.plan_digest,
            episode_id=episode_id,
            side=self._config.side,
            robot=self._config.name,
            policy=policy,
            task=task,
            engagement=Engagement.AUTONOMOUS if episode_id else Engagement.UNKNOWN,
            trace=self._trace(episode_id),
        )
        occurrences = [
            guard_occurrence(trip.code, trip.text, trip.stamp_ns, trip.values) for trip in trips
        ]
        self._capturing.scene(scene, occurrences)

    def logged(self, episode: Episode) -> None:
        """Draft what else an episode recorded, now that its row is there.

        Args:
            episode: Its row.
        """
        self._has_played = True
        self._capturing.episode(episode)

    def _trace(self, episode_id: str) -> Path | None:
        folder = self._trial.traces_dir / episode_id
        return folder if episode_id and folder.is_dir() else None

    def _nothing(self) -> Nil | None:
        """That nothing happened; None if something did, or nobody played."""
        unsaid_ns = self._unsaid_ns()
        starts = [] if unsaid_ns is None else [min(unsaid_ns, self._since_ns)]
        if self._has_played:
            starts.append(self._since_ns)
        for start_ns in starts:
            if not self._has_incident(start_ns):
                return Nil(
                    start_ns=start_ns,
                    # A clock may have been set back meanwhile.
                    end_ns=max(time.time_ns(), start_ns + 1),
                    robot=self._config.name,
                    side=self._config.side,
                    note="No rule found an incident in what guard and episodes recorded.",
                )
        return None

    def _unsaid_ns(self) -> int | None:
        """Start of the first episode for whose time nobody has said yet that nothing happened.

        A run that is killed cannot say it; the next one does for both.
        """
        said = [record.body for record in self._log.records() if isinstance(record.body, Nil)]
        until_ns = max((nil.end_ns for nil in said if nil.side is self._config.side), default=0)
        with EpisodeStore(self._trial.path, durable=False, read_only=True) as store:
            starts = [
                episode.start_ns
                for episode in store.episodes()
                if episode.side is self._config.side and (episode.start_ns or 0) > until_ns
            ]
        return min((start for start in starts if start), default=None)

    def _has_incident(self, start_ns: int) -> bool:
        """Whether there is an incident from then on, on whatever robot of this side."""
        return any(
            incident.report.side is self._config.side and incident.report.happened_ns >= start_ns
            for incident in self._log.incidents()
        )


@dataclass(frozen=True, slots=True)
class Notebook:
    """The notes of one run.

    Attributes:
        trial: The trial directory.
        plan: Its plan.
        planned: Its episodes on this side.
        side: Where they are played.
        drafts: Where incidents are drafted.
    """

    trial: Path
    plan: TrialPlan
    planned: Sequence[PlannedEpisode]
    side: Side
    drafts: Drafts

    def attempt(self, planned: PlannedEpisode, attempt: Attempt) -> None:
        """Write down what the guard reported and how injected faults went."""
        self.trips(attempt.trips)
        _, policy = task_and_policy(self.plan, planned)
        for fault in attempt.faults:
            note(
                self.trial,
                "faults",
                injected=True,
                side=self.side.value,
                episode_id=planned.episode_id,
                policy=policy.name,
                fault=fault["fault"],
                recovered=fault["recovered"],
                recovered_by="robot" if fault["recovered"] else "",
                duration_s=fault["duration_s"],
            )

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
            owner = next((p for p in self.planned if episode_id.startswith(p.base_id)), None)
            if owner is None:
                self.drafts.heard(own, episode_id, policy=None, task=None)
            else:
                task, policy = task_and_policy(self.plan, owner)
                name = task.family or task.env
                self.drafts.heard(own, episode_id, policy=policy.name, task=name)

    def pause(self, start_ns: int, seconds: float, *, operator: str | None, asked_by: str) -> None:
        """Write down that nothing was played for a while.

        Args:
            start_ns: Since when, UTC.
            seconds: How long.
            operator: Who was at the robot.
            asked_by: `prompt` or `command`.
        """
        note(
            self.trial,
            "pauses",
            time=iso_time(start_ns),
            duration_s=round(seconds, 3),
            side=self.side.value,
            operator=operator or "",
            asked_by=asked_by,
        )
