"""Training by direct search."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robo_eval.agents.foreign import wrap
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.study.domain import Task
from robo_eval.study.evolution import evolve
from robo_eval.study.network import Architecture, Network

SMALL = Architecture(inputs=2, hidden=(3,), outputs=2)
POINTS = np.random.default_rng(0).normal(size=(64, 2))


def sorted_out(network: Network, seed: int) -> float:
    """Share of points that are on the right side of a line."""
    return float((network.choose(POINTS) == (POINTS.sum(axis=1) > 0)).mean())


@pytest.mark.slow
def test_it_solves_the_cart_that_no_network_could_before():
    task = Task(
        name="cart", env="CartPole-v1", expert=wrap(lambda _: 0, digest_of="none"), highest=500.0
    )
    built = Architecture(inputs=4, hidden=(8,), outputs=2)

    def performance(network: Network, seed: int) -> float:
        return float(task.performances(network, 1, seed=seed).mean())

    def reached(generations: int, seed: int) -> float:
        network = evolve(built, performance, generations=generations, population=16, seed=seed)
        return float(task.performances(network, 10, seed=10**6).mean())

    before = [reached(0, seed) for seed in (2, 3)]
    after = [reached(20, seed) for seed in (2, 3)]
    assert max(before) < 0.1
    assert min(after) > 0.2
    assert max(after) > 0.9


def test_the_same_seed_gives_the_same_network():
    first, same, other = (
        evolve(SMALL, sorted_out, generations=3, population=6, seed=seed) for seed in (1, 1, 2)
    )
    for name, one in first.arrays().items():
        np.testing.assert_array_equal(one, same.arrays()[name])
    assert any((one != other.arrays()[name]).any() for name, one in first.arrays().items())


def test_all_of_a_generation_play_the_same_episodes_and_are_tried_both_ways():
    tried: list[tuple[Network, int]] = []

    def performance(network: Network, seed: int) -> float:
        tried.append((network, seed))
        return 0.5

    final = evolve(SMALL, performance, generations=2, population=4, seed=0)
    seeds = [seed for _, seed in tried]
    assert seeds[:4] == seeds[:1] * 4
    assert seeds[4:] == seeds[4:5] * 4
    assert seeds[0] != seeds[4]
    # Equal performances say nothing: the network stays where it began, midway between each pair.
    begun = Network.initial(SMALL, np.random.default_rng(0))
    np.testing.assert_array_equal(final.weights[0], begun.weights[0])
    for one, other in ((0, 1), (2, 3), (4, 5)):
        middle = (tried[one][0].weights[0] + tried[other][0].weights[0]) / 2
        np.testing.assert_allclose(middle, begun.weights[0], atol=1e-6)
    # As far as sigma says.
    spread = np.concatenate([(one.weights[0] - begun.weights[0]).ravel() for one, _ in tried])
    assert 0.1 < spread.std() < 0.4


def test_only_the_order_of_performances_counts():
    one = evolve(SMALL, sorted_out, generations=4, seed=0)
    other = evolve(SMALL, lambda *given: sorted_out(*given) ** 3, generations=4, seed=0)
    np.testing.assert_array_equal(one.weights[0], other.weights[0])


def test_what_is_seen_may_be_of_any_size_if_it_is_known():
    places = POINTS * [1e-3, 10.0] + [0.0, 100.0]

    def performance(network: Network, seed: int) -> float:
        return float((network.choose(places) == (POINTS[:, 0] > 0)).mean())

    def reached(observations: np.ndarray | None) -> float:
        network = evolve(SMALL, performance, generations=30, observations=observations, seed=0)
        return performance(network, 0)

    assert reached(None) < 0.7
    assert reached(places) > 0.9


@pytest.mark.parametrize("wrong", [np.zeros((3, 5)), np.zeros((0, 2)), [[1.0, np.nan]], [1.0, 2.0]])
def test_observations_of_something_else_are_refused(wrong):
    with pytest.raises(ShapeError, match="observations"):
        evolve(SMALL, sorted_out, generations=1, observations=wrong, seed=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"generations": -1}, "generations is -1"),
        ({"population": 0}, "population is 0; it must be an even number"),
        ({"population": 5}, "population is 5; it must be an even number"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"sigma": math.nan}, "sigma is nan"),
        ({"rate": -1.0}, "rate is -1.0"),
        ({"performance": lambda *given: math.nan}, "performance gave nan in generation 0"),
        ({"performance": lambda *given: 1.5}, r"performance gave 1.5 .* in \[0, 1\]"),
    ],
)
def test_what_cannot_be_searched_is_refused(wrong, message):
    given = {"architecture": SMALL, "performance": sorted_out, "generations": 1, "seed": 0} | wrong
    with pytest.raises(InputError, match=message):
        evolve(**given)
