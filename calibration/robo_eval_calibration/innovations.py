"""What predictions of one tick get wrong, as white noise where sensors and force explain it.

Sensors are noisy, and something nobody models pushes, so that errors of predictions hang together
in time. A steady Kalman filter, whose states are the error of measurement and the hidden force,
takes out what earlier errors foretell; what is left of a good simulator is white.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_discrete_are, solve_triangular
from scipy.optimize import minimize

from robo_eval.core.errors import InputError
from robo_eval.core.task import Constant, TaskSpec
from robo_eval.log.snapshot import DISTURBANCE, NOISE
from robo_eval_calibration.recordings import Array, Recording

DELAY: Final = "delay_s"
FORCE, MEMORY = "force_noise_n", "force_memory_s"
"""Constants that are the delay of commands, and the size and memory of the hidden force."""
FLOOR: Final = {"steps": 0.05, "whole": 0.2}
"""Least noise that is believed, as a share of what is declared, by how recordings are played: no
simulator is exact, and a channel without noise would let errors of linearisation rule."""
_EVALUATIONS: Final = 120
_LONG: Final = 500
"""Ticks after which a filter is steady, where no formula says how it is then."""
_ALIKE: Final = 0.05
"""Largest difference of motions that share a filter, as a share of the greatest derivative."""
_LEAST_STEPS: Final = 10
_STEP: Final = 1e-4
"""Of finite differences, as a share of the bounds; and of states, as a share of one unit."""


class Model(Protocol):
    """A simulator that plays one tick from each of many states."""

    @property
    def task(self) -> TaskSpec:
        """What it declares of itself."""

    def predict(self, states: Array, forces: Array, constants: Mapping[str, float]) -> Array:
        """The states one tick later, (T, C), under forces (T, A) from states (T, C)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Errors of the predictions of one recording, and what they would change by.

    Attributes:
        errors: State measured less state foretold, shape (T, C); 0 where a state is missing.
        columns: Derivative of the errors by each free constant, shape (T, C, P).
        pushes: Derivative of what is foretold by force on each motor, shape (T, C, A); of no length
            if it was not asked for.
        is_there: Which steps have both their states, shape (T,).
        turn: Derivative of what is foretold by the state, at the mean state, shape (C, C).
        reach: Mean derivative by force, shape (C, A).
    """

    errors: Array
    columns: Array
    pushes: Array
    is_there: NDArray[np.bool_]
    turn: Array
    reach: Array


def physics_of(task: TaskSpec) -> dict[str, Constant]:
    """The constants of a task that motion depends on, by name: not those of sensors and forces."""
    return {one.name: one for one in task.constants if one.stage not in (NOISE, DISTURBANCE)}


def nominal_of(task: TaskSpec) -> dict[str, float]:
    """What the simulator has without calibration, by constant of the physics."""
    return {name: one.nominal for name, one in physics_of(task).items()}


def declared_noise(task: TaskSpec) -> dict[str, float]:
    """Noise of sensors and hidden force that a search begins with, by name of its constant.

    That of the simulator; where it has none, what the task calls accurate.
    """
    return {
        one.name: one.nominal or one.wanted
        for one in task.constants
        if one.stage in (NOISE, DISTURBANCE)
    }


def least_noise(task: TaskSpec) -> dict[str, float]:
    """The least noise that is believed, by constant."""
    bounds = {one.name: one.low for one in task.constants}
    share = FLOOR[task.replay]
    return {name: max(bounds[name], share * size) for name, size in declared_noise(task).items()}


def delayed(commands: Array, ticks: float) -> Array:
    """What acts in each tick of commands that come later; a part of a tick blends two.

    Args:
        commands: Shape (T, A).
        ticks: Delay, 0 or more.

    Example:
        >>> delayed(np.array([[4.0], [8.0], [8.0]]), 1.25).ravel().tolist()
        [0.0, 3.0, 7.0]
    """
    whole = math.floor(ticks)
    part = ticks - whole
    early = np.concatenate([np.zeros((whole + 1, commands.shape[1])), commands])
    count = len(commands)
    return (1.0 - part) * early[1 : count + 1] + part * early[:count]


def delay_from_efforts(recording: Recording, most_ticks: float) -> tuple[float, float]:
    """Delay of the efforts behind the commands in ticks, and its standard deviation.

    Raises:
        InputError: If the commands never change, so that nothing tells.
    """
    assert recording.efforts is not None
    found: tuple[float, float, float] | None = None
    for whole in range(math.floor(most_ticks) + 1):
        now, before = (delayed(recording.commands, whole + more) for more in (0, 1))
        x = np.column_stack([now.ravel(), before.ravel()])
        y = recording.efforts.ravel()
        kept = np.isfinite(y)
        x, y = x[kept], y[kept]
        if len(y) < _LEAST_STEPS or np.linalg.matrix_rank(x) < 2:
            continue
        # With a gain of its own: what is sought is when, not how strongly.
        (a, b), *_ = np.linalg.lstsq(x, y, rcond=None)
        part = float(np.clip(b / (a + b), 0.0, 1.0)) if a + b else 0.0
        shape = x @ [1.0 - part, part]
        left = y - shape * (shape @ y) / max(float(shape @ shape), 1e-300)
        by_part = (x[:, 1] - x[:, 0]) * (a + b)
        sd = math.sqrt(float(left @ left) / (len(y) - 2) / max(float(by_part @ by_part), 1e-300))
        if found is None or left @ left < found[0]:
            found = float(left @ left), whole + part, sd
    if found is None:
        raise InputError(
            f"recording {recording.id}: commands and efforts tell no delay; record a motion whose"
            " commands change"
        )
    return found[1:]


def complete(rows: Array) -> NDArray[np.bool_]:
    """Which rows hold finite numbers alone."""
    return np.asarray(np.isfinite(rows).all(axis=1))


def forces_of(recording: Recording, delay_ticks: float) -> Array:
    """What acted on the motors in each tick: measured efforts, else commands that come later."""
    if recording.efforts is not None:
        return recording.efforts
    return delayed(recording.commands, delay_ticks)


def track_of(
    model: Model,
    recording: Recording,
    constants: Mapping[str, float],
    names: Sequence[str],
    *,
    with_pushes: bool = False,
) -> Track:
    """Errors of one-tick predictions of a recording, with their derivatives.

    Args:
        model: The simulator.
        recording: What was measured.
        constants: Those of the simulator, free ones included.
        names: The free constants.
        with_pushes: Whether the derivative by force is wanted for each tick.

    Raises:
        InputError: If too few ticks are complete, or a prediction is no finite number.
    """
    task = model.task
    physics = physics_of(task)
    forces = forces_of(recording, constants.get(DELAY, 0.0) / task.tick_s)
    known = complete(recording.states)
    there = known[:-1] & known[1:] & complete(forces)
    if there.sum() < _LEAST_STEPS:
        raise InputError(
            f"recording {recording.id}: {there.sum()} of {len(there)} ticks have both their states;"
            f" {_LEAST_STEPS} are needed"
        )
    before, forces = recording.states[:-1][there], forces[there]

    def foretold(states: Array, force: Array, changed: Mapping[str, float]) -> Array:
        used = {name: changed[name] for name in physics if name != DELAY}
        after = model.predict(states, force, used)
        if not np.isfinite(after).all():
            at = int(np.argwhere(~np.isfinite(after))[0, 0])
            raise InputError(
                f"recording {recording.id}: the simulator foretells no finite number from"
                f" {np.round(states[at], 4).tolist()} with {used}"
            )
        return after

    def whole(values: Array) -> Array:
        full = np.zeros((len(there), *values.shape[1:]))
        full[there] = values
        return full

    # All that is played with the same constants at once: others have bodies built anew.
    size, motors = before.shape[1], forces.shape[1]
    centre, nudges, more = before.mean(axis=0), _STEP * np.eye(size), np.eye(motors)
    pushed = [forces + one for one in more] if with_pushes else []
    rest = np.zeros((2 * size, motors))
    still = np.tile(centre, (2 * motors, 1))
    ends = foretold(
        np.vstack([*([before] * (1 + len(pushed))), centre + nudges, centre - nudges, still]),
        np.vstack([forces, *pushed, rest, more, -more]),
        constants,
    )
    here, *by_push = ends[: len(before) * (1 + len(pushed))].reshape(-1, len(before), size)
    up, down, ahead, back = np.split(ends[-2 * (size + motors) :], np.cumsum([size, size, motors]))
    columns = np.zeros((*here.shape, len(names)))
    # Masses, which come first, last: then fewer bodies are built.
    for index, name in reversed(list(enumerate(names))):
        moved, acting = dict(constants), forces
        if name == DELAY:  # between the same two commands
            step = math.copysign(1e-3, 0.5 - constants[name] / task.tick_s % 1.0) * task.tick_s
            acting = forces_of(recording, (constants[name] + step) / task.tick_s)[there]
        else:
            one = physics[name]
            step = math.copysign(
                _STEP * (one.high - one.low), (one.low + one.high) / 2.0 - constants[name]
            )
            moved[name] += step
        columns[:, :, index] = (here - foretold(before, acting, moved)) / step
    pushes = np.stack(by_push, axis=2) - here[:, :, None] if by_push else columns[:, :, :0]
    return Track(
        errors=whole(recording.states[1:][there] - here),
        columns=whole(columns),
        pushes=whole(pushes),
        is_there=there,
        turn=(up - down).T / (2.0 * _STEP),
        reach=(ahead - back).T / 2.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Whitened:
    """Innovations of one recording, in standard deviations.

    Attributes:
        values: Of the errors, then of each further column, shape (T, C, 1 + K).
        log_det: Logarithm of the determinant of their covariance, summed over steps.
    """

    values: Array
    log_det: float


def rows_of(unit: Sequence[Whitened]) -> Array:
    """All channels of all ticks of recordings below one another, shape (N, 1 + K)."""
    return np.vstack([one.values.reshape(-1, one.values.shape[2]) for one in unit])


def whitened(
    task: TaskSpec,
    tracks: Sequence[Track],
    noise: Mapping[str, float],
    more: Sequence[Array] | None = None,
) -> list[Whitened]:
    """Errors and their columns through the steady filter of some noise.

    Args:
        task: What its channels are.
        tracks: Errors and columns; as many columns each.
        noise: Standard deviations of sensors and force, and its memory, by constant.
        more: Further columns of each track, shape (T, C, K).
    """
    found: dict[int, Whitened] = {}
    left = list(range(len(tracks)))
    while left:
        # One filter does for all that move alike, and one pass over time for all of them.
        first = tracks[left[0]]
        alike = [index for index in left if _are_alike(first, tracks[index])]
        left = [index for index in left if index not in alike]
        stacks = []
        for index in alike:
            parts = [tracks[index].errors[:, :, None], tracks[index].columns]
            stacks.append(np.concatenate(parts if more is None else [*parts, more[index]], axis=2))
        chosen = [tracks[index] for index in alike]
        found |= zip(alike, _filtered(task, first, chosen, stacks, noise), strict=True)
    return [found[index] for index in range(len(tracks))]


def _are_alike(one: Track, other: Track) -> bool:
    """Whether one filter does for both: they move alike, and neither lacks a step."""
    if one is other:
        return True
    pairs = ((one.turn, other.turn), (one.reach, other.reach))
    return bool(one.is_there.all() and other.is_there.all()) and all(
        np.abs(a - b).max() <= _ALIKE * np.abs(a).max() for a, b in pairs
    )


def _filtered(
    task: TaskSpec,
    like: Track,
    tracks: Sequence[Track],
    stacks: Sequence[Array],
    noise: Mapping[str, float],
) -> list[Whitened]:
    """Stacks (T, C, K) of tracks that move alike, with what the filter makes of them."""
    sensors = np.array([noise[channel.noise] for channel in task.channels])
    size, motors = like.reach.shape
    memory = noise.get(MEMORY, 0.0)
    kept = math.exp(-task.tick_s / memory) if memory > 0.0 else 0.0
    # In units of the sensors and of the force, so that no covariance is tiny.
    turn = like.turn * sensors / sensors[:, None]
    reach = like.reach * noise.get(FORCE, 0.0) / sensors[:, None]
    seen = np.hstack([-turn, reach])
    goes_on = np.diag(np.r_[np.zeros(size), np.full(motors, kept)])
    driven = np.diag(np.r_[np.ones(size), np.full(motors, 1.0 - kept * kept)])
    # The next error of measurement is both seen now and a state then.
    shared = np.vstack([np.eye(size), np.zeros((motors, size))])
    spread = _steady(goes_on, seen, driven, shared)
    covariance = seen @ spread @ seen.T + np.eye(size)
    root = cholesky(covariance, lower=True)
    gain = np.linalg.solve(covariance, (goes_on @ spread @ seen.T + shared).T).T
    onward = goes_on - gain @ seen
    # A steady filter has watched for long. How much less is known at the start is what it may be
    # off by there: further columns, which are projected out below.
    excess, axes = np.linalg.eigh(np.eye(size + motors) - spread)
    offsets = axes * np.sqrt(np.maximum(excess, 0.0))
    own, count = stacks[0].shape[2], max(map(len, stacks))
    every = np.zeros((size, count, own * len(stacks) + size + motors))
    for index, stack in enumerate(stacks):
        at = slice(own * index, own * (index + 1))
        every[:, : len(stack), at] = stack.transpose(1, 0, 2) / sensors[:, None, None]
    now = np.zeros((size + motors, every.shape[2]))
    now[:, -size - motors :] = offsets
    # Whatever does not wait for the tick before is done for all ticks at once.
    inward = (gain @ every.reshape(size, -1)).reshape(size + motors, count, -1)
    states = np.empty_like(inward)
    for tick in range(count):
        states[:, tick] = now
        # Tracks that lack a step are alone.
        is_there = len(tracks) > 1 or tracks[0].is_there[tick]
        now = onward @ now + inward[:, tick] if is_there else goes_on @ now
    every -= (seen @ states.reshape(size + motors, -1)).reshape(every.shape)
    upright = solve_triangular(root, np.eye(size), lower=True)
    white = (upright @ every.reshape(size, -1)).reshape(every.shape)
    log_det = 2.0 * float(np.log(np.diag(root) * sensors).sum())
    found = []
    for index, (track, stack) in enumerate(zip(tracks, stacks, strict=True)):
        at = slice(own * index, own * (index + 1))
        rows, by_offset = (
            (part[:, : len(stack)] * track.is_there[:, None]).reshape(-1, part.shape[2])
            for part in (white[:, :, at], white[:, :, -size - motors :])
        )
        squares, turned = np.linalg.eigh(np.eye(size + motors) + by_offset.T @ by_offset)
        fit = turned.T @ (by_offset.T @ rows)
        # The root of the inverse of the covariance that the offsets add.
        part = (1.0 - 1.0 / np.sqrt(squares)) / np.maximum(squares - 1.0, 1e-12)
        cleared = rows - by_offset @ (turned @ (part[:, None] * fit))
        found.append(
            Whitened(
                values=cleared.reshape(size, len(stack), own).transpose(1, 0, 2),
                log_det=log_det * int(track.is_there.sum()) + float(np.log(squares).sum()),
            )
        )
    return found


def _steady(goes_on: Array, seen: Array, driven: Array, shared: Array) -> Array:
    """Covariance of the states of a filter that has watched for long."""
    unit = np.eye(len(seen))
    try:
        found = solve_discrete_are(goes_on.T, seen.T, driven, unit, s=shared)
    except (LinAlgError, ValueError):  # ill-conditioned, as far from any true constants
        found = np.eye(len(goes_on))
        for _ in range(_LONG):
            cross = goes_on @ found @ seen.T + shared
            seen_spread = seen @ found @ seen.T + unit
            found = goes_on @ found @ goes_on.T + driven
            found -= cross @ np.linalg.solve(seen_spread, cross.T)
            found = (found + found.T) / 2.0
    return np.asarray(found, dtype=np.float64)


def misfit(task: TaskSpec, units: Sequence[Sequence[Track]], noise: Mapping[str, float]) -> float:
    """Twice the negative logarithm of the likelihood of noise, best constants of each unit given.

    Args:
        task: What its channels are.
        units: Recordings that share their constants, as tracks.
        noise: By constant.
    """
    found = iter(whitened(task, [track for unit in units for track in unit], noise))
    total = 0.0
    for unit in units:
        own = [next(found) for _ in unit]
        rows = rows_of(own)
        _, left = solved(rows[:, 0], rows[:, 1:])
        total += float(left @ left) + sum(one.log_det for one in own)
    return total


def solved(y: Array, x: Array) -> tuple[Array, Array]:
    """Least squares whatever the size of its columns: coefficients, and what is left of y.

    Along what the columns do not tell apart, nothing moves.
    """
    size = np.maximum(np.linalg.norm(x, axis=0), 1e-300)
    unit = x / size
    solution = np.linalg.pinv(unit.T @ unit, rcond=1e-10, hermitian=True) @ (unit.T @ y)
    return (solution.T / size).T, y - unit @ solution


def likely_noise(
    task: TaskSpec,
    units: Sequence[Sequence[Track]],
    start: Mapping[str, float],
) -> tuple[dict[str, float], float]:
    """Noise of each kind of sensor, size and memory of the hidden force that are most likely.

    No constant of the noise leaves its bounds, or falls below the least that is believed.

    Returns:
        Noise by constant, and its `misfit`.
    """
    declared = declared_noise(task)
    bounds = {one.name: one for one in task.constants if one.name in declared}
    names = list(declared)
    least = least_noise(task)
    low = np.log([least[name] for name in names])
    high = np.log([bounds[name].high for name in names])

    def noise(point: Array) -> dict[str, float]:
        return dict(zip(names, np.exp(np.clip(point, low, high)).tolist(), strict=True))

    def cost(point: Array) -> float:
        outside = point - np.clip(point, low, high)
        try:
            return misfit(task, units, noise(point)) + float(outside @ outside)
        except LinAlgError:
            return math.inf

    first = np.log([max(start[name], 1e-12) for name in names])
    corners = np.vstack([first, first + 0.4 * np.eye(len(names))])
    found = minimize(
        cost,
        first,
        method="Nelder-Mead",
        options={
            "initial_simplex": corners,
            "maxfev": _EVALUATIONS,
            "xatol": 0.02,
            "fatol": 0.2,
        },
    )
    return noise(found.x), float(found.fun)
