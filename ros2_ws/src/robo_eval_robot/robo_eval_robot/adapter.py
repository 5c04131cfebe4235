"""What a task needs to be played on a robot: how its observation, action and end are made."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Protocol

from gymnasium import spaces

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
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

    def observation(self, state: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any space
        """What the policy sees of a state."""

    def command(self, action: Any) -> tuple[float, ...]:  # noqa: ANN401 - any space
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
