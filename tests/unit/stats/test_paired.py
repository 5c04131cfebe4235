import math

import numpy as np
import pytest
from scipy import stats

from robo_eval.stats.paired import (
    PairedTable,
    bonett_price_interval,
    least_deciding_pairs,
    mcnemar_p,
    paired_success_difference,
    paired_table,
    smallest_mcnemar_p,
    success_ratio_interval,
)
from robo_eval.stats.proportions import wilson_interval


@pytest.mark.parametrize("alternative", ["two", "greater", "less"])
def test_exact_p_equals_the_binomial_test(alternative):
    scipy_name = {"two": "two-sided"}.get(alternative, alternative)
    b, c = np.divmod(np.arange(1, 400), 20)
    p = mcnemar_p(b, c, alternative=alternative)
    for i in range(len(b)):
        expected = stats.binomtest(int(b[i]), int(b[i] + c[i]), alternative=scipy_name).pvalue
        assert p[i] == pytest.approx(expected, rel=1e-10)


def test_mid_p_counts_what_was_seen_half():
    for b, c in ((8, 2), (5, 5), (0, 6), (60, 40)):
        seen = stats.binom.pmf(b, b + c, 0.5)
        assert mcnemar_p(b, c, mid_p=True) == pytest.approx(
            min(1.0, mcnemar_p(b, c) - seen) if b != c else 1.0, rel=1e-10
        )
        one_sided = mcnemar_p(b, c, alternative="greater")
        assert mcnemar_p(b, c, alternative="greater", mid_p=True) == pytest.approx(
            one_sided - seen / 2.0, rel=1e-10
        )


def test_no_discordant_pair_decides_nothing():
    for mid_p in (False, True):
        for alternative in ("two", "greater", "less"):
            assert mcnemar_p(0, 0, alternative=alternative, mid_p=mid_p) == 1.0


def test_many_pairs_keep_their_digits():
    expected = 2.0 * stats.binom.sf(50_999, 100_000, 0.5)
    assert mcnemar_p(51_000, 49_000) == pytest.approx(expected, rel=1e-9)


def test_pairs_are_counted_by_how_they_ended():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (2, 200))
    table = paired_table(first, second)
    assert table.both == np.sum((first == 1) & (second == 1))
    assert table.only_first == np.sum((first == 1) & (second == 0))
    assert table.only_second == np.sum((first == 0) & (second == 1))
    assert table.n == 200
    found = paired_success_difference(table)
    difference = first - second
    assert found.value == pytest.approx(difference.mean())
    assert found.standard_error == pytest.approx(difference.std(ddof=1) / 200**0.5)
    assert found.unpaired_standard_error == pytest.approx(
        np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 200)
    )
    assert found.discordant == table.only_first + table.only_second


def test_one_pair_has_an_interval_and_no_standard_error():
    found = paired_success_difference(paired_table([1], [0]))
    assert (found.standard_error, found.unpaired_standard_error) == (None, None)
    assert -1.0 <= found.low < found.high <= 1.0
    assert found.p == 1.0


def test_no_discordant_pair_is_not_certainty():
    low, high = bonett_price_interval(0, 0, 20)
    assert low < -0.05
    assert high == pytest.approx(-low)


def test_interval_covers_on_average():
    """Exact, n = 20: all tables of a few true chances."""
    n = 20
    b, c = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = b + c <= n
    low, high = bonett_price_interval(b[possible], c[possible], n)
    coverage = []
    for p1, p2 in ((0.1, 0.1), (0.2, 0.05), (0.3, 0.1), (0.4, 0.4), (0.05, 0.02)):
        outcomes = np.stack([b[possible], c[possible], n - b[possible] - c[possible]], axis=1)
        chance = stats.multinomial.pmf(outcomes, n, [p1, p2, 1 - p1 - p2])
        inside = (low <= p1 - p2) & (p1 - p2 <= high)
        coverage.append(float(chance[inside].sum()))
    assert min(coverage) > 0.94


def test_fewest_pairs_by_side():
    assert least_deciding_pairs(0.05, alternative="greater") == 5
    assert least_deciding_pairs(0.01) == 8
    assert smallest_mcnemar_p(0) == smallest_mcnemar_p(1) == 1.0
    for n in range(1, 30):
        assert smallest_mcnemar_p(n, alternative="greater") == pytest.approx(
            mcnemar_p(n, 0, alternative="greater")
        )
        assert smallest_mcnemar_p(n, alternative="less") == pytest.approx(
            mcnemar_p(0, n, alternative="less")
        )


def test_impossible_tables_are_refused():
    with pytest.raises(ValueError, match=r"b \+ c must be at most n, given 3 \+ 2 of 4"):
        bonett_price_interval(3, 2, 4)
    with pytest.raises(ValueError, match="n must be at least 1, given 0"):
        paired_success_difference(PairedTable(both=0, only_first=0, only_second=0, neither=0))
    with pytest.raises(ValueError, match="only_first must be at least 0, given -1"):
        PairedTable(both=0, only_first=-1, only_second=0, neither=0)
    with pytest.raises(ValueError, match="first must hold 0 and 1 only, given nan"):
        paired_table([1, float("nan")], [1, 0])
    with pytest.raises(ValueError, match="of equal length, given 2 and 1"):
        paired_table([1, 0], [1])
    with pytest.raises(ValueError, match="shape"):
        paired_table([[1, 0]], [[1, 0]])
    with pytest.raises(ValueError, match="b must be at least 0"):
        mcnemar_p(-1, 0)
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        least_deciding_pairs(0.0)


def test_ratio_of_matched_rates_against_its_test_from_scratch():
    """The score statistic with the likeliest table under a ratio, found by a search."""
    from scipy.optimize import minimize

    table = PairedTable(both=10, only_first=3, only_second=8, neither=4)
    low, high = success_ratio_interval(table)
    for ratio, wanted in ((low, 1.959964), (high, -1.959964)):

        def cells(x, ratio=ratio):
            both, second = 1.0 / (1.0 + np.exp(-x))
            first = (ratio - 1.0) * both + ratio * second
            return both, first, second, 1.0 - both - first - second

        def misfit(x, cells=cells):
            shares = cells(x)
            if min(shares) <= 0.0:
                return 1e9
            counts = (table.both, table.only_first, table.only_second, table.neither)
            return -sum(count * np.log(share) for count, share in zip(counts, shares, strict=True))

        starts = ([0.0, 0.0], [-1.0, -1.0], [-2.0, -2.0], [-1.0, -3.0], [-3.0, -1.0])
        options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 5000}
        best = min(
            (minimize(misfit, x, method="Nelder-Mead", options=options) for x in starts),
            key=lambda found: found.fun,
        )
        both, first, second, _ = cells(best.x)
        p1, p2 = both + first, both + second
        variance = table.n * (p1 + ratio**2 * p2 - 2.0 * ratio * both - (p1 - ratio * p2) ** 2)
        score = (13 - ratio * 18) / math.sqrt(variance)
        assert score == pytest.approx(wanted, abs=1e-4)


def test_ratio_of_matched_rates_at_the_edges():
    def ends(both, first, second, neither):
        return success_ratio_interval(
            PairedTable(both=both, only_first=first, only_second=second, neither=neither)
        )

    assert ends(0, 3, 0, 5) is None
    assert ends(0, 0, 20, 0)[0] == 0.0
    # Where every pair succeeds on both sides, it is Wilson's interval of n of n.
    assert ends(20, 0, 0, 0)[0] == pytest.approx(wilson_interval(20, 20)[0])
    # Sides changed, ends inverted.
    low, high = ends(10, 3, 8, 4)
    assert ends(10, 8, 3, 4) == (pytest.approx(1.0 / high), pytest.approx(1.0 / low))
    with pytest.raises(ValueError, match="level"):
        success_ratio_interval(PairedTable(both=1, only_first=0, only_second=0, neither=0), level=2)
