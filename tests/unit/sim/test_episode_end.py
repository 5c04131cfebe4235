"""When an episode ends, and what it earns."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval_sim.tasks.cartpole3d.layout import has_fallen

LIMIT = math.radians(10.0)


def quat(roll: float, pitch: float, yaw: float) -> tuple[float, ...]:
    """R = Rz Ry Rx as a quaternion xyzw."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
        cr * cp * cy + sr * sp * sy,
    )


@pytest.mark.parametrize("yaw", [0.0, 0.4, -2.0, 3.0])
@pytest.mark.parametrize("other", [0.0, 0.99 * LIMIT, -0.99 * LIMIT])
@pytest.mark.parametrize("sign", [1, -1])
def test_each_axis_has_its_own_limit_of_10_degrees(yaw: float, other: float, sign: int) -> None:
    inside, outside = sign * (LIMIT - 1e-9), sign * (LIMIT + 1e-9)
    assert not has_fallen(*quat(inside, other, yaw))
    assert not has_fallen(*quat(other, inside, yaw))
    assert has_fallen(*quat(outside, other, yaw))
    assert has_fallen(*quat(other, outside, yaw))


def test_both_axes_near_the_limit_is_not_a_fall() -> None:
    """Such a pole leans 14 degrees in all."""
    assert not has_fallen(*quat(0.99 * LIMIT, 0.99 * LIMIT, 0.0))


def test_a_pole_that_is_nowhere_has_fallen() -> None:
    assert has_fallen(math.nan, 0.0, 0.0, 1.0)
    assert has_fallen(1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("axis", "rate"), [(0, [1.0, 0, 0]), (0, [-1.0, 0, 0]), (1, [0, 1.0, 0]), (1, [0, -1.0, 0])]
)
def test_a_fall_terminates(begin: Callable, axis: int, rate: list[float]) -> None:
    env = begin(state={"pole_angular_velocity": rate})
    earned = 0.0
    tick, terminated = 0, False
    while not terminated:
        tick += 1
        observation, reward, terminated, truncated, _ = env.step(0)
        earned += reward
        x, y, z, w = observation[4:8]
        angles = (
            math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
            math.asin(2 * (w * y - x * z)),
        )
        assert terminated == (max(map(abs, angles)) > LIMIT)
        assert not truncated
    assert abs(angles[axis]) > LIMIT
    assert earned == pytest.approx(tick / 200)
    with pytest.raises(InputError, match=f"over after tick {tick}; call reset"):
        env.step(0)


def test_tick_200_truncates_with_performance_1(make: Callable, balance: Callable) -> None:
    env = make(balls=0)
    assert len(balance(env, seed=0, ticks=199, disturbed=0.0)) == 200
    _, _, terminated, truncated, _ = env.step(0)
    assert (terminated, truncated) == (False, True)
    assert env.unwrapped.get_state()["tick"] == 200
    with pytest.raises(InputError, match="over after tick 200"):
        env.step(0)


def test_return_of_a_full_episode_is_1(make: Callable) -> None:
    from robo_eval.agents import make_agent

    env, policy = make(balls=0), make_agent("balancer")
    observation, _ = env.reset(seed=3)
    earned, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        earned += reward
        done = terminated or truncated
    assert earned == pytest.approx(1.0, abs=1e-12)


def test_the_cart_never_ends_an_episode(begin: Callable) -> None:
    env = begin(balls=0, state={"cart_position": [4.3, 0.0], "cart_velocity": [3.0, 0.0]})
    env = env.unwrapped
    for _ in range(4):
        observation = env._observe(env._advance(1))
    assert observation[0] > 4.3
    assert np.isfinite(observation).all()


@pytest.mark.parametrize(("axis", "sign"), [(0, 1), (0, -1), (1, 1), (1, -1)])
def test_walls_stop_the_cart_without_a_bounce(make: Callable, axis: int, sign: int) -> None:
    env = make(balls=0).unwrapped
    position = [0.0, 0.0]
    position[axis] = sign * 4.2
    env.reset(seed=0, options={"state": {"cart_position": position}})
    action = {(0, 1): 1, (0, -1): 2, (1, 1): 3, (1, -1): 4}[axis, sign]
    # The world itself is stepped: the pole falls long before.
    for _ in range(60):
        row = env._advance(action)
    assert sign * row[axis] == pytest.approx(4.449, abs=0.03)
    assert abs(row[2 + axis]) < 0.6
