"""Resampling in bins is resampling, in a time that does not grow with the sample."""

import numpy as np
import pytest
from scipy import stats

from robo_eval.stats._resample import LARGE, bins_of, means_in_bins
from robo_eval.stats.clustered import resampled_ratios
from robo_eval.stats.resampling import mean_interval, stratified_mean_interval

RESAMPLES = 20_000
SAMPLES = {
    "few values": np.random.default_rng(1).integers(0, 5, 400) / 4,
    "grid": np.round(np.random.default_rng(2).beta(4, 1, 900) * 200) / 200,
    "continuous": np.random.default_rng(3).beta(5, 1, 2_000),
    "heavy tail": np.random.default_rng(4).pareto(2.5, 1_000),
    "one outlier": np.append(np.random.default_rng(5).random(599), 1_000.0),
    "successes": (np.random.default_rng(6).random(3_000) < 0.97).astype(float),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_bins_keep_number_mean_and_variance(name):
    x = np.sort(SAMPLES[name])
    bins = bins_of(x)
    assert bins.counts.min() >= 1
    assert len(bins.counts) <= 16
    assert bins.counts.sum() == len(x)
    assert bins.counts @ bins.means / len(x) == pytest.approx(x.mean())
    between = bins.counts @ (bins.means - x.mean()) ** 2 / len(x)
    within = bins.counts @ bins.variances / len(x)
    assert between + within == pytest.approx(x.var())
    assert within <= 0.03 * x.var()


def test_few_values_are_resampled_exactly():
    bins = bins_of(np.sort(SAMPLES["few values"]))
    assert bins.means.tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert not bins.variances.any()


@pytest.mark.parametrize("name", SAMPLES)
def test_means_in_bins_are_distributed_as_means_of_single_draws(name):
    x = np.sort(SAMPLES[name])
    found = means_in_bins(bins_of(x), len(x), RESAMPLES, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    single = np.concatenate(
        [x[rng.integers(0, len(x), (1_000, len(x)))].mean(axis=1) for _ in range(RESAMPLES // 1000)]
    )
    assert found.mean() == pytest.approx(x.mean(), abs=5 * x.std() / np.sqrt(len(x) * RESAMPLES))
    assert found.std() == pytest.approx(x.std() / np.sqrt(len(x)), rel=0.03)
    # Ties of a discrete mean are no difference of the distributions.
    noise = 1e-9 * rng.standard_normal((2, RESAMPLES))
    assert stats.ks_2samp(found + noise[0], single + noise[1]).pvalue > 1e-4


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize(("ours", "theirs"), [("bca", "BCa"), ("percentile", "percentile")])
def test_intervals_of_large_samples_equal_those_of_scipy_up_to_chance(name, ours, theirs):
    x = SAMPLES[name]
    assert len(x) >= LARGE
    found = mean_interval(x, method=ours, resamples=RESAMPLES)
    expected = stats.bootstrap(
        (x,), np.mean, method=theirs, n_resamples=5_000, batch=500, rng=np.random.default_rng(1)
    ).confidence_interval
    assert found.method == ours
    # An end of 5,000 resamples moves by a fortieth of the width; sixfold is no chance.
    width = expected.high - expected.low
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.1 * width)


@pytest.mark.slow
@pytest.mark.parametrize("over", ["these", "like_these"])
def test_the_threshold_changes_no_stratified_interval_beyond_chance(over, monkeypatch):
    rng = np.random.default_rng(7)
    strata = [np.clip(rng.normal(0.2 * i, 0.2, n), 0, 1) for i, n in enumerate((300, 40, 700, 500))]
    in_bins = stratified_mean_interval(strata, over=over, resamples=RESAMPLES)
    monkeypatch.setattr("robo_eval.stats.resampling.LARGE", 10**9)
    single = stratified_mean_interval(strata, over=over, resamples=RESAMPLES)
    width = single.high - single.low
    assert in_bins.value == single.value
    assert in_bins != single
    assert (in_bins.low, in_bins.high) == pytest.approx((single.low, single.high), abs=0.05 * width)


def test_ratios_of_many_clusters_are_those_of_few_up_to_chance(monkeypatch):
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 4, 600)
    sums = rng.binomial(sizes, 0.3)
    alike = resampled_ratios(sums, sizes, resamples=RESAMPLES)
    monkeypatch.setattr("robo_eval.stats.clustered.LARGE", 10**9)
    single = resampled_ratios(sums, sizes, resamples=RESAMPLES)
    assert stats.ks_2samp(alike, single).pvalue > 1e-4
    assert alike.mean() == pytest.approx(sums.sum() / sizes.sum(), abs=0.001)


@pytest.mark.parametrize(
    ("sums", "sizes", "match"),
    [([], [], "no clusters"), ([1.0], [0], "at least 1"), ([1.0], [1, 2], "equal length")],
)
def test_impossible_clusters_are_refused(sums, sizes, match):
    with pytest.raises(ValueError, match=match):
        resampled_ratios(sums, sizes)


def test_a_million_values_take_as_long_as_a_thousand():
    """Were each draw made by itself, this would take minutes and gigabytes."""
    x = np.random.default_rng(9).random(1_000_000)
    found = mean_interval(x, resamples=2_000)
    half = 1.96 * x.std() / 1_000
    assert found.method == "bca"
    assert (found.low, found.high) == pytest.approx(
        (x.mean() - half, x.mean() + half), abs=0.15 * half
    )
