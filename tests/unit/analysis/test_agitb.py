"""AGITB: streams and counts of the specification, verdicts of models, and models that misbehave."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from robo_eval.analysis.agitb import Models, axioms, missing, run_testbed, testbed
from robo_eval.analysis.agitb.axioms import Failure, integrity, refractory
from robo_eval.analysis.agitb.liveness import NoisyError, growth, liveness
from robo_eval.analysis.agitb.models import Watched
from robo_eval.analysis.agitb.streams import FULL, Streams, pairs, singles, trivial_sequence, turns
from robo_eval.analysis.agitb.testbed import TestTrial, run_trial
from robo_eval.core import spread
from robo_eval.core.errors import InputError

EXAMPLES = Path(__file__).parents[3] / "examples" / "agitb" / "models.py"
SEEDS = st.integers(0, 2**32 - 1)


def _examples() -> Any:
    spec = importlib.util.spec_from_file_location("agitb_models", EXAMPLES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def drawn(seed: int) -> Streams:
    return Streams(np.random.default_rng(seed))


MODELS = _examples()
mixed = MODELS.mixed


# Streams ---------------------------------------------------------------------------------------


@given(SEEDS, st.integers(0, 60))
def test_a_bit_rests_after_it_was_set(seed: int, length: int) -> None:
    found = drawn(seed).random(length)
    assert len(found) == length
    assert all(0 <= one <= FULL for one in found)
    assert not any(one & other for one, other in itertools.pairwise(found))


@given(SEEDS, st.integers(1, 30))
def test_a_circular_sequence_can_be_repeated(seed: int, length: int) -> None:
    found = drawn(seed).circular(length)
    turns = found * 2 if length > 1 else found
    assert not any(one & other for one, other in itertools.pairwise(turns))


def test_the_bits_of_a_circular_sequence_are_set_as_often_as_specified() -> None:
    draw = drawn(1)
    rows = np.array([draw.circular(7) for _ in range(4_000)])
    rates = [np.mean([one.bit_count() / 10 for one in column]) for column in rows.T.tolist()]
    assert rates[0] == pytest.approx(1 / 2, abs=0.02)
    assert rates[3] == pytest.approx(1 / 3, abs=0.03)
    assert rates[6] == pytest.approx(1 / 6, abs=0.02)


def test_of_one_bit_every_stream_that_may_be_is_drawn() -> None:
    draw = drawn(2)
    circular = {tuple(one & 1 for one in draw.circular(7)) for _ in range(3_000)}
    random = {tuple(one & 1 for one in draw.random(7)) for _ in range(3_000)}
    assert (len(circular), len(random)) == (29, 34)


def test_counts_are_those_of_the_specification() -> None:
    assert (len(singles()), len(turns()), len(pairs())) == (1_024, 638, 59_049)
    assert pairs()[0].tolist() == [0, 0]
    assert not (pairs()[:, 0] & pairs()[:, 1]).any()
    assert turns()[1].tolist() == [1, 1022]
    assert trivial_sequence(7) == [0] * 6 + [1023]


# Learning --------------------------------------------------------------------------------------


class Replay:
    """Predicts the inputs of a list, over and over."""

    def __init__(self, inputs: list[int]) -> None:
        self.inputs, self.place = inputs, 0

    def __call__(self, _number: int) -> int:
        self.place = (self.place + 1) % len(self.inputs)
        return self.inputs[self.place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replay) and self.place == other.place


def test_a_pass_counts_what_was_predicted_before_each_input() -> None:
    kind = Models(lambda: Replay([0, 5, 9]))
    held = kind.fresh()
    assert kind.passes_to_learn(held, [0, 5, 9], 10) == 0, "the prediction before the first is 0"
    assert held.model.place == 0, "the pass that succeeds is fed as well"
    assert kind.passes_to_learn(kind.fresh(), [5, 9, 0], 10) is None
    late = Models(lambda: Replay([7, 5, 7, 5]))
    assert late.passes_to_learn(late.fresh(), [7, 5], 10) == 1


def test_a_wrapper_is_equal_if_its_predictions_are() -> None:
    class Same:
        last = 0

        def __call__(self, number: int) -> int:
            return number

        def __eq__(self, _other: object) -> bool:
            return True

    kind = Models(Same)
    one, other = kind.fresh(), kind.fresh()
    assert kind.same(one, other)
    kind.feed(one, [3])
    assert not kind.same(one, other)


# Verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "test", "clause"),
    [
        ("Constant", "3", "3-recurrence"),
        ("Last", "3", "3-recurrence"),
        ("Forgetful", "3", "3-first"),
        ("Undecided", "2", "2"),
    ],
)
def test_a_model_fails_first_where_it_has_to(name: str, test: str, clause: str) -> None:
    found = run_testbed(getattr(MODELS, name, None) or globals()[name], trials=3, seed=4)
    assert found.first_failure == test
    first = next(one for one in found.tests if one.failed)
    assert first.failure is not None
    assert (first.verdict, first.failure.clause) == ("fail", clause)
    later = [one.verdict for one in found.tests if int(one.test) > int(test)]
    assert set(later) == {"not run", "not operational"}


class Forgetful:
    """Counts, and forgets what it has seen: its first input leaves no trace."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, number: int) -> int:
        self.count += 1
        return self.count & FULL & ~number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forgetful) and self.count == other.count

    def key(self) -> int:
        return self.count


class Undecided:
    """Predicts by the clock."""

    def __call__(self, _number: int) -> int:
        return time.perf_counter_ns() & FULL

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Undecided)


PASSED: dict[str, str] = dict.fromkeys(("1", "2", "3", "4", "5", "6", "7", "8", "9", "10"), "pass")
DEAF = {"3": "3-recurrence", "5": "5-learns", "7": "7-first", "10": "10"} | {
    test: f"{test}-learnable" for test in ("6", "8", "9")
}
VERDICTS: dict[str, dict[str, str]] = {
    # It has no state to leave a trace in, and learns nothing.
    "Constant": PASSED | DEAF | {"4": "4"},
    # What it predicts tells two orders apart, and nothing else does.
    "Last": PASSED | DEAF,
    # Every input leaves its trace, and none is learned.
    "Chaotic": PASSED
    | {"6": "6-learnable", "7": "7-first", "8": "8-learnable", "9": "9-learnable"},
    # It learns without end, cannot tell zeros apart, and repeats what was corrupted.
    "Contexts": PASSED | {"6": "6a", "7": "7-first", "10": "10"},
    # It learns without end, and after six zeros it expects a seventh.
    "Period": PASSED | {"6": "6a", "7": "7-first", "9": "9"},
    # Nothing about it is general, and it passes: so little does passing prove.
    "Suffix": PASSED,
}
# What takes minutes by the thousands that stand for infinity is asked with fewer: the reason is the
# same.
FEWER = {
    *itertools.product(("Constant", "Last", "Chaotic"), ("6", "8", "9")),
    ("Contexts", "6"), ("Period", "6"), ("Period", "9"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "test", "clause"),
    [(name, *cell) for name, row in VERDICTS.items() for cell in row.items()],
)
def test_each_example_passes_or_fails_for_its_reason(
    monkeypatch: pytest.MonkeyPatch, name: str, test: str, clause: str
) -> None:
    if (name, test) in FEWER:
        monkeypatch.setattr(axioms, "INFINITY", 100)
        monkeypatch.setattr(axioms, "_ATTEMPTS", 10)
    outcome = run_trial(Models(getattr(MODELS, name)), TestTrial(test, 0, 5))
    assert (outcome.failure.clause if outcome.failure else outcome.verdict) == clause


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "test", "clause"),
    [("Chaotic", "6", "6-learnable"), ("Contexts", "6", "6a")],
)
def test_a_model_that_learns_too_little_or_too_much_is_told(
    name: str, test: str, clause: str
) -> None:
    found = run_testbed(getattr(MODELS, name), trials=1, seed=2, workers=2)
    assert found.first_failure == test
    (first,) = [one for one in found.tests if one.failed]
    assert first.failure is not None
    assert first.failure.clause == clause


def test_a_narrow_model_passes_what_is_not_timed() -> None:
    """That it does says how little passing proves."""
    kind = Models(MODELS.Suffix)
    for test in ("1", "2", "3", "4", "5", "7", "8", "9", "10"):
        for trial in range(2):
            assert run_trial(kind, TestTrial(test, trial, 5)).verdict == "pass", test


def test_a_seed_gives_the_same_trials_whoever_runs_them() -> None:
    def verdicts(workers: int) -> Any:
        found = run_testbed(Moody, trials=12, seed=15, workers=workers)
        return [(one.test, one.verdict, one.trials, one.failure) for one in found.tests]

    alone = verdicts(1)
    assert verdicts(2) == alone
    (place,) = [place for place, one in enumerate(alone) if one[1] == "fail"]
    name, _, trials, failure = alone[place]
    assert trials > 1, "the first trials are passed"
    again = run_trial(Models(Moody), TestTrial(name, trials - 1, 15))
    assert again.failure == failure
    assert run_trial(Models(Moody), TestTrial(name, trials - 2, 15)).verdict == "pass"


class Moody:
    """What it becomes depends on the order of two inputs, for most of what it has seen."""

    def __init__(self) -> None:
        self.mark = 1

    def __call__(self, number: int) -> int:
        self.mark = self.mark + number + 1 if self.mark % 5 == 0 else mixed(self.mark, number)
        return self.mark >> 40 & FULL & ~number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moody) and self.mark == other.mark

    def key(self) -> int:
        return self.mark


def test_without_a_seed_one_is_drawn_and_said() -> None:
    first, second = (run_testbed(MODELS.Constant, trials=1) for _ in range(2))
    assert first.seed != second.seed


def test_every_test_is_run_where_asked_and_the_eleventh_is_no_failure() -> None:
    found = run_testbed(MODELS.Constant, trials=1, seed=1, limit_s=0.5, fail_fast=False)
    assert found.verdicts["11"] == "not operational"
    assert [one.test for one in found.tests] == [str(number) for number in range(1, 13)]
    assert found.verdicts["1"] == "pass"
    assert found.first_failure == "3"
    assert "not run" not in found.verdicts.values()
    assert found.as_dict()["first_failure"] == "3"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"limit_s": float("nan")}, "limit_s is nan"),
        ({"trials": 0}, "trials is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 0}, "workers is"),
    ],
)
def test_what_cannot_be_run_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        run_testbed(MODELS.Constant, **given)


# Models that misbehave -------------------------------------------------------------------------


class Alike:
    """Equal to all of its class."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)


class Text(Alike):
    def __call__(self, _number: int) -> Any:
        return "a"


class Wide(Alike):
    def __call__(self, _number: int) -> int:
        return 1024


class Raises(Alike):
    def __call__(self, _number: int) -> int:
        raise KeyError("no idea")


class Ends(Alike):
    def __call__(self, _number: int) -> int:
        os._exit(3)


class Exits(Alike):
    def __call__(self, _number: int) -> int:
        sys.exit(0)


class Interrupts(Alike):
    def __call__(self, _number: int) -> int:
        raise KeyboardInterrupt


class Unspeakable(Alike):
    def __call__(self, _number: int) -> Any:
        return self

    def __repr__(self) -> str:
        raise ValueError("no")


class Huge(Alike):
    def __call__(self, _number: int) -> int:
        return 10**5000


class Ragged(Alike):
    bits = True

    def __call__(self, _bits: Any) -> Any:
        return [[1], [1, 2]]


class Hangs(Alike):
    def __call__(self, _number: int) -> int:
        while True:
            pass


class Scribbles(Alike):
    bits = True

    def __call__(self, bits: Any) -> Any:
        bits[0] = True
        return bits


class Narrow(Alike):
    bits = True

    def __call__(self, bits: Any) -> Any:
        return bits[:9]


class Unlike:
    def __call__(self, number: int) -> int:
        return number

    def __eq__(self, _other: object) -> Any:
        return "perhaps"


class Needs(Alike):
    def __init__(self, size: int) -> None:
        self.size = size


class Identity:
    def __call__(self, number: int) -> int:
        return number


@pytest.mark.parametrize(
    ("model", "test", "verdict", "what"),
    [
        (Text, "2", "error", "predicts 'a', which is no whole number"),
        (Wide, "2", "error", "predicts 1024, which is no number from 0 to 1023"),
        (Raises, "2", "error", "raises: KeyError: 'no idea'"),
        (Ends, "2", "error", "ends the process it runs in"),
        (Exits, "2", "error", "raises: SystemExit: 0"),
        (Interrupts, "2", "error", "raises: KeyboardInterrupt"),
        (Unspeakable, "2", "error", "predicts an object of Unspeakable, which is no whole number"),
        (Huge, "2", "error", "which is no number from 0 to 1023"),
        (Ragged, "2", "error", "which is no array of 10 bits"),
        (Hangs, "2", "timeout", "takes longer than 1 s for a trial"),
        (Scribbles, "2", "error", "changes its input, which is not its own"),
        (Narrow, "2", "error", "which is no array of 10 bits"),
        (Unlike, "1", "error", "== returns 'perhaps', which is no truth value"),
        (Needs, "1", "error", "cannot be made without arguments: TypeError"),
        (Identity, "1", "fail", "two fresh models are not equal"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_model_does_wrong_is_said(
    model: Any,
    test: str,
    verdict: str,
    what: str,
    workers: int,
) -> None:
    limit_s = 1.0 if model is Hangs else 60.0
    found = run_testbed(model, trials=2, seed=1, limit_s=limit_s, workers=workers)
    (first,) = [one for one in found.tests if one.failed]
    assert first.failure is not None
    assert (first.test, first.verdict) == (test, verdict)
    assert what in first.failure.what


def test_a_copy_that_shares_its_state_is_found_on_request() -> None:
    class Shared:
        def __init__(self) -> None:
            self.seen: list[int] = []

        def __call__(self, number: int) -> int:
            self.seen.append(number)
            return len(self.seen) & FULL

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Shared) and self.seen == other.seen

        def copy(self) -> Shared:
            made = Shared()
            made.seen = self.seen
            return made

    failure = integrity(Watched(Models(Shared)), drawn(1))
    assert failure is not None
    assert failure.clause in ("0-own", "0-same")
    found = run_testbed(Shared, trials=1, seed=1, integrity=True)
    assert found.integrity is not None
    assert found.integrity.verdict == "fail"
    assert "0" not in found.verdicts
    alone = run_testbed(Shared, seed=1, only=("0", 0))
    assert alone.integrity is not None
    assert (alone.integrity.verdict, alone.first_failure, alone.verdicts) == ("fail", None, {})


def test_that_the_bits_of_an_input_are_set_twice_is_learned_by_none_who_may() -> None:
    class Stubborn(Alike):
        def __init__(self) -> None:
            self.last = 0

        def __call__(self, number: int) -> int:
            self.last = number
            return number

    failure = refractory(Watched(Models(Stubborn)), drawn(1))
    assert failure is not None
    assert failure.clause == "5-learns"


class Random(Alike):
    """Its class draws numbers, so that no two models are alike."""

    drawn = 0

    def __call__(self, _number: int) -> int:
        Random.drawn += 1
        return Random.drawn & FULL


class Spread(Alike):
    """What it saw is shared by its copies."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, number: int) -> int:
        self.seen.append(number)
        return len(self.seen) & FULL

    def copy(self) -> Spread:
        made = Spread()
        made.seen = self.seen
        return made


class Loose(Alike):
    """Equal to all of its class, with keys that differ."""

    def __call__(self, _number: int) -> int:
        return 0

    def key(self) -> int:
        return id(self)


class Counted(Loose):
    """Equal to no other, though it has seen the same."""

    def __eq__(self, other: object) -> bool:
        return self is other


class Copied(dict[int, int]):
    """Its copy is a plain dictionary."""

    def __call__(self, number: int) -> int:
        self[number] = 1
        return 0


@pytest.mark.parametrize(
    ("model", "lacks"),
    [
        (Identity, "== is not defined: write `__eq__`, which compares all"),
        (Needs, "cannot be made without arguments: TypeError"),
        (Text, "predicts 'a', which is no whole number"),
        (Random, "two fresh models predict differently: draw nothing"),
        (Spread, "predict differently after 1 input: write `copy`, which copies all"),
        (Loose, "two equal models have different keys"),
        (Counted, "two models that saw the same are not equal: write an `__eq__`"),
        (Copied, "which is of another class"),
        (Hangs, "takes longer than 1 s"),
        (Ends, "ends the process it runs in"),
    ],
)
def test_an_author_is_told_what_a_class_lacks(model: Any, lacks: str) -> None:
    found = missing(model, limit_s=1.0 if model is Hangs else 60.0)
    assert found is not None
    assert lacks in found


@pytest.mark.parametrize("name", ["Suffix", "Constant", "Contexts"])
def test_an_author_is_told_if_nothing_is_missing(name: str) -> None:
    assert missing(getattr(MODELS, name)) is None


def test_where_processes_start_anew_a_local_class_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Local(Alike):
        def __call__(self, number: int) -> int:
            return number

    monkeypatch.setattr(spread, "can_fork", lambda: False)
    with pytest.raises(InputError, match=r"another process cannot be given it: .*Local"):
        run_testbed(Local, trials=1, seed=1)


def test_a_single_trial_can_be_run_again() -> None:
    whole = run_testbed(Moody, trials=12, seed=15)
    (first,) = [one for one in whole.tests if one.failed]
    assert first.first_trial is not None
    again = run_testbed(Moody, seed=15, only=(first.test, first.first_trial))
    assert again.tests[0].failure == first.failure
    assert again.verdicts == {first.test: "fail"}
    with pytest.raises(InputError, match="test '11'"):
        run_testbed(Moody, only=("11", 0))


def test_a_profile_says_how_often_and_how_fast() -> None:
    found = run_testbed(MODELS.Suffix, seed=1, only=("8", 0)).tests[0]
    rate = found.pass_rate
    assert (rate.value, rate.n, rate.method) == (1.0, 1, "clopper-pearson")
    assert rate.low == pytest.approx(0.025)
    learning = found.learning
    assert learning["n"] == sum(found.seen.learned.values()) > 2
    assert learning["never"] == 0
    assert (learning["10%"] or 0) <= (learning["50%"] or 0) <= (learning["90%"] or 0)
    assert found.as_dict()["learning"] == learning


def test_liveness_is_measured_in_one_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def spied(*_: object) -> Failure:
        return Failure("12", str(os.getpid()))

    tests = [one if one.number != "12" else one._replace(trial=spied) for one in testbed.TESTS]
    monkeypatch.setattr(testbed, "TESTS", tuple(tests))
    monkeypatch.setattr(testbed, "liveness", spied)
    seen: set[str] = set()
    found = run_testbed(
        MODELS.Constant, trials=3, seed=1, workers=3, fail_fast=False, limit_s=0.1
    ).tests[-1]
    assert found.failed == 3
    whole = run_testbed(MODELS.Constant, trials=3, seed=1, workers=3, only=("12", 0))
    for one in (found, whole.tests[0]):
        assert one.failure is not None
        seen.add(one.failure.what)
    assert len(seen) == 2, "processes of two runs"


def test_after_a_failure_nothing_more_is_run() -> None:
    """Those of 5,000 trials that one process has been given, for one."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:

        class Noted(Alike):
            def __call__(self, _number: int) -> int:
                Path(folder, str(len(list(Path(folder).iterdir())))).touch()
                time.sleep(0.02)
                return 2_000

        found = run_testbed(Noted, trials=5_000, seed=1)
        assert (found.first_failure, found.tests[1].trials) == ("2", 1)
        assert len(list(Path(folder).iterdir())) < 20


# Liveness --------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=12, max_size=50))
def test_growth_is_wilcoxons_z(pairs: list[tuple[int, int]]) -> None:
    before, after = zip(*pairs, strict=True)
    differing = [b - a for a, b in pairs if a != b]
    z = growth(before, after)
    if len(differing) < 10:
        assert z == 0.0
        return
    signs = np.array(differing)
    is_above = sum(rank for rank in _ranks(signs)[signs > 0]) > len(signs) * (len(signs) + 1) / 4
    found = wilcoxon(
        signs, alternative="greater", correction=is_above, method="approx", zero_method="wilcox"
    )
    assert z == pytest.approx(found.zstatistic, abs=1e-9)


def _ranks(signs: Any) -> Any:
    from scipy.stats import rankdata

    return rankdata(np.abs(signs))


def test_a_model_that_slows_down_is_found() -> None:
    class Slower(Alike):
        def __init__(self) -> None:
            self.count = 0

        def __call__(self, _number: int) -> int:
            self.count += 1
            for _ in range(self.count // 400):
                pass
            return 0

    failure = liveness(Watched(Models(Slower)), drawn(1))
    assert failure is not None
    assert failure.clause in ("12-growth", "12-tail", "12-ceiling")


def test_what_is_too_fast_to_be_measured_is_not_judged() -> None:
    class Instant(Models):
        def feed(self, held: Any, inputs: Any) -> list[int]:
            return []

    with pytest.raises(NoisyError, match="take the model less than"):
        liveness(Watched(Instant(MODELS.Constant)), drawn(1))
