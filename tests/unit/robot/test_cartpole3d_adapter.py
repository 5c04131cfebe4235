"""What a policy may answer on a robot is what it may answer in the simulator."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval_robot.adapter import Adapter, load_adapter
from robo_eval_robot.config import read_robot
from robo_eval_sim.tasks.cartpole3d.layout import PUSHES

TASK = "RoboEval/CartPole3D-v0"


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    twin = read_robot(Path(str(files("robo_eval_twin").joinpath("gantry_twin.yaml"))))
    return load_adapter(twin, TASK, {"balls": 0})


@pytest.mark.parametrize("kind", [int, np.int64, np.uint8, np.array])
def test_every_integer_is_an_action(adapter: Adapter, kind: Any) -> None:
    """`predict` of Stable-Baselines3 gives an array without dimensions."""
    for action, push in enumerate(PUSHES):
        assert adapter.command(kind(action)) == push


@pytest.mark.parametrize(
    "action", [5, -1, 1.0, True, np.bool_(True), np.array(2.0), np.array([1]), None, "1"]
)
def test_everything_else_is_refused(adapter: Adapter, action: Any) -> None:
    with pytest.raises(InputError, match="whole number from 0 to 4"):
        adapter.command(action)
