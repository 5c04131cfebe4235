"""How well a controller moved a robot, in numbers computed from sampled signals.

All functions take times in seconds that need not be even. Samples with the same time count once,
the last of them; times that go backwards, and numbers that are not finite, are refused. Means over
time are weighted by the time that each sample stands for, so that a burst of messages counts no
more than its duration. Nothing is computed across `pauses`, the times at which a recording was
interrupted.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.stats.arrays import floats

JERK_WINDOW_S: Final = 0.1
"""Length of the fit that jerk is taken from if none is given; this project's choice."""

_DEGREE: Final = 3
_LEAST_HALF: Final = 2
"""Five samples: with four the cubic goes through all of them, and smooths nothing."""
_HUGE: Final = 1e100
"""No position or force is larger, and what is computed of smaller ones does not overflow."""
_BLOCK: Final = 4096
"""Fits solved at a time, so that memory does not grow with the recording."""

Floats = NDArray[np.float64]


def tracking_rmse(
    joint_stamp_s: ArrayLike,
    joint_position: ArrayLike,
    command_stamp_s: ArrayLike,
    command_position: ArrayLike,
    *,
    turn: float | None = None,
    pauses: ArrayLike = (),
) -> float:
    """Root mean square of the difference between commanded and measured joint positions.

    Each measured position is compared with the newest command at that time, which holds until
    the next one; positions before the first command are left out. The square is the mean over
    time and joints: sqrt(mean_t mean_j (q_j(t) - c_j(t))^2).

    Args:
        joint_stamp_s: Times of the measured positions, shape (N,), seconds.
        joint_position: Measured positions, shape (N, J).
        command_stamp_s: Times of the commands, shape (M,), seconds.
        command_position: Commanded positions, shape (M, J), in the unit of the measured ones.
        turn: A whole turn of joints that turn without end; positions a turn apart are the same.
        pauses: Times at which the recording was interrupted, seconds: no command holds beyond.

    Returns:
        The error, in the unit of the positions.

    Raises:
        ShapeError: If shapes do not fit together, or a number is not finite.
        InputError: If time goes backwards, or no position follows a command.

    Example:
        >>> tracking_rmse([0.0, 1.0, 2.0], [[0.0], [1.0], [2.0]], [0.0], [[1.0]])
        0.7071067811865476
    """
    times, measured = _samples("joint positions", joint_stamp_s, joint_position)
    moments, wanted = _samples("commands", command_stamp_s, command_position)
    _check_width(measured, wanted)
    newest = np.searchsorted(moments, times, side="right") - 1
    has_command = (newest >= 0) & (_part(moments[newest], pauses) == _part(times, pauses))
    if not has_command.any():
        raise InputError("no joint position follows a command")
    times, measured = times[has_command], measured[has_command]
    error = measured - wanted[newest[has_command]]
    if turn is not None:
        error -= turn * np.round(error / turn)
    weights = _weights(times, pauses)
    return float(np.sqrt(np.average(np.square(error).mean(axis=1), weights=weights)))


def jerk_rms(
    stamp_s: ArrayLike,
    position: ArrayLike,
    *,
    window_s: float = JERK_WINDOW_S,
    pauses: ArrayLike = (),
) -> float:
    """Root mean square of the jerk, the third derivative of the joint positions.

    Around each sample a cubic is fitted by least squares to the samples within the window, at
    their own times; its third derivative is the jerk there. The square is the mean over time and
    joints. A polynomial of degree 3 has its jerk exactly; of a sine the fit keeps about
    1 - (w T)^2 / 72, w its angular frequency and T the window. Measurement noise of standard
    deviation s at a period d adds about 317 s sqrt(d / T) / T^3: a longer window has less of it.
    Windows across gaps, which are more than twice as long as they should be, are left out.

    Args:
        stamp_s: Times, shape (N,), seconds.
        position: Positions, shape (N, J).
        window_s: Length of the window, seconds; at least five samples are taken.
        pauses: Times at which the recording was interrupted, seconds: no window lies across.

    Returns:
        The jerk, in the unit of the positions per second cubed.

    Raises:
        ShapeError: If shapes do not fit together, or a number is not finite.
        InputError: If time goes backwards, or the recording is shorter than one window.

    References:
        Savitzky and Golay (1964), Analytical Chemistry 36(8), for even times.

    Example:
        >>> t = np.arange(0.0, 1.0, 0.01)
        >>> round(jerk_rms(t, t[:, None] ** 3), 6)
        6.0
    """
    if not (np.isfinite(window_s) and window_s > 0.0):
        raise InputError(f"window_s is {window_s!r}; it must be a positive number of seconds")
    times, values = _samples("joint positions", stamp_s, position)
    if len(times) <= 2 * _LEAST_HALF:
        raise InputError(
            f"jerk needs at least {2 * _LEAST_HALF + 1} samples, there are {len(times)}"
        )
    period = float(np.median(np.diff(times)))
    half = max(_LEAST_HALF, round(window_s / (2.0 * period)))
    if len(times) <= 2 * half:
        raise InputError(f"the recording is shorter than the window of {window_s:g} s for jerk")
    windows = sliding_window_view(times, 2 * half + 1)
    length = 2.0 * half * period
    is_whole = windows[:, -1] - windows[:, 0] <= 2.0 * length
    is_whole &= _part(windows[:, -1], pauses) == _part(windows[:, 0], pauses)
    if not is_whole.any():
        raise InputError(f"gaps leave no window of {length:g} s for jerk")
    jerk = _third_derivatives(times, values, half, length / 2.0, is_whole)
    centres = times[half : len(times) - half]
    square = np.square(jerk).mean(axis=1)
    # A sample at the edge of a gap stands for its own side only.
    weight = np.minimum(_weights(centres, ()), period * 2.0)[is_whole]
    return float(np.sqrt(np.average(square, weights=weight)))


def peak_force(force: ArrayLike) -> float:
    """Greatest magnitude of a contact force.

    What the sensor shows without contact, such as the weight of a tool, is part of it; record
    the compensated force.

    Args:
        force: Force vectors, shape (N, 3), or magnitudes, shape (N,), in newton.

    Returns:
        The greatest magnitude, newton.

    Raises:
        ShapeError: If the shape is another, or a number is not finite.
        InputError: If there is no sample.

    Example:
        >>> peak_force([[3.0, 4.0, 0.0], [0.0, 0.0, -1.0]])
        5.0
    """
    vectors = _floats("force", force)
    if vectors.ndim == 1:
        vectors = vectors[:, None]
    if vectors.ndim != 2 or vectors.shape[1] not in (1, 3):
        raise ShapeError(f"forces have shape {np.shape(force)}; they need (N, 3) or (N,)")
    if not len(vectors):
        raise InputError("no force was recorded")
    _check_finite("forces", vectors)
    return float(np.sqrt(np.square(vectors).sum(axis=1)).max())


def settling_time(
    joint_stamp_s: ArrayLike,
    joint_position: ArrayLike,
    command_stamp_s: ArrayLike,
    command_position: ArrayLike,
    *,
    band: float,
    pauses: ArrayLike = (),
) -> float:
    """How long the joints took to come to rest at the last command.

    From the first command from which on all lie within the band around the last one, until the
    first measured position from which on every joint lies within the band. A single step is the
    textbook case; of a commanded motion it is how much later than the command the robot arrived.

    Args:
        joint_stamp_s: Times of the measured positions, shape (N,), seconds.
        joint_position: Measured positions, shape (N, J).
        command_stamp_s: Times of the commands, shape (M,), seconds.
        command_position: Commanded positions, shape (M, J).
        band: Greatest distance of a joint that counts as settled, in the unit of the positions.
        pauses: Times at which the recording was interrupted, seconds.

    Returns:
        Seconds, to within one period of the measured positions.

    Raises:
        ShapeError: If shapes do not fit together, or a number is not finite.
        InputError: If time goes backwards, the band is not positive, the joints had not settled
            at the end, or the recording was interrupted before they had.

    Example:
        >>> settling_time([0.0, 1.0, 2.0], [[0.0], [0.5], [1.0]], [0.5], [[1.0]], band=0.1)
        1.5
    """
    if not (np.isfinite(band) and band > 0.0):
        raise InputError(f"band is {band!r}; it must be a positive number")
    times, measured = _samples("joint positions", joint_stamp_s, joint_position)
    moments, wanted = _samples("commands", command_stamp_s, command_position)
    _check_width(measured, wanted)
    target = wanted[-1]
    commanded = moments[_last_entry(np.abs(wanted - target).max(axis=1) <= band)]
    is_near = np.abs(measured - target).max(axis=1) <= band
    if not is_near[-1] or times[-1] < commanded:
        raise InputError("the joints had not settled when the recording ended")
    arrived = times[_last_entry(is_near)]
    if _part(commanded, pauses) != _part(max(arrived, commanded), pauses):
        raise InputError("the recording was interrupted before the joints had settled")
    return float(max(0.0, arrived - commanded))


# What they share -------------------------------------------------------------------------------


def _floats(name: str, values: ArrayLike) -> Floats:
    try:
        return floats(name, values)
    except ValueError as err:
        raise ShapeError(str(err)) from err


def _samples(what: str, stamp_s: ArrayLike, values: ArrayLike) -> tuple[Floats, Floats]:
    """Times and values, checked, each time once."""
    times = _floats("stamp_s", stamp_s)
    table = _floats(what, values)
    if times.ndim != 1 or table.ndim != 2 or len(times) != len(table) or not table.shape[1:] > (0,):
        raise ShapeError(
            f"{what} have times of shape {times.shape} and values of shape {table.shape}; they"
            " need (N,) and (N, J)"
        )
    if not len(times):
        raise InputError(f"no {what} were recorded")
    _check_finite(f"times of {what}", times[:, None])
    _check_finite(what, table)
    backwards = np.flatnonzero(np.diff(times) < 0.0)
    if len(backwards):
        at = int(backwards[0]) + 1
        raise InputError(
            f"time of {what} goes backwards at sample {at}, from {times[at - 1]:g} to"
            f" {times[at]:g} s"
        )
    is_last = np.append(np.diff(times) > 0.0, True)
    return times[is_last], table[is_last]


def _check_finite(what: str, table: Floats) -> None:
    wrong = np.argwhere(~(np.abs(table) <= _HUGE))
    if len(wrong):
        row, column = map(int, wrong[0])
        raise ShapeError(f"{what}: sample {row}, column {column} is {table[row, column]:g}")


def _check_width(measured: Floats, wanted: Floats) -> None:
    if measured.shape[1] != wanted.shape[1]:
        raise ShapeError(
            f"commands are of {wanted.shape[1]} joints, positions of {measured.shape[1]}"
        )


def _part(times: ArrayLike, pauses: ArrayLike) -> NDArray[np.int64]:
    """Behind how many pauses each time lies."""
    return np.asarray(np.searchsorted(_floats("pauses", pauses), times))


def _weights(times: Floats, pauses: ArrayLike) -> Floats:
    """The time that each sample stands for: half of the way to each of its neighbours."""
    steps = np.where(np.diff(_part(times, pauses)) > 0, 0.0, np.diff(times))
    if not steps.any():
        return np.ones(len(times))
    weights: Floats = (np.append(steps, 0.0) + np.append(0.0, steps)) / 2.0
    return weights


def _last_entry(inside: NDArray[np.bool_]) -> int:
    """Place from which on all are inside; the last one is."""
    outside = np.flatnonzero(~inside)
    return int(outside[-1]) + 1 if len(outside) else 0


def _third_derivatives(
    times: Floats, values: Floats, half: int, unit_s: float, is_whole: NDArray[np.bool_]
) -> Floats:
    """Of the cubic around each sample but the outermost, of which (N - 2 half,) some are asked."""
    width = 2 * half + 1
    windows = sliding_window_view(times, width)
    asked = np.flatnonzero(is_whole)
    found = np.empty((len(asked), values.shape[1]))
    every = sliding_window_view(values, width, axis=0)
    for low in range(0, len(asked), _BLOCK):
        block = asked[low : low + _BLOCK]
        # From -1 to 1, so that the powers stay of one size.
        tau = (windows[block] - windows[block, half : half + 1]) / unit_s
        powers = tau[:, :, None] ** np.arange(_DEGREE + 1)
        # The centre is taken off: an offset would only cost digits.
        rows = every[block]
        moved = rows - rows[:, :, half : half + 1]
        turned = powers.transpose(0, 2, 1)
        normal, right = turned @ powers, turned @ moved.transpose(0, 2, 1)
        found[low : low + _BLOCK] = np.linalg.solve(normal, right)[:, _DEGREE]
    jerk: Floats = 6.0 * found / unit_s**3
    return jerk
