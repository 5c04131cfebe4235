"""Small fully connected networks that choose an action, in plain NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.core.errors import InputError, ShapeError

Array = NDArray[np.float32]
_WEIGHT: Final = "weight_{}"
_BIAS: Final = "bias_{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How a network is built: layers of rectified units between inputs and a score for each action.

    Attributes:
        inputs: Numbers in an observation.
        hidden: Units of each hidden layer; without any the network is linear.
        outputs: Actions, or classes.
    """

    inputs: int
    hidden: tuple[int, ...]
    outputs: int

    def __post_init__(self) -> None:
        for name, count in (("inputs", self.inputs), ("outputs", self.outputs)):
            if count < 1:
                raise InputError(f"{name} is {count}; it must be 1 or more")
        if any(count < 1 for count in self.hidden):
            raise InputError(f"hidden is {self.hidden}; every layer has 1 unit or more")

    @property
    def layers(self) -> tuple[int, ...]:
        """Units of every layer, inputs and outputs included."""
        return (self.inputs, *self.hidden, self.outputs)

    @property
    def size(self) -> int:
        """Trainable parameters: weights and biases."""
        return sum((before + 1) * after for before, after in pairwise(self.layers))


class Network:
    """A network with its weights.

    Args:
        architecture: How it is built.
        weights: Of each layer, shape (units before, units).
        biases: Of each layer, shape (units,).

    Raises:
        ShapeError: If the shapes do not fit the architecture, or a number is not finite.
    """

    def __init__(
        self, architecture: Architecture, weights: Sequence[ArrayLike], biases: Sequence[ArrayLike]
    ) -> None:
        self.architecture: Final = architecture
        self.weights: Final[list[Array]] = [np.asarray(one, dtype=np.float32) for one in weights]
        self.biases: Final[list[Array]] = [np.asarray(one, dtype=np.float32) for one in biases]
        wanted = list(pairwise(architecture.layers))
        found = [one.shape for one in self.weights]
        if found != wanted or [one.shape for one in self.biases] != [(n,) for _, n in wanted]:
            raise ShapeError(f"weights have shapes {found}; the architecture needs {wanted}")
        if not all(np.isfinite(one).all() for one in (*self.weights, *self.biases)):
            raise ShapeError("weights hold a number that is not finite")

    @classmethod
    def initial(cls, architecture: Architecture, rng: np.random.Generator) -> Network:
        """A network before training: weights by He's rule, biases 0.

        Args:
            architecture: How it is built.
            rng: Draws the weights.
        """
        weights = [
            rng.normal(0.0, math.sqrt(2.0 / before), (before, after))
            for before, after in pairwise(architecture.layers)
        ]
        return cls(architecture, weights, [np.zeros(n) for n in architecture.layers[1:]])

    def scores(self, observations: ArrayLike) -> Array:
        """The score of each action.

        Args:
            observations: Shape (inputs,), or (n, inputs) for several.

        Returns:
            Shape (outputs,) or (n, outputs).
        """
        values: Array = np.asarray(observations, dtype=np.float32)
        last = len(self.weights) - 1
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = values @ weight
            values += bias
            if index < last:
                np.maximum(values, 0.0, out=values)
        return values

    def choose(self, observations: ArrayLike) -> NDArray[np.intp]:
        """The action of the highest score, the first one of equals; shape () or (n,)."""
        return np.asarray(self.scores(observations).argmax(axis=-1), dtype=np.intp)

    def arrays(self) -> dict[str, Array]:
        """Weights and biases by name, as `from_arrays` takes them."""
        found = {_WEIGHT.format(index): one for index, one in enumerate(self.weights)}
        return found | {_BIAS.format(index): one for index, one in enumerate(self.biases)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> Network:
        """The network of `arrays`.

        Raises:
            ShapeError: If they are none of a network.
        """
        count = len(arrays) // 2
        try:
            weights = [np.asarray(arrays[_WEIGHT.format(index)]) for index in range(count)]
            biases = [np.asarray(arrays[_BIAS.format(index)]) for index in range(count)]
            widths = [one.shape[1] for one in weights]
            layers = (weights[0].shape[0], *widths)
        except (KeyError, IndexError) as err:
            raise ShapeError(f"these are no arrays of a network: {', '.join(arrays)}") from err
        architecture = Architecture(inputs=layers[0], hidden=layers[1:-1], outputs=layers[-1])
        return cls(architecture, weights, biases)
