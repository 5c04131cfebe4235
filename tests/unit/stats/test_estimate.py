"""An estimate says its number, or why there is none."""

import math

import pytest

from robo_eval.stats.estimate import Estimate


def estimate(**changed):
    fields = {"value": 0.5, "low": 0.25, "high": 0.75, "level": 0.95, "n": 8}
    return Estimate(**{**fields, "method": "exact", "unit": "1", **changed})


def test_prints_number_interval_and_sample_size():
    assert str(estimate()) == "0.500 [0.250, 0.750] n=8"


def test_a_number_without_an_interval_says_why():
    alone = estimate(low=None, high=None, level=None, reason="one seed")
    assert str(alone) == "0.500 n=8 (no interval: one seed)"


def test_nothing_measured_is_no_number():
    missing = Estimate.missing(reason="no episode was scored", unit="1")
    assert (missing.value, missing.n) == (None, 0)
    assert str(missing) == "- (no episode was scored)"
    with pytest.raises(ValueError, match="needs a reason"):
        estimate(value=None, low=None, high=None)


@pytest.mark.parametrize("field", ["value", "low", "high"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(field, number):
    with pytest.raises(ValueError, match=field):
        estimate(**{field: number})


@pytest.mark.parametrize(("field", "number"), [("low", 0.9), ("high", 0.1), ("n", -1)])
def test_ends_are_in_order_and_nothing_rests_on_fewer_than_none(field, number):
    with pytest.raises(ValueError, match=f"estimate.{'n' if field == 'n' else 'low'} is"):
        estimate(**{field: number})


def test_what_was_counted_is_its_own_interval():
    counted = Estimate.exact(3.0, unit="count", n=12)
    assert (counted.value, counted.low, counted.high, counted.n) == (3.0, 3.0, 3.0, 12)
