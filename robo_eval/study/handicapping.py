"""What networks of a study still cover when their nodes are taken away, one step after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from robo_eval.analysis.aiq import Space, quotients
from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.plain import plain
from robo_eval.core.spread import done
from robo_eval.log.lock import RunLock
from robo_eval.study import measure, results
from robo_eval.study.entries import Test
from robo_eval.study.handicap import Fits, fits, nested_steps
from robo_eval.study.measure import Lesson, lesson, seed_of
from robo_eval.study.results import Results
from robo_eval.study.run import Study
from robo_eval.study.suite import LearnerSection

Numbers = NDArray[np.float64]
_METHOD: Final = 1
"""Goes up whenever the same plan would give other numbers."""
_LEAVES: Final = 21
"""What a seed is for: the order in which nodes leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is tried.

    Attributes:
        layers: Hidden layers of the networks, from 1 to this many.
        units: Units of each hidden layer.
        steps: Networks from the whole one to one unit in each layer, both included.
        trainings: How often each is trained, with another order in which nodes leave.
    """

    layers: int = 5
    units: int = 32
    steps: int = 9
    trainings: int = 3

    def __post_init__(self) -> None:
        for name in ("layers", "trainings"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 1 or more")
        # Fits need four different numbers of nodes, and the smallest network has no more.
        if not 4 <= self.steps <= self.units:
            raise InputError(
                f"steps is {self.steps} and units {self.units}; a network of one layer takes from 4"
                " steps to as many as it has units"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A network for one test, and what it does as its nodes leave.

    Attributes:
        test: The test, with its expert.
        plan: What is spent on the network; `hidden` is how it is built.
        steps: See `Plan`.
        number: Which training.
        seed: Of the study.
        digest: SHA-256 of all that its result depends on.
    """

    test: Test
    plan: LearnerSection
    steps: int
    number: int
    seed: int
    digest: str = ""

    def named(self) -> Piece:
        """The same with its digest."""
        own = {
            "kind": "handicap",
            "method": [measure.METHOD, _METHOD],
            "test": self.test.identity,
            "plan": self.plan.effort(),
            "steps": self.steps,
            "number": self.number,
            "seed": self.seed,
        }
        return replace(self, digest=digest(own))

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"handicap {self.test.name}, {len(self.plan.hidden)} layers"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """What networks of some layers cover with fewer and fewer nodes.

    Attributes:
        layers: Hidden layers.
        nodes: Hidden units that are left, shape (steps,), descending.
        performances: In each test, shape (trainings, tests, steps).
        means: Mean performance over tests, shape (trainings, steps).
        aiqs: Share of the space of the study that is covered, as a root, shape (trainings, steps).
    """

    layers: int
    nodes: Numbers
    performances: Numbers
    means: Numbers
    aiqs: Numbers

    def fits_of(self, values: Numbers) -> Fits:
        """How well a line and a parabola in nodes describe the average over trainings."""
        return fits(self.nodes, values.mean(axis=0))

    def fall_of(self, values: Numbers) -> float:
        """Rank correlation (Spearman) of nodes and the average over trainings; NaN if all equal."""
        average = values.mean(axis=0)
        if np.ptp(average) == 0.0:
            return float("nan")
        return float(spearmanr(self.nodes, average).statistic)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; None where there is nothing to explain."""
        return {
            "layers": self.layers,
            "nodes": self.nodes.astype(int).tolist(),
            "performances": self.performances.tolist(),
            **{
                name: {
                    "by_training": values.tolist(),
                    "linear_r2": self.fits_of(values).linear,
                    "quadratic_r2": self.fits_of(values).quadratic,
                    "spearman": self.fall_of(values),
                }
                for name, values in (("mean", self.means), ("aiq", self.aiqs))
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Handicapped:
    """What was found.

    Attributes:
        name: Of the study.
        tests: Names of its tests.
        k: Dimensions of its space.
        curves: For each number of layers, from 1 on.
    """

    name: str
    tests: list[str]
    k: int
    curves: list[Curve]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        found: dict[str, Any] = plain(
            {
                "name": self.name,
                "tests": self.tests,
                "k": self.k,
                "curves": [one.as_dict() for one in self.curves],
            }
        )
        return found


def handicapped(
    study: Study,
    plan: Plan,
    *,
    workers: int = 1,
    ray: str | None = None,
    progress: Callable[[float, float, str], None] | None = None,
) -> Handicapped:
    """Train networks on each test of a study, take their nodes away, and see what they cover.

    Networks are trained as the learner of the suite is, one for each test, and are not trained
    again when nodes leave. Results are kept with those of the study, so that the same call goes on
    where one was stopped.

    Args:
        study: A study that was run.
        plan: What is tried.
        workers: Processes on this machine.
        ray: Address of a Ray cluster instead; see `robo_eval.core.spread`.
        progress: Told of pieces that are done, of all that were left, and of the newest one.

    Raises:
        InputError: If the study is not finished.

    References:
        Pereyda and Holder (2025), AI 6(12):313, whose networks learned by reinforcement.
    """
    outcome = study.known()
    pieces = pieces_of(study, plan)
    with Results(study.folder / results.NAME) as kept:
        found = {piece.digest: kept.get(piece.digest) for piece in pieces}
        left = [piece for piece in pieces if found[piece.digest] is None]
        with RunLock(study.folder):
            for count, (piece, value) in enumerate(
                done(left, do, workers=workers, ray=ray), start=1
            ):
                kept.put(piece.digest, piece.label, value)
                found[piece.digest] = value
                if progress is not None:
                    progress(count, len(left), piece.label)
    return Handicapped(
        name=outcome.name,
        tests=outcome.measured.tests,
        k=outcome.space.k,
        curves=[
            _curve(
                layers,
                [one for one in pieces if len(one.plan.hidden) == layers],
                found,
                plan,
                outcome.space,
            )
            for layers in range(1, plan.layers + 1)
        ],
    )


def pieces_of(study: Study, plan: Plan) -> list[Piece]:
    """All pieces of work, those of a test one after the other.

    Args:
        study: Its experts are known.
        plan: What is tried.
    """
    learner = study.suite.learner
    return [
        Piece(
            test=test,
            plan=learner.model_copy(update={"hidden": (plan.units,) * layers}),
            steps=plan.steps,
            number=number,
            seed=study.suite.seed,
        ).named()
        for test in study.tests
        for layers in range(1, plan.layers + 1)
        for number in range(plan.trainings)
    ]


def do(piece: Piece) -> dict[str, Any]:
    """Do a piece of work; the same piece gives the same result, wherever it is done.

    Returns:
        Plain data for JSON: `nodes` that are left at each step, the `performances` with these, and
        the `seconds` it took.
    """
    started = time.perf_counter()
    with threadpool_limits(1):
        own = _lesson(piece.test, piece.plan.examples, piece.seed)
        whole = measure.learner(own, own, piece.plan, 1.0, piece.number, seed=piece.seed)
        order = seed_of(piece.seed, _LEAVES, len(piece.plan.hidden), piece.number)
        steps = nested_steps(whole, piece.steps, order)
        performances = [
            measure.performance(own.domain, one, piece.plan.episodes, seed=piece.seed)
            for one in steps
        ]
    return {
        "nodes": [sum(one.architecture.hidden) for one in steps],
        "performances": performances,
        "seconds": time.perf_counter() - started,
    }


_LESSONS: dict[str, Lesson] = {}
"""The newest examples a worker made: pieces of one test come one after the other."""


def _lesson(test: Test, count: int, seed: int) -> Lesson:
    key = f"{digest(test.identity)} {count} {seed}"
    if key not in _LESSONS:
        _LESSONS.clear()
        _LESSONS[key] = lesson(test.domain(), count, seed=seed)
    return _LESSONS[key]


def _curve(
    layers: int,
    pieces: Sequence[Piece],
    found: Mapping[str, dict[str, Any] | None],
    plan: Plan,
    space: Space,
) -> Curve:
    values = [value for piece in pieces if (value := found[piece.digest]) is not None]
    # Pieces are ordered by test, then by training.
    by_test = np.array([one["performances"] for one in values]).reshape(
        -1, plan.trainings, plan.steps
    )
    performances = by_test.swapaxes(0, 1)
    rows = performances.swapaxes(1, 2).reshape(-1, by_test.shape[0])
    aiqs = np.array([one.aiq for one in quotients(space, list(rows))])
    return Curve(
        layers=layers,
        nodes=np.array(values[0]["nodes"], dtype=float),
        performances=performances,
        means=performances.mean(axis=1),
        aiqs=aiqs.reshape(plan.trainings, plan.steps),
    )
