"""Worked examples of every formula of the AAI scale, by hand, exact or to ten digits.

The scale is that of Chojecki (2025), arXiv:2511.13411. Its printed table of synthetic systems does
not follow from its own formula and is not used here.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from robo_eval import formulas as f

TOLERANCE = 1e-9


def near(expected):
    return pytest.approx(expected, abs=TOLERANCE, rel=0.0)


X = {
    "A": 0.7,
    "G": 0.5,
    "P": 0.6,
    "M": 0.6,
    "T": 0.5,
    "R": 0.3,
    "S": 0.4,
    "E": 0.8992833802,
    "W": 0.6,
    "$": 0.5,
}
WITHOUT_E = X | {"E": None}


class TestAxes:
    @pytest.mark.parametrize(("x", "expected"), [(7, 0.625), (1, 0.0), (11, 1.0)])
    def test_calibration(self, x, expected):
        assert f.calibrate(x, 2, 10) == near(expected)

    def test_autonomy(self):
        assert f.autonomy([10, 50, 80, 25], horizon=50) == near(0.675)

    def test_generality(self):
        assert f.generality([0.7, 0.8, 0.9, 0.2], threshold=0.6) == near(0.75)

    def test_planning(self):
        assert f.planning([4, 8, 12, 6], [1, 1, 1, 0], full_depth=8) == near(0.625)

    def test_memory(self):
        found = f.memory(half_life_days=14, h_min_days=7, recall_at_k=0.81)
        assert found == {"retention": near(0.6666666667), "m": near(0.7348469228)}

    def test_tool_economy(self):
        found = f.tool_economy(categories_passing=6, success_under_drift=0.9, size_prior=3)
        assert found == near(0.6)

    def test_throughput(self):
        theta = f.throughput(tasks_per_hour=12, cost_per_hour=3)
        assert theta == near(4.0)
        assert f.calibrate(theta, 1, 9) == near(0.375)

    def test_self_revision(self):
        events = [
            {
                "pre": 0.62,
                "post": 0.70,
                "ctrl_pre": 0.61,
                "ctrl_post": 0.63,
                "propose": 1,
                "implement": 0.9,
                "validate": 0.8,
            },
            {"delta": -0.01, "autonomy": 0.5},
        ]
        found = f.self_revision(events=events, scale=0.10)
        assert found["deltas"] == near([0.06, -0.01])
        assert found["autonomy"] == near([0.9, 0.5])
        assert found["r"] == near(0.49)

    def test_sociality(self):
        found = f.sociality(
            solo=[0.5, 0.8],
            best_multi=[0.75, 0.7],
            weights=[1, 1],
            penalty_means=[0.1, 0.2, 0.0, 0.1],
        )
        assert found == {"lift": near(0.25), "raw": near(0.23)}

    def test_world_model(self):
        found = f.world_model(p=[0.9, 0.2, 0.7, 0.6], y=[1, 0, 1, 0], p_ref=[0.5] * 4)
        assert found == {"brier": near(0.125), "brier_ref": near(0.25), "w": near(0.5)}


class TestRobots:
    def test_agreement_of_simulation_and_reality(self):
        assert f.s2r(ar_sim=0.92, ar_real=0.85) == near(0.93)

    def test_incident_rates(self):
        assert f.incident_rates({"near_miss": 6, "minor": 1}, 200) == {
            "near_miss_per_100_h": near(3.0),
            "minor_per_100_h": near(0.5),
            "major_per_100_h": 0.0,
            "critical_per_100_h": 0.0,
        }

    def test_safety_score(self):
        counts = {"near_miss": 6, "minor": 1, "major": 0, "critical": 0}
        assert f.ss(counts=counts, exposure_hours=200) == near(0.92)
        assert f.ss_pessimistic(counts=counts, exposure_hours=200, conf=0.95) == 0.0

    def test_embodiment(self):
        assert f.embodiment(ar=0.85, ss=0.92, s2r=0.93) == near(0.8992833802)

    @pytest.mark.parametrize(
        ("count", "hours", "sided", "lower", "upper"),
        [  # bounds per 100 h
            (0, 100, 2, 0.0, 3.688879454),
            (0, 100, 1, 0.0, 2.995732274),
            (1, 200, 2, 0.01265890399, 2.785821695),
            (6, 200, 2, 1.100947127, 6.529737011),
            (0, 1000, 1, 0.0, 0.2995732274),
            (0, 40, 2, 0.0, 9.22219864),
            (3, 120, 2, 0.51556010, 7.30606089),
            (1, 10, 2, 0.25317808, 55.71643391),
        ],
    )
    def test_exact_bounds_of_a_rate(self, count, hours, sided, lower, upper):
        found = f.poisson_rate_ci(count=count, exposure_hours=hours, conf=0.95, sided=sided)
        assert 100 * found["lower_per_h"] == pytest.approx(lower, abs=5.1e-9)
        assert 100 * found["upper_per_h"] == pytest.approx(upper, abs=5.1e-9)

    @pytest.mark.parametrize(
        ("count", "hours", "upper"),
        [(0, 100, 0.02995732274), (0, 40, 0.0748933068), (3, 120, 0.0646138044)],
    )
    def test_one_sided_bound_of_a_rate(self, count, hours, upper):
        found = f.poisson_rate_ci(count, hours, sided=1)
        assert found["upper_per_h"] == pytest.approx(upper, abs=5.1e-11)

    def test_mean_times(self):
        counts = {"near_miss": 6, "minor": 1}
        found = f.reliability(
            exposure_hours=200, actuation_failures=8, repair_hours=[0.75] * 8, counts=counts
        )
        assert found["mtbf_h"] == near(25.0)
        assert found["mttr_h"] == near(0.75)
        assert found["mtbsi_h"] == pytest.approx(28.57142857, abs=5e-9)
        assert found["mtbsi_excl_near_miss_h"] == near(200.0)
        as_a_sum = f.reliability(200, 8, 6.0, counts)
        assert as_a_sum == found

    def test_reweighting_to_the_contexts_met_in_reality(self):
        sim = {"a": 0.95, "b": 0.8, "c": 0.6}
        found = f.s2r_reweighted(
            ar_sim_by_context=sim, real_context_mass={"a": 0.2, "b": 0.3, "c": 0.5}, ar_real=0.7
        )
        expected = {"ar_sim_reweighted": near(0.73), "uncovered_mass": 0.0, "s2r": near(0.97)}
        assert found == expected
        assert f.s2r_reweighted(list(sim.values()), np.array([0.2, 0.3, 0.5]), 0.7) == expected

    def test_reweighting_where_a_context_was_not_simulated(self):
        masses = {"a": 0.5, "b": 0.44, "c": 0.06}
        found = f.s2r_reweighted({"a": 0.95, "b": 0.8}, masses, ar_real=0.8)
        assert found["ar_sim_reweighted"] == near(0.8797872340)
        assert found["uncovered_mass"] == near(0.06)
        assert found["s2r"] == near(0.9202127660)

    def test_recovery(self):
        found = f.recovery_autonomy(recovered=18, recoverable=20, conf=0.95)
        assert found == {"ra": 0.9, "lower": near(0.683017286), "upper": near(0.9876514728)}


class TestComposite:
    @pytest.mark.parametrize(
        ("axes", "weights", "expected"),
        [
            (X, "general", 0.5094659884),
            (X, "robotics", 0.5745298367),
            (X, "software", 0.4977465320),
            (WITHOUT_E, "general", 0.4944549203),
            (WITHOUT_E, "software", 0.4977465320),
        ],
    )
    def test_index(self, axes, weights, expected):
        assert f.aai_index(axes=axes, weights=weights) == near(expected)
        by_name = dict(f.WEIGHT_PROFILES[weights])
        assert f.aai_index(axes, by_name) == near(expected)
        in_order = [axes[name] for name in f.AXES]
        assert f.aai_index(in_order, np.array(list(by_name.values()))) == near(expected)

    def test_jaggedness(self):
        found = f.jaggedness(axes=X, weights="robotics", gamma=0.5)
        assert found == {
            "index": near(0.5745298367),
            "weighted_arithmetic_mean": near(0.6023566760),
            "uniformity": near(0.9538033851),
            "adjusted_index": near(0.5611022591),
        }

    def test_standard_error(self):
        se = dict.fromkeys(f.AXES, 0.02)
        for errors in (se, 0.02, [0.02] * 10):
            assert f.index_delta_se(axes=X, se=errors, weights="robotics") == near(0.006992160592)

    def test_profiles_sum_to_ten(self):
        for profile in f.WEIGHT_PROFILES.values():
            assert math.fsum(profile.values()) == near(10.0)


class TestImprovement:
    C = (0.40, 0.41, 0.425, 0.43, 0.50)
    R = (0, 2, 4, 6, 8)

    def test_kappa(self):
        found = f.kappa(capability=self.C, resources=self.R)
        assert found == {"finite_difference": near(0.0125), "theil_sen": near(0.006875)}

    def test_kappa_in_time(self):
        found = f.kappa_time(capability=self.C, resources=self.R, days=[0, 1, 2, 3, 4])
        expected = {"kappa": 0.006875, "spend_rate_per_day": 2.0, "time_slope_per_day": 0.01375}
        assert found == near(expected)
        assert f.kappa_time(self.C, self.R, days=4) == near(expected)

    def test_local_quadratic(self):
        found = f.local_quadratic(r=range(5), y=[0.50, 0.53, 0.58, 0.65, 0.74], at=2)
        assert found == {"slope": near(0.06), "curvature": near(0.02)}

    def test_meta_elasticity(self):
        assert f.meta_elasticity(50, link_slope=0.02, link_curvature=0.001) == near(2.5)


class TestLinks:
    def test_steps(self):
        delta = math.log(2)
        assert f.link_step(c=0.4, delta=delta, link="logit") == near(0.5714285714)
        assert f.link_step(c=0.4, delta=delta, link="surprisal") == near(0.7)
        assert f.link_step(f.link_step(0.4)) == near(0.85)
        assert f.link_step(f.link_step(f.link_step(0.4))) == near(0.925)

    def test_power_steps(self):
        assert f.link_power_step(c=0.4, rho=2) == near(0.64)
        assert f.link_power_step(c=0.9, rho=1.5) == near(0.9683772234)

    def test_steps_between(self):
        found = f.link_steps_between(c0=0.4, c1=0.925, delta=math.log(2), link="surprisal")
        assert found == near(3.0)
        assert f.link_steps_between(0.4, 4 / 7, link="logit") == near(1.0)

    def test_progress(self):
        found = f.continuous_score(c=0.5, link_slope=0.03, link="surprisal")
        assert found == {
            "position": near(0.1486570246),
            "velocity": near(0.8807970780),
            "score": near(0.3682990406),
        }

    def test_progress_with_acceleration(self):
        found = f.continuous_score(0.5, 0.03, link_curvature=0.0005)
        assert found["acceleration"] == near(0.4621171573)
        assert found["score"] == near(0.3787110579)

    def test_escape(self):
        found = f.escape_velocity(c0=0.6, c_target=0.9, v=0.05, r_min=2, link="surprisal")
        assert found["resource_bound"] == pytest.approx(27.72588722, abs=5e-9)
        assert found["time_bound"] == pytest.approx(13.86294361, abs=5e-9)
        assert f.rate_escape(rho0=0.2, eta=0.1, p=0.5) == pytest.approx(17.88854382, abs=5e-9)


class TestFrontierAndCognition:
    def test_frontier(self):
        found = f.delegability(
            quality_by_autonomy_bin=[0.9, 0.92, 0.8, 0.6, 0.65], n_by_bin=[7] * 5, q_star=0.75
        )
        assert found["isotonic"] == near([0.91, 0.91, 0.8, 0.625, 0.625])
        assert found["auf"] == near(0.774)
        assert found["fraction_delegable"] == near(0.6)

    def test_superhuman_margin(self):
        found = f.superhuman_margin(q_agent=0.82, se_agent=0.02, q_expert=0.74, se_expert=0.025)
        assert found == near(2.498780190)

    def test_retrieval(self):
        # 12 of 3 * 5 places hold a verified item; 2 of the 14 returned are not verified.
        found = f.cognitive(returned=[5, 5, 4], verified=[5, 4, 3], k=5)
        assert found == {"vrp_at_k": near(0.8), "hr_at_k": near(2 / 14)}
