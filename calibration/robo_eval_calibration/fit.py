"""Which constants of a simulator recordings tell, each recording by itself and all together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from threadpoolctl import threadpool_limits

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.spread import done
from robo_eval.core.task import Constant, TaskSpec
from robo_eval.core.wording import counted
from robo_eval.stats.estimate import Estimate
from robo_eval_calibration.innovations import (
    DELAY,
    Model,
    declared_noise,
    likely_noise,
    nominal_of,
    physics_of,
    rows_of,
    whitened,
)
from robo_eval_calibration.intervals import (
    LIKELY,
    Judged,
    Verdict,
    correlations_of,
    covariance_of,
    half_width,
    holds,
    judged,
    judged_alone,
    random_effects,
)
from robo_eval_calibration.recordings import Array, Recording
from robo_eval_calibration.structure import Structure, structure_of
from robo_eval_calibration.unit_fit import (
    Job,
    UnitFit,
    bounds_of,
    step_of,
    store,
    stored,
)
from robo_eval_calibration.whole import JOBS

Progress = Callable[[int, int], None]
_PRESSED: Final = 3.0
"""Standard deviations beyond a bound from which on a constant is said to be pressed against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What recordings say of one constant.

    Attributes:
        estimate: Mean over units with its interval, within the bounds.
        by_unit: Value of each unit, in the order of `Fitted.units`; where the bounds cut nothing
            off, so that their mean is right beside a bound, too.
        sds: Standard deviation of each from its own fit.
        between_sd: Standard deviation of the true values between units.
        judged: Verdict, with which others it is confounded, and why.
    """

    estimate: Estimate
    by_unit: tuple[float, ...]
    sds: tuple[float, ...]
    between_sd: float
    judged: Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What was found in all recordings.

    Attributes:
        units: Names of the recordings of each unit.
        found: By constant.
        given: Constants that were not looked for, at what they were given or have as nominal.
        noise: Noise of sensors and hidden force, by constant.
        free: Constants found by predictions, in the order of `correlations`.
        correlations: Of the free constants in one unit, shape (P, P).
        chi2: Mean square of the innovations; 1 if the noise explains them.
        structure: Whether any constants explain the recordings.
    """

    units: tuple[tuple[str, ...], ...]
    found: Mapping[str, Found]
    given: Mapping[str, float]
    noise: Mapping[str, float]
    free: tuple[str, ...]
    correlations: Array
    chi2: float
    structure: Structure

    @property
    def constants(self) -> dict[str, float]:
        """Best value of every constant of the physics."""
        best = {name: float(one.estimate.value or 0.0) for name, one in self.found.items()}
        return {**self.given, **best}


def units_of(recordings: Sequence[Recording]) -> list[tuple[Recording, ...]]:
    """Recordings that are fitted together: those of a group, each other one alone."""
    found: dict[object, list[Recording]] = {}
    for index, one in enumerate(recordings):
        found.setdefault(one.group or index, []).append(one)
    return [tuple(unit) for unit in found.values()]


def free_names(
    task: TaskSpec, recordings: Sequence[Recording], given: Mapping[str, float]
) -> tuple[str, ...]:
    """Constants that predictions are to tell; measured pushes tell the delay by themselves."""
    has_efforts = task.replay == "steps" and all(one.efforts is not None for one in recordings)
    return tuple(
        name
        for name in physics_of(task)
        if name not in given and not (name == DELAY and has_efforts)
    )


def model_of(recording: Recording) -> Model:
    """The simulator that a recording is of."""
    import gymnasium

    env: Any = gymnasium.make(recording.env, **dict(recording.keywords)).unwrapped
    return env  # type: ignore[no-any-return]


@dataclass(slots=True, kw_only=True)
class Bench:
    """Where fits of units are computed, and kept.

    Attributes:
        workers: Processes.
        ray: Address of a Ray cluster; None stays on this machine.
        folder: Where results are kept by their digest; what is there is not computed again.
        progress: Called with how many fits are done, and how many there are by now.
    """

    workers: int = 1
    ray: str | None = None
    folder: Path | None = None
    progress: Progress | None = None
    asked: int = 0
    ended: int = 0

    def fits(self, jobs: Sequence[Job]) -> list[UnitFit]:
        """Results of jobs, in their order."""
        self.asked += len(jobs)
        digests = [job.digest for job in jobs]
        found: dict[int, UnitFit] = {}
        todo = []
        for index, name in enumerate(digests):
            there = None if self.folder is None else stored(self.folder / f"{name}.npz")
            if there is None:
                todo.append((index, jobs[index]))
            else:
                self._take(found, index, there)
        for (index, _), fit in done(todo, _fit_numbered, workers=self.workers, ray=self.ray):
            if self.folder is not None:
                store(fit, self.folder / f"{digests[index]}.npz")
            self._take(found, index, fit)
        return [found[index] for index in range(len(jobs))]

    def _take(self, found: dict[int, UnitFit], index: int, fit: UnitFit) -> None:
        found[index] = fit
        self.ended += 1
        if self.progress is not None:
            self.progress(self.ended, self.asked)


def _fit_numbered(numbered: tuple[int, Job]) -> UnitFit:
    return numbered[1].fit()


def fitted(
    recordings: Sequence[Recording],
    *,
    model: Model | None = None,
    given: Mapping[str, float] | None = None,
    start: Mapping[str, float] | None = None,
    workers: int = 1,
    ray: str | None = None,
    jobs_folder: Path | None = None,
    progress: Progress | None = None,
    profiles: bool = True,
) -> Fitted:
    """Find the constants of a task.

    Args:
        recordings: Of one task.
        model: Its simulator; that of the first recording if none is given.
        given: Constants that are known, by name; they are not looked for.
        start: Where the search begins; nominal values if it is not said.
        workers: Processes.
        ray: Address of a Ray cluster.
        jobs_folder: Where fits of units are kept; what is there is not computed again.
        progress: Called with how many fits are done, and how many there are by now.
        profiles: Whether constants in doubt are fixed at their bounds, to see if that explains the
            recordings as well.

    Raises:
        InputError: If there are no recordings, or they cannot be played.
        UnknownNameError: If the task has no such constant.
    """
    if not recordings:
        raise InputError("calibration: no recordings were given; one at least is needed")
    model = model or model_of(recordings[0])
    physics = physics_of(model.task)
    known, more = dict(given or {}), [name for one in recordings for name in one.known]
    for name in (*known, *(start or {}), *more):
        if name not in physics:
            raise unknown_name(f"constant of {model.task.title}", name, physics)
    begin = {**nominal_of(model.task), **(start or {}), **known}
    if any(one.efforts is None for one in recordings):  # one way for all of them
        recordings = [replace(one, efforts=None) for one in recordings]
    names = free_names(model.task, recordings, known)
    noise = declared_noise(model.task)
    jobs = [
        JOBS[model.task.replay](model=model, unit=unit, start=begin, names=names, noise=noise)
        for unit in units_of(recordings)
    ]
    bench = Bench(workers=workers, ray=ray, folder=jobs_folder, progress=progress)
    # On several threads products of such small matrices take many times as long.
    with threadpool_limits(1):
        case = _CASES[model.task.replay].of(jobs, bench).ending()
        return case.told(profiles=profiles, given=known)


@dataclass(frozen=True, slots=True)
class _Case:
    """Fits of all units, and the noise that is most likely then.

    Attributes:
        jobs: What was asked.
        fits: What was found.
        noise: Most likely then.
        bench: Where further fits are computed.
    """

    jobs: Sequence[Job]
    fits: Sequence[UnitFit]
    noise: Mapping[str, float]
    bench: Bench

    @classmethod
    def of(cls, jobs: Sequence[Job], bench: Bench) -> Self:
        fits = bench.fits(jobs)
        return cls(jobs, fits, cls.noise_of(jobs[0], fits), bench)

    def ending(self) -> Self:
        """Fits with the noise that was found."""
        return self.of(self.jobs_on(), self.bench)

    @staticmethod
    def noise_of(job: Job, fits: Sequence[UnitFit]) -> Mapping[str, float]:
        """Noise that is most likely, by constant."""
        return likely_noise(job.model.task, [fit.tracks for fit in fits], job.noise)[0]

    def ended(self, fit: UnitFit) -> tuple[Array, Array]:
        """Errors of a unit with their columns, and the step from there to its constants."""
        rows = rows_of(whitened(self.jobs[0].model.task, fit.tracks, self.noise))
        return rows, step_of(rows, self.jobs[0].free, fit.played, is_bound=False)

    def structure(self, constants: Sequence[Mapping[str, float]], bounds: list[str]) -> Structure:
        """Whether constants explain the recordings, with those of each unit."""
        return structure_of(
            self.jobs[0].model,
            [job.unit for job in self.jobs],
            [fit.tracks for fit in self.fits],
            constants,
            self.noise,
            self.jobs[0].names,
            bounds,
        )

    def jobs_on(self, **held: float) -> list[Job]:
        """What is asked next: the same from where it ended, with some constants held."""
        names = tuple(name for name in self.jobs[0].names if name not in held)
        jobs = []
        for job, fit in zip(self.jobs, self.fits, strict=True):
            start = {**job.constants(fit.played), **held}
            jobs.append(replace(
                job, start=start, names=names, noise=self.noise, before=None if held else fit
            ))  # fmt: skip
        return jobs

    def told(self, *, profiles: bool, given: Collection[str]) -> Fitted:
        """What there is to be said of constants that are not given."""
        job = self.jobs[0]
        task, free = job.model.task, job.free
        spans = np.subtract(*bounds_of(free)[::-1])
        rows, values, sds, left = [], [], [], []
        for fit in self.fits:
            own, step = self.ended(fit)
            rows.append(own)
            values.append(fit.played + step)
            sds.append(np.sqrt(np.diag(covariance_of(rows[-1][:, 1:], spans))))
            after = rows[-1][:, 0] + rows[-1][:, 1:] @ step
            left.append(after[rows[-1].any(axis=1)])
        x, s = np.array(values), np.array(sds)
        told = {one.name: (one, x[:, at], s[:, at]) for at, one in enumerate(free)}
        late = np.array([fit.late for fit in self.fits if DELAY not in given])
        if late.size:
            told[DELAY] = physics_of(task)[DELAY], late[:, 0], late[:, 1]
        together = {
            name: random_effects(x, s, unit=one.unit, quantum=one.quantum)
            for name, (one, x, s) in told.items()
        }
        every = np.vstack(rows)
        said = self._judged(told, {name: one for name, (one, _) in together.items()}, every)
        if profiles:
            for one in free:
                said[one.name] = self._profiled(one, said[one.name])
        for name, (one, _, _) in told.items():
            said[name] = _reaching(one, _within(one, together[name][0]), said[name])
        constants = [
            {**job.constants(fit.values), **({DELAY: float(fit.late[0])} if late.size else {})}
            for job, fit in zip(self.jobs, self.fits, strict=True)
        ]
        return Fitted(
            units=tuple(tuple(one.id for one in job.unit) for job in self.jobs),
            found={
                name: Found(
                    estimate=_within(one, together[name][0]),
                    by_unit=tuple(x.tolist()),
                    sds=tuple(s.tolist()),
                    between_sd=together[name][1],
                    judged=said[name],
                )
                for name, (one, x, s) in told.items()
            },
            given={name: value for name, value in job.start.items() if name not in told},
            noise=self.noise,
            free=job.names,
            correlations=correlations_of(covariance_of(every[:, 1:], spans)),
            chi2=float(np.mean(np.concatenate(left) ** 2)),
            structure=self.structure(
                constants,
                [name for name, one in said.items() if one.verdict is Verdict.AT_A_BOUND],
            ),
        )

    def _judged(
        self,
        told: Mapping[str, tuple[Constant, Array, Array]],
        together: Mapping[str, Estimate],
        rows: Array,
    ) -> dict[str, Judged]:
        """Verdict of each constant, before any is held at its bounds."""
        halves = {name: half_width(estimate) for name, estimate in together.items()}
        said = judged(self.jobs[0].free, halves, rows[:, 1:])
        unsettled = sum(not fit.is_settled for fit in self.fits)
        for name, (one, x, s) in told.items():
            if name not in said:  # told by efforts alone
                said[name] = judged_alone(one, halves[name], s)
            if said[name].verdict is Verdict.NOT_IDENTIFIABLE:
                continue
            beyond = np.maximum(one.low - x, x - one.high) / np.maximum(s, 1e-300)
            if beyond.sum() / np.sqrt(len(x)) > _PRESSED:
                side = "least" if x.mean() < one.low else "greatest"
                said[name] = Judged(
                    verdict=Verdict.AT_A_BOUND,
                    reason=f"the recordings ask for a value beyond the {side} that is possible",
                )
            elif unsettled:
                said[name] = Judged(
                    verdict=Verdict.NOT_SETTLED,
                    reason=f"the search did not settle in {unsettled} of"
                    f" {counted(len(x), 'recording')}",
                )
        return said

    def _misfit_within(self, fits: Sequence[UnitFit]) -> float:
        """Least misfit over all noise, with constants as they were found within their bounds."""
        held = [
            [
                replace(
                    one,
                    errors=one.errors + one.columns @ (fit.values - fit.played),
                    columns=one.columns[:, :, :0],
                )
                for one in fit.tracks
            ]
            for fit in fits
        ]
        return likely_noise(self.jobs[0].model.task, held, self.noise)[1]

    def _profiled(self, one: Constant, said: Judged) -> Judged:
        """The verdict, after a constant in doubt was held at its bounds.

        All other constants, noise and hidden force are found anew there: with a hidden force that
        is held, a constant seems to be told that is not.
        """
        if said.verdict is not Verdict.WEAK:
            return said
        least = self._misfit_within(self.fits)
        rises = [
            self._misfit_within(self.bench.fits(self.jobs_on(**{one.name: bound}))) - least
            for bound in (one.low, one.high)
        ]
        if min(rises) < LIKELY:
            bound = one.low if rises[0] < rises[1] else one.high
            return replace(
                said,
                verdict=Verdict.NOT_IDENTIFIABLE,
                reason=f"{bound:g} {one.unit}, its bound, explains the recordings as well",
            )
        return said


class _WholeCase(_Case):
    """Fits of recordings that are played whole: they end where they end, and no force is hidden."""

    def ending(self) -> Self:
        """These: each unit found its noise."""
        return self

    @staticmethod
    def noise_of(job: Job, fits: Sequence[UnitFit]) -> Mapping[str, float]:
        """Root mean square of what was found in the units."""
        found = np.sqrt(np.mean([fit.noise**2 for fit in fits], axis=0))
        return dict(zip(job.noise, found.tolist(), strict=True))

    def ended(self, fit: UnitFit) -> tuple[Array, Array]:
        """What the search ended with."""
        return fit.rows, fit.values - fit.played

    def _profiled(self, one: Constant, said: Judged) -> Judged:
        """As it is: the search saw all of its range."""
        del one
        return said

    def structure(self, constants: Sequence[Mapping[str, float]], bounds: list[str]) -> Structure:
        """Nothing but constants at their bounds speaks against them all."""
        del constants
        return Structure(missing=(), skill=None, share=None, bounds=tuple(bounds))


_CASES: Final = {"steps": _Case, "whole": _WholeCase}


def _reaching(one: Constant, estimate: Estimate, said: Judged) -> Judged:
    """The verdict, unless the interval reaches a bound: the true value may lie beyond it.

    One that holds what is nominal is no wonder: what is nominal may be a bound, such as no delay.
    """
    is_doubted = said.verdict not in (Verdict.NOT_IDENTIFIABLE, Verdict.AT_A_BOUND)
    if one.stage and said.verdict is Verdict.WEAK:  # contacts tell of no more than a range
        is_doubted = False
    for bound in (one.low, one.high) if is_doubted and not holds(estimate, one.nominal) else ():
        if holds(estimate, bound):
            reason = f"its interval reaches its bound, {bound:g} {one.unit}".rstrip()
            return Judged(verdict=Verdict.AT_A_BOUND, reason=reason)
    return said


def _within(one: Constant, estimate: Estimate) -> Estimate:
    """An interval as far as the bounds of a constant."""
    cut = {
        name: float(np.clip(getattr(estimate, name), one.low, one.high))
        for name in ("value", "low", "high")
    }
    return replace(estimate, **cut)  # type: ignore[arg-type]
