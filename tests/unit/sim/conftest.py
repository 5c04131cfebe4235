"""What the tests of the simulator share: environments that are closed, and ways to play them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from robo_eval.agents import make_agent

CARTPOLE = "RoboEval/CartPole3D-v0"


@pytest.fixture
def make() -> Iterator[Callable[..., gymnasium.Env]]:
    """Make environments that are closed when the test ends."""
    made: list[gymnasium.Env] = []

    def make_one(**keywords: Any) -> gymnasium.Env:
        made.append(gymnasium.make(CARTPOLE, **keywords))
        return made[-1]

    yield make_one
    for env in made:
        env.close()


@pytest.fixture
def begin(make: Callable[..., gymnasium.Env]) -> Callable[..., gymnasium.Env]:
    """An environment standing in a given physical state, cart at rest in the middle by default."""

    def begin_one(*balls: tuple[tuple, tuple], seed: int = 1, state: Any = None, **keywords: Any):
        env = make(**keywords)
        given = {"balls": [{"position": list(p), "velocity": list(v)} for p, v in balls]}
        env.reset(seed=seed, options={"state": given | (state or {})})
        return env

    return begin_one


@pytest.fixture
def balance() -> Callable[..., NDArray[np.float64]]:
    """Play an episode with a balancing policy that is disturbed now and then."""

    def play(env: gymnasium.Env, seed: int, ticks: int = 200, disturbed: float = 0.2):
        observation, _ = env.reset(seed=seed)
        policy = make_agent("balancer")
        policy.reset(seed=seed)
        rng = np.random.default_rng(seed)
        seen = [observation]
        for _ in range(ticks):
            action = int(rng.integers(5)) if rng.random() < disturbed else policy.act(observation)
            observation, _, terminated, truncated, _ = env.step(action)
            seen.append(observation)
            if terminated or truncated:
                break
        return np.array(seen)

    return play


def balls_of(observation: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions and velocities of the balls, each (N, 3)."""
    count = int(observation[11])
    balls = observation[12 : 12 + 6 * count].reshape(count, 6)
    return balls[:, :3], balls[:, 3:]


@pytest.fixture(name="balls_of")
def _balls_of() -> Callable[..., Any]:
    return balls_of
