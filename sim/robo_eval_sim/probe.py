"""Whether each policy of a plan can act on each task, found out before the first episode."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import isfunction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from robo_eval.agents.remote import RemotePolicy
from robo_eval.agents.session import FAILED
from robo_eval.core.errors import InputError, PlanError, RoboEvalError, said
from robo_eval.core.plan import TrialPlan
from robo_eval.core.policy import Policy, is_action
from robo_eval.core.schedule import PlannedEpisode, policy_seed
from robo_eval.core.task import task_of
from robo_eval.core.trials import METHODS, asked_to_declare, begin_in_trial
from robo_eval.core.wording import counted
from robo_eval.metrics.scoring import reward_of
from robo_eval_sim.beat import Asked
from robo_eval_sim.play import Stage, shown_to

_STARTS: Final = 3
"""What fails from each of so many starts is refused; from some it is a fault of an episode."""
_TELL_SUCCESS: Final = ("is_success", "success")
"""Keys by which environments of others say in `info` that an episode succeeded."""

_OF_NUMBERS: Final = (spaces.Box, spaces.Discrete, spaces.MultiBinary, spaces.MultiDiscrete)


class Step(NamedTuple):
    """What is about to be done, for who waits for it.

    Attributes:
        where: What messages about it begin with.
        asked: What the policy is asked for; None if it is the environment's turn.
        problem: What did not happen if it takes too long, where that is not what a run says then.
    """

    where: str
    asked: Asked | None = None
    problem: str = ""


def probe(
    _hears: Connection,
    pipe: Connection,
    plan: TrialPlan,
    worlds: Sequence[PlannedEpisode],
    meetings: Sequence[PlannedEpisode],
) -> None:
    """Make environments, then have policies give one action each; say each `Step` in advance.

    Remarks are said as text. The last thing said is None, or the error that refuses the plan.

    Args:
        pipe: Where it speaks.
        plan: The plan.
        worlds: Episodes whose environments are made.
        meetings: Episodes whose policy is asked for its first action.
    """
    try:
        found = _Probe(plan, pipe)
        for planned in worlds:
            found.environment(planned)
        for planned in meetings:
            found.meet(planned)
        pipe.send(None)
    except RoboEvalError as err:
        pipe.send(err)


class _Probe:
    def __init__(self, plan: TrialPlan, pipe: Connection) -> None:
        self._plan = plan
        self._tell = pipe.send
        self._stage = Stage(plan, "", Path())
        self._seen: dict[tuple[object, ...], Any] = {}
        self._stepped: set[int] = set()

    def environment(self, planned: PlannedEpisode) -> gymnasium.Env[Any, Any]:
        """The environment of an episode."""
        self._tell(Step(self._task(planned), problem="was not made"))
        return self._stage.environment(planned)

    def meet(self, planned: PlannedEpisode) -> None:
        """Have a policy give one action for what it sees first in an episode.

        Raises:
            PlanError: If none comes, or it is none for this environment, from each of some starts.
        """
        entry = self._plan.policies[planned.policy]
        where = f"policies.{planned.policy}.{'factory' if entry.factory else 'name'}"
        made = entry.factory or entry.name
        self._tell(Step(f"{where}: policy {entry.name!r}: {made!r}", Asked.MAKE, "did not return"))
        try:
            policy = self._stage.policy(planned.policy)
        except InputError as err:
            raise PlanError(f"{where}: {err}") from err
        if isinstance(policy, RemotePolicy):
            policy.is_tried = True
        problem = ""
        for start in range(_STARTS):
            problem = self._problem(policy, replace(planned, seed=planned.seed + start))
            if not problem:
                self._check_declaration(policy, planned)
                return
        raise PlanError(problem)

    def _task(self, planned: PlannedEpisode) -> str:
        index = planned.condition.task
        return f"tasks.{index}.env: {self._plan.tasks[index].env}"

    def _problem(self, policy: Policy, planned: PlannedEpisode) -> str:
        """Why the first action of an episode cannot be played; empty if it can."""
        task = self._task(planned)
        env = self.environment(planned)
        self._tell(Step(task))
        try:
            observation = self._start(env, planned)
        except (Exception, SystemExit) as err:  # noqa: BLE001 - whatever it raises is told
            return (
                f"{task}: reset(seed={planned.seed}) fails: {said(err)}; it has to give two values:"
                " observation and info"
            )
        who = f"policies.{planned.policy}: {policy.name!r} cannot act on {task}"
        try:
            self._tell(Step(who, Asked.RESET))
            shown = shown_to(self._plan, planned, getattr(env.unwrapped, "novelty", None))
            begin_in_trial(policy, planned.trial, shown)
            policy.reset(seed=policy_seed(planned.seed))
            self._tell(Step(who, Asked.ACT))
            action = policy.act(copy.deepcopy(observation))
        except BaseException as err:  # noqa: BLE001 - whatever it raises is told
            method = (getattr(err, "__notes__", None) or [""])[-1]
            if method in METHODS:
                return f"policies.{planned.policy}: {policy.name!r}: {method}() raised {said(err)}"
            return (
                f"{who}: {said(err)}; it was given {_described(env.observation_space)}, and"
                f" {_needed(env)}"
            )
        space = env.action_space
        if _is_of_another_kind(space, action):
            return f"{who}: its first action is {_shown(action)}, and {_needed(env)}"
        is_box = isinstance(space, spaces.Box)
        is_one = is_action(space, np.asarray(action, space.dtype) if is_box else action)
        index = planned.condition.task
        is_known = index in self._stepped or task_of(self._plan.tasks[index].env) is not None
        if is_one and is_known:
            return ""
        self._tell(Step(task))
        is_stepped = False
        try:
            env.reset(seed=planned.seed)
            given = env.step(action)
            is_stepped = True
            _, reward, _, _, info = given
            reward_of(reward)
            told = [key for key in _TELL_SUCCESS if key in info]
        except (Exception, SystemExit) as err:  # noqa: BLE001 - whatever it raises is told
            if not is_one and not is_stepped:
                why = said(err, named=not isinstance(err, RoboEvalError))
                return f"{who}: {why}; its first action is {_shown(action)}, and {_needed(env)}"
            return (
                f"{task}: step({_shown(action)}) fails: {said(err)}; it has to give five values:"
                " observation, reward (a finite number), terminated, truncated and info"
            )
        if told and not is_known and self._plan.tasks[index].success is None:
            self._tell(
                f"{task} tells success by info[{told[0]!r}], and the plan counts it by quality;"
                f" write `success: {told[0]}` into the task to count what the environment tells"
            )
        self._stepped.add(index)
        return ""

    def _check_declaration(self, policy: Policy, planned: PlannedEpisode) -> None:
        """Refuse a policy of a trial that declares what cannot be used; tell what it raises.

        One action is less than an episode, and may be too little to go by.

        Raises:
            PlanError: If what it declares cannot be used.
        """
        if planned.trial is None:
            return
        who = f"policies.{planned.policy}: {policy.name!r}"
        self._tell(Step(who, Asked.DECLARE))
        try:
            asked_to_declare(policy, planned.trial)
        except BaseException as err:
            if isinstance(err, RoboEvalError) and FAILED not in str(err):
                raise PlanError(f"{who}: {err}") from err
            self._tell(
                f"{who}: declare() raised {said(err)} after one action; after an episode, that is"
                " a fault by the policy"
            )

    def _start(self, env: gymnasium.Env[Any, Any], planned: PlannedEpisode) -> Any:
        """What is seen first; of each start once, because building a world takes long."""
        mode = self._plan.policies[planned.policy].action_mode
        key = (planned.condition.task, mode, planned.seed)
        if key not in self._seen:
            observation, info = env.reset(seed=planned.seed)
            if not isinstance(info, Mapping):  # two numbers that were seen can be taken for both
                raise InputError(f"info is {info!r:.60}, and no dict")
            self._seen[key] = observation
        return self._seen[key]


def _is_of_another_kind(space: gymnasium.Space[Any], action: object) -> bool:
    """Whether an environment that takes this action takes it for something else.

    One may take what its space does not hold: numbers beyond their bounds, or of another type. That
    is for the environment to say, but not how many numbers there are, that each is one, nor which
    actions.
    """
    if not isinstance(space, _OF_NUMBERS):
        return False
    try:
        given = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        return True
    if isinstance(space, spaces.Discrete):
        return given.size != 1 or given.item() - space.start not in range(int(space.n))
    return given.size != math.prod(space.shape or ()) or not np.isfinite(given).all()


def _needed(env: gymnasium.Env[Any, Any]) -> str:
    """What would do, and what to write into a plan where there are several modes."""
    needed = f"{_described(env.action_space)} would do"
    made_by = [vars(kind).get("__init__") for kind in type(env.unwrapped).__mro__]
    if any("action_mode" in made.__code__.co_varnames for made in made_by if isfunction(made)):
        needed += "; a policy of another mode needs its `action_mode` in the plan"
    return needed


def _described(space: gymnasium.Space[Any]) -> str:
    if isinstance(space, spaces.Discrete):
        return f"a whole number from {space.start} to {space.start + space.n - 1}"
    if isinstance(space, spaces.Box):
        return counted(math.prod(space.shape), "number")
    return f"one of {space!s:.80}"


def _shown(action: object) -> str:
    """An action in short, and how many numbers it is."""
    text = " ".join(repr(action).split())
    size = np.size(action) if isinstance(action, np.ndarray | list | tuple) else 1
    return f"{text:.60}" if size == 1 else f"{size} numbers, {text:.60}"
