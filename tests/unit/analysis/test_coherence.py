"""The coherence score: worked examples, numerics at the edges, and input that is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from robo_eval.analysis.coherence import (
    POINTS,
    auc,
    auc_interval,
    coherence,
    generalised_mean,
    plausible_rate,
)
from robo_eval.core.errors import InputError, ShapeError

# Scores and percentages at p = 1, .5, 0, -.5, -1; exact area, with 5 and with 21 points.
WORKED = [
    ((50, 100), (75, 72.855339, 70.710678, 68.629150, 66.666667), 70.752200, 70.757125, 70.752397),
    ((80, 80, 20), (60, 55.555556, 50.396842, 45, 40), 50.250934, 50.238099, 50.250425),
    (
        (90, 60, 30, 0),
        (45.000025, 32.262472, 2.006221, 0.001587, 0.000400),
        14.386033, 14.192623, 14.393056,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("scores", "means", "area", "five", "many"), WORKED)
def test_worked_examples(scores, means, area, five, many):
    shares = np.array(scores) / 100
    found = coherence(shares)
    assert [100 * found.means[p] for p in (1, 0.5, 0, -0.5, -1)] == pytest.approx(means, abs=1e-6)
    assert 100 * found.area == pytest.approx(area, abs=1e-4)
    assert 100 * auc(shares, points=5) == pytest.approx(five, abs=1e-6)
    assert 100 * auc(shares, points=21) == pytest.approx(many, abs=1e-6)


@pytest.mark.parametrize(
    ("floor", "area"), [(1e-9, 14.07), (1e-6, 14.39), (1e-4, 15.33), (1e-3, 16.94), (1e-2, 21.80)]
)
def test_the_area_of_a_profile_with_a_zero_depends_on_the_floor(floor, area):
    assert 100 * auc([0.9, 0.6, 0.3, 0.0], floor=floor) == pytest.approx(area, abs=0.005)


def test_weighted_means():
    found = generalised_mean([1.0, 0.25], [1, 0, -1], weights=[3, 1])
    assert 100 * np.asarray(found) == pytest.approx([81.25, 70.710678, 57.142857], abs=1e-6)


def test_the_area_is_that_of_an_adaptive_quadrature():
    scores = [0.9, 0.6, 0.3, 1e-6]
    parts = [
        quad(lambda p: generalised_mean(scores, p), low, high, limit=200)[0]
        for low, high in ((-1, 0), (0, 1))
    ]
    assert auc(scores) == pytest.approx(sum(parts) / 2, abs=1e-6)


def test_large_exponents_do_not_overflow():
    scores = [0.9, 0.6, 0.3, 0.0]
    assert generalised_mean(scores, -50) == pytest.approx(1e-6, rel=0.05)
    assert generalised_mean(scores, 800) == pytest.approx(0.9, rel=0.01)
    assert generalised_mean(scores, -np.inf) == pytest.approx(1e-6)
    assert generalised_mean(scores, np.inf) == pytest.approx(0.9)


@pytest.mark.parametrize("p", [0.0, 1e-17, -1e-12, 9.9e-9])
def test_the_mean_is_smooth_at_zero(p):
    scores = [0.9, 0.6, 0.3, 0.0]
    around = [generalised_mean(scores, sign * 1.1e-8) for sign in (-1, 1)]
    assert around[0] <= generalised_mean(scores, p) <= around[1]
    assert around[1] - around[0] < 1e-8


def test_several_profiles_are_what_they_are_alone():
    profiles = np.random.default_rng(0).random((7, 5))
    assert auc(profiles) == pytest.approx([auc(one) for one in profiles], abs=1e-12)
    table = generalised_mean(profiles, [1.0, 0.0])
    assert table.shape == (7, 2)
    assert table[3, 1] == generalised_mean(profiles[3], 0.0)


def test_bottlenecks_are_what_raising_one_domain_adds():
    found = coherence([0.8, 0.2, 0.8], domains=["see", "plan", "move"], step=0.1)
    assert found.weakest == "plan"
    assert [one.domain for one in found.bottlenecks] == ["plan", "move", "see"]
    assert found.bottlenecks[0].gain == pytest.approx(auc([0.8, 0.3, 0.8]) - auc([0.8, 0.2, 0.8]))
    full = coherence([1.0, 0.5]).bottlenecks
    assert {one.domain: one.gain for one in full}["1"] == 0.0


def test_a_zero_shows_what_another_floor_makes_of_it():
    found = coherence([0.9, 0.6, 0.3, 0.0])
    assert (found.n_floored, found.floor) == (1, 1e-6)
    assert 100 * found.contrast_area == pytest.approx(16.94, abs=0.005)
    assert coherence([0.9, 0.6]).contrast_area is None
    assert len(found.curve) == len(found.exponents) == POINTS
    assert 0.0 in found.exponents


# Intervals


def test_an_interval_holds_the_score_and_is_the_same_for_the_same_seed():
    rng = np.random.default_rng(1)
    episodes = [rng.random(40) < share for share in (0.9, 0.6, 0.8)]
    found = auc_interval(episodes, resamples=400)
    assert found.low < found.value < found.high
    assert found.value == auc([np.mean(row) for row in episodes])
    assert (found.n, found.reason) == (120, None)
    assert auc_interval(episodes, resamples=400) == found
    assert auc_interval(episodes, resamples=400, seed=1) != found


def test_a_domain_without_success_is_said_with_what_it_may_hide():
    found = auc_interval([[1, 1, 0, 1], [0] * 20], resamples=200)
    expected = auc([0.75, plausible_rate(20)])
    assert found.reason is not None
    assert found.reason.startswith("1 domain is 0 in all episodes")
    assert found.reason.endswith(f"{expected:.4f}")


def test_a_plausible_rate_falls_with_the_episodes():
    # Jeffreys: quantile of Beta(1/2, n + 1/2).
    assert plausible_rate(20) == pytest.approx(0.1171, abs=5e-4)
    assert plausible_rate(100) < plausible_rate(20) < plausible_rate(1)


# What is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auc([0.5, 1.2]), r"scores\[1\] is 1.2; it must be in \[0, 1\]"),
        (lambda: auc([0.5, float("nan")]), r"scores\[1\] is nan"),
        (lambda: auc([[0.5, 0.1], [0.5, -0.1]]), r"scores\[1, 1\] is -0.1"),
        (lambda: auc(["a"]), "scores must hold numbers"),
        (lambda: auc([0.5], points=4), "points is 4; it must be odd"),
        (lambda: auc([0.5], floor=0.0), "floor is 0.0"),
        (lambda: auc([0.5, 0.5], weights=[0, 0]), "not all 0"),
        (lambda: auc([0.5, 0.5], weights=[1, -1]), "not negative"),
        (lambda: coherence([0.5], step=0.0), "step is 0.0"),
        (lambda: auc_interval([]), "episodes is empty"),
        (lambda: auc_interval([[0.5], []]), r"episodes\[1\] has no episode"),
        (lambda: auc_interval([[0.5], [2.0]]), r"episodes\[1\]\[0\] is 2.0"),
        (lambda: auc_interval([[0.5]], level=1.0), "level is 1.0"),
        (lambda: plausible_rate(0), "n is 0"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: auc([]),
        lambda: auc(0.5),
        lambda: auc([0.5, 0.5], weights=[1]),
        lambda: coherence([[0.5], [0.5]]),
        lambda: coherence([0.5, 0.6], domains=["one"]),
        lambda: generalised_mean([0.5], float("nan")),
    ],
)
def test_shapes_that_do_not_fit_are_refused(call):
    with pytest.raises(ShapeError):
        call()
