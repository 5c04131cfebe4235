"""Whether each policy of a plan can act on each task, found out before the first episode."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from robo_eval.core.errors import InputError, PlanError, RoboEvalError, said
from robo_eval.core.plan import TrialPlan
from robo_eval.core.policy import Policy, is_action
from robo_eval.core.schedule import PlannedEpisode, policy_seed
from robo_eval.core.task import task_of
from robo_eval.core.wording import counted
from robo_eval.metrics.scoring import reward_of
from robo_eval_sim.beat import Asked
from robo_eval_sim.play import Stage

_STARTS: Final = 3
"""What fails from each of so many starts is refused; from some it is a fault of an episode."""
_TELL_SUCCESS: Final = ("is_success", "success")
"""Keys by which environments of others say in `info` that an episode succeeded."""


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
        self._fresh: gymnasium.Env[Any, Any] | None = None
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
        who = f"policy {entry.name!r}" + (f": factory {entry.factory!r}" if entry.factory else "")
        self._tell(Step(who, Asked.MAKE))
        try:
            policy = self._stage.policy(planned.policy)
        except Exception:
            raise
        except BaseException as err:
            raise InputError(f"{who}: raised {said(err)}") from err
        problem = ""
        for start in range(_STARTS):
            problem = self._problem(policy, replace(planned, seed=planned.seed + start))
            if not problem:
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
            policy.reset(seed=policy_seed(planned.seed))
            self._tell(Step(who, Asked.ACT))
            action = policy.act(copy.deepcopy(observation))
        except BaseException as err:  # noqa: BLE001 - whatever it raises is told
            return (
                f"{who}: {said(err)}; it was given {_described(env.observation_space)}, and"
                f" {_needed(env)}"
            )
        is_one = is_action(env.action_space, action)
        if not is_one and _is_of_another_kind(env.action_space, action):
            return f"{who}: its first action is {_shown(action)}, and {_needed(env)}"
        index = planned.condition.task
        is_known = index in self._stepped or task_of(self._plan.tasks[index].env) is not None
        if is_one and is_known:
            return ""
        self._tell(Step(task))
        try:
            if self._fresh is not env:
                env.reset(seed=planned.seed)
            self._fresh = None
            _, reward, _, _, info = env.step(action)
            reward_of(reward)
            told = [key for key in _TELL_SUCCESS if key in info]
        except (Exception, SystemExit) as err:  # noqa: BLE001 - whatever it raises is told
            if not is_one:
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

    def _start(self, env: gymnasium.Env[Any, Any], planned: PlannedEpisode) -> Any:  # noqa: ANN401
        """What is seen first; of each start once, because building a world takes long."""
        mode = self._plan.policies[planned.policy].action_mode
        key = (planned.condition.task, mode, planned.seed)
        if key not in self._seen:
            observation, info = env.reset(seed=planned.seed)
            if not isinstance(info, Mapping):  # two numbers that were seen can be taken for both
                raise InputError(f"info is {info!r:.60}, and no dict")
            self._seen[key], self._fresh = observation, env
        return self._seen[key]


def _is_of_another_kind(space: gymnasium.Space[Any], action: object) -> bool:
    """Whether an environment that takes this action takes it for something else.

    One may take what its space does not hold: numbers beyond their bounds, or of another type. That
    is for the environment to say, but not how many numbers there are, nor which actions.
    """
    if space.shape is None:
        return False
    try:
        given = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        return True
    if isinstance(space, spaces.Discrete):
        return given.size != 1 or given.item() not in range(*_ends(space))
    return given.size != math.prod(space.shape)


def _ends(space: spaces.Discrete) -> tuple[int, int]:
    return int(space.start), int(space.start + space.n)


def _needed(env: gymnasium.Env[Any, Any]) -> str:
    """What would do, and what to write into a plan where there are several modes."""
    needed = f"{_described(env.action_space)} would do"
    if "action_mode" in inspect.signature(type(env.unwrapped)).parameters:
        needed += "; a policy of another mode needs its `action_mode` in the plan"
    return needed


def _described(space: gymnasium.Space[Any]) -> str:
    if isinstance(space, spaces.Discrete):
        first, end = _ends(space)
        return f"a whole number from {first} to {end - 1}"
    if isinstance(space, spaces.Dict):
        return f"a dict of {', '.join(space)}"
    if not isinstance(space, spaces.Box):
        return f"one of {space!s:.80}"
    shape = counted(math.prod(space.shape), "number")
    if len(space.shape) > 1:
        shape = f"an array of shape {space.shape}"
    low, high = space.low.min(), space.high.max()
    is_uniform = low == space.low.max() and high == space.high.min()
    return f"{shape} from {low:g} to {high:g}" if is_uniform else shape


def _shown(action: object) -> str:
    """An action in short, and how many numbers it is."""
    text = " ".join(repr(action).split())
    size = np.size(action) if isinstance(action, np.ndarray | list | tuple) else 1
    return f"{text:.60}" if size == 1 else f"{size} numbers, {text:.60}"
