"""What a model is to the testbed, and models that are plain Python classes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import index
from typing import Any, Final

import numpy as np

from robo_eval.analysis.agitb.streams import FULL, WIDTH, Inputs
from robo_eval.core.errors import RoboEvalError, said


class ModelError(RoboEvalError):
    """A model did something that no model may: the message says what."""

    verdict = "error"


@dataclass(slots=True)
class Told:
    """A model, and what it predicted last."""

    model: Any
    last: int = 0


class Models:
    """Models of a Python class: `model(input)` returns a prediction, `==` compares.

    Inputs and predictions are whole numbers from 0 to 1023, of Python or NumPy; of a class with
    `bits = True` they are arrays of ten truth values. A copy is made by the method `copy`, or else
    by `copy.deepcopy`. With a method `key`, whose values are equal where models are, thousands are
    compared at once.

    The tests know nothing else of a model: what they hold is a model and what it predicted last, 0
    before its first input. Only `feed`, `passes_to_learn` and `first_apart` change what they are
    given. See `compiled` for models that are fast.

    Args:
        model_class: Called without arguments, it gives a model that has seen nothing.

    Attributes:
        name: What they are called.
        trials: Trials of a test where nobody says how many.
    """

    trials: int = 50

    def __init__(self, model_class: Callable[[], Any]) -> None:
        self._class = model_class
        self.name: str = getattr(model_class, "__name__", type(model_class).__name__)
        self._takes_bits = getattr(model_class, "bits", False) is True
        self._has_copy = callable(getattr(model_class, "copy", None))
        self._has_key = callable(getattr(model_class, "key", None))
        self._inputs: list[Any] = list(range(FULL + 1))
        if self._takes_bits:
            rows = (np.arange(FULL + 1)[:, None] >> np.arange(WIDTH) & 1).astype(bool)
            rows.setflags(write=False)
            self._inputs = list(rows)

    def fresh(self) -> Any:
        """A model that has seen nothing."""
        with _telling("cannot be made without arguments"):
            return Told(self._class())

    def copied(self, held: Any) -> Any:
        """A copy that goes its own way."""
        with _telling("cannot be copied"):
            model = held.model.copy() if self._has_copy else copy.deepcopy(held.model)
        if type(model) is not type(held.model):
            raise ModelError(f"is copied to {_text(model)}, which is of another class")
        return Told(model, held.last)

    def same(self, one: Any, other: Any) -> bool:
        """Whether two are in the same state and predict the same."""
        with _telling("cannot be compared"):
            found = one.model == other.model
        if not isinstance(found, bool | np.bool_):
            raise ModelError(f"== returns {_text(found)}, which is no truth value")
        return bool(found) and one.last == other.last

    def key(self, held: Any) -> Any:
        """What only models in the same state have, with what it predicted; None if not offered."""
        if not self._has_key:
            return None
        with _telling("has a key that cannot be made or hashed"):
            found = (held.model.key(), held.last)
            hash(found)
        return found

    def ready(self, inputs: Sequence[int]) -> Any:
        """Inputs in the form that `feed` takes fastest."""
        return inputs

    def feed(self, held: Any, inputs: Sequence[int]) -> Sequence[int] | Inputs:
        """Give it inputs; what it predicted after each."""
        step = self._step
        return [step(held, number) for number in inputs]

    def passes_to_learn(self, held: Any, sequence: Sequence[int], most: int) -> int | None:
        """After how many passes it first predicts a whole sequence; None if not within `most`."""
        wanted = list(sequence)
        for passes in range(most):
            before = held.last
            if [before, *self.feed(held, wanted)][:-1] == wanted:
                return passes
        return None

    def first_apart(self, one: Any, other: Any, inputs: Sequence[int]) -> int | None:
        """Feed two the same; the first input after which they predict differently, None if none."""
        differ = np.not_equal(self.feed(one, inputs), self.feed(other, inputs))
        return int(np.argmax(differ)) if differ.any() else None

    def first_again(self, held: Any, inputs: Sequence[int]) -> int | None:
        """Feed a copy; the first input after which it is in a state it was in before."""
        now = self.copied(held)
        seen, keys = [self.copied(now)], {self.key(now)}
        for place, number in enumerate(inputs):
            self.feed(now, (number,))
            key = self.key(now)
            if key in keys if key is not None else any(self.same(now, one) for one in seen):
                return place
            keys.add(key)
            if key is None:
                seen.append(self.copied(now))
        return None

    def are_same(self, held: Any, ones: Inputs, others: Inputs) -> list[bool]:
        """For each pair of sequences, whether copies that are fed them are the same then."""
        found = []
        for one, other in zip(ones.tolist(), others.tolist(), strict=True):
            both = self.copied(held), self.copied(held)
            self.feed(both[0], one)
            self.feed(both[1], other)
            found.append(self.same(*both))
        return found

    def first_unlearned(self, held: Any, sequences: Inputs, most: int) -> int | None:
        """The first sequence that a copy does not learn within `most` passes; None if none."""
        for place, sequence in enumerate(sequences.tolist()):
            if self.passes_to_learn(self.copied(held), sequence, most) is None:
                return place
        return None

    def _step(self, held: Told, number: int) -> int:
        try:
            found = held.model(self._inputs[number])
        except ModelError:
            raise
        except BaseException as err:
            if isinstance(err, ValueError) and "read-only" in str(err):
                raise ModelError("changes its input, which is not its own") from err
            raise raised("raises", err) from err
        # An integer of Python is looked at first: nearly all are.
        held.last = last = found if type(found) is int else self._number(found)
        if not 0 <= last <= FULL:
            raise ModelError(f"predicts {_text(last)}, which is no number from 0 to {FULL}")
        return last

    def _number(self, found: Any) -> int:
        try:
            if not self._takes_bits:
                return index(found)
            bits = np.asarray(found)
            if bits.shape == (WIDTH,) and np.isin(bits, (0, 1)).all():
                return int(bits.astype(np.int64) @ (1 << np.arange(WIDTH)))
        except Exception:  # noqa: BLE001, S110 - it is none, whatever it says
            pass
        kind = f"array of {WIDTH} bits" if self._takes_bits else "whole number"
        raise ModelError(f"predicts {_text(found)}, which is no {kind}")


@dataclass(slots=True)
class Seen:
    """What was seen of models, besides whether they pass.

    Attributes:
        learned: How often a sequence was learned after so many passes; never is None.
        margins: By how many bits denoising was better than a constant, of each trial.
        times_us: What chunks of a stream took, microseconds, by stream.
    """

    learned: Counter[int | None] = field(default_factory=Counter)
    margins: list[int] = field(default_factory=list)
    times_us: dict[str, list[int]] = field(default_factory=dict)


class Watched:
    """Models, and what was seen of them in a trial.

    Args:
        models: Which; all that they do is done here as well.
    """

    def __init__(self, models: Models) -> None:
        self._models = models
        self.seen: Final = Seen()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._models, name)

    def passes_to_learn(self, held: object, sequence: Sequence[int], most: int) -> int | None:
        """See `Models`."""
        passes = self._models.passes_to_learn(held, sequence, most)
        self.seen.learned[passes] += 1
        return passes


@contextmanager
def _telling(what: str) -> Iterator[None]:
    """What a class raises becomes what is wrong with it."""
    try:
        yield
    except ModelError:
        raise
    except BaseException as err:
        raise raised(what, err) from err


def raised(what: str, err: BaseException) -> ModelError:
    """That a model raised an error."""
    return ModelError(f"{what}: {said(err)}")


def _text(found: object) -> str:
    try:
        return f"{found!r:.60}"
    except Exception:  # noqa: BLE001 - whatever somebody else's class does
        return f"an object of {type(found).__name__}"
