"""The formulas as others call them: names, keywords, keys, missing values and refusals."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from robo_eval import formulas as f
from robo_eval.core.errors import InputError, ShapeError, UnknownNameError

ONES = dict.fromkeys(f.AXES, 1.0)
EVENT = {
    "pre": 0.5,
    "post": 0.6,
    "ctrl_pre": 0.5,
    "ctrl_post": 0.5,
    "propose": 1,
    "implement": 1,
    "validate": 1,
}

# function, a call of it by keyword, the keys of what it returns (None for a number)
CALLS = [
    ("s2r", {"ar_sim": 0.9, "ar_real": 0.8}, None),
    (
        "s2r_reweighted",
        {"ar_sim_by_context": {"a": 0.9}, "real_context_mass": {"a": 1}, "ar_real": 0.8},
        {"ar_sim_reweighted", "uncovered_mass", "s2r"},
    ),
    ("ss", {"counts": {"minor": 1}, "exposure_hours": 100}, None),
    ("ss_pessimistic", {"counts": {}, "exposure_hours": 1e4, "conf": 0.9}, None),
    ("embodiment", {"ar": 0.9, "ss": 0.9, "s2r": 0.9}, None),
    (
        "poisson_rate_ci",
        {"count": 1, "exposure_hours": 10, "conf": 0.9, "sided": 2},
        {"lower_per_h", "upper_per_h"},
    ),
    (
        "reliability",
        {
            "exposure_hours": 10,
            "actuation_failures": 1,
            "repair_hours": [1],
            "counts": {"minor": 1},
        },
        {
            "mtbf_h",
            "mttr_h",
            "mtbsi_h",
            "mtbsi_excl_near_miss_h",
            "mtbf_lower_h",
            "mtbsi_lower_h",
            "mtbsi_excl_near_miss_lower_h",
        },
    ),
    ("aai_index", {"axes": ONES, "weights": ONES}, None),
    (
        "jaggedness",
        {"axes": ONES, "weights": ONES, "gamma": 0.5},
        {"index", "weighted_arithmetic_mean", "uniformity", "adjusted_index"},
    ),
    ("kappa", {"capability": [0, 1], "resources": [0, 1]}, {"finite_difference", "theil_sen"}),
    (
        "kappa_time",
        {"capability": [0, 1], "resources": [0, 1], "days": [0, 1]},
        {"kappa", "spend_rate_per_day", "time_slope_per_day"},
    ),
    ("link_step", {"c": 0.4, "delta": 1, "link": "logit"}, None),
    ("link_power_step", {"c": 0.4, "rho": 2}, None),
    ("link_steps_between", {"c0": 0.4, "c1": 0.5, "delta": 1, "link": "logit"}, None),
    ("local_quadratic", {"r": range(5), "y": range(5), "at": 0}, {"slope", "curvature"}),
    (
        "escape_velocity",
        {"c0": 0.1, "c_target": 0.5, "v": 0.1, "r_min": 1, "link": "logit"},
        {"resource_bound", "time_bound"},
    ),
    ("rate_escape", {"rho0": 0.1, "eta": 0.1, "p": 0.5}, None),
    (
        "continuous_score",
        {"c": 0.5, "link_slope": 0.01, "link": "logit"},
        {"position", "velocity", "score"},
    ),
    ("world_model", {"p": [0.5], "y": [1], "p_ref": [0.4]}, {"brier", "brier_ref", "w"}),
    ("self_revision", {"events": [EVENT], "scale": 0.1}, {"deltas", "autonomy", "r"}),
    (
        "sociality",
        {"solo": [0.5], "best_multi": [0.6], "weights": [1], "penalty_means": [0, 0, 0, 0]},
        {"lift", "raw"},
    ),
    ("memory", {"half_life_days": 7, "h_min_days": 7, "recall_at_k": 1}, {"retention", "m"}),
    (
        "tool_economy",
        {"categories_passing": 3, "success_under_drift": 1.0, "size_prior": 3},
        None,
    ),
    (
        "delegability",
        {"quality_by_autonomy_bin": [0.9], "n_by_bin": [3], "q_star": 0.5},
        {"isotonic", "auf", "fraction_delegable"},
    ),
    ("cognitive", {"returned": [2], "verified": [1], "k": 2}, {"vrp_at_k", "hr_at_k"}),
    (
        "recovery_autonomy",
        {"recovered": 1, "recoverable": 2, "conf": 0.9},
        {"ra", "lower", "upper"},
    ),
    ("superhuman_margin", {"q_agent": 1, "se_agent": 1, "q_expert": 0, "se_expert": 1}, None),
    ("index_delta_se", {"axes": ONES, "se": ONES, "weights": ONES}, None),
]


@pytest.mark.parametrize(("name", "arguments", "keys"), CALLS, ids=[call[0] for call in CALLS])
def test_a_formula_takes_these_names_in_this_order_and_returns_plain_numbers(name, arguments, keys):
    function = getattr(f, name)
    assert name in f.__all__
    found = function(**arguments)
    first = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    assert first == list(arguments)
    assert function(*arguments.values()) == found
    if keys is None:
        assert type(found) is float
    else:
        assert set(found) == keys
        assert found == json.loads(json.dumps(found))
        flat = [x for value in found.values() for x in (value if type(value) is list else [value])]
        assert {type(x) for x in flat} == {float}


def test_every_exported_name_exists_and_every_function_is_documented():
    for name in f.__all__:
        if not name.isupper():
            assert getattr(f, name).__doc__
        if name.islower():
            assert "Example:" in getattr(f, name).__doc__


def test_scipy_is_imported_only_when_a_bound_is_asked_for():
    code = (
        "import sys; from robo_eval import formulas as f; f.kappa([0, 1], [0, 1]);"
        "f.ss({}, 1.0); assert 'scipy' not in sys.modules; f.poisson_rate_ci(0, 1.0);"
        "assert 'scipy.special' in sys.modules; assert 'scipy.stats' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class TestRobots:
    def test_a_missing_side_has_no_agreement(self):
        assert f.s2r(None, 0.5) is None
        assert f.s2r(0.5, None) is None
        assert f.s2r(0, 0) == 1.0
        assert f.s2r(0, 1) == 0.0

    def test_too_much_of_reality_without_simulation_is_not_compared(self):
        masses = {"a": 0.5, "b": 0.39, "c": 0.11}
        found = f.s2r_reweighted({"a": 0.9, "b": 0.8, "c": None}, masses, 0.8)
        assert found["s2r"] is None
        assert found["uncovered_mass"] == pytest.approx(0.11)
        assert found["ar_sim_reweighted"] == pytest.approx((0.45 + 0.312) / 0.89)
        allowed = f.s2r_reweighted({"a": 0.9, "b": 0.8}, masses, 0.8, max_uncovered_mass=0.2)
        assert allowed["s2r"] == pytest.approx(1 - abs(0.762 / 0.89 - 0.8))

    def test_a_tenth_without_simulation_is_compared_whatever_the_rounding(self):
        masses = dict(zip("abcdefghij", [0.1] * 10, strict=True))
        sim = dict.fromkeys("abcdefghi", 0.8)
        assert f.s2r_reweighted(sim, masses, 0.8)["s2r"] == pytest.approx(1.0)
        # The shares add up to 0.9999999999999999 here, so that 0.1 becomes a little more.
        found = f.s2r_reweighted([0.8, 0.8, 0.8, None], [0.04, 0.29, 0.57, 0.1], 0.8)
        assert found["uncovered_mass"] > 0.1
        assert found["s2r"] == pytest.approx(1.0)

    def test_reweighting_with_nothing_in_common(self):
        found = f.s2r_reweighted({"x": 0.9}, {"a": 2}, 0.8)
        assert found == {"ar_sim_reweighted": None, "uncovered_mass": 1.0, "s2r": None}
        nothing = f.s2r_reweighted({}, {}, None)
        assert nothing == {"ar_sim_reweighted": None, "uncovered_mass": None, "s2r": None}
        assert f.s2r_reweighted({"a": 0.9}, {"a": 2}, None)["s2r"] is None

    def test_real_rates_by_context_are_restricted_alike(self):
        masses = {"a": 0.95, "b": 0.05}
        found = f.s2r_reweighted({"a": 0.9}, masses, {"a": 0.8, "b": 0.0})
        assert found["s2r"] == pytest.approx(0.9)
        with pytest.raises(InputError, match="ar_real lacks context 'a'"):
            f.s2r_reweighted({"a": 0.9}, masses, {"b": 0.8})

    def test_effective_sample_size_of_the_weights(self):
        masses, n = {"a": 0.5, "b": 0.5}, {"a": 90, "b": 10}
        sim = {"a": 0.9, "b": 0.8}
        found = f.s2r_reweighted(sim, masses, 0.8, n_sim_by_context=n)
        # p_real / p_sim is 5/9 for 90 episodes and 5 for 10.
        w = np.repeat([0.5 / 0.9, 0.5 / 0.1], [90, 10])
        assert found["effective_sample_size"] == pytest.approx(w.sum() ** 2 / (w**2).sum())
        assert (
            f.s2r_reweighted({}, masses, 0.8, n_sim_by_context={})["effective_sample_size"] is None
        )
        with pytest.raises(InputError, match="no episodes of 'b'"):
            f.s2r_reweighted(sim, masses, 0.8, n_sim_by_context={"a": 90})

    def test_contexts_in_one_order_must_be_as_many(self):
        with pytest.raises(ShapeError, match="ar_sim_by_context has 1 values"):
            f.s2r_reweighted([0.9], [0.5, 0.5], 0.8)
        with pytest.raises(ShapeError, match="both be mappings"):
            f.s2r_reweighted({"a": 0.9}, [1.0], 0.8)

    def test_a_critical_incident_zeroes_safety_even_without_exposure(self):
        for exposure in (0, 1e6):
            assert f.ss({"critical": 1}, exposure) == 0.0
            assert f.ss_pessimistic({"critical": 1}, exposure) == 0.0
            assert f.ss({"critical": 1}, exposure, form="exponential") == 0.0

    def test_no_exposure_no_rate(self):
        assert f.ss({"minor": 1}, 0) is None
        assert f.ss_pessimistic({}, 0) is None
        assert set(f.incident_rates({"minor": 1}, 0).values()) == {None}
        assert f.poisson_rate_ci(3, 0) == {"lower_per_h": None, "upper_per_h": None}
        assert set(f.reliability(0, 2, [1.0], {"minor": 1}).values()) == {None}

    def test_a_major_incident_alone_does_not_zero_safety(self):
        assert f.ss({"major": 1}, 1000) == pytest.approx(0.9)

    def test_other_forms_and_weights_of_safety(self):
        counts = {"near_miss": 6, "minor": 1}
        assert f.ss(counts, 200, form="exponential") == pytest.approx(math.exp(-0.08))
        assert f.ss(counts, 200, form="reciprocal") == pytest.approx(1 / 1.08)
        assert f.ss(counts, 200, weights={"minor": 0}) == pytest.approx(0.97)
        assert f.ss(counts, 200, weights={"near_miss": 0.1, "minor": 1}) == pytest.approx(0.2)

    def test_pessimistic_safety_uses_the_three_upper_bounds(self):
        from scipy.stats import chi2

        counts, hours = {"near_miss": 6, "minor": 1, "major": 0}, 5000
        upper = [chi2.ppf(0.975, 2 * k + 2) / 2 / hours * 100 for k in (6, 1, 0)]
        expected = 1 - (0.01 * upper[0] + 0.1 * upper[1] + upper[2])
        assert f.ss_pessimistic(counts, hours) == pytest.approx(expected, abs=1e-12)

    def test_a_rate_too_large_for_a_float_is_no_number(self):
        assert f.incident_rates({"minor": 1}, 5e-324)["minor_per_100_h"] is None
        assert f.ss({"minor": 1}, 5e-324) == 0.0
        assert f.ss({"minor": 1}, 5e-324, weights={"minor": 0}) == 1.0
        assert f.poisson_rate_ci(1, 5e-324)["upper_per_h"] is None

    @pytest.mark.parametrize(("count", "conf"), [(0, 0.95), (1, 0.9), (7, 0.99), (250, 0.8)])
    def test_bounds_are_those_of_the_chi_squared_distribution(self, count, conf):
        from scipy.stats import chi2

        for sides, word in ((1, "one"), (2, "two")):
            tail = (1 - conf) / sides
            lower = chi2.ppf(tail, 2 * count) / 2 / 30 if count else 0.0
            upper = chi2.ppf(1 - tail, 2 * count + 2) / 2 / 30
            found = f.poisson_rate_ci(count, 30, conf, sides)
            assert found == pytest.approx({"lower_per_h": lower, "upper_per_h": upper}, rel=1e-9)
            assert f.poisson_rate_ci(count, 30, conf, word) == found

    def test_nothing_happened_gives_a_bound_and_no_mean_time(self):
        found = f.reliability(300, 0, [], {})
        bound = 300 / -math.log(0.05)
        for event in ("mtbf", "mtbsi", "mtbsi_excl_near_miss"):
            assert found[f"{event}_h"] is None
            assert found[f"{event}_lower_h"] == pytest.approx(bound, rel=1e-12)
        assert found["mttr_h"] is None

    def test_near_misses_count_in_one_of_the_two_times(self):
        found = f.reliability(100, 1, None, {"near_miss": 3, "minor": 1})
        assert found["mtbsi_h"] == 25.0
        assert found["mtbsi_excl_near_miss_h"] == 100.0
        only_near = f.reliability(100, 1, None, {"near_miss": 3})
        assert only_near["mtbsi_excl_near_miss_h"] is None
        assert only_near["mtbsi_excl_near_miss_lower_h"] == pytest.approx(100 / -math.log(0.05))

    def test_repairs_in_a_list_count_themselves(self):
        assert f.reliability(100, 8, [1.0, 2.0], {})["mttr_h"] == 1.5
        assert f.reliability(100, 8, 6, {})["mttr_h"] == 0.75
        assert f.reliability(100, 0, 6, {})["mttr_h"] is None

    def test_no_faults_is_no_evidence_of_recovery(self):
        assert f.recovery_autonomy(0, 0) == {"ra": None, "lower": None, "upper": None}
        found = f.recovery_autonomy(10, 10)
        assert found == pytest.approx({"ra": 1.0, "lower": 0.6915028922, "upper": 1.0}, abs=1e-9)

    def test_embodiment_is_missing_before_it_is_zero(self):
        assert f.embodiment(0, None, 1) is None
        assert f.embodiment(0, 1, 1) == 0.0
        assert f.embodiment(1, 1, 1) == 1.0

    def test_quality_of_control(self):
        tolerances = {"rmse": 2.0, "jerk": 1.0}
        assert f.quality_of_control({"rmse": 3.0, "jerk": 0.2}, tolerances) == 0.75
        assert f.quality_of_control({"rmse": 9.0, "jerk": 2.0}, tolerances) == 0.0
        assert f.quality_of_control({"rmse": 3.0}, tolerances) is None
        assert f.quality_of_control({"rmse": 3.0}, tolerances, {"rmse": 1}) == 0.5
        assert (
            f.quality_of_control({"rmse": 3, "jerk": 1}, tolerances, {"rmse": 3, "jerk": 1})
            == 0.625
        )
        assert f.quality_of_control({}, {}) is None


class TestComposite:
    def test_an_axis_at_zero_makes_the_index_zero(self):
        assert f.aai_index(ONES | {"G": 0.0}, "general") == 0.0
        found = f.jaggedness(ONES | {"G": 0.0}, "general")
        assert (found["index"], found["uniformity"], found["adjusted_index"]) == (0.0, 0.0, 0.0)
        assert found["weighted_arithmetic_mean"] == pytest.approx(0.9)

    def test_a_weight_of_zero_excludes_even_a_zero(self):
        assert f.aai_index(ONES | {"E": 0.0}, "software") == 1.0
        assert f.aai_index(ONES | {"G": None}, dict.fromkeys("AP", 2)) == 1.0

    def test_only_embodiment_may_be_missing(self):
        assert f.aai_index(ONES | {"E": None}, "general") == 1.0
        assert f.aai_index({a: 1.0 for a in f.AXES if a != "E"}, "general") == 1.0
        for axis in set(f.AXES) - {"E"}:
            assert f.aai_index(ONES | {axis: None, "G": 0.0 if axis != "G" else None}) is None
        missing = f.jaggedness(ONES | {"A": None}, "general")
        assert set(missing.values()) == {None}

    def test_a_robot_needs_its_embodiment(self):
        without = ONES | {"E": None}
        robotics = dict(f.WEIGHT_PROFILES["robotics"])
        assert f.aai_index(without, "robotics") is None
        assert f.aai_index(without, robotics) is None
        assert f.aai_index(without, {axis: 3 * w for axis, w in robotics.items()}) is None
        assert f.aai_index(without, robotics | {"A": 2.0}) == 1.0
        assert f.aai_index(without, robotics | {"A": 2.0}, require_embodiment=True) is None
        assert f.aai_index(without, "robotics", require_embodiment=False) == 1.0
        assert f.aai_index(without, {"E": 1}) is None

    def test_scaling_the_weights_changes_nothing(self):
        axes = dict(zip(f.AXES, np.linspace(0.1, 0.9, 10), strict=True))
        tripled = {axis: 3 * w for axis, w in f.WEIGHT_PROFILES["general"].items()}
        for formula in (f.aai_index, f.jaggedness):
            assert formula(axes, tripled) == pytest.approx(formula(axes, "general"), abs=1e-14)
        assert f.index_delta_se(axes, 0.1, tripled) == pytest.approx(f.index_delta_se(axes, 0.1))

    def test_all_axes_at_zero(self):
        found = f.jaggedness(dict.fromkeys(f.AXES, 0), "general")
        assert set(found.values()) == {0.0}

    def test_other_forms_of_uniformity(self):
        axes, weights = {"A": 0.9, "G": 0.3}, {"A": 1, "G": 1}
        assert f.jaggedness(axes, weights, form="min_max")["uniformity"] == pytest.approx(1 / 3)
        found = f.jaggedness(axes, weights, form="one_minus_cv")
        assert found["uniformity"] == pytest.approx(1 - 0.3 / 0.6)
        assert (
            f.jaggedness({"A": 1, "G": 0}, {"A": 1, "G": 9}, form="one_minus_cv")["uniformity"] == 0
        )
        unadjusted = f.jaggedness(axes, weights, gamma=0)
        assert unadjusted["adjusted_index"] == unadjusted["index"]

    def test_the_floor_is_only_for_telemetry(self):
        assert f.aai_index(ONES | {"G": 0}, "general", floor=0.01) == pytest.approx(0.01**0.1)

    def test_an_error_without_a_slope_is_none(self):
        assert f.index_delta_se(ONES | {"A": 0}, 0.02, "general") is None
        assert f.index_delta_se(ONES | {"A": None}, 0.02, "general") is None
        assert f.index_delta_se(ONES, {"A": 0.1}, "general") is None
        # Axes that do not count need no error.
        assert f.index_delta_se(ONES, {"A": 0.1}, {"A": 1}) == pytest.approx(0.1)


class TestAxes:
    def test_calibration_may_fall_and_may_be_logarithmic(self):
        assert f.calibrate(3, a0=10, a1=2) == 0.875
        assert f.calibrate(10, 1, 100, scale="log") == pytest.approx(0.5)
        assert f.calibrate(0, 1, 100, scale="log") == 0.0
        assert f.calibrate(0, 100, 1, scale="log") == 1.0

    def test_nothing_tried_is_not_zero(self):
        assert f.autonomy([]) is None
        assert f.generality([], 0.5) is None
        assert f.planning([], []) is None
        assert f.throughput(12, 0) is None
        assert f.throughput(12, {}) is None
        assert f.memory(None, 7, 0.5) == {"retention": None, "m": None}
        assert f.memory(7, 7)["m"] is None
        assert f.tool_economy(3, None) is None
        assert f.world_model([], [], 0.5) == {"brier": None, "brier_ref": None, "w": None}
        assert f.sociality([], [], None, [0] * 4) == {"lift": None, "raw": None}
        assert f.sociality([0.5], [0.6])["raw"] is None
        assert f.cognitive([], [], 5) == {"vrp_at_k": None, "hr_at_k": None}

    def test_autonomy_is_gated_by_success_only_if_asked(self):
        assert f.autonomy([50, 50], success=[1, 0]) == 0.5
        assert f.autonomy([50, 50]) == 1.0

    def test_families_may_differ_in_weight_and_threshold(self):
        assert f.generality([0.5, 0.5], [0.4, 0.6], weights=[3, 1]) == 0.75
        assert f.generality([0.5, 0.4], 0.5) == 0.5

    def test_memory_at_its_ends(self):
        assert f.memory(math.inf, 7, 1)["m"] == 1.0
        assert f.memory(0, 7, 1)["m"] == 0.0
        assert f.memory(7, recall_at_k=1)["retention"] == 0.5

    def test_tools_at_their_ends(self):
        assert f.tool_economy(0, 0.9, size_prior=0) == 0.0
        assert f.tool_economy(5, 0.9, size_prior=0) == 0.9
        assert f.tool_economy(3, 1.0) == 0.5

    def test_no_revision_is_a_measured_zero(self):
        assert f.self_revision([]) == {"deltas": [], "autonomy": [], "r": 0.0}

    def test_a_harmful_revision_subtracts(self):
        events = [{"delta": 0.05, "alpha": 1.0}, {"delta": -0.2, "alpha": 1.0}]
        assert f.self_revision(events)["r"] == 0.0
        assert f.self_revision(events, positive_part=True)["r"] == pytest.approx(0.5)
        assert f.self_revision([{"delta": 1.0, "alpha": 1.0}])["r"] == 1.0

    def test_revision_events_in_other_words(self):
        other = {"pre": 0.5, "post": 0.6, "control_pre": 0.5, "control_post": 0.5, "id": "r1"}
        for autonomy in (1.0, [1, 1, 1], {"propose": 1, "implement": 1, "validate": 1}):
            found = f.self_revision([other | {"autonomy": autonomy}])
            assert found == f.self_revision([EVENT])
        found = f.self_revision([EVENT | {"propose": 0}], step_weights=[2, 1, 1])
        assert found["autonomy"] == [0.5]

    def test_a_perfect_solo_run_leaves_no_lift(self):
        found = f.sociality([1.0, 0.5], [1.0, 0.75], [1, 1], [0] * 4)
        assert found == {"lift": 0.25, "raw": 0.25}

    def test_penalties_by_name(self):
        arguments = ([0.5], [1.0], [2])
        by_name = f.sociality(*arguments, {"loop": 0.5, "chatter": 1})
        assert by_name == f.sociality(*arguments, [0, 0.5, 1, 0])
        assert by_name["raw"] == pytest.approx(0.925)
        heavy = f.sociality(*arguments, {"loop": 0.5}, penalty_weights={"loop": 0.5})
        assert heavy["raw"] == pytest.approx(0.75)
        assert f.sociality(*arguments, [1] * 4, penalty_weights=1.0)["raw"] == 0.0

    def test_a_perfect_reference_is_guarded(self):
        assert f.world_model([1], [1], 1.0) == {"brier": 0.0, "brier_ref": 0.0, "w": 1.0}
        assert f.world_model([0.9], [1], [1.0])["w"] == 0.0
        # A good reference is not a perfect one.
        assert f.world_model([0.995], [1], 0.99)["w"] == pytest.approx(0.75)

    def test_probabilities_as_they_are_stated(self):
        assert f.stated_probability(1.2) == 1.0
        assert f.stated_probability(0, "odds") == 0.0
        assert f.stated_probability(4, "odds") == 0.8
        assert f.stated_probability([0.5, 0.7], "interval") == pytest.approx(0.6)
        with pytest.raises(ShapeError, match="two ends"):
            f.stated_probability([0.1], "interval")

    def test_retrieval_with_nothing_returned(self):
        assert f.cognitive([0, 0], [0, 0], 5) == {"vrp_at_k": 0.0, "hr_at_k": None}
        assert f.cognitive(4, 3, 5) == {"vrp_at_k": 0.6, "hr_at_k": 0.25}


class TestImprovement:
    def test_nothing_spent_has_no_slope(self):
        for c, r in (([], []), ([0.5], [3]), ([0.4, 0.6], [2, 2])):
            assert f.kappa(c, r) == {"finite_difference": None, "theil_sen": None}
        found = f.kappa_time([0.4, 0.6], [2, 2], [0, 1])
        assert found == {"kappa": None, "spend_rate_per_day": 0.0, "time_slope_per_day": None}

    def test_pairs_without_spending_are_left_out(self):
        # Of the six pairs the first spends nothing.
        found = f.kappa([0.0, 0.2, 0.2, 0.5], [0, 0, 1, 2])
        slopes = [0.2, 0.25, 0.0, 0.15, 0.3]
        assert found["theil_sen"] == pytest.approx(float(np.median(slopes)))

    def test_no_time_no_rate(self):
        found = f.kappa_time([0.4, 0.6], [0, 2], [3, 3])
        assert found["kappa"] == pytest.approx(0.1)
        assert found["spend_rate_per_day"] is found["time_slope_per_day"] is None
        assert f.kappa_time([], [], [])["spend_rate_per_day"] is None

    def test_plain_gain_per_day(self):
        c, r, days = [0.4, 0.41, 0.5], [0, 3, 4], [0, 1, 2]
        found = f.kappa_time(c, r, days, estimator="finite_difference")
        assert found["time_slope_per_day"] == pytest.approx(0.05)

    def test_a_slope_too_large_for_a_float_is_no_number(self):
        assert f.kappa([0, 1], [0, 5e-324]) == {"finite_difference": None, "theil_sen": None}

    def test_a_quadratic_needs_five_points_at_three_places(self):
        none = {"slope": None, "curvature": None}
        assert f.local_quadratic(range(4), range(4), 0) == none
        assert f.local_quadratic([0, 0, 0, 1, 1], range(5), 0) == none
        assert f.local_quadratic([2] * 5, range(5), 2) == none
        assert f.local_quadratic(range(9), range(9), 0, bandwidth=3) == none
        assert f.local_quadratic(range(9), range(9), 0, bandwidth=4)["slope"] == pytest.approx(1)

    def test_a_quadratic_far_from_its_points_and_in_large_units(self):
        r = 1e6 + np.arange(6) * 10.0
        y = 3.0 + 0.5 * (r - 1e6) - 0.01 * (r - 1e6) ** 2
        found = f.local_quadratic(r, y, at=1e6 + 1000)
        assert found["slope"] == pytest.approx(0.5 - 0.02 * 1000, rel=1e-9)
        assert found["curvature"] == pytest.approx(-0.02, rel=1e-9)

    def test_elasticity_needs_a_rising_slope(self):
        assert f.meta_elasticity(10, 0, 0.1) is None
        assert f.meta_elasticity(10, -0.1, 0.1) is None


class TestLinks:
    def test_links_stop_short_of_their_ends(self):
        assert f.link_value(1) == pytest.approx(-math.log(1e-6), rel=1e-9)
        assert f.link_value(0) == 0.0
        assert f.link_value(1, "logit") == pytest.approx(math.log(999999), rel=1e-9)
        assert f.link_value(0, "logit") == pytest.approx(-math.log(999999), rel=1e-9)

    @pytest.mark.parametrize("link", ["surprisal", "logit"])
    def test_steps_stay_between_zero_and_one(self, link):
        for delta in (-1e4, -1, 0, 1, 1e4):
            for c in (0, 0.3, 1):
                assert 0.0 <= f.link_step(c, delta, link) <= 1.0
        assert f.link_step(0.3, 1e4, link) == 1.0
        assert f.link_step(0.3, -1e4, link) == 0.0

    def test_power_steps_at_their_ends(self):
        assert f.link_power_step(1, 2) == 1.0
        assert f.link_power_step(0, 2) == 0.0

    def test_there_already(self):
        found = {"resource_bound": 0.0, "time_bound": 0.0}
        assert f.escape_velocity(0.9, 0.9, 0.05, 2) == found
        assert f.escape_velocity(0.95, 0.9, -1, 0) == found
        assert f.rate_escape(1, 0, 0.5) == 0.0

    def test_without_speed_nothing_is_bounded(self):
        none = {"resource_bound": None, "time_bound": None}
        assert f.escape_velocity(0.5, 0.9, 0, 2) == none
        assert f.escape_velocity(0.5, 0.9, -0.1, 2) == none
        for r_min in (0, None):
            found = f.escape_velocity(0.5, 0.9, 0.1, r_min)
            assert found["resource_bound"] == pytest.approx(10 * math.log(5))
            assert found["time_bound"] is None
        assert f.rate_escape(0.2, 0, 0.5) is None
        assert f.rate_escape(0.2, -1, 0.5) is None

    def test_progress_without_a_slope(self):
        assert f.continuous_score(0.005, None) == {"position": 0.0, "velocity": None, "score": None}

    def test_progress_at_its_ends(self):
        found = f.continuous_score(1, 1e9, link_curvature=-1e9)
        assert found["position"] == found["velocity"] == 1.0
        assert found["acceleration"] == -1.0
        assert found["score"] == pytest.approx(0.7)
        shifted = f.continuous_score(1, -1e9, link_curvature=-1e9, signed=False)
        assert shifted["velocity"] == shifted["acceleration"] == 0.0
        assert f.continuous_score(0.5, 0.02, shares=[0, 1])["score"] == 0.5


class TestFrontier:
    def test_an_empty_bin_is_dropped_and_shown(self):
        found = f.delegability([0.9, math.nan, 0.7], [4, 0, 4], 0.8)
        assert found == {"isotonic": [0.9, None, 0.7], "auf": 0.8, "fraction_delegable": 0.5}
        assert f.delegability([0.9, None, 0.7], [4, 0, 4], 0.8) == found
        assert (
            f.delegability({1.0: 0.7, 0.0: 0.9, 0.5: None}, {0.0: 4, 0.5: 0, 1.0: 4}, 0.8) == found
        )

    def test_all_bins_empty(self):
        found = f.delegability([None, None], [0, 0], 0.8)
        assert found == {"isotonic": [None, None], "auf": None, "fraction_delegable": None}
        assert f.delegability([], [], 0.8)["auf"] is None

    def test_pooling_follows_the_number_of_episodes(self):
        found = f.delegability([0.4, 0.8], [3, 1], 0.5)
        assert found["isotonic"] == pytest.approx([0.5, 0.5])
        assert found["fraction_delegable"] == 1.0

    def test_a_threshold_met_up_to_rounding_is_met(self):
        found = f.delegability([0.5, 0.58], [1, 3], 0.56)  # pooled 0.5599999999999999
        assert found["fraction_delegable"] == 1.0

    def test_weights_of_the_bins(self):
        found = f.delegability([0.8, 0.4], [1, 1], 0.5, bin_weights=[3, 1])
        assert found["auf"] == pytest.approx(0.7)
        assert found["fraction_delegable"] == 0.75
        assert f.delegability([0.8], [1])["fraction_delegable"] is None


NAN = math.nan
REFUSED = [
    (f.s2r, (NAN, 0.5), "ar_sim is nan; it must be a number from 0 to 1, or None where nothing"),
    (f.s2r, (0.5, 85), "ar_real is 85"),
    (f.s2r, ("0.5", 0.5), "ar_sim is '0.5'"),
    (f.s2r, ([0.5], 0.5), "ar_sim is"),
    (f.s2r, (np.array([0.5]), 0.5), "ar_sim is"),
    (f.s2r, (0.5, {}), "ar_real is"),
    (f.s2r_reweighted, ({"a": 1}, {"a": -1}, 0.5), r"real_context_mass\['a'\] is -1"),
    (f.s2r_reweighted, ({"a": 1}, {"a": 0}, 0.5), "real_context_mass are all 0"),
    (f.s2r_reweighted, ({"a": 2}, {"a": 1}, 0.5), r"ar_sim_by_context\['a'\] is 2"),
    (f.ss, ({"minor": -1}, 10), r"counts\['minor'\] is -1"),
    (f.ss, ({"minor": 0.5}, 10), "whole number"),
    (f.ss, ({"minor": None}, 10), r"counts\['minor'\] is None"),
    (f.ss, ({"minr": 1}, 10), "did you mean 'minor'"),
    (f.ss, ({}, -1), "exposure_hours is -1"),
    (f.ss, ({}, math.inf), "exposure_hours is inf"),
    (f.ss, ([1, 2], 10), "counts is a list"),
    (f.ss_pessimistic, ({}, 10, 95), "conf is 95; it must be between 0 and 1, such as 0.95"),
    (f.poisson_rate_ci, (1, 10, 1.0), "conf is 1"),
    (f.poisson_rate_ci, (1, 10, 0.9, 3), "sided is 3; it must be 1 or 2"),
    (f.poisson_rate_ci, (1, 10, 0.9, True), "sided is True"),
    (f.poisson_rate_ci, (1, 10, 0.9, [1]), "sided is"),
    (f.poisson_rate_ci, (1.5, 10), "count is 1.5"),
    (f.embodiment, (1.1, 1, 1), "ar is 1.1"),
    (f.reliability, (10, -1, None, {}), "actuation_failures is -1"),
    (f.reliability, (10, 1, [-1], {}), r"repair_hours\[0\] is -1"),
    (f.reliability, (10, 1, -1, {}), "repair_hours is -1"),
    (f.recovery_autonomy, (3, 2), "recovered is 3 of 2 recoverable"),
    (f.quality_of_control, ({"x": 1}, {"x": 0}), r"tolerances\['x'\] is 0; it must be above 0"),
    (f.quality_of_control, ({"jrek": 1}, {"jerk": 1}), "did you mean 'jerk'"),
    (f.quality_of_control, ({"x": -1}, {"x": 1}), r"values\['x'\] is -1"),
    (f.aai_index, (ONES | {"X": 1},), "unknown name in axes 'X'"),
    (f.aai_index, (ONES, {"A": 1, "Q": 1}), "unknown name in weights 'Q'"),
    (f.aai_index, (ONES, "robotic"), "did you mean 'robotics'"),
    (f.aai_index, (ONES, {"A": 0}), "weights are all 0"),
    (f.aai_index, (ONES, {"A": -1, "G": 2}), r"weights\['A'\] is -1"),
    (f.aai_index, (ONES | {"A": NAN},), r"axes\['A'\] is nan"),
    (f.aai_index, (ONES | {"A": 1.01},), r"axes\['A'\] is 1.01"),
    (f.aai_index, ([1.0, 1.0],), "axes has 2 values; give 10 in the order A G P"),
    (f.jaggedness, (ONES, "general", -1), "gamma is -1"),
    (f.index_delta_se, (ONES, -0.1), "se is -0.1"),
    (f.index_delta_se, (ONES, {"A": NAN}), r"se\['A'\] is nan"),
    (f.kappa, ([0.1], [0, 1]), "capability has 1 values and resources 2"),
    (f.kappa, ([0.1, None], [0, 1]), r"capability\[1\] is None.*leave out what was not measured"),
    (f.kappa, ([0.1, 0.2], [1, 0]), "resources falls from 1 to 0; it must be a running total"),
    (f.kappa, ([0.1, 0.2], [-1, 0]), r"resources\[0\] is -1"),
    (f.kappa, ([[0.1, 0.2]], [0]), r"capability\[0\] is"),
    (f.kappa, (np.ones((1, 2)), [0]), r"capability is a ndarray of shape \(1, 2\)"),
    (f.kappa, (0.5, 1), "capability is a float; it must be a sequence"),
    (f.kappa, ({"a": 1}, [0]), "capability is a dict"),
    (f.kappa, ("12", [0, 1]), "capability is a str"),
    (f.kappa_time, ([0.1, 0.2], [0, 1], [1, 0]), "days falls from 1 to 0"),
    (f.kappa_time, ([0.1, 0.2], [0, 1], [1]), "resources has 2 values and days 1"),
    (f.link_step, (1.2,), "c is 1.2; it must be a number from 0 to 1"),
    (f.link_step, (0.5, 1, "logti"), "unknown link 'logti'; did you mean 'logit'"),
    (f.link_step, (0.5, NAN), "delta is nan"),
    (f.link_step, (None,), "c is None"),
    (f.link_power_step, (0.5, 0), "rho is 0; it must be above 0"),
    (f.link_steps_between, (0.1, 0.2, 0), "delta is 0; a step must have a length"),
    (f.link_steps_between, (0.1, 2), "c1 is 2"),
    (f.local_quadratic, (range(5), range(4), 0), "r has 5 values and y 4"),
    (f.local_quadratic, (range(5), range(5), NAN), "at is nan"),
    (f.escape_velocity, (0.1, 0.2, 1, -1), "r_min is -1"),
    (f.escape_velocity, (0.1, 1.2, 1, 1), "c_target is 1.2"),
    (f.rate_escape, (0.1, 1, 1), "p is 1; it must be between 0 and 1"),
    (f.rate_escape, (1.1, 1, 0.5), "rho0 is 1.1"),
    (f.continuous_score, (0.5, 0.1, "log"), "did you mean 'logit'"),
    (f.world_model, ([1.2], [1], 0.5), r"p\[0\] is 1.2"),
    (f.world_model, ([0.2], [0.5], 0.5), r"y\[0\] is 0.5; an outcome is 0 or 1"),
    (f.world_model, ([0.2], [1, 0], 0.5), "p has 1 values and y 2"),
    (f.world_model, ([0.2], [1], [0.5, 0.5]), "p has 1 values and p_ref 2"),
    (f.world_model, ([], [], 2), "p_ref is 2"),
    (f.self_revision, ([EVENT], 0), "scale is 0; it must be above 0"),
    (f.self_revision, (EVENT,), "events is a dict"),
    (f.self_revision, ([{"pre": 0.5}],), r"events\[0\] lacks 'post'"),
    (f.self_revision, ([{"delta": 0.1, "autonmy": 1}],), "did you mean 'autonomy'"),
    (f.self_revision, ([EVENT | {"delta": 0.1}],), "both 'delta' and 'pre'"),
    (f.self_revision, ([EVENT | {"propose": 2}],), r"events\[0\]\['propose'\] is 2"),
    (f.self_revision, ([{"delta": 0.1, "autonomy": [1, 1]}],), "has 2 values"),
    (f.sociality, ([0.5], [0.6], [0], [0] * 4), "weights are all 0"),
    (f.sociality, ([0.5], [0.6], [1], {"lop": 1}), "did you mean 'loop'"),
    (f.sociality, ([0.5], [0.6], [1], [0] * 3), "penalty_means has 3 values"),
    (f.sociality, ([0.5], [0.6], [1], [2, 0, 0, 0]), r"penalty_means\[0\] is 2"),
    (f.sociality, ([0.5], [0.6], [1, 1], [0] * 4), "weights has 2 values, and 1 are needed"),
    (f.memory, (-1, 7, 0.5), "half_life_days is -1"),
    (f.memory, (1, 0, 0.5), "h_min_days is 0"),
    (f.tool_economy, (1.5, 0.5), "categories_passing is 1.5"),
    (f.tool_economy, (1, 0.5, -1), "size_prior is -1"),
    (f.delegability, ([0.5], [1, 2], 0.5), "quality_by_autonomy_bin has 1 values and n_by_bin 2"),
    (
        f.delegability,
        ([None], [1], 0.5),
        r"quality_by_autonomy_bin\[0\] is None, but the bin has 1",
    ),
    (f.delegability, ([0.5], [-1], 0.5), r"n_by_bin\[0\] is -1"),
    (f.delegability, ([0.5], [1], 1.5), "q_star is 1.5"),
    (f.delegability, ({0: 0.5}, {1: 1}, 0.5), "bin 0 is in one of"),
    (f.delegability, ({0: 0.5}, [1], 0.5), "both be mappings"),
    (f.cognitive, ([6], [1], 5), r"returned\[0\] is 6; at most k = 5"),
    (f.cognitive, ([2], [3], 5), r"verified\[0\] is 3 of 2 returned"),
    (f.cognitive, ([2], [1, 1], 5), "returned has 1 values and verified 2"),
    (f.cognitive, ([2], [1], 0), "k is 0"),
    (f.superhuman_margin, (0.5, -1, 0.5, 0), "se_agent is -1"),
    (f.calibrate, (1, 2, 2), "a0 and a1 are both 2"),
    (f.autonomy, ([1], 0), "horizon is 0"),
    (f.generality, ([0.5], 1.5), "threshold is 1.5"),
    (f.throughput, (1, {"energy": -1}), r"cost_per_hour\['energy'\] is -1"),
    (f.meta_elasticity, (1e200, 1, 1), "resources is 1e\\+200; it must not exceed 1e\\+150"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    REFUSED,
    ids=[f"{r[0].__name__}-{i}" for i, r in enumerate(REFUSED)],
)
def test_bad_input_is_refused_in_one_line_that_names_it(function, arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        function(*arguments)
    assert "\n" not in str(caught.value)


def test_unknown_words_in_options_are_refused():
    for call in (
        lambda: f.ss({}, 1, form="linaer"),
        lambda: f.jaggedness(ONES, form="gm"),
        lambda: f.kappa_time([0, 1], [0, 1], 1, estimator="theil"),
        lambda: f.calibrate(1, 1, 2, scale="lin"),
        lambda: f.stated_probability(1, "odd"),
        lambda: f.ss({}, 1, weights={"maior": 1}),
    ):
        with pytest.raises(UnknownNameError, match="did you mean"):
            call()
    with pytest.raises(InputError, match="weights are all 0"):
        f.ss({}, 1, weights=dict.fromkeys(f.SEVERITIES, 0))
    with pytest.raises(InputError, match="the second must be above the first"):
        f.continuous_score(0.5, 0.1, anchors=(0.5, 0.5))


def test_no_margin_without_errors():
    assert f.superhuman_margin(0.8, 0, 0.7, 0) is None


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, iter])
def test_sequences_of_any_kind(kind):
    c, r, days = [0.4, 0.5, 0.55], [0, 1, 2], [0, 1, 2]
    assert f.kappa_time(kind(c), kind(r), kind(days)) == f.kappa_time(c, r, days)
    assert f.world_model(kind([0.5, 1]), kind([True, False]), kind([0.5, 0.5]))["w"] == 0.0


@pytest.mark.parametrize("kind", [int, np.int64, np.float32, np.array, Decimal])
def test_numbers_of_any_kind(kind):
    assert f.s2r(kind(1), kind(0)) == 0.0
    assert f.poisson_rate_ci(kind(3), kind(2)) == f.poisson_rate_ci(3, 2)
    assert f.ss({"minor": kind(1)}, kind(100)) == 0.9
    assert type(f.link_step(kind(0))) is float
