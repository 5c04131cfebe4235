"""Streams of bits made of signals: every bit rests, and pieces are as they were recorded."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.agitb.learner import learner
from robo_eval.analysis.agitb.recorded import RecordedSequences, encoded
from robo_eval.analysis.agitb.testbed import TestTrial, run_trial
from robo_eval.core.errors import InputError


def signals(seed: int, count: int, samples: int = 80) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        f"joint{number} position": np.cumsum(rng.normal(size=samples)) for number in range(count)
    }


def rests(inputs: list[int]) -> bool:
    return not any(one & other for one, other in itertools.pairwise(inputs))


@given(st.integers(0, 1_000), st.integers(1, 14), st.integers(1, 200))
def test_every_bit_rests_after_it_was_set(seed: int, count: int, length: int) -> None:
    inputs, bits = encoded(signals(seed, count))
    assert (inputs.shape, inputs.dtype, len(bits)) == ((80,), np.uint16, 10)
    assert rests(inputs.tolist())
    draw = RecordedSequences(np.random.default_rng(seed), inputs)
    assert rests(draw.random(length)), "also where it goes round"
    circular = draw.circular(max(2, length))
    assert rests(circular * 2)


def test_a_bit_is_set_where_a_signal_rises_above_its_threshold() -> None:
    touch = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0] * 3)
    inputs, bits = encoded({"touch": touch, "still": np.ones(21)})
    rises = [1, 5, 8, 12, 15, 19]
    assert bits[0].startswith("touch rises above")
    assert {name.split(" rises")[0] for name in bits} == {"touch"}
    upper = [bit for bit, name in enumerate(bits) if "above 0 " in name]
    assert upper
    for bit in upper:
        assert np.flatnonzero(inputs >> bit & 1).tolist() == rises


def test_of_many_signals_velocities_come_last() -> None:
    many = {f"{name} {what}": np.arange(20.0) for what in ("velocity", "position")
            for name in "abcdef"}  # fmt: skip
    _, bits = encoded(many)
    names = [text.split(" rises")[0] for text in bits]
    assert names[:6] == [f"{name} position" for name in "abcdef"]
    assert names[6:] == [f"{name} velocity" for name in "abcd"]


def test_a_piece_is_as_it_was_recorded() -> None:
    inputs, _ = encoded(signals(3, 5))
    draw = RecordedSequences(np.random.default_rng(3), inputs)
    text = inputs.tolist()
    text[0] &= ~text[-1]
    turned = text * 4
    for _ in range(50):
        piece = draw.random(30)
        assert any(piece == turned[at : at + 30] for at in range(len(text)))
        circular = draw.circular(7)
        assert any(circular), "some bit is set"
        assert any(circular[:-1] == turned[at : at + 6] for at in range(len(text)))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "no signal changes"),
        ({"a": np.ones(50)}, "no signal changes"),
        ({"a": np.arange(5.0)}, "over 14 samples"),
    ],
)
def test_what_cannot_be_encoded_is_refused(given: dict[str, np.ndarray], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        encoded(given)


def test_what_only_falls_sets_no_bit() -> None:
    inputs, _ = encoded({"a": np.arange(20.0, 0.0, -1.0)})
    with pytest.raises(InputError, match="no bit is ever set"):
        RecordedSequences(np.random.default_rng(1), inputs)


def test_a_trial_of_a_recording_is_the_same_each_time() -> None:
    inputs, _ = encoded(signals(1, 4, samples=400))

    def streams(rng: np.random.Generator) -> RecordedSequences:
        return RecordedSequences(rng, inputs)

    first, again = (run_trial(learner, TestTrial("9", 2, 6), streams) for _ in range(2))
    assert (first.verdict, first.seen.learned) == (again.verdict, again.seen.learned)
    drawn = run_trial(learner, TestTrial("9", 2, 6))
    assert drawn.seen.learned != first.seen.learned
