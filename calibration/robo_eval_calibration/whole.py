"""Constants with which the commands of a recording lead from its start where it went.

All commands are played, stage by stage: what moves before anything is touched tells delay and gain,
and a load of the hand; what is held then tells its weight, and what slides its friction. Ramps and
contacts make errors rough, so that a constant is searched on a grid first. Ticks in which a contact
came about otherwise must not rule: errors count as those of Student's t with 4 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from robo_eval.core.task import Constant, TaskSpec
from robo_eval_calibration.innovations import FLOOR, delayed, physics_of
from robo_eval_calibration.intervals import LIKELY
from robo_eval_calibration.recordings import Array, Recording
from robo_eval_calibration.unit_fit import Job, UnitFit, step_of

FREE, LOADED, HELD, SLIDING = "free", "loaded", "held", "sliding"
"""Stages of constants: in the motion before anything is touched, in forces then, and afterwards."""
_GRIPPER, _EFFORT, _FORCE, _TORQUE, _THINGS = (
    "gripper", "effort", "force", "torque", "object_noise_m",
)  # fmt: skip
_DECLARED: Final = {_GRIPPER: 5e-4, _EFFORT: 0.1, _FORCE: 0.3, _TORQUE: 0.03, _THINGS: 5e-4}
"""Noise of what a task declares none of: m, N m, N, N m, m."""
_TOUCHED_M: Final = 0.005
"""A thing that has moved so far was touched."""
_CLOSED_M: Final = 0.005
"""By so much less than at first a gripper is asked to close."""
_CLOSING: Final = 10
"""Ticks before a thing has moved in which it may be touched already."""
_COARSE: Final = 6
"""Quanta between delays that are looked at first."""
_GAINS: Final = 21
"""Gains with each of them."""
_NEAR: Final = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5)
"""Quanta from the best delay to others that are tried. Ramps of motors can make delays that are
farther away better than those between, by up to 5."""
_FAR: Final = (0, 3, -3)
"""Those of a restart."""
_WIDE, _SIDE = 1.45, 1.2
"""Factors up to which a gain differs from that on the grid, and from that of a delay nearby."""
_SURE: Final = 0.006
"""To which share a gain is found with each delay."""
_REACHES: Final = (1.07, 1.01)
"""Factors up to which the gain is searched again in the end."""
_SLIGHT: Final = 2.0
"""By so much less a restart may end."""
_STEPS: Final = 2
_NUDGE: Final = 1e-3
"""Of derivatives without contacts, as a share of the bounds."""
_SMALL, _LARGE = 0.05, 0.5
"""What constants are moved by to see what they change, as a share of the wanted half-width: without
contacts, and with."""
_OF_NOISE: Final = 0.9476
"""Mean of what standard normal errors cost."""
_GRID: Final = 10
_FINE: Final = 0.005
"""How exactly a constant is searched between its neighbours on the grid."""


class WholeModel(Protocol):
    """A simulator that plays commands from a state."""

    @property
    def task(self) -> TaskSpec:
        """What it declares of itself."""

    def replayed(
        self, start: Mapping[str, Any], commands: Array, constants: Mapping[str, float]
    ) -> Mapping[str, Array]:
        """`states`, `efforts`, `wrench` and `things` as a recording of that would have them."""


def _table(task: TaskSpec, part: Callable[[str], Any], like: Recording) -> tuple[Array, list[str]]:
    """All that a recording tells as columns, shape (T + 1, K), and whose noise each one has."""
    columns, names = [part("states")], [one.noise or _GRIPPER for one in task.channels]
    if like.wrench is not None:
        columns.append(part("wrench"))
        names += [_FORCE] * 3 + [_TORQUE] * 3
    elif like.efforts is not None:  # which jump where motors begin to move
        efforts = part("efforts")
        columns.append(np.vstack([np.full(efforts.shape[1], np.nan), efforts]))
        names += [_EFFORT] * efforts.shape[1]
    if like.things is not None:
        places = part("things")[:, :, :3]
        columns.append(places.reshape(len(places), -1))
        names += [_THINGS] * columns[-1].shape[1]
    return np.hstack(columns), names


def untouched(one: Recording) -> int:
    """Ticks before anything is touched: the gripper is not asked to close, or no thing moves."""
    ends = [one.commands[:, -1] < one.commands[0, -1] - _CLOSED_M]
    if one.things is not None:
        away = np.linalg.norm(one.things[:, :, :3] - one.things[0, :, :3], axis=2).max(axis=1)
        ends.append(away[_CLOSING:] > _TOUCHED_M)
    return max(int(np.argmax(end)) if end.any() else one.ticks for end in ends)


@dataclass(frozen=True, kw_only=True)
class WholeJob(Job):
    """The fit of one unit whose recordings are played whole.

    What does not hang on constants is worked out once: a search asks for it thousands of times.
    """

    @property
    def declared(self) -> dict[str, float]:
        """Noise of each column before it is found."""
        return {**_DECLARED, **self.noise}

    def played(self, constants: Mapping[str, float], stage: str = "") -> list[Array]:
        """Columns of each recording as they are foretold, no longer than a stage needs."""
        model: Any = self.model
        found = []
        for one in self.unit:
            ticks = untouched(one) if stage in (FREE, LOADED) else one.ticks
            own = one.with_known(constants)
            own |= {name: min(own[name], physics_of(model.task)[name].high) for name in one.known}
            played = model.replayed(one.start, one.commands[:ticks], own)
            found.append(_table(model.task, played.__getitem__, one)[0])
        return found

    def misses(
        self,
        constants: Mapping[str, float],
        sizes: Mapping[str, float],
        *,
        stage: str = "",
        played: Sequence[Array] | None = None,
    ) -> Array:
        """Errors in standard deviations, all recordings below one another, shape (N, K).

        Args:
            constants: To play with.
            sizes: Noise of each kind of column.
            stage: Of which errors are wanted; others are NaN, as what was lost.
            played: What was played already, if anything was.
        """
        found = []
        scale = [sizes[name] for name in self.names_of_columns]
        for seen, foretold in zip(self.seen, played or self.played(constants, stage), strict=True):
            errors = np.full_like(seen, np.nan)
            errors[: len(foretold)] = seen[: len(foretold)] - foretold
            found.append(errors / scale)
        return np.where(self.shown[stage], np.vstack(found), np.nan) if stage else np.vstack(found)

    @cached_property
    def seen(self) -> list[Array]:
        """Columns of each recording as they were measured."""
        task = self.model.task
        return [_table(task, partial(getattr, one), one)[0] for one in self.unit]

    @cached_property
    def shown(self) -> dict[str, NDArray[np.bool_]]:
        """Which errors tell of the constants of each stage, shapes (N, K)."""
        names = self.names_of_columns
        is_thing = np.array([name == _THINGS for name in names])
        is_free = np.concatenate([np.arange(one.ticks + 1) <= untouched(one) for one in self.unit])
        is_joint = np.arange(len(names)) < len(self.model.task.channels)
        always = np.ones_like(is_free)
        return {
            FREE: np.outer(is_free, is_joint),
            LOADED: np.outer(is_free, ~is_thing),
            HELD: np.outer(always, ~is_thing),
            # A path tells what slides; where none is seen, forces have to.
            SLIDING: np.outer(always, is_thing if is_thing.any() else ~is_thing),
        }

    @cached_property
    def names_of_columns(self) -> list[str]:
        """Whose noise each column of the errors has."""
        one = self.unit[0]
        return _table(self.model.task, partial(getattr, one), one)[1]

    def sizes(self, constants: Mapping[str, float]) -> dict[str, float]:
        """Noise of each kind of column, from what is left where nothing is touched."""
        found, names = self.declared, self.names_of_columns
        left = np.abs(self.misses(constants, found))[self.shown[FREE].any(axis=1)]
        for name in set(names):
            told = left[:, [one == name for one in names]]
            if np.isfinite(told).any():
                found[name] *= max(FLOOR["whole"], 1.4826 * float(np.nanmedian(told)))
        return found

    def rows(
        self, constants: Mapping[str, float], sizes: Mapping[str, float], *, is_found: bool = True
    ) -> Array:
        """Errors that are known and their derivatives by each free constant, shape (N, 1 + P).

        Of constants that were found large errors hardly count; of others errors are large.
        A difference that is another to the other side is no slope: what contacts make of a little
        more or less counts as noise.
        """
        here = self.misses(constants, sizes)
        weights = _weights(here) if is_found else np.ones_like(here)
        columns = [weights * here]
        for one in self.free:
            step = max(one.quantum, one.wanted * (_SMALL if one.stage == FREE else _LARGE))
            ends = []
            for sign in (1.0, -1.0):
                moved = constants[one.name] + sign * step
                if one.low <= moved <= one.high:
                    after = self.misses({**constants, one.name: moved}, sizes, stage=one.stage)
                    ends.append(sign * np.where(self.shown[one.stage], after - here, 0.0))
            slope, rough = sum(ends) / len(ends), (ends[0] - ends[-1]) / 2.0
            columns.append(weights * slope / step / np.sqrt(1.0 + rough**2))
        return np.column_stack([one[np.isfinite(here)] for one in columns])

    def columns(self) -> Array:
        """Derivatives of the errors by the free constants at the start, shape (N, P)."""
        return self.rows(self.start, self.declared, is_found=False)[:, 1:]

    def missed(self) -> float:
        """Root mean square error at the start; few large ones hardly count, and noise leaves 1."""
        told = _cost(self.misses(self.start, self.declared))
        return math.sqrt(float(np.nanmean(told)) / _OF_NOISE)

    def fit(self) -> UnitFit:
        """Constants that are found, stage by stage."""
        search = _Search(job=self, at=dict(self.start), sizes=self.declared)
        is_settled = search.free()
        search.sizes = self.sizes(search.at)
        search.load()
        for stage in (HELD, SLIDING):
            for one in self.free:
                if one.stage == stage:
                    search.rough(one, one.low, one.high)
        point = np.array([search.at[name] for name in self.names])
        rows, values = self.rows(search.at, search.sizes), point.copy()
        for at, one in enumerate(self.free):
            by = rows[:, 1 + at]
            size = float(np.linalg.norm(by))
            if one.stage == LOADED:  # beyond a bound as well: their mean is right beside it then
                values[at] -= float(by @ rows[:, 0]) / max(size**2, 1e-12)
            # Slopes promise more than there is where the search found wide ranges alike.
            rows[:, 1 + at] *= min(1.0, 1.0 / (search.sds.get(one.name, 0.0) * size + 1e-12))
        return UnitFit(
            values=values,
            played=point,
            is_settled=is_settled,
            late=np.zeros(0),
            tracks=(),
            rows=rows,
            noise=np.array([search.sizes[name] for name in self.noise]),
        )


JOBS: Final[Mapping[str, type[Job]]] = {"steps": Job, "whole": WholeJob}
"""How recordings are played, by what a task says."""


def _weights(errors: Array) -> Array:
    """What errors are multiplied by so that their squares count as Student's t has them count."""
    found: Array = np.sqrt(5.0 / (4.0 + errors**2))
    return found


def _cost(errors: Array) -> Array:
    """Twice the negative logarithm of the likelihood of each, but for a constant."""
    return np.asarray(5.0 * np.log1p(errors**2 / 4.0))


@dataclass(slots=True, kw_only=True)
class _Search:
    """Where a search is.

    Attributes:
        job: What is asked.
        at: All constants.
        sizes: Noise of each kind of column.
        sds: How far from its best value what was searched is as likely, in standard deviations.
        tried: Cost and best gain of delays, by their number.
    """

    job: WholeJob
    at: dict[str, float]
    sizes: dict[str, float]
    sds: dict[str, float] = field(default_factory=dict)
    tried: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def pair(self) -> list[Constant]:
        """Gain and delay."""
        physics = physics_of(self.job.model.task).values()
        return sorted((one for one in physics if one.stage == FREE), key=attrgetter("quantum"))

    def free(self) -> bool:
        """Find delay and gain where nothing is touched, wherever the search began.

        Returns:
            Whether a restart elsewhere ended no better.
        """
        gain, late = self.pair
        delays, gains = self._grid(late), self._grid(gain)
        costs = self._mapped(delays[::_COARSE], gains)
        found = self._walked(delays, gains, costs, _NEAR)
        costs[np.abs(_COARSE * np.arange(len(costs)) - found) <= 2 * _COARSE] = np.inf
        again = self._walked(delays, gains, costs, _FAR)
        best = min(found, again, key=self.tried.__getitem__)
        self.at |= {late.name: float(delays[best]), gain.name: self.tried[best][1]}
        for reach in _REACHES if len(gains) > 1 else ():
            here = self.at[gain.name]
            self.rough(gain, max(gain.low, here / reach), min(gain.high, here * reach))
        return self.tried[found][0] <= self.tried[again][0] + _SLIGHT

    def _grid(self, one: Constant) -> Array:
        """Values among which a constant is looked for."""
        if one.name not in self.job.names:
            return np.array([self.at[one.name]])
        if one.quantum:
            first, last = (math.floor(end / one.quantum + 1e-9) for end in (one.low, one.high))
            return one.quantum * np.arange(first, last + 1, dtype=np.float64)
        return np.asarray(np.geomspace(one.low, one.high, _GAINS), dtype=np.float64)

    def _mapped(self, delays: Array, gains: Array) -> Array:
        """Costs of all delays with all gains, shape (D, G).

        What begins at rest comes as much later as it is asked: each gain is played once.
        """
        gain, late = self.pair
        costs = np.zeros((len(delays), len(gains)))
        for at, value in enumerate(gains.tolist()):
            moved = {**self.at, late.name: float(delays[0]), gain.name: value}
            played = self.job.played(moved, FREE)
            for row, more in enumerate((delays - delays[0]) / self.job.model.task.tick_s):
                later = [one[0] + delayed(one - one[0], more) for one in played]
                costs[row, at] = self.cost(moved, FREE, later)
        return costs

    def _walked(self, delays: Array, gains: Array, costs: Array, steps: Sequence[int]) -> int:
        """Number of the delay from which no step leads to a better one, beginning with the best."""
        row, at = np.unravel_index(np.argmin(costs), costs.shape)
        here, value, side = _COARSE * int(row), float(gains[at]), _WIDE
        while True:
            near = [here + step for step in steps if 0 <= here + step < len(delays)]
            for number in near:
                if number not in self.tried:
                    self.tried[number] = self._eased(float(delays[number]), value, side)
                value, side = self.tried[here][1], _SIDE
            best = min(near, key=self.tried.__getitem__)
            if best == here:
                return here
            here = best

    def _eased(self, delay: float, value: float, side: float) -> tuple[float, float]:
        """Least cost of a delay, and the gain there, within a factor to both sides of one."""
        gain, late = self.pair
        here = {**self.at, late.name: delay}
        if gain.name not in self.job.names:
            return self.cost(here, FREE), value
        found = minimize_scalar(
            lambda place: self.cost({**here, gain.name: math.exp(place)}, FREE),
            bounds=(math.log(max(gain.low, value / side)), math.log(min(gain.high, value * side))),
            method="bounded",
            options={"xatol": _SURE},
        )
        return float(found.fun), math.exp(found.x)

    def cost(
        self, constants: Mapping[str, float], stage: str, played: Sequence[Array] | None = None
    ) -> float:
        """What all errors of a stage cost."""
        errors = self.job.misses(constants, self.sizes, stage=stage, played=played)
        return float(np.nansum(_cost(errors)))

    def load(self) -> None:
        """Find what the hand carries, after some steps of Gauss and Newton."""
        smooth = [one for one in self.job.free if one.stage == LOADED]
        here = self.job.misses(self.at, self.sizes, stage=LOADED) if smooth else np.zeros(0)
        for _ in range(_STEPS if smooth else 0):
            columns = [here.ravel()]
            for one in smooth:
                nudge = _NUDGE * (one.high - one.low)
                nudge = math.copysign(nudge, one.high - self.at[one.name] - nudge)
                moved = {**self.at, one.name: self.at[one.name] + nudge}
                more = self.job.misses(moved, self.sizes, stage=LOADED)
                columns.append(((more - here) / nudge).ravel())
            rows = np.column_stack(columns) * _weights(here).reshape(-1, 1)
            places = np.array([self.at[one.name] for one in smooth])
            ends = places + step_of(rows[np.isfinite(rows[:, 0])], smooth, places)
            then = {**self.at, **{one.name: float(end)
                                  for one, end in zip(smooth, ends, strict=True)}}  # fmt: skip
            new = self.job.misses(then, self.sizes, stage=LOADED)
            if np.nansum(_cost(new)) >= np.nansum(_cost(here)):
                break
            self.at, here = then, new

    def rough(self, one: Constant, low: float, high: float) -> None:
        """Find a constant on a grid, and then more exactly between neighbours of the best."""
        out, back = (math.log, math.exp) if one.is_log else (float, float)
        tried: dict[float, float] = {}

        def cost(place: float) -> float:
            value = float(np.clip(back(place), one.low, one.high))
            tried[place] = self.cost({**self.at, one.name: value}, one.stage)
            return tried[place]

        grid = np.linspace(out(low), out(high), _GRID)
        best = int(np.argmin([cost(place) for place in grid]))
        near = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
        minimize_scalar(
            cost, bounds=near, method="bounded", options={"xatol": (near[1] - near[0]) * _FINE}
        )
        found, roots = min(tried, key=tried.__getitem__), {}
        for place, value in tried.items():
            roots[place] = math.sqrt(value - tried[found])
        # Ends of what is likely, between neighbours that were tried.
        ends, most = [found], math.sqrt(LIKELY)
        for pair in pairwise(sorted(tried)):
            for here, there in (pair, pair[::-1]):
                if roots[here] <= most:
                    share = (most - roots[here]) / max(roots[there] - roots[here], 1e-12)
                    ends.append(here + min(1.0, share if share > 0.0 else 1.0) * (there - here))
        self.at[one.name] = min(max(back(found), one.low), one.high)
        self.sds[one.name] = max(abs(back(end) - back(found)) for end in ends) / most
