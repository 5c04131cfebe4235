"""What a model is to the testbed, and models that are plain Python classes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from robo_eval.analysis.agitb.streams import FULL, WIDTH
from robo_eval.core.errors import RoboEvalError, said

Held = TypeVar("Held")
"""A model with the last prediction it made."""
Pairs = Sequence[Sequence[int]]


class ModelError(RoboEvalError):
    """A model did something that no model may: the message says what."""


class Kind(Protocol[Held]):
    """How models of one kind are made, fed and compared; the tests know nothing else of them.

    Whatever is held is a model and the prediction it made last, 0 before its first input. Two are
    the same if both are equal. Only `feed`, `passes_to_learn` and `first_apart` change what they
    are given.
    """

    @property
    def name(self) -> str:
        """What the models are called."""
        ...

    def fresh(self) -> Held:
        """A model that has seen nothing."""
        ...

    def copied(self, held: Held) -> Held:
        """A copy that goes its own way."""
        ...

    def same(self, one: Held, other: Held) -> bool:
        """Whether two are in the same state and predict the same."""
        ...

    def feed(self, held: Held, inputs: Sequence[int]) -> list[int]:
        """Give it inputs; what it predicted after each."""
        ...

    def passes_to_learn(self, held: Held, sequence: Sequence[int], most: int) -> int | None:
        """After how many passes it first predicts a whole sequence; None if not within `most`."""
        ...

    def first_apart(self, one: Held, other: Held, inputs: Sequence[int]) -> int | None:
        """Feed two the same; the first input after which they predict otherwise, None if none."""
        ...

    def first_again(self, held: Held, inputs: Sequence[int]) -> int | None:
        """Feed a copy; the first input after which it is in a state it was in before."""
        ...

    def are_same(self, held: Held, ones: Pairs, others: Pairs) -> list[bool]:
        """For each pair of sequences, whether copies that are fed them are the same then."""
        ...

    def first_unlearned(self, held: Held, sequences: Pairs, most: int) -> int | None:
        """The first sequence that a copy does not learn within `most` passes; None if none."""
        ...


@dataclass(slots=True)
class Told(Generic[Held]):
    """A model, and what it predicted last."""

    model: Held
    last: int = 0


class PlainModels:
    """Models of a Python class: `model(input)` returns a prediction, `==` compares.

    Inputs and predictions are integers from 0 to 1023; of a class with `bits = True` they are
    arrays of ten truth values. A copy is made by the method `copy`, or else by `copy.deepcopy`.
    With a method `key`, whose values are equal where models are, thousands are compared at once.

    Args:
        model_class: Called without arguments, it gives a model that has seen nothing.
    """

    def __init__(self, model_class: Callable[[], Any]) -> None:
        self._class = model_class
        self.name: Final[str] = getattr(model_class, "__name__", type(model_class).__name__)
        self._takes_bits = bool(getattr(model_class, "bits", False))
        self._copies = callable(getattr(model_class, "copy", None))
        self._has_key = callable(getattr(model_class, "key", None))
        self._inputs: list[Any] = list(range(FULL + 1))
        if self._takes_bits:
            rows = (np.arange(FULL + 1)[:, None] >> np.arange(WIDTH) & 1).astype(bool)
            rows.setflags(write=False)
            self._inputs = list(rows)

    def fresh(self) -> Told[Any]:
        """A model that has seen nothing."""
        with _telling("cannot be made without arguments"):
            return Told(self._class())

    def copied(self, held: Told[Any]) -> Told[Any]:
        """A copy that goes its own way."""
        with _telling("cannot be copied"):
            model = held.model.copy() if self._copies else copy.deepcopy(held.model)
        return Told(model, held.last)

    def same(self, one: Told[Any], other: Told[Any]) -> bool:
        """Whether two are in the same state and predict the same."""
        with _telling("cannot be compared"):
            found = one.model == other.model
        if not isinstance(found, bool | np.bool_):
            raise ModelError(f"== returns {found!r:.60}, which is no truth value")
        return bool(found) and one.last == other.last

    def _step(self, held: Told[Any], number: int) -> int:
        try:
            found = held.model(self._inputs[number])
        except ModelError:
            raise
        except ValueError as err:
            if "read-only" in str(err):
                raise ModelError("changes its input, which is not its own") from err
            raise _raised("raises", err) from err
        except Exception as err:
            raise _raised("raises", err) from err
        # An integer of Python is looked at first: nearly all are.
        held.last = last = found if type(found) is int else self._number(found)
        if not 0 <= last <= FULL:
            raise ModelError(f"predicts {last}, which is no number from 0 to {FULL}")
        return last

    def _number(self, found: Any) -> int:  # noqa: ANN401 - whatever a model returns
        if self._takes_bits:
            bits = np.asarray(found)
            if bits.shape != (WIDTH,) or not np.isin(bits, (0, 1)).all():
                raise ModelError(f"predicts {found!r:.60}, which is no array of {WIDTH} bits")
            return int(bits.astype(np.int64) @ (1 << np.arange(WIDTH)))
        try:
            return index(found)
        except TypeError:
            raise ModelError(f"predicts {found!r:.60}, which is no whole number") from None

    def feed(self, held: Told[Any], inputs: Sequence[int]) -> list[int]:
        """Give it inputs; what it predicted after each."""
        step = self._step
        return [step(held, number) for number in inputs]

    def passes_to_learn(self, held: Told[Any], sequence: Sequence[int], most: int) -> int | None:
        """After how many passes it first predicts a whole sequence; None if not within `most`."""
        wanted = list(sequence)
        for passes in range(most):
            before = held.last
            if [before, *self.feed(held, wanted)][:-1] == wanted:
                return passes
        return None

    def first_apart(self, one: Told[Any], other: Told[Any], inputs: Sequence[int]) -> int | None:
        """Feed two the same; the first input after which they predict otherwise, None if none."""
        step = self._step
        for place, number in enumerate(inputs):
            if step(one, number) != step(other, number):
                return place
        return None

    def first_again(self, held: Told[Any], inputs: Sequence[int]) -> int | None:
        """Feed a copy; the first input after which it is in a state it was in before."""
        now = self.copied(held)
        seen = [self.copied(now)]
        keys = {self._key(now)}
        for place, number in enumerate(inputs):
            self._step(now, number)
            key = self._key(now)
            if key is not None:
                if key in keys:
                    return place
                keys.add(key)
                continue
            if any(self.same(now, before) for before in seen):
                return place
            seen.append(self.copied(now))
        return None

    def _key(self, held: Told[Any]) -> Any:  # noqa: ANN401
        """What only models in the same state have, with what it predicted; None if not offered."""
        if not self._has_key:
            return None
        with _telling("has a key that cannot be made or hashed"):
            found = (held.model.key(), held.last)
            hash(found)
        return found

    def are_same(self, held: Told[Any], ones: Pairs, others: Pairs) -> list[bool]:
        """For each pair of sequences, whether copies that are fed them are the same then."""
        found = []
        for one, other in zip(ones, others, strict=True):
            both = self.copied(held), self.copied(held)
            self.feed(both[0], one)
            self.feed(both[1], other)
            found.append(self.same(*both))
        return found

    def first_unlearned(self, held: Told[Any], sequences: Pairs, most: int) -> int | None:
        """The first sequence that a copy does not learn within `most` passes; None if none."""
        for place, sequence in enumerate(sequences):
            if self.passes_to_learn(self.copied(held), sequence, most) is None:
                return place
        return None


class _telling:  # noqa: N801 - used as a function
    """What a class raises becomes what is wrong with it."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, ModelError):
            raise _raised(self._what, error) from error


def _raised(what: str, err: Exception) -> ModelError:
    return ModelError(f"{what}: {said(err)}")
