"""Progress of task families: slopes, curvatures and what follows from them, by hand and at once."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.gates.axes.improvement import kappa_estimate, patched_everywhere
from robo_eval.gates.axes.progress import (
    Progress,
    index_over_time,
    progress_by_family,
    progress_of,
)
from robo_eval.gates.axes.settings import ProgressSettings
from robo_eval.log.evidence import Checkpoint

DAY = 86_400 * 10**9
NOON = 20_500 * DAY + DAY // 2
FEW = ProgressSettings(resamples=200)


def at(day: float, capability: float, **more: Any) -> Checkpoint:
    given = {"family": "pick", "resources": float(day), **more}
    return Checkpoint(line=2, time_ns=int(NOON + day * DAY), capability=capability, **given)


def unlinked(y: float) -> float:
    """The capability whose surprisal is y."""
    return -math.expm1(-y)


def curved(
    days: Sequence[float], slope: float = 0.02, curvature: float = 0.0, spend: float = 1.0
) -> list[Checkpoint]:
    """Checkpoints on a parabola of the surprisal over resources that begins at 0.3."""
    return [
        at(d, unlinked(0.3 + slope * spend * d + curvature / 2.0 * (spend * d) ** 2),
           resources=spend * d)
        for d in days
    ]  # fmt: skip


def number(found: Estimate) -> float:
    assert found.value is not None, found.reason
    return found.value


def low(found: Estimate) -> float:
    assert found.low is not None, found.reason
    return found.low


# The fit of many samples at once -----------------------------------------------------------------


def fits(
    x: np.ndarray, y: np.ndarray, place: float, day: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    found = formulas.local_quadratic(x, y, place, group=day, counts=counts)
    return np.asarray(found["slope"]), np.asarray(found["curvature"])


def test_the_worked_example_of_the_scale_by_the_fit_of_many_samples() -> None:
    x, y = np.arange(5.0), np.array([0.50, 0.53, 0.58, 0.65, 0.74])
    day = np.arange(5)
    slope, curvature = fits(x, y, 2.0, day, np.ones((1, 5)))
    assert slope[0] == pytest.approx(0.06, abs=1e-9)
    assert curvature[0] == pytest.approx(0.02, abs=1e-9)


@given(
    data=st.lists(st.tuples(st.floats(-1.0, 1.0), st.floats(0.0, 5.0), st.integers(0, 5)),
                  min_size=5, max_size=40),
    where=st.floats(-1.0, 1.0),
    seed=st.integers(0, 100),
)  # fmt: skip
@settings(max_examples=60)
def test_the_fit_of_many_samples_is_that_of_each(
    data: list[tuple[float, float, int]], where: float, seed: int
) -> None:
    """Days count as often as they are drawn, with all of their points."""
    x, y, day = (np.array(column) for column in zip(*data, strict=True))
    x = np.round(x, 2)  # places that are all but equal determine nothing to nine digits
    counts = np.random.default_rng(seed).integers(0, 3, size=(4, 6)).astype(float)
    slopes, curvatures = fits(x, y, where, day, counts)
    for often, slope, curvature in zip(counts, slopes, curvatures, strict=True):
        which = np.repeat(np.arange(len(x)), often[day].astype(int))
        alone = formulas.local_quadratic(x[which], y[which], where)
        if alone["slope"] is None or alone["curvature"] is None:
            assert math.isnan(slope)
            assert math.isnan(curvature)
        elif np.ptp(x[which]) > 0.3 and not math.isnan(slope):
            size = 1.0 + abs(alone["slope"]) + abs(alone["curvature"])
            assert slope == pytest.approx(alone["slope"], abs=1e-9 * size**2)
            assert curvature == pytest.approx(alone["curvature"], abs=1e-9 * size**2)


@pytest.mark.parametrize("x", [[1.0] * 6, [0.0, 1.0] * 4, [0.0, 0.5, 1.0, 0.2]])
def test_too_few_points_or_places_have_no_fit(x: list[float]) -> None:
    day = np.zeros(len(x), dtype=np.intp)
    slope, curvature = fits(np.array(x), np.arange(float(len(x))), 0.0, day, np.ones((1, 1)))
    assert np.isnan([slope[0], curvature[0]]).all()


# Slope and curvature -----------------------------------------------------------------------------


def test_a_parabola_of_the_link_has_its_slope_and_curvature_at_the_last_checkpoint() -> None:
    found = progress_of(curved(range(12), slope=0.02, curvature=0.004), FEW)
    assert number(found.slope) == pytest.approx(0.02 + 0.004 * 11, abs=1e-9)
    assert number(found.curvature) == pytest.approx(0.004, abs=1e-9)
    assert number(found.mean_curvature) == pytest.approx(0.004, abs=1e-9)
    assert low(found.mean_curvature) == pytest.approx(0.004, abs=1e-6)
    assert (found.accelerates, found.holds) == (True, True)
    assert number(found.elasticity) == pytest.approx(11 * 0.004 / 0.064, abs=1e-9)
    assert (found.slope.unit, found.slope.method, found.slope.n) == (
        "surprisal/resource",
        "moving_block_bootstrap",
        12,
    )


def test_a_straight_line_neither_accelerates_nor_slows_down() -> None:
    found = progress_of(curved(range(12), slope=0.05), FEW)
    assert number(found.curvature) == pytest.approx(0.0, abs=1e-12)
    assert (found.accelerates, found.holds) == (False, True)


def test_a_slope_that_falls_too_fast_does_not_hold() -> None:
    steep = curved(range(12), slope=0.3, curvature=-0.02)
    assert progress_of(steep, FEW).holds is False
    assert progress_of(steep, ProgressSettings(resamples=200, tolerance=0.021)).holds is True
    assert progress_of(steep, FEW).accelerates is False


def test_the_link_of_the_settings_is_used() -> None:
    points = curved(range(8), slope=0.05)
    found = progress_of(points, ProgressSettings(resamples=200, link="logit"))
    y = [formulas.link_value(point.capability, "logit") for point in points]
    assert number(found.slope) == pytest.approx(
        formulas.local_quadratic(range(8), y, at=7)["slope"] or math.nan
    )
    assert found.slope.unit == "logit/resource"


def test_with_a_bandwidth_slopes_are_local_and_curvature_is_their_mean() -> None:
    rng = np.random.default_rng(2)
    points = [at(d, 0.2 + 0.01 * d + rng.normal(0.0, 0.02)) for d in range(30)]
    found = progress_of(points, ProgressSettings(resamples=200, bandwidth=5.0))
    y = [formulas.link_value(point.capability) for point in points]
    fits = [formulas.local_quadratic(range(30), y, at=t, bandwidth=5.0) for t in range(30)]
    assert number(found.slope) == pytest.approx(fits[-1]["slope"] or math.nan, abs=1e-9)
    assert number(found.curvature) == pytest.approx(fits[-1]["curvature"] or math.nan, abs=1e-9)
    mean = float(np.mean([fit["curvature"] for fit in fits]))
    assert number(found.mean_curvature) == pytest.approx(mean, abs=1e-9)
    assert found.mean_curvature.value != pytest.approx(found.curvature.value)


def test_a_bandwidth_that_holds_everything_is_none() -> None:
    points = curved(range(10), slope=0.03, curvature=0.002)
    wide = progress_of(points, ProgressSettings(resamples=200, bandwidth=100.0))
    whole = progress_of(points, FEW)
    for name in ("slope", "curvature", "mean_curvature"):
        assert getattr(wide, name).value == pytest.approx(getattr(whole, name).value, abs=1e-9)
        assert getattr(wide, name).low == pytest.approx(getattr(whole, name).low, abs=1e-6)


def test_the_interval_is_that_of_blocks_of_days_with_all_their_checkpoints() -> None:
    rng = np.random.default_rng(5)
    points = [at(d / 3, 0.3 + 0.01 * d / 3 + rng.normal(0.0, 0.02)) for d in range(30)]
    found = progress_of(points, FEW, seed=4)
    days = sorted({point.day for point in points})
    n, block = len(days), math.ceil(len(days) ** (1 / 3))
    starts = np.random.default_rng(4).integers(
        0, n - block + 1, size=(200, math.ceil(n / block)), dtype=np.int32
    )
    slopes, bends = [], []
    for row in starts:
        drawn = [days[i] for start in row for i in range(start, start + block)][:n]
        own = [point for day in drawn for point in points if point.day == day]
        y = [formulas.link_value(point.capability) for point in own]
        fit = formulas.local_quadratic(
            [point.resources for point in own], y, at=points[-1].resources
        )
        slopes.append(fit["slope"])
        bends.append(fit["curvature"])
    assert len(points) > n  # several checkpoints on a day
    low_end, high_end = np.quantile(np.array(slopes, dtype=float), [0.025, 0.975])
    assert found.slope.low == pytest.approx(min(low_end, number(found.slope)), abs=1e-9)
    assert found.slope.high == pytest.approx(max(high_end, number(found.slope)), abs=1e-9)
    low_end = np.quantile(np.array(bends, dtype=float), 0.025)
    assert found.curvature.low == pytest.approx(min(low_end, number(found.curvature)), abs=1e-9)


def test_the_same_seed_has_the_same_result_in_any_order() -> None:
    rng = np.random.default_rng(3)
    points = [at(d, 0.3 + 0.01 * d + rng.normal(0.0, 0.03)) for d in range(20)]
    assert progress_of(points, FEW, seed=1) == progress_of(points[::-1], FEW, seed=1)
    assert progress_of(points, FEW, seed=1).slope.low != progress_of(points, FEW, seed=2).slope.low


@pytest.mark.slow
def test_the_interval_of_a_noisy_slope_covers_it_mostly() -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(100):
        y = 0.3 + 0.02 * np.arange(40) + rng.normal(0.0, 0.05, 40)
        found = progress_of([at(d, unlinked(one)) for d, one in enumerate(y)], FEW)
        hits += low(found.slope) <= 0.02 <= (found.slope.high or math.nan)
    assert hits >= 90


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_below_five_checkpoints_there_is_no_slope(n: int) -> None:
    found = progress_of(curved(range(n)), FEW)
    assert found.slope.value is None
    assert found.slope.reason == f"{n} checkpoints; a fit needs 5"
    assert (found.accelerates, found.holds) == (None, None)
    assert found.score.value is None
    assert number(found.capability) == pytest.approx(unlinked(0.3 + 0.02 * (n - 1)))


def test_below_three_days_there_is_a_slope_without_interval() -> None:
    found = progress_of(curved([i / 10 for i in range(8)]), FEW)
    assert number(found.slope) == pytest.approx(0.02)
    assert (found.slope.low, found.slope.reason) == (None, "2 days; an interval needs 3")
    assert (found.accelerates, found.holds) == (None, None)
    assert found.escape.resources is None


def test_where_nothing_is_spent_there_is_no_slope() -> None:
    found = progress_of([at(d, 0.5, resources=3.0) for d in range(9)], FEW)
    assert found.slope.reason == "fewer than three different amounts of resources"
    assert found.kappa.reason == "nothing was spent between checkpoints"
    assert found.kappa_time.value is None
    assert found.spend_rate.value == 0.0
    assert found.accelerates is None


def test_capability_that_never_changes_has_a_slope_of_0() -> None:
    found = progress_of([at(d, 0.5) for d in range(9)], FEW)
    assert number(found.slope) == pytest.approx(0.0, abs=1e-12)
    assert found.steps == 0.0
    assert found.elasticity.value is None or abs(found.elasticity.value) < 1e-3


def test_perfect_capability_is_no_error() -> None:
    found = progress_of([at(d, 1.0) for d in range(9)], FEW)
    assert number(found.slope) == pytest.approx(0.0, abs=1e-9)


# Over days ---------------------------------------------------------------------------------------


def test_the_worked_gain_per_day_of_the_scale() -> None:
    points = [at(d, c, resources=r) for d, c, r in
              zip(range(5), [0.40, 0.41, 0.425, 0.43, 0.50], [0.0, 2.0, 4.0, 6.0, 8.0],
                  strict=True)]  # fmt: skip
    found = progress_of(points, FEW)
    assert found.kappa.value == pytest.approx(0.006875, abs=1e-9)
    assert number(found.kappa_time) == pytest.approx(2.0 * 0.006875, abs=1e-9)
    assert low(found.kappa_time) == pytest.approx(2.0 * low(found.kappa))
    c, r = [p.capability for p in points], [p.resources for p in points]
    assert found.kappa == kappa_estimate(c, r, resamples=200)


# Elasticity, steps, score, escape ----------------------------------------------------------------


def test_a_falling_slope_has_no_elasticity() -> None:
    found = progress_of(curved(range(12), slope=-0.01), FEW)
    assert (found.elasticity.value, found.elasticity.reason) == (None, "the slope is not above 0")


def test_a_slope_that_may_be_0_bounds_no_elasticity() -> None:
    rng = np.random.default_rng(1)
    points = [at(d, 0.5 + 0.001 * d + rng.normal(0.0, 0.05)) for d in range(30)]
    found = progress_of(points, FEW, seed=1)
    assert low(found.slope) < 0.0
    if found.elasticity.value is not None:
        assert found.elasticity.low is None
        assert "of the resamples the slope is not above 0" in str(found.elasticity.reason)


def test_steps_and_the_next_step_are_those_of_the_scale() -> None:
    points = [at(d, c) for d, c in enumerate([0.4, 0.5, 0.6, 0.7, 0.925])]
    found = progress_of(points, FEW)
    assert found.steps == pytest.approx(3.0, abs=1e-9)
    assert found.escape.target == pytest.approx(0.9625, abs=1e-9)


def test_the_worked_score_of_the_scale() -> None:
    """Capability 0.5 and slope 0.03 at the last checkpoint, whatever the curvature."""
    end = -math.log(0.5)
    points = [at(d, unlinked(end + 0.03 * (d - 11) + 0.00025 * (d - 11) ** 2)) for d in range(12)]
    found = progress_of(points, FEW)
    assert number(found.score) == pytest.approx(0.3682990406, abs=1e-8)
    assert low(found.score) == pytest.approx(number(found.score), abs=1e-6)


def test_the_worked_escape_of_the_scale() -> None:
    end = -math.log(0.4)
    points = [at(d, unlinked(end + 0.05 * 2.0 * (d - 11)), resources=2.0 * d) for d in range(3, 12)]
    found = progress_of(points, FEW, target=0.9)
    assert found.escape.spend_rate == pytest.approx(2.0)
    assert found.escape.resources == pytest.approx(27.72588722, abs=1e-5)
    assert found.escape.days == pytest.approx(13.86294361, abs=1e-5)


def test_a_target_that_is_reached_takes_nothing() -> None:
    found = progress_of(curved(range(2)), FEW, target=0.1)
    assert (found.escape.resources, found.escape.days) == (0.0, 0.0)


def test_a_day_on_which_nothing_was_spent_bounds_no_time() -> None:
    points = curved(range(12), slope=0.05)
    idle = [*points, at(12, points[-1].capability, resources=11.0)]
    found = progress_of(idle, FEW)
    assert found.escape.spend_rate == 0.0
    assert found.escape.days is None


# Families, patches, days -------------------------------------------------------------------------


def test_nothing_from_before_a_change_by_people_is_looked_back_at() -> None:
    flat = [at(d, 0.3) for d in range(8)]
    lifted = [at(d, 0.6 + 0.01 * (d - 8), human_patches=int(d == 8)) for d in range(8, 16)]
    found = progress_of(flat + lifted, FEW)
    assert (found.left_out, found.checkpoints) == (8, 8)
    assert number(found.kappa) == pytest.approx(0.01)
    assert found.steps == pytest.approx(formulas.link_steps_between(0.6, 0.67))


def test_a_change_by_people_is_one_for_all_families() -> None:
    points = [at(d, 0.3, human_patches=int(d == 4)) for d in range(8)]
    others = [at(d + 0.01, 0.4, family="place") for d in range(8)]
    found = progress_by_family([*points, *others], FEW)
    assert list(found) == ["pick", "place"]
    assert [one.left_out for one in found.values()] == [4, 4]


@given(
    notes=st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.integers(0, 2)),
                   max_size=15, unique_by=lambda one: one[:2]),
)  # fmt: skip
def test_patches_are_those_since_the_checkpoint_before_of_any_family(
    notes: list[tuple[int, str, int]],
) -> None:
    points = [at(d, 0.5, family=f, human_patches=p) for d, f, p in notes]
    for point in patched_everywhere(points):
        before = [p.time_ns for p in points
                  if p.family == point.family and p.time_ns < point.time_ns]  # fmt: skip
        since = max(before, default=-1)
        assert point.human_patches == sum(
            p.human_patches for p in points if since < p.time_ns <= point.time_ns
        )


def test_what_is_no_series_of_one_family_is_refused() -> None:
    with pytest.raises(InputError, match="no checkpoint"):
        progress_of([], FEW)
    with pytest.raises(InputError, match="pick, place"):
        progress_of([at(0, 0.5), at(1, 0.5, family="place")], FEW)
    with pytest.raises(InputError, match="running total"):
        progress_of([at(0, 0.5, resources=2.0), at(1, 0.5, resources=1.0)], FEW)
    assert progress_by_family([], FEW) == {}


def test_progress_is_json_without_infinity() -> None:
    found = progress_of(curved(range(9)), FEW)
    text = json.dumps(plain(found), allow_nan=False)
    assert json.loads(text)["slope"]["unit"] == "surprisal/resource"
    assert json.loads(text)["escape"]["target"] == found.escape.target


@given(
    rows=st.lists(st.tuples(st.floats(0.0, 6.0), st.floats(0.0, 1.0), st.floats(0.0, 2.0)),
                  min_size=1, max_size=12, unique_by=lambda one: int(one[0] * DAY)),
    bandwidth=st.one_of(st.none(), st.floats(0.1, 5.0)),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_whatever_the_checkpoints_intervals_hold_their_values(
    rows: list[tuple[float, float, float]], bandwidth: float | None
) -> None:
    spent = np.cumsum([one[2] for one in rows])
    points = [at(d, c, resources=float(r)) for (d, c, _), r in
              zip(sorted(rows), spent, strict=True)]  # fmt: skip
    found = progress_of(points, ProgressSettings(resamples=100, bandwidth=bandwidth))
    assert isinstance(found, Progress)
    for name in ("slope", "curvature", "mean_curvature", "elasticity", "score"):
        one = getattr(found, name)
        assert (one.value is None) <= (one.reason is not None)
        if one.low is not None:
            assert one.low <= one.value <= one.high
    json.dumps(plain(found), allow_nan=False)


@pytest.mark.parametrize("bandwidth", [None, 8.0])
def test_a_thousand_checkpoints_have_a_slope(bandwidth: float | None) -> None:
    rng = np.random.default_rng(0)
    points = [at(i / 20, unlinked(0.2 + 0.001 * i + abs(rng.normal(0.0, 0.05))))
              for i in range(1000)]  # fmt: skip
    found = progress_of(points, ProgressSettings(bandwidth=bandwidth))
    assert low(found.slope) < number(found.slope)


# Over time ---------------------------------------------------------------------------------------


def test_a_day_counts_only_with_every_family_and_its_last_checkpoints() -> None:
    points = [at(d, 0.4 + 0.1 * d, family="pick") for d in range(3)]
    points += [at(0, 0.2, family="place"), at(2, 0.1, family="place"),
               at(2.2, 0.8, family="place")]  # fmt: skip
    found = index_over_time(points)
    assert [one.day for one in found] == [20_500, 20_502]
    assert [one.capability for one in found] == pytest.approx([0.3, 0.7])
    assert {one.families for one in found} == {2}


def test_drifts_and_patches_of_a_day_that_does_not_count_are_those_of_the_next() -> None:
    points = [
        at(0, 0.5), at(0, 0.5, family="place", drift="payload"),
        at(1, 0.5, drift="friction", human_patches=2),
        at(2, 0.5, drift="firmware", human_patches=1), at(2, 0.5, family="place"),
        at(3, 0.5), at(3, 0.5, family="place"),
    ]  # fmt: skip
    found = index_over_time(points)
    assert [one.drifts for one in found] == [("payload",), ("firmware", "friction"), ()]
    assert [one.human_patches for one in found] == [0, 3, 0]
    assert plain(found[1])["day"] == 20_502


def test_no_checkpoint_is_no_day() -> None:
    assert index_over_time([]) == ()
