"""Means over recordings with their intervals, and verdicts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.task import Constant
from robo_eval_calibration.intervals import Verdict, half_width, judged, random_effects


def test_random_effects_cover_recordings_that_differ():
    rng = np.random.default_rng(0)
    covers = []
    for between in (0.0, 0.5, 3.0):
        inside = 0
        for _ in range(300):
            sds = rng.uniform(0.5, 2.0, 4)
            values = 1.0 + between * rng.standard_normal(4) + sds * rng.standard_normal(4)
            estimate, _ = random_effects(values, sds, unit="kg")
            inside += estimate.low <= 1.0 <= estimate.high
        covers.append(inside / 300)
    assert min(covers) > 0.92


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 2)), min_size=2, max_size=8),
    st.floats(0.1, 10),
    st.floats(-10, 10),
)
def test_intervals_move_with_the_unit(pairs, scale, shift):
    values, sds = np.array(pairs).T
    one, _ = random_effects(values, sds, unit="")
    other, _ = random_effects(scale * values + shift, scale * sds, unit="")
    for name in ("value", "low", "high"):
        assert getattr(other, name) == pytest.approx(
            scale * getattr(one, name) + shift, rel=1e-6, abs=1e-6
        )


def test_one_recording_has_its_own_interval_and_says_so():
    estimate, between = random_effects([1.3], [0.1], unit="kg")
    assert half_width(estimate) == pytest.approx(0.196, abs=1e-3)
    assert estimate.method == "jacobian"
    assert "one recording" in estimate.reason
    assert between == 0.0


def test_no_interval_is_narrower_than_a_quantum():
    estimate, _ = random_effects([0.02, 0.02, 0.02], [0.0, 0.0, 0.0], unit="s", quantum=0.004)
    assert half_width(estimate) == pytest.approx(0.002)


def test_verdicts_follow_widths_and_columns():
    constants = [
        Constant(name=name, low=0.0, high=2.0, nominal=1.0, wanted=0.05)
        for name in ("told", "vague", "one", "other", "unseen")
    ]
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((100, 5)) * [100.0, 1.0, 1.0, 1.0, 0.0]
    rows[:, 3] = rows[:, 2] + 1e-3 * rows[:, 3]
    halves = {"told": 0.01, "vague": 0.2, "one": 0.4, "other": 0.4, "unseen": 2.0}
    said = judged(constants, halves, rows)
    assert {name: one.verdict for name, one in said.items()} == {
        "told": Verdict.IDENTIFIED,
        "vague": Verdict.WEAK,
        "one": Verdict.NOT_IDENTIFIABLE,
        "other": Verdict.NOT_IDENTIFIABLE,
        "unseen": Verdict.NOT_IDENTIFIABLE,
    }
    assert said["one"].partners == ("other",)
    assert "no prediction depends on it" in said["unseen"].reason
