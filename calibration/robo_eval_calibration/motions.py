"""Which motion to record next, and what it would tell: each is simulated before anybody moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from robo_eval.agents import agent_names, make_agent
from robo_eval.core.errors import InputError
from robo_eval.core.plan import read_plan
from robo_eval.core.task import TaskSpec
from robo_eval_calibration.expected import Expected, expected
from robo_eval_calibration.innovations import Model, nominal_of
from robo_eval_calibration.recordings import LEAST_TICKS, Array, Gathered, Recording, channels_of

_BESIDE: Final = 6
"""Recordings there are that a motion is looked at beside, at most."""
_EPISODES: Final = 4
_NAME: Final = "What to record next of"
_SEEDS: Final = (500_000, 500_001)
"""Of each motion that is simulated: far from those that plans begin with, so that no start is
recorded twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """What to record next.

    Attributes:
        policy: Agent that moves so.
        singular_value: How well what is told worst would be told: standard deviations by which
            errors change where constants change by what is wanted.
        without: The same of the recordings there are, of 6 at most.
        plan: A plan file.
    """

    policy: str
    singular_value: float
    without: float
    plan: str


def next_motion(
    gathered: Gathered,
    now: Expected,
    model: Model,
    noise: Mapping[str, float],
    given: Mapping[str, float],
) -> Motion | None:
    """The motion that tells most beside the recordings there are; None if none tells more.

    Args:
        gathered: The recordings.
        now: What they tell.
        model: The simulator.
        noise: Of sensors and hidden force, by constant.
        given: Constants that are known.
    """
    import gymnasium

    task, example = gathered.task, gathered.recordings[0]
    nominal = nominal_of(task)
    # Which motion tells most is the same beside more of them, and takes no longer to say.
    there = gathered.recordings[:_BESIDE]
    if len(there) < len(gathered.recordings):
        now = expected(model, there, nominal, noise, given)
    told = {"": now}
    env = gymnasium.make(task.env, **dict(example.keywords), constants=dict(noise))
    for policy in _agents(task):
        played = [simulated(env, task, policy, seed)[0] for seed in _SEEDS]
        # Such as would be refused as recordings tell nothing. What drives apply is told as there.
        played = [
            replace(one, efforts=None if example.efforts is None else one.commands)
            for one in played
            if one.ticks >= LEAST_TICKS and np.ptp(one.commands, axis=0).any()
        ]
        told[policy] = expected(model, [*there, *played], nominal, noise, given)
    env.close()
    policy = max(told, key=lambda name: told[name].singular_value)
    if not policy:
        return None
    plan = {
        "name": f"{_NAME} {example.robot}",
        "tasks": [{"env": task.env, "levels": [0], "kwargs": _own(example)}],
        "policies": [policy],
        "episodes": _EPISODES,
        "seeds": {"first": _SEEDS[0]},
        "sides": [example.side],
        "traces": "all",
    }
    return Motion(
        policy=policy,
        singular_value=told[policy].singular_value,
        without=now.singular_value,
        plan=yaml.safe_dump(plan, sort_keys=False),
    )


def check_plan(path: Path) -> None:
    """Refuse a file that holds no plan of what to record next.

    Raises:
        InputError: If it is none.
    """
    if not read_plan(path).name.startswith(_NAME):
        raise InputError(f"{path}: is another plan")


def _agents(task: TaskSpec) -> list[str]:
    """Agents that play this task alone."""
    folder = task.environment.split(".")[-2]
    made = {name: type(make_agent(name)).__module__.split(".") for name in agent_names()}
    return [name for name, place in made.items() if folder in place]


def _own(example: Recording) -> dict[str, Any]:
    """Keywords that a task of a plan has no key of its own for: those that make the same robot."""
    taken = ("level", "difficulty", "profile", "novelty", "max_episode_steps", "action_mode")
    kept = {name: value for name, value in example.keywords.items() if name not in taken}
    return kept | ({"constants": dict(example.constants)} if example.constants else {})


def simulated(
    env: Any,
    task: TaskSpec,
    policy: str,
    seed: int,
) -> tuple[Recording, Array]:
    """An episode of an agent in an environment, as its sensors saw it, and all they saw."""
    agent = make_agent(policy)
    agent.reset(seed=seed)
    seen, _ = env.reset(seed=seed)
    start, rows, actions, is_over = env.unwrapped.physical_state(), [seen], [], False
    while not is_over:
        actions.append(agent.act(seen))
        seen, _, terminated, truncated, _ = env.step(actions[-1])
        rows.append(seen)
        is_over = terminated or truncated
    every = np.array(rows, dtype=np.float64)
    played = Recording(
        id=f"{policy}-{seed}",
        env=task.env,
        side="sim",
        stamp_ns=np.arange(len(rows)) * round(1e9 * task.tick_s),
        states=channels_of(task, every),
        commands=np.array(task.pushes)[actions] if task.pushes else np.array(actions, dtype=float),
        start=start,
    )
    return played, every
