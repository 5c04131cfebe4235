"""Compiled models: those of Python and C do what plain ones do, and what is wrong is said."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.agitb.learner import learner
from examples.agitb.models import Suffix
from robo_eval.analysis.agitb import ModelError, Models, missing, run_testbed
from robo_eval.analysis.agitb.compiled import CompiledModels, compiled, shared_library
from robo_eval.analysis.agitb.streams import FULL, Streams, pairs, singles
from robo_eval.analysis.agitb.testbed import TestTrial, run_trial
from robo_eval.core.errors import InputError

SOURCE = Path(__file__).parents[3] / "examples" / "agitb" / "suffix.c"
HEAD = """
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
size_t agitb_size(void) { return 8; }
void agitb_begin(void *state) { memset(state, 0, 8); }
"""
# `ROBO_EVAL_REQUIRE_ALL` turns this skip into a failure, see tests/conftest.py.
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def built(folder: Path, text: str) -> Path:
    (folder / "model.c").write_text(text)
    target = folder / "model.so"
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", target, folder / "model.c"],
        check=True,
    )
    return target


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> CompiledModels:
    return shared_library(built(tmp_path_factory.mktemp("c"), SOURCE.read_text()))


def drawn(seed: int) -> Streams:
    return Streams(np.random.default_rng(seed))


def results(found: Any) -> list[Any]:
    return [
        (one.test, one.verdict, one.trials, one.failed, one.first_trial, one.failure, one.learning)
        for one in found.tests
    ]


# Examples --------------------------------------------------------------------------------------


@needs_gcc
@pytest.mark.parametrize("seed", range(4))
def test_the_model_in_c_is_the_one_in_python(in_c: CompiledModels, seed: int) -> None:
    inputs = drawn(seed).random(1_400) if seed % 2 else drawn(seed).circular(7) * 200
    plain = Models(Suffix)
    assert in_c.feed(in_c.fresh(), inputs).tolist() == plain.feed(plain.fresh(), inputs)


@needs_gcc
@pytest.mark.parametrize("test", ["1", "2", "3", "4", "5", "7", "8", "9", "10"])
def test_it_passes_and_learns_as_fast(in_c: CompiledModels, test: str) -> None:
    ours, theirs = (run_trial(models, TestTrial(test, 1, 3)) for models in (in_c, Models(Suffix)))
    assert (ours.verdict, ours.seen.learned, ours.seen.margins) == (
        "pass", theirs.seen.learned, theirs.seen.margins
    )  # fmt: skip


@needs_gcc
@pytest.mark.parametrize("trial", range(3))
def test_it_passes_saturation(in_c: CompiledModels, trial: int) -> None:
    assert run_trial(in_c, TestTrial("6", trial, 2)).verdict == "pass"


def test_an_online_learner_of_three_inputs_fails_where_it_has_to() -> None:
    """It learns nothing of nothing, learns without end, and sees no further than three inputs."""
    clauses = {}
    for test in ("1", "2", "3", "4", "5", "6", "7", "8", "9"):
        outcome = run_trial(learner, TestTrial(test, 0, 5))
        clauses[test] = "pass" if outcome.failure is None else outcome.failure.clause
    assert clauses == dict.fromkeys("124589", "pass") | {
        "3": "3-recurrence", "6": "6a", "7": "7-first"
    }  # fmt: skip
    found = run_testbed(learner, trials=20, seed=1, only=("10", 0))
    assert found.verdicts == {"10": "fail"}


def test_both_processors_find_the_same() -> None:
    def found(workers: int) -> list[Any]:
        return results(run_testbed(late, trials=300, seed=7, workers=workers))

    assert found(1) == found(2)


@compiled(np.array([1], np.uint64))
def late(state: Any, number: int) -> Any:
    """Mixes what it saw into a number, now and then by a sum."""
    if state[0] % np.uint64(7) == 0:
        state[0] += np.uint64(number + 1)
    else:
        state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(2 * number + 1)
    return (state[0] >> np.uint64(40)) & np.uint64(1023 & ~number)


def test_how_many_trials_there_are_depends_on_the_kind() -> None:
    assert run_testbed(learner, seed=1, only=("1", 0)).most == 5_000
    assert run_testbed(Suffix, seed=1, only=("1", 0)).most == 50


# What is compiled does what it does in Python --------------------------------------------------


@given(st.integers(0, 1_000), st.integers(0, 300))
def test_pairs_are_compared_and_learned_alike(seed: int, age: int) -> None:
    held = learner.fresh()
    learner.feed(held, drawn(seed).random(age))
    some = pairs()[seed::997]
    turned = some[:, ::-1]
    assert learner.are_same(held, some, turned) == Models.are_same(learner, held, some, turned)
    inputs = singles()[::97]
    assert learner.are_same(held, inputs, inputs) == [True] * len(inputs)
    ours = learner.first_unlearned(held, some, 4)
    assert ours == Models.first_unlearned(learner, held, some, 4)


def test_a_state_keeps_its_shape_and_kind() -> None:
    @compiled(np.array([[1.5], [2.5]]))
    def model(state: Any, number: int) -> int:
        state[1, 0] += number
        return int(state[0, 0] + state[1, 0])

    held = model.fresh()
    assert model.feed(held, [1, 2]).tolist() == [5, 7]
    assert model.feed(model.fresh(), [1]).tolist() == [5], "each has its own"
    assert not model.same(held, model.fresh())
    assert model.same(held, model.copied(held))


def test_what_was_predicted_last_is_compared_too() -> None:
    @compiled(np.zeros(1, np.int64))
    def echo(state: Any, number: int) -> int:
        return number

    one, other = echo.fresh(), echo.fresh()
    echo.feed(one, [3])
    assert not echo.same(one, other)
    assert echo.passes_to_learn(echo.fresh(), [0, 0], 9) == 0, "0 before the first input"


@needs_gcc
def test_models_travel_to_other_processes(in_c: CompiledModels) -> None:
    assert pickle.loads(pickle.dumps(learner)) is learner
    again = pickle.loads(pickle.dumps(in_c))
    inputs = drawn(1).random(50)
    assert again.feed(again.fresh(), inputs).tolist() == in_c.feed(in_c.fresh(), inputs).tolist()


# What is wrong ---------------------------------------------------------------------------------


def _of(step: Callable[[Any, int], int]) -> CompiledModels:
    return compiled(np.zeros(1, np.int64))(step)


def test_what_a_compiled_function_does_wrong_is_said() -> None:
    def wide(state: Any, number: int) -> int:
        return 1024

    def negative(state: Any, number: int) -> int:
        return -1

    def raises(state: Any, number: int) -> int:
        if number == 5:
            raise ValueError("no idea")
        return 0

    def endless(state: Any, number: int) -> int:
        while number < 2_000:
            state[0] += 1
        return 0

    for step in (wide, negative):
        with pytest.raises(ModelError, match="predicts what is no number from 0 to 1023"):
            _of(step).feed(_of(step).fresh(), [1])
    with pytest.raises(ModelError, match="raises: ValueError: no idea"):
        _of(raises).feed(_of(raises).fresh(), [4, 5])
    found = run_testbed(_of(endless), trials=1, seed=1, limit_s=1.0)
    assert found.verdicts["2"] == "timeout"
    assert missing(_of(wide)) == "predicts what is no number from 0 to 1023"


def test_a_whole_number_has_to_be_returned_and_none_is_narrowed() -> None:
    def share(state: Any, number: int) -> float:
        return 3.7

    def far(state: Any, number: int) -> int:
        return 2**32 + 5

    def farther(state: Any, number: int) -> Any:
        return np.uint64(2**63 + 7)

    with pytest.raises(InputError, match="share: returns float64; it must return a whole number"):
        _of(share)
    for step in (far, farther):
        with pytest.raises(ModelError, match="no number from 0 to 1023"):
            _of(step).feed(_of(step).fresh(), [1])


def test_a_large_state_is_told_apart_by_a_digest() -> None:
    models = compiled(np.zeros(200_000, np.int64))(lambda state, number: 0)
    one = models.fresh()
    other = models.copied(one)
    other[800_000] = 1
    assert len(models.key(one)) < 100
    assert models.key(one) == models.key(models.copied(one)) != models.key(other)
    assert not models.same(one, other)


def test_what_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(InputError, match="texts: numba cannot compile it: TypingError"):

        @compiled(np.zeros(1))
        def texts(state: Any, number: int) -> Any:
            return "a"


@needs_gcc
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("int agitb_step(void *state, int input) { abort(); }", "ends the process it runs in"),
        (
            "int agitb_step(void *state, int input) { return *(int *)0 + input; }",
            "ends the process it runs in",
        ),
        ("int agitb_step(void *state, int input) { return -1; }", "no number from 0 to 1023"),
        ("int agitb_step(void *state, int input) { return 5000; }", "no number from 0 to 1023"),
        ("int agitb_step(void *state, int input) { for (;;); }", "takes longer than 1 s"),
    ],
)
def test_what_a_library_does_wrong_is_said(tmp_path: Path, text: str, problem: str) -> None:
    models = shared_library(built(tmp_path, f"{HEAD}{text}\n"))
    limit_s = 1.0 if problem.startswith("takes longer") else 60.0
    found = run_testbed(models, trials=1, seed=1, limit_s=limit_s)
    first = next(one for one in found.tests if one.failed)
    assert first.failure is not None
    assert problem in first.failure.what


@needs_gcc
@pytest.mark.parametrize("body", ["*(volatile int *)0 = 1;", "for (;;);"])
def test_a_library_that_cannot_begin_ends_a_trial(tmp_path: Path, body: str) -> None:
    text = HEAD.replace("memset(state, 0, 8);", body)
    models = shared_library(
        built(tmp_path, f"{text}int agitb_step(void *state, int input) {{ return 0; }}\n")
    )
    found = run_testbed(models, trials=1, seed=1, limit_s=1.0)
    assert found.verdicts["1"] in ("error", "timeout")


@needs_gcc
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD, "undefined symbol: agitb_step"),
        (
            HEAD.replace("return 8", "return (size_t)-1")
            + "int agitb_step(void *state, int input) { return input; }\n",
            "with agitb_size, agitb_begin and agitb_step",
        ),
    ],
)
def test_a_library_that_lacks_something_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        shared_library(built(tmp_path, text))


@pytest.mark.parametrize("text", [None, "no library"])
def test_what_is_no_library_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "model.so"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"model\.so.*must be a shared library") as refused:
        shared_library(path)
    assert str(refused.value).count("model.so") == 1


def test_an_input_is_at_most_all_bits() -> None:
    assert int(pairs().max()) == FULL
