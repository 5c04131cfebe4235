"""Starting from a given state: what is accepted, what is refused, what is restored."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from robo_eval.core.errors import InputError, UnknownNameError

PHYSICAL = ("cart_position", "cart_velocity", "pole_quat_xyzw", "pole_angular_velocity", "balls")


def physical(state: dict[str, Any]) -> dict[str, Any]:
    return {name: state[name] for name in (*PHYSICAL, "tick")}


def test_physical_fields_are_started_from_exactly(make: Callable) -> None:
    env = make(level=0, balls=3)
    env.reset(seed=1)
    for action in (1, 1, 3, 0, 2):
        env.step(action)
    state = physical(env.unwrapped.get_state())
    other = make(level=0, balls=0)
    observation, _ = other.reset(seed=9, options={"state": json.loads(json.dumps(state))})
    assert physical(other.unwrapped.get_state()) == state
    assert observation[11] == 3
    # No hidden tick: the same push leads to the same place, up to what contacts remember.
    np.testing.assert_allclose(other.step(1)[0], env.step(1)[0], atol=1e-9)


def test_missing_fields_have_their_nominal_value(make: Callable) -> None:
    env = make()
    env.reset(seed=1, options={"state": {}})
    assert physical(env.unwrapped.get_state()) == {
        "cart_position": [0, 0],
        "cart_velocity": [0, 0],
        "pole_quat_xyzw": [0, 0, 0, 1],
        "pole_angular_velocity": [0, 0, 0],
        "balls": [],
        "tick": 0,
    }


def test_an_episode_goes_on_from_the_tick_of_the_state(make: Callable) -> None:
    env = make()
    env.reset(seed=1, options={"state": {"tick": 198}})
    assert env.step(0)[3] is False
    assert env.step(0)[3] is True


def test_a_state_from_a_physical_start_keeps_that_as_its_origin(make: Callable) -> None:
    env = make(level=15, difficulty="hard")
    given = {"balls": [{"position": [1, 2, 3], "velocity": [0, -9, -3]}], "tick": 20}
    env.reset(seed=5, options={"state": given})
    for _ in range(6):
        env.step(0)
    state = json.loads(json.dumps(env.unwrapped.get_state()))
    assert state["history"]["start"]["cart_force"] is None
    expected = [env.step(0)[0] for _ in range(3)]
    env.reset(seed=77, options={"state": state})
    for observation in expected:
        np.testing.assert_array_equal(env.step(0)[0], observation)


def test_restoring_draws_nothing_from_what_follows(make: Callable) -> None:
    """The next reset without a seed is the same whether a state was restored before or not."""
    env = make()
    env.reset(seed=3)
    state = env.unwrapped.get_state()
    expected, _ = env.reset()
    env.reset(seed=3)
    env.reset(options={"state": state})
    np.testing.assert_array_equal(env.reset()[0], expected)


def test_a_state_without_history_keeps_the_parameters_of_its_level(make: Callable) -> None:
    env = make(level=12, difficulty="medium")
    env.reset(seed=1)
    state = env.unwrapped.get_state()
    del state["history"]
    drawn = env.unwrapped.novelty
    env.reset(seed=2, options={"state": state})
    assert env.unwrapped.novelty == drawn
    del state["novelty"]
    env.reset(seed=2, options={"state": state})
    assert env.unwrapped.novelty != drawn


def test_the_end_of_an_episode_can_be_restored(make: Callable) -> None:
    env = make()
    observation, _ = env.reset(seed=1)
    terminated = False
    while not terminated:
        observation, _, terminated, _, _ = env.step(1)
    state = env.unwrapped.get_state()
    restored, _ = env.reset(options={"state": state})
    np.testing.assert_array_equal(restored, observation)
    with pytest.raises(InputError, match="over after tick"):
        env.step(0)


@pytest.fixture
def saved(make: Callable) -> dict[str, Any]:
    env = make(level=3, difficulty="hard")
    env.reset(seed=1)
    for _ in range(4):
        env.step(1)
    return env.unwrapped.get_state()


def changed(state: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    result = copy.deepcopy(state)
    *parents, name = path.split(".")
    inner: Any = result
    for parent in parents:
        inner = inner[int(parent)] if parent.isdigit() else inner[parent]
    inner[int(name) if name.isdigit() else name] = value
    return result


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("cart_position", [0.0, 1e-17], "state.cart_position: differs from what state.history"),
        ("tick", 3, "state.tick: differs from what state.history leads to"),
        ("balls.0.velocity.1", 1.0, "state.balls: differs"),
        ("history.actions.2", 4, "differs from what state.history leads to"),
        ("history.actions.2", 5, "history.actions: numbers from 0 to 4"),
        ("history.actions.2", True, "history.actions: numbers from 0 to 4"),
        ("history.actions", "1111", "history.actions: a list"),
        ("history.actions", [0] * 300, "history.actions: a list"),
        ("history.format", 9, "history.format: 1 is needed, given 9"),
        ("history.start", {}, "history.start.cart_position: is missing"),
        ("history.start.cart_position", [1, 2, 3], "history.start.cart_position: a list of 2"),
        ("history.start.cart_position", [math.nan, 0], "history.start.cart_position: .*nan"),
        ("history.start.cart_force", [1e9, 0], "history.start.cart_force: "),
        ("history.start.balls", [{}] * 300, "history.start"),
        ("history", [1], "state.history: a mapping"),
        ("novelty", None, "state.novelty: is missing"),
        ("novelty.level", 4, "state.novelty.level: this environment has 3, given 4"),
        ("novelty.difficulty", "easy", "state.novelty.difficulty: this environment has hard"),
        ("novelty.profile", "compat", "state.novelty.profile: this environment has paper"),
        ("novelty.parameters", 3, "state.novelty.parameters: a mapping"),
        ("novelty.parameters", {}, "state.novelty.parameters: .*target"),
        ("novelty.parameters.speed", "fast", "state.novelty.parameters.speed"),
        ("novelty.parameters.speed", math.inf, "state.novelty.parameters.speed"),
    ],
)
def test_damaged_histories_are_refused(
    make: Callable, saved: dict[str, Any], path: str, value: object, message: str
) -> None:
    env = make(level=3, difficulty="hard")
    with pytest.raises(InputError, match=message):
        env.reset(options={"state": changed(saved, path, value)})
    assert env.reset(seed=1)[0].any(), "the environment is as healthy as before"


@pytest.mark.parametrize(
    ("level", "profile", "name"), [(16, "paper", "spawn_seed"), (5, "compat", "force_seed")]
)
@pytest.mark.parametrize("value", [1.5, -3, True, "7", None, 2**32])
def test_seeds_of_a_novelty_are_whole_numbers(
    make: Callable, level: int, profile: str, name: str, value: object
) -> None:
    env = make(level=level, profile=profile)
    env.reset(seed=1)
    state = env.unwrapped.get_state()
    assert name in state["novelty"]["parameters"]
    with pytest.raises(InputError, match=f"novelty.parameters.{name}: a whole number"):
        env.reset(options={"state": changed(state, f"novelty.parameters.{name}", value)})


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("here", "state: a mapping"),
        ({"cart_positon": [0, 0]}, "unknown field 'cart_positon'; did you mean 'cart_position'"),
        ({"cart_position": [0]}, "state.cart_position: a list of 2 numbers"),
        ({"cart_position": "00"}, "state.cart_position: a list of 2 numbers"),
        ({"cart_position": 3.0}, "state.cart_position: a list of 2 numbers"),
        ({"cart_position": [0, math.nan]}, "state.cart_position: from -4.95 to 4.95"),
        ({"cart_position": [0, 7.0]}, "state.cart_position: from -4.95 to 4.95"),
        ({"cart_position": [0, "1"]}, "state.cart_position: numbers"),
        ({"cart_position": [True, 0]}, "state.cart_position: numbers"),
        ({"cart_velocity": [0, -math.inf]}, "state.cart_velocity: from -100 to 100"),
        ({"pole_quat_xyzw": [0, 0, 0, 0]}, "state.pole_quat_xyzw: a quaternion of length 1"),
        ({"pole_quat_xyzw": [0, 0, 0, 2]}, "state.pole_quat_xyzw: "),
        ({"pole_quat_xyzw": [0, 0, 1]}, "state.pole_quat_xyzw: a list of 4"),
        ({"pole_quat_xyzw": [0.6, 0, 0, 0.8]}, "pole_quat_xyzw: the pole leans beyond"),
        ({"pole_angular_velocity": [0, 0, 1e6]}, "state.pole_angular_velocity: from -200"),
        ({"tick": 200}, "state.tick: a whole number from 0 to 199"),
        ({"tick": -1}, "state.tick"),
        ({"tick": 1.5}, "state.tick"),
        ({"balls": 3}, "state.balls: a list of balls"),
        ({"balls": [3]}, r"state.balls\[0\]: a mapping"),
        ({"balls": [{"velocity": [0, 0, 0]}]}, r"state.balls\[0\].position: is missing"),
        ({"balls": [{"position": [0, 0, 99]}]}, r"state.balls\[0\].position: from -1.05"),
        ({"balls": [{"position": [0, 0, math.nan]}]}, r"state.balls\[0\].position"),
        ({"balls": [{"position": [0, 0, 5], "velocity": [0, 0, 1e4]}]}, r"balls\[0\].velocity"),
        ({"balls": [{"position": [0, 0, 5], "colour": 1}]}, r"state.balls\[0\]"),
        ({"balls": [{"position": [0, 0, 5]}] * 45}, "state.balls: at most 44"),
        ({"novelty": "strong"}, "state.novelty: a mapping"),
    ],
)
def test_states_out_of_range_are_refused_by_the_name_of_the_field(
    make: Callable, state: object, message: str
) -> None:
    env = make()
    expected, _ = env.reset(seed=2)
    with pytest.raises(InputError, match=message):
        env.reset(options={"state": state})
    np.testing.assert_array_equal(env.reset(seed=2)[0], expected)


def test_unknown_options_are_refused(make: Callable) -> None:
    env = make()
    with pytest.raises(UnknownNameError, match="unknown option 'sate'; did you mean 'state'"):
        env.reset(options={"sate": {}})
    with pytest.raises(InputError, match="options: a mapping"):
        env.reset(options=[1])
    assert env.reset(options={})[0].any()


def test_nothing_can_be_asked_before_the_first_reset(make: Callable) -> None:
    env = make(render_mode="rgb_array")
    assert env.unwrapped.novelty is None
    for ask in (lambda: env.step(0), env.unwrapped.get_state, env.render):
        with pytest.raises(InputError, match=r"the episode has not begun; call reset\(\) first"):
            ask()


@pytest.mark.parametrize(
    "action",
    [-1, 5, 2**70, 1.0, math.nan, "right", None, [1], np.array([1, 2]), np.float64(1), True, 1j],
)
def test_bad_actions_are_refused_before_the_engine(make: Callable, action: object) -> None:
    env = make()
    env.reset(seed=1)
    expected = env.step(1)[0]
    env.reset(seed=1)
    with pytest.raises(InputError, match="action: a whole number from 0 to 4 is needed, given"):
        env.step(action)
    np.testing.assert_array_equal(env.step(1)[0], expected)


def test_actions_may_be_any_kind_of_integer(make: Callable) -> None:
    from robo_eval_sim.tasks.cartpole3d.layout import Action

    env = make()
    seen = []
    for kind in (int, np.int64, np.int32, np.uint8, np.array, Action):
        env.reset(seed=1)
        seen.append(env.step(kind(1))[0])
        json.dumps(env.unwrapped.get_state())
    for observation in seen[1:]:
        np.testing.assert_array_equal(observation, seen[0])


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"level": 99}, "unknown level 99"),
        ({"level": "1"}, "unknown level '1'; did you mean '1'|unknown level '1'"),
        ({"level": True}, "unknown level True"),
        ({"level": 1.5}, "unknown level"),
        ({"difficulty": "hrad"}, "unknown difficulty 'hrad'; did you mean 'hard'"),
        ({"difficulty": 2}, "unknown difficulty 2"),
        ({"profile": "papper"}, "unknown profile 'papper'; did you mean 'paper'"),
        ({"balls": -1}, "balls: a whole number from 0 to 20 is needed, given -1"),
        ({"balls": 21}, "balls: a whole number"),
        ({"balls": 2.5}, "balls: a whole number"),
        ({"balls": True}, "balls: a whole number"),
    ],
)
def test_bad_keywords_are_refused(make: Callable, keywords: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**keywords)


def test_unknown_render_modes_are_refused() -> None:
    from robo_eval_sim.tasks.cartpole3d.environment import CartPole3DEnv

    with pytest.raises(UnknownNameError, match="unknown render_mode 'rgb_aray'; did you mean"):
        CartPole3DEnv(render_mode="rgb_aray")
