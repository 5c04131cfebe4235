"""ACC numbers against hand calculations and the first figure of the paper.

Hernandez-Orallo et al. (2021), Scientific Reports 11:22822.
"""

import math

import numpy as np
import pytest

from robo_eval.analysis.acc import analyse, attainable_maximum, closed_form, transform

TOLERANCE = 1e-6


def test_falling_step_on_five_levels():
    found = analyse([1, 1, 1, 0, 0], [0, 1, 2, 3, 4])
    assert found.area == pytest.approx(2.5, abs=TOLERANCE)
    assert found.expected_difficulty == pytest.approx(19 / 6 / 2.5, abs=TOLERANCE)
    assert found.spread == pytest.approx(0.2886751, abs=TOLERANCE)
    assert found.generality == pytest.approx(3.4641016, abs=TOLERANCE)
    assert found.normalised_generality == pytest.approx(0.9777778, abs=TOLERANCE)
    assert found.flag is None


@pytest.mark.parametrize(("response", "area"), [([0, 0, 1, 1, 1], 2.5), ([0, 0, 0, 1, 1], 1.5)])
def test_rising_steps_on_five_levels(response, area):
    found = analyse(response, range(5))
    assert found.area == pytest.approx(area, abs=TOLERANCE)
    assert found.normalised_generality == pytest.approx(-0.9777778, abs=TOLERANCE)
    if area == 1.5:
        assert found.spread**2 == pytest.approx(7.4166667, abs=TOLERANCE)


def test_constant_curve_on_two_levels():
    found = analyse([0.25, 0.25], [0, 4])
    assert (found.area, found.normalised_generality) == (1.0, 0.0)
    assert found.spread == pytest.approx(1.7320508, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("solved", "area", "squared", "spread", "generality", "gamma", "printed"),
    [
        ((6, 5, 4), 1.25, 0.7708333, 0.8779711, 1.1389897, 0.1777778, ("1.25", "1.14")),
        ((8, 7, 0), 1.375, 0.1927083, 0.4389856, 2.2779791, 0.7757576, ("1.38", "2.28")),
    ],
)
def test_the_two_agents_of_the_first_figure(
    solved, area, squared, spread, generality, gamma, printed
):
    response = np.concatenate([[1] * k + [0] * (8 - k) for k in solved])
    found = analyse(response, np.repeat([0, 1, 2], 8))
    assert found.area == pytest.approx(area, abs=TOLERANCE)
    assert found.spread**2 == pytest.approx(squared, abs=TOLERANCE)
    assert found.spread == pytest.approx(spread, abs=TOLERANCE)
    assert found.generality == pytest.approx(generality, abs=TOLERANCE)
    assert found.normalised_generality == pytest.approx(gamma, abs=TOLERANCE)
    # The figure rounds 1.375 half up.
    assert (f"{found.capability + 1e-9:.2f}", f"{found.generality:.2f}") == printed


def test_repeated_items_and_an_axis_that_starts_at_one():
    found = analyse([1, 0, 1, 0, 0], [1, 1, 2, 3, 3])
    np.testing.assert_array_equal(found.levels, [1, 2, 3])
    np.testing.assert_array_equal(found.curve, [0.5, 1.0, 0.0])
    np.testing.assert_array_equal(found.counts, [2, 1, 2])
    assert (found.h0, found.q) == (1.0, 3.0)
    assert found.area == pytest.approx(1.25, abs=TOLERANCE)
    assert found.capability == pytest.approx(2.25, abs=TOLERANCE)
    assert found.expected_difficulty == pytest.approx(1 + 13 / 12 / 1.25, abs=TOLERANCE)
    assert found.spread == pytest.approx(0.7772816, abs=TOLERANCE)
    assert found.normalised_generality == pytest.approx(0.3555556, abs=TOLERANCE)


def test_left_fill_moves_the_start_and_not_the_capability():
    found = analyse([1, 0, 1, 0, 0], [1, 1, 2, 3, 3], h0=0)
    assert found.area == pytest.approx(2.25, abs=TOLERANCE)
    assert found.capability == pytest.approx(2.25, abs=TOLERANCE)
    assert found.spread**2 == pytest.approx(0.6041667, abs=TOLERANCE)
    assert found.normalised_generality == pytest.approx(0.6419753, abs=TOLERANCE)


def test_closed_form_of_positions():
    assert closed_form([0.2, 0.4, 0.9]) == pytest.approx((0.5, 0.2943920, 0.6533333), abs=TOLERANCE)


def test_beating_a_reference():
    found = transform("ARef", [[3, 5], [4, 5], [2, 9]], reference=0)
    np.testing.assert_array_equal(found.response, [[0.5, 0.5], [1.0, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(found.difficulty, [0.5, 0.25])


@pytest.mark.parametrize(
    ("n_levels", "best"), [(3, 0.889), (4, 0.963), (5, 0.978), (6, 0.987), (8, 0.993)]
)
def test_best_falling_step_on_a_uniform_grid(n_levels, best):
    assert attainable_maximum(range(n_levels)) == pytest.approx(best, abs=5e-4)


def test_smooth_curves_have_the_moments_of_their_distribution():
    from scipy.stats import logistic, norm

    h = np.linspace(-60.0, 60.0, 24001)
    gaussian = analyse(norm.sf(h, 1.5, 2.0), h)
    assert gaussian.capability == pytest.approx(1.5, abs=1e-5)
    assert gaussian.spread == pytest.approx(2.0, abs=1e-5)
    sigmoid = analyse(logistic.sf(h, -0.5, 1.2), h)
    assert sigmoid.capability == pytest.approx(-0.5, abs=1e-5)
    assert sigmoid.spread == pytest.approx(1.2 * math.pi / math.sqrt(3), abs=1e-5)
