"""Each level does what it says, measured on the motion of cart, pole and balls."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

DIFFICULTIES = ("easy", "medium", "hard")
BOTH = ("paper", "compat")
DT = 0.02
STILL = (0.0, 0.0, 0.0)


def drawn(env: object) -> dict:
    return env.unwrapped.novelty["parameters"]


def start_of(env: object) -> dict:
    return env.unwrapped.get_state()["history"]["start"]


def gain(begin: Callable, balls_of: Callable, *balls: tuple, **keywords: object) -> np.ndarray:
    """Change of the balls' velocities in one tick, without damping for balls at rest."""
    env = begin(*balls, **keywords)
    observation, *_ = env.step(0)
    return balls_of(observation)[1] - [velocity for _, velocity in balls]


def by_difficulty(*values: float) -> list:
    return list(zip(DIFFICULTIES, values, strict=True))


# 1 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "difficulty", "mass"),
    [
        ("paper", "easy", 5.0),
        ("paper", "medium", 10.0),
        ("paper", "hard", 50.0),
        *(("compat", difficulty, 10.0) for difficulty in DIFFICULTIES),
    ],
)
def test_1_heavier_cart(begin: Callable, profile: str, difficulty: str, mass: float) -> None:
    env = begin(level=1, profile=profile, difficulty=difficulty)
    observation, *_ = env.step(1)
    # The pole adds 0.00781 kg to the cart's inertia.
    assert observation[2] == pytest.approx(10.0 * DT / (mass + 0.00781), rel=1e-5)


# 2 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", BOTH)
def test_2_balls_cannot_be_moved(begin: Callable, balls_of: Callable, profile: str) -> None:
    env = begin(
        ((1.2, 0.0, 0.3), STILL),
        level=2,
        profile=profile,
        state={"cart_velocity": [4.0, 0.0]},
    ).unwrapped
    for _ in range(30):
        row = env._advance(1)
    position, velocity = balls_of(np.array(row))
    assert position.tolist() == [[1.2, 0.0, 0.3]]
    assert not velocity.any()
    assert row[0] < 0.25, "the cart stops where it touches"


@pytest.mark.parametrize(
    ("difficulty", "count", "distance"), [("easy", 2, 2.0), ("medium", 3, 1.5), ("hard", 4, 1.0)]
)
def test_2_paper_balls_stand_on_the_floor(
    make: Callable, balls_of: Callable, difficulty: str, count: int, distance: float
) -> None:
    env = make(level=2, difficulty=difficulty)
    nearest = []
    for seed in range(60):
        observation, _ = env.reset(seed=seed)
        positions, velocities = balls_of(observation)
        assert len(positions) == count
        assert (positions[:, 2] == 0.5).all()
        assert not velocities.any()
        start = start_of(env)["cart_position"]
        nearest.append(np.hypot(*(positions[:, :2] - start).T).min())
        for first in range(count):
            for second in range(first):
                assert np.linalg.norm(positions[first] - positions[second]) >= 1.0
    assert distance <= min(nearest) < distance + 0.5


def test_2_compat_balls_are_anywhere_in_the_room(make: Callable, balls_of: Callable) -> None:
    env, control = make(level=2, profile="compat"), make(profile="compat")
    for seed in range(20):
        positions, velocities = balls_of(env.reset(seed=seed)[0])
        control.reset(seed=seed)
        expected = [ball["position"] for ball in start_of(control)["balls"]]
        assert positions.tolist() == np.array(expected, dtype=np.float32).tolist()
        assert not velocities.any()


# 3 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "difficulty", "low", "high"),
    [
        ("paper", "easy", 2, 5),
        ("paper", "medium", 5, 8),
        ("paper", "hard", 8, 12),
        ("compat", "easy", 0, 10),
        ("compat", "hard", 0, 10),
    ],
)
def test_3_balls_start_toward_one_point(
    make: Callable, profile: str, difficulty: str, low: float, high: float
) -> None:
    env = make(level=3, profile=profile, difficulty=difficulty, balls=4)
    speeds = []
    for seed in range(60):
        env.reset(seed=seed)
        target, speed = drawn(env)["target"], drawn(env)["speed"]
        assert np.abs(target[:2]).max() <= 4
        assert 1 <= target[2] <= 9
        for ball in start_of(env)["balls"]:
            way = np.subtract(target, ball["position"])
            np.testing.assert_allclose(
                ball["velocity"], speed * way / np.linalg.norm(way), atol=1e-12
            )
        speeds.append(speed)
    assert low <= min(speeds) < low + 0.2 * (high - low)
    assert high - 0.2 * (high - low) < max(speeds) <= high


# 4 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "difficulty", "radius"),
    [
        ("paper", "easy", 0.75),
        ("paper", "medium", 1.0),
        ("paper", "hard", 1.5),
        ("compat", "easy", 1.0),
        ("compat", "hard", 1.0),
    ],
)
def test_4_larger_balls(
    begin: Callable, balls_of: Callable, profile: str, difficulty: str, radius: float
) -> None:
    for gap, is_hit in ((0.1, False), (-0.01, True)):
        at = 4.95 - radius - gap
        env = begin(
            ((at, 0.0, 5.0), (6.0, 0.0, 0.0)), level=4, profile=profile, difficulty=difficulty
        )
        assert (balls_of(env.step(0)[0])[1][0, 0] < 0) == is_hit
    # A ball pushed by 1 N s changes its speed by 1 m/s: the mass is still 1 kg.
    env.unwrapped._world.push_ball(0, (0.0, 0.0, 50.0))
    before = balls_of(env.unwrapped._observe(env.unwrapped._world.row))[1][0, 2]
    assert balls_of(env.step(0)[0])[1][0, 2] - before == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("difficulty", "radius"), by_difficulty(0.75, 1.0, 1.5))
def test_4_paper_balls_start_clear_of_everything(
    make: Callable, difficulty: str, radius: float
) -> None:
    env = make(level=4, difficulty=difficulty, balls=4)
    for seed in range(40):
        env.reset(seed=seed)
        start = start_of(env)
        places = np.array([ball["position"] for ball in start["balls"]])
        assert np.abs(places[:, :2]).max() <= 4.95 - radius
        assert places[:, 2].min() >= radius - 0.05
        assert places[:, 2].max() <= 9.95 - radius
        assert np.hypot(*(places[:, :2] - start["cart_position"]).T).min() >= 0.5 + radius - 1e-9
        for first in range(4):
            for second in range(first):
                assert np.linalg.norm(places[first] - places[second]) >= 2 * radius


# 5 and 13 ----------------------------------------------------------------------------------------

PAIR = (((-2.0, 0.0, 5.0), STILL), ((2.0, 0.0, 5.0), STILL))
TRIPLE = (*PAIR, ((0.0, 3.0, 5.0), STILL))


@pytest.mark.parametrize(
    ("level", "profile", "difficulty", "outward"),
    [
        *((5, "paper", *pair) for pair in by_difficulty(2.0, 4.0, 6.0)),
        *((13, "paper", *pair) for pair in by_difficulty(-1.0, -3.0, -5.0)),
        *((13, "compat", *pair) for pair in by_difficulty(1.0, 3.0, 5.0)),
    ],
)
def test_5_and_13_force_between_balls(
    begin: Callable,
    balls_of: Callable,
    level: int,
    profile: str,
    difficulty: str,
    outward: float,
) -> None:
    settings = {"level": level, "profile": profile, "difficulty": difficulty}
    changed = gain(begin, balls_of, *PAIR, **settings)
    np.testing.assert_allclose(changed, [[-outward * DT, 0, 0], [outward * DT, 0, 0]], atol=1e-9)
    three = gain(begin, balls_of, *TRIPLE, **settings)
    middle = np.mean([position for position, _ in TRIPLE], axis=0)
    for (position, _), change in zip(TRIPLE, three, strict=True):
        way = np.subtract(position, middle)
        np.testing.assert_allclose(change, outward * DT * way / np.linalg.norm(way), atol=1e-9)
    assert not gain(begin, balls_of, PAIR[0], **settings).any(), "off with one ball"


def test_5_compat_pulls_together_by_a_force_drawn_each_tick(
    begin: Callable, balls_of: Callable
) -> None:
    forces = []
    for seed in range(40):
        env = begin(*TRIPLE, level=5, profile="compat", seed=seed)
        changed = balls_of(env.step(0)[0])[1]
        middle = np.mean([position for position, _ in TRIPLE], axis=0)
        sizes = np.linalg.norm(changed, axis=1) / DT
        np.testing.assert_allclose(sizes, sizes[0], atol=1e-6)
        for (position, _), change in zip(TRIPLE, changed, strict=True):
            assert np.dot(change, middle - position) >= 0
        forces.append(sizes[0])
        env.close()
    assert 0 <= min(forces) < 1
    assert 5 < max(forces) <= 6


# 6 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "difficulty", "gravity"),
    [
        *(("paper", *pair) for pair in by_difficulty(20.0, 30.0, 40.0)),
        *(("compat", *pair) for pair in by_difficulty(9.8, 9.8, 9.8)),
    ],
)
def test_6_gravity(
    begin: Callable, balls_of: Callable, profile: str, difficulty: str, gravity: float
) -> None:
    settings = {"level": 6, "profile": profile, "difficulty": difficulty}
    ball = ((0.0, 3.0, 5.0), STILL)
    np.testing.assert_allclose(
        gain(begin, balls_of, ball, **settings), [[0, 0, -gravity * DT]], atol=1e-9
    )
    lean = {"pole_quat_xyzw": [0.01, 0.0, 0.0, math.sqrt(1 - 1e-4)]}
    falling, usual = begin(state=lean, **settings), begin(state=lean)
    rate, usual_rate = falling.step(0)[0][8], usual.step(0)[0][8]
    assert rate / usual_rate == pytest.approx(gravity / 9.8, rel=1e-6)


# 7 and 15 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize(("difficulty", "force"), by_difficulty(15.0, 25.0, 35.0))
def test_7_balls_are_pulled_to_the_origin(
    begin: Callable, balls_of: Callable, profile: str, difficulty: str, force: float
) -> None:
    at = np.array([3.0, -2.0, 4.0])
    changed = gain(
        begin, balls_of, (tuple(at), STILL), level=7, profile=profile, difficulty=difficulty
    )
    np.testing.assert_allclose(changed[0], -force * DT * at / np.linalg.norm(at), atol=1e-9)


@pytest.mark.parametrize(("difficulty", "force"), by_difficulty(10.0, 20.0, 30.0))
@pytest.mark.parametrize("profile", BOTH)
def test_15_balls_are_pulled_to_the_robot(
    begin: Callable, balls_of: Callable, profile: str, difficulty: str, force: float
) -> None:
    at = np.array([3.0, -2.0, 4.0])
    half = 0.05
    changed = gain(
        begin,
        balls_of,
        (tuple(at), STILL),
        level=15,
        profile=profile,
        difficulty=difficulty,
        state={
            "cart_position": [-1.0, 0.5],
            "pole_quat_xyzw": [0.0, math.sin(half), 0.0, math.cos(half)],
        },
    )
    tip = np.array([-1 + 1.05 * math.sin(2 * half), 0.5, 0.2 + 1.05 * math.cos(2 * half)])
    target = tip if profile == "paper" else np.array([-1.0, 0.5, 0.5])
    way = target - at
    np.testing.assert_allclose(changed[0], force * DT * way / np.linalg.norm(way), atol=1e-9)


# 8 and 16 ----------------------------------------------------------------------------------------


def counts_of(env: object, ticks: int, action: int = 0) -> tuple[list[int], list[np.ndarray]]:
    """Number of balls after each tick, and what the world holds; the pole may fall."""
    inner = env.unwrapped
    rows = [np.array(inner._world.row)]
    rows += [np.array(inner._advance(action)) for _ in range(ticks)]
    return [int(row[11]) for row in rows], rows


@pytest.mark.parametrize(
    ("level", "profile", "difficulty", "every"),
    [
        *((8, profile, *pair) for profile in BOTH for pair in by_difficulty(50, 15, 7)),
        *((16, "paper", *pair) for pair in by_difficulty(20, 10, 5)),
        *((16, "compat", *pair) for pair in by_difficulty(3, 2, 1)),
    ],
)
def test_8_and_16_balls_appear_every_n_ticks(
    begin: Callable, level: int, profile: str, difficulty: str, every: int
) -> None:
    state = {"cart_position": [-3.5, -3.0], "cart_velocity": [1.5, 1.0]}
    env = begin(level=level, profile=profile, difficulty=difficulty, state=state)
    counts, _ = counts_of(env, 100)
    grew = [tick for tick, (a, b) in enumerate(pairwise(counts), start=1) if b != a]
    assert all(b - a in (0, 1) for a, b in pairwise(counts))
    due = list(range(every, 101, every))
    assert set(grew) <= set(due)
    # Where there is no room after 100 tries, no ball appears.
    assert len(grew) >= min(len(due), 5)


@pytest.mark.parametrize("profile", BOTH)
def test_8_obstacles_lie_ahead(begin: Callable, balls_of: Callable, profile: str) -> None:
    distances = []
    for seed in range(25):
        env = begin(
            level=8,
            profile=profile,
            difficulty="medium",
            seed=seed,
            state={"cart_position": [-2.0, 1.0], "cart_velocity": [1.0, 0.5]},
        )
        counts, rows = counts_of(env, 15)
        if counts[-1] == 0:
            continue
        position, velocity = balls_of(rows[-1])
        assert not velocity.any()
        assert position[0, 2] == 1.0
        moved = rows[-1][:2] - rows[0][:2]
        origin = rows[-1][:2] if profile == "paper" else np.zeros(2)
        way = position[0, :2] - origin
        assert abs(np.cross(np.append(way, 0), np.append(moved, 0))[2]) < 1e-9
        assert np.dot(way, moved) >= 0
        assert np.abs(position[0, :2]).max() <= (4.45 if profile == "paper" else 4.5)
        cart = rows[-1][:2] if profile == "paper" else rows[0][:2]
        distances.append(np.linalg.norm(position[0, :2] - cart))
        env.close()
    assert len(distances) > 15
    assert min(distances) >= 0.75


@pytest.mark.parametrize("profile", BOTH)
def test_16_new_balls_move(begin: Callable, balls_of: Callable, profile: str) -> None:
    env = begin(level=16, profile=profile, difficulty="hard")
    every = drawn(env)["every"]
    counts, rows = counts_of(env, every)
    assert counts[-1] == 1
    position, velocity = balls_of(rows[-1])
    assert np.abs(position[0, :2]).max() <= 4
    assert 1 <= position[0, 2] <= 9
    assert np.hypot(*position[0, :2]) >= 1.0
    assert (np.abs(velocity) >= 3).all()
    assert (np.abs(velocity) <= 5).all()


def test_16_paper_balls_appear_clear_of_others(begin: Callable, balls_of: Callable) -> None:
    env = begin(level=16, difficulty="hard")
    counts, rows = counts_of(env, 200)
    assert counts[-1] == 40
    for (before, after), row in zip(pairwise(counts), rows[1:], strict=True):
        if after > before:
            positions, _ = balls_of(row)
            gaps = np.linalg.norm(positions[:-1] - positions[-1], axis=1)
            assert gaps.min(initial=9.0) >= 1.0
            assert np.hypot(*(positions[-1, :2] - row[:2])) >= 1.0


# 9 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "difficulty", "length", "com", "mass"),
    [
        ("paper", "easy", 1.5, 1.5, 0.15),
        ("paper", "medium", 2.0, 2.0, 0.2),
        ("paper", "hard", 3.0, 3.0, 0.3),
        ("compat", "easy", 3.0, 1.0, 0.1),
        ("compat", "medium", 5.0, 1.0, 0.1),
        ("compat", "hard", 8.0, 1.0, 0.1),
    ],
)
def test_9_longer_pole(
    begin: Callable, profile: str, difficulty: str, length: float, com: float, mass: float
) -> None:
    env = begin(level=9, profile=profile, difficulty=difficulty)
    observation, *_ = env.step(1)
    inertia = mass / 12 * (0.066**2 + (length + 0.006) ** 2)
    turning = inertia + mass * com**2
    determinant = (1.0 + mass) * turning - (mass * com) ** 2
    assert observation[2] == pytest.approx(10 * DT * turning / determinant, rel=1e-5)
    assert observation[9] == pytest.approx(-10 * DT * mass * com / determinant, rel=1e-5)
    # Its reach: a ball that rests against its upper end is met.
    top = 0.2 + 0.05 + length
    inside = begin(((0.4, 0.0, top - 0.1), STILL), level=9, profile=profile, difficulty=difficulty)
    above = begin(((0.0, 0.0, top + 0.55), STILL), level=9, profile=profile, difficulty=difficulty)
    assert np.abs(inside.step(0)[0][15:18]).max() > 1e-3
    assert np.abs(above.step(0)[0][15:18]).max() < 1e-9


# 10 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize(
    ("difficulty", "low", "high"), [("easy", 3, 4), ("medium", 2, 3), ("hard", 1.5, 2)]
)
def test_10_balls_keep_to_their_lines(
    make: Callable, balls_of: Callable, profile: str, difficulty: str, low: float, high: float
) -> None:
    env = make(level=10, profile=profile, difficulty=difficulty, balls=3).unwrapped
    heights = []
    for seed in range(8):
        env.reset(seed=seed)
        start = start_of(env)
        lines = []
        for ball, distance, speed in zip(
            start["balls"], drawn(env)["line_distance"], drawn(env)["speed"], strict=True
        ):
            at, velocity = np.array(ball["position"]), np.array(ball["velocity"])
            assert np.abs(at[:2]).max() <= 4.45
            assert velocity[2] == 0
            assert np.linalg.norm(velocity) == pytest.approx(speed)
            assert 6 <= speed <= 10
            way = velocity / np.linalg.norm(velocity)
            offset = np.append(start["cart_position"], at[2]) - at
            assert np.linalg.norm(np.cross(way, offset)) == pytest.approx(distance)
            assert low <= distance <= high
            lines.append((at, way))
            heights.append(at[2])
        turned = False
        for _ in range(100):
            positions, velocities = balls_of(np.array(env._advance(0)))
            for (at, way), position, velocity in zip(lines, positions, velocities, strict=True):
                assert np.linalg.norm(np.cross(way, position - at)) < 1e-6
                assert np.linalg.norm(np.cross(way, velocity)) < 1e-6
                turned = turned or np.dot(way, velocity) < 0
        assert turned, "walls send balls back"
    if profile == "paper":
        assert set(heights) == {0.5}
    else:
        assert 0 <= min(heights) < 0.4
        assert 1.6 < max(heights) <= 2


# 11 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize(("difficulty", "probability"), by_difficulty(0.25, 0.5, 0.75))
def test_11_some_balls_are_aimed(
    make: Callable, profile: str, difficulty: str, probability: float
) -> None:
    env, control = (
        make(level=11, profile=profile, difficulty=difficulty, balls=4),
        make(profile=profile, balls=4),
    )
    chosen = []
    for seed in range(120):
        env.reset(seed=seed)
        control.reset(seed=seed)
        start = start_of(env)
        aim = np.append(start["cart_position"], 0.5)
        for ball, usual, speed in zip(
            start["balls"], start_of(control)["balls"], drawn(env)["speed"], strict=True
        ):
            assert ball["position"] == usual["position"]
            chosen.append(speed is not None)
            if speed is None:
                assert ball["velocity"] == usual["velocity"]
            else:
                way = aim - ball["position"]
                assert 0 <= speed <= 10
                np.testing.assert_allclose(
                    ball["velocity"], speed * way / np.linalg.norm(way), atol=1e-12
                )
    # Four standard errors.
    assert np.mean(chosen) == pytest.approx(probability, abs=4 * math.sqrt(0.25 / len(chosen)))


# 12 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "difficulty", "low", "high"),
    [
        ("paper", "easy", 1.05, 1.15),
        ("paper", "medium", 1.20, 1.30),
        ("paper", "hard", 1.35, 1.45),
        ("compat", "easy", 1.05**2, 1.15**2),
        ("compat", "medium", 1.20**2, 1.30**2),
        ("compat", "hard", 1.35**2, 1.45**2),
    ],
)
def test_12_bounces_add_speed(
    begin: Callable, balls_of: Callable, profile: str, difficulty: str, low: float, high: float
) -> None:
    seen = []
    for seed in range(12):
        env = begin(
            ((4.46, 2.0, 5.0), (8.0, 0.0, 0.0)),
            ((-0.4999, -3.0, 5.0), (5.0, 0.0, 0.0)),
            ((0.4999, -3.0, 5.0), (-5.0, 0.0, 0.0)),
            level=12,
            profile=profile,
            difficulty=difficulty,
            seed=seed,
        )
        (value,) = drawn(env).values()
        expected = value if profile == "paper" else value**2
        _, velocities = balls_of(env.step(0)[0])
        damped = 8.0 * (1 - 0.0008 * 9.0)
        assert -velocities[0, 0] == pytest.approx(expected * damped + 4 * (0.01 - 1e-5), abs=2e-3)
        between = velocities[2, 0] - velocities[1, 0]
        assert between == pytest.approx(expected * 10.0 * (1 - 0.0008 * 6.0), abs=0.02)
        seen.append(expected)
        env.close()
    assert low <= min(seen) < max(seen) <= high


# 14 ----------------------------------------------------------------------------------------------


def air(peak: float, z: float) -> float:
    """A power of 1/7 of the distance to floor or ceiling, the peak half way."""
    return peak * (min(z, 10 - z) / 5) ** (1 / 7)


@pytest.mark.parametrize(("difficulty", "peak"), by_difficulty(6.0, 8.0, 10.0))
def test_14_paper_wind_drags_balls_cart_and_pole(
    begin: Callable, balls_of: Callable, difficulty: str, peak: float
) -> None:
    angles = []
    for seed in range(6):
        velocity = np.array([1.0, -2.0, 0.5])
        env = begin(((0.0, 3.0, 5.0), tuple(velocity)), level=14, difficulty=difficulty, seed=seed)
        angle = drawn(env)["direction"]
        toward = np.array([-math.sin(angle), math.cos(angle), 0.0])
        observation, *_ = env.step(0)
        relative = air(peak, 5.0) * toward - velocity
        force = 0.5 * 1.225 * 0.47 * math.pi * 0.25 * np.linalg.norm(relative) * relative
        size = np.linalg.norm(velocity)
        expected = velocity * (1 - 0.0008 * (1 + size)) + DT * force
        np.testing.assert_allclose(balls_of(observation)[1][0], expected, atol=1e-6)
        # Cart and pole together: a force on each, the pole's at half its height.
        on_cart = 0.5 * 1.225 * 0.2 * air(peak, 0.2) ** 2
        on_pole = 0.5 * 1.225 * 0.06 * air(peak, 0.75) ** 2
        matrix = np.array([[1.1, 0.1], [0.1, 0.1 + 0.00846993]])
        pushed = DT * np.linalg.solve(matrix, [on_cart + on_pole, 0.55 * on_pole])
        np.testing.assert_allclose(observation[2:4], pushed[0] * toward[:2], atol=1e-6)
        turned = pushed[1] * np.array([-toward[1], toward[0]])
        np.testing.assert_allclose(observation[8:10], turned, atol=1e-5)
        angles.append(angle)
        env.close()
    assert np.ptp(angles) > 1.0


@pytest.mark.parametrize(("difficulty", "peak"), by_difficulty(16.0, 18.0, 20.0))
def test_14_compat_wind_pushes_balls_into_one_corner(
    make: Callable, begin: Callable, balls_of: Callable, difficulty: str, peak: float
) -> None:
    settings = {"level": 14, "profile": "compat", "difficulty": difficulty}
    along_x = []
    for seed in range(8):
        env = begin(((0.0, 3.0, 5.0), STILL), seed=seed, **settings)
        angle = drawn(env)["direction"]
        observation, *_ = env.step(0)
        push = balls_of(observation)[1][0] / DT
        assert push[0] <= 0
        assert push[1] <= 0
        assert push[2] == 0
        assert np.hypot(*push[:2]) > 100
        x, y = observation[2:4] / DT
        assert abs(y) < 1e-9, "no force along y"
        assert np.sign(x) == np.sign(-math.sin(angle))
        along_x.append(abs(x) / math.sin(angle) ** 2)
        assert observation[8] == pytest.approx(0.0, abs=1e-9)
        env.close()
    np.testing.assert_allclose(along_x, along_x[0], rtol=1e-6)
    # Most that was measured at 16 and 20 m/s, for winds nearly along x.
    assert along_x[0] == pytest.approx(5.0 * (peak / 16) ** 2, rel=0.02)
    env = make(**settings).unwrapped
    for seed in range(4):
        env.reset(seed=seed)
        if (
            min(abs(math.sin(drawn(env)["direction"])), abs(math.cos(drawn(env)["direction"])))
            < 0.3
        ):
            continue
        for _ in range(200):
            row = env._advance(0)
        positions, _ = balls_of(np.array(row))
        assert positions[:, :2].mean() < -2.0
