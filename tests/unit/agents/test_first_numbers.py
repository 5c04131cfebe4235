"""A task of which only the first numbers are seen."""

import gymnasium
import numpy as np
import pytest

from robo_eval.agents.first_numbers import FirstNumbers
from robo_eval.core.errors import InputError


@pytest.mark.parametrize("env", ["CartPole-v1", "RoboEval/PickPlace-v0"])
def test_only_these_are_seen(env):
    whole, part = gymnasium.make(env), FirstNumbers(gymnasium.make(env), 3)
    whole.action_space.seed(0)
    seen, shown = whole.reset(seed=1)[0], part.reset(seed=1)[0]
    for _ in range(5):
        np.testing.assert_array_equal(seen[:3], shown)
        assert part.observation_space.contains(shown)
        action = whole.action_space.sample()
        (seen, *told, _), (shown, *also, _) = whole.step(action), part.step(action)
        assert told == also
    assert part.observation_space.shape == (3,)
    whole.close()
    part.close()


@pytest.mark.parametrize("n", [0, 5, 2.0, True, None])
def test_numbers_that_are_not_there_are_refused(n):
    with pytest.raises(InputError, match="n must be a whole number from 1 to 4"):
        FirstNumbers(gymnasium.make("CartPole-v1"), n)


def test_what_is_not_flat_is_refused():
    with pytest.raises(InputError, match="a flat Box is needed"):
        FirstNumbers(gymnasium.make("FrozenLake-v1"), 1)
