"""The twelve tests, each a procedure that a model passes or fails in one trial.

References:
    M. Sprogar, AGITB: A Signal-Level Benchmark for Evaluating Artificial General Intelligence; the
    procedures, lengths and counts are those of its reference program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from robo_eval.analysis.agitb.models import Watched
from robo_eval.analysis.agitb.streams import (
    FULL,
    INFINITY,
    LENGTH,
    WIDTH,
    Streams,
    pairs,
    singles,
    trivial_sequence,
    turns,
)
from robo_eval.core.wording import counted

_ATTEMPTS: Final = -(-INFINITY // LENGTH)
"""Sequences that are drawn until one can be learned."""
_RUNS: Final = 20
"""Runs of denoising in a trial."""
_ALL: Final = "compares all that predictions may depend on"
_COPY: Final = "write `copy`, which copies all that predictions may depend on"
_SHOWN: Final = 32
"""Inputs of a failure that are kept: the newest."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a model fails a trial.

    Attributes:
        clause: Which demand of the test, such as `6b`.
        what: What it did, in a sentence.
        inputs: What it was fed at last.
        predictions: What it predicted after each of them.
    """

    clause: str
    what: str
    inputs: tuple[int, ...] = ()
    predictions: tuple[int, ...] = ()


class UnlearnableError(Exception):
    """A model learns nothing, where something has to be learned before a test can begin."""

    verdict = "fail"


Trial = Callable[[Watched, Streams], Failure | None]


def uninformed(kind: Watched, _draw: Streams) -> Failure | None:
    """Two models that have seen nothing are equal."""
    if kind.same(kind.fresh(), kind.fresh()):
        return None
    return Failure("1", "two fresh models are not equal")


def determinism(kind: Watched, draw: Streams) -> Failure | None:
    """Two copies of a model that are fed the same input are equal and predict the same."""
    held = _random_model(kind, draw)
    same = kind.are_same(held, singles(), singles())
    if all(same):
        return None
    place = same.index(False)
    return _shown(kind, held, [place], "2", f"two copies that were fed {place} differ")


def trace(kind: Watched, draw: Streams) -> Failure | None:
    """No state comes again while nothing is seen; one early or late input leaves its trace."""
    nothing = [0] * INFINITY
    old = kind.fresh()
    again = kind.first_again(old, nothing)
    if again is not None:
        what = f"fed nothing, it is after {counted(again + 1, 'input')} in a state it was in before"
        return _shown(kind, old, nothing[: again + 1], "3-recurrence", what)
    kind.feed(old, nothing)
    older, younger = kind.copied(old), kind.copied(old)
    kind.feed(older, [0])
    marked = kind.fresh()
    kind.feed(marked, [1, *nothing[1:]])
    for clause, what, one, other in (
        ("first", "its first input", old, marked),
        ("last", "one more input without a bit", older, younger),
    ):
        if kind.same(one, other):
            return Failure(f"3-{clause}", f"{what} leaves no trace")
        if kind.first_apart(one, other, draw.random(INFINITY)) is None:
            return Failure(f"3-behaviour-{clause}", f"{what} never changes what it does")
    return None


def time(kind: Watched, draw: Streams) -> Failure | None:
    """The order of an input and its complement makes a difference."""
    held = _random_model(kind, draw)
    same = kind.are_same(held, turns(), turns()[:, ::-1])
    if not any(same):
        return None
    turn = turns()[same.index(True)].tolist()
    what = f"{turn[0]} before {turn[1]} and after it leave it in the same state"
    return _shown(kind, held, turn, "4", what)


def refractory(kind: Watched, draw: Streams) -> Failure | None:
    """It learns an input followed by its complement, and not an input followed by itself."""
    number = draw.number()
    if number == 0:
        return None
    held, turn, twice = kind.fresh(), [number, number ^ FULL], [number, number]
    if kind.passes_to_learn(held, turn, INFINITY) is None:
        return _unlearned(kind, held, turn, "5-learns")
    held = kind.fresh()
    if kind.passes_to_learn(held, twice, INFINITY) is not None:
        what = f"it learns that the bits of {number} are set twice in a row"
        return _shown(kind, held, twice, "5-refuses", what)
    return None


def saturation(kind: Watched, draw: Streams) -> Failure | None:
    """At some time it learns no further sequence; then it still learns every pair."""
    held = kind.fresh()
    for _ in range(INFINITY):
        sequence = _learnable(kind, draw)
        if kind.passes_to_learn(held, sequence, INFINITY) is None:
            break
    else:
        return Failure("6a", f"it learned {INFINITY} sequences one after the other")
    place = kind.first_unlearned(held, pairs(), INFINITY)
    return None if place is None else _unlearned(kind, held, pairs()[place].tolist(), "6b")


def adaptability(kind: Watched, _draw: Streams) -> Failure | None:
    """It learns a sequence, and then a longer one."""
    held = kind.fresh()
    for clause, length in (("7-first", LENGTH), ("7-longer", LENGTH + 1)):
        sequence = trivial_sequence(length)
        if kind.passes_to_learn(held, sequence, INFINITY) is None:
            return _unlearned(kind, held, sequence, clause)
    return None


def content(kind: Watched, draw: Streams) -> Failure | None:
    """How long learning takes depends on the sequence."""
    base = _learnable(kind, draw)
    others = (draw.circular(LENGTH) for _ in range(INFINITY))
    tries = ((kind.fresh(), other) for other in others if other != base)
    return _unchanged(kind, base, tries, "8", "it learns every sequence")


def context(kind: Watched, draw: Streams) -> Failure | None:
    """How long learning takes depends on what was seen before."""
    base = _learnable(kind, draw)
    tries = ((_random_model(kind, draw), base) for _ in range(INFINITY))
    return _unchanged(kind, base, tries, "9", "whatever it saw before, it learns a sequence")


def denoising(kind: Watched, draw: Streams) -> Failure | None:
    """Of a sequence with one input corrupted it predicts that input better than a constant does."""
    score = zeros = runs = 0
    while runs < _RUNS:
        sequence = draw.circular(LENGTH)
        flips = FULL & ~(sequence[-1] | sequence[1])
        if not flips:
            continue
        runs += 1
        held = kind.fresh()
        kind.feed(held, sequence * 5)
        shown = [sequence[0] ^ flips, *sequence[1:]]
        trained = kind.copied(held)
        score += WIDTH - (int(kind.feed(held, shown)[-1]) ^ sequence[0]).bit_count()
        zeros += WIDTH - sequence[0].bit_count()
    best = max(zeros, _RUNS * WIDTH - zeros)
    kind.seen.margins.append(score - best)
    if score > best:
        return None
    of_all = f"of {_RUNS * WIDTH} bits"
    what = f"it predicted {score} {of_all} of corrupted inputs, and a constant {best}"
    return _shown(kind, trained, shown, "10", what)


def integrity(kind: Watched, draw: Streams) -> Failure | None:
    """Models that saw the same are equal, and a copy and its original each go their own way."""
    before, inputs = draw.rng.integers(0, FULL + 1, (2, INFINITY)).tolist()
    held, other = kind.fresh(), kind.fresh()
    is_apart = kind.first_apart(held, other, before) is not None
    twin = kind.copied(held)
    is_own, is_alike = kind.same(held, twin), kind.same(held, other)
    kind.feed(kind.copied(held), inputs)
    checks = (
        ("0-equality", type(getattr(held, "model", 0)).__eq__ is object.__eq__,
         f"== is not defined: write `__eq__`, which {_ALL}"),
        ("0-chance", is_apart, "two fresh models predict differently: draw nothing, share nothing"),
        ("0-state", not is_alike,
         f"two models that saw the same are not equal: write an `__eq__` that {_ALL}"),
        ("0-key", kind.key(held) != kind.key(other), "two equal models have different keys"),
        ("0-copy", not is_own, f"a copy is not equal to its original: {_COPY}"),
        ("0-own", not kind.same(held, other), f"what a copy is fed changes its original: {_COPY}"),
    )  # fmt: skip
    for clause, is_so, what in checks:
        if is_so:
            return Failure(clause, what)
    for place, number in enumerate(inputs):
        is_apart = kind.first_apart(held, twin, [number]) is not None
        if is_apart or not kind.same(held, twin):
            what = "predict differently" if is_apart else "are not equal"
            after = (
                f"fed the same, a copy and its original {what} after {counted(place + 1, 'input')}"
            )
            return Failure("0-same", f"{after}: {_COPY}")
    return None


# Parts of tests --------------------------------------------------------------------------------


def _random_model(kind: Watched, draw: Streams) -> Any:
    held = kind.fresh()
    kind.feed(held, draw.life())
    return held


def _learnable(kind: Watched, draw: Streams) -> list[int]:
    """The first sequence that a fresh model learns.

    Raises:
        UnlearnableError: If it learns none of many.
    """
    for _ in range(_ATTEMPTS):
        sequence = draw.circular(LENGTH)
        if kind.passes_to_learn(kind.fresh(), sequence, INFINITY) is not None:
            return sequence
    raise UnlearnableError(f"a fresh model learns none of {_ATTEMPTS} sequences of {LENGTH} inputs")


def _unchanged(
    kind: Watched, base: list[int], tries: Iterator[tuple[Any, list[int]]], clause: str, what: str
) -> Failure | None:
    """Whether learning always takes as long as a fresh model needs for a sequence."""
    held = kind.fresh()
    usual = kind.passes_to_learn(held, base, INFINITY)
    if any(kind.passes_to_learn(one, other, INFINITY) != usual for one, other in tries):
        return None
    return _shown(kind, held, base, clause, f"{what} after {counted(usual or 0, 'repetition')}")


def _unlearned(kind: Watched, held: Any, sequence: Sequence[int], clause: str) -> Failure:
    numbers = ", ".join(map(str, sequence))
    what = f"it does not learn {numbers} within {INFINITY} repetitions"
    return _shown(kind, held, list(sequence) * 3, clause, what)


def _shown(kind: Watched, held: Any, inputs: Sequence[int], clause: str, what: str) -> Failure:
    """A failure, with what a copy predicts after each of some inputs."""
    predictions = kind.feed(kind.copied(held), inputs)
    newest = (tuple(map(int, numbers[-_SHOWN:])) for numbers in (inputs, predictions))
    return Failure(clause, what, *newest)
