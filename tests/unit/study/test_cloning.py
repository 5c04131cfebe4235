"""Networks, how they are trained to do what an expert does, and the pool they are drawn from."""

from __future__ import annotations

import numpy as np
import pytest

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.study.cloning import Examples, Slopes, TrainingBudget, clone, mixed
from robo_eval.study.measure import architectures
from robo_eval.study.network import Architecture, Network

SHORT = TrainingBudget(steps=300, batch=64, rate=1e-2)


def quadrants(n: int = 400, seed: int = 0) -> Examples:
    """Points of a plane, labelled by the quadrant they are in; far from 0 on one axis."""
    points = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    labels = (points[:, 0] > 0) + 2 * (points[:, 1] > 0)
    return Examples.of(points * [1.0, 100.0] + [0.0, 1_000.0], labels)


# Networks


def test_size_counts_weights_and_biases():
    assert Architecture(inputs=4, hidden=(), outputs=2).size == 10
    assert Architecture(inputs=4, hidden=(3, 5), outputs=2).size == 15 + 20 + 12


def test_scores_are_those_of_the_layers():
    network = Network(
        Architecture(inputs=2, hidden=(2,), outputs=2),
        [[[1, -1], [2, 0]], [[1, 0], [0, 1]]],
        [[0, 1], [0.5, 0]],
    )
    # Hidden units: max(0, 1*1 + 2*3) = 7 and max(0, -1 + 1) = 0.
    assert network.scores([1, 3]).tolist() == [7.5, 0.0]
    assert network.choose([1, 3]) == 0
    assert network.choose([[1, 3], [-9, 0]]).tolist() == [0, 1]


def test_a_network_survives_being_stored():
    network = Network.initial(
        Architecture(inputs=3, hidden=(4,), outputs=2), np.random.default_rng(0)
    )
    again = Network.from_arrays(network.arrays())
    assert again.architecture == network.architecture
    seen = np.random.default_rng(1).normal(size=(5, 3))
    np.testing.assert_array_equal(again.scores(seen), network.scores(seen))
    with pytest.raises(ShapeError, match="no arrays of a network"):
        Network.from_arrays({"other": np.zeros(3)})


@pytest.mark.parametrize(
    "call",
    [
        lambda: Architecture(inputs=0, hidden=(), outputs=2),
        lambda: Architecture(inputs=1, hidden=(3, 0), outputs=2),
        lambda: Network(Architecture(inputs=1, hidden=(), outputs=1), [[[1, 2]]], [[0]]),
        lambda: Network(Architecture(inputs=1, hidden=(), outputs=1), [[[np.nan]]], [[0]]),
    ],
)
def test_what_is_no_network_is_refused(call):
    with pytest.raises(InputError):
        call()


# Training


@pytest.mark.parametrize("hidden", [(), (5,), (6, 4)])
def test_gradients_are_those_of_the_loss(hidden):
    rng = np.random.default_rng(0)
    examples = Examples.of(rng.normal(size=(7, 3)), rng.integers(4, size=7))
    network = Network.initial(Architecture(inputs=3, hidden=hidden, outputs=4), rng)

    def loss() -> float:
        scores = network.scores(examples.observations).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return -float(logs[np.arange(7), examples.actions].mean())

    slopes = Slopes(network, len(examples))
    slopes.of(examples.observations, examples.actions)
    parameters = [*network.weights, *network.biases]
    assert slopes.values.size == sum(one.size for one in parameters)
    step, begin = 1e-2, 0
    for parameter in parameters:
        gradient = slopes.values[begin : begin + parameter.size].reshape(parameter.shape)
        begin += parameter.size
        place = tuple(rng.integers(n) for n in parameter.shape)
        before = parameter[place]
        parameter[place] = before + step
        above = loss()
        parameter[place] = before - step
        below = loss()
        parameter[place] = before
        assert gradient[place] == pytest.approx((above - below) / (2 * step), abs=2e-3)


def test_a_network_learns_what_is_shown_whatever_the_scale_of_what_it_sees():
    network = clone(
        Architecture(inputs=2, hidden=(16,), outputs=4), quadrants(), budget=SHORT, seed=0
    )
    other = quadrants(seed=1)
    assert (network.choose(other.observations) == other.actions).mean() > 0.95


def test_the_same_seed_gives_the_same_network():
    architecture = Architecture(inputs=2, hidden=(8,), outputs=4)
    first, same, other = (
        clone(architecture, quadrants(), budget=TrainingBudget(steps=20), seed=seed)
        for seed in (1, 1, 2)
    )
    for name, one in first.arrays().items():
        np.testing.assert_array_equal(one, same.arrays()[name])
    assert any((one != other.arrays()[name]).any() for name, one in first.arrays().items())


def test_an_input_that_never_changes_does_no_harm():
    examples = quadrants()
    still = Examples.of(
        np.column_stack([examples.observations, np.full(len(examples), 7.0)]), examples.actions
    )
    network = clone(Architecture(inputs=3, hidden=(16,), outputs=4), still, budget=SHORT, seed=0)
    assert (network.choose(still.observations) == still.actions).mean() > 0.9


def test_examples_are_mixed_by_their_share():
    first = Examples.of(np.zeros((500, 1)), np.zeros(500, dtype=int))
    second = Examples.of(np.ones((300, 1)), np.ones(300, dtype=int))
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 1.0):
        found = mixed(first, second, share, rng)
        assert len(found) == 500
        assert (found.observations[:, 0] == found.actions).all()
        assert (found.actions == 0).mean() == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Examples.of([[1.0]], [0, 1]), "must be"),
        (lambda: Examples.of([[np.inf]], [0]), "not finite"),
        (lambda: Examples.of([[1.0]], [-1]), "whole numbers from 0 on"),
        (lambda: Examples.of([[1.0]], [0.5]), "whole numbers from 0 on"),
        (lambda: TrainingBudget(steps=0), "steps is 0"),
        (lambda: TrainingBudget(rate=0.0), "rate is 0"),
        (lambda: clone(Architecture(inputs=3, hidden=(), outputs=4), quadrants(), seed=0),
         "the network takes 3"),
        (lambda: clone(Architecture(inputs=2, hidden=(), outputs=2), quadrants(), seed=0),
         "there is an action 3"),
        (lambda: mixed(quadrants(), quadrants(), 1.5, np.random.default_rng(0)), "share is 1.5"),
        (lambda: mixed(quadrants(), Examples.of([[1.0]], [0]), 0.5, np.random.default_rng(0)),
         "as many of each"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


# The pool


def test_a_pool_has_the_same_hidden_layers_for_every_test():
    one = architectures(50, inputs=4, outputs=2, seed=3)
    other = architectures(50, inputs=90, outputs=5, seed=3)
    assert [each.hidden for each in one] == [each.hidden for each in other]
    assert one != architectures(50, inputs=4, outputs=2, seed=4)
    assert architectures(20, inputs=4, outputs=2, seed=3) == one[:20], "a larger pool has it whole"


def test_a_pool_has_small_and_large_policies():
    found = architectures(400, inputs=4, outputs=2, seed=0)
    layers = np.bincount([len(one.hidden) for one in found], minlength=4)
    assert (layers > 60).all()
    units = np.array([count for one in found for count in one.hidden])
    assert (units.min(), units.max() <= 64) == (1, True)
    # Even on a logarithmic scale: about as many up to 8 as above.
    assert 0.4 < (units <= 8).mean() < 0.65


@pytest.mark.parametrize("wrong", [{"count": 0}, {"most_layers": -1}, {"most_units": 0}])
def test_a_pool_of_nothing_is_refused(wrong):
    with pytest.raises(InputError, match="must be"):
        architectures(**({"count": 1, "inputs": 1, "outputs": 1, "seed": 0} | wrong))
