"""Episodes start as they should, and alike at every level."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Profile
from robo_eval_sim.tasks.cartpole3d.draws import Starts, draw_start
from robo_eval_sim.tasks.cartpole3d.start import Start, pole_frame
from robo_eval_sim.tasks.cartpole3d.state import read_state, write_history

DRAWS = 3000
ALMOST_NEVER = 1e-4


@pytest.fixture(scope="module")
def starts() -> list[Start]:
    rng = np.random.default_rng(20)
    draws = Starts()
    # Some as after a seed, most as those that follow.
    return [
        Start.from_row(*draws.take(rng, is_fresh=index % 50 == 0)[:2]) for index in range(DRAWS)
    ]


def is_uniform(values: object, low: float, high: float) -> bool:
    values = np.asarray(values)
    assert low <= values.min() <= values.max() <= high
    return stats.kstest(values, "uniform", args=(low, high - low)).pvalue > ALMOST_NEVER


def test_cart_and_pole_are_uniform(starts: list[Start]) -> None:
    position = np.array([start.cart_position for start in starts])
    force = np.array([start.cart_force for start in starts])
    quat = np.array([start.pole_quat_xyzw for start in starts])
    rate = np.array([start.pole_angular_velocity for start in starts])
    for axis in range(2):
        assert is_uniform(position[:, axis], -3, 3)
        assert is_uniform(force[:, axis], -1, 1)
        assert is_uniform(rate[:, axis], -0.01, 0.01)
    for axis in range(3):
        assert is_uniform(quat[:, axis] / quat[:, 3], -0.01, 0.01)
    np.testing.assert_allclose(np.linalg.norm(quat, axis=1), 1.0, atol=1e-15)
    assert not rate[:, 2].any()
    assert not any(any(start.cart_velocity) for start in starts)


def test_two_to_four_balls_equally_often(starts: list[Start]) -> None:
    counts = np.bincount([len(start.balls) for start in starts], minlength=5)
    assert counts[:2].tolist() == [0, 0]
    assert stats.chisquare(counts[2:]).pvalue > ALMOST_NEVER


def test_balls_are_uniform_and_keep_their_distance(starts: list[Start]) -> None:
    balls = [(start, ball) for start in starts for ball in start.balls]
    positions = np.array([ball.position for _, ball in balls])
    velocities = np.array([ball.velocity for _, ball in balls])
    carts = np.array([start.cart_position for start, _ in balls])
    assert np.hypot(*(positions[:, :2] - carts).T).min() >= 1.0
    assert np.abs(positions[:, :2]).max() <= 4.0
    assert np.abs(positions[:, :2]).max() > 3.9
    assert is_uniform(positions[:, 2], 1, 9)
    for axis in range(3):
        assert is_uniform(np.abs(velocities[:, axis]), 6, 10)
        assert 0.45 < (velocities[:, axis] > 0).mean() < 0.55
    between = [
        np.linalg.norm(np.subtract(a.position, b.position))
        for start in starts
        for a, b in combinations(start.balls, 2)
    ]
    assert min(between) >= 1.0


def test_compat_balls_may_overlap_each_other() -> None:
    rng = np.random.default_rng(3)
    between = []
    for _ in range(600):
        start = Start.from_row(*Starts(profile=Profile.COMPAT).take(rng)[:2])
        between += [
            np.linalg.norm(np.subtract(a.position, b.position))
            for a, b in combinations(start.balls, 2)
        ]
    assert min(between) < 1.0


def test_number_of_balls_can_be_asked_for(make: Callable) -> None:
    for balls in (0, 1, 7, 20):
        observation, _ = make(balls=balls).reset(seed=1)
        assert observation[11] == balls


def test_too_many_large_balls_are_refused(make: Callable) -> None:
    with pytest.raises(InputError, match="balls: there is no room for 20"):
        make(level=4, difficulty="hard", balls=20).reset(seed=0)


@pytest.mark.parametrize("level", [1, 5, 6, 7, 9, 12, 13, 14, 15, 16])
def test_levels_that_leave_the_start_alone_start_as_level_0(make: Callable, level: int) -> None:
    for seed in range(3):
        control, changed = make(), make(level=level, difficulty="hard")
        control.reset(seed=seed)
        changed.reset(seed=seed)
        assert (
            changed.unwrapped.get_state()["history"]["start"]
            == control.unwrapped.get_state()["history"]["start"]
        )


@pytest.mark.parametrize("level", range(17))
def test_cart_and_pole_start_as_at_level_0(make: Callable, level: int) -> None:
    """Also in the second and third episode after a seed."""
    control, changed = make(), make(level=level)
    for seed in (7, None, None):
        control.reset(seed=seed)
        changed.reset(seed=seed)
        one = control.unwrapped.get_state()["history"]["start"]
        two = changed.unwrapped.get_state()["history"]["start"]
        for field in ("cart_position", "cart_force", "pole_quat_xyzw", "pole_angular_velocity"):
            assert one[field] == two[field]


def test_first_observation_comes_after_one_hidden_tick(make: Callable) -> None:
    env = make(balls=3)
    observation, _ = env.reset(seed=4)
    start = env.unwrapped.get_state()["history"]["start"]
    force = np.array(start["cart_force"])
    # A push of 10 N changes the speed of a cart with an upright pole by 0.19845 m/s.
    np.testing.assert_allclose(observation[2:4], 0.019845 * force, atol=1e-3)
    assert env.unwrapped.get_state()["tick"] == 0


@pytest.mark.parametrize("balls", [None, 0, 1, 4, 20])
@pytest.mark.parametrize("profile", list(Profile))
def test_starts_drawn_together_are_those_drawn_alone(profile: Profile, balls: int | None) -> None:
    """Bit for bit, and those whose balls must be drawn again as well."""
    rng, same = np.random.default_rng(1), np.random.default_rng(1)
    draws = Starts(balls, profile)
    clearance = 1.0 if profile is Profile.PAPER else 0.0
    size = 11 + 9 * (4 if balls is None else balls)
    first = draws.take(rng, is_fresh=True)
    assert first == draw_start(same, same.random(size).tolist(), balls=balls, clearance=clearance)
    drawn = {first}
    for count in (64, 128, 256, 512, 1024, 1024):
        u = same.random((size, count))
        alone = [
            draw_start(same, column.tolist(), balls=balls, clearance=clearance) for column in u.T
        ]
        taken = [draws.take(rng, is_fresh=False) for _ in range(count)]
        assert taken == alone[::-1]
        drawn.update(taken)
    assert len(drawn) == 3009
    assert rng.random() == same.random()


def test_another_generator_or_seed_leaves_nothing_of_the_last() -> None:
    draws = Starts(0)
    one, two = np.random.default_rng(1), np.random.default_rng(2)
    first = draws.take(one)
    for _ in range(4):
        draws.take(one, is_fresh=False)
    other = draws.take(two, is_fresh=False)
    assert other == Starts(0).take(np.random.default_rng(2))
    assert draws.take(np.random.default_rng(1)) == first


def test_frame_of_the_pole_is_its_rotation() -> None:
    rng = np.random.default_rng(3)
    quat = rng.normal(size=4)
    x, y, z, w = quat / np.linalg.norm(quat)
    rate = rng.normal(size=3)
    up, turning = pole_frame([0.0] * 4 + [x, y, z, w, *rate])
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    np.testing.assert_allclose(up, turn[:, 2], atol=1e-14)
    np.testing.assert_allclose(turning, turn.T @ rate, atol=1e-14)


def test_start_is_the_same_as_row_and_as_json(starts: list[Start]) -> None:
    for start in starts[:50]:
        assert Start.from_row(start.row, start.cart_force, start.tick) == start
        record = start.as_dict()
        assert json.loads(json.dumps(record)) == record
        state = read_state({"novelty": {}, "history": write_history(start, [1, 2])}, "paper")
        assert state.start == start
        assert state.actions == [1, 2]
