"""The exact test of pairs without conditioning: its size, its power and its interval."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from robo_eval.stats.paired import mcnemar_p
from robo_eval.stats.unconditional import (
    deciding_wins,
    least_deciding_of,
    pairs_interval,
    pairs_p,
)


def tables(n):
    """All numbers of pairs in which only the first, and only the second, succeeded."""
    first, second = np.indices((n + 1, n + 1)).reshape(2, -1)
    kept = first + second <= n
    return first[kept], second[kept]


def chances(n, win, loss):
    b, c = tables(n)
    counts = np.stack([b, c, n - b - c], axis=1)
    rates = np.maximum([win, loss, 1.0 - win - loss], 0.0)
    return stats.multinomial.pmf(counts, n, rates / rates.sum())


@pytest.mark.parametrize("n", [5, 10, 20])
def test_it_keeps_its_size_at_every_share_of_discordant_pairs(n):
    b, c = tables(n)
    p = np.array([pairs_p(int(one), int(other), n) for one, other in zip(b, c, strict=True)])
    for share in np.linspace(0.01, 1.0, 34):
        chance = chances(n, share / 2, share / 2)
        for alpha in (0.01, 0.05, 0.2):
            assert chance[p <= alpha].sum() <= alpha + 1e-9
    # Whatever McNemar's test decides, it decides, and more.
    given_number = mcnemar_p(b, c)
    assert (p[given_number <= 0.05] <= 0.05).all()
    assert n == 5 or (p <= 0.05).sum() > (given_number <= 0.05).sum()


def test_it_has_most_of_the_power_of_the_mid_p_value():
    b, c = tables(20)
    p = np.array([pairs_p(int(one), int(other), 20) for one, other in zip(b, c, strict=True)])
    chance = chances(20, 0.25, 0.05)
    tests = (mcnemar_p(b, c), p, mcnemar_p(b, c, mid_p=True))
    power = [chance[found <= 0.05].sum() for found in tests]
    assert power == pytest.approx([0.196, 0.314, 0.314], abs=0.001)


@pytest.mark.parametrize("n", [5, 10, 20])
def test_its_interval_holds_the_difference_whatever_the_rates(n):
    b, c = tables(n)
    ends = np.array([pairs_interval(int(x), int(y), n) for x, y in zip(b, c, strict=True)])
    for difference in (0.0, 0.05, 0.3, 0.6, 0.95):
        held = (ends[:, 0] - 1e-9 <= difference) & (difference <= ends[:, 1] + 1e-9)
        for share in np.linspace(difference, 1.0, 9):
            chance = chances(n, (share + difference) / 2, (share - difference) / 2)
            assert chance[held].sum() >= 0.95 - 0.002


@settings(max_examples=40)
@given(st.integers(1, 90), st.data())
def test_test_and_interval_say_the_same(n, data):
    b = data.draw(st.integers(0, n))
    c = data.draw(st.integers(0, n - b))
    p, (low, high) = pairs_p(b, c, n), pairs_interval(b, c, n)
    assert (p <= 0.05) == (low > 0.0 or high < 0.0)
    assert low <= (b - c) / n <= high
    assert pairs_p(c, b, n) == p
    assert pairs_interval(c, b, n) == (-high, -low)
    one_sided = pairs_p(b, c, n, alternative="greater")
    assert one_sided == pairs_p(c, b, n, alternative="less")
    assert one_sided <= p if b > c else one_sided == 1.0


def test_more_pairs_than_a_thousand_count_as_a_thousand():
    assert pairs_p(12, 4, 5_000) == pairs_p(12, 4, 1_000_000) == pytest.approx(0.047, abs=0.001)
    assert pairs_p(51_000, 49_000, 10**6) == pytest.approx(mcnemar_p(51_000, 49_000), rel=0.1)
    assert 0.0 < pairs_p(6_000, 5_000, 20_000) < 1e-15
    low, high = pairs_interval(51_000, 49_000, 10**6)
    assert 0.0 < low < 0.002 < high < 0.003


def test_least_that_decides():
    assert [least_deciding_of(n) for n in (4, 5, 8, 20, 300)] == [None, None, 5, 5, 4]
    assert least_deciding_of(20, 0.001) == 10
    wins = deciding_wins(20, 0.05)
    for d in range(1, 21):
        decides = [pairs_p(b, d - b, 20) <= 0.05 for b in range((d + 1) // 2, d + 1)]
        assert wins[d] == d + 1 - sum(decides) if any(decides) else wins[d] > d


def test_impossible_arguments_are_refused():
    for wrong, message in (
        (lambda: pairs_p(3, 2, 4), "at most n"),
        (lambda: pairs_p(-1, 0, 4), "at least 0"),
        (lambda: pairs_p(1, 0, 4, alternative="more"), "alternative must be"),
        (lambda: pairs_interval(1, 0, 0), "at least 1"),
        (lambda: pairs_interval(1, 0, 4, level=1.0), "between 0 and 1"),
        (lambda: deciding_wins(4, 0.0), "between 0 and 1"),
        (lambda: least_deciding_of(4, 1.5), "between 0 and 1"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
