"""The twelve tests, each a procedure that a model passes or fails in one trial.

References:
    M. Sprogar, AGITB: A Signal-Level Benchmark for Evaluating Artificial General Intelligence; the
    procedures, lengths and counts are those of its reference program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final

import numpy as np

from robo_eval.analysis.agitb.models import Kind
from robo_eval.analysis.agitb.streams import (
    FULL,
    INFINITY,
    LENGTH,
    WIDTH,
    circular_sequence,
    random_sequence,
    trivial_sequence,
)

_ATTEMPTS: Final = -(-INFINITY // LENGTH)
"""Sequences that are drawn until one can be learned."""
_RUNS: Final = 20
"""Runs of denoising in a trial."""
_REPEATS: Final = 5
"""How often a sequence is shown before it is corrupted."""
INPUTS: Final = tuple([number] for number in range(FULL + 1))
HALF: Final = tuple(number for number in range(FULL + 1) if number.bit_count() <= WIDTH // 2)
"""Inputs with at most half of their bits set: one of each input and its complement, or both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a model fails a trial.

    Attributes:
        clause: Which demand of the test, such as `6b`.
        what: What it did, in a sentence.
        inputs: What it was fed at last, and what it predicted: inputs and predictions.
        predictions: The predictions.
    """

    clause: str
    what: str
    inputs: tuple[int, ...] = ()
    predictions: tuple[int, ...] = ()


@cache
def pairs() -> tuple[tuple[int, int], ...]:
    """Pairs of inputs that may follow each other in both directions."""
    every = range(FULL + 1)
    return tuple((one, other) for one, other in product(every, every) if not one & other)


Trial = Callable[[Kind[Any], np.random.Generator], Failure | None]


def uninformed(kind: Kind[Any], _rng: np.random.Generator) -> Failure | None:
    """Two models that have seen nothing are equal."""
    if kind.same(kind.fresh(), kind.fresh()):
        return None
    return Failure(clause="1", what="two fresh models are not equal")


def determinism(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """Two copies of a model that are fed the same input are equal and predict the same."""
    same = kind.are_same(_random_model(kind, rng), INPUTS, INPUTS)
    if all(same):
        return None
    place = same.index(False)
    return Failure(clause="2", what=f"two copies that were fed {place} differ", inputs=(place,))


def trace(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """No state comes again while nothing is seen; one early or late input leaves its trace."""
    nothing = [0] * INFINITY
    old = kind.fresh()
    again = kind.first_again(old, nothing)
    if again is not None:
        what = f"fed nothing, it is after {again + 1} inputs in a state it was in before"
        return Failure(clause="3-recurrence", what=what)
    kind.feed(old, nothing)
    older, younger = kind.copied(old), kind.copied(old)
    marked = kind.fresh()
    kind.feed(marked, [1, *nothing[1:]])
    if kind.same(old, marked):
        return Failure(clause="3-first", what="it forgot its first input")
    if _behaves_identically(kind, old, marked, rng):
        return Failure(
            clause="3-behaviour-first", what="its first input never changes what it does"
        )
    kind.feed(older, [0])
    if kind.same(older, younger):
        return Failure(clause="3-last", what="one more input without a bit leaves no trace")
    if _behaves_identically(kind, older, younger, rng):
        what = "one more input without a bit never changes what it does"
        return Failure(clause="3-behaviour-last", what=what)
    return None


def time(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """The order of an input and its complement makes a difference."""
    ones = [(number, number ^ FULL) for number in HALF]
    others = [(number ^ FULL, number) for number in HALF]
    same = kind.are_same(_random_model(kind, rng), ones, others)
    if not any(same):
        return None
    number = HALF[same.index(True)]
    what = f"{number} before {number ^ FULL} and after it leave it in the same state"
    return Failure(clause="4", what=what, inputs=(number, number ^ FULL))


def refractory(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """It learns an input followed by its complement, and not an input followed by itself."""
    number = int(rng.integers(0, FULL + 1))
    if number == 0:
        return None
    turns = (number, number ^ FULL)
    held = kind.fresh()
    if kind.passes_to_learn(held, turns, INFINITY) is None:
        return _unlearned(kind, "5-learns", held, turns)
    twice = (number, number)
    if kind.passes_to_learn(kind.fresh(), twice, INFINITY) is not None:
        what = f"it learns that the bits of {number} are set twice in a row"
        return Failure(clause="5-refuses", what=what, inputs=twice)
    return None


def saturation(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """It cannot learn sequences without end; then it still learns every pair."""
    held = kind.fresh()
    for _ in range(INFINITY):
        sequence = _learnable(kind, rng)
        if sequence is None:
            return _none_learnable("6")
        if kind.passes_to_learn(held, sequence, INFINITY) is None:
            break
    else:
        return Failure(clause="6a", what=f"it learned {INFINITY} sequences one after the other")
    place = kind.first_unlearned(held, pairs(), INFINITY)
    return None if place is None else _unlearned(kind, "6b", held, pairs()[place])


def adaptability(kind: Kind[Any], _rng: np.random.Generator) -> Failure | None:
    """It learns a sequence, and then a longer one."""
    held = kind.fresh()
    for clause, length in (("7-first", LENGTH), ("7-longer", LENGTH + 1)):
        sequence = trivial_sequence(length)
        if kind.passes_to_learn(held, sequence, INFINITY) is None:
            return _unlearned(kind, clause, held, sequence)
    return None


def content(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """How long learning takes depends on the sequence."""
    base = _learnable(kind, rng)
    if base is None:
        return _none_learnable("8")
    usual = kind.passes_to_learn(kind.fresh(), base, INFINITY)
    for _ in range(INFINITY):
        sequence = circular_sequence(rng, LENGTH)
        if sequence != base and kind.passes_to_learn(kind.fresh(), sequence, INFINITY) != usual:
            return None
    return Failure(clause="8", what=f"it learns every sequence after {_passes(usual)}")


def context(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """How long learning takes depends on what was seen before."""
    sequence = _learnable(kind, rng)
    if sequence is None:
        return _none_learnable("9")
    usual = kind.passes_to_learn(kind.fresh(), sequence, INFINITY)
    for _ in range(INFINITY):
        held = _random_model(kind, rng)
        if kind.passes_to_learn(held, sequence, INFINITY) != usual:
            return None
    what = f"whatever it saw before, it learns a sequence after {_passes(usual)}"
    return Failure(clause="9", what=what, inputs=tuple(sequence))


def denoising(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """Of a sequence with one input corrupted it predicts that input better than a constant does."""
    score = zeros = runs = 0
    while runs < _RUNS:
        sequence = circular_sequence(rng, LENGTH)
        flips = FULL & ~(sequence[-1] | sequence[1])
        if not flips:
            continue
        runs += 1
        held = kind.fresh()
        kind.feed(held, sequence * _REPEATS)
        predicted = kind.feed(held, [sequence[0] ^ flips, *sequence[1:]])[-1]
        score += WIDTH - (predicted ^ sequence[0]).bit_count()
        zeros += WIDTH - sequence[0].bit_count()
    best = max(zeros, _RUNS * WIDTH - zeros)
    if score > best:
        return None
    of_all = f"of {_RUNS * WIDTH} bits"
    what = f"it predicted {score} {of_all} of corrupted inputs, and a constant {best}"
    return Failure(clause="10", what=what)


def integrity(kind: Kind[Any], rng: np.random.Generator) -> Failure | None:
    """A copy and its original go the same way, and each its own."""
    held = kind.fresh()
    kind.feed(held, rng.integers(0, FULL + 1, INFINITY).tolist())
    twin, kept = kind.copied(held), kind.copied(held)
    inputs = rng.integers(0, FULL + 1, INFINITY).tolist()
    if not kind.same(held, twin):
        return Failure(clause="0-equal", what="a copy is not equal to its original")
    kind.feed(kind.copied(held), inputs)
    if not kind.same(held, kept):
        return Failure(clause="0-own", what="what a copy is fed changes its original")
    place = kind.first_apart(held, twin, inputs)
    if place is not None:
        what = f"a copy and its original predict otherwise after {place + 1} inputs"
        return Failure(clause="0-predicts", what=what)
    if not kind.same(held, twin):
        return Failure(clause="0-equal", what="fed the same, a copy and its original are not equal")
    return None


# Parts of tests --------------------------------------------------------------------------------


def _random_model(kind: Kind[Any], rng: np.random.Generator) -> Any:  # noqa: ANN401 - held
    held = kind.fresh()
    kind.feed(held, random_sequence(rng, int(rng.integers(0, INFINITY + 1))))
    return held


def _learnable(kind: Kind[Any], rng: np.random.Generator) -> list[int] | None:
    """The first sequence that a fresh model learns; None if it learns none of many."""
    for _ in range(_ATTEMPTS):
        sequence = circular_sequence(rng, LENGTH)
        if kind.passes_to_learn(kind.fresh(), sequence, INFINITY) is not None:
            return sequence
    return None


def _behaves_identically(
    kind: Kind[Any],
    one: Any,  # noqa: ANN401
    other: Any,  # noqa: ANN401
    rng: np.random.Generator,
) -> bool:
    return kind.first_apart(one, other, random_sequence(rng, INFINITY)) is None


def _none_learnable(clause: str) -> Failure:
    what = f"a fresh model learns none of {_ATTEMPTS} sequences of {LENGTH} inputs"
    return Failure(clause=f"{clause}-learnable", what=what)


def _unlearned(
    kind: Kind[Any],
    clause: str,
    held: Any,  # noqa: ANN401
    sequence: Any,  # noqa: ANN401
) -> Failure:
    shown = list(sequence) * 3
    predictions = kind.feed(kind.copied(held), shown)
    numbers = ", ".join(map(str, sequence))
    return Failure(
        clause=clause,
        what=f"it does not learn {numbers} within {INFINITY} repetitions",
        inputs=tuple(shown),
        predictions=tuple(predictions),
    )


def _passes(usual: int | None) -> str:
    return "no repetition" if not usual else f"{usual} repetitions"
