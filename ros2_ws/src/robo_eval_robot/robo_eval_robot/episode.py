"""How one attempt is played on a robot, from setting up to the closed bag."""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from robo_eval.agents.confined import PolicyError
from robo_eval.core.errors import CheckFailedError, InterruptedRunError, TrialDirectoryError, said
from robo_eval.core.kinds import LATE_COMPUTER, EndReason, FaultBy
from robo_eval.core.plan import OTHER_AUTHOR, Injection, TrialPlan
from robo_eval.core.policy import Policy, aside, is_action
from robo_eval.core.schedule import PlannedEpisode, injections_of, policy_seed, task_and_policy
from robo_eval.metrics.scoring import score_played
from robo_eval_robot.adapter import task_keywords
from robo_eval_robot.attempt import OPERATOR, Attempt, SkippedError
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.environment import RosRobotEnv
from robo_eval_robot.link import RobotLink, RobotLostError, RobotStuckError, Trip
from robo_eval_robot.recordings import Recordings, Trace
from robo_eval_robot.stagehand import Stagehand

_RECOVERED_TICKS: Final = 50
"""An injected fault counts as overcome if the episode goes on this long after it, or succeeds."""
_STATE_S: Final = 0.5
"""How long the guard's report of a trip may take to arrive."""


@dataclass(slots=True)
class Played:
    """What has happened since an attempt was set up; it outlives an attempt that is lost."""

    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    injected: list[tuple[int, Injection]] = field(default_factory=list)
    initial_state: dict[str, Any] = field(default_factory=dict)
    start_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """Plays attempts of a plan on one robot.

    Attributes:
        plan: The plan.
        config: The robot.
        link: Connection to it.
        stagehand: Who sets it up.
        recordings: Who records it.
        check: Raises if the run cannot go on.
        listen: Raises if a process of the robot's side hangs; it may listen for seconds.
    """

    plan: TrialPlan
    config: RobotConfig
    link: RobotLink
    stagehand: Stagehand
    recordings: Recordings
    check: Callable[[], None]
    listen: Callable[[], None]

    def play(
        self,
        planned: PlannedEpisode,
        played: Played,
        policy: Policy,
        planned_start: dict[str, Any] | None,
    ) -> Attempt:
        """Play one attempt.

        What policy or task raise ends it as a `fault`, an interruption as `void`; both stop the
        robot and close the bag. An interruption while it is set up leaves nothing to log.

        Args:
            planned: What to play.
            played: Filled while it is played.
            policy: Who plays.
            planned_start: State that another policy started from in this episode; None if none
                did.

        Raises:
            InterruptedRunError: If somebody asks the run to stop before the episode began.
            RobotLostError: If a process of the robot's side is gone.
            RobotStuckError: If the guard does not let the robot move.
            TrialDirectoryError: If the bag cannot be written.
        """
        plan, config, link = self.plan, self.config, self.link
        task, _ = task_and_policy(plan, planned)
        keywords = task_keywords(plan, planned)
        env = RosRobotEnv(
            robot=config, task=task.env, link=link, stagehand=self.stagehand, **keywords
        )
        counted = _counts(link)
        try:
            _set_up(env, planned, planned_start, self.stagehand)
            played.start_ns = time.time_ns()
            self._begin(planned, policy)
            observation = _start(env, policy, policy_seed(planned.seed))
            played.initial_state = env.initial_state
            self._play(env, observation, planned, played, policy)
            score = _score(plan, planned, played, env.timing.late_ticks)
        except InterruptedRunError as err:
            if played.start_ns is None:
                raise
            score = Attempt(end_reason=EndReason.VOID, detail=f"interrupted: {err}")
        except SkippedError as err:
            score = Attempt(end_reason=EndReason.VOID, detail=str(err), void_by=OPERATOR)
        except (RobotLostError, RobotStuckError, TrialDirectoryError):
            with contextlib.suppress(RobotLostError):
                env.finish()
            raise
        except (Exception, SystemExit) as err:  # noqa: BLE001 - whatever broke, it is logged
            score = Attempt(
                end_reason=EndReason.FAULT,
                detail=_detail(err, len(played.rewards)),
                fault_by=_fault_by(err),
            )
        env.finish()
        if score.end_reason is EndReason.SAFETY_STOP:
            link.wait(lambda: any(_is_of(trip, planned) for trip in link.trips), _STATE_S)
            self.listen()  # a twin that hangs made the guard stop it
        score = without_strangers(score, [trip for trip in link.trips if _is_of(trip, planned)])
        for _, injection in played.injected:
            if injection.fault == "estop":
                self.stagehand.disturb("estop", pressed=False)
        trace = self.recordings.end(
            planned.episode_id, end_reason=score.end_reason.value, quality=score.quality
        )
        ticks = len(played.rewards)
        duration_s = ticks / config.control_rate_hz
        score = _witnessed(score, self.recordings, trace, ticks=ticks, duration_s=duration_s)
        # Without a tick, what the policy measured may be of the episode before.
        own = _measures_of(policy) if ticks else {}
        return replace(
            score,
            ticks=ticks,
            duration_s=duration_s,
            initial_state=played.initial_state,
            measures={
                **own,
                **env.timing.as_measures(),
                **{name: max(0.0, n - counted[name]) for name, n in _counts(link).items()},
                **({"dropped_messages": float(trace.dropped)} if trace else {}),
            },
            trips=_drained(link),
            faults=tuple(_faults(played, score, config)),
            trace=trace,
            start_ns=played.start_ns,
        )

    def _begin(self, planned: PlannedEpisode, policy: Policy) -> None:
        task, entry = task_and_policy(self.plan, planned)
        self.recordings.begin(
            planned.episode_id,
            attempt=planned.attempt,
            start_ns=time.time_ns(),
            pair_id=planned.pair_id,
            seed=planned.seed,
            task=task.env,
            policy=entry.name,
            policy_digest=policy.digest,
            side=self.config.side.value,
            robot=self.config.name,
        )

    def _play(
        self,
        env: RosRobotEnv,
        observation: Any,
        planned: PlannedEpisode,
        played: Played,
        policy: Policy,
    ) -> None:
        injections = injections_of(self.plan, planned)
        with aside():
            while not (played.terminated or played.truncated):
                tick = len(played.rewards)
                for injection in injections:
                    if injection.tick == tick:
                        _disturb(self.stagehand, injection)
                        played.injected.append((tick, injection))
                queued_s = _queued_s(policy)
                action = policy.act(observation)
                env.timing.queued(_queued_s(policy) - queued_s)
                observation, reward, played.terminated, played.truncated, played.info = _stepped(
                    env, action
                )
                if "end_reason" not in played.info:
                    played.rewards.append(float(reward))
                self.check()


def without_strangers(attempt: Attempt, trips: Sequence[Trip]) -> Attempt:
    """The attempt, or a void one if the guard heard another author than the policy in it.

    Args:
        attempt: How it went.
        trips: What the guard reported of it.
    """
    for trip in trips:
        if trip.code == OTHER_AUTHOR and attempt.end_reason is not EndReason.VOID:
            return Attempt(end_reason=EndReason.VOID, detail=f"{OTHER_AUTHOR}: {trip.text}")
    return attempt


def _witnessed(
    score: Attempt, recordings: Recordings, trace: Trace | None, **row: float
) -> Attempt:
    """The attempt, or a lost one if its recording does not bear it out."""
    if trace is None or not score.end_reason.is_final:
        return score
    lacking = recordings.lacks(trace, **row)
    if lacking is None:
        return score
    return Attempt(end_reason=EndReason.LOST, detail=f"the recording {lacking}")


def _is_of(trip: Trip, planned: PlannedEpisode) -> bool:
    return trip.values.get("episode_id", "") in ("", planned.episode_id)


def _drained(link: RobotLink) -> tuple[Trip, ...]:
    """What the guard reported since it was asked last, also of the end of the episode before."""
    trips = tuple(link.trips)
    link.trips.clear()
    return trips


def _counts(link: RobotLink) -> dict[str, float]:
    """How many requests the guard has clamped and refused so far."""
    return {
        f"{name}_requests": float(link.guard.values.get(name, 0)) for name in ("clamped", "refused")
    }


def _set_up(
    env: RosRobotEnv,
    planned: PlannedEpisode,
    planned_start: dict[str, Any] | None,
    stagehand: Stagehand,
) -> None:
    """Have the scene set up, as often as somebody is there who can mend it."""
    options = None if planned.start is None else {"state": dict(planned.start)}
    expected = planned_start if planned.start is None else dict(planned.start)
    while True:
        try:
            state = env.prepare(seed=planned.seed, episode_id=planned.episode_id, options=options)
            problem = None if expected is None else env.deviation_problem(state, expected)
            if problem is None:
                return
            raise CheckFailedError(f"the start is not the planned one: {problem}")
        except (RobotLostError, RobotStuckError):
            raise
        except CheckFailedError as err:
            if not stagehand.again(str(err)):
                raise


def _start(env: RosRobotEnv, policy: Policy, seed: int) -> Any:
    """Open the guard with a policy that is warm: its first answer may take seconds."""
    with aside():
        policy.reset(seed=seed)
        policy.act(env.observe())
        policy.reset(seed=seed)
    return env.start()


def _queued_s(policy: Policy) -> float:
    """How long policy and conductor have waited for a processor, seconds; see `ConfinedPolicy`."""
    return float(getattr(policy, "queued_s", 0.0))


def _stepped(env: RosRobotEnv, action: Any) -> tuple[Any, Any, bool, bool, Any]:
    """A step; what it raises for no action of the task is the policy's fault."""
    try:
        return env.step(action)
    except (RobotLostError, RobotStuckError, InterruptedRunError):
        raise
    except Exception as err:
        if is_action(env.action_space, action):
            raise
        raise PolicyError(said(err)) from err


def _fault_by(err: BaseException) -> FaultBy:
    """Who an error inside an episode is by."""
    if isinstance(err, PolicyError):
        return err.fault_by
    return FaultBy.TIME if isinstance(err, TimeoutError) else FaultBy.SETUP


def _disturb(stagehand: Stagehand, injection: Injection) -> None:
    if injection.fault == "estop":
        stagehand.disturb("estop", pressed=True)
    else:
        stagehand.disturb(injection.fault, ticks=injection.ticks)


def _score(plan: TrialPlan, planned: PlannedEpisode, played: Played, late_ticks: int) -> Attempt:
    """How it ended; nobody's failure nor success if the computer was late too often."""
    if plan.max_missed_ticks is not None and late_ticks > plan.max_missed_ticks:
        text = f"{late_ticks} control ticks were late, {plan.max_missed_ticks} are allowed"
        return Attempt(end_reason=EndReason.VOID, detail=f"{LATE_COMPUTER}: {text}")
    task, _ = task_and_policy(plan, planned)
    end_reason, quality, episode_return = score_played(
        task,
        played.rewards,
        terminated=played.terminated,
        truncated=played.truncated,
        info=played.info,
    )
    cause = played.info.get("cause")
    return Attempt(
        end_reason=end_reason,
        detail=f"guard: {cause}" if cause else None,
        quality=quality,
        success=end_reason is EndReason.SUCCESS,
        episode_return=episode_return,
    )


def _measures_of(policy: Policy) -> dict[str, float]:
    """What a policy says about the episode, such as how long its answers travelled."""
    measures = getattr(policy, "measures", None)
    if not callable(measures):
        return {}
    try:
        with aside():
            return {
                str(name): float(value)
                for name, value in measures().items()
                if math.isfinite(value)
            }
    except Exception:  # noqa: BLE001 - the episode is played; its row is not lost for this
        return {}


def _faults(played: Played, score: Attempt, config: RobotConfig) -> list[dict[str, Any]]:
    """What was injected, but for emergency stops: no robot is to overcome those."""
    ticks = len(played.rewards)
    return [
        {
            "fault": injection.fault,
            "recovered": bool(score.success) or ticks >= tick + injection.ticks + _RECOVERED_TICKS,
            "duration_s": injection.ticks / config.control_rate_hz,
        }
        for tick, injection in played.injected
        if injection.fault != "estop"
    ]


def _detail(err: BaseException, tick: int) -> str:
    """What broke, in one line, and where."""
    if isinstance(err, PolicyError):
        text, place = str(err), err.place
    else:
        frame = traceback.extract_tb(err.__traceback__)[-1]
        text, place = said(err), f"{Path(frame.filename).name}:{frame.lineno}, "
    return f"{text} ({place}tick {tick})".encode("utf-8", "replace").decode()
