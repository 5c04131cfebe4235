"""Where a camera is on a robot's hand, or beside the robot, from pairs of poses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.spatial.transform import Rotation

from robo_eval.core.defaults import LEVEL
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.wording import counted
from robo_eval.stats.quantiles import stdtrit
from robo_eval_calibration.offsets import ANGLES, LENGTHS, Array, Offset, Table, unknown

_NUMBERS: Final = {f"{axis}_m": "m" for axis in "xyz"} | {f"r{axis}_rad": "rad" for axis in "xyz"}
"""What is found: the position, and the rotation vector."""
_LEAST: Final = 4
"""Stations, so that three are there where one is left out."""
_PARALLEL: Final = 0.05
"""Rotations about a second axis, by those about the first, below which there is but one axis."""
_EXACT: Final = 1e-6
"""Residuals, rad and m, below which poses are as good as exact."""
_UNIT: Final = 0.01
"""How far the length of a quaternion may be from 1."""
_FITS: Final = 0.25
"""Largest share of what the stations move that may be left over: poses that have nothing to do with
each other leave about all of it, and errors of 1 cm in movements of 10 cm leave a tenth."""
_SEEN: Final = (0.02, 20.0)
"""Distances (m) at which cameras see a target well enough; the unit is wrong beyond them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poses:
    """Poses T_a_b, one a station.

    Attributes:
        turn: Rotations from b to a, n of them.
        p: Origins of b in a, shape (n, 3), m.
    """

    turn: Rotation
    p: Array

    def __matmul__(self, other: Poses) -> Poses:
        return Poses(turn=self.turn * other.turn, p=self.turn.apply(other.p) + self.p)

    def inverse(self) -> Self:
        """T_b_a of each."""
        turn = self.turn.inv()
        return type(self)(turn=turn, p=-turn.apply(self.p))

    def take(self, which: NDArray[Any]) -> Self:
        """Some of them."""
        return type(self)(turn=self.turn[which], p=self.p[which])


def read_poses(table: Table, name: str) -> Poses:
    """Poses of a table: `NAME_x_m`, ..., with a quaternion `NAME_qx`, ... or `NAME_rx_rad`, ...

    Raises:
        InputError: If a column is missing, a cell is no number, a quaternion has not length 1, or
            a rotation vector in radians is longer than a turn.
    """
    p = [table.numbers(f"{name}_{axis}", LENGTHS) for axis in "xyz"]
    is_quaternion = f"{name}_qw" in table.header
    turns = (
        [table.numbers(f"{name}_q{axis}") for axis in "xyzw"]
        if is_quaternion
        else [table.numbers(f"{name}_r{axis}", ANGLES) for axis in "xyz"]
    )
    given = np.array(turns, dtype=np.float64).T
    is_rad = table.unit(f"{name}_rx", ANGLES) == "rad"
    for line, one in zip(table.lines, np.linalg.norm(given, axis=1), strict=True):
        if is_quaternion and abs(one - 1.0) > _UNIT:
            raise InputError(
                f"{table.path}: line {line}, columns '{name}_qx' to '{name}_qw': the quaternion"
                f" has length {one:.3g}; it must have length 1"
            )
        if not is_quaternion and is_rad and one > 2.0 * np.pi:
            raise InputError(
                f"{table.path}: line {line}, columns '{name}_rx_rad' to '{name}_rz_rad': the"
                f" rotation vector is {one:.3g} rad long, and a turn is 6.28; if these are degrees,"
                f" call them '{name}_rx_deg' to '{name}_rz_deg'"
            )
    turn = Rotation.from_quat(given) if is_quaternion else Rotation.from_rotvec(given)
    return Poses(turn=turn, p=np.array(p, dtype=np.float64).T)


def hand_eye(path: Path, *, fixed: bool = False, level: float = LEVEL) -> Offset:
    """Pose of a camera in the hand's frame, from a CSV file of stations of the hand.

    Each line has the pose of the hand in the robot's base, `hand_...`, and that of a target, which
    does not move, in the camera's frame, `target_...`. Rotation and position are first found in
    closed form from motions between all stations, then refined so that all stations see the target
    at one place. That is repeated without each station in turn; the scatter (jackknife) makes the
    intervals.

    Args:
        path: The file.
        fixed: The camera stands beside the robot and the target is on the hand: its pose in the
            base is found.
        level: Coverage of the intervals.

    Returns:
        Position (m) and rotation vector (rad), with verdict `found`, `too few`, `parallel` where
        the hand turned about one axis only, or `does not fit` where much of what the stations move
        is left over, or the target is too near or far to be seen.

    Raises:
        InputError: As `read_poses`.

    References:
        Park and Martin (1994), Robot sensor calibration: solving AX = XB on the Euclidean group,
        IEEE Transactions on Robotics and Automation 10:717-721; Efron and Stein (1981), The
        jackknife estimate of variance, Annals of Statistics 9:586-596.
    """
    table = Table(path)
    hand, target = (read_poses(table, name) for name in ("hand", "target"))
    of, n = "camera in the base" if fixed else "camera in the hand", len(hand.p)
    if n < _LEAST:
        reason = f"{counted(n, 'station')}; take at least {_LEAST}, better 12"
        return unknown(of, "too few", reason, n, **_NUMBERS)
    hand = hand.inverse() if fixed else hand
    first, second = np.triu_indices(n, 1)
    turns = (hand.take(first).turn.inv() * hand.take(second).turn).as_rotvec()
    sizes = np.linalg.svd(turns, compute_uv=False)
    if sizes[1] <= max(_PARALLEL * sizes[0], _EXACT):
        reason = (
            "the hand turned about one axis only, or hardly: nothing tells how far the camera is"
            " along it; tilt the hand by 30 degrees and more about two axes"
        )
        return unknown(of, "parallel", reason, n, **_NUMBERS)
    found = _refined(hand, target, _closed(hand, target))
    rest = _residuals(found, hand, target)
    others = ~np.eye(n, dtype=np.bool_)
    again = [_refined(hand.take(own), target.take(own), found) for own in others]
    told = _told(of, found, again, rest, table.lines, level)
    if doubt := _doubt(hand, target, rest):
        nothing = unknown(of, "does not fit", doubt, n, **_NUMBERS)
        return replace(nothing, residuals=told.residuals, lines=told.lines)
    return told


def _closed(hand: Poses, target: Poses) -> Poses:
    """The one pose x for which `hand @ x @ target` is the same at all stations, or nearly."""
    first, second = np.triu_indices(len(hand.p), 1)
    a = hand.take(second).inverse() @ hand.take(first)
    b = target.take(second) @ target.take(first).inverse()
    turn, _ = Rotation.align_vectors(_axes(a.turn), _axes(b.turn))
    rows = (a.turn.as_matrix() - np.eye(3)).reshape(-1, 3)
    p, *_ = np.linalg.lstsq(rows, (turn.apply(b.p) - a.p).ravel(), rcond=None)
    return Poses(turn=turn, p=np.asarray(p, dtype=np.float64))


def _axes(turn: Rotation) -> Array:
    """Axes, by the sines of their angles: that of half a turn has no direction, and no weight."""
    found = turn.as_rotvec()
    return np.asarray(found * np.sinc(np.linalg.norm(found, axis=1, keepdims=True) / np.pi))


def _residuals(x: Poses, hand: Poses, target: Poses) -> tuple[Array, Array]:
    """By how much each station sees the target turned (rad) and moved (m) from their mean."""
    seen = hand @ x @ target
    return (seen.turn.mean().inv() * seen.turn).as_rotvec(), seen.p - seen.p.mean(axis=0)


def _size(rest: Array) -> float:
    return float(np.sqrt((rest**2).sum(axis=1).mean()))


def _refined(hand: Poses, target: Poses, start: Poses) -> Poses:
    """The pose near another for which residuals of both kinds, each by its size, are least."""
    sizes = [max(_size(rest), _EXACT) for rest in _residuals(start, hand, target)]
    if max(sizes) <= _EXACT:
        return start

    def moved(by: Array) -> Poses:
        return Poses(turn=start.turn * Rotation.from_rotvec(by[:3]), p=start.p + by[3:])

    def error(by: Array) -> Array:
        both = zip(_residuals(moved(by), hand, target), sizes, strict=True)
        return np.concatenate([rest.ravel() / size for rest, size in both])

    return moved(optimize.least_squares(error, np.zeros(6), method="lm", ftol=_EXACT).x)


def _doubt(hand: Poses, target: Poses, rest: tuple[Array, Array]) -> str | None:
    """Why these poses, or their units, cannot be right; None if they can."""
    turned = _size((hand.turn.mean().inv() * hand.turn).as_rotvec())
    moved = max(_size(one.p - one.p.mean(axis=0)) for one in (hand, target))
    away = float(np.median(np.linalg.norm(target.p, axis=1)))
    for left, all_of_it, unit in zip(map(_size, rest), (turned, moved), ("rad", "m"), strict=True):
        if left > max(_FITS * all_of_it, _EXACT):
            return (
                f"the stations move by {all_of_it:.2g} {unit}, and {left:.2g} {unit} are left over:"
                " check units, the order of the lines, that the target did not move, and whose pose"
                " in whose frame each is; a camera beside the robot needs --fixed"
            )
    if not _SEEN[0] <= away <= _SEEN[1]:
        return (
            f"the target is {away:.2g} m from the camera, and cameras see from {_SEEN[0]:g} to"
            f" {_SEEN[1]:g} m: check units"
        )
    return None


def _told(
    of: str, found: Poses, again: list[Poses], rest: tuple[Array, Array], lines: list[int],
    level: float,
) -> Offset:  # fmt: skip
    value, n = _vector(found, None), len(lines)
    residuals = {"root_mean_square_rad": _size(rest[0]), "root_mean_square_m": _size(rest[1])}
    others = np.array([_vector(one, value) for one in again])
    scatter = np.sqrt((n - 1) * others.var(axis=0))
    half = float(stdtrit(n - 1, 0.5 + level / 2.0)) * scatter
    ends = zip(_NUMBERS.items(), value, value - half, value + half, strict=True)
    return Offset(
        of=of,
        verdict="found",
        numbers={
            name: Estimate(value=float(x), low=float(low), high=float(high), level=level, n=n,
                           method="jackknife", unit=unit)
            for (name, unit), x, low, high in ends
        },
        residuals=residuals | {"scatter_m": float(np.linalg.norm(scatter[:3])),
                               "scatter_rad": float(np.linalg.norm(scatter[3:]))},
        lines=(lines[int(np.linalg.norm((others - value)[:, :3], axis=1).argmax())],),
    )  # fmt: skip


def _vector(pose: Poses, near: Array | None) -> Array:
    """Position and rotation vector; of the two vectors of one rotation that which is nearer."""
    turn = pose.turn.as_rotvec()
    if near is not None and (angle := float(np.linalg.norm(turn))):
        other = turn * (1.0 - 2.0 * np.pi / angle)
        if np.linalg.norm(other - near[3:]) < np.linalg.norm(turn - near[3:]):
            turn = other
    return np.concatenate([pose.p, turn])
