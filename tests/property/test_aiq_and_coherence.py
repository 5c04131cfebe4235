"""What holds for every profile, every suite and every agent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from robo_eval.analysis.aiq import dissimilarity, hull_volume, mccp, quotient, space
from robo_eval.analysis.coherence import FLOOR, auc, generalised_mean

SHARES = st.floats(0.0, 1.0, width=32)
PROFILES = hnp.arrays(np.float64, st.integers(1, 8), elements=SHARES)


@st.composite
def suites(draw):
    """A suite whose tests have directions in a space, and performances of an agent on it."""
    n, k = draw(st.integers(3, 8)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    directions = np.abs(rng.normal(size=(n, k))) + 1e-3
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    table = np.sqrt(np.clip(1.0 - directions @ directions.T, 0.0, 1.0))
    np.fill_diagonal(table, 0.0)
    table = (table + table.T) / 2.0
    sizes = rng.uniform(0.1, 1.0, n)
    assume(n > k)
    return table, sizes, k, rng.uniform(0.05, 1.0, n)


@given(PROFILES, st.lists(st.floats(-30.0, 30.0), min_size=2, max_size=4))
def test_means_lie_within_the_scores_and_grow_with_the_exponent(scores, exponents):
    means = generalised_mean(scores, sorted(exponents))
    floored = np.maximum(scores, FLOOR)
    assert (means >= floored.min() * (1 - 1e-12)).all()
    assert (means <= floored.max() * (1 + 1e-12)).all()
    assert (np.diff(means) >= -1e-12).all()


@given(PROFILES, st.integers(0, 7), st.floats(0.0, 0.5))
def test_a_better_domain_never_lowers_the_area(scores, place, more):
    better = scores.copy()
    place %= len(scores)
    better[place] = min(1.0, better[place] + more)
    assert auc(better, points=201) >= auc(scores, points=201) - 1e-12


@given(PROFILES, st.randoms())
def test_the_order_of_domains_does_not_matter(scores, random):
    shuffled = list(scores)
    random.shuffle(shuffled)
    assert auc(shuffled, points=51) == pytest.approx(auc(scores, points=51), abs=1e-12)


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_more_copies_of_a_pool_change_nothing_and_sizes_are_a_scale(n, bins, seed):
    rng = np.random.default_rng(seed)
    sizes, performances = rng.uniform(1, 100, n), rng.random(n)
    found = mccp(sizes, performances, bins=bins)
    twice = mccp(np.tile(sizes, 2), np.tile(performances, 2), bins=bins)
    np.testing.assert_array_equal(twice.curve, found.curve)
    scaled = mccp(3.0 * sizes, performances, bins=bins)
    assert scaled.area == pytest.approx(3.0 * found.area)
    assert found.filled + found.interpolated + found.extrapolated == bins
    envelope = mccp(sizes, performances, bins=bins, variant="envelope")
    assert (np.diff(envelope.curve) >= -1e-9 * sizes.max()).all()


@given(hnp.arrays(np.float64, st.integers(2, 15), elements=SHARES))
def test_dissimilarity_is_symmetric_and_limited(observed):
    found = dissimilarity(observed)
    assert 0.0 <= found <= 1.0
    assert dissimilarity(observed[::-1]) == pytest.approx(found, abs=1e-12)


@settings(deadline=None)
@given(suites(), st.floats(0.1, 1.0))
def test_quotients_scale_with_performance(suite, factor):
    table, sizes, k, performances = suite
    found = space(table, sizes, k=k, d_max=1.0)
    assert found.negative_mass < 1e-6
    assert quotient(found, np.ones(len(sizes))).aiq == pytest.approx(1.0)
    assert quotient(found, np.full(len(sizes), factor)).aiq == pytest.approx(factor)
    own = quotient(found, performances)
    less = quotient(found, factor * performances)
    assert less.aiq == pytest.approx(factor * own.aiq)
    assert less.volume == pytest.approx(factor**k * own.volume)


@settings(deadline=None)
@given(suites(), st.integers(0, 2**32 - 1))
def test_order_and_scale_of_a_suite_do_not_matter(suite, seed):
    table, sizes, k, performances = suite
    own = quotient(space(table, sizes, k=k, d_max=1.0), performances).aiq
    order = np.random.default_rng(seed).permutation(len(sizes))
    other = space(table[np.ix_(order, order)], 7.0 * sizes[order], k=k, d_max=1.0)
    assert quotient(other, performances[order]).aiq == pytest.approx(own, abs=1e-7)


@settings(deadline=None)
@given(suites(), st.integers(0, 7), st.floats(0.0, 0.9))
def test_doing_better_never_lowers_the_quotient(suite, place, more):
    table, sizes, k, performances = suite
    better = performances.copy()
    better[place % len(better)] = min(1.0, better[place % len(better)] + more)
    found = space(table, sizes, k=k, d_max=1.0)
    assert quotient(found, better).aiq >= quotient(found, performances).aiq - 1e-9


@settings(deadline=None)
@given(suites(), st.integers(0, 2**32 - 1), st.floats(0.0, 1.0))
def test_a_volume_is_the_same_however_points_are_turned_or_joined_within(suite, seed, share):
    table, sizes, k, performances = suite
    points = space(table, sizes, k=k, d_max=1.0).points * performances[:, None]
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(k, k)))[0]
    whole = hull_volume(points).volume
    assert hull_volume(points @ turn).volume == pytest.approx(whole, rel=1e-7)
    inner = share * points[0] + (1.0 - share) * points[-1]
    assert hull_volume(np.vstack([points, inner])).volume == pytest.approx(whole, rel=1e-7)
