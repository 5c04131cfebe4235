"""What networks of a study still cover when their nodes are taken away, one step after another.

A quotient that measures what an agent is able to do should fall about evenly with the units that
are taken away; see Pereyda and Holder (2025), The Artificial Intelligence Quotient (AIQ), AI
6(12):313.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from robo_eval.analysis.aiq import Space, quotients
from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.plain import plain
from robo_eval.core.spread import done
from robo_eval.core.wording import counted
from robo_eval.log.lock import RunLock
from robo_eval.study import measure, results
from robo_eval.study.entries import Test
from robo_eval.study.measure import Lesson, lesson, seed_of
from robo_eval.study.network import Architecture, Network
from robo_eval.study.results import Results
from robo_eval.study.run import Study
from robo_eval.study.suite import LearnerSection

Numbers = NDArray[np.float64]
_METHOD: Final = 1
"""Goes up whenever the same plan would give other numbers."""
_LEAVES: Final = 21
"""What a seed is for: the order in which nodes leave."""
_LEAST: Final = 4
"""Different numbers of nodes: a parabola runs through any three points."""


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


# One network -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """How well lines and parabolas describe how values depend on nodes.

    Attributes:
        linear: Share of the variance that a line explains (R squared); NaN if all values are equal.
        quadratic: The same of a parabola; never below that of the line.
    """

    linear: float
    quadratic: float


def without_units(network: Network, share: float, *, rng: np.random.Generator) -> Network:
    """A network from which some hidden units were removed, with all that leads to and from them.

    Units leave in a random order, whatever layer they are in, but one stays in every layer: nothing
    would pass through an empty one. A generator of the same seed gives the same order, so
    that what a smaller share removes is among what a larger one does.

    Args:
        network: It stays as it is.
        share: Share of all hidden units that is removed, in [0, 1]; rounded to whole units, and to
            what may go.
        rng: Draws the order.

    Raises:
        InputError: If the share is not in [0, 1], or there are no hidden units.

    Example:
        >>> whole = Network.initial(
        ...     Architecture(inputs=4, hidden=(6, 4), outputs=2), np.random.default_rng(0)
        ... )
        >>> sum(without_units(whole, 0.5, rng=np.random.default_rng(1)).architecture.hidden)
        5
    """
    if not 0.0 <= share <= 1.0:
        raise InputError(f"share is {share}; it must be in [0, 1]")
    order = _order(network.architecture, rng)
    return _without(network, order[: round(share * sum(network.architecture.hidden))])


def nested_steps(network: Network, steps: int, seed: int) -> list[Network]:
    """Networks from the whole one to one with a single unit in each hidden layer, evenly spaced.

    Each has lost all that the one before it has lost, and more.

    Args:
        network: The whole one.
        steps: How many networks, the first and the last included.
        seed: Of the order in which units leave.

    Raises:
        InputError: If there are fewer than 2 steps, no hidden units, or too few units for so many.
    """
    order = _order(network.architecture, np.random.default_rng(seed))
    if not 2 <= steps <= len(order) + 1:
        raise InputError(
            f"steps is {steps}; it must be from 2 to {len(order) + 1}, because {len(order)} units"
            " may go"
        )
    counts = np.linspace(0, len(order), steps).round().astype(int)
    return [_without(network, order[:count]) for count in counts]


def fits(nodes: ArrayLike, values: ArrayLike) -> Fits:
    """How well a line and a parabola describe what is left with fewer nodes, by least squares.

    Args:
        nodes: Hidden units, shape (n,).
        values: A quotient or a mean performance with each, shape (n,).

    Raises:
        ShapeError: If lengths differ, or a number is not finite.
        InputError: If there are fewer than 4 different numbers of nodes.

    Example:
        >>> fits([1, 2, 3, 4], [10, 20, 30, 40]).linear
        1.0
    """
    x, y = as_numbers("nodes", nodes), as_numbers("values", values)
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"nodes have shape {x.shape} and values {y.shape}; both must be (n,)")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ShapeError("nodes or values hold a number that is not finite")
    there = len(np.unique(x))
    if there < _LEAST:
        raise InputError(
            f"nodes holds {counted(there, 'different number')}; fits need {_LEAST} at least"
        )
    return Fits(linear=_explained(x, y, 1), quadratic=_explained(x, y, 2))


def _explained(x: NDArray[np.float64], y: NDArray[np.float64], degree: int) -> float:
    """R squared of the polynomial of a degree that fits best."""
    if np.ptp(y) == 0.0:
        return float("nan")
    # `fit` maps x to [-1, 1] first, so that large numbers of nodes lose no digits.
    left = y - Polynomial.fit(x, y, degree)(x)
    return 1.0 - float((left @ left) / ((y - y.mean()) @ (y - y.mean())))


def _order(architecture: Architecture, rng: np.random.Generator) -> NDArray[np.intp]:
    """The units that may go, in the order they do; numbered through all hidden layers."""
    if not architecture.hidden:
        raise InputError("the network has no hidden units that could be removed")
    layer = np.repeat(np.arange(len(architecture.hidden)), architecture.hidden)
    order = rng.permutation(len(layer))
    stays = [order[layer[order] == one][-1] for one in range(len(architecture.hidden))]
    return order[~np.isin(order, stays)]


def _without(network: Network, removed: NDArray[np.intp]) -> Network:
    built = network.architecture
    is_kept = np.ones(sum(built.hidden), dtype=bool)
    is_kept[removed] = False
    # Inputs and outputs stay.
    kept = [
        np.ones(built.inputs, dtype=bool),
        *np.split(is_kept, np.cumsum(built.hidden)[:-1]),
        np.ones(built.outputs, dtype=bool),
    ]
    hidden = tuple(int(one.sum()) for one in kept[1:-1])
    return Network(
        Architecture(inputs=built.inputs, hidden=hidden, outputs=built.outputs),
        [w[kept[i]][:, kept[i + 1]] for i, w in enumerate(network.weights)],
        [b[kept[i + 1]] for i, b in enumerate(network.biases)],
    )
