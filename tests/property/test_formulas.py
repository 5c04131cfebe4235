"""What must hold for every input of the AAI formulas."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from robo_eval import formulas as f

SHARES = st.floats(0.0, 1.0)
INNER = st.floats(0.001, 0.999)
HOURS = st.floats(0.01, 1e6)
COUNTS = st.integers(0, 500)
INCIDENTS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("near_miss", "minor", "major"), st.integers(0, 20))
)
FORMS = st.sampled_from(["linear", "exponential", "reciprocal"])
LINKS = st.sampled_from(["surprisal", "logit"])
AXES = st.fixed_dictionaries(dict.fromkeys(f.AXES, INNER))
WEIGHTS = st.one_of(
    st.sampled_from(sorted(f.WEIGHT_PROFILES)),
    st.fixed_dictionaries(dict.fromkeys(f.AXES, st.floats(0.1, 5.0))),
)
CHECKPOINTS = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 5)), min_size=2, max_size=15
).map(lambda rows: ([c / 1000 for c, _ in rows], np.cumsum([r for _, r in rows]).tolist()))
BINS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=8).map(
    lambda rows: ([q / 20 for q, _ in rows], [n for _, n in rows])
)


@given(COUNTS, HOURS, st.floats(1.0, 100.0), st.sampled_from([1, 2]))
def test_more_exposure_never_raises_a_bound(count, hours, factor, sided):
    short = f.poisson_rate_ci(count, hours, sided=sided)
    long = f.poisson_rate_ci(count, hours * factor, sided=sided)
    assert long["upper_per_h"] <= short["upper_per_h"]
    assert long["lower_per_h"] <= short["lower_per_h"]


@given(COUNTS, HOURS, st.floats(0.5, 0.99))
def test_bounds_enclose_the_rate_and_rise_with_the_count(count, hours, conf):
    bounds = f.poisson_rate_ci(count, hours, conf)
    more = f.poisson_rate_ci(count + 1, hours, conf)
    assert bounds["lower_per_h"] <= count / hours <= bounds["upper_per_h"]
    assert bounds["lower_per_h"] < more["lower_per_h"]
    assert bounds["upper_per_h"] < more["upper_per_h"]
    one = f.poisson_rate_ci(count, hours, conf, sided=1)
    assert bounds["lower_per_h"] <= one["lower_per_h"]
    assert one["upper_per_h"] < bounds["upper_per_h"]


@given(COUNTS, HOURS)
def test_a_mean_time_is_above_its_lower_bound(count, hours):
    found = f.reliability(hours, count, None, {"minor": count})
    assert found["mtbf_lower_h"] == found["mtbsi_lower_h"]
    if count:
        assert found["mtbf_lower_h"] < found["mtbf_h"] == found["mtbsi_h"]
        assert found["mtbf_h"] == pytest.approx(hours / count)


@given(INCIDENTS, HOURS, FORMS, st.sampled_from(f.SEVERITIES))
def test_safety_falls_with_incidents_and_never_with_exposure(counts, hours, form, severity):
    score = f.ss(counts, hours, form=form)
    one_more = counts | {severity: counts.get(severity, 0) + 1}
    assert f.ss(one_more, hours, form=form) <= score
    assert f.ss(counts, 2 * hours, form=form) >= score
    assert f.ss_pessimistic(counts, hours, form=form) <= score
    assert 0.0 <= score <= 1.0


@given(SHARES, SHARES)
def test_agreement_is_symmetric(a, b):
    assert f.s2r(a, b) == f.s2r(b, a)
    assert f.s2r(a, a) == 1.0


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(SHARES, INNER), min_size=1))
def test_reweighting_needs_no_order_and_no_total(contexts):
    sim = {name: rate for name, (rate, _) in contexts.items()}
    mass = {name: m for name, (_, m) in contexts.items()}
    found = f.s2r_reweighted(sim, mass, 0.5)
    expected = np.average(list(sim.values()), weights=list(mass.values()))
    assert found["ar_sim_reweighted"] == pytest.approx(expected, abs=1e-12)
    assert found["uncovered_mass"] == 0.0
    tripled = {name: 3 * mass[name] for name in reversed(mass)}
    assert f.s2r_reweighted(sim, tripled, 0.5) == pytest.approx(found)
    ess = f.s2r_reweighted(sim, mass, 0.5, n_sim_by_context=dict.fromkeys(sim, 10))
    assert 10 - 1e-9 <= ess["effective_sample_size"] <= 10 * len(sim) + 1e-9


@given(INNER, INNER, INNER)
def test_embodiment_lies_between_its_parts(ar, ss, s2r):
    found = f.embodiment(ar, ss, s2r)
    assert min(ar, ss, s2r) - 1e-12 <= found <= max(ar, ss, s2r) + 1e-12
    assert f.embodiment(s2r, ar, ss) == pytest.approx(found, abs=1e-15)


@given(AXES, WEIGHTS, st.sampled_from(f.AXES), st.floats(0.0, 1.0))
def test_the_index_rises_with_every_axis(axes, weights, axis, share):
    index = f.aai_index(axes, weights)
    raised = axes | {axis: axes[axis] + share * (1.0 - axes[axis])}
    assert f.aai_index(raised, weights) >= index - 1e-15
    assert min(axes.values()) - 1e-12 <= index <= max(axes.values()) + 1e-12


@given(AXES, WEIGHTS)
def test_unevenness_only_lowers_the_index(axes, weights):
    found = f.jaggedness(axes, weights)
    assert found["index"] <= found["weighted_arithmetic_mean"] + 1e-12
    assert 0.0 <= found["uniformity"] <= 1.0
    assert found["adjusted_index"] <= found["index"]
    even = f.jaggedness(dict.fromkeys(f.AXES, 0.5), weights)
    assert even["uniformity"] == pytest.approx(1.0, abs=1e-12)


@given(AXES, st.floats(0.1, 5.0), SHARES)
def test_an_axis_without_weight_does_not_count(axes, weight, value):
    weights = dict.fromkeys(f.AXES, weight) | {"R": 0.0}
    assert f.aai_index(axes | {"R": value}, weights) == f.aai_index(axes, weights)


@given(AXES, WEIGHTS, st.floats(1e-6, 0.1))
def test_the_error_is_the_slope_of_the_index(axes, weights, se):
    def slope(axis):
        h = 1e-6 * axes[axis]
        up, down = (f.aai_index(axes | {axis: axes[axis] + s * h}, weights) for s in (1, -1))
        return (up - down) / (2 * h)

    expected = se * math.hypot(*(slope(axis) for axis in f.AXES))
    assert f.index_delta_se(axes, se, weights) == pytest.approx(expected, rel=1e-5)


@given(CHECKPOINTS, st.floats(-5.0, 5.0), st.floats(0.0, 100.0), st.floats(0.1, 10.0))
def test_kappa_knows_no_origin_and_its_units(checkpoints, shift_c, shift_r, factor):
    c, r = checkpoints
    found = f.kappa(c, r)
    assume(found["theil_sen"] is not None)
    shifted = f.kappa([x + shift_c for x in c], [x + shift_r for x in r])
    assert shifted == pytest.approx(found, abs=1e-11)
    scaled = f.kappa([x * factor for x in c], r)
    assert scaled["theil_sen"] == pytest.approx(found["theil_sen"] * factor, abs=1e-12)


@given(CHECKPOINTS)
def test_kappa_is_the_median_over_pairs_that_spent(checkpoints):
    c, r = checkpoints
    slopes = [(c[j] - c[i]) / (r[j] - r[i]) for j in range(len(r)) for i in range(j) if r[j] > r[i]]
    found = f.kappa(c, r)
    if slopes:
        assert found["theil_sen"] == pytest.approx(np.median(slopes), abs=1e-14)
        assert found["finite_difference"] == pytest.approx((c[-1] - c[0]) / (r[-1] - r[0]))
    else:
        assert found == {"finite_difference": None, "theil_sen": None}


@given(CHECKPOINTS, st.floats(0.5, 30.0))
def test_the_plain_gain_per_day_ignores_what_was_spent(checkpoints, days):
    c, r = checkpoints
    found = f.kappa_time(c, r, days, estimator="finite_difference")
    if r[-1] > r[0]:
        assert found["time_slope_per_day"] == pytest.approx((c[-1] - c[0]) / days, abs=1e-12)


@given(
    st.tuples(*[st.floats(-2.0, 2.0)] * 3),
    st.lists(st.integers(-50, 50), min_size=5, max_size=20),
    st.floats(-10.0, 10.0),
)
def test_a_quadratic_is_recovered_wherever_it_is_looked_at(coefficients, places, at):
    assume(len(set(places)) >= 3)
    a, b, c = coefficients
    found = f.local_quadratic(places, [a + b * x + c * x * x for x in places], at)
    assert found["slope"] == pytest.approx(b + 2 * c * at, abs=1e-6)
    assert found["curvature"] == pytest.approx(2 * c, abs=1e-6)


@given(st.floats(0.001, 0.9), st.floats(0.01, 3.0), LINKS)
def test_steps_and_their_number_are_inverse(c, delta, link):
    reached = f.link_step(c, delta, link)
    assume(reached < 1 - 1e-6)
    assert reached > c
    assert f.link_steps_between(c, reached, delta, link) == pytest.approx(1.0, abs=1e-7)
    assert f.link_step(reached, -delta, link) == pytest.approx(c, abs=1e-9)
    assert f.link_steps_between(reached, c, delta, link) == pytest.approx(-1.0, abs=1e-7)


@given(SHARES, SHARES, LINKS, st.floats(0.0, 5.0))
def test_a_step_keeps_the_order(a, b, link, delta):
    low, high = sorted((a, b))
    assert f.link_step(low, delta, link) <= f.link_step(high, delta, link) + 1e-12


@given(st.floats(0.0, 0.9), st.floats(0.1, 3.0), st.floats(0.1, 3.0))
def test_power_steps_multiply(c, first, second):
    twice = f.link_power_step(f.link_power_step(c, first), second)
    assert twice == pytest.approx(f.link_power_step(c, first * second), abs=1e-9)


@given(INNER, INNER, st.floats(0.001, 1.0), st.floats(0.1, 10.0), LINKS)
def test_an_escape_takes_less_the_faster_it_is(c0, target, v, r_min, link):
    slow = f.escape_velocity(c0, target, v, r_min, link)
    fast = f.escape_velocity(c0, target, 2 * v, r_min, link)
    assert fast["resource_bound"] == pytest.approx(slow["resource_bound"] / 2)
    assert slow["time_bound"] == pytest.approx(slow["resource_bound"] / r_min)
    assert (slow["resource_bound"] == 0.0) == (target <= c0)


@given(st.floats(0.0, 0.9), st.floats(0.05, 1.0), st.floats(0.1, 0.9))
def test_the_rate_has_escaped_within_its_bound(rho0, eta, p):
    bound = f.rate_escape(rho0, eta, p)
    # The slowest path allowed, rho' = eta (1 - rho)^p, has a closed form; at the bound it is at 1.
    left = (1 - rho0) ** (1 - p) - eta * (1 - p) * bound
    assert left == pytest.approx(0.0, abs=1e-9)


@given(SHARES, SHARES, st.floats(-1.0, 1.0), st.floats(0.0, 1.0), LINKS)
def test_progress_rises_with_capability_and_slope(c, higher, slope, faster, link):
    low, high = sorted((c, higher))
    here, there = f.continuous_score(low, slope, link), f.continuous_score(high, slope, link)
    assert 0.0 <= here["score"] <= there["score"] + 1e-12 <= 1.0 + 1e-12
    assert f.continuous_score(low, slope + faster, link)["score"] >= here["score"] - 1e-12


@given(BINS, SHARES)
def test_the_frontier_falls_and_is_the_nearest_that_does(bins, q_star):
    quality, n = bins
    found = f.delegability(quality, n, q_star)
    fit = found["isotonic"]
    assert all(after <= before for before, after in pairwise(fit))
    # The pooled value of a bin, as a minimum over starts of a maximum over ends of plain means.
    size = len(quality)
    for i in range(size):
        minimax = min(
            max(np.average(quality[s:e], weights=n[s:e]) for e in range(i + 1, size + 1))
            for s in range(i + 1)
        )
        assert fit[i] == pytest.approx(minimax, abs=1e-12)
    oracle = isotonic_regression(quality, weights=n, increasing=False).x
    assert fit == pytest.approx(oracle.tolist(), abs=1e-12)
    assert found["auf"] == pytest.approx(np.mean(oracle), abs=1e-12)
    assert np.average(fit, weights=n) == pytest.approx(np.average(quality, weights=n), abs=1e-12)
    assert f.non_increasing_fit(fit, n) == fit
    assert 0.0 <= found["fraction_delegable"] <= 1.0


@given(BINS, st.integers(2, 5))
def test_an_empty_bin_changes_nothing_else(bins, factor):
    quality, n = bins
    found = f.delegability(quality, [factor * x for x in n], 0.5)
    with_empty = f.delegability([*quality, None], [*n, 0], 0.5)
    assert with_empty["isotonic"][:-1] == pytest.approx(found["isotonic"], abs=1e-12)
    assert with_empty["isotonic"][-1] is None
    assert with_empty["auf"] == pytest.approx(found["auf"], abs=1e-12)


@given(st.lists(st.tuples(SHARES, st.booleans()), min_size=1, max_size=20), SHARES)
def test_a_world_model_as_good_as_its_reference_is_worth_nothing(episodes, p_ref):
    p, y = zip(*episodes, strict=True)
    found = f.world_model(p, y, p_ref)
    assert 0.0 <= found["w"] <= 1.0
    if found["brier_ref"] > 1e-6:
        assert f.world_model([p_ref] * len(y), y, p_ref)["w"] == 0.0
    assert f.world_model([float(x) for x in y], y, p_ref)["w"] == 1.0
    assert found["brier"] == pytest.approx(np.mean((np.array(p) - np.array(y)) ** 2), abs=1e-14)


@given(
    st.lists(st.tuples(st.floats(-0.3, 0.3), SHARES), max_size=8),
    st.floats(0.01, 1.0),
    st.randoms(use_true_random=False),
)
def test_revisions_in_any_order_are_worth_the_same(rows, scale, random):
    events = [{"delta": delta, "autonomy": a} for delta, a in rows]
    found = f.self_revision(events, scale)
    assert found["r"] == pytest.approx(
        min(max(sum(d * a for d, a in rows) / scale, 0), 1), abs=1e-9
    )
    random.shuffle(events)
    assert f.self_revision(events, scale)["r"] == found["r"]
    assert f.self_revision(events, scale, positive_part=True)["r"] >= found["r"] - 1e-12


@given(
    st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=8),
    st.lists(SHARES, min_size=4, max_size=4),
    st.floats(0.1, 9.0),
)
def test_a_team_is_worth_what_it_adds(tasks, penalties, weight):
    solo, team = zip(*tasks, strict=True)
    found = f.sociality(solo, team, [weight] * len(solo), penalties)
    assert 0.0 <= found["raw"] <= found["lift"] <= 1.0
    assert found == pytest.approx(f.sociality(solo, team, None, penalties), abs=1e-12)
    assert f.sociality(solo, solo, None, penalties) == {"lift": 0.0, "raw": 0.0}


@given(st.floats(0.0, 1000.0), st.floats(0.1, 100.0), SHARES)
def test_memory_lies_between_its_parts(half_life, h_min, recall):
    found = f.memory(half_life, h_min, recall)
    parts = (found["retention"], recall)
    assert min(parts) - 1e-12 <= found["m"] <= max(parts) + 1e-12
    longer = f.memory(half_life + 1.0, h_min, recall)
    assert longer["retention"] > found["retention"]


@given(st.integers(0, 50), SHARES, st.floats(0.1, 20.0))
def test_more_tools_never_hurt(n, success, prior):
    found = f.tool_economy(n, success, prior)
    assert 0.0 <= found <= f.tool_economy(n + 1, success, prior) <= success


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=9))
def test_what_is_returned_is_verified_or_not(rows):
    returned, verified = [max(row) for row in rows], [min(row) for row in rows]
    found = f.cognitive(returned, verified, k=9)
    assert found["vrp_at_k"] == pytest.approx(sum(verified) / (9 * len(rows)))
    if found["hr_at_k"] is not None:
        assert found["hr_at_k"] * sum(returned) + sum(verified) == pytest.approx(sum(returned))


@given(st.floats(-100, 100), st.floats(-50, 50), st.floats(0.01, 50))
def test_calibration_turns_round_with_its_anchors(x, a0, width):
    forth, back = f.calibrate(x, a0, a0 + width), f.calibrate(x, a0 + width, a0)
    assert forth + back == pytest.approx(1.0, abs=1e-9)


@given(SHARES, st.floats(0.01, 1), SHARES, st.floats(0.01, 1))
def test_the_margin_changes_its_sign_when_the_sides_swap(q_agent, se_agent, q_expert, se_expert):
    margin = f.superhuman_margin(q_agent, se_agent, q_expert, se_expert)
    assert f.superhuman_margin(q_expert, se_expert, q_agent, se_agent) == -margin


@given(st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_recovery_lies_in_its_interval(counts):
    found = f.recovery_autonomy(*counts)
    if found["ra"] is not None:
        assert 0.0 <= found["lower"] <= found["ra"] <= found["upper"] <= 1.0
    else:
        assert counts == (0, 0)
