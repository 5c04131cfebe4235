"""The constants with which a simulator foretells one recording best, or one group of them."""

from __future__ import annotations

import hashlib
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from zipfile import BadZipFile

import numpy as np
from scipy.optimize import lsq_linear

from robo_eval.core.canonical import digest
from robo_eval.core.task import Constant, TaskSpec
from robo_eval_calibration.innovations import (
    DELAY,
    Model,
    Track,
    delay_from_efforts,
    delayed,
    physics_of,
    rows_of,
    solved,
    track_of,
    whitened,
)
from robo_eval_calibration.recordings import Array, Recording

_PASSES: Final = 20
_DAMPING: Final = 10.0
_SETTLED: Final = 0.1
"""A step that would lower twice the negative log likelihood by less is believed, not played."""
_SLIGHT: Final = 2.0
"""What a step may promise where the search ends."""
_VERSION: Final = 3
"""Of stored fits; those of another one are computed anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The fit of one unit.

    Attributes:
        model: The simulator.
        unit: Recordings that share their constants.
        start: All constants of the physics; free ones as the search begins.
        names: The free ones.
        noise: By constant.
        before: Where an earlier search ended, and this one begins, if there was one. Otherwise it
            looks first for the delay to begin with.
    """

    model: Model
    unit: tuple[Recording, ...]
    start: Mapping[str, float]
    names: tuple[str, ...]
    noise: Mapping[str, float]
    before: UnitFit | None = None

    @property
    def free(self) -> list[Constant]:
        """The free constants."""
        physics = physics_of(self.model.task)
        return [physics[name] for name in self.names]

    @property
    def digest(self) -> str:
        """Of all that its result depends on."""
        arrays = hashlib.sha256()
        for one in self.unit:
            for values in (one.states, one.commands, one.efforts, one.wrench, one.things):
                arrays.update(repr(getattr(values, "shape", None)).encode())
                arrays.update(b"" if values is None else np.ascontiguousarray(values).tobytes())
        return digest(
            {
                "version": _VERSION,
                "job": type(self).__name__,
                "starts": [dict(one.start) for one in self.unit],
                "keywords": [dict(one.keywords) for one in self.unit],
                "model": getattr(self.model, "digest", type(self.model).__name__),
                "engine": getattr(self.model, "engine", ""),
                "arrays": arrays.hexdigest(),
                "known": [dict(one.known) for one in self.unit],
                "start": dict(self.start),
                "names": list(self.names),
                "noise": dict(self.noise),
                "before": self.before is not None,
            }
        )

    def constants(self, point: Array) -> dict[str, float]:
        """All constants, with those at a point of the search."""
        return {**self.start, **dict(zip(self.names, point.tolist(), strict=True))}

    def tracks(self, point: Array, *, with_pushes: bool = False) -> tuple[Track, ...]:
        """The recordings, played at a point of the search."""
        return tracks_of(
            self.model, self.unit, self.constants(point), self.names, with_pushes=with_pushes
        )

    def columns(self) -> Array:
        """Whitened derivatives of the errors by the free constants at the start, shape (N, P)."""
        tracks = tracks_of(self.model, self.unit, self.start, self.names)
        return rows_of(whitened(self.model.task, tracks, self.noise))[:, 1:]

    def missed(self) -> float:
        """Root mean square of the innovations at the start; noise alone leaves 1."""
        tracks = tracks_of(self.model, self.unit, self.start)
        white = whitened(self.model.task, tracks, self.noise)
        told = [one.values[track.is_there] for one, track in zip(white, tracks, strict=True)]
        return math.sqrt(float(np.mean(np.concatenate(told) ** 2)))

    def fit(self) -> UnitFit:
        """The constants that are found."""
        return fit_unit(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFit:
    """Constants found in one unit.

    Attributes:
        values: Free constants that were found, in the order of `Job.names`, shape (P,).
        played: At which values the tracks were played, shape (P,).
        is_settled: Whether the search ended where no step promised more.
        late: Delay of efforts behind commands in seconds, and its standard deviation; of no length
            if no efforts were measured.
        tracks: Errors of each recording there, with their columns; of what is played by steps.
        rows: Errors there and their columns, shape (N, 1 + P); of what is played whole.
        noise: What was found beside them, in the order of `Job.noise`; of what is played whole.
    """

    values: Array
    played: Array
    is_settled: bool
    late: Array
    tracks: tuple[Track, ...]
    rows: Array = field(default_factory=lambda: np.zeros((0, 0)))
    noise: Array = field(default_factory=lambda: np.zeros(0))


def tracks_of(
    model: Model,
    unit: tuple[Recording, ...],
    constants: Mapping[str, float],
    names: tuple[str, ...] = (),
    *,
    with_pushes: bool = False,
) -> tuple[Track, ...]:
    """Recordings as a simulator foretells them, each with what is known to be more in it."""
    return tuple(
        track_of(model, one, one.with_known(constants), names, with_pushes=with_pushes)
        for one in unit
    )


def fit_unit(job: Job) -> UnitFit:
    """Gauss-Newton on the innovations of the recordings of one unit.

    Raises:
        InputError: If a recording is too short, or cannot be foretold.
    """
    low, high = bounds_of(job.free)
    at = np.clip([job.start[name] for name in job.names], low, high)
    if job.before is None and DELAY in job.names:
        at[job.names.index(DELAY)] = _first_delay(job)
    tracks = job.tracks(at) if job.before is None else job.before.tracks
    rows = _rows(job, tracks, tracks)
    damping = 0.0
    for _ in range(_PASSES):
        step = step_of(rows, job.free, at, damping=damping)
        cost = float(rows[:, 0] @ rows[:, 0])
        ahead = rows[:, 0] + rows[:, 1:] @ step
        promised = cost - float(ahead @ ahead)
        if promised < (_SETTLED if job.before else _SLIGHT):
            break
        there = job.tracks(at + step)
        # Costs compare through one filter alone; what is found is right through its own.
        new = _rows(job, there, tracks)
        if float(new[:, 0] @ new[:, 0]) < cost:
            at, tracks, rows = at + step, there, _rows(job, there, there)
            damping /= _DAMPING
        else:  # as Levenberg and Marquardt: shorter, and down where it is steep
            damping = max(_DAMPING * damping, 1.0 / _DAMPING)
    # Where constants hang together, what is promised without damping may be far away.
    full = rows[:, 0] + rows[:, 1:] @ step_of(rows, job.free, at)
    is_settled = cost - float(full @ full) <= _SLIGHT
    if not is_settled:
        step = np.zeros_like(at)
    return UnitFit(
        values=at + step,
        played=at,
        is_settled=is_settled,
        late=late_of(job.model.task, job.unit),
        tracks=tracks,
    )


def late_of(task: TaskSpec, unit: Sequence[Recording]) -> Array:
    """Delay of the efforts of a unit in seconds, and its standard deviation; empty without any."""
    delay = physics_of(task).get(DELAY)
    if task.replay != "steps" or delay is None or any(one.efforts is None for one in unit):
        return np.zeros(0)
    most = delay.high / task.tick_s
    pairs = task.tick_s * np.array([delay_from_efforts(one, most) for one in unit])
    return np.array([pairs[:, 0].mean(), np.linalg.norm(pairs[:, 1]) / len(pairs)])


def bounds_of(free: list[Constant]) -> tuple[Array, Array]:
    """Least and greatest values, each of shape (P,)."""
    return np.array([one.low for one in free]), np.array([one.high for one in free])


def _rows(job: Job, tracks: Sequence[Track], like: Sequence[Track]) -> Array:
    """Whitened errors and columns of a unit, through the filters of other tracks."""
    alike = [replace(a, turn=b.turn, reach=b.reach) for a, b in zip(tracks, like, strict=True)]
    return rows_of(whitened(job.model.task, alike, job.noise))


def step_of(
    rows: Array, free: list[Constant], at: Array, *, is_bound: bool = True, damping: float = 0.0
) -> Array:
    """The step to least squares; along what nothing tells, none.

    Args:
        rows: Whitened errors and columns, shape (N, 1 + P).
        free: The constants.
        at: Where they are, shape (P,).
        is_bound: Whether the end is to lie within their bounds.
        damping: What a change costs, as a share of what it changes.
    """
    if not free:
        return np.zeros(0)
    low, high = bounds_of(free)
    spans = high - low
    # As if each constant had been measured once, to within its bounds: what the recordings tell
    # outweighs that, and what they do not tell stays.
    columns = rows[:, 1:] * spans
    held = np.sqrt(1.0 + damping * (columns**2).sum(axis=0))
    matrix = np.vstack([columns, np.diag(held)])
    wanted = np.concatenate([-rows[:, 0], np.zeros(len(free))])
    q, r = np.linalg.qr(matrix)
    if not is_bound:
        return spans * np.linalg.solve(r, q.T @ wanted)
    room = (low - at) / spans - 1e-9, (high - at) / spans + 1e-9
    found = lsq_linear(r, q.T @ wanted, bounds=room, method="bvls")
    return np.clip(at + spans * found.x, low, high) - at


def _first_delay(job: Job) -> float:
    """The best delay to begin with, seconds: half way between each two ticks are tried.

    What is foretold is all but linear in the force, so that it is played once for all of them.
    """
    task = job.model.task
    delay = physics_of(task)[DELAY]
    tracks = job.tracks(np.array([job.start[name] for name in job.names]), with_pushes=True)
    others = [index for index, name in enumerate(job.names) if name != DELAY]
    best = math.inf, job.start[DELAY]
    for whole in range(max(1, round(delay.high / task.tick_s))):
        moved = []
        for one, track in zip(job.unit, tracks, strict=True):
            then = delayed(one.commands, job.start[DELAY] / task.tick_s)
            # Within a tick the delay may lie anywhere.
            early, late = (delayed(one.commands, whole + more) for more in (0.0, 1.0))
            by_force = np.stack([(early + late) / 2.0 - then, late - early], axis=2)
            more = np.einsum("tca,taf->tcf", track.pushes, by_force)
            columns = np.concatenate([track.columns[:, :, others], more[:, :, 1:]], axis=2)
            moved.append(replace(track, errors=track.errors - more[:, :, 0], columns=columns))
        rows = rows_of(whitened(task, moved, job.noise))
        _, left = solved(rows[:, 0], rows[:, 1:])
        best = min(best, (float(left @ left), (whole + 0.5) * task.tick_s))
    return best[1]


_TRACK: Final = ("errors", "columns", "pushes", "is_there", "turn", "reach")
_UNIT: Final = ("values", "played", "is_settled", "late", "rows", "noise")


def store(fit: UnitFit, path: Path) -> None:
    """Write a fit to a file, whole or not at all."""
    arrays = {name: getattr(fit, name) for name in _UNIT}
    for index, track in enumerate(fit.tracks):
        arrays |= {f"{name}_{index}": getattr(track, name) for name in _TRACK}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez(file, **arrays)
    partial.replace(path)


def stored(path: Path) -> UnitFit | None:
    """What `store` wrote; None if there is none that can be read."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            count = sum(name.startswith("errors_") for name in arrays)
            tracks = tuple(
                Track(**{name: arrays[f"{name}_{index}"] for name in _TRACK})
                for index in range(count)
            )
            own = {name: arrays[name] for name in _UNIT}
            return UnitFit(**{**own, "is_settled": bool(own["is_settled"])}, tracks=tracks)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error):
        return None
