"""Whether a given CartPole3D state can be started from, and what it holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval_sim.tasks.cartpole3d.layout import (
    BALL_COUNT,
    BALL_SLOTS,
    BALL_WIDTH,
    EPISODE_TICKS,
    FIRST_BALL,
    NOMINAL,
    PUSHES,
    has_fallen,
)
from robo_eval_sim.tasks.cartpole3d.start import CART_FORCE_N, Ball, Start

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
"""The engine's own limit of each coordinate, m/s and rad/s."""
_MAX_TURN: Final = 2.0 * _MAX_SPEED
_OUTSIDE_M: Final = 1.0
"""How far out of the room a ball's centre may be: a fast one sinks into a wall."""
_NORM_TOLERANCE: Final = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenState:
    """A state that passed the checks.

    Attributes:
        start: Where to start: the state itself, or where its history began.
        novelty: What was drawn, if the state holds it.
        actions: What was done since the start; none if the state has no history.
        noise_seed: Of noise and hidden force, if the history says so.
        fields: The physical fields as given, to compare with where the history leads.
    """

    start: Start
    novelty: Mapping[str, Any] | None
    actions: Sequence[int] | None
    noise_seed: int
    fields: Mapping[str, Any]


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
    fields = _mapping(state, "state")
    _check_names(fields, "state", FIELDS + EXTRA_FIELDS)
    novelty, history = fields.get("novelty"), fields.get("history")
    if novelty is not None:
        novelty = _mapping(novelty, "state.novelty")
    actions, noise_seed = None, 0
    if history is None:
        start = _read_start(fields, "state", BALL_SLOTS[profile])
    else:
        history = _mapping(history, "state.history")
        start, actions = _read_history(history, BALL_SLOTS[profile])
        noise_seed = _whole(history.get("noise_seed", 0), "state.history.noise_seed", 2**53 - 1)
    given = {name: _plain(fields[name]) for name in FIELDS if name in fields}
    return GivenState(
        start=start, novelty=novelty, actions=actions, noise_seed=noise_seed, fields=given
    )


def write_history(
    start: Start, actions: Sequence[int], noise_seed: int | None = None
) -> dict[str, Any]:
    """How a state came about, as plain data; with the seed of noise, where there is any."""
    history = {"format": HISTORY_FORMAT, "start": start.as_dict(), "actions": list(actions)}
    return history if noise_seed is None else history | {"noise_seed": noise_seed}


def _read_history(history: Mapping[str, Any], slots: int) -> tuple[Start, list[int]]:
    where = "state.history"
    further = ("noise_seed",) if "noise_seed" in history else ()
    _check_names(history, where, ("format", "start", "actions", *further), required=True)
    if history["format"] != HISTORY_FORMAT:
        raise InputError(f"{where}.format: {HISTORY_FORMAT} is needed, given {history['format']!r}")
    fields = _mapping(history["start"], f"{where}.start")
    _check_names(fields, f"{where}.start", (*FIELDS, "cart_force"), required=True)
    start = _read_start(fields, f"{where}.start", slots)
    if fields["cart_force"] is not None:
        force = _numbers(fields["cart_force"], f"{where}.start.cart_force", 2, CART_FORCE_N)
        start = replace(start, cart_force=force)
    actions = history["actions"]
    most = EPISODE_TICKS - start.tick
    if not isinstance(actions, list) or len(actions) > most:
        raise InputError(
            f"{where}.actions: a list of at most {most} is needed, given {actions!r:.80}"
        )
    for action in actions:
        if type(action) is not int or not 0 <= action < len(PUSHES):
            raise InputError(
                f"{where}.actions: numbers from 0 to {len(PUSHES) - 1} are needed,"
                f" given {action!r:.80}"
            )
    return start, actions


def _read_start(fields: Mapping[str, Any], where: str, slots: int) -> Start:
    """The physical fields; missing ones have their nominal value."""
    nominal = Start()

    def vector(name: str, limit: float) -> Any:
        default = getattr(nominal, name)
        return _numbers(fields.get(name, default), f"{where}.{name}", len(default), limit)

    quat = vector("pole_quat_xyzw", 1.0 + _NORM_TOLERANCE)
    if abs(math.hypot(*quat) - 1.0) > _NORM_TOLERANCE:
        raise InputError(
            f"{where}.pole_quat_xyzw: a quaternion of length 1 is needed, given {list(quat)}"
        )
    if has_fallen(*quat):
        raise InputError(
            f"{where}.pole_quat_xyzw: the pole leans beyond the limit of 10 degrees,"
            f" given {list(quat)}"
        )
    return Start(
        cart_position=vector("cart_position", NOMINAL.arena_half_width_m),
        cart_velocity=vector("cart_velocity", _MAX_SPEED),
        pole_quat_xyzw=quat,
        pole_angular_velocity=vector("pole_angular_velocity", _MAX_TURN),
        balls=_balls(fields.get("balls", ()), f"{where}.balls", slots),
        tick=_whole(fields.get("tick", 0), f"{where}.tick", EPISODE_TICKS - 1),
    )


def _balls(value: object, where: str, slots: int) -> list[Ball]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError(f"{where}: a list of balls is needed, given {value!r:.80}")
    if len(value) > slots:
        raise InputError(f"{where}: at most {slots} balls are possible, given {len(value)}")
    return [_ball(ball, f"{where}[{index}]") for index, ball in enumerate(value)]


def _ball(value: object, where: str) -> Ball:
    fields = _mapping(value, where)
    _check_names(fields, where, ("position", "velocity"))
    if "position" not in fields:
        raise InputError(f"{where}.position: is missing")
    x, y, z = _numbers(fields["position"], f"{where}.position", 3, math.inf)
    half = NOMINAL.arena_half_width_m + _OUTSIDE_M
    low, high = NOMINAL.arena_floor_m - _OUTSIDE_M, NOMINAL.arena_ceiling_m + _OUTSIDE_M
    for part, least, most in ((x, -half, half), (y, -half, half), (z, low, high)):
        _number(part, f"{where}.position", least, most)
    velocity = fields.get("velocity", (0.0, 0.0, 0.0))
    a, b, c = _numbers(velocity, f"{where}.velocity", 3, _MAX_SPEED)
    return Ball((x, y, z), (a, b, c))


def _whole(value: Any, where: str, most: int) -> int:
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or not 0 <= value <= most:
        raise InputError(f"{where}: a whole number from 0 to {most} is needed, given {value!r:.80}")
    return int(value)


def _numbers(value: Any, where: str, size: int, limit: float) -> Any:
    is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    if not is_list or len(value) != size:
        raise InputError(f"{where}: a list of {size} numbers is needed, given {value!r:.80}")
    return tuple(_number(part, where, -limit, limit) for part in value)


def _number(value: Any, where: str, low: float, high: float) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool):
        raise InputError(f"{where}: numbers are needed, given {value!r:.80}")
    number = float(value)
    if not low <= number <= high:  # NaN fails as well
        raise InputError(f"{where}: from {low:g} to {high:g} is possible, given {number!r}")
    return number


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: a mapping as get_state() gives is needed, given {value!r:.80}")
    return value


def _check_names(
    fields: Mapping[str, Any], where: str, names: Sequence[str], *, required: bool = False
) -> None:
    for name in fields:
        if name not in names:
            raise InputError(f"{where}: {unknown_name('field', name, names)}")
    missing = [name for name in names if name not in fields]
    if required and missing:
        raise InputError(f"{where}.{missing[0]}: is missing")


def _plain(value: Any) -> Any:
    """With lists in place of tuples and arrays, so that it compares as data from JSON does."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
