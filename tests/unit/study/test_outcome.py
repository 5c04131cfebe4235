"""What follows from raw numbers that were made so that it is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from robo_eval.analysis.aiq import mccp
from robo_eval.study.agreement import Concordance, agreement_within
from robo_eval.study.measure import SHARES
from robo_eval.study.outcome import (
    Outcome,
    StudyNumbers,
    outcome_of,
    resampled_spaces,
)
from robo_eval.study.suite import Suite

COUNT = 6


def suite(**changes: Any) -> Suite:
    tasks = [
        {"env": "CartPole-v1", "name": str(i), "experts": ["balancer"], "returns": [0, 500]}
        for i in range(COUNT)
    ]
    return Suite.model_validate({"name": "made", "tasks": tasks, **changes})


def measured(*, noise: float, trainings: int = 4, alone: int = 4) -> StudyNumbers:
    """Tests of which each needs networks larger than the one before, and is farther from it."""
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(0.0, 7.0, 200))
    needed = np.arange(1.0, COUNT + 1) * 20.0
    reached = np.clip(sizes / needed[:, None], 0.0, 1.0)
    dip = np.array(SHARES) * (1.0 - np.array(SHARES))
    mixtures = {
        (i, j): 0.9
        - 0.3 * (j - i) * (1 + i / 10) * dip
        + noise * rng.normal(size=(2, trainings, len(SHARES)))
        for i in range(COUNT)
        for j in range(i, COUNT)
    }
    return StudyNumbers(
        tests=[str(i) for i in range(COUNT)],
        experts=["balancer"] * COUNT,
        expert_performances=[np.ones(2)] * COUNT,
        sizes=sizes,
        performances=np.clip(reached + noise * rng.normal(size=reached.shape), 0.0, 1.0),
        entropies=np.ones(COUNT),
        alone=np.full((COUNT, alone), 0.9),
        mixtures={key: np.clip(one, 0.0, 1.0) for key, one in mixtures.items()},
    )


@cache
def made(noise: float = 0.01, **changes: Any) -> Outcome:
    return outcome_of(suite(), measured(noise=noise, **changes))


def test_halves_of_a_clear_study_agree():
    found = agreement_within(made(), splits=10)
    assert found["complexity"].spearman > 0.9
    assert found["dissimilarity"].spearman > 0.9


def test_ranks_of_equals_may_differ_where_numbers_agree():
    found = Concordance.of([1.0, 1.1, 1.2, 9.0], [1.2, 1.1, 1.0, 9.0])
    assert found.spearman == pytest.approx(0.2)
    assert found.pearson > 0.99
    assert found.n == 4


def test_what_does_not_vary_has_no_correlation():
    found = Concordance.of([1.0, 1.0], [1.0, 2.0])
    assert np.isnan(found.spearman)
    assert np.isnan(found.pearson)
    assert np.isnan(Concordance.mean([]).pearson)
    # What differs by rounding does not vary either.
    assert np.isnan(Concordance.of([0.3, 0.1 + 0.2, 0.3], [1.0, 2.0, 3.0]).pearson)


def test_an_expert_that_never_does_anything_is_told():
    found = replace(measured(noise=0.01), expert_performances=[np.zeros(7), *[np.ones(7)] * 5])
    (warning,) = [one for one in outcome_of(suite(), found).warnings if "learned from" in one]
    assert warning.startswith("0: performance of balancer, who is learned from, is 0 in all 7 ep")


@pytest.mark.slow
def test_halves_of_noise_do_not_agree():
    found = agreement_within(made(noise=5.0), splits=10)
    assert abs(found["complexity"].spearman) < 0.7
    assert abs(found["dissimilarity"].spearman) < 0.5


def test_one_training_cannot_be_split():
    found = agreement_within(made(trainings=1, alone=1), splits=2)
    assert np.isnan(found["dissimilarity"].spearman)
    assert np.isfinite(found["complexity"].spearman)


@pytest.mark.parametrize("rule", ["default", "envelope"])
def test_the_rule_of_the_suite_says_how_complex_tests_are(rule):
    own = measured(noise=0.05)
    outcome = outcome_of(suite(complexity=rule), own)
    other = "default" if rule == "envelope" else "envelope"
    for place, row in enumerate(own.performances):
        by_rule = mccp(own.sizes, row, variant=rule).area
        estimate = outcome.complexities[place]
        assert outcome.curves[place].area == estimate.value == by_rule
        assert outcome.others[place].area == mccp(own.sizes, row, variant=other).area
        assert estimate.low <= by_rule <= estimate.high
    assert outcome.as_dict()["complexity_rule"] == rule
    assert outcome.other_rule == other


def test_other_trainings_and_pools_would_have_found_nearby_spaces():
    outcome = made()
    spaces = resampled_spaces(suite(), outcome, draws=20, seed=3)
    assert {one.k for one in spaces} == {outcome.space.k}
    drawn = np.array([one.complexities for one in spaces])
    assert (np.ptp(drawn, axis=0) > 0.0).any()
    np.testing.assert_allclose(drawn.mean(axis=0), outcome.space.complexities, atol=0.1)
    apart = np.array([one.dissimilarities / one.d_max for one in spaces])
    wanted = outcome.space.dissimilarities / outcome.space.d_max
    np.testing.assert_allclose(apart.mean(axis=0), wanted, atol=0.1)
    again = resampled_spaces(suite(), outcome, draws=20, seed=3)
    np.testing.assert_array_equal(again[7].points, spaces[7].points)
    other = resampled_spaces(suite(), outcome, draws=20, seed=4)
    assert (other[7].points != spaces[7].points).any()


@pytest.mark.slow
def test_spaces_of_trainings_that_show_no_difference_have_one_dimension():
    own = measured(noise=0.0)
    flat = {key: np.full_like(one, 0.9) for key, one in own.mixtures.items()}
    flat[0, 1][:, 0, 4] = 0.5
    outcome = outcome_of(suite(), replace(own, mixtures=flat))
    assert outcome.space.k == 2

    spaces = resampled_spaces(suite(), outcome, draws=40)

    assert {one.k for one in spaces} == {1, 2}
