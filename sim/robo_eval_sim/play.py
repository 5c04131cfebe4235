"""How one planned episode is played in a simulator and becomes a row and a trace."""

from __future__ import annotations

import copy
import math
import re
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np

import robo_eval
from robo_eval.agents import load_policy
from robo_eval.agents.confined import fault_of
from robo_eval.core.canonical import canonical_json
from robo_eval.core.episode import Episode
from robo_eval.core.errors import (
    InputError,
    MissingExtraError,
    PlanError,
    RoboEvalError,
    TrialDirectoryError,
    said,
)
from robo_eval.core.kinds import EndReason, FaultBy
from robo_eval.core.plan import TaskPlan, TrialPlan
from robo_eval.core.policy import Policy, aside, is_action
from robo_eval.core.schedule import (
    PlannedEpisode,
    environment_keywords,
    policy_seed,
    task_and_policy,
)
from robo_eval.core.trials import asked_to_declare, begin_in_trial
from robo_eval.log.motion import trajectory_of
from robo_eval.log.planned_row import (
    declared,
    measured,
    novelty_of,
    physical_state,
    row_for,
    tick_s_of,
)
from robo_eval.log.provenance import software
from robo_eval.log.trace import write_trace
from robo_eval.metrics.scoring import SCORE_VERSION, reward_of, score_played
from robo_eval_sim.beat import Asked, Beat

_KEPT_ENVIRONMENTS: Final = 4
_OURS: Final = Path(__file__).parent
_CORE: Final = Path(robo_eval.__file__).parent
_TICK_CAP: Final = 100_000
"""Where an environment that neither ends nor has a time limit is given up."""


@dataclass(slots=True)
class _Recording:
    """What one episode left behind in memory."""

    observations: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    initial_state: Mapping[str, Any] = field(default_factory=dict)
    novelty: Mapping[str, Any] = field(default_factory=dict)
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    in_step: tuple[Any] | None = None
    declaration: Mapping[str, Any] | None = None

    def is_bad_action(self, space: gymnasium.Space[Any]) -> bool:
        """Whether the world refused a step, and its action was none of the space."""
        return self.in_step is not None and not is_action(space, self.in_step[0])

    def forget_what_no_row_can_hold(self) -> None:
        """Drop a start state or novelty that has no JSON form."""
        for name in ("initial_state", "novelty"):
            try:
                canonical_json(getattr(self, name))
            except InputError:
                setattr(self, name, {})


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How an episode ended, and its score if it has one."""

    end_reason: EndReason
    quality: float | None = None
    success: bool | None = None
    episode_return: float | None = None
    detail: str | None = None
    fault_by: FaultBy | None = None


class Stage:
    """Plays the episodes of one plan, keeping environments and policies between them.

    Args:
        plan: The locked plan.
        plan_digest: Its SHA-256.
        trial: The trial directory; traces go to `traces/` in it.
        beat: Counts the calls of the policies, for who watches them.
    """

    def __init__(
        self,
        plan: TrialPlan,
        plan_digest: str,
        trial: Path,
        *,
        beat: Beat | None = None,
    ) -> None:
        self._plan = plan
        self._plan_digest = plan_digest
        self._trial = trial
        self._beat = beat or Beat()
        self._policies: dict[int, Policy] = {}
        self._environments: OrderedDict[tuple[object, ...], gymnasium.Env[Any, Any]] = OrderedDict()
        self._software = software()

    def close(self) -> None:
        """Close the environments."""
        while self._environments:
            self._environments.popitem()[1].close()

    def policy(self, index: int) -> Policy:
        """The policy with this index in the plan, built on first use."""
        if index not in self._policies:
            entry = self._plan.policies[index]
            with aside():
                self._policies[index] = self._beat.ask(
                    Asked.MAKE,
                    load_policy,
                    name=entry.name,
                    factory=entry.factory,
                    kwargs=entry.kwargs,
                )
        return self._policies[index]

    def _player(self, planned: PlannedEpisode) -> Policy:
        """The policy that plays an episode: each trial has one of its own, as it was made."""
        if planned.trial is not None and planned.trial.episode == 0:
            self._policies.pop(planned.policy, None)
        return self.policy(planned.policy)

    def environment(self, planned: PlannedEpisode) -> gymnasium.Env[Any, Any]:
        """The environment of an episode's condition; the last few are kept open."""
        task, policy = task_and_policy(self._plan, planned)
        keywords = environment_keywords(task, planned, policy)
        key = (task.env, repr(sorted(keywords.items())))
        if key in self._environments:
            self._environments.move_to_end(key)
        else:
            if len(self._environments) >= _KEPT_ENVIRONMENTS:
                self._environments.popitem(last=False)[1].close()
            self._environments[key] = self._make(planned, keywords)
        return self._environments[key]

    def _make(self, planned: PlannedEpisode, keywords: dict[str, Any]) -> gymnasium.Env[Any, Any]:
        task = planned.condition.task
        name = self._plan.tasks[task].env
        try:
            return gymnasium.make(name, **keywords)
        except gymnasium.error.DependencyNotInstalled as err:
            raise MissingExtraError(f"tasks.{task}.env: {name} needs more: {err}") from err
        except (gymnasium.error.Error, ImportError, TypeError, ValueError) as err:
            self._check_mode(planned, err)
            if isinstance(err, InputError) and not isinstance(err, PlanError):
                raise PlanError(f"{self._place_of(planned, err)}: {err}") from err
            if isinstance(err, RoboEvalError):
                raise
            unknown = re.search(r"unexpected keyword argument '(\w+)'", str(err))
            if unknown and unknown[1] in ("level", "difficulty", "profile"):
                raise PlanError(
                    f"tasks.{task}.levels: {name} has no levels; remove `levels` from the task"
                ) from err
            if unknown and unknown[1] == "novelty" and self._plan.tasks[task].axes:
                raise PlanError(
                    f"tasks.{task}.axes: {name} has no axes of novelty; remove `axes` from the task"
                ) from err
            if unknown:
                raise PlanError(
                    f"tasks.{task}.kwargs: {name} has no keyword {unknown[1]!r}"
                ) from err
            reason = str(err).partition("\n")[0].replace("`", "'")
            raise PlanError(
                f"tasks.{task}: {name} cannot be made with {keywords}: {reason}"
            ) from err
        except (Exception, SystemExit) as err:
            if isinstance(err, RoboEvalError):
                raise
            raise PlanError(
                f"tasks.{task}: {name} cannot be made with {keywords}: {said(err)}"
            ) from err

    def _place_of(self, planned: PlannedEpisode, err: InputError) -> str:
        """The field of the plan that an environment refuses."""
        if planned.trial is not None and str(err).startswith("onset"):
            return "trials.onset_tick"
        task = planned.condition.task
        is_of_axes = self._plan.tasks[task].axes and "novelty" in str(err)
        return f"tasks.{task}.{'axes' if is_of_axes else 'kwargs'}"

    def _check_mode(self, planned: PlannedEpisode, err: Exception) -> None:
        """Blame the policy's action mode for what an environment refuses, if that is named."""
        if self._plan.policies[planned.policy].action_mode is None or "action_mode" not in str(err):
            return
        why = str(err)
        if "unexpected keyword" in why:
            name = self._plan.tasks[planned.condition.task].env
            why = f"{name} has no action modes; remove the key"
        raise PlanError(f"policies.{planned.policy}.action_mode: {why}") from err

    def play(self, planned: PlannedEpisode) -> Episode:
        """Play one episode from reset to end, and write its trace if the plan wants it.

        An exception in policy, environment or scoring ends the episode as a `fault` without a
        score; the environment is thrown away, so that the next episode gets a clean one.
        """
        start_ns = time.time_ns()
        recording = _Recording()
        env = self.environment(planned)
        policy = self._player(planned)
        tick_s = tick_s_of(env)
        trace: dict[str, Any] = {}

        self._beat.begin(start_ns, tick_s)
        try:
            keeps = self._may_want_trace(planned)
            with aside():
                _record(env, policy, planned, recording, self._beat, keeps=keeps, plan=self._plan)
            outcome = _score(self._plan.tasks[planned.condition.task], recording)
            if self._wants_trace(planned, outcome.end_reason):
                trace = self._write_trace(env, planned, recording, outcome.end_reason)
        except BaseException as err:
            fault_by = self._fault_by(err, env, recording)
            if fault_by is None:
                raise
            recording.forget_what_no_row_can_hold()
            detail = _detail(err, len(recording.rewards))
            outcome = _Outcome(EndReason.FAULT, detail=detail, fault_by=fault_by)
            self._discard(env)
        finally:
            self._beat.rest()
        ticks = len(recording.rewards)
        duration_s = (time.time_ns() - start_ns) / 1e9 if tick_s is None else ticks * tick_s
        return row_for(
            planned,
            self._plan,
            self._plan_digest,
            policy_digest=policy.digest,
            declaration=recording.declaration,
            start_ns=start_ns,
            duration_s=duration_s,
            ticks=ticks,
            score_version=SCORE_VERSION,
            episode_return=outcome.episode_return,
            quality=outcome.quality,
            success=outcome.success,
            end_reason=outcome.end_reason,
            end_detail=outcome.detail,
            fault_by=outcome.fault_by,
            uninterrupted_actions=ticks,
            **measured(env, recording.info),
            novelty=recording.novelty,
            initial_state=recording.initial_state,
            software=self._software,
            **declared(env),
            **trace,
        )

    def _fault_by(
        self, err: BaseException, env: gymnasium.Env[Any, Any], recording: _Recording
    ) -> FaultBy | None:
        """Who an error inside an episode is by; None if it is none of the episode's."""
        if self._beat.asked is not None:
            return fault_of(err)
        if isinstance(err, TimeoutError):
            return FaultBy.TIME
        is_of_the_run = isinstance(err, OSError | TrialDirectoryError)  # the disk
        if not isinstance(err, Exception | SystemExit) or (
            is_of_the_run and not isinstance(err, ConnectionError)
        ):
            return None
        return FaultBy.POLICY if recording.is_bad_action(env.action_space) else FaultBy.SETUP

    def _may_want_trace(self, planned: PlannedEpisode) -> bool:
        wanted = self._plan.traces
        return wanted in ("all", "first_and_failures") or (wanted == "first" and planned.is_first)

    def _wants_trace(self, planned: PlannedEpisode, end_reason: EndReason) -> bool:
        if not end_reason.is_scored or not self._may_want_trace(planned):
            return False
        is_failure = end_reason is not EndReason.SUCCESS
        return self._plan.traces != "first_and_failures" or planned.is_first or is_failure

    def _write_trace(
        self,
        env: gymnasium.Env[Any, Any],
        planned: PlannedEpisode,
        recording: _Recording,
        end_reason: EndReason,
    ) -> dict[str, Any]:
        seen, done = recording.observations, recording.actions
        trajectory = trajectory_of(env, seen, done, recording.rewards)
        task, policy = task_and_policy(self._plan, planned)
        uri = trace_uri(planned.episode_id)
        end_ns = int(trajectory.stamp_ns[-1])
        events: list[tuple[int, dict[str, Any]]] = [
            (0, {"event": "start", "episode_id": planned.episode_id, "seed": planned.seed}),
            (end_ns, {"event": "end", "end_reason": end_reason.value}),
        ]
        metadata = {
            "episode_id": planned.episode_id,
            "plan_digest": self._plan_digest,
            "task": task.env,
            "policy": policy.name,
            "side": planned.side.value,
            "seed": str(planned.seed),
        }
        sha256 = write_trace(self._trial / uri, trajectory, events=events, metadata=metadata)
        return {"trace_uri": uri, "trace_sha256": sha256}

    def _discard(self, env: gymnasium.Env[Any, Any]) -> None:
        for key, kept in list(self._environments.items()):
            if kept is env:
                del self._environments[key]
        env.close()


def trace_uri(episode_id: str) -> str:
    """Where the trace of an episode is, in the trial directory."""
    return f"traces/{episode_id}.mcap"


def _record(
    env: gymnasium.Env[Any, Any],
    policy: Policy,
    planned: PlannedEpisode,
    recording: _Recording,
    beat: Beat,
    *,
    keeps: bool,
    plan: TrialPlan,
) -> None:
    """Play from reset to end.

    Args:
        env: Where.
        policy: Who.
        planned: What.
        recording: What is noted.
        beat: Counts the calls of the policy.
        keeps: Whether what was seen and done is kept for a trace.
        plan: The plan.
    """
    if hasattr(env.unwrapped, "records_motion"):
        env.unwrapped.records_motion = keeps
    options = None if planned.start is None else {"state": dict(planned.start)}
    observation, recording.info = env.reset(seed=planned.seed, options=options)
    recording.initial_state = physical_state(env)
    recording.novelty = novelty_of(env)
    for value in (recording.initial_state, recording.novelty):
        if not _is_plain(value):
            canonical_json(value)  # raises if a row cannot hold it
    shown = shown_to(plan, planned, recording.novelty)
    beat.ask(Asked.RESET, begin_in_trial, policy=policy, place=planned.trial, shown=shown)
    beat.ask(Asked.RESET, policy.reset, seed=policy_seed(planned.seed))
    rewards = recording.rewards
    act = beat.acting(policy.act)
    keep, keep_action = _copier(env.observation_space), _copier(env.action_space)
    terminated = truncated = False
    has_limit = env.spec is not None and env.spec.max_episode_steps is not None
    if keeps:
        recording.observations.append(keep(observation))
    while not (terminated or truncated):
        action = act(observation)
        try:
            observation, reward, terminated, truncated, recording.info = env.step(action)
            reward = reward_of(reward)
        except BaseException:
            recording.in_step = (action,)
            raise
        if keeps:
            recording.observations.append(keep(observation))
            recording.actions.append(keep_action(action))
        rewards.append(reward)
        if len(rewards) >= _TICK_CAP and not (has_limit or terminated or truncated):
            raise InputError(
                f"{env.spec and env.spec.id} did not end within {_TICK_CAP:,} ticks and has no time"
                " limit; give the task `max_ticks`"
            )
    recording.terminated, recording.truncated = bool(terminated), bool(truncated)
    recording.declaration = beat.ask(
        Asked.DECLARE, asked_to_declare, policy=policy, place=planned.trial
    )


def shown_to(plan: TrialPlan, planned: PlannedEpisode, novelty: object) -> dict[str, Any]:
    """What a policy is told of the novelty of an episode: nothing but where it is the informed.

    That is a copy: whatever it does to it, the log says what was drawn.
    """
    name = plan.policies[planned.policy].name
    is_told = plan.trials is not None and plan.trials.informed == name
    return {"novelty": copy.deepcopy(novelty)} if is_told else {}


def _is_plain(value: Any) -> bool:
    """Whether a value surely has a JSON form: ten times as fast as making it."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return all(map(_is_plain, value))
    if kind is dict:
        return all(type(key) is str and _is_plain(entry) for key, entry in value.items())
    return kind is int or kind is bool or value is None


def _copier(space: gymnasium.Space[Any]) -> Callable[[Any], Any]:
    """What copies a value of a space: it may lie in a buffer that is used again and again."""
    return np.array if isinstance(space, gymnasium.spaces.Box) else copy.deepcopy


def _detail(err: BaseException, tick: int) -> str:
    """What broke, in one line, and where in the code of whoever wrote the policy."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}, "
        for frame in traceback.extract_tb(err.__traceback__)
        if not Path(frame.filename).is_relative_to(_OURS)
        and not Path(frame.filename).is_relative_to(_CORE)
    ]
    text = said(err) + f" ({places[-1] if places else ''}tick {tick})"
    return text.encode("utf-8", "replace").decode()


def _score(task: TaskPlan, recording: _Recording) -> _Outcome:
    end_reason, quality, episode_return = score_played(
        task,
        recording.rewards,
        terminated=recording.terminated,
        truncated=recording.truncated,
        info=recording.info,
    )
    return _Outcome(end_reason, quality, end_reason is EndReason.SUCCESS, episode_return)
