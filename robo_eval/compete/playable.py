"""Whether a competition can be played, asked before anything is begun."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import gymnasium

from robo_eval.agents import load_policy
from robo_eval.compete.competition import Competition, check_sense
from robo_eval.compete.spaces import action_of
from robo_eval.core.errors import InputError, PlanError, said
from robo_eval.core.schedule import condition_keywords
from robo_eval.core.task import limit_problem, task_of
from robo_eval.core.trials import call_if_there
from robo_eval.log.planned_row import novelty_of

if TYPE_CHECKING:
    from robo_eval.core.plan import PlannedCondition, TaskPlan


def check_playable(
    competition: Competition, source: str, *, envs: bool = True, baselines: bool = True
) -> None:
    """Make each environment once, and have each baseline act in it: before anything is begun.

    Args:
        competition: What is to be played.
        source: What messages call it.
        envs: Whether environments can be made on this machine.
        baselines: Whether the baselines play as well.

    Raises:
        PlanError: If something cannot be played; the message names the field.
    """
    check_sense(competition, source)
    agents = []
    for at, policy in enumerate(competition.baselines if baselines else ()):
        where = f"{source}: baselines.{at}"
        try:
            agents.append((where, load_policy(policy.name, policy.factory, policy.kwargs)))
        except InputError as err:
            raise PlanError(f"{where}: {err}") from err
    for at, task in enumerate(competition.tasks):
        where = f"{source}: tasks.{at}"
        problem = limit_problem(task_of(task.env), task.env, task.max_ticks)
        if problem is not None:
            raise PlanError(f"{where}.max_ticks: {problem}")
        # Names of levels were looked up; how large a novelty may be only its environment knows.
        novel = [one for one in competition.cells() if one.task == at and one.novelty]
        for condition in (*novel, competition.plan().nominal(at)) if envs else ():
            with contextlib.closing(_made(where, task, condition)) as env:
                for who, agent in () if condition.novelty else agents:
                    _check_acts(who, agent, task.env, env)


def _made(where: str, task: TaskPlan, condition: PlannedCondition) -> gymnasium.Env[Any, Any]:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # modules may print while they load
            return gymnasium.make(task.env, **condition_keywords(task, condition))
    except (Exception, SystemExit) as err:
        is_unknown = isinstance(err, ImportError | gymnasium.error.UnregisteredEnv)
        own = "env" if is_unknown or not task.kwargs else "kwargs"
        field = "axes" if condition.novelty else own
        raise PlanError(f"{where}.{field}: {task.env} cannot be made: {said(err)}") from err


def _check_acts(where: str, agent: Any, name: str, env: gymnasium.Env[Any, Any]) -> None:
    try:
        observation, _ = env.reset(seed=0)
        call_if_there(agent, "begin_trial")
        novelty = novelty_of(env)
        call_if_there(agent, "begin_episode", {"novelty_indicator": None, "novelty": novelty})
        call_if_there(agent, "reset")
        action = agent.act(observation)
        action_of(env.action_space, action)
    except Exception as err:
        why = said(err, named=not isinstance(err, InputError))
        raise PlanError(
            f"{where}: does not play {name}: {why}; leave it out, or name one that does"
        ) from err
