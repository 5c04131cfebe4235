"""The engine is set up with the masses, inertias and contact rules of the published program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pybullet
import pytest

from robo_eval_sim.novelty import levels
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL
from robo_eval_sim.tasks.cartpole3d.physics import LEVEL_0, Physics, cylinder_inertia
from robo_eval_sim.tasks.cartpole3d.scene import World

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
STILL = (0.0, 0.0, 0.0)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def row(
    *balls: tuple[float, ...],
    cart: tuple[float, ...] = (0, 0, 0, 0),
    quat: tuple[float, ...] = UPRIGHT,
    rate: tuple[float, ...] = STILL,
) -> tuple[float, ...]:
    flat = [part for ball in balls for part in ball]
    return tuple(map(float, (*cart, *quat, *rate, len(balls), *flat)))


def test_push_on_a_resting_cart(world: World) -> None:
    """Effective inertia 1.00781 kg: 10 N during 0.02 s give 0.19845 m/s."""
    world.prepare()
    world.place(row())
    world.push_cart((10.0, 0.0, 0.0))
    assert world.tick()[2] == pytest.approx(0.19845, abs=5e-6)
    assert pytest.approx(1.00781, abs=5e-6) == 0.2 / 0.198450390


def test_inertias_of_cart_pole_and_ball(world: World) -> None:
    world.prepare()
    cart = pybullet.getDynamicsInfo(world._robot, 1, world._client)
    pole = pybullet.getDynamicsInfo(world._robot, 2, world._client)
    ball = pybullet.getDynamicsInfo(world._balls[0], -1, world._client)
    np.testing.assert_allclose(cart[2], (0.0878727, 0.0878727, 0.1686727), atol=5e-8)
    np.testing.assert_allclose(pole[2], (0.00846993, 0.00846993, 7.26e-5), atol=5e-9)
    np.testing.assert_allclose(ball[2], (0.1, 0.1, 0.1), atol=1e-12)
    assert (cart[0], pole[0], ball[0]) == (1.0, 0.1, 1.0)
    assert pole[3] == (0.0, 0.0, 1.0)
    np.testing.assert_allclose(cart[2], NOMINAL.cart_inertia_kg_m2, rtol=1e-6)
    np.testing.assert_allclose(pole[2], NOMINAL.pole_inertia_kg_m2, rtol=1e-6)


@pytest.mark.parametrize(
    ("length", "moment"), [(3.0, 0.0753366), (5.0, 0.2088699), (8.0, 0.5341699)]
)
def test_inertia_of_longer_poles(length: float, moment: float) -> None:
    assert cylinder_inertia(0.1, 0.03, length)[0] == pytest.approx(moment, abs=5e-8)


def test_inertia_of_the_cart_scales_with_its_mass() -> None:
    light, heavy = cylinder_inertia(1.0, 0.5, 0.2), cylinder_inertia(10.0, 0.5, 0.2)
    np.testing.assert_allclose(heavy, 10 * np.array(light))


def test_a_ball_slows_down_by_damping_alone(world: World) -> None:
    world.prepare()
    world.place(row((0.0, 3.0, 5.0, 14.0, 0.0, 0.0)))
    after = world.tick()
    assert after[15] == pytest.approx(14.0 * (1 - 0.0008 * 15.0), abs=1e-6)
    assert after[12] == pytest.approx(0.02 * after[15], abs=1e-12)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_bounce_off_each_wall(world: World, axis: int, sign: int) -> None:
    """v_out = -v_damped - 4 (depth - 1e-5), depth being that at the start of the tick."""
    world.prepare()
    wall = (4.95, 4.95, 9.95 if sign > 0 else 0.05)[axis]
    at = [0.0, 2.0, 5.0]
    depth = 0.1
    at[axis] = sign * (wall - 0.5 + depth)
    speed = [0.0, 0.0, 0.0]
    speed[axis] = sign * 8.0
    world.place(row((*at, *speed)))
    after = world.tick()
    damped = 8.0 * (1 - 0.0008 * 9.0)
    assert after[15 + axis] == pytest.approx(-sign * (damped + 4 * (depth - 1e-5)), abs=1e-3)
    others = [after[15 + other] for other in range(3) if other != axis]
    np.testing.assert_allclose(others, 0.0, atol=1e-9)


def test_slow_balls_do_not_bounce(world: World) -> None:
    world.prepare()
    world.place(row((4.45, 2.0, 5.0, 0.15, 0.0, 0.0)))
    assert abs(world.tick()[15]) < 0.02


def test_balls_exchange_their_speeds_when_they_meet(world: World) -> None:
    world.prepare()
    world.place(row((-0.499, 3.0, 5.0, 5.0, 0, 0), (0.499, 3.0, 5.0, -3.0, 0, 0)))
    after = world.tick()
    damped = (5.0 * (1 - 0.0008 * 6.0), 3.0 * (1 - 0.0008 * 4.0))
    # Each also gets half of what pushes them out of each other.
    assert after[15] == pytest.approx(-damped[1], abs=0.02)
    assert after[21] == pytest.approx(damped[0], abs=0.02)


def test_a_ball_that_hits_the_cart_does_not_bounce(world: World) -> None:
    """Along the contact both move equally fast afterwards, but for what parts them."""
    world.prepare()
    # The ball's centre is above the cart: it touches the upper edge, 0.15 m below its centre.
    reach = 0.5 + math.sqrt(0.5**2 - 0.15**2)
    world.place(row((-reach + 0.001, 0.0, 0.45, 6.0, 0.0, 0.0)))
    after = world.tick()
    normal = np.array([math.sqrt(0.5**2 - 0.15**2), 0.0, -0.15]) / 0.5
    apart = np.dot(np.array(after[15:18]) - (after[2], after[3], 0.0), normal)
    assert apart == pytest.approx(0.0, abs=0.1)
    assert after[2] > 1.0
    # What the cart gained is what the ball lost: nothing else takes part along x.
    lost = 6.0 * (1 - 0.0008 * 7.0) - after[15]
    assert 1.00781 * after[2] == pytest.approx(lost, rel=0.02)


def test_nothing_turns_balls(world: World) -> None:
    world.prepare()
    balls = [(-2.0, 0.1, 1.0, 9.0, 0.3, 0.2), (3.0, 0.3, 1.2, -8.0, 0.0, 0.1)]
    world.place(row(*balls))
    for _ in range(60):
        world.tick()
    for ball in world._active:
        assert np.abs(pybullet.getBaseVelocity(ball, world._client)[1]).max() < 1e-9


def test_speed_is_limited_to_100_m_s(world: World) -> None:
    world.prepare(Physics(wall_restitution=1.45, ball_restitution=1.45))
    world.place(row((4.4, 2.0, 5.0, 95.0, 0.0, 0.0)))
    fastest = 0.0
    for _ in range(5):
        fastest = max(fastest, abs(world.tick()[15]))
    assert 90.0 < fastest <= 100.0


@pytest.mark.parametrize("profile", ["paper", "compat"])
@pytest.mark.parametrize("level", range(17))
def test_what_the_world_says_is_what_the_engine_has(
    make: Callable, level: int, profile: str
) -> None:
    """Positions of balls are advanced beside the engine, and must not part from it."""
    env = make(level=level, difficulty="hard", profile=profile).unwrapped
    for seed in range(2):
        env.reset(seed=seed)
        for tick in range(120):
            env._advance(tick % 5)
            if tick % 10 == 0:
                assert env._world.read() == env._world.row


def test_force_at_the_pole_s_middle_turns_it(world: World) -> None:
    world.prepare()
    world.place(row(quat=(0.03, 0.0, 0.0, math.sqrt(1 - 0.0009)), rate=(0.2, 0.1, 0.0)))
    at, velocity = world.pole_point(1.0)
    lean = 2 * math.asin(0.03)
    np.testing.assert_allclose(at, (0.0, -math.sin(lean), 0.2 + math.cos(lean)), atol=1e-9)
    lever = np.array(at) - (0, 0, 0.2)
    np.testing.assert_allclose(velocity, np.cross((0.2, 0.1, 0.0), lever), atol=1e-9)
    state = pybullet.getLinkState(world._robot, 2, 1, 1, world._client)
    np.testing.assert_allclose(state[0], at, atol=1e-9)
    np.testing.assert_allclose(state[6], velocity, atol=1e-9)


def test_pool_grows_when_more_balls_are_needed(world: World) -> None:
    world.prepare(LEVEL_0, 2)
    world.place(row(*[(-4 + index, 3, 5, 0, 0, 0) for index in range(2)]))
    world.prepare(LEVEL_0, 9)
    world.place(row(*[(-4 + index, 3, 5, 0, 0, 0) for index in range(9)]))
    assert world.n_balls == 9
    assert not world.add_ball((0, 0, 5), STILL)


def test_a_number_gone_wrong_does_not_outlive_the_episode(world: World) -> None:
    world.prepare()
    world.place(row((2.0, 2.0, 5.0, 1.0, 0, 0)))
    healthy = [world.tick() for _ in range(5)]
    world.push_ball(0, (math.nan, 0.0, 0.0))
    world.push_cart((math.inf, 0.0, 0.0))
    for _ in range(3):
        broken = world.tick()
    assert not np.isfinite(broken).all()
    world.prepare()
    world.place(row((2.0, 2.0, 5.0, 1.0, 0, 0)))
    assert [world.tick() for _ in range(5)] == healthy


def test_every_level_has_an_effect_and_a_range_for_each_profile() -> None:
    for number, level in levels().items():
        for profile in ("paper", "compat"):
            listed = level.as_dict(profile)
            assert listed["level"] == number
            assert listed["effect"]
            assert set(listed["ranges"]) == {"easy", "medium", "hard"}
    ranges = [level.as_dict("paper")["ranges"] for level in levels().values()][1:]
    assert all(len(set(texts.values())) == 3 for texts in ranges)
