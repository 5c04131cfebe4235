"""Networks that lose hidden units, and how what they achieve depends on those that are left."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.study.handicapping import fits, nested_steps, without_units
from robo_eval.study.network import Architecture, Network


def whole(*hidden: int) -> Network:
    built = Architecture(inputs=3, hidden=hidden, outputs=2)
    return Network.initial(built, np.random.default_rng(0))


def numbered(*hidden: int) -> Network:
    """A network whose biases say which unit is which."""
    network = whole(*hidden)
    numbers = np.split(np.arange(sum(hidden)), np.cumsum(hidden)[:-1])
    return Network(network.architecture, network.weights, [*numbers, network.biases[-1]])


def units(network: Network) -> set[int]:
    return {int(one) for layer in network.biases[:-1] for one in layer}


def test_what_a_larger_share_leaves_was_left_by_a_smaller_one_too():
    network = numbered(8, 5, 7)
    left = [
        units(without_units(network, share, rng=np.random.default_rng(4)))
        for share in (0.0, 0.2, 0.5, 0.8, 1.0)
    ]
    assert all(after < before for before, after in pairwise(left))
    assert [len(one) for one in left] == [20, 16, 10, 4, 3]
    other = units(without_units(network, 0.5, rng=np.random.default_rng(5)))
    assert other != left[2], "another seed, another order"


def test_a_removed_unit_is_as_one_that_is_never_active():
    network = numbered(6, 5)
    left = without_units(network, 0.4, rng=np.random.default_rng(1))
    silent = Network(network.architecture, network.weights, network.biases)
    for layer in (0, 1):
        is_kept = np.isin(network.biases[layer], left.biases[layer])
        assert 0 < is_kept.sum() < len(is_kept)
        silent.weights[layer + 1] = silent.weights[layer + 1] * is_kept[:, None]
    seen = np.random.default_rng(2).normal(size=(9, 3))
    np.testing.assert_allclose(left.scores(seen), silent.scores(seen), rtol=1e-5, atol=1e-5)


def test_nothing_is_removed_by_a_share_of_nothing_and_the_network_stays_as_it_is():
    network = whole(4)
    same = without_units(network, 0.0, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(same.weights[0], network.weights[0])
    without_units(network, 1.0, rng=np.random.default_rng(0))
    assert network.architecture.hidden == (4,)


def test_steps_go_evenly_from_the_whole_network_to_one_unit_a_layer():
    found = nested_steps(numbered(12, 10), 6, seed=3)
    assert [sum(one.architecture.hidden) for one in found] == [22, 18, 14, 10, 6, 2]
    assert found[-1].architecture.hidden == (1, 1)
    left = [units(one) for one in found]
    assert all(after < before for before, after in pairwise(left))
    again = nested_steps(numbered(12, 10), 6, seed=3)
    assert [units(one) for one in again] == left
    assert [len(one.architecture.hidden) for one in nested_steps(whole(1, 2), 2, seed=0)] == [2, 2]


def test_a_line_and_a_parabola_are_found():
    nodes = np.arange(1, 1_001, 50)
    line = fits(nodes, 3.0 - 0.5 * nodes)
    assert (line.linear, line.quadratic) == pytest.approx((1.0, 1.0))
    # Symmetric about the middle of the nodes: a line explains nothing of it.
    bow = fits([-2, -1, 0, 1, 2], [4, 1, 0, 1, 4])
    assert (bow.linear, bow.quadratic) == pytest.approx((0.0, 1.0))


def test_explained_variance_is_that_of_least_squares():
    # By hand: slope 0.8, squares of what is left 2.8, of values about their mean 6.
    assert fits([1, 2, 3, 4], [1, 2, 1, 4]).linear == pytest.approx(1.0 - 2.8 / 6.0)


def test_equal_values_leave_nothing_to_explain():
    found = fits([1, 2, 3, 4], [0.5] * 4)
    assert math.isnan(found.linear)
    assert math.isnan(found.quadratic)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: without_units(whole(3), 1.1, rng=np.random.default_rng(0)), "share is 1.1"),
        (lambda: without_units(whole(3), math.nan, rng=np.random.default_rng(0)), "share is nan"),
        (lambda: without_units(whole(), 0.5, rng=np.random.default_rng(0)), "no hidden units"),
        (lambda: nested_steps(whole(3), 1, seed=0), "from 2 to 3"),
        (lambda: nested_steps(whole(3), 4, seed=0), "from 2 to 3, because 2 units may go"),
        (lambda: fits([1, 2, 3], [1, 2, 3]), "3 different numbers; fits need 4"),
        (lambda: fits([1, 1, 1, 1], [1, 2, 3, 4]), "1 different number;"),
    ],
)
def test_what_cannot_be_handicapped_or_fitted_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("nodes", "values"), [([1, 2], [1]), ([[1, 2]], [[1, 2]]), ([1, 2, 3, 4], [1, 2, 3, np.nan])]
)
def test_numbers_that_do_not_belong_together_are_refused(nodes, values):
    with pytest.raises(ShapeError):
        fits(nodes, values)
