"""Two tables of distances that go together, and how often chance would make them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mantel import mantel


def distances(places: list[float]) -> np.ndarray:
    at = np.array(places, dtype=float)
    return np.abs(at[:, None] - at[None, :])


def noisy(n: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = distances(rng.uniform(size=n).tolist())
    noise = rng.normal(0.0, spread, (n, n))
    return table, table + noise + noise.T


def test_it_is_the_correlation_of_the_upper_triangles():
    one, other = noisy(6, 0.2, 1)
    above = np.triu_indices(6, 1)
    found = mantel(one, other)
    assert found.r == pytest.approx(np.corrcoef(one[above], other[above])[0, 1])
    assert (found.things, found.orders) == (6, 720)


def test_chance_is_counted_over_all_orders():
    one, other = noisy(5, 0.3, 2)
    above = np.triu_indices(5, 1)
    values = [
        np.corrcoef(one[np.ix_(order, order)][above], other[above])[0, 1]
        for order in itertools.permutations(range(5))
    ]
    found = mantel(one, other)
    assert found.p == pytest.approx(np.mean(np.array(values) >= values[0] - 1e-12))
    assert 1 / 120 <= found.p < 1.0


def test_equal_tables_are_matched_by_their_own_order_and_its_mirror_only():
    table = distances([0, 1, 3, 7, 20])
    assert mantel(table, table).r == pytest.approx(1.0)
    assert mantel(table, table).p == pytest.approx(1 / 120)
    # Evenly spaced things may be turned around.
    even = distances([0, 1, 2, 3, 4])
    assert mantel(even, even).p == pytest.approx(2 / 120)
    assert mantel(even, -even).p == 1.0


def test_unit_and_diagonal_have_no_part_in_it():
    one, other = noisy(6, 0.2, 3)
    other_unit = 5.0 * other + 2.0
    np.fill_diagonal(other_unit, np.nan)
    assert mantel(one, other_unit).r == pytest.approx(mantel(one, other).r)
    assert mantel(one, other_unit).p == mantel(one, other).p


def test_more_things_are_drawn_and_agree_with_all_orders():
    one, other = noisy(9, 0.25, 4)
    drawn = mantel(one, other, draws=2_000, seed=1)
    assert drawn.orders == 2_001
    assert drawn == mantel(one, other, draws=2_000, seed=1)
    assert drawn.p == pytest.approx(mantel(one, other, draws=2_000, seed=2).p, abs=0.03)


def test_under_chance_small_values_are_as_rare_as_they_say():
    found = []
    for seed in range(200):
        one, _ = noisy(5, 0.0, 2 * seed)
        other, _ = noisy(5, 0.0, 2 * seed + 1)
        found.append(mantel(one, other).p)
    assert np.mean(np.array(found) <= 0.1) == pytest.approx(0.1, abs=0.05)


def test_a_table_that_does_not_vary_goes_with_nothing():
    table = distances([0, 1, 2, 5])
    found = mantel(table, np.ones((4, 4)))
    assert math.isnan(found.r)
    assert math.isnan(found.p)
    assert found.orders == 0


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (np.zeros((3, 3)), np.zeros((3, 3)), "n >= 4"),
        (np.zeros((4, 4)), np.zeros((5, 5)), r"\(4, 4\) and \(5, 5\)"),
        (np.arange(16.0).reshape(4, 4), np.zeros((4, 4)), "not symmetric"),
        (np.full((4, 4), np.nan), np.zeros((4, 4)), "not finite"),
    ],
)
def test_tables_that_are_none_are_refused(one, other, message):
    with pytest.raises(ValueError, match=message):
        mantel(one, other)
