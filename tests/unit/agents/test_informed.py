"""The informed agent plays for the robot it is told of, however it is told."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from robo_eval.agents.cartpole3d.informed import told_robot
from robo_eval.agents.registry import make_agent
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL

AXES = [
    ({"gravity": 20.0}, {"gravity_m_s2": 20.0}),
    ({"gravity": 20.0, "cart_mass": 5.0}, {"gravity_m_s2": 20.0, "cart_mass_kg": 5.0}),
    (
        {"cart_mass": 5.0, "pole_length": 1.5},
        {"cart_mass_kg": 5.0, "pole_mass_kg": 1.5 * NOMINAL.pole_mass_kg},
    ),
    ({"ball_size": 0.75}, {}),
]


@pytest.mark.parametrize(("novelty", "told"), AXES)
def test_it_knows_the_robot_of_every_axis(novelty: dict[str, float], told: dict[str, Any]) -> None:
    env = gymnasium.make("RoboEval/CartPole3D-v0", novelty=novelty)
    env.reset(seed=3)
    record = env.unwrapped.novelty  # type: ignore[attr-defined]
    robot = told_robot(record)
    for name in ("gravity_m_s2", "cart_mass_kg", "pole_mass_kg"):
        assert getattr(robot, name) == told.get(name, getattr(NOMINAL, name))
    make_agent("informed").begin_episode({"novelty": record})  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "parameters",
    [
        {"gravity": [20.0, None]},
        {"gravity": "twice"},
        {"gravity": 0.0},
        {"cart_mass": None},
        {"cart_mass": -1.0},
        {"cart_mass": float("nan")},
        {"gravity": {"gravity": {"x": 1.0}}},
    ],
)
def test_what_it_does_not_understand_changes_nothing(parameters: dict[str, Any]) -> None:
    assert told_robot({"name": "else", "parameters": parameters}) == NOMINAL
