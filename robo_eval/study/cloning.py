"""Training a network to do what an expert does: behavioural cloning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.study.network import Architecture, Array, Network

_DECAYS: Final = (0.9, 0.999)
_TINY: Final = 1e-8
_NARROW: Final = 1e-6
"""An input that varies by less is left as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingBudget:
    """How much a network is trained; the same for all that are compared.

    Attributes:
        steps: Updates of the weights.
        batch: Examples in each.
        rate: Step size of Adam at the beginning; it falls to a tenth along a cosine.
    """

    steps: int = 600
    batch: int = 128
    rate: float = 3e-3

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1:
            raise InputError(f"steps is {self.steps} and batch {self.batch}; 1 is the least")
        if not 0.0 < self.rate < 1.0:
            raise InputError(f"rate is {self.rate}; it must be between 0 and 1")


_DEFAULT: Final = TrainingBudget()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Examples:
    """What an expert did, or which class something is of.

    Attributes:
        observations: Shape (n, inputs).
        actions: Whole numbers from 0 on, shape (n,).
    """

    observations: Array
    actions: NDArray[np.intp]

    @classmethod
    def of(cls, observations: ArrayLike, actions: ArrayLike) -> Examples:
        """Examples of what can be turned into arrays.

        Raises:
            ShapeError: If the shapes do not fit, or a number is not finite.
        """
        seen = np.asarray(observations, dtype=np.float32)
        done = np.asarray(actions)
        if seen.ndim != 2 or done.shape != seen.shape[:1] or not len(seen):
            raise ShapeError(
                f"observations have shape {seen.shape} and actions {done.shape}; they must be"
                " (n, inputs) and (n,), n >= 1"
            )
        if not np.isfinite(seen).all():
            raise ShapeError("observations hold a number that is not finite")
        if not np.issubdtype(done.dtype, np.integer) or done.min() < 0:
            raise ShapeError("actions must be whole numbers from 0 on")
        return cls(observations=seen, actions=done.astype(np.intp))

    def __len__(self) -> int:
        return len(self.actions)


def mixed(first: Examples, second: Examples, share: float, rng: np.random.Generator) -> Examples:
    """As many examples as the first set has, each drawn from it with a probability.

    Args:
        first: Examples drawn with probability `share`.
        second: Examples drawn otherwise.
        share: In [0, 1].
        rng: Draws.

    Raises:
        InputError: If the share is not in [0, 1].
        ShapeError: If observations of the two differ in length.
    """
    if not 0.0 <= share <= 1.0:
        raise InputError(f"share is {share}; it must be in [0, 1]")
    if first.observations.shape[1] != second.observations.shape[1]:
        raise ShapeError(
            f"observations have {first.observations.shape[1]} and {second.observations.shape[1]}"
            " numbers; a learner of both needs as many of each"
        )
    n = len(first)
    from_first = int(rng.binomial(n, share))
    own = rng.integers(len(first), size=from_first)
    other = rng.integers(len(second), size=n - from_first)
    return Examples(
        observations=np.concatenate([first.observations[own], second.observations[other]]),
        actions=np.concatenate([first.actions[own], second.actions[other]]),
    )


def clone(
    architecture: Architecture, examples: Examples, *, budget: TrainingBudget = _DEFAULT, seed: int
) -> Network:
    """Train a network from scratch to choose what the examples chose.

    Cross-entropy of the softmax of its scores, by Adam. Observations are standardised for training;
    the network that is returned takes them as they are.

    Args:
        architecture: How the network is built.
        examples: What is to be chosen when.
        budget: How much to train.
        seed: Of weights and of the order of examples; the same seed gives the same network.

    Raises:
        InputError: If an action is none of the architecture.
        ShapeError: If observations do not fit the architecture.
    """
    if examples.observations.shape[1] != architecture.inputs:
        raise ShapeError(
            f"observations have {examples.observations.shape[1]} numbers, the network takes"
            f" {architecture.inputs}"
        )
    if examples.actions.max() >= architecture.outputs:
        raise InputError(
            f"there is an action {examples.actions.max()}, the network has {architecture.outputs}"
        )
    rng = np.random.default_rng(seed)
    mean, scale = standard(examples.observations)
    seen = (examples.observations - mean) / scale
    network = _in_one_piece(Network.initial(architecture, rng))
    batch = min(budget.batch, len(examples))
    chosen = rng.integers(len(examples), size=(budget.steps, batch))
    slopes = Slopes(network.of, batch)
    adam = Adam([network.values])
    for step, rows in enumerate(chosen):
        slopes.of(np.take(seen, rows, axis=0), examples.actions[rows])
        adam.step([network.values], [slopes.values], budget.rate * _cosine(step / budget.steps))
    return unstandardised(network.of, mean, scale)


def _cosine(progress: float) -> float:
    return 0.55 + 0.45 * float(np.cos(np.pi * progress))


def standard(observations: Array) -> tuple[Array, Array]:
    """Mean and scale of each input, shapes (inputs,); the scale of one that never varies is 1."""
    mean = observations.mean(axis=0)
    scale = observations.std(axis=0)
    return mean, np.where(scale > _NARROW, scale, 1.0).astype(np.float32)


def unstandardised(network: Network, mean: Array, scale: Array) -> Network:
    """A network for observations as they are, of one for `(observations - mean) / scale`."""
    first = network.weights[0] / scale[:, None]
    bias = network.biases[0] - mean @ first
    return Network(network.architecture, [first, *network.weights[1:]], [bias, *network.biases[1:]])


class _Whole(NamedTuple):
    """A network whose parameters are all in one array, so that one step changes them all."""

    of: Network
    values: Array


def _in_one_piece(network: Network) -> _Whole:
    parts = [*network.weights, *network.biases]
    values = np.concatenate([one.ravel() for one in parts])
    views = _views(values, [one.shape for one in parts])
    count = len(network.weights)
    return _Whole(Network(network.architecture, views[:count], views[count:]), values)


def _views(values: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Parts of an array, one after the other, in these shapes."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    pieces = np.split(values, ends[:-1])
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]


class Slopes:
    """Of the mean cross-entropy by the parameters of a network, in the order it keeps them.

    Args:
        network: Its parameters may change in between.
        batch: Examples at a time.
    """

    def __init__(self, network: Network, batch: int) -> None:
        parts = [*network.weights, *network.biases]
        self._network = network
        self._rows = np.arange(batch)
        self.values: Array = np.empty(sum(one.size for one in parts), dtype=np.float32)
        views = _views(self.values, [one.shape for one in parts])
        self._weights = views[: len(network.weights)]
        self._biases = views[len(network.weights) :]

    def of(self, seen: Array, actions: NDArray[np.intp]) -> None:
        """Compute `values` for some examples; shapes (batch, inputs) and (batch,)."""
        before = [seen]
        weights, last = self._network.weights, len(self._network.weights) - 1
        for index, (weight, bias) in enumerate(zip(weights, self._network.biases, strict=True)):
            values = before[-1] @ weight
            values += bias
            if index < last:
                np.maximum(values, 0.0, out=values)
            before.append(values)
        error = before.pop()
        error -= error.max(axis=1, keepdims=True)
        np.exp(error, out=error)
        error /= error.sum(axis=1, keepdims=True)
        error[self._rows, actions] -= 1.0
        error /= len(actions)
        for index in range(last, -1, -1):
            np.matmul(before[index].T, error, out=self._weights[index])
            error.sum(axis=0, out=self._biases[index])
            if index:
                error = error @ weights[index].T
                error *= before[index] > 0.0


class Adam:
    """The optimiser of Kingma and Ba (2015), arXiv:1412.6980."""

    def __init__(self, parameters: list[Array]) -> None:
        self._means = [np.zeros_like(one) for one in parameters]
        self._squares = [np.zeros_like(one) for one in parameters]
        self._steps = 0

    def step(self, parameters: list[Array], gradients: list[Array], rate: float) -> None:
        """Change parameters in place."""
        self._steps += 1
        first, second = _DECAYS
        rate *= (1.0 - second**self._steps) ** 0.5 / (1.0 - first**self._steps)
        for value, gradient, mean, square in zip(
            parameters, gradients, self._means, self._squares, strict=True
        ):
            mean *= first
            mean += (1.0 - first) * gradient
            square *= second
            square += (1.0 - second) * (gradient * gradient)
            change = np.sqrt(square)
            change += _TINY
            np.divide(mean, change, out=change)
            change *= rate
            value -= change
