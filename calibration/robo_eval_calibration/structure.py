"""Whether any constants explain recordings, or the simulator lacks something."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from robo_eval.core.task import TaskSpec
from robo_eval.stats.multiple import holm
from robo_eval_calibration.innovations import (
    DELAY,
    FORCE,
    MEMORY,
    Model,
    Track,
    complete,
    forces_of,
    physics_of,
    rows_of,
    solved,
    whitened,
)
from robo_eval_calibration.recordings import Array, Recording
from robo_eval_calibration.unit_fit import tracks_of

HORIZON: Final = 15
"""Ticks of a replay from a measured state."""
_EVERY: Final = 5
"""Ticks between starts of replays."""
LEAST_SKILL: Final = 0.9
MOST_SHARE: Final = 0.3
ALPHA: Final = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A force that the simulator has not, estimated beside its constants.

    Attributes:
        name: What it is.
        unit: Of its size.
        size: Mean over units.
        p: Of no such force, by t over units, adjusted for all forces that were tried;
            None with one unit.
    """

    name: str
    unit: str
    size: float
    p: float | None

    @property
    def is_found(self) -> bool:
        """Whether the recordings show it."""
        return self.p is not None and self.p <= ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What speaks against every choice of constants.

    Attributes:
        missing: Every force that was tried.
        skill: How much better replays of some ticks foretell recordings that were not used than a
            simulator without any push does, beyond what noise and hidden force explain: 1 is
            without further error, 0 no better; None if no recording is long enough.
        share: Hidden force as a share of the applied one; None if none was applied.
        bounds: Constants that are at a bound.
        is_miswired: Whether motors answer other commands than their own, or the other way.
    """

    missing: tuple[Missing, ...]
    skill: float | None
    share: float | None
    bounds: tuple[str, ...]
    is_miswired: bool = False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why no constants explain the recordings; none if some do."""
        found = [
            f"{one.name} of {one.size:.3g} {one.unit} is missing from the simulator"
            for one in self.missing
            if one.is_found
        ]
        if self.is_miswired:
            found.append(
                "motions do not follow from their commands: look at sign and order of the motors"
            )
        if self.skill is not None and self.skill < LEAST_SKILL:
            found.append(
                f"replays of {HORIZON} ticks have a skill of {self.skill:.2f}; {LEAST_SKILL} is"
                " needed"
            )
        if self.share is not None and self.share > MOST_SHARE:
            found.append(
                f"the hidden force is {self.share:.2f} of the applied one; {MOST_SHARE} is the most"
            )
        found += [f"{name} is at a bound" for name in self.bounds]
        return tuple(found)


def structure_of(
    model: Model,
    units: Sequence[tuple[Recording, ...]],
    tracks: Sequence[Sequence[Track]],
    constants: Sequence[Mapping[str, float]],
    noise: Mapping[str, float],
    names: tuple[str, ...],
    bounds: Sequence[str] = (),
) -> Structure:
    """Look for what constants cannot explain.

    Args:
        model: The simulator.
        units: Recordings that share their constants.
        tracks: Each of them as the simulator foretells it.
        constants: Those found in each unit.
        noise: By constant.
        names: Constants that were free.
        bounds: Constants that are at a bound.
    """
    # Where a force is missing, constants of a unit may have given way to it, too far for slopes.
    middle = {name: float(np.median([one[name] for one in constants])) for name in constants[0]}
    told, alike = [], []
    for unit, own, found in zip(units, tracks, constants, strict=True):
        pushed = tracks_of(model, unit, found, with_pushes=True)
        told.append(_beside(model, unit, own, pushed, found, noise))
        there = tracks_of(model, unit, middle, names, with_pushes=True)
        alike.append(_beside(model, unit, there, there, middle, noise)[0])
    forces = [forces_of(one, c.get(DELAY, 0.0) / model.task.tick_s)
              for unit, c in zip(units, constants, strict=True) for one in unit]  # fmt: skip
    applied = math.sqrt(float(np.nanmean(np.concatenate(forces) ** 2)))
    motors, known = tracks[0][0].reach.shape[1], len(_FORCES)
    sizes, sds = (np.array(part) for part in zip(*told, strict=True))
    return Structure(
        missing=_missing(np.array(alike)[:, :known]),
        is_miswired=_is_miswired(sizes[:, known:], sds[:, known:], motors),
        skill=_skill(model, units, tracks, constants, noise),
        share=noise.get(FORCE, 0.0) / applied if applied else None,
        bounds=tuple(bounds),
    )


_FORCES: Final = (("dry friction", "N"), ("a spring", "N/m"))
_REVERSED: Final = 1.0
"""Share of a push that is missing from which on it acts the other way."""
_CROSSED: Final = 0.5
"""Share of the command of another motor from which on a motor follows that."""


def _by_forces(
    model: Model, recording: Recording, track: Track, noise: Mapping[str, float], delay: float
) -> Array:
    """Derivative of the errors by the size of each force that may be missing, shape (T, C, K).

    After those of `_FORCES` come, by motor, what its own command makes the other way, and what the
    next motor's makes.
    """
    task, count = model.task, track.reach.shape[1]
    names = [channel.name for channel in task.channels]
    rates = {
        one.rate_of: (names.index(one.name), one.noise) for one in task.channels if one.rate_of
    }
    # Motors act on the first channels that are no rates.
    acted = [name for name in names if name in rates][:count]
    position = recording.states[:-1, [names.index(name) for name in acted]]
    velocity = recording.states[:-1, [rates[name][0] for name in acted]]
    # Noise of a velocity near zero says nothing of its sign.
    slow = 2.0 * np.array([noise[rates[name][1]] for name in acted])
    told = np.nan_to_num(forces_of(recording, delay))
    own = -told[:, :, None] * np.eye(count)
    crossed = np.roll(told, -1, axis=1)[:, :, None] * np.eye(count)
    simple = np.stack([-np.tanh(velocity / slow), -position], axis=2)
    forces = np.concatenate([simple, own, crossed], axis=2)
    columns: Array = -np.einsum("tca,taf->tcf", track.pushes, forces)
    columns[~track.is_there] = 0.0
    return columns


def _beside(
    model: Model,
    unit: Sequence[Recording],
    tracks: Sequence[Track],
    pushed: Sequence[Track],
    constants: Mapping[str, float],
    noise: Mapping[str, float],
) -> tuple[Array, Array]:
    """Sizes of each force beside the constants of a unit, and their standard deviations.

    Args:
        model: The simulator.
        unit: Recordings that share their constants.
        tracks: With columns of the constants.
        pushed: With those of pushes; each force is estimated without the others.
        constants: With which both were played.
        noise: By constant.
    """
    delay = constants.get(DELAY, 0.0) / model.task.tick_s
    more = [
        _by_forces(model, one, track, noise, delay) for one, track in zip(unit, pushed, strict=True)
    ]
    rows = rows_of(whitened(model.task, tracks, noise, more))
    free = rows.shape[1] - more[0].shape[2]
    _, own = solved(rows[:, free:], rows[:, 1:free])
    squares = np.maximum((own**2).sum(axis=0), 1e-300)
    return -rows[:, 0] @ own / squares, 1.0 / np.sqrt(squares)


def _missing(sizes: Array) -> tuple[Missing, ...]:
    """Forces that may be missing, from their sizes in each unit, shape (N, K).

    Units count alike: weighed by what is known of each, springs were named less often.
    """
    n, mean = len(sizes), sizes.mean(axis=0)
    adjusted: list[float | None] = [None] * len(mean)
    if n > 1:
        error = np.maximum(sizes.std(axis=0, ddof=1) / math.sqrt(n), 1e-300)
        # To one side: friction brakes, and a spring pulls back.
        adjusted = list(map(float, holm(stdtr(n - 1, -mean / error))))
    return tuple(
        Missing(name=name, unit=unit, size=float(size), p=p)
        for (name, unit), size, p in zip(_FORCES, mean, adjusted, strict=True)
    )


def _is_miswired(sizes: Array, sds: Array, motors: int) -> bool:
    """Whether a motor acts against its command, or follows the next one's, beyond doubt.

    Where that is so, constants differ from unit to unit as nothing that is true does: each unit is
    asked by its own precision, and the answers are added (Stouffer). Which motor it is they do not
    tell, because the constants have given way.
    """
    # A motor may follow another's command either way; a lone one has no other.
    crossed = np.abs(sizes[:, motors:]) - _CROSSED
    beyond = np.hstack([sizes[:, :motors] - _REVERSED, crossed]) / sds
    asked = beyond[:, : 2 * motors if motors > 1 else 1].sum(axis=0) / math.sqrt(len(sizes))
    return bool(asked.max() > -ndtri(ALPHA / len(asked)))


def _skill(
    model: Model,
    units: Sequence[tuple[Recording, ...]],
    tracks: Sequence[Sequence[Track]],
    constants: Sequence[Mapping[str, float]],
    noise: Mapping[str, float],
) -> float | None:
    """Share of the squares of errors of an unpushed simulator that replays are rid of.

    Each unit is played with the constants of another: together they fit there, which means of
    constants that are hardly told apart would not.
    """
    pushed, unpushed = [], []
    for index, (unit, own) in enumerate(zip(units, tracks, strict=True)):
        used = constants[index - 1]
        for one, track in zip(unit, own, strict=True):
            missed, still = _replayed(model, one, one.with_known(used))
            pushed.append(missed**2 - _foreseen(model.task, track, noise))
            unpushed.append(still**2)
    beyond, most = np.concatenate(pushed), np.concatenate(unpushed)
    if not len(beyond):
        return None
    return min(1.0, 1.0 - float(np.mean(beyond.mean(axis=0) / most.mean(axis=0))))


def _foreseen(task: TaskSpec, track: Track, noise: Mapping[str, float]) -> Array:
    """Squares of errors of a replay that noise and hidden force alone explain, shape (C,)."""
    sensors = np.array([noise[channel.noise] ** 2 for channel in task.channels])
    size, motors = track.reach.shape
    kept = math.exp(-task.tick_s / noise[MEMORY]) if noise[MEMORY] > 0.0 else 0.0
    onward = np.block([
        [track.turn, noise[FORCE] * track.reach],
        [np.zeros((motors, size)), kept * np.eye(motors)],
    ])  # fmt: skip
    spread = np.diag(np.r_[sensors, np.ones(motors)])
    new = np.diag(np.r_[np.zeros(size), np.full(motors, 1.0 - kept * kept)])
    for _ in range(HORIZON):
        spread = onward @ spread @ onward.T + new
    return np.asarray(np.diag(spread)[:size] + sensors, dtype=np.float64)


def _replayed(
    model: Model, recording: Recording, constants: Mapping[str, float]
) -> tuple[Array, Array]:
    """Errors after some ticks from each of many states, with pushes and without, both (N, C)."""
    ends = []
    for is_pushed in (True, False):
        starts, told = replayed(model, recording, constants, _EVERY, is_pushed=is_pushed)
        missed = recording.states[starts + HORIZON] - told[:, -1]
        ends.append(missed[complete(missed)])
    return ends[0], ends[1]


def replayed(
    model: Model,
    recording: Recording,
    constants: Mapping[str, float],
    every: int,
    *,
    is_pushed: bool = True,
) -> tuple[NDArray[np.int64], Array]:
    """Replays from every so many ticks, where state and forces are known.

    Returns:
        Ticks they start in, shape (N,), and their states from there on, shape (N, HORIZON + 1, C).
    """
    states, task = recording.states, model.task
    forces = forces_of(recording, constants.get(DELAY, 0.0) / task.tick_s)
    known, pushed = complete(states), complete(forces)
    starts = np.array([
        at for at in range(0, len(forces) - HORIZON + 1, every)
        if known[at] and pushed[at : at + HORIZON].all()
    ], dtype=np.int64)  # fmt: skip
    used = {name: constants[name] for name in physics_of(task) if name != DELAY}
    told = [states[starts]]
    for tick in range(HORIZON):
        acting = forces[starts + tick] if is_pushed else np.zeros((len(starts), forces.shape[1]))
        told.append(model.predict(told[-1], acting, used) if len(starts) else told[-1])
    return starts, np.stack(told, axis=1)
