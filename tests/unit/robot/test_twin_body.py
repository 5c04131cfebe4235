"""Which body a twin has, by the tasks of its robot file."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval_robot.config import Perturbation, RobotConfig, read_robot
from robo_eval_twin.body import body_of
from robo_eval_twin.gantry import Gantry

TEXT = Path(str(files("robo_eval_twin").joinpath("gantry_twin.yaml"))).read_text()
TASK = "RoboEval/CartPole3D-v0"


def robot(folder: Path, text: str) -> RobotConfig:
    path = folder / "robot.yaml"
    path.write_text(text)
    return read_robot(path)


def test_the_task_says_it(tmp_path: Path) -> None:
    assert body_of(robot(tmp_path, TEXT)) is Gantry


def test_a_task_of_a_lab_s_own_is_played_on_the_usual_one(tmp_path: Path) -> None:
    assert TASK in TEXT
    assert body_of(robot(tmp_path, TEXT.replace(TASK, "Lab/Own-v0"))) is Gantry


def test_joints_it_does_not_drive_are_refused(tmp_path: Path) -> None:
    other = robot(tmp_path, TEXT.replace("cart_y", "slide_2"))
    with pytest.raises(InputError, match=r"moves cart_x and cart_y, not slide_2"):
        body_of(other)


def test_its_drive_brakes_within_its_own_limits(tmp_path: Path) -> None:
    config = robot(tmp_path, TEXT)
    limits = [limit for name in Gantry.driven if (limit := config.limits(name)) is not None]
    body = Gantry(Perturbation(), timeout_s=0.04)
    body.arm()
    for _ in range(20):
        body.hear([limits[0].effort, -limits[1].effort])
        body.tick()
    while not body.is_braking:
        body.tick()
    readings = [reading for _ in range(100) if (reading := body.tick()) is not None]
    efforts = np.abs([each.effort[:2] for each in readings])
    velocities = np.array([each.velocity[:2] for each in readings])
    accelerations = np.abs(np.diff(velocities, axis=0)) / body.tick_s
    assert np.all(np.abs(velocities[0]) > 2.0)
    assert np.all(efforts <= [each.effort for each in limits])
    assert np.all(accelerations <= [each.acceleration for each in limits])
    assert np.all(np.abs(velocities[-1]) < 0.05)
