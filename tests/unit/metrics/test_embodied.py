"""Reliability, safety, agreement, recovery, control and throughput of a robot."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from robo_eval import metrics
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.metrics.agreement import compare_sides
from robo_eval.metrics.config import MetricConfig
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.unconditional import pairs_interval, pairs_p

QUICK = MetricConfig(resamples=500)
FEW = settings(max_examples=8)  # a table each time


def rows(outcomes, *, side="real", task="pick", prefix="", **columns):
    """One scored episode an outcome."""
    n = len(outcomes)
    table = {
        "episode_id": [f"{prefix}{side}-{task}-{i}" for i in range(n)],
        "side": side,
        "task": task,
        "policy": "p",
        "quality": [float(ok) for ok in outcomes],
        "success": [bool(ok) for ok in outcomes],
        "end_reason": ["success" if ok else "failure" for ok in outcomes],
        **columns,
    }
    return pd.DataFrame(table)


def pairs(real, sim, *, side="real", task="pick", level=0, seeds=None):
    """Matched episodes of both sides; by default each pair has a seed of its own."""
    ids = [f"{task}-{level}-{i}" for i in range(len(real))]
    shared = {"pair_id": ids, "seed": seeds or list(range(len(real))), "level": level}
    return pd.concat(
        [
            rows(real, side=side, task=task, prefix=f"l{level}", **shared),
            rows(sim, side="sim", task=task, prefix=f"l{level}", **shared),
        ],
        ignore_index=True,
    )


def ends(estimate: Estimate) -> tuple:
    return estimate.value, estimate.low, estimate.high


# Actuation reliability ---------------------------------------------------------------------------


def test_one_task_has_the_exact_interval():
    found = metrics.actuation_reliability(rows([1] * 17 + [0] * 3))
    assert ends(found) == pytest.approx((0.85, 0.6210731735, 0.9679290628))
    assert (found.n, found.method, found.reason) == (20, "clopper_pearson", None)
    shown = metrics.actuation_reliability(rows([1] * 9 + [0]), interval="wilson")
    assert ends(shown) == pytest.approx((0.9, 0.5958499732, 0.9821237869))
    assert ends(metrics.actuation_reliability(rows([1] * 10))) == pytest.approx(
        (1.0, 0.6915028922, 1.0)
    )


def test_sides_never_mix():
    table = pd.concat(
        [rows([1, 1, 0]), rows([0, 0], side="twin"), rows([1, 1, 1, 1], side="sim")],
        ignore_index=True,
    )
    found = {s: metrics.actuation_reliability(table, side=s) for s in ("real", "twin", "sim")}
    assert [found[side].n for side in found] == [3, 2, 4]
    assert [found[side].value for side in found] == pytest.approx([2 / 3, 0.0, 1.0])


def test_without_real_episodes_there_is_no_reliability():
    found = metrics.actuation_reliability(rows([1, 1], side="twin"))
    assert ends(found) == (None, None, None)
    assert "no scored episode on side real" in found.reason


def test_stopped_and_lost_episodes_are_no_successes():
    table = rows([1, 1, 0, 0])
    table.loc[2, "end_reason"] = "safety_stop"
    table.loc[3, "end_reason"] = "out_of_bounds"
    lost = rows([0], prefix="lost").assign(quality=None, success=None, end_reason="lost")
    found = metrics.actuation_reliability(pd.concat([table, lost], ignore_index=True))
    assert (found.value, found.n) == (0.5, 4)
    assert "4 of 5 scored (1 lost)" in found.reason


def test_several_tasks_speak_of_themselves_and_of_tasks_like_them():
    counts = {"a": 9, "b": 8, "c": 10, "d": 5}
    table = pd.concat(
        [
            rows([1] * k + [0] * (10 - k), task=task, seed=range(10 * i, 10 * i + 10))
            for i, (task, k) in enumerate(counts.items())
        ],
        ignore_index=True,
    )
    found = metrics.actuation_reliability(table)
    assert ends(found) == pytest.approx((0.8, *binomtest(32, 40).proportion_ci(0.95, "exact")))
    new = metrics.actuation_reliability(table, interval="new_task")
    assert ends(new) == pytest.approx((0.8, 0.408, 0.958), abs=0.001)
    assert (new.n, new.method) == (4, "beta_binomial_profile")
    two = metrics.actuation_reliability(table[table["task"].isin(["a", "b"])], interval="new_task")
    assert (two.value, two.reason) == (None, "fewer than 3 tasks say nothing of others like them")
    # A seed that repeats is one episode, which counts by its share.
    twice = pd.concat([table, table.assign(episode_id=table["episode_id"] + "-again")])
    again = metrics.actuation_reliability(twice, interval="new_task")
    assert ends(again) == pytest.approx(ends(new))
    by_task = metrics.reliability_by_task(table)
    assert {task: found.value for task, found in by_task.items()} == {
        task: k / 10 for task, k in counts.items()
    }
    assert all(found.method == "clopper_pearson" for found in by_task.values())


def test_tasks_that_all_succeed_keep_the_exact_bound():
    table = pd.concat([rows([1] * 5, task=task) for task in "ab"], ignore_index=True)
    assert ends(metrics.actuation_reliability(table)) == pytest.approx((1.0, 0.6915028922, 1.0))


def test_unknown_words_name_the_nearest():
    with pytest.raises(InputError, match="did you mean 'real'"):
        metrics.actuation_reliability(rows([1]), side="reel")
    with pytest.raises(InputError, match="did you mean 'exact'"):
        metrics.actuation_reliability(rows([1]), interval="exakt")


@FEW
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.randoms())
def test_order_changes_nothing_and_a_success_never_lowers(outcomes, random):
    table = rows(outcomes)
    found = metrics.actuation_reliability(table, config=QUICK)
    order = list(range(len(outcomes)))
    random.shuffle(order)
    assert metrics.actuation_reliability(table.iloc[order], config=QUICK) == found
    more = metrics.actuation_reliability(rows([*outcomes, True]), config=QUICK)
    assert more.value >= found.value
    assert more.low >= found.low


# Safety ------------------------------------------------------------------------------------------


def test_rates_and_score_of_two_hundred_hours():
    counts = {"near_miss": 6, "minor": 1}
    rates = metrics.incident_rates(counts, 200.0)
    assert ends(rates["near_miss"]) == pytest.approx((3.0, 1.100947127, 6.529737011))
    assert ends(rates["minor"]) == pytest.approx((0.5, 0.01265890399, 2.785821695))
    assert ends(rates["major"])[:2] == (0.0, 0.0)
    assert rates["critical"].high > 0.0
    score = metrics.safety_score(counts, 200.0)
    # One major cannot be excluded in 200 h.
    assert (score.value, score.low) == (pytest.approx(0.92), 0.0)
    assert 0.92 < score.high < 1.0


def test_a_critical_incident_is_no_matter_of_hours():
    for hours in (0.0, 10_000.0):
        score = metrics.safety_score({"critical": 1}, hours)
        assert ends(score) == (0.0, 0.0, 0.0)
        assert "window is invalid" in score.reason


def test_without_exposure_nothing_is_known():
    assert ends(metrics.safety_score({}, 0.0)) == (None, None, None)
    assert all(ends(r) == (None, None, None) for r in metrics.incident_rates({}, 0.0).values())


def test_incidents_of_seconds_are_counted_and_are_no_rate():
    rates = metrics.incident_rates({"near_miss": 2}, 77.0 / 3600.0)
    assert rates["near_miss"].value is None
    assert rates["near_miss"].reason == "2 near misses in 77 s; too short for a rate"
    assert rates["major"].reason == "0 major incidents in 77 s; too short for a rate"
    # What a gate reads stays: how often it may happen for all that is known.
    assert rates["major"].high == pytest.approx(100.0 * 3.688879454 * 3600.0 / 77.0)
    assert metrics.incident_rates({"minor": 1}, 0.9)["minor"].n == 1
    score = metrics.safety_score({"near_miss": 2}, 77.0 / 3600.0)
    assert (score.value, score.reason) == (None, "2 incidents in 77 s; too short for a rate")
    assert metrics.embodiment_score(0.9, score, 0.9).value is None
    between = metrics.time_between_failures(77.0 / 3600.0, 1, None, {"near_miss": 2})
    assert between["mtbsi"].value is between["mtbf"].value is None
    assert between["mtbsi"].low == pytest.approx(77.0 / 3600.0 / 7.2246877)
    assert metrics.safety_score({"near_miss": 2}, 1.0).value is not None
    assert metrics.incident_rates({"minor": 1}, 1.0)["minor"].value == pytest.approx(100.0)


def test_weights_can_be_changed():
    counts = {"near_miss": 6, "minor": 1}
    assert metrics.safety_score(counts, 200.0, {"near_miss": 0.1}).value == pytest.approx(0.65)
    with pytest.raises(InputError, match="did you mean 'near_miss'"):
        metrics.safety_score(counts, 200.0, {"near_mis": 0.1})


@given(st.integers(0, 20), st.integers(0, 5), st.floats(1.0, 1e5), st.floats(1.0, 100.0))
def test_more_hours_never_look_worse(near, minor, hours, factor):
    counts = {"near_miss": near, "minor": minor}
    short, long = (metrics.safety_score(counts, h) for h in (hours, hours * factor))
    assert long.value >= short.value - 1e-12
    assert long.low >= short.low - 1e-12
    for name in ("near_miss", "minor", "major", "critical"):
        a, b = (metrics.incident_rates(counts, h)[name].high for h in (hours, hours * factor))
        assert b <= a * (1.0 + 1e-12)


def test_mean_times_between_events():
    found = metrics.time_between_failures(200.0, 8, [0.75] * 8, {"near_miss": 6, "minor": 1})
    assert found["mtbf"].value == 25.0
    assert found["mttr"].value == 0.75
    assert found["mtbsi"].value == pytest.approx(28.57142857)
    assert found["mtbsi_without_near_misses"].value == 200.0
    assert found["mtbf"].low < 25.0 < found["mtbf"].high
    nothing = metrics.time_between_failures(100.0, 0, None, {})
    assert nothing["mtbf"].value is None
    assert nothing["mtbf"].low == pytest.approx(100.0 / -math.log(0.05))
    assert nothing["mtbf"].reason.startswith("none such")


# Agreement ---------------------------------------------------------------------------------------


def test_pairs_are_compared_as_pairs():
    # Both 14, sim only 2, neither 4.
    real, sim = [1] * 14 + [0] * 6, [1] * 16 + [0] * 4
    found = compare_sides(pairs(real, sim))
    assert (found.name, found.matching, found.n_pairs, found.n_unpaired) == ("S2R", "pairs", 20, 0)
    assert found.agreement.value == pytest.approx(0.9)
    assert (found.p_value, found.mcnemar_p) == (pairs_p(0, 2, 20), 0.5)
    assert found.difference.value == pytest.approx(-0.1)
    assert ends(found.difference)[1:] == pytest.approx(pairs_interval(0, 2, 20))
    assert 0.69 <= found.agreement.low < 0.9 < found.agreement.high == 1.0
    assert metrics.sim_to_real(pairs(real, sim)) == found.agreement


def test_a_twin_is_never_called_a_robot():
    found = compare_sides(pairs([1, 0], [1, 1], side="twin"), side="twin")
    assert found.name == "S2S"
    missing = metrics.sim_to_real(pairs([1, 0], [1, 1], side="twin"))
    assert missing.value is None
    with pytest.raises(InputError, match="side"):
        metrics.sim_to_real(pairs([1], [1]), side="sim")


def test_families_whose_errors_cancel_are_named():
    table = pd.concat(
        [pairs([1] * 10, [0] * 10, task="drawer"), pairs([0] * 10, [1] * 10, task="pick")],
        ignore_index=True,
    )
    found = compare_sides(table, config=QUICK)
    assert found.agreement.value == 1.0
    assert {name: family.value for name, family in found.families.items()} == {
        "drawer": 0.0,
        "pick": 0.0,
    }
    assert found.worst_family == "drawer"


def test_pairs_that_all_agree_still_leave_doubt():
    found = compare_sides(pairs([1] * 10, [1] * 10)).agreement
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.6 < found.low < 1.0
    assert found.method == "folded_pairs_exact"


def test_the_agreement_of_sides_that_agree_can_be_whole():
    """Folded, not resampled: percentiles of 1 - |difference| would leave 1 out nearly always."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(40):
        both = rng.random(200) < 0.7
        flips = rng.random((2, 200)) < 0.1
        found = compare_sides(pairs(both ^ flips[0], both ^ flips[1]), config=QUICK).agreement
        held += found.low <= 1.0 <= found.high
    assert held >= 36


def test_pairs_that_share_seeds_are_drawn_by_seed():
    rng = np.random.default_rng(0)
    tables = []
    by_seed = rng.random(10) < 0.5
    for level in range(4):
        real = [True] * 10
        tables.append(pairs(real, list(by_seed), level=level))
    found = compare_sides(pd.concat(tables, ignore_index=True))
    alone = compare_sides(tables[0])
    assert found.agreement.method == "folded_gaffke_10_seeds"
    assert found.p_value is None
    # Four levels that go alike show no more than one.
    width = found.difference.high - found.difference.low
    assert width > 0.8 * (alone.difference.high - alone.difference.low)


def test_pairs_that_all_agree_and_share_seeds_leave_the_doubt_of_their_seeds():
    real = [True, False] * 10
    levels = [pairs(real, real, level=level) for level in range(4)]
    shared, alone = compare_sides(pd.concat(levels, ignore_index=True)), compare_sides(levels[0])
    assert shared.agreement.value == 1.0
    assert shared.agreement.n == 80
    # Four levels of twenty seeds show no more than twenty pairs.
    exact, _ = clopper_pearson_interval(20, 20)
    assert shared.agreement.low == pytest.approx(exact, abs=1e-5)
    assert shared.agreement.low < alone.agreement.low < 1.0


def test_what_a_pair_must_share_is_checked():
    table = pairs([1, 0], [1, 1])
    table.loc[3, "seed"] = 99
    with pytest.raises(InputError, match=r"pair 'pick-0-1': seed is 1 on side real and 99"):
        compare_sides(table)
    twice = pairs([1, 0], [1, 1])
    twice.loc[1, "pair_id"] = "pick-0-0"
    with pytest.raises(InputError, match="pair 'pick-0-0' has two scored episodes on side real"):
        compare_sides(twice)


STARTED = {"cart_position": [0.1, 0.2], "pole_quat_xyzw": [0.0, 0.1, 0.0, 0.995], "tick": 0}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cart_position": [0.1, 0.2 + 1e-9], "noise": 1}, None),
        ({"pole_quat_xyzw": [0.0, -0.1, 0.0, -0.995]}, None),
        ({}, None),
        ('{"cart_position": [0.1, 0.2]}', None),
        ("by hand", None),
        ({"cart_position": [0.1, 0.3]}, r"initial_state.cart_position\[1\] is 0.2 on side real"),
        ('{"tick": 1}', "initial_state.tick is 0 on side real and 1 on side sim"),
        ({"cart_position": [0.1]}, "initial_state.cart_position is"),
        ({"tick": None}, "initial_state.tick is 0 on side real and None"),
    ],
)
def test_both_episodes_of_a_pair_start_alike(given, said):
    table = pairs([1, 0], [1, 1])
    table["initial_state"] = [STARTED, {}, given, {"tick": 7}]
    if said is None:
        assert compare_sides(table).n_pairs == 2
    else:
        with pytest.raises(InputError, match=f"pair 'pick-0-0': {said}"):
            compare_sides(table)


def test_a_lost_partner_leaves_the_pair_out():
    table = pairs([1, 1, 0], [1, 0, 0]).astype(object)
    table.loc[5, ["quality", "success", "end_reason"]] = [None, None, "lost"]
    found = compare_sides(table)
    assert (found.n_pairs, found.n_unpaired) == (2, 1)
    assert found.uncovered_mass == pytest.approx(1 / 3)


def test_contexts_are_weighted_as_in_reality():
    contexts = {"a": (0.95, 4), "b": (0.8, 6), "c": (0.6, 10)}
    table = pd.concat(
        [
            part
            for task, (rate, mass) in contexts.items()
            for part in (
                rows(
                    [1] * round(100 * rate) + [0] * round(100 * (1 - rate)), side="sim", task=task
                ),
                rows([1] * mass, task=task),
            )
        ],
        ignore_index=True,
    )
    found = compare_sides(table, config=QUICK)
    assert found.matching == "contexts"
    assert found.ar_sim.value == pytest.approx(0.73)
    assert found.agreement.value == pytest.approx(0.73)
    assert found.uncovered_mass == 0.0
    assert found.agreement.low < 0.73 < found.agreement.high


def test_too_much_unmatched_mass_gives_no_agreement():
    table = pd.concat(
        [rows([1] * 50, side="sim", task="a"), rows([1] * 8, task="a"), rows([1] * 2, task="b")],
        ignore_index=True,
    )
    found = compare_sides(table, config=QUICK)
    assert found.agreement.value is None
    assert "unmatched: 20%" in found.agreement.reason


@FEW
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25))
def test_swapping_the_sides_mirrors(outcomes):
    real, sim = zip(*outcomes, strict=True)
    one = compare_sides(pairs(real, sim), config=QUICK)
    other = compare_sides(pairs(sim, real), config=QUICK)
    assert one.agreement.value == pytest.approx(other.agreement.value)
    assert one.difference.value == pytest.approx(-other.difference.value)
    assert one.difference.low == pytest.approx(-other.difference.high)


# Embodiment --------------------------------------------------------------------------------------


def test_the_score_of_the_three_parts():
    assert metrics.embodiment_score(0.85, 0.92, 0.93).value == pytest.approx(0.8992833802)
    assert metrics.embodiment_score(0.0, 0.92, 0.93).value == 0.0
    none = metrics.embodiment_score(0.85, Estimate.missing(reason="no hours", unit="ratio"), 0.9)
    assert none.value is None
    assert none.reason == "SS: no hours"


def test_its_ends_are_those_of_the_parts():
    ar = metrics.actuation_reliability(rows([1] * 17 + [0] * 3))
    ss = metrics.safety_score({"near_miss": 2}, 1000.0)
    s2r = metrics.sim_to_real(pairs([1] * 14 + [0] * 6, [1] * 16 + [0] * 4))
    found = metrics.embodiment_score(ar, ss, s2r)
    assert found.low == pytest.approx((ar.low * ss.low * s2r.low) ** (1 / 3))
    assert found.low < found.value < found.high
    assert found.n == 20


# Recovery, control, throughput -------------------------------------------------------------------


def test_recovery_counts_what_the_robot_did_itself():
    faults = pd.DataFrame(
        {
            "fault": ["grasp_slip"] * 10 + ["occlusion"] * 10 + ["power_cut"],
            "recovered": [True] * 19 + [False, True],
            "recovered_by": ["robot"] * 18 + ["operator"] + ["robot"] * 2,
            "recoverable": [True] * 20 + [False],
        }
    )
    found = metrics.recovery_autonomy(faults)
    assert ends(found) == pytest.approx((0.9, 0.683017286, 0.9876514728))
    by_fault = metrics.recovery_by_fault(faults)
    assert {name: (r.value, r.n) for name, r in by_fault.items()} == {
        "grasp_slip": (1.0, 10),
        "occlusion": (0.8, 10),
    }
    none = metrics.recovery_autonomy(faults.iloc[20:])
    assert (none.value, none.low) == (None, None)
    assert "inject" in none.reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recovered": [2]}, "row 0, column 'recovered' is 2"),
        ({"fault": [None]}, "row 0, column 'fault' is empty"),
        ({"recoverable": ["yes"]}, "row 0, column 'recoverable' is 'yes'"),
    ],
)
def test_bad_faults_name_row_and_column(change, message):
    table = pd.DataFrame({"fault": ["slip"], "recovered": [True]} | change)
    with pytest.raises(InputError, match=message):
        metrics.recovery_autonomy(table)
    with pytest.raises(InputError, match="column 'fault' is missing"):
        metrics.recovery_autonomy(pd.DataFrame({"recovered": [True]}))


def test_control_is_full_within_and_none_at_twice_the_tolerance():
    samples = {"rmse": [0.005, 0.01, 0.015, 0.02, 0.5], "jerk": [1.0] * 5}
    found = metrics.quality_of_control(samples, {"rmse": 0.01})
    assert found.value == pytest.approx((1 + 1 + 0.5 + 0 + 0) / 5)
    assert found.n == 5
    both = metrics.quality_of_control(
        samples, {"rmse": 0.01, "jerk": 2.0}, weights={"rmse": 1.0, "jerk": 3.0}
    )
    assert both.value == pytest.approx((0.5 * 1 + 3) / 4)
    gap = metrics.quality_of_control({"rmse": [0.005, None]}, {"rmse": 0.01})
    assert (gap.value, gap.n) == (1.0, 1)
    assert metrics.quality_of_control({"rmse": []}, {"rmse": 0.01}).value is None


def test_control_equals_the_formula():
    from robo_eval.formulas import quality_of_control

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.exponential(1.0, (12, 3)), columns=["a", "b", "c"])
    limits, weights = {"a": 0.5, "b": 1.0, "c": 2.0}, {"a": 1.0, "b": 2.0, "c": 0.0}
    each = [quality_of_control(dict(row), limits, weights) for _, row in table.iterrows()]
    found = metrics.quality_of_control(table, limits, weights=weights)
    assert found.value == pytest.approx(np.mean(each))


@pytest.mark.parametrize(
    ("samples", "tolerances", "weights", "message"),
    [
        ({"rmse": [1.0]}, {"rms": 1.0}, None, "did you mean 'rmse'"),
        ({"rmse": [-1.0]}, {"rmse": 1.0}, None, "row 0, column 'rmse' is -1"),
        ({"rmse": [math.inf]}, {"rmse": 1.0}, None, "row 0, column 'rmse' is inf"),
        ({"rmse": ["x"]}, {"rmse": 1.0}, None, "not a number"),
        ({"rmse": [1.0]}, {"rmse": 0.0}, None, "must be a positive number"),
        ({"rmse": [1.0]}, {}, None, "name at least one measure"),
        ({"rmse": [1.0]}, {"rmse": 1.0}, {"rmse": 0.0}, "all are 0"),
        ({"rmse": [1.0]}, {"rmse": 1.0}, {}, "'rmse' is missing"),
        ({"rmse": [1.0], "j": [1.0, 2.0]}, {"rmse": 1.0, "j": 1.0}, None, "rows"),
    ],
)
def test_bad_control_samples_are_named(samples, tolerances, weights, message):
    with pytest.raises(InputError, match=message):
        metrics.quality_of_control(samples, tolerances, weights=weights)


def test_throughput_is_itemised():
    table = rows([1] * 12 + [0] * 3, exposure_s=240.0)  # an hour
    card = {"energy": 0.5, "wear": 0.5, "operator": 2.0}
    found = metrics.itemised_throughput(table, card)
    assert (found.hours, found.successes, found.cost_per_hour) == (1.0, 12, 3.0)
    assert found.per_hour.value == 12.0
    assert metrics.physical_throughput(table, card) == found.per_cost
    assert found.per_cost.value == pytest.approx(4.0)
    assert found.per_cost.low < 4.0 < found.per_cost.high
    twin = metrics.physical_throughput(table.assign(side="twin"), card)
    assert twin.value is None
    assert metrics.physical_throughput(table, {}).reason == "the price card is 0 per hour"
    with pytest.raises(InputError, match="did you mean 'operator'"):
        metrics.physical_throughput(table, {"operater": 1.0})


def test_every_public_name_is_there():
    for name, other in itertools.pairwise(sorted(metrics.__all__)):
        assert name < other
        assert callable(getattr(metrics, name))
    with pytest.raises(AttributeError):
        metrics.no_such_metric  # noqa: B018


@pytest.mark.parametrize("n", [3, 5, 10, 20])
@pytest.mark.parametrize("kind", ["exponential", "lognormal"])
def test_few_repairs_of_skewed_lengths_are_covered(n, kind):
    """Student's interval alone held the mean in 83 to 90 % of trials."""
    rng, runs, held = np.random.default_rng(n), 400, 0
    truth = 1.0 if kind == "exponential" else math.exp(0.5)
    for _ in range(runs):
        hours = getattr(rng, kind)(size=n).tolist()
        found = metrics.time_between_failures(100.0, n, hours, {})["mttr"]
        held += found.low <= truth <= found.high
    assert held / runs >= 0.93
