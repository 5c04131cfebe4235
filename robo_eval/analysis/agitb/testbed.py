"""Running the testbed: trials of tests, spread over processes, each from its own seed."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple

import numpy as np

from robo_eval.analysis.agitb import axioms
from robo_eval.analysis.agitb.axioms import Failure, Trial
from robo_eval.analysis.agitb.liveness import NoisyError, liveness
from robo_eval.analysis.agitb.models import Kind, ModelError, PlainModels
from robo_eval.core.confined import can_fork
from robo_eval.core.errors import InputError
from robo_eval.core.spread import Crew, Done, Worker

PLAIN_TRIALS: Final = 50
"""Trials of a test of a plain Python model, where nobody says how many."""
_MANY: Final = 5_000
_LIMIT_S: Final = 300.0
_LIVENESS: Final = "12"
_INTEGRITY: Final = "0"
_OFF: Final = "11"


class Test(NamedTuple):
    """A test: its number, name, how often the reference tries it, and a trial of it."""

    number: str
    name: str
    trials: int
    trial: Trial | None


TESTS: Final = (
    Test("1", "uninformed start", 100, axioms.uninformed),
    Test("2", "determinism", _MANY, axioms.determinism),
    Test("3", "trace", 1, axioms.trace),
    Test("4", "time", 100, axioms.time),
    Test("5", "refractory period", _MANY, axioms.refractory),
    Test("6", "saturation", _MANY, axioms.saturation),
    Test("7", "temporal adaptability", 1, axioms.adaptability),
    Test("8", "content sensitivity", _MANY, axioms.content),
    Test("9", "context sensitivity", _MANY, axioms.context),
    Test("10", "denoising", _MANY, axioms.denoising),
    Test(_OFF, "generalisation", _MANY, None),
    Test(_LIVENESS, "liveness", _MANY, liveness),
)
"""The tests in their order; the eleventh has no procedure, and is never failed."""
INTEGRITY: Final = Test(_INTEGRITY, "semantic integrity", _MANY, axioms.integrity)
"""Whether copies are independent; only on request, and no part of the verdict."""


class Piece(NamedTuple):
    """A trial: the number of its test, its own, and the seed of all."""

    test: str
    trial: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a trial.

    Attributes:
        verdict: `pass`; `fail`; `error` if the model did what no model may; `timeout` if it hung;
            `inconclusive` if the machine was too busy to tell.
        failure: What it did, if it did not pass.
        seconds: How long it took.
    """

    verdict: str
    failure: Failure | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What came of a test.

    Attributes:
        test: Its number.
        name: What it is called.
        verdict: As of a trial; `not operational` of the eleventh, `not run` after a failure.
        trials: How many were run.
        wanted: How many the reference runs.
        failed: How many did not pass.
        first_trial: The first that did not pass; None if all did.
        failure: What the model did in it.
        seconds: How long all took, over all processes.
    """

    test: str
    name: str
    verdict: str
    trials: int
    wanted: int
    failed: int = 0
    first_trial: int | None = None
    failure: Failure | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbed:
    """What came of all tests.

    Attributes:
        model: Name of the model.
        seed: From which all trials were drawn.
        tests: The tests, in their order.
        integrity: The integrity test, if it was asked for.
    """

    model: str
    seed: int
    tests: tuple[Tested, ...]
    integrity: Tested | None = None

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each test by its number."""
        return {one.test: one.verdict for one in self.tests}

    @property
    def first_failure(self) -> str | None:
        """Number of the first test that was not passed; None if all were."""
        return next((one.test for one in self.tests if one.failed), None)

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        return {
            "model": self.model,
            "seed": self.seed,
            "first_failure": self.first_failure,
            "tests": [asdict(one) for one in self.tests],
            "integrity": None if self.integrity is None else asdict(self.integrity),
        }


def run_testbed(
    model_class: Callable[[], Any],
    *,
    trials: int | None = None,
    seed: int | None = None,
    fail_fast: bool = True,
    integrity: bool = False,
    workers: int = 1,
    limit_s: float = _LIMIT_S,
    told: Callable[[float, float, str], None] | None = None,
) -> Testbed:
    """Run the twelve tests of AGITB on a model.

    Args:
        model_class: Called without arguments, it gives a model that has seen nothing: see
            `models.PlainModels`.
        trials: Most trials of a test; None for 50 of a plain model.
        seed: From which trials are drawn; None draws one.
        fail_fast: Stop at the first trial that is not passed; else all of every test are run.
        integrity: Whether to test first that copies are independent.
        workers: Processes; liveness is measured in one, alone. The results are the same.
        limit_s: How long a trial may take, seconds.
        told: Told of trials that are done, of how many there are, and of the newest.

    Raises:
        InputError: If `trials`, `seed` or `workers` is none that fits.
    """
    if trials is not None and trials < 1:
        raise InputError(f"trials is {trials}; it must be 1 or more")
    if seed is not None and not 0 <= seed < 1 << 64:
        raise InputError(f"seed is {seed}; it must be from 0 to 2**64 - 1")
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more")
    kind = PlainModels(model_class)
    run = _Run(
        kind=kind,
        seed=secrets.randbits(32) if seed is None else seed,
        most=trials or PLAIN_TRIALS,
        fail_fast=fail_fast,
        workers=workers,
        limit_s=limit_s,
        told=told,
        tests=((INTEGRITY,) if integrity else ()) + TESTS,
    )
    found = run.all()
    own = found.pop(0) if integrity else None
    return Testbed(
        model=kind.name,
        seed=run.seed,
        tests=tuple(found),
        integrity=own,
    )


def run_trial(kind: Kind[Any], piece: Piece) -> Outcome:
    """One trial of a test, the same each time."""
    test = next(one for one in (INTEGRITY, *TESTS) if one.number == piece.test)
    assert test.trial is not None
    entropy = np.random.SeedSequence(piece.seed, spawn_key=(int(piece.test), piece.trial))
    started = time.perf_counter()
    failure, verdict = None, "pass"
    try:
        failure = test.trial(kind, np.random.default_rng(entropy))
        verdict = "pass" if failure is None else "fail"
    except ModelError as err:
        failure, verdict = Failure(clause=test.number, what=str(err)), "error"
    except NoisyError as err:
        failure, verdict = Failure(clause=test.number, what=str(err)), "inconclusive"
    return Outcome(verdict=verdict, failure=failure, seconds=time.perf_counter() - started)


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run of the testbed."""

    kind: Kind[Any]
    seed: int
    most: int
    fail_fast: bool
    workers: int
    limit_s: float
    told: Callable[[float, float, str], None] | None
    tests: Sequence[Test]
    done: int = 0
    ended: dict[str, dict[int, Outcome]] = field(default_factory=dict)

    def all(self) -> list[Tested]:
        """What came of each test, in order."""
        crew = _Trials(self.kind, self.limit_s)
        found: list[Tested] = []
        has_failed = False
        try:
            for test in self.tests:
                if test.trial is None:
                    found.append(_tested(test, {}, "not operational"))
                elif has_failed and self.fail_fast:
                    found.append(_tested(test, {}, "not run"))
                else:
                    found.append(_tested(test, self._test(crew, test)))
                    has_failed |= bool(found[-1].failed) and test is not INTEGRITY
        finally:
            crew.end()
        return found

    def _test(self, crew: _Trials, test: Test) -> dict[int, Outcome]:
        count = min(test.trials, self.most)
        waiting = deque([Piece(test.number, trial, self.seed)] for trial in range(count))
        found: dict[int, Outcome] = {}
        # What is timed is measured alone.
        workers = 1 if test.number == _LIVENESS else self.workers
        for _ in crew.do(waiting, min(workers, count)):
            while crew.ended:
                piece, outcome = crew.ended.pop()
                found[piece.trial] = outcome
                self.done += 1
                self._tell(test)
                if outcome.verdict != "pass" and self.fail_fast:
                    # Earlier trials end: the first that fails is the same, whoever is faster.
                    waiting.clear()
        if self.fail_fast:
            first = min((one for one, out in found.items() if out.verdict != "pass"), default=count)
            found = {trial: out for trial, out in found.items() if trial <= first}
        return found

    def _tell(self, test: Test) -> None:
        if self.told is not None:
            total = sum(min(one.trials, self.most) for one in self.tests if one.trial is not None)
            self.told(self.done, total, f"test {test.number}, {test.name}")


def _tested(test: Test, ended: dict[int, Outcome], verdict: str = "") -> Tested:
    bad = sorted(trial for trial, outcome in ended.items() if outcome.verdict != "pass")
    first = ended[bad[0]] if bad else None
    return Tested(
        test=test.number,
        name=test.name,
        verdict=verdict or (first.verdict if first is not None else "pass"),
        trials=len(ended),
        wanted=test.trials,
        failed=len(bad),
        first_trial=bad[0] if bad else None,
        failure=None if first is None else first.failure,
        seconds=sum(one.seconds for one in ended.values()),
    )


# Processes -------------------------------------------------------------------------------------


class _Trials(Crew[Piece, Outcome]):
    """Processes that run trials; one that hangs is ended, and said to."""

    def __init__(self, kind: Kind[Any], limit_s: float) -> None:
        super().__init__()
        self._kind, self._limit_s = kind, limit_s
        self.look_s = min(self.look_s, limit_s / 4)

    def hire(self, *, is_alone: bool) -> Worker[Piece, Outcome]:  # noqa: ARG002
        return _Runner(self._kind, self._limit_s)

    def lose(self, worker: Worker[Piece, Outcome], problem: object | None) -> None:
        piece = worker.todo.popleft()
        verdict, what = "error", "ends the process it runs in"
        if problem is not None:
            verdict, what = "timeout", f"takes longer than {self._limit_s:g} s for a trial"
        failure = Failure(clause=piece.test, what=what)
        self.ended.append((piece, Outcome(verdict=verdict, failure=failure)))


class _Runner(Worker[Piece, Outcome]):
    """A process that runs trials."""

    def __init__(self, kind: Kind[Any], limit_s: float) -> None:
        super().__init__(_serve, kind, forks=can_fork())
        self._limit_s = limit_s
        self._since = time.monotonic()

    def answers(self) -> Iterator[tuple[Piece, Outcome]]:
        """What came of the trials that have ended since."""
        for answer in super().answers():
            self._since = time.monotonic()
            yield answer

    def give(self, pieces: Sequence[Piece]) -> None:
        """Have it run trials."""
        if not self.todo:
            self._since = time.monotonic()
        super().give(pieces)

    def problem(self) -> object | None:
        """Whether it hangs."""
        is_late = bool(self.todo) and time.monotonic() - self._since > self._limit_s
        return "hangs" if is_late else None


def _serve(hears: Connection, speaks: Connection, kind: Kind[Any]) -> None:
    speaks.send(None)
    while True:
        for piece in hears.recv():
            speaks.send(Done(run_trial(kind, piece)))
