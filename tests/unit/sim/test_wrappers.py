"""The named observation holds the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium
import pytest

from robo_eval.core.errors import InputError
from robo_eval_sim.tasks.cartpole3d.named import NamedObservation


def test_names_and_numbers(make: Callable) -> None:
    plain, named = (
        make(level=16, difficulty="hard"),
        NamedObservation(make(level=16, difficulty="hard")),
    )
    vector, _ = plain.reset(seed=4)
    observation, _ = named.reset(seed=4)
    for tick in range(12):
        assert named.observation_space.contains(observation)
        assert set(observation) == {"cart", "pole", "blocks", "time_stamp"}
        assert observation["cart"]["x_position"] == pytest.approx(vector[0], abs=1e-6)
        assert observation["cart"]["y_velocity"] == pytest.approx(vector[3], abs=1e-6)
        assert observation["cart"]["z_position"] == 0
        assert observation["pole"]["w_quaternion"] == pytest.approx(vector[7], abs=1e-6)
        assert observation["pole"]["y_velocity"] == pytest.approx(vector[9], abs=1e-6)
        assert len(observation["blocks"]) == vector[11]
        last = observation["blocks"][-1]
        assert last["id"] == vector[11] - 1
        assert last["z_velocity"] == pytest.approx(vector[11 + 6 * int(vector[11])], abs=1e-6)
        assert observation["time_stamp"] == pytest.approx(0.02 * tick)
        vector, *_ = plain.step(0)
        observation, *_ = named.step(0)


def test_other_environments_are_refused() -> None:
    with pytest.raises(InputError, match="a CartPole3D environment is needed"):
        NamedObservation(gymnasium.make("CartPole-v1"))
