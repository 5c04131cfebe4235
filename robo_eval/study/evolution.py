"""Training a network by direct search: nothing but its performance is needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.study.cloning import Adam, standard, unstandardised
from robo_eval.study.network import Architecture, Array, Network

POPULATION: Final = 32
"""Networks that are tried in each generation, unless another number is named."""
SIGMA: Final = 0.2
"""Standard deviation of the changes that are tried, in units of the weights."""
RATE: Final = 0.1
"""Step size of Adam, in units of the weights."""


def evolve(
    architecture: Architecture,
    performance: Callable[[Network, int], float],
    *,
    generations: int,
    population: int = POPULATION,
    sigma: float = SIGMA,
    rate: float = RATE,
    observations: ArrayLike | None = None,
    seed: int,
) -> Network:
    """Train a network from scratch by an evolution strategy.

    In each generation random changes of all weights are tried, each in both directions. The ranks
    of their performances say where it goes up, and Adam takes a step there. All of a generation
    play the same episodes, so that they differ by what they do and not by luck. After Salimans, Ho,
    Chen, Sidor and Sutskever (2017), Evolution Strategies as a Scalable Alternative to
    Reinforcement Learning, arXiv:1703.03864; without their decay of weights.

    Args:
        architecture: How the network is built.
        performance: Performance in [0, 1] of a network in the episodes of a seed. It must not keep
            the network.
        generations: Steps of the weights; 0 gives the network before training.
        population: Networks that are tried in each generation; an even number.
        sigma: Standard deviation of the changes that are tried, in units of the weights.
        rate: Step size of Adam, in units of the weights.
        observations: What networks may see, shape (n, inputs), such as `Task.examples` holds. By
            its mean and deviation observations are standardised for the search; networks that are
            tried and the one that is returned take them as they are. Without it numbers that hardly
            vary hardly count.
        seed: Of weights, changes and episodes; the same seed gives the same network.

    Returns:
        The network after the last step. It takes `generations * population` performances.

    Raises:
        InputError: If a number is out of range, or a performance is not in [0, 1].
        ShapeError: If observations do not fit the architecture.
    """
    _check(generations, population, sigma, rate)
    mean, scale = _units(architecture, observations)
    rng = np.random.default_rng(seed)
    network = Network.initial(architecture, rng)
    parameters = [*network.weights, *network.biases]
    adam = Adam(parameters)
    for generation in range(generations):
        episode = int(rng.integers(2**31))
        changes = [
            [rng.standard_normal(one.shape, dtype=np.float32) for one in parameters]
            for _ in range(population // 2)
        ]
        found = np.array(
            [
                [
                    performance(
                        unstandardised(_changed(network, change, sign * sigma), mean, scale),
                        episode,
                    )
                    for sign in (1, -1)
                ]
                for change in changes
            ]
        )
        _check_performances(found, generation)
        shaped = _shaped(found)
        # Against what rises: Adam goes down.
        slopes = -(shaped[:, 0] - shaped[:, 1]) / (population * sigma)
        gradients: list[Array] = [
            np.tensordot(slopes, np.stack(of_one), axes=1).astype(np.float32)
            for of_one in zip(*changes, strict=True)
        ]
        adam.step(parameters, gradients, rate)
    return unstandardised(network, mean, scale)


def _units(architecture: Architecture, observations: ArrayLike | None) -> tuple[Array, Array]:
    """Mean and scale of what is seen; those that change nothing, if it is not known."""
    if observations is None:
        inputs = architecture.inputs
        return np.zeros(inputs, dtype=np.float32), np.ones(inputs, dtype=np.float32)
    seen = np.asarray(observations, dtype=np.float32)
    if seen.ndim != 2 or not len(seen) or seen.shape[1] != architecture.inputs:
        raise ShapeError(
            f"observations have shape {seen.shape}; they must be (n, {architecture.inputs}), n >= 1"
        )
    if not np.isfinite(seen).all():
        raise ShapeError("observations hold a number that is not finite")
    return standard(seen)


def _changed(network: Network, change: list[Array], size: float) -> Network:
    layers = len(network.weights)
    step = np.float32(size)
    weights = [one + step * by for one, by in zip(network.weights, change[:layers], strict=True)]
    biases = [one + step * by for one, by in zip(network.biases, change[layers:], strict=True)]
    return Network(network.architecture, weights, biases)


def _shaped(performances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from -0.5 to 0.5, equal ones for equal performances; shape as it is."""
    ranks = rankdata(performances, axis=None).reshape(performances.shape)
    return np.asarray((ranks - 1.0) / (performances.size - 1.0) - 0.5)


def _check(generations: int, population: int, sigma: float, rate: float) -> None:
    if generations < 0:
        raise InputError(f"generations is {generations}; it must be 0 or more")
    if population < 2 or population % 2:
        raise InputError(f"population is {population}; it must be an even number, 2 or more")
    for name, value in (("sigma", sigma), ("rate", rate)):
        if not 0.0 < value < math.inf:
            raise InputError(f"{name} is {value}; it must be a finite number above 0")


def _check_performances(found: NDArray[np.float64], generation: int) -> None:
    outside = found[~((found >= 0.0) & (found <= 1.0))]
    if len(outside):
        raise InputError(
            f"performance gave {outside[0]} in generation {generation}; it must be in [0, 1]"
        )
