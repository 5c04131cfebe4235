"""Which body a twin has, by the tasks of its robot file."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval_robot.config import Perturbation, RobotConfig, read_robot
from robo_eval_sim.tasks.cartpole3d.environment import CartPole3DEnv
from robo_eval_twin.body import body_of
from robo_eval_twin.gantry import Gantry

TEXT = Path(str(files("robo_eval_twin").joinpath("gantry_twin.yaml"))).read_text()
TASK = "RoboEval/CartPole3D-v0"
RECORDED = (-2.37536614496757, -1.3019133277796908, 0.8914859994576995, 0.21594844571510363)
"""Where its joints were after 60 ticks when friction was still a force of the twin's own."""


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
    with pytest.raises(InputError, match=r"cart_x and cart_y, not slide_2;.* `twin: {drive: {}}`"):
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


@pytest.mark.parametrize("profile", ["paper", "compat"])
@pytest.mark.parametrize("level", [0, 7, 14])
def test_what_is_held_at_the_start_stands_at_every_level(level: int, profile: str) -> None:
    """Or no guard that has stopped the episode before could be reset."""
    body = Gantry(Perturbation(), timeout_s=0.5)
    for seed in range(3):
        body.arrange({"level": level, "difficulty": "hard", "profile": profile}, seed=seed)
        readings = [body.tick() for _ in range(5)]
        assert all(each is not None and np.all(each.velocity[:2] == 0.0) for each in readings)
    body.close()


def test_what_it_hides_acts_as_ever() -> None:
    """Masses scale those of any level; friction is the world's and shows in no effort."""
    scale, friction = 1.3, 0.6
    body = Gantry(Perturbation(mass_scale=scale, friction_n_s_m=friction), timeout_s=None)
    plain = CartPole3DEnv(
        balls=0, constants={"cart_mass_kg": 1.0 * scale, "pole_mass_kg": 0.1 * scale}
    )
    for level, mass in ((0, 1.0), (1, 5.0)):
        body.arrange({"level": level}, seed=3)
        assert body._env is not None
        physics = body._env._physics(body._env._drawn)
        assert (physics.cart_mass_kg, physics.pole_mass_kg) == (mass * scale, 0.1 * scale)
    plain.reset(seed=3)
    start = plain.physical_state()
    plain.reset(seed=3, options={"state": start})
    others = {"level": 0, "constants": {"cart_mass_kg": 2.0}}  # a simulator's
    body.arrange(others, seed=3, state=start)
    body.arm()
    rng = np.random.default_rng(1)
    for _ in range(60):
        x, y = rng.uniform(-10.0, 10.0, 2)
        body.hear([x, y])
        reading = body.tick()
        vx, vy = plain.physical_state()["cart_velocity"]
        plain.advance((x - friction * vx, y - friction * vy))
        assert reading is not None
        assert reading.effort[:2].tolist() == [x, y]
        assert reading.position[:2].tolist() == plain.physical_state()["cart_position"]
    assert reading.position == pytest.approx(RECORDED, abs=1e-6)
    body.close()
    plain.close()
