"""Plays the physical half of a trial: one robot, episode by episode, each a row and a bag."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from robo_eval.agents.confined import ConfinedPolicy
from robo_eval.core.blinding import blinding_of
from robo_eval.core.episode import Episode
from robo_eval.core.errors import CheckFailedError, InputError, InterruptedRunError
from robo_eval.core.kinds import LATE_COMPUTER, EndReason
from robo_eval.core.plan import PlannedCondition
from robo_eval.core.schedule import (
    PlannedEpisode,
    attempts_of,
    base_id_of,
    count_unscored,
    remaining,
    schedule,
)
from robo_eval.core.series import due, next_block
from robo_eval.core.stop_signals import stop_signals
from robo_eval.log.directory import PREFLIGHT, TrialDirectory
from robo_eval.log.pausing import is_paused
from robo_eval.log.planned_row import row_for
from robo_eval.log.provenance import software
from robo_eval.log.recovery import recover_trial
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.attribution import void_reason
from robo_eval.metrics.scoring import SCORE_VERSION
from robo_eval_robot.adapter import check_robot
from robo_eval_robot.attempt import Attempt
from robo_eval_robot.children import children
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.episode import Played, Player
from robo_eval_robot.judging import Judge
from robo_eval_robot.link import RobotLink, RobotLostError
from robo_eval_robot.lock import robot_lock
from robo_eval_robot.noting import Drafts, Notebook
from robo_eval_robot.operator import Person
from robo_eval_robot.preflight import preflight
from robo_eval_robot.recordings import Recordings, Trace
from robo_eval_robot.stagehand import OperatorStagehand, Stagehand, TwinStagehand
from robo_eval_robot.terminal import Terminal
from robo_eval_robot.topics import of_session

Progress = Callable[[int, int, Episode], None]
"""Called after each row with episodes done, episodes planned, and the row."""
_STATUS_S: Final = 0.2
_POLL_S: Final = 0.1
_PAUSE_S: Final = 0.5
_LATE_S: Final = 0.2
_GHOST_S: Final = 30.0
"""How long the graph may show a process that was killed."""
_RESTARTS: Final = 3
"""How often a process that dies is started again in one run."""
_AGAIN: Final = 2
"""How often an episode that was lost, or that a late computer voided, is tried again in one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalResult:
    """How a run on a robot ended.

    Attributes:
        planned: Episodes the plan asks for on this side.
        unscored: Of those, the ones without a score.
        played: Attempts of this run.
        again: Of those, the ones at an episode that was tried before.
        seconds: Wall time of this run.
    """

    planned: int
    unscored: int
    played: int
    again: int
    seconds: float


def run_physical(
    trial: TrialDirectory,
    config: RobotConfig,
    robot_file: Path,
    *,
    terminal: Terminal | None = None,
    operator: str | None = None,
    on_progress: Progress | None = None,
    on_status: Callable[[str], None] | None = None,
    view: str | None = None,
) -> PhysicalResult:
    """Play every episode of a trial on a robot that has no scored attempt yet.

    Guard and recorder run as processes of their own, and so does a twin. Each row is committed
    when its episode has ended; a run that died goes on where it was.

    Args:
        trial: The trial directory; it is locked while the run lasts, and so is the robot.
        config: The robot.
        robot_file: File it was read from, for the other processes.
        terminal: Where the person at the robot sits; needed unless it is a twin.
        operator: Who that is.
        on_progress: Called after each row.
        on_status: Called a few times a second with what goes on.
        view: Where Rerun shows the robot meanwhile: `window`, a file or an address.

    Raises:
        InputError: If robot or guard do not come up, or somebody else uses the robot.
        PreflightError: If the robot does not do what is asked, or does not stop by itself.
        InterruptedRunError: On SIGINT, SIGTERM or SIGHUP, after the robot was stopped and what
            ended was committed.
        RobotLostError: If a process of the robot dies again and again.
        TrialDirectoryError: If the trial cannot be written.
    """
    started = time.monotonic()
    check_robot(trial.plan, config, str(robot_file))
    if terminal is None and config.body != "twin":
        raise InputError(f"robot {config.name!r}: a person must set its episodes up")
    with ExitStack() as stack:
        run = _Run(stack, trial, config, robot_file, view, terminal, operator)
        run.on_progress = on_progress
        run.on_status = on_status
        run.connect()
        try:
            run.play_all()
        finally:
            run.note_rest()
        is_all = not (set(trial.plan.sides) - {config.side} or run.is_open())
        run.write_manifest("complete" if is_all else "interrupted")
        return PhysicalResult(
            planned=len(run.planned),
            unscored=run.unscored(),
            played=run.played,
            again=run.again,
            seconds=time.monotonic() - started,
        )


class Starts:
    """Remembers where the first episode of each condition and seed that was played started.

    Attempts that were void, lost or ended by a fault bind nobody: they may be so because of how
    they started.

    Args:
        planned: The episodes of this side.
        logged: What was played in earlier runs, oldest first.
    """

    def __init__(self, planned: Sequence[PlannedEpisode], logged: Iterable[Episode]) -> None:
        self._states: dict[tuple[PlannedCondition, int], dict[str, Any]] = {}
        by_id = {episode.base_id: episode for episode in planned}
        for row in logged:
            match = by_id.get(base_id_of(row.episode_id, row.attempt))
            if match is not None:
                self.add(match, row)

    def add(self, planned: PlannedEpisode, row: Episode) -> None:
        """An attempt has ended."""
        if row.end_reason.is_final and row.initial_state:
            self._states.setdefault((planned.condition, planned.seed), dict(row.initial_state))

    def of(self, planned: PlannedEpisode) -> dict[str, Any] | None:
        """Where an episode has to start; None if none of its seed was played yet."""
        return self._states.get((planned.condition, planned.seed))


class _Run:
    """One pass over the episodes that are still to do."""

    on_progress: Progress | None = None
    on_status: Callable[[str], None] | None = None

    def __init__(
        self,
        stack: ExitStack,
        trial: TrialDirectory,
        config: RobotConfig,
        robot_file: Path,
        view: str | None,
        terminal: Terminal | None,
        operator: str | None,
    ) -> None:
        self._trial = trial
        self._config = config
        self._operator = operator
        stack.enter_context(robot_lock(config.name))
        self._stop = stack.enter_context(stop_signals())
        stack.enter_context(trial.lock())
        self._store = stack.enter_context(EpisodeStore(trial.path, durable=True))
        recover_trial(trial, self._store)
        self._drafts = stack.enter_context(Drafts(trial, config))
        plan = trial.plan
        # Each in a process of its own: the robot's side must go on if one hangs.
        self._policies = [
            stack.enter_context(ConfinedPolicy(entry, plan.decision_timeout_s))
            for entry in plan.policies
        ]
        session = of_session()
        self._own = stack.enter_context(children(trial.path / "logs", session))
        self._start_processes(robot_file, view)
        self._link = RobotLink(config, session=session)
        stack.callback(self._link.close)
        self._recordings = Recordings(self._link, trial.path, self._own.check)
        self._software = software()
        self._restarts = 0
        self._is_unproved = True
        self._is_judging = False
        self._playing = ""
        self._next_status_s = 0.0
        for policy in self._policies:
            policy.check = self._check_alive
        suffix = f"-{config.side.value}"
        self.planned = [
            replace(planned, pair_id=planned.base_id.removesuffix(suffix))
            for planned in schedule(plan, config.side)
        ]
        self.played = self.again = 0
        logged = list(self._store.episodes())
        self._attempts = attempts_of(logged, config.side)
        self._taken: Counter[str] = Counter()
        self._starts = Starts(self.planned, logged)
        self._notebook = Notebook(trial.path, plan, self.planned, config.side, self._drafts)
        self._engage(terminal)

    def _start_processes(self, robot_file: Path, view: str | None) -> None:
        start, file, trial = self._own.start, str(robot_file), str(self._trial.path)
        if self._config.body == "twin":
            start("twin", "robo_eval_twin.twin_node", [file])
        start("guard", "robo_eval_robot.guard_node", [file])
        start("recorder", "robo_eval_robot.recorder", [file, "--root", trial])
        if view is not None:
            began = ["--trial", trial, "--began", str(time.time_ns())]
            start("view", "robo_eval_robot.view", [file, "--to", view, *began], is_vital=False)

    def _engage(self, terminal: Terminal | None) -> None:
        """Who sets episodes up, answers and judges; a twin sets itself up, once they are ready."""
        plan, link, operator = self._trial.plan, self._link, self._operator
        self._blinding = blinding_of(plan, self._trial.plan_digest)
        self._person: Person | None = None
        itself = TwinStagehand(link) if self._config.body == "twin" else None
        self._stagehand: Stagehand = TwinStagehand(link)
        shown = self._blinding.episode
        if terminal is not None:
            self._person = Person(
                terminal,
                self._poll,
                void_reasons=plan.void_reasons,
                blinding=self._blinding,
                on_pause=partial(self._notebook.pause, operator=operator, asked_by="prompt"),
            )
            self._stagehand = OperatorStagehand(
                link, self._person.confirm, self._person.ready, itself, shown
            )
        self._judge = Judge(
            self._trial.path, plan, self._config.side, self._person, operator=operator, shown=shown
        )
        self._player = Player(
            plan=plan,
            config=self._config,
            link=link,
            stagehand=self._stagehand,
            recordings=self._recordings,
            check=self._check_alive,
            listen=partial(self._check_speaking, anew=True),
        )

    def write_manifest(self, status: str) -> None:
        """Write how the run stands into the trial."""
        self._trial.write_manifest(status=status, store=self._store)

    def unscored(self) -> int:
        """Planned episodes without a score."""
        return count_unscored(self.planned, self._attempts)

    def is_open(self) -> bool:
        """Whether another run would play something."""
        return bool(due(self._trial.plan, self._config.side, self._attempts))

    def connect(self) -> None:
        """Wait for robot, guard and recorder; a process that ends meanwhile says why."""
        try:
            self._link.connect()
            self._recordings.connect(self._config.start_up_s)
        except InputError:
            self._own.check()
            raise

    def prove(self) -> None:
        """Let the preflight show that the robot stops by itself, if anything is to be played."""
        if not self._due():
            return
        is_twin, person = self._config.body == "twin", self._person
        try:
            preflight(
                self._link,
                self._config,
                TwinStagehand(self._link) if is_twin else self._stagehand,
                self._trial.path / PREFLIGHT,
                ask=None if is_twin or person is None else person.confirm,
                check=self._check_alive,
            )
        except InterruptedRunError:
            self._check_stop()
            raise
        self._link.trips.clear()  # of no episode
        self._is_unproved = False

    def play_all(self) -> None:
        """Play what is left, in the plan's order, block by block where a rule may end it."""
        while todo := self._due():
            for planned in todo:
                self._wait_while_paused()
                self._check_stop()
                self._mend()
                try:
                    row = self._play(planned)
                except InterruptedRunError:
                    self._check_stop()
                    raise
                self._commit(planned, row)
        self._check_stop()

    def _due(self) -> Sequence[PlannedEpisode]:
        return next_block(self._trial.plan, self._left(), self._attempts)

    def _left(self) -> list[PlannedEpisode]:
        """What was not played yet, or is to be played again."""
        todo = remaining(self.planned, self._attempts, retries=self._trial.plan.retries)
        return [one for one in todo if self._taken[one.base_id] <= _AGAIN]

    def _play(self, planned: PlannedEpisode) -> Episode:
        start_ns, played = time.time_ns(), Played()
        self._playing = str(planned.pair_id)
        try:
            policy, start = self._policies[planned.policy], self._starts.of(planned)
            attempt = self._player.play(planned, played, policy, start)
        except CheckFailedError as err:
            attempt = self._after_loss(planned, err, played)
        self._notebook.attempt(planned, attempt)
        self._is_judging = True
        try:
            attempt = self._judge.judge(planned, attempt)
        finally:
            self._is_judging = False
        return self._row(planned, attempt, start_ns)

    def _poll(self) -> None:
        """Hear the robot for a moment while a person thinks; see `Person`."""
        self._link.wait(lambda: False, _POLL_S)
        # An episode that has ended is judged, whoever dies meanwhile.
        if self._is_judging:
            self._check_signal()
        else:
            self._check_alive()

    def _wait_while_paused(self) -> None:
        """Begin nothing while the trial is asked to wait; see `robo_eval.log.pausing`."""
        trial, stop = self._trial.path, self._stop
        if not is_paused(trial):
            return
        start_ns, began = time.time_ns(), time.monotonic()
        try:
            while is_paused(trial):
                self._show("paused")
                self._link.wait(lambda: bool(stop.signal_name) or not is_paused(trial), _PAUSE_S)
                self._check_stop()
        finally:
            self._notebook.pause(
                start_ns, time.monotonic() - began, operator=self._operator, asked_by="command"
            )

    def _check_alive(self) -> None:
        """Whether the run may go on.

        Raises:
            RobotLostError: If one of its processes has died or hangs.
            TrialDirectoryError: If the episode cannot be recorded.
            InterruptedRunError: If somebody asked it to stop.
        """
        self._check_speaking()
        self._recordings.check()
        self._show(self._blinding.episode(self._playing))
        self._check_signal()

    def _check_speaking(self, *, anew: bool = False) -> None:
        """End a process that hangs, so that it is started again like one that died.

        Args:
            anew: Whether to listen until each has spoken once more.

        Raises:
            RobotLostError: If one hangs or has died.
        """
        self._own.check()
        for name in self._own.vital():
            if self._link.is_silent(name, anew=anew):
                self._own.kill(name)
                raise RobotLostError(f"the {name} hung, and was ended")

    def _show(self, what: str) -> None:
        now = time.monotonic()
        if self.on_status is not None and now >= self._next_status_s:
            self._next_status_s = now + _STATUS_S
            guard = self._link.guard.state or "silent"
            self.on_status(f"{what or 'getting ready'}, guard {guard}")

    def _check_signal(self) -> None:
        if self._stop.signal_name is not None:
            raise InterruptedRunError(f"stopped by {self._stop.signal_name}")

    def _after_loss(
        self, planned: PlannedEpisode, err: CheckFailedError, played: Played
    ) -> Attempt:
        """Bring everything up again, and keep of the episode what can be kept."""
        trace = self._bring_up(err, planned.episode_id)
        if trace is None:
            trace = self._recordings.rescue(planned.episode_id)
        ticks = len(played.rewards)
        return Attempt(
            end_reason=EndReason.LOST,
            detail=str(err),
            ticks=ticks,
            duration_s=ticks / self._config.control_rate_hz,
            initial_state=played.initial_state,
            trace=trace,
            start_ns=played.start_ns,
        )

    def _bring_up(self, err: CheckFailedError, episode_id: str = "") -> Trace | None:
        """Start again what has died, and what dies meanwhile; the bag of the episode is closed."""
        trace: Trace | None = None
        while True:
            self._restart_dead(err)
            try:
                trace = self._recordings.end(episode_id, end_reason=EndReason.LOST.value) or trace
                self.connect()
            except RobotLostError as another:
                err = another
            else:
                return trace

    def _restart_dead(self, err: CheckFailedError) -> None:
        """Start again what has died or hangs; what cannot be mended so is raised."""
        with suppress(RobotLostError):
            self._check_speaking(anew=True)
        if "guard" in self._own.dead() and self._config.body == "twin":
            # It stopped by its timeout alone, perhaps beyond its range, and nobody carries it back.
            self._own.kill("twin")
        dead = self._own.dead()
        self._restarts += 1
        if not dead or self._restarts > _RESTARTS:
            raise err
        self._link.forget(dead)
        for name in dead:
            self._own.restart(name)
        self._link.patience_s = _GHOST_S
        self._is_unproved = self._is_unproved or bool({"guard", "twin"} & set(dead))
        if "recorder" in dead:
            self._recordings.forget()

    def _mend(self) -> None:
        """Start again what died between two episodes, which costs none of them.

        A guard or twin that is new has to show once more that the robot stops by itself.
        """
        while True:
            try:
                self._check_speaking()
                if self._is_unproved:
                    self.prove()
            except CheckFailedError as err:
                self._bring_up(err)
            else:
                return

    def _row(self, planned: PlannedEpisode, attempt: Attempt, start_ns: int) -> Episode:
        return row_for(
            planned,
            self._trial.plan,
            self._trial.plan_digest,
            policy_digest=self._policies[planned.policy].digest,
            robot=self._config.name,
            start_ns=attempt.start_ns or start_ns,
            duration_s=attempt.duration_s,
            exposure_s=attempt.duration_s,
            ticks=attempt.ticks,
            score_version=SCORE_VERSION,
            episode_return=attempt.episode_return,
            quality=attempt.quality,
            success=attempt.success,
            end_reason=attempt.end_reason,
            end_detail=attempt.detail,
            fault_by=attempt.fault_by if attempt.end_reason is EndReason.FAULT else None,
            recovered=attempt.trace.recovered if attempt.trace else False,
            uninterrupted_actions=attempt.ticks,
            control_quality=attempt.measures,
            initial_state=attempt.initial_state,
            initial_state_source=self._config.tasks[
                self._trial.plan.tasks[planned.condition.task].env
            ].initial_state.source,
            operator=self._operator,
            void_by=attempt.void_by,
            software=self._software,
            trace_uri=attempt.trace.uri if attempt.trace else None,
            trace_sha256=attempt.trace.sha256 if attempt.trace else None,
        )

    def note_rest(self) -> None:
        """Write down what the guard reported too late for its episode."""
        self._link.wait(lambda: False, _LATE_S)
        self._notebook.trips(self._link.trips)
        self._link.trips.clear()

    def _commit(self, planned: PlannedEpisode, episode: Episode) -> None:
        self._store.append([episode])
        self._drafts.logged(episode)
        self._starts.add(planned, episode)
        self._attempts[planned.base_id].append(episode.end_reason)
        is_late = void_reason(episode.end_detail or "") == LATE_COMPUTER
        self._taken[planned.base_id] += is_late or episode.end_reason is EndReason.LOST
        self.played += 1
        self.again += episode.attempt > 1
        if self.on_progress is not None:
            total = len(self.planned)
            self.on_progress(total - len(self._left()), total, episode)

    def _check_stop(self) -> None:
        person = self._person
        by = self._stop.signal_name or (person.stopped_by if person else None)
        if by is None:
            return
        self.write_manifest("interrupted")
        raise InterruptedRunError(
            f"stopped by {by} after {self.played} episodes of this run; the"
            f" robot was stopped; go on with: robo-eval resume {self._trial.path}"
        )
