"""Networks that lose their hidden units one after another: the handicapping experiment.

A quotient that measures what an agent is able to do should fall about evenly with the units that
are taken away; see Pereyda and Holder (2025), The Artificial Intelligence Quotient (AIQ), AI
6(12):313.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.wording import counted
from robo_eval.study.network import Architecture, Network

_LEAST: Final = 4
"""Different numbers of nodes: a parabola runs through any three points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """How well lines and parabolas describe how values depend on nodes.

    Attributes:
        linear: Share of the variance that a line explains (R squared); NaN if all values are equal.
        quadratic: The same of a parabola; never below that of the line.
    """

    linear: float
    quadratic: float


def without_units(network: Network, share: float, *, rng: np.random.Generator) -> Network:
    """A network from which some hidden units were removed, with all that leads to and from them.

    Units leave in a random order, whatever layer they are in, but one stays in every layer: nothing
    would pass through an empty one. A generator of the same seed gives the same order, so
    that what a smaller share removes is among what a larger one does.

    Args:
        network: It stays as it is.
        share: Share of all hidden units that is removed, in [0, 1]; rounded to whole units, and to
            what may go.
        rng: Draws the order.

    Raises:
        InputError: If the share is not in [0, 1], or there are no hidden units.

    Example:
        >>> whole = Network.initial(
        ...     Architecture(inputs=4, hidden=(6, 4), outputs=2), np.random.default_rng(0)
        ... )
        >>> sum(without_units(whole, 0.5, rng=np.random.default_rng(1)).architecture.hidden)
        5
    """
    if not 0.0 <= share <= 1.0:
        raise InputError(f"share is {share}; it must be in [0, 1]")
    order = _order(network.architecture, rng)
    return _without(network, order[: round(share * sum(network.architecture.hidden))])


def nested_steps(network: Network, steps: int, seed: int) -> list[Network]:
    """Networks from the whole one to one with a single unit in each hidden layer, evenly spaced.

    Each has lost all that the one before it has lost, and more.

    Args:
        network: The whole one.
        steps: How many networks, the first and the last included.
        seed: Of the order in which units leave.

    Raises:
        InputError: If there are fewer than 2 steps, no hidden units, or too few units for so many.
    """
    order = _order(network.architecture, np.random.default_rng(seed))
    if not 2 <= steps <= len(order) + 1:
        raise InputError(
            f"steps is {steps}; it must be from 2 to {len(order) + 1}, because {len(order)} units"
            " may go"
        )
    counts = np.linspace(0, len(order), steps).round().astype(int)
    return [_without(network, order[:count]) for count in counts]


def fits(nodes: ArrayLike, values: ArrayLike) -> Fits:
    """How well a line and a parabola describe what is left with fewer nodes, by least squares.

    Args:
        nodes: Hidden units, shape (n,).
        values: A quotient or a mean performance with each, shape (n,).

    Raises:
        ShapeError: If lengths differ, or a number is not finite.
        InputError: If there are fewer than 4 different numbers of nodes.

    Example:
        >>> fits([1, 2, 3, 4], [10, 20, 30, 40]).linear
        1.0
    """
    x, y = as_numbers("nodes", nodes), as_numbers("values", values)
    if x.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"nodes have shape {x.shape} and values {y.shape}; both must be (n,)")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ShapeError("nodes or values hold a number that is not finite")
    there = len(np.unique(x))
    if there < _LEAST:
        raise InputError(
            f"nodes holds {counted(there, 'different number')}; fits need {_LEAST} at least"
        )
    return Fits(linear=_explained(x, y, 1), quadratic=_explained(x, y, 2))


def _explained(x: NDArray[np.float64], y: NDArray[np.float64], degree: int) -> float:
    """R squared of the polynomial of a degree that fits best."""
    if np.ptp(y) == 0.0:
        return float("nan")
    # `fit` maps x to [-1, 1] first, so that large numbers of nodes lose no digits.
    left = y - Polynomial.fit(x, y, degree)(x)
    return 1.0 - float((left @ left) / ((y - y.mean()) @ (y - y.mean())))


def _order(architecture: Architecture, rng: np.random.Generator) -> NDArray[np.intp]:
    """The units that may go, in the order they do; numbered through all hidden layers."""
    if not architecture.hidden:
        raise InputError("the network has no hidden units that could be removed")
    layer = np.repeat(np.arange(len(architecture.hidden)), architecture.hidden)
    order = rng.permutation(len(layer))
    stays = [order[layer[order] == one][-1] for one in range(len(architecture.hidden))]
    return order[~np.isin(order, stays)]


def _without(network: Network, removed: NDArray[np.intp]) -> Network:
    built = network.architecture
    is_kept = np.ones(sum(built.hidden), dtype=bool)
    is_kept[removed] = False
    # Inputs and outputs stay.
    kept = [
        np.ones(built.inputs, dtype=bool),
        *np.split(is_kept, np.cumsum(built.hidden)[:-1]),
        np.ones(built.outputs, dtype=bool),
    ]
    hidden = tuple(int(one.sum()) for one in kept[1:-1])
    return Network(
        Architecture(inputs=built.inputs, hidden=hidden, outputs=built.outputs),
        [w[kept[i]][:, kept[i + 1]] for i, w in enumerate(network.weights)],
        [b[kept[i + 1]] for i, b in enumerate(network.biases)],
    )
