"""Self-improvement and upkeep from checkpoints, with numbers worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval.gates.axes.improvement import Streak, Upkeep, kappa_estimate, streak_of, upkeep_of
from robo_eval.log.evidence import Checkpoint

DAY = 86_400 * 10**9
NOON = 20_500 * DAY + DAY // 2
C = [0.40, 0.41, 0.425, 0.43, 0.50]
R = [0.0, 2.0, 4.0, 6.0, 8.0]
DRIFTS = ("payload", "friction", "lighting", "firmware")


def at(day: float, capability: float, **more: Any) -> Checkpoint:
    given = {"family": "pick", "resources": 0.0, **more}
    return Checkpoint(line=2, time_ns=int(NOON + day * DAY), capability=capability, **given)


def rising(days: Sequence[float], slope: float = 0.01, **more: Any) -> list[Checkpoint]:
    """A unit of resource a day, and what it brings."""
    return [at(day, 0.3 + slope * day, resources=float(day), **more) for day in days]


def streak(points: Sequence[Checkpoint], **more: Any) -> Streak:
    return streak_of(points, **{"least": 0.005, "window_days": 7.0, "resamples": 200, **more})


def upkeep(points: Sequence[Checkpoint], drifts: Sequence[str] = DRIFTS) -> Upkeep:
    return upkeep_of(points, share=0.95, drifts=drifts)


# A random walk -----------------------------------------------------------------------------------


def walk(seed: int, days: int = 20, a_day: int = 4) -> list[Checkpoint]:
    """Capability that goes up or down at each of several checkpoints a day, as by chance."""
    steps = np.random.default_rng(seed).normal(0.0, 0.03 / a_day**0.5, days * a_day)
    capability = np.clip(0.5 + np.cumsum(steps), 0.0, 1.0)
    return [at(i / a_day - 0.4, float(c), resources=i / a_day) for i, c in enumerate(capability)]


def test_a_random_walk_is_no_streak():
    found = [streak(walk(seed), resamples=100) for seed in range(40)]
    assert sum(one.days >= 7 for one in found) <= 2
    # Their slopes alone are steep enough for days, in more of them than a test may let pass.
    shown = [one for one in found if one.p_value is not None and one.p_value <= 0.025]
    assert len(shown) <= 4
    text = next(one.text for one in found if one.p_value and one.p_value > 0.3)
    assert text.startswith("gains of a random walk, p = 0.")


def test_the_signs_of_the_gains_are_flipped():
    gains = [0.02, 0.01, -0.005, 0.03, 0.01, 0.02, 0.015]
    capability = [0.3, *(0.3 + np.cumsum(gains))]
    found = streak([at(day, c, resources=day) for day, c in enumerate(capability)])
    signs = np.array(list(itertools.product([1, -1], repeat=7)))
    expected = np.mean((signs * np.abs(gains)).sum(axis=1) >= sum(gains) - 1e-12)
    assert found.p_value == pytest.approx(expected, abs=1e-3)
    # A fall is as surprising the other way round.
    fallen = streak([at(day, 0.9 - c, resources=day) for day, c in enumerate(capability)])
    assert fallen.p_value == pytest.approx(1.0 - expected, abs=1e-3)


def test_what_people_brought_is_no_gain_of_the_policy():
    points = [at(day, 0.3 + 0.3 * (day >= 5), resources=day) for day in range(10)]
    points[5] = at(5, 0.6, resources=5, human_patches=1)
    assert streak(points).p_value == 1.0
    assert streak([at(0, 0.5)]).p_value is None


# The slope ---------------------------------------------------------------------------------------


def test_the_golden_slope_is_theil_sens():
    found = kappa_estimate(C, R)
    assert found.value == pytest.approx(0.006875, abs=1e-12)
    assert found.n == 5
    assert found.low is not None
    assert found.high is not None
    assert found.low <= 0.006875 <= found.high
    assert (found.unit, found.method) == ("capability/resource", "moving_block_bootstrap")


@pytest.mark.parametrize("n", [2, 3, 4])
def test_below_five_checkpoints_there_is_a_slope_without_interval(n):
    found = kappa_estimate(C[:n], R[:n])
    assert found.value is not None
    assert (found.low, found.high) == (None, None)
    assert found.reason == f"{n} checkpoints; an interval needs 5"


@pytest.mark.parametrize(
    ("capability", "resources", "reason"),
    [([], [], "no checkpoint"), ([0.4], [3.0], "nothing was spent between checkpoints"),
     (C, [7.0] * 5, "nothing was spent between checkpoints")],
)  # fmt: skip
def test_where_nothing_was_spent_there_is_no_slope(capability, resources, reason):
    found = kappa_estimate(capability, resources)
    assert (found.value, found.low, found.reason) == (None, None, reason)


def test_where_hardly_anything_was_spent_there_is_no_interval():
    found = kappa_estimate([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.9], [0.0] * 8 + [1.0])
    assert found.value == pytest.approx(0.8)
    assert found.low is None
    assert found.reason == "too few checkpoints between which something was spent"


def test_the_bootstrap_is_the_same_for_a_seed_and_draws_blocks_of_neighbours():
    rng = np.random.default_rng(1)
    c = np.linspace(0.3, 0.6, 12) + rng.normal(0.0, 0.02, 12)
    r = np.arange(12.0)
    once, again, other = (kappa_estimate(c, r, seed=seed) for seed in (3, 3, 4))
    assert once == again
    assert (once.value, once.low != other.low) == (other.value, True)
    # By hand: blocks of ceil(12^(1/3)) = 3, four of them, and the median of all pairs of each.
    starts = np.random.default_rng(3).integers(0, 10, size=(2000, 4), dtype=np.int32)
    slopes = []
    for row in starts:
        own = [i for start in row for i in range(start, start + 3)]
        pairs = [
            (c[j] - c[i]) / (r[j] - r[i])
            for k, i in enumerate(own)
            for j in own[k + 1 :]
            if r[i] != r[j]
        ]
        slopes.append(np.median(pairs) if pairs else np.nan)
    low, high = np.nanquantile(slopes, [0.025, 0.975])
    assert (once.low, once.high) == (pytest.approx(low), pytest.approx(high))


def test_a_falling_capability_has_a_negative_slope_and_interval():
    found = kappa_estimate(C[::-1], R)
    assert found.value is not None
    assert found.value < 0.0
    assert found.low is not None
    assert found.low < found.value


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, -0.5, float("nan")])
def test_a_level_is_between_0_and_1(level):
    with pytest.raises(InputError, match="level"):
        kappa_estimate(C, R, level=level)


def test_a_higher_level_is_a_wider_interval():
    wide, narrow = kappa_estimate(C, R, level=0.99), kappa_estimate(C, R, level=0.8)
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low <= narrow.low
    assert (wide.level, narrow.level) == (0.99, 0.8)


@pytest.mark.parametrize(
    ("capability", "resources"),
    [([float("nan"), *C[1:]], R), (C, [float("inf"), *R[1:]]), (C, R[::-1]), (C, [-1.0, *R[1:]]),
     (C, R[:4])],
)  # fmt: skip
def test_what_is_no_series_is_refused(capability, resources):
    with pytest.raises(InputError):
        kappa_estimate(capability, resources)
    with pytest.raises(InputError, match="resamples"):
        kappa_estimate(C, R, resamples=0)


@given(slope=st.floats(-1.0, 1.0), n=st.integers(5, 40))
def test_a_straight_line_has_its_slope_and_no_doubt(slope, n):
    found = kappa_estimate([slope * i for i in range(n)], list(range(n)), resamples=100)
    assert found.value == pytest.approx(slope, abs=1e-9)
    assert found.low == pytest.approx(slope, abs=1e-9)
    assert found.high == pytest.approx(slope, abs=1e-9)


def test_of_many_checkpoints_some_are_read_from_the_first_to_the_last():
    c = np.linspace(0.1, 0.9, 10_000)
    found = kappa_estimate(c, np.arange(10_000.0))
    assert found.value == pytest.approx(0.8 / 9999)
    assert found.n == 2000


# Days in a row -----------------------------------------------------------------------------------


def test_days_in_a_row_are_counted_from_the_first_with_an_interval():
    found = streak(rising(range(11)))
    # The fifth day is the first with five checkpoints.
    assert (found.days, found.of_days) == (7, 11)
    assert found.kappa.value == pytest.approx(0.01)
    assert found == streak(rising(range(11))[::-1])


def test_no_checkpoint_is_no_day():
    found = streak([])
    assert (found.days, found.of_days, found.kappa.value) == (0, 0, None)


@pytest.mark.parametrize("slope", [0.0, -0.01, 0.004])
def test_a_slope_that_is_too_small_passes_on_no_day(slope):
    assert streak(rising(range(12), slope)).days == 0
    assert streak(rising(range(12), slope)).kappa.value == pytest.approx(slope)


def test_a_slope_of_exactly_the_least_passes():
    assert streak(rising(range(11), 2.0**-7), least=2.0**-7).days == 7


def test_an_interval_that_reaches_0_does_not_pass_whatever_the_point_says():
    noise = [0.0, 0.3, -0.2, 0.3, -0.3, 0.4, -0.1, 0.3, -0.2, 0.4, 0.0]
    points = [at(i, 0.4 + 0.02 * i + d, resources=float(i)) for i, d in enumerate(noise)]
    assert streak(points).days < 3


def test_a_day_without_a_checkpoint_ends_the_streak():
    days = [*range(8), *range(9, 13)]  # none on day 8
    assert streak(rising(range(13))).days == 9
    found = streak(rising(days))
    # Days 4 to 7, and 9 to 12: each looks back over 7 days, the empty one included.
    assert (found.days, found.of_days) == (4, 13)


def test_each_day_looks_back_over_the_window_only():
    """A week of growth, and then none: the window forgets it."""
    points = rising(range(8)) + [at(d, 0.37, resources=float(d)) for d in range(8, 20)]
    found = streak(points)
    assert 4 <= found.days < 11
    assert streak(points, window_days=100.0).days > found.days


def test_several_checkpoints_of_a_day_are_one_day():
    often = [at(i / 5, 0.3 + 0.002 * i, resources=(i + 2) / 5) for i in range(-2, 33)]
    found = streak(often)
    assert (found.days, found.of_days) == (7, 7)


def test_days_are_those_of_utc_whatever_the_zone_of_the_note():
    """Midnight of UTC parts days: 23:59 and 00:01 are two."""
    minute = 1 / 1440
    points = rising([d + 0.5 - minute for d in range(8)])  # 23:59
    assert streak(points).of_days == 8
    assert streak(rising([d + 0.5 + minute for d in range(8)])).of_days == 8
    two = [at(0.5 - minute, 0.3), at(0.5 + minute, 0.3, resources=1.0)]
    assert streak(two).of_days == 2


def test_what_people_brought_is_no_improvement_of_its_own():
    """A patch that lifts the capability is not looked back over."""
    flat = [at(d, 0.3, resources=float(d)) for d in range(8)]
    lifted = [
        at(d, 0.6, resources=float(d), human_patches=int(d == 8)) for d in range(8, 16)
    ]  # fmt: skip
    assert streak(flat + lifted).days == 0
    unsaid = [at(d, 0.6, resources=float(d)) for d in range(8, 16)]
    assert streak(flat + unsaid).kappa.reason is None
    assert "people changed something before 1" in str(streak(flat + lifted).kappa.reason)


def test_ten_thousand_checkpoints_are_a_streak():
    points = [at(i / 100, 0.1 + 8e-5 * i, resources=i / 100, family="pick") for i in range(10_000)]
    assert streak(points).days >= 100
    assert upkeep(points, ["payload"]).kept >= 100


# Upkeep ------------------------------------------------------------------------------------------


def kept_days(n: int = 8, **more: Any) -> list[Checkpoint]:
    """Days at the same capability, each drift on one of them."""
    return [
        at(d, 0.8, drift=DRIFTS[d - 1] if 0 < d <= len(DRIFTS) else "", **more) for d in range(n)
    ]


def test_kept_through_every_drift_is_days_in_a_row():
    found = upkeep(kept_days(8))
    assert (found.days, found.kept, found.missing_drifts, found.reason) == (8, 8, (), "")


@pytest.mark.parametrize("drift", DRIFTS)
def test_each_drift_has_to_happen(drift):
    points = [p for p in kept_days(8) if p.drift != drift] + [at(DRIFTS.index(drift) + 1, 0.8)]
    found = upkeep(points)
    assert (found.days, found.kept, found.missing_drifts) == (0, 8, (drift,))
    assert found.reason == f"no drift of {drift} in 8 days"


def test_a_drift_before_the_first_checkpoint_was_not_kept_through():
    points = kept_days(8)[1:]  # payload set in before the day all others are compared with
    assert upkeep(points).missing_drifts == ("payload",)


def test_capability_may_fall_by_a_share_and_no_further():
    for capability, days in ((0.76, 9), (0.759, 8)):
        points = [*kept_days(8), at(8, capability)]
        assert upkeep(points).days == days
    assert upkeep([*kept_days(8), at(8, 0.7)]).reason == "below 0.95 of the first day on 1 day"


def test_a_change_by_people_starts_the_count_anew():
    patched = [*kept_days(8), at(8, 0.8, human_patches=1)]
    assert (upkeep(patched).days, upkeep(patched).patched) == (8, 1)
    more = [at(9 + d, 0.8, drift=DRIFTS[d] if d < 4 else "") for d in range(10)]
    found = upkeep(patched + more)
    assert (found.days, found.kept) == (10, 10)
    assert found.reason == "people changed something on 1 day"
    early = [at(d, 0.8, drift=p.drift, human_patches=int(d == 3)) for d, p in
             enumerate(kept_days(8))]  # fmt: skip
    # Payload and friction came before it, and count no more.
    assert (upkeep(early).days, upkeep(early).missing_drifts) == (
        0,
        ("payload", "friction", "lighting"),
    )


def test_a_missing_day_ends_the_stretch():
    points = [p for p in kept_days(12) if p.time_ns != NOON + 8 * DAY]
    found = upkeep(points)
    assert (found.days, found.kept) == (8, 8)
    assert found.reason == "1 day without a checkpoint"


def test_the_last_checkpoint_of_a_day_is_its_capability():
    points = [*kept_days(8), at(5.2, 0.1), at(5.3, 0.8), at(6.2, 0.1)]
    found = upkeep(points)
    assert found.kept == 6
    assert "on 1 day" in found.reason


def test_a_day_counts_only_with_every_family():
    """Means over different families are not like with like: the weak one must not be left out."""
    both = kept_days(8) + [at(d, 0.4, family="place") for d in range(8) if d != 5]
    found = upkeep(both, ["payload"])
    assert (found.days, found.kept) == (5, 5)
    assert found.reason == "1 day on which a family has none (place)"
    full = [*both, at(5, 0.4, family="place")]
    assert upkeep(full, ["payload"]).days == 8


def test_other_days_are_compared_with_the_first_that_has_every_family():
    alone = [at(0, 0.99)]
    both = [at(d, 0.8, family=f, drift="payload" if d == 3 else "")
            for d in range(1, 9) for f in ("pick", "place")]  # fmt: skip
    found = upkeep(alone + both, ["payload"])
    assert (found.days, found.kept) == (8, 8)


def test_families_that_never_meet_keep_nothing_up():
    points = [at(d, 0.8, family=f"family-{d % 2}") for d in range(8)]
    found = upkeep(points)
    assert (found.days, found.kept) == (0, 0)
    assert found.reason == "no day on which every family has a checkpoint"


def test_a_patch_on_a_day_that_does_not_count_is_a_patch():
    points = kept_days(8) + [at(d, 0.8, family="place") for d in range(8)]
    assert upkeep([*points, at(8, 0.8, human_patches=2)]).patched == 1


def test_no_checkpoint_keeps_nothing():
    assert upkeep([]) == Upkeep(
        days=0, kept=0, missing_drifts=DRIFTS, patched=0, reason="no day"
    )  # fmt: skip


@given(
    days=st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 1), st.sampled_from(["", *DRIFTS])),
                  min_size=1, max_size=14),
    gone=st.integers(0, 13),
)  # fmt: skip
def test_upkeep_never_exceeds_what_was_kept_and_a_gap_never_helps(days, gone):
    points = [at(d, c, human_patches=p, drift=drift) for d, (c, p, drift) in enumerate(days)]
    found = upkeep(points)
    assert 0 <= found.days <= found.kept <= len(days)
    if 0 < gone < len(points):  # the first is what others are compared with
        less = upkeep(points[:gone] + points[gone + 1 :])
        assert less.days <= found.days
        assert less.kept <= found.kept
