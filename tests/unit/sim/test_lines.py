"""Where the lines of level 10 lie."""

import gymnasium
import numpy as np
import pytest

from robo_eval.core.errors import InputError, UnknownNameError

CARTPOLE = "RoboEval/CartPole3D-v0"


def lines(env, seed):
    """How far each line is from the cart at the start, and what was drawn."""
    env.reset(seed=seed)
    state = env.unwrapped.get_state()
    start = state["history"]["start"]
    cart = np.array(start["cart_position"])
    found = []
    for ball in start["balls"]:
        along = np.array(ball["velocity"][:2])
        x, y = cart - np.array(ball["position"][:2])
        found.append(abs(x * along[1] - y * along[0]) / np.linalg.norm(along))
    return found, state["novelty"]["parameters"]


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
def test_correct_lines_pass_as_far_away_as_was_drawn(difficulty):
    env = gymnasium.make(CARTPOLE, level=10, difficulty=difficulty)
    for seed in range(20):
        found, drawn = lines(env, seed)
        assert found == pytest.approx(drawn["line_distance"])


def test_those_of_the_reference_pass_wherever_they_turn_to():
    correct = gymnasium.make(CARTPOLE, level=10, difficulty="hard", balls=4)
    turned = gymnasium.make(CARTPOLE, level=10, difficulty="hard", balls=4, lines="reference")
    near = 0
    for seed in range(40):
        found, drawn = lines(turned, seed)
        assert drawn == lines(correct, seed)[1]
        near += sum(one < 1.0 for one in found)
    assert near > 20  # of 160, within the radii of a ball and the cart; none should be


def test_a_state_is_restored_and_no_other_level_changes():
    env = gymnasium.make(CARTPOLE, level=10, lines="reference")
    env.reset(seed=3)
    for _ in range(9):
        env.step(2)
    again = gymnasium.make(CARTPOLE, level=10, lines="reference")
    state = env.unwrapped.get_state()
    again.reset(options={"state": state})
    assert again.unwrapped.get_state() == state
    for keywords in ({"level": 9}, {"novelty": {"cart_mass": 3.0}}):
        one, other = (
            gymnasium.make(CARTPOLE, **keywords, **more) for more in ({}, {"lines": "reference"})
        )
        assert one.reset(seed=5)[0].tobytes() == other.reset(seed=5)[0].tobytes()


def test_lines_of_a_mixture_are_turned_as_well():
    asked = {"balls_on_lines": 3.0, "gravity": 12.0}
    env = gymnasium.make(CARTPOLE, novelty=asked, lines="reference", balls=4)
    assert any(abs(one - 3.0) > 0.5 for seed in range(5) for one in lines(env, seed)[0])


def test_others_are_refused():
    with pytest.raises(UnknownNameError, match="unknown lines 'refrence'; did you mean"):
        gymnasium.make(CARTPOLE, level=10, lines="refrence")
    with pytest.raises(InputError, match="lines: is a keyword of profile paper"):
        gymnasium.make(CARTPOLE, level=10, lines="reference", profile="compat")
