"""Running the testbed: trials of tests, spread over processes, each from its own seed."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from robo_eval.analysis.agitb import axioms
from robo_eval.analysis.agitb.axioms import Failure, Trial, UnlearnableError
from robo_eval.analysis.agitb.liveness import NoisyError, liveness
from robo_eval.analysis.agitb.models import ModelError, Models, Seen, Watched
from robo_eval.analysis.agitb.streams import Streams
from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.core.spread import Limited
from robo_eval.stats.estimate import Estimate
from robo_eval.stats.proportions import clopper_pearson_interval

_MANY: Final = 5_000


class Test(NamedTuple):
    """A test: its number, name, how often the reference tries it, and a trial of it."""

    number: str
    name: str
    trials: int
    trial: Trial | None


TESTS: Final = (
    Test("0", "semantic integrity", _MANY, axioms.integrity),
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
    Test("11", "generalisation", _MANY, None),
    Test("12", "liveness", _MANY, liveness),
)
"""The tests in their order. The first, whether copies are independent, is run on request and is no
part of the verdict; the eleventh has no procedure, and is never failed."""


class TestTrial(NamedTuple):
    """A trial: the number of its test, its own, and the seed of all."""

    test: str
    trial: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """What came of a trial.

    Attributes:
        verdict: `pass`; `fail`; `error` if the model did what no model may; `timeout` if it hung;
            `inconclusive` if it is too fast to be timed.
        failure: What it did, if it did not pass.
        seconds: How long it took.
        seen: What else was seen of the model.
    """

    verdict: str
    failure: Failure | None = None
    seconds: float = 0.0
    seen: Seen = field(default_factory=Seen)


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
        seen: What else was seen of the model; times are of the first trial that did not pass, or
            else of the first.
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
    seen: Seen = field(default_factory=Seen)

    @property
    def pass_rate(self) -> Estimate:
        """Share of the trials that were passed, with an exact interval.

        Where the first failure ends the trials it is too low: give `fail_fast=False`.
        """
        passed = self.trials - self.failed
        if not self.trials:
            return Estimate.missing(reason=self.verdict, unit="ratio")
        low, high = clopper_pearson_interval(passed, self.trials)
        return Estimate(
            value=passed / self.trials, low=low, high=high, n=self.trials,
            method="clopper-pearson", unit="ratio",
        )  # fmt: skip

    @property
    def learning(self) -> dict[str, int | None]:
        """Passes after which a tenth, half and nine tenths of sequences were learned; how many.

        None of those that are never learned.
        """
        learned = self.seen.learned
        passes = np.repeat(
            [np.inf if one is None else one for one in learned], list(learned.values())
        )
        places = (0.1, 0.5, 0.9) if len(passes) else ()
        found = {f"{q:.0%}": float(np.quantile(passes, q, method="nearest")) for q in places}
        shown = {q: None if np.isinf(one) else int(one) for q, one in found.items()}
        return {**shown, "never": learned[None], "n": len(passes)}

    def as_dict(self) -> dict[str, Any]:
        """The same, ready for JSON."""
        found = asdict(self) | {"pass_rate": self.pass_rate.as_dict(), "learning": self.learning}
        del found["seen"]["learned"]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbed:
    """What came of all tests.

    Attributes:
        model: Name of the model.
        seed: From which all trials were drawn.
        most: Most trials of a test.
        tests: The tests, in their order.
        integrity: The integrity test, if it was asked for.
        source: Whose recorded signals it was fed; empty if inputs were drawn.
    """

    model: str
    seed: int
    most: int
    tests: tuple[Tested, ...]
    integrity: Tested | None = None
    source: str = ""

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
            **asdict(self),
            "first_failure": self.first_failure,
            "tests": [one.as_dict() for one in self.tests],
            "integrity": None if self.integrity is None else self.integrity.as_dict(),
        }


def run_testbed(
    model_class: Callable[[], Any] | Models,
    *,
    trials: int | None = None,
    seed: int | None = None,
    fail_fast: bool = True,
    integrity: bool = False,
    workers: int = 1,
    limit_s: float = 300.0,
    told: Callable[[float, float, str], None] | None = None,
    only: tuple[str, int] | None = None,
    streams: Callable[[np.random.Generator], Streams] = Streams,
) -> Testbed:
    """Run the twelve tests of AGITB on a model.

    Args:
        model_class: Called without arguments, it gives a model that has seen nothing: see
            `models.Models`; or compiled models, see `compiled`.
        trials: Most trials of a test; None for 50 of a plain model, 5,000 of a compiled one.
        seed: From which trials are drawn; None draws one.
        fail_fast: Stop at the first trial that is not passed; else all of every test are run.
        integrity: Whether to test first that copies are independent.
        workers: Processes; liveness is measured in one, alone. The results are the same.
        limit_s: How long a trial may take, seconds.
        told: Told of trials that are done, of how many there are, and of the newest.
        only: Number of a test and of a trial: nothing else is run.
        streams: Draws sequences of inputs; see `recorded` for those of a robot.

    Raises:
        InputError: If `trials`, `seed`, `workers`, `limit_s` or `only` is none that fits.
    """
    _check(trials=trials, seed=seed, workers=workers, limit_s=limit_s)
    models = model_class if isinstance(model_class, Models) else Models(model_class)
    seed = secrets.randbits(32) if seed is None else seed
    most = trials or models.trials
    tests: Sequence[Test] = TESTS if integrity or only else TESTS[1:]
    todo = {
        test.number: [
            TestTrial(test.number, trial, seed) for trial in range(min(test.trials, most))
        ]
        for test in tests
        if test.trial is not None
    }
    if only is not None:
        _check(trial=only[1])
        if only[0] not in todo:
            raise unknown_name("test", only[0], todo)
        tests = [test for test in tests if test.number == only[0]]
        todo = {only[0]: [TestTrial(*only, seed)]}
    total = sum(map(len, todo.values()))
    trial = partial(run_trial, models, streams=streams)
    crew = Limited(trial, limit_s, partial(_lost, limit_s=limit_s))
    found: list[Tested] = []
    done = 0
    try:
        for test in tests:
            ended: dict[int, TrialOutcome] = {}
            if test.trial is None:
                verdict = "not operational"
            elif fail_fast and any(one.failed for one in found if one.test != "0"):
                verdict = "not run"
            else:
                # What is timed is measured alone.
                hands = 1 if test.trial is liveness else workers
                is_last = _has_failed if fail_fast else None
                for piece, outcome in crew.done(todo[test.number], hands, is_last):
                    ended[piece.trial] = outcome
                    done += 1
                    if told is not None:
                        told(done, total, f"test {test.number}, {test.name}")
                verdict = "pass"
            found.append(_tested(test, ended, verdict, fail_fast=fail_fast))
    finally:
        crew.end()
    own = found.pop(0) if found[0].test == "0" else None
    return Testbed(model=models.name, seed=seed, most=most, tests=tuple(found), integrity=own)


def _has_failed(outcome: TrialOutcome) -> bool:
    return outcome.verdict != "pass"


def _check(**given: float | None) -> None:
    for name, value in given.items():
        least = {"seed": 0, "trial": 0, "limit_s": 0.001}.get(name, 1)
        if value is not None and not least <= value < 1 << 64:
            raise InputError(f"{name} is {value}; it must be from {least} to 2**64 - 1")


def run_trial(
    models: Models,
    piece: TestTrial,
    streams: Callable[[np.random.Generator], Streams] = Streams,
) -> TrialOutcome:
    """One trial of a test, the same each time."""
    test = next(one for one in TESTS if one.number == piece.test)
    assert test.trial is not None
    entropy = np.random.SeedSequence(piece.seed, spawn_key=(int(piece.test), piece.trial))
    watched = Watched(models)
    started = time.perf_counter()
    try:
        failure = test.trial(watched, streams(np.random.default_rng(entropy)))
        verdict = "pass" if failure is None else "fail"
    except (ModelError, NoisyError, UnlearnableError) as err:
        clause = f"{test.number}-learnable" if err.verdict == "fail" else test.number
        failure, verdict = Failure(clause, str(err)), err.verdict
    return TrialOutcome(
        verdict=verdict, failure=failure, seconds=time.perf_counter() - started,
        seen=watched.seen,
    )  # fmt: skip


def _tested(test: Test, ended: dict[int, TrialOutcome], verdict: str, *, fail_fast: bool) -> Tested:
    bad = sorted(trial for trial, outcome in ended.items() if _has_failed(outcome))
    if fail_fast and bad:
        bad, ended = bad[:1], {trial: one for trial, one in ended.items() if trial <= bad[0]}
    ordered = [one for _, one in sorted(ended.items())]
    shown = ended[bad[0]] if bad else next(iter(ordered), TrialOutcome(verdict=verdict))
    return Tested(
        test=test.number,
        name=test.name,
        verdict=shown.verdict,
        trials=len(ended),
        wanted=test.trials,
        failed=len(bad),
        first_trial=bad[0] if bad else None,
        failure=shown.failure,
        seconds=sum(one.seconds for one in ordered),
        seen=Seen(
            sum((one.seen.learned for one in ordered), Counter()),
            [margin for one in ordered for margin in one.seen.margins],
            shown.seen.times_us,
        ),
    )


def _lost(piece: TestTrial, is_late: bool, limit_s: float) -> TrialOutcome:  # noqa: FBT001
    if not is_late:
        return TrialOutcome(
            verdict="error", failure=Failure(piece.test, "ends the process it runs in")
        )
    failure = Failure(piece.test, f"takes longer than {limit_s:g} s for a trial")
    return TrialOutcome(verdict="timeout", failure=failure, seconds=limit_s)


def missing(model_class: Callable[[], Any] | Models, *, limit_s: float = 60.0) -> str | None:
    """What an author has to add or mend first before the tests mean anything; None if nothing.

    Args:
        model_class: As for `run_testbed`.
        limit_s: How long it may take, seconds.

    Example:
        >>> class Silent:
        ...     def __call__(self, number):
        ...         return 0
        >>> missing(Silent)
        '== is not defined: write `__eq__`, which compares all that predictions may depend on'
    """
    found = run_testbed(model_class, only=("0", 0), seed=0, limit_s=limit_s).integrity
    return None if found is None or found.failure is None else found.failure.what
