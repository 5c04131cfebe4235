"""Whether a given CartPole3D state can be started from, and what it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from robo_eval.core.cartpole3d import (
    BALL_COUNT,
    BALL_SLOTS,
    BALL_WIDTH,
    EPISODE_TICKS,
    FIRST_BALL,
    NOMINAL,
    POLE_LIMIT_RAD,
)
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval_sim.start import Ball, Start

FIELDS: Final = (
    "cart_position",
    "cart_velocity",
    "pole_quat_xyzw",
    "pole_angular_velocity",
    "balls",
    "tick",
)
"""The physical fields, enough to start from."""
EXTRA_FIELDS: Final = ("novelty", "history")
HISTORY_FORMAT: Final = 1

_MAX_SPEED: Final = 100.0
"""The engine's own limit, m/s and rad/s."""
_OUTSIDE_M: Final = 1.0
"""How far out of the room a ball's centre may be: a fast one sinks into a wall."""
_NORM_TOLERANCE: Final = 1e-3
_SIN_LIMIT: Final = math.sin(POLE_LIMIT_RAD)
_TAN_LIMIT: Final = math.tan(POLE_LIMIT_RAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenState:
    """A state that passed the checks.

    Attributes:
        start: The physical fields; missing ones have their nominal value.
        novelty: What was drawn, if the state holds it.
        history: How the state came about, if the state holds it.
        fields: The physical fields as given, to compare a replay with.
    """

    start: Start
    novelty: Mapping[str, Any] | None
    history: Mapping[str, Any] | None
    fields: Mapping[str, Any]


def has_fallen(x: float, y: float, z: float, w: float) -> bool:
    """Whether roll or pitch of a pole with this orientation is beyond the limit.

    With R = Rz Ry Rx, the lowest row of R holds -sin(pitch) and the ratio tan(roll).
    """
    upright = 1.0 - 2.0 * (x * x + y * y)
    return not (
        abs(2.0 * (x * z - w * y)) <= _SIN_LIMIT
        and abs(2.0 * (y * z + w * x)) <= _TAN_LIMIT * upright
    )


def physical_fields(row: Sequence[float], tick: int) -> dict[str, Any]:
    """The physical fields of a state from what the world reads."""
    balls = []
    for first in range(FIRST_BALL, FIRST_BALL + BALL_WIDTH * int(row[BALL_COUNT]), BALL_WIDTH):
        ball = list(row[first : first + BALL_WIDTH])
        balls.append({"position": ball[:3], "velocity": ball[3:]})
    return {
        "cart_position": list(row[0:2]),
        "cart_velocity": list(row[2:4]),
        "pole_quat_xyzw": list(row[4:8]),
        "pole_angular_velocity": list(row[8:11]),
        "balls": balls,
        "tick": tick,
    }


def read_state(state: object, profile: str) -> GivenState:
    """Check a state given to `reset(options={"state": ...})`.

    Args:
        state: What was given.
        profile: Profile of the environment; it says how many balls there may be.

    Raises:
        InputError: If it cannot be used; the message names the field.
    """
    if not isinstance(state, Mapping):
        raise InputError(f"state: a mapping as get_state() gives is needed, given {state!r:.80}")
    for name in state:
        if name not in FIELDS + EXTRA_FIELDS:
            raise InputError(f"state: {unknown_name('field', name, FIELDS + EXTRA_FIELDS)}")
    has_history = state.get("history") is not None
    quat = _vector(state, "pole_quat_xyzw", (0.0, 0.0, 0.0, 1.0), limit=1.0 + _NORM_TOLERANCE)
    if abs(math.hypot(*quat) - 1.0) > _NORM_TOLERANCE:
        raise InputError(
            f"state.pole_quat_xyzw: a quaternion of length 1 is needed, given {list(quat)}"
        )
    start = Start(
        cart_position=_vector(state, "cart_position", (0.0, 0.0), limit=_CART_LIMIT_M),
        cart_velocity=_vector(state, "cart_velocity", (0.0, 0.0), limit=_MAX_SPEED),
        pole_quat_xyzw=quat,
        pole_angular_velocity=_vector(
            state, "pole_angular_velocity", (0.0, 0.0, 0.0), limit=2.0 * _MAX_SPEED
        ),
        balls=[] if has_history else _balls(state, BALL_SLOTS[profile]),
        tick=_tick(state, EPISODE_TICKS if has_history else EPISODE_TICKS - 1),
    )
    if not has_history and has_fallen(*quat):
        raise InputError(
            "state.pole_quat_xyzw: the pole leans beyond the limit of 10 degrees,"
            f" given {list(quat)}"
        )
    return GivenState(
        start=start,
        novelty=_mapping(state, "novelty"),
        history=_mapping(state, "history"),
        fields={name: state[name] for name in FIELDS if name in state},
    )


_CART_LIMIT_M: Final = NOMINAL.arena_half_width_m


def _vector(
    state: Mapping[str, Any], name: str, default: tuple[float, ...], *, limit: float
) -> Any:  # noqa: ANN401 - a tuple as long as `default`
    return _numbers(state.get(name, default), f"state.{name}", len(default), limit=limit)


def _numbers(value: object, where: str, size: int, *, limit: float) -> tuple[float, ...]:
    is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    if not is_list or len(value) != size:  # type: ignore[arg-type]
        raise InputError(f"{where}: a list of {size} numbers is needed, given {value!r:.80}")
    return tuple(_number(part, where, -limit, limit) for part in value)  # type: ignore[attr-defined]


def _number(value: object, where: str, low: float, high: float) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool):
        raise InputError(f"{where}: numbers are needed, given {value!r:.80}")
    number = float(value)  # type: ignore[arg-type]
    if not low <= number <= high:  # NaN fails as well
        raise InputError(f"{where}: from {low:g} to {high:g} is possible, given {number!r}")
    return number


def _balls(state: Mapping[str, Any], slots: int) -> list[Ball]:
    value = state.get("balls", ())
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if not is_list:
        raise InputError(f"state.balls: a list of balls is needed, given {value!r:.80}")
    if len(value) > slots:
        raise InputError(f"state.balls: at most {slots} balls are possible, given {len(value)}")
    return [_ball(ball, f"state.balls[{index}]") for index, ball in enumerate(value)]


def _ball(value: object, where: str) -> Ball:
    if not isinstance(value, Mapping) or not set(value) <= {"position", "velocity"}:
        raise InputError(f"{where}: position and velocity are needed, given {value!r:.80}")
    if "position" not in value:
        raise InputError(f"{where}.position: is missing")
    at = _numbers(value["position"], f"{where}.position", 3, limit=math.inf)
    half = NOMINAL.arena_half_width_m + _OUTSIDE_M
    low, high = NOMINAL.arena_floor_m - _OUTSIDE_M, NOMINAL.arena_ceiling_m + _OUTSIDE_M
    for part, (least, most) in zip(at, ((-half, half), (-half, half), (low, high)), strict=True):
        _number(part, f"{where}.position", least, most)
    speed = _numbers(
        value.get("velocity", (0.0, 0.0, 0.0)), f"{where}.velocity", 3, limit=_MAX_SPEED
    )
    return Ball(position=(at[0], at[1], at[2]), velocity=(speed[0], speed[1], speed[2]))


def _tick(state: Mapping[str, Any], most: int) -> int:
    value = state.get("tick", 0)
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not 0 <= value <= most:
        raise InputError(f"state.tick: a whole number from 0 to {most} is needed, given {value!r}")
    return int(value)


def _mapping(state: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    value = state.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise InputError(
            f"state.{name}: a mapping as get_state() gives is needed, given {value!r:.80}"
        )
    return value
