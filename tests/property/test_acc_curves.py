"""What must hold for every agent characteristic curve."""

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from robo_eval.analysis.acc import analyse, attainable_maximum, closed_form, transform

RESPONSE = st.floats(0.0, 1.0)
DIFFICULTY = st.integers(-1000, 1000).map(lambda k: k / 8)


@st.composite
def curves(draw, responses=RESPONSE):
    items = draw(st.lists(st.tuples(responses, DIFFICULTY), min_size=2, max_size=25))
    response, difficulty = (np.array(column) for column in zip(*items, strict=True))
    assume(np.ptp(difficulty) > 0)
    return response, difficulty


def _defined(found):
    return found.flag is None


@given(curves())
def test_generality_and_spread_stay_in_their_ranges(curve):
    found = analyse(*curve)
    width = found.q - found.h0
    assert -1e-9 * width <= found.area <= width * (1 + 1e-9)
    assert 0.0 <= found.spread <= width
    assert found.h0 - 1e-9 <= found.capability <= found.q + 1e-9
    if _defined(found):
        assert -1.0 <= found.normalised_generality <= 1.0
        room = found.area * (width - found.area)
        assert math.isclose(
            found.normalised_generality, 1 - found.spread**2 / room, abs_tol=1e-9 * width**2 / room
        )
    else:
        assert math.isnan(found.normalised_generality)


@given(curves())
def test_mirroring_difficulty_or_response_flips_the_sign(curve):
    response, difficulty = curve
    found = analyse(response, difficulty)
    assume(_defined(found) and found.area * (found.q - found.h0 - found.area) > 1e-6)
    mirrored = analyse(response, found.h0 + found.q - difficulty)
    inverted = analyse(1 - response, difficulty)
    for other in (mirrored, inverted):
        assert math.isclose(other.normalised_generality, -found.normalised_generality, abs_tol=1e-8)


@given(curves(), st.integers(-200, 200).map(lambda k: k / 4), st.sampled_from([0.125, 0.5, 2, 16]))
def test_unit_and_origin_of_difficulty_change_no_generality(curve, shift, scale):
    response, difficulty = curve
    found = analyse(response, difficulty)
    moved = analyse(response, difficulty + shift)
    stretched = analyse(response, difficulty * scale)
    tolerance = 1e-9 * (found.q - found.h0)
    assert math.isclose(moved.capability, found.capability + shift, abs_tol=tolerance)
    assert math.isclose(moved.area, found.area, abs_tol=tolerance)
    assert math.isclose(moved.spread, found.spread, abs_tol=1e-6 * (found.q - found.h0))
    assert math.isclose(stretched.area, found.area * scale, abs_tol=tolerance * scale)
    assert moved.flag == stretched.flag == found.flag
    if _defined(found) and found.area * (found.q - found.h0 - found.area) > 1e-6:
        for other in (moved, stretched):
            assert math.isclose(
                other.normalised_generality, found.normalised_generality, abs_tol=1e-8
            )


@given(st.lists(DIFFICULTY, min_size=2, max_size=20), st.floats(0.01, 0.99))
def test_a_constant_curve_has_generality_zero_exactly(difficulty, value):
    assume(len(set(difficulty)) > 1)
    found = analyse(np.full(len(difficulty), value), difficulty)
    assert found.normalised_generality == 0.0
    width = found.q - found.h0
    assert math.isclose(found.spread**2, found.area * (width - found.area), rel_tol=1e-9)


@given(curves(), st.randoms(use_true_random=False))
def test_order_of_items_changes_nothing(curve, random):
    response, difficulty = curve
    order = list(range(len(response)))
    random.shuffle(order)
    first, second = analyse(response, difficulty), analyse(response[order], difficulty[order])
    assert math.isclose(first.area, second.area, rel_tol=1e-12, abs_tol=1e-12)
    assert first.flag == second.flag


@given(st.lists(DIFFICULTY, min_size=2, max_size=20, unique=True), st.data())
def test_a_falling_step_is_a_ramp_of_its_cell(difficulty, data):
    levels = np.sort(difficulty)
    cut = data.draw(st.integers(1, len(levels) - 1))
    found = analyse((np.arange(len(levels)) < cut).astype(float), levels)
    ramp = levels[cut] - levels[cut - 1]
    assert math.isclose(found.spread**2, ramp**2 / 12, abs_tol=1e-9 * (found.q - found.h0) ** 2)
    assert found.normalised_generality <= attainable_maximum(levels) + 1e-12


@given(curves(), st.floats(0, 50), st.floats(0, 50))
def test_an_axis_with_assumed_ends_equals_one_with_items_there(curve, left, right):
    """A level just outside that answers as assumed gives the same curve as the fill."""
    response, difficulty = curve
    low, high = difficulty.min(), difficulty.max()
    assume(left > 1e-3 and right > 1e-3)
    filled = analyse(response, difficulty, h0=low - left, q=high + right)
    gap = 1e-6
    explicit = analyse(
        [*response, 1, 1, 0, 0],
        [*difficulty, low - left, low - gap, high + gap, high + right],
    )
    assert math.isclose(filled.area, explicit.area, abs_tol=1e-4)
    assert math.isclose(filled.spread, explicit.spread, abs_tol=1e-2)


@given(st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=2, max_size=8))
def test_ranked_curves_agree_with_the_closed_form(scores):
    found = transform("Rnk", scores, levels=4001)
    agents = found.analyse()
    for index, positions in enumerate(found.positions):
        area, spread, gamma = closed_form(positions)
        assert math.isclose(agents.area[index], area, abs_tol=1e-3)
        assert math.isclose(agents.spread[index], spread, abs_tol=2e-2)
        assert math.isclose(agents.normalised_generality[index], gamma, abs_tol=1e-2)
