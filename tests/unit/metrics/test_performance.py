import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm, Difficulty, EndReason
from robo_eval.core.plan import PolicyPlan, TaskPlan, TrialPlan
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.performance import cells, policies
from robo_eval.stats.bounded import bounded_mean_intervals

ENV = "RoboEval/CartPole3D-v0"


def _twenty(episode, n_scored, quality=1.0):
    return [episode(f"e{i}", quality if i < n_scored else None) for i in range(20)]


def test_seven_of_twenty_is_no_headline_and_no_verdict(frame, episode):
    log = frame(*_twenty(episode, 7))
    (result,) = policies(log)
    assert result.headline is None
    assert not result.is_sayable
    assert result.coverage.text == "7 of 20 scored (13 fault)"
    for estimate in (result.performance, result.success, result.success_exact):
        assert estimate.value == 1.0
        assert estimate.n == 7
        assert estimate.reason.startswith("7 of 20 scored")
    assert result.success_bounds == (7 / 20, 1.0)
    assert result.performance_bounds == (7 / 20, 1.0)
    (cell,) = cells(log)
    assert cell.performance.reason.startswith("7 of 20 scored")


@pytest.mark.parametrize(("n_scored", "is_sayable"), [(20, True), (19, True), (18, False)])
def test_a_headline_needs_95_percent(frame, episode, n_scored, is_sayable):
    (result,) = policies(frame(*_twenty(episode, n_scored)))
    assert result.is_sayable is is_sayable


def test_headline_carries_the_exact_interval_and_what_is_missing(frame, episode):
    (ten,) = policies(frame(*(episode(f"e{i}") for i in range(10))))
    assert ten.headline == "10/10, 95 % 0.69-1.00"
    (nineteen,) = policies(frame(*_twenty(episode, 19)))
    assert nineteen.headline == "19/19, 95 % 0.82-1.00; 1 missing"


def test_a_missing_verdict_is_neither_failure_nor_success(frame, episode):
    log = frame(episode("a"), episode("b", None, end_reason=EndReason.TIMEOUT), episode("c", 0.5))
    (result,) = policies(log)
    assert result.coverage.missing == {"no_verdict": 1}
    assert (result.n_success, result.success.n) == (1, 2)
    assert result.success_bounds == (1 / 3, 2 / 3)


def test_nothing_scored_is_none_with_a_reason(frame, episode):
    (cell,) = cells(frame(episode("a", None), episode("b", None)))
    for estimate in (cell.performance, cell.success, cell.success_exact):
        assert estimate.value is None
        assert "no scored episodes" in estimate.reason
    assert cell.performance_bounds == (0.0, 1.0)


def test_controls_never_enter(frame, episode):
    log = frame(episode("a", 0.5), episode("c", 1.0, arm=Arm.CONTROL))
    (cell,) = cells(log)
    assert (cell.performance.value, cell.coverage.scored) == (0.5, 1)
    assert cell.success.value == 0.0


def test_a_repeated_attempt_is_one_episode(frame, episode):
    log = frame(
        episode("x", None, end_reason=EndReason.VOID, end_detail="operator_error"),
        episode("x-a2", 0.5, attempt=2),
        episode("y", 1.0),
    )
    (result,) = policies(log)
    coverage = result.coverage
    assert (coverage.scored, coverage.attempted, coverage.attempts, coverage.voids) == (2, 2, 3, 1)
    assert coverage.missing == {}
    assert result.success.value == 0.5
    assert result.success_with_voids.value == pytest.approx(1 / 3)


def test_the_mean_quality_of_a_cell_has_the_interval_of_a_bounded_mean(frame, episode):
    rng = np.random.default_rng(5)
    few = [round(float(q), 3) for q in rng.uniform(0.4, 0.6, 5)]
    many = [round(float(q), 3) for q in rng.uniform(0.2, 0.9, 30)]
    log = frame(
        *(episode(f"a{i}", q, level=1) for i, q in enumerate(few)),
        *(episode(f"b{i}", q, level=2) for i, q in enumerate(many)),
    )
    found = [cell.performance for cell in cells(log, config=MetricConfig(resamples=4000))]
    assert found == bounded_mean_intervals([few, many])


def test_perfect_cells_have_the_exact_bound_and_not_a_width_of_zero(frame, episode):
    (cell,) = cells(frame(*(episode(f"e{i}") for i in range(5))))
    assert (cell.performance.low, cell.performance.high) == (pytest.approx(0.4781762), 1.0)
    assert cell.performance.method == "gaffke"
    (worst,) = cells(frame(*(episode(f"e{i}", 0.0) for i in range(5))))
    assert (worst.performance.low, worst.performance.high) == (0.0, pytest.approx(0.5218238))


def test_equal_scores_in_between_leave_the_doubt_of_their_number(frame, episode):
    (cell,) = cells(frame(*(episode(f"e{i}", 0.3) for i in range(5))))
    assert cell.performance.value == 0.3
    # Five draws that could all have been 0, or 1.
    share = 0.025 ** (1 / 5)
    ends = (cell.performance.low, cell.performance.high)
    assert ends == pytest.approx((0.3 * share, 1.0 - 0.7 * share), abs=1e-5)


def test_intervals_stay_in_the_range_of_the_quantity(frame, episode):
    (cell,) = cells(frame(*(episode(f"e{i}", q) for i, q in enumerate((0.5, 1.0, 1.0)))))
    assert 0.0 < cell.performance.low < 5 / 6 < cell.performance.high < 1.0


def test_overall_is_the_mean_of_conditions(frame, episode):
    log = frame(
        *(episode(f"a{i}", q, level=1, seed=i) for i, q in enumerate((0.2, 0.4))),
        *(episode(f"b{i}", q, level=2, seed=9 + i) for i, q in enumerate((0.9, 0.9, 0.9, 0.8))),
    )
    (result,) = policies(log)
    assert result.performance.value == pytest.approx((0.3 + 0.875) / 2)
    assert result.performance.method == "gaffke"
    width = result.performance.high - result.performance.low
    assert result.performance_elsewhere.high - result.performance_elsewhere.low > width
    assert result.n_conditions == 2


def test_conditions_like_these_are_covered_where_most_succeed_always_or_never(frame, episode):
    rng = np.random.default_rng(1)
    mean, concentration, n = 0.8, 0.25, 8
    rates = rng.beta(mean * concentration, (1 - mean) * concentration, (40, 5, 1))
    outcomes = rng.random((40, 5, n)) < rates
    rows = [
        episode(
            f"{who}-{task}-{i}", float(won), policy=f"p{who}", task=f"t{task}", seed=n * task + i
        )
        for (who, task, i), won in np.ndenumerate(outcomes)
    ]
    found = [result.performance_elsewhere for result in policies(frame(*rows))]
    # 0.93 less two standard errors.
    assert np.mean([one.low <= mean <= one.high for one in found]) > 0.85


def test_conditions_that_share_seeds_are_not_counted_as_independent(frame, episode):
    # Five seeds, each alike in ten conditions: five observations, whatever number of rows.
    quality = (1.0, 1.0, 0.2, 1.0, 0.4)
    rows = [
        episode(f"{level}-{seed}", q, level=level, seed=seed)
        for level in range(10)
        for seed, q in enumerate(quality)
    ]
    (result,) = policies(frame(*rows))
    (single,) = policies(frame(*rows[:5]))
    assert result.success_exact.n == 50
    assert result.success_exact.method == "korn_graubard_5_seeds"
    assert result.performance.method == "gaffke_5_seeds"
    for many, few in (
        (result.performance, single.performance),
        (result.success_exact, single.success_exact),
    ):
        assert many.value == pytest.approx(few.value)
        assert many.high - many.low > 0.9 * (few.high - few.low)
    (one_seed,) = policies(frame(*(row for row in rows if row.seed == 0)))
    assert one_seed.success_exact.low is None
    assert "one seed" in one_seed.success_exact.reason


@pytest.mark.slow
def test_intervals_over_shared_seeds_cover(frame, episode):
    import numpy as np

    rng = np.random.default_rng(1)
    covered = {"success_exact": 0, "performance": 0}
    trials = 200
    for _ in range(trials):
        # How hard a seed is decides most of what happens in all twelve conditions.
        hard = rng.beta(2, 2, 8)
        rows = [
            episode(f"{level}-{seed}", float(rng.random() < p), level=level, seed=seed)
            for level in range(12)
            for seed, p in enumerate(hard)
        ]
        (result,) = policies(frame(*rows))
        for name in covered:
            interval = getattr(result, name)
            covered[name] += interval.low <= 0.5 <= interval.high
    assert min(covered.values()) >= 0.9 * trials, covered


def test_policies_sides_and_conditions_stay_apart(frame, episode):
    log = frame(
        episode("a", 0.1, policy="p"),
        episode("b", 0.2, policy="q"),
        episode("c", 0.3, policy="p", side="real"),
        episode("d", 0.4, policy="p", difficulty="hard"),
        episode("e", 0.5, policy="p", level=None, difficulty=None, profile=None, task="Other-v0"),
    )
    found = {
        (c.side, c.task, c.level, c.difficulty, c.policy): c.performance.value for c in cells(log)
    }
    assert found == {
        ("real", ENV, 0, "easy", "p"): 0.3,
        ("sim", ENV, 0, "easy", "p"): 0.1,
        ("sim", ENV, 0, "easy", "q"): 0.2,
        ("sim", ENV, 0, "hard", "p"): 0.4,
        ("sim", "Other-v0", None, None, "p"): 0.5,
    }
    assert [(p.side, p.policy) for p in policies(log)] == [
        ("real", "p"),
        ("sim", "p"),
        ("sim", "q"),
    ]


def test_the_plan_says_what_was_not_played_and_in_which_order(frame, episode):
    plan = TrialPlan(
        name="t",
        tasks=[
            TaskPlan(
                levels=(3, 0), difficulties=(Difficulty.HARD, Difficulty.EASY), family="balancing"
            )
        ],
        policies=[PolicyPlan(name="zeta"), PolicyPlan(name="alpha")],
        episodes=2,
    )
    log = frame(
        episode("a", 0.5, policy="zeta", level=3, difficulty="hard"),
        episode("b", None, policy="zeta", level=3, difficulty="hard"),
        episode("c", 1.0, policy="zeta", level=0),
    )
    found = cells(log, plan)
    assert [(c.level, c.difficulty, c.policy) for c in found] == [
        (level, difficulty, policy)
        for level in (3, 0)
        for difficulty in ("hard", "easy")
        for policy in ("zeta", "alpha")
    ]
    assert found[0].coverage.text == "1 of 2 scored (1 fault)"
    assert found[1].coverage.text == "0 of 2 scored (2 not played)"
    assert found[6].coverage.text == "1 of 2 scored (1 not played)"
    zeta, alpha = policies(log, plan)
    assert zeta.coverage.text == "2 of 8 scored (1 fault, 5 not played)"
    assert alpha.performance.value is None


def test_a_bad_table_is_refused_at_the_door(frame, episode):
    with pytest.raises(InputError, match="row 1"):
        cells(frame(episode("a"), episode("a")))


def test_bad_settings_are_refused():
    with pytest.raises(InputError, match="level is 95"):
        MetricConfig(level=95)
    with pytest.raises(InputError, match="resamples is 5"):
        MetricConfig(resamples=5)
    with pytest.raises(InputError, match="seed is -1"):
        MetricConfig(seed=-1)


def test_settings_have_a_digest_that_changes_with_them():
    assert MetricConfig().digest == MetricConfig(seed=0).digest
    assert MetricConfig().digest != MetricConfig(seed=1).digest


def test_voids_count_as_failures_of_their_seed(frame, episode):
    rows = [
        episode(f"{level}-{seed}", 1.0, level=level, seed=seed)
        for level in range(6)
        for seed in range(4)
    ]
    voids = [
        episode(f"v{i}", None, level=i, seed=0, end_reason=EndReason.VOID, attempt=1)
        for i in range(6)
    ]
    (result,) = policies(frame(*rows, *voids))
    assert result.success_with_voids.value == pytest.approx(24 / 30)
    assert result.success_with_voids.low < 24 / 30 < result.success_with_voids.high
    assert result.success_with_voids.low < result.success.low
    (without,) = policies(frame(*rows))
    assert without.success_with_voids == without.success


def test_every_estimate_has_an_interval_or_says_why_not(frame, episode):
    log = frame(
        *(episode(f"a{i}", 0.3, seed=i) for i in range(4)),
        episode("b", 0.5, level=1, seed=0),
        episode("c", None, level=2, seed=0),
        *(episode(f"d{i}", q, level=3, seed=i) for i, q in enumerate((0.1, 0.2, 0.9))),
        episode("e", 0.4, policy="once", seed=1),
    )
    names = ("performance", "success", "success_exact")
    more = ("performance_elsewhere", "success_with_voids")
    estimates = [getattr(c, name) for c in cells(log) for name in names]
    estimates += [getattr(p, name) for p in policies(log) for name in (*names, *more)]
    assert len(estimates) == 5 * 3 + 2 * 5
    for estimate in estimates:
        if estimate.value is None or estimate.low is None or estimate.high is None:
            assert estimate.reason
        else:
            assert estimate.low < estimate.high
            assert estimate.low <= estimate.value <= estimate.high
            assert estimate.n > 0


@pytest.mark.parametrize("lost", [0, 3, 9])
def test_an_interval_holds_its_value_however_seeds_and_conditions_overlap(frame, episode, lost):
    """Ten seeds in an easy condition, fewer of them in a hard one."""
    log = frame(
        *(
            episode(f"easy-{seed}", 1.0 if seed % 5 else 0.5, level=0, seed=seed)
            for seed in range(10)
        ),
        *(
            episode(f"hard-{seed}", 0.0 if seed % 3 else 0.4, level=1, seed=seed)
            for seed in range(10 - lost)
        ),
    )
    (policy,) = policies(log)
    for found in (policy.performance, policy.success, policy.success_exact):
        assert found.low <= found.value <= found.high


def test_a_seed_met_once_more_changes_little(frame, episode):
    """What a seed says is continuous in which conditions it met."""
    episodes = [
        episode(f"{level}-{seed}", float((seed * 7 + level) % 10) / 10, level=level, seed=seed)
        for level in (0, 1)
        for seed in range(40)
    ]
    (full,), (less,) = policies(frame(*episodes)), policies(frame(*episodes[:-1]))
    assert less.performance.low == pytest.approx(full.performance.low, abs=0.02)
    assert less.performance.high == pytest.approx(full.performance.high, abs=0.02)
    assert less.success_exact.low == pytest.approx(full.success_exact.low, abs=0.02)
