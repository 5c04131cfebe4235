"""Whatever is given to CartPole3D is used or refused with one line, and harms nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError

CARTPOLE = "RoboEval/CartPole3D-v0"
ENV = gymnasium.make(CARTPOLE, level=15)
FIRST, _ = ENV.reset(seed=3)
SECOND = ENV.step(1)[0]
ENV.step(2)
SAVED = ENV.unwrapped.get_state()

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=3)
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def is_healthy() -> None:
    """The environment still plays the same episode."""
    np.testing.assert_array_equal(ENV.reset(seed=3)[0], FIRST)
    np.testing.assert_array_equal(ENV.step(1)[0], SECOND)


def refusal(work: Callable[[], object]) -> str | None:
    """The one line with which something is refused, if it is."""
    try:
        work()
    except InputError as err:
        message = str(err)
    else:
        return None
    assert "\n" not in message
    return message


def vectors(size: int) -> st.SearchStrategy[Any]:
    return st.lists(NUMBERS, min_size=size, max_size=size)


def is_action(value: object) -> bool:
    return type(value) is int and 0 <= value <= 4


@given(ANYTHING.filter(lambda value: not is_action(value)))
def test_no_other_action_is_taken(action: object) -> None:
    ENV.reset(seed=3)
    message = refusal(lambda: ENV.step(action))
    assert message is not None
    assert message.startswith("action: a whole number from 0 to 4 is needed, given")
    np.testing.assert_array_equal(ENV.step(1)[0], SECOND)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "cart_position": vectors(2) | ANYTHING,
            "cart_velocity": vectors(2) | ANYTHING,
            "pole_quat_xyzw": vectors(4) | ANYTHING,
            "pole_angular_velocity": vectors(3) | ANYTHING,
            "balls": st.lists(
                st.fixed_dictionaries({"position": vectors(3)}, optional={"velocity": vectors(3)}),
                max_size=3,
            )
            | ANYTHING,
            "tick": st.integers(-300, 300) | ANYTHING,
            "novelty": ANYTHING,
            "history": ANYTHING,
        },
    )
    | ANYTHING
)
def test_states_are_played_or_refused(state: Any) -> None:
    message = refusal(lambda: ENV.reset(seed=1, options={"state": state}))
    if message is None:
        observation = ENV.step(0)[0]
        assert np.isfinite(observation).all()
        assert ENV.observation_space.contains(observation)
    else:
        assert "state" in message
    is_healthy()


@given(st.data())
def test_a_state_with_one_part_changed_is_played_or_refused(data: st.DataObject) -> None:
    state = _copy(SAVED)
    inner: Any = state
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inner[key], dict | list) or not inner[key] or data.draw(st.booleans()):
            break
        inner = inner[key]
    inner[key] = data.draw(NUMBERS | ANYTHING)
    message = refusal(lambda: ENV.reset(seed=1, options={"state": state}))
    assert message is None or "state" in message
    is_healthy()


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    return [_copy(part) for part in value] if isinstance(value, list) else value


@given(
    x=st.floats(-4, 4),
    y=st.floats(-4, 4),
    velocity=st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
    roll=st.floats(-0.17, 0.17),
    pitch=st.floats(-0.17, 0.17),
    rate=st.tuples(*[st.floats(-5, 5)] * 3),
    balls=st.lists(
        st.tuples(*[st.floats(-4.4, 4.4)] * 2, st.floats(0.5, 9.4), *[st.floats(-50, 50)] * 3),
        max_size=5,
    ),
    tick=st.integers(0, 199),
)
def test_any_state_in_range_is_started_from_exactly(
    x: float,
    y: float,
    velocity: tuple[float, float],
    roll: float,
    pitch: float,
    rate: tuple[float, float, float],
    balls: list[tuple[float, ...]],
    tick: int,
) -> None:
    cr, sr, cp, sp = (
        math.cos(roll / 2),
        math.sin(roll / 2),
        math.cos(pitch / 2),
        math.sin(pitch / 2),
    )
    state = {
        "cart_position": [x, y],
        "cart_velocity": list(velocity),
        "pole_quat_xyzw": [sr * cp, cr * sp, -sr * sp, cr * cp],
        "pole_angular_velocity": list(rate),
        "balls": [{"position": list(ball[:3]), "velocity": list(ball[3:])} for ball in balls],
        "tick": tick,
    }
    observation, _ = ENV.reset(options={"state": state})
    saved = ENV.unwrapped.get_state()
    assert {name: saved[name] for name in state} == state
    numbers = [*state["cart_position"], *velocity, *state["pole_quat_xyzw"], *rate]
    np.testing.assert_array_equal(observation[:11], np.float32(numbers))
    after = ENV.step(1)[0]
    again, _ = ENV.reset(options={"state": saved})
    np.testing.assert_array_equal(again, observation)
    np.testing.assert_array_equal(ENV.step(1)[0], after)
    assert np.isfinite(after).all()


@given(ANYTHING)
def test_settings_are_known_or_refused(value: object) -> None:
    for keyword in ("level", "difficulty", "profile", "balls"):
        settings = {keyword: value}
        message = refusal(lambda given=settings: gymnasium.make(CARTPOLE, **given).close())
        assert message is None or keyword in message
