"""Motion without contacts equals a model written here from Newton's and Euler's laws.

A cart that can only move in the plane carries a rigid pole on a ball joint. Unknown are the
cart's acceleration (2), the pole's angular acceleration (3) and the force in the joint (3).
Every body loses momentum as -0.04 m v (1 + |v|), and angular momentum alike. Velocities first,
then positions, with a step of 0.02 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from robo_eval.agents import make_agent

DT = 0.02
DAMPING = 0.04
PIVOT = 0.2
PUSH = {0: (0.0, 0.0), 1: (10.0, 0.0), 2: (-10.0, 0.0), 3: (0.0, 10.0), 4: (0.0, -10.0)}


def box_inertia(mass: float, width: float, height: float) -> np.ndarray:
    side = mass / 12.0 * (width**2 + height**2)
    return np.diag([side, side, mass / 12.0 * 2.0 * width**2])


def exact(env) -> np.ndarray:
    """The engine's own numbers; an observation rounds them to float32."""
    return np.array(env.unwrapped._world.row)


class Model:
    """Cart and pole with their 5 degrees of freedom."""

    def __init__(
        self,
        cart_mass: float = 1.0,
        pole_mass: float = 0.1,
        com: float = 1.0,
        length: float = 1.0,
        gravity: float = 9.8,
    ) -> None:
        self.cart_mass, self.pole_mass, self.com, self.gravity = cart_mass, pole_mass, com, gravity
        self.inertia = box_inertia(pole_mass, 0.066, length + 0.006)

    def set(self, observation: np.ndarray) -> None:
        self.p = observation[0:2].copy()
        self.v = observation[2:4].copy()
        self.q = observation[4:8].copy()
        self.w = observation[8:11].copy()

    @property
    def numbers(self) -> np.ndarray:
        return np.concatenate([self.p, self.v, self.q, self.w])

    def step(self, push: tuple[float, float]) -> None:
        turn = rotation(self.q)
        lever = turn @ [0.0, 0.0, self.com]  # from the joint to the pole's centre of mass
        inertia = turn @ self.inertia @ turn.T
        com_velocity = np.append(self.v, 0.0) + np.cross(self.w, lever)
        weight = np.array([0.0, 0.0, -self.pole_mass * self.gravity])
        pole_force = weight - DAMPING * self.pole_mass * com_velocity * (1 + norm(com_velocity))
        cart_force = np.array(push) - DAMPING * self.cart_mass * self.v * (1 + norm(self.v))
        torque = -DAMPING * inertia @ self.w * (1 + norm(self.w))
        # Unknowns: a (2), alpha (3), n (3), n being what the cart exerts on the pole.
        a = np.zeros((8, 8))
        b = np.zeros(8)
        # Cart, in the plane: m a + n_xy = F.
        a[0:2, 0:2] = self.cart_mass * np.eye(2)
        a[0:2, 5:7] = np.eye(2)
        b[0:2] = cart_force
        # Pole: m (a + alpha x r + w x (w x r)) - n = G.
        a[2:4, 0:2] = self.pole_mass * np.eye(2)
        a[2:5, 2:5] = -self.pole_mass * cross_matrix(lever)
        a[2:5, 5:8] = -np.eye(3)
        swing = np.cross(self.w, np.cross(self.w, lever))
        b[2:5] = pole_force - self.pole_mass * swing
        # Its rotation: I alpha + w x I w = T - r x n.
        a[5:8, 2:5] = inertia
        a[5:8, 5:8] = cross_matrix(lever)
        b[5:8] = torque - np.cross(self.w, inertia @ self.w)
        solved = np.linalg.solve(a, b)
        self.v = self.v + DT * solved[0:2]
        self.w = self.w + DT * solved[2:5]
        self.p = self.p + DT * self.v
        self.q = turned(self.q, DT * self.w)


def norm(vector: np.ndarray) -> float:
    return float(np.linalg.norm(vector))


def cross_matrix(r: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def rotation(q: np.ndarray) -> np.ndarray:
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def turned(q: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """A quaternion turned by a rotation vector in world axes."""
    size = norm(angle)
    half = 0.5 * (1.0 if size < 1e-12 else math.sin(size / 2) / (size / 2)) * angle
    a, b = np.append(half, math.cos(size / 2)), q
    product = np.append(
        a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3]), a[3] * b[3] - a[:3] @ b[:3]
    )
    return product / norm(product)


LEVELS = [
    ({}, Model()),
    ({"level": 1, "difficulty": "easy"}, Model(cart_mass=5.0)),
    ({"level": 1, "difficulty": "hard"}, Model(cart_mass=50.0)),
    ({"level": 1, "profile": "compat"}, Model(cart_mass=10.0)),
    ({"level": 6, "difficulty": "hard"}, Model(gravity=40.0)),
    ({"level": 9, "difficulty": "easy"}, Model(pole_mass=0.15, com=1.5, length=1.5)),
    ({"level": 9, "difficulty": "hard"}, Model(pole_mass=0.3, com=3.0, length=3.0)),
    ({"level": 9, "profile": "compat"}, Model(length=3.0)),
    ({"level": 9, "difficulty": "hard", "profile": "compat"}, Model(length=8.0)),
]
NAMES = ["-".join(map(str, keywords.values())) or "level 0" for keywords, _ in LEVELS]


@pytest.mark.parametrize(("keywords", "model"), LEVELS, ids=NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_random_pushes_until_the_pole_falls(
    make: Callable, keywords: dict, model: Model, seed: int
) -> None:
    env = make(balls=0, **keywords)
    env.reset(seed=seed)
    model.set(exact(env))
    rng = np.random.default_rng(seed)
    ticks, terminated = 0, False
    while not terminated and ticks < 100:
        action = int(rng.integers(5))
        _, _, terminated, _, _ = env.step(action)
        model.step(PUSH[action])
        np.testing.assert_allclose(exact(env)[:11], model.numbers, atol=1e-5, rtol=0)
        ticks += 1
    assert ticks >= 8


@pytest.mark.parametrize(
    "keywords",
    [{}, {"level": 1, "difficulty": "easy"}, {"level": 9, "profile": "compat"}],
    ids=["level 0", "level 1", "level 9"],
)
@pytest.mark.parametrize("seed", range(6))
def test_a_balanced_run_of_100_ticks(make: Callable, keywords: dict, seed: int) -> None:
    model = {str(key): model for key, model in LEVELS}[str(keywords)]
    env = make(balls=0, **keywords)
    observation, _ = env.reset(seed=seed)
    model.set(exact(env))
    policy = make_agent("balancer")
    rng = np.random.default_rng(seed)
    for _ in range(100):
        action = int(rng.integers(5)) if rng.random() < 0.2 else int(policy.act(observation))
        observation, _, terminated, _, _ = env.step(action)
        model.step(PUSH[action])
        np.testing.assert_allclose(exact(env)[:11], model.numbers, atol=1e-5, rtol=0)
        assert not terminated


@pytest.mark.parametrize("seed", range(5))
def test_any_physical_state_with_balls_that_touch_nothing(begin: Callable, seed: int) -> None:
    rng = np.random.default_rng(seed)
    quat = np.append(rng.uniform(-0.03, 0.03, 3), 1.0)
    state = {
        "cart_position": rng.uniform(-1, 1, 2).tolist(),
        "cart_velocity": rng.uniform(-0.5, 0.5, 2).tolist(),
        "pole_quat_xyzw": (quat / norm(quat)).tolist(),
        "pole_angular_velocity": rng.uniform(-0.3, 0.3, 3).tolist(),
    }
    ball = ((-4.0, -4.0, 6.0), (1.5, 1.2, 0.4))
    env = begin(ball, state=state)
    model = Model()
    model.set(exact(env))
    assert model.p.tolist() == state["cart_position"]
    assert model.w.tolist() == state["pole_angular_velocity"]
    policy = make_agent("balancer")
    observation = np.concatenate([model.numbers, [0.0]])
    position, velocity = np.array(ball[0]), np.array(ball[1])
    ticks, terminated = 0, False
    while not terminated and ticks < 100:
        ticks += 1
        action = int(rng.integers(5)) if rng.random() < 0.1 else int(policy.act(observation))
        observation, _, terminated, _, _ = env.step(action)
        model.step(PUSH[action])
        velocity = velocity * (1 - DT * DAMPING * (1 + norm(velocity)))
        position = position + DT * velocity
        np.testing.assert_allclose(exact(env)[:11], model.numbers, atol=1e-5, rtol=0)
        np.testing.assert_allclose(exact(env)[12:15], position, atol=1e-6, rtol=0)
        np.testing.assert_allclose(exact(env)[15:18], velocity, atol=1e-6, rtol=0)
    assert ticks > 20
