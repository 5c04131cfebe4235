"""What a task needs to be played on a robot: how its observation, action and end are made."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Protocol

from gymnasium import spaces

from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import (
    PlannedEpisode,
    environment_keywords,
    schedule,
    task_and_policy,
)
from robo_eval.core.task import tasks
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.snapshot import Snapshot


class Adapter(Protocol):
    """One task on one robot; observations have the simulator's layout and units.

    Attributes:
        observation_space: Of the task in the simulator.
        action_space: Of the task in the simulator.
        tick_s: Control period of the task, seconds.
    """

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    tick_s: float

    def state(self, snapshot: Snapshot, tick: int) -> dict[str, Any]:
        """The physical state, in the form the simulator starts from."""

    def observation(self, state: Mapping[str, Any]) -> Any:
        """What the policy sees of a state."""

    def command(self, action: Any) -> tuple[float, ...]:
        """The command of an action, in the order of the controller's joints."""

    def applied(self, snapshot: Snapshot) -> tuple[float, ...] | None:
        """What the controller applied in the tick that ended here, as the simulator replays it.

        None if the robot does not measure it.
        """

    def reward(self, state: Mapping[str, Any]) -> float:
        """Reward of the tick that ended in this state."""

    def is_over(self, state: Mapping[str, Any], tick: int) -> tuple[bool, bool]:
        """Whether the task terminated the episode, and whether the clock truncated it."""

    def check_start(self, state: Mapping[str, Any]) -> str | None:
        """What keeps an episode from starting here, in a few words; None if nothing does."""

    def deviation(self, state: Mapping[str, Any], planned: Mapping[str, Any]) -> dict[str, float]:
        """How far a start is from the planned one, by the fields a robot file may limit."""


def load_adapter(config: RobotConfig, task: str, keywords: Mapping[str, Any]) -> Adapter:
    """The adapter of a task.

    Args:
        config: The robot.
        task: Gymnasium id.
        keywords: Of the environment.

    Raises:
        UnknownNameError: If the robot does not play the task.
        InputError: If the robot plays nothing, or the adapter cannot be loaded, or cannot play it.
    """
    if not config.tasks:
        raise InputError(
            f"robot {config.name!r}: tasks: there are none, so it cannot play {task}; write an"
            " adapter and name it there, see docs/robots.md"
        )
    if task not in config.tasks:
        raise unknown_name(f"task of robot {config.name!r}", task, config.tasks)
    name = config.tasks[task].adapter
    # Short names are those that the specifications of tasks give.
    known = {short: path for spec in tasks().values() for short, path in spec.adapters.items()}
    path = known.get(name, name)
    module, colon, attribute = path.partition(":")
    where = f"robot {config.name!r}: tasks.{task}.adapter: {name!r}"
    if not colon:
        raise InputError(f"{where}: {unknown_name('adapter', name, known)}")
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as err:
        raise InputError(f"{where}: cannot be loaded: {err}") from err
    adapter: Adapter = kind(config, config.tasks[task], **keywords)
    if abs(adapter.tick_s * config.control_rate_hz - 1.0) > 1e-6:
        raise InputError(
            f"robot {config.name!r}: control_rate_hz: is {config.control_rate_hz:g}, and {task}"
            f" acts {1.0 / adapter.tick_s:g} times a second"
        )
    return adapter


def check_robot(plan: TrialPlan, config: RobotConfig, source: str) -> None:
    """Refuse a plan that this robot cannot play, before anything moves.

    Args:
        plan: The plan.
        config: The robot.
        source: What messages call the robot file.

    Raises:
        PlanError: If the plan asks for another side, a task the robot lacks, or an injection that
            needs a twin; the message names the field.
    """
    physical = [side for side in plan.sides if side is not Side.SIM]
    if physical != [config.side]:
        raise PlanError(
            f"sides: {', '.join(physical)} is planned, and {source} has body: {config.body}, which"
            f" plays side {config.side.value}"
        )
    for index, task in enumerate(plan.tasks):
        if task.env not in config.tasks:
            raise PlanError(
                f"tasks.{index}.env: robot {config.name!r} does not play {task.env}; {source}"
                f" has {', '.join(config.tasks) or 'no tasks yet, see docs/robots.md'}"
            )
    # One episode of each condition and policy: the others differ in what no adapter looks at.
    for planned in {(p.condition, p.policy): p for p in schedule(plan, config.side)}.values():
        task, _ = task_and_policy(plan, planned)
        try:
            load_adapter(config, task.env, task_keywords(plan, planned))
        except (TypeError, InputError) as err:
            raise PlanError(f"tasks.{planned.condition.task}: {err}") from err
    if plan.injections and config.body != "twin":
        raise PlanError("injections: are for a twin; a person does not break a robot on purpose")


def task_keywords(plan: TrialPlan, planned: PlannedEpisode) -> dict[str, Any]:
    """Keywords of a planned episode's task; the plan's time limit is none of them."""
    task, policy = task_and_policy(plan, planned)
    keywords = environment_keywords(task, planned, policy)
    keywords.pop("max_episode_steps", None)
    return keywords
