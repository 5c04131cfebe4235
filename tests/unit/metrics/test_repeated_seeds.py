"""A seed that repeats in a condition counts there once: value, interval, rank and difference."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from robo_eval.core.kinds import Arm
from robo_eval.metrics.agreement import compare_sides
from robo_eval.metrics.comparison import compare_policies
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.effects import novelty_effects
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.performance import cells, policies, success_of_rows
from robo_eval.metrics.reliability import reliability_of_new_tasks
from robo_eval.metrics.summary import summarise
from robo_eval.metrics.tables import main_rows
from robo_eval.stats.proportions import clopper_pearson_interval

FAST = MetricConfig(resamples=199)


def rows(policy, outcomes, repeats=(), *, side="real", tasks=("push",), shift=0, **columns):
    """One row a seed and task, or as many as `repeats` says, all ending alike."""
    for task in tasks:
        for seed, outcome in enumerate(outcomes):
            for n in range(dict(repeats).get(seed, 1)):
                good = bool((outcome + shift) % 2)
                yield {
                    "episode_id": f"{policy}-{side}-{task}-{seed}-{n}", "side": side, "task": task,
                    "policy": policy, "seed": seed, "quality": float(good), "success": good,
                    "end_reason": "success" if good else "failure",
                    "pair_id": None, **columns,
                }  # fmt: skip


def table(*parts):
    return pd.DataFrame([row for part in parts for row in part])


A = [1, *[0] * 9]
"""Of ten starts one succeeds."""
B = [*[1] * 5, *[0] * 5]
OFTEN = {0: 20}


@pytest.fixture
def unequal():
    return table(rows("A", A, OFTEN), rows("B", B))


def test_metrics_and_compare_tell_one_share(unequal):
    found = {own.policy: own for own in summarise(unequal, config=FAST).policies}
    (side,) = compare_policies(episodes_frame(unequal), None, FAST)
    compared = {own.policy: own for own in side.policies}
    for own in (found["A"].success, found["A"].success_exact, compared["A"].success):
        assert own.value == pytest.approx(0.1)
        assert (round(own.low, 2), round(own.high, 2)) == (0.00, 0.45)
        assert (own.n, own.method) == (29, "korn_graubard_10_seeds")
    assert found["A"].performance.value == pytest.approx(0.1)
    assert found["A"].performance.high < 0.69
    (cell, _) = cells(unequal, None, FAST)
    assert (cell.performance.value, cell.success.value) == pytest.approx((0.1, 0.1))
    (pair,) = side.pairs
    assert [own.policy for own in side.by_success] == ["B", "A"]
    assert (pair.first, pair.n_units, pair.p_value) == ("B", 10, 0.125)
    better, worse = (compared[name].success.value for name in ("B", "A"))
    assert pair.difference.value == pytest.approx(better - worse)


def test_a_headline_says_that_it_is_by_seeds(unequal):
    found = {own.policy: own.headline for own in policies(unequal, None, FAST)}
    assert found["A"] == "20/29, by seeds 0.10, 95 % 0.00-0.45"
    assert found["B"] == "5/10, 95 % 0.19-0.81"


def test_a_missing_episode_may_be_a_seed_of_its_own():
    lost = {"quality": None, "success": None, "end_reason": "lost"}
    (found,) = policies(table(rows("A", A, OFTEN), rows("A", [0], task="push", **lost,
                        episode_id="x")), None, MetricConfig(min_coverage=0.5))  # fmt: skip
    assert found.success_bounds == pytest.approx((1 / 11, 2 / 11))
    assert found.performance_bounds == pytest.approx((1 / 11, 2 / 11))
    assert found.coverage.text == "29 of 30 scored (1 lost)"


def test_without_seeds_in_common_the_difference_is_that_of_the_shares():
    other = table(rows("B", B)).assign(seed=range(100, 110))
    every = episodes_frame(pd.concat([table(rows("A", A, OFTEN)), other]))
    (side,) = compare_policies(every, None, FAST)
    (pair,) = side.pairs
    assert pair.difference.value == pytest.approx(0.4)
    assert "seeds repeat" in pair.reason


def test_an_episode_without_a_seed_counts_by_itself():
    alone = table(rows("A", [1], episode_id="x")).assign(seed=None)
    (found,) = policies(pd.concat([table(rows("A", A, OFTEN)), alone]), None, FAST)
    assert found.success.value == pytest.approx(2 / 11)
    assert found.success.method == "korn_graubard_11_seeds"


def values(*parts) -> Iterator[float | None]:
    """Every number of success and quality that there is of a trial on both sides."""
    frame = table(*parts)
    for own in policies(frame, None, FAST):
        yield from (own.success.value, own.performance.value, own.performance_elsewhere.value)
    for own in cells(frame, None, FAST):
        yield from (own.success_exact.value, own.performance.value)
    for policy in ("A", "B"):
        found = compare_sides(frame[frame["policy"] == policy], config=FAST)
        estimates = (found.agreement, found.ar_sim, found.ar_physical, found.difference)
        yield from (one.value for one in (*estimates, found.new_task))
        yield from (one.value for one in found.families.values())
    for side in compare_policies(episodes_frame(frame), None, FAST):
        yield from (pair.difference.value for pair in side.pairs)
        if side.agreement is not None:
            yield from (*side.agreement.sim, *side.agreement.physical, side.agreement.mmrv.value)
    for body in summarise(episodes_frame(frame), config=FAST).bodies:
        yield from (body.reliability.value, reliability_of_new_tasks(body.rows, FAST).value)
        yield from (one.value for rates in body.conditions for one in (rates.sim, rates.physical))


@pytest.mark.parametrize(
    ("repeats", "simulated"), [(OFTEN, {}), ({}, {5: 3, 2: 2}), ({1: 2, 4: 5}, {0: 4})]
)
def test_repeating_an_episode_changes_no_value(repeats, simulated):
    tasks = ("lift", "pull", "push")

    def trial(here, there):
        for policy, outcomes in (("A", [1, 0, 0, 1, 0, 0]), ("B", [1, 1, 0, 1, 0, 1])):
            yield rows(policy, outcomes, here, tasks=tasks)
            yield rows(policy, outcomes, there, side="sim", tasks=tasks, shift=policy == "B")

    once, often = list(values(*trial((), ()))), list(values(*trial(repeats, simulated)))
    assert often == pytest.approx(once)


def test_repeated_pairs_count_once():
    def paired(outcomes, repeats, side):
        found = table(rows("A", outcomes, repeats, side=side))
        return found.assign(pair_id=found["episode_id"].str.split("-").str[2:].str.join("-"))

    every = pd.concat([paired(A, OFTEN, "real"), paired([0] * 10, OFTEN, "sim")])
    found = compare_sides(every, config=FAST)
    assert found.n_pairs == 29
    assert found.agreement.value == pytest.approx(0.9)
    assert found.difference.value == pytest.approx(0.1)
    assert found.ar_physical.value == pytest.approx(0.1)


def test_controls_of_one_seed_are_one_draw(frame, episode):
    found = []
    for seed, repeats in enumerate([6, 1, 1, 1]):
        for n in range(repeats):
            name = f"c{seed}-{n}"
            found.append(episode(name, 1.0, arm=Arm.CONTROL, seed=seed))
            quality = 1.0 if seed == 0 else 0.5 + seed / 10
            shared = {"level": 2, "seed": seed, "control_id": name}
            found.append(episode(f"m{seed}-{n}", quality, **shared))
    (effect,) = novelty_effects(frame(*found)).cells
    assert effect.difference.value == pytest.approx(-(0.4 + 0.3 + 0.2) / 4)
    assert (effect.difference.n, effect.n_pairs) == (4, 9)


def test_intervals_hold_the_truth_where_seeds_repeat_unequally():
    draw, truth, trials = np.random.default_rng(7), 0.7, 150
    repeats = {0: 20, 1: 8, 2: 4}
    every = main_rows(episodes_frame(table(rows("A", [1] * 12, repeats))))
    place = every["seed"].astype(int)
    held = pooled = 0
    for _ in range(trials):
        good = draw.random(len(place)) < draw.beta(1.05, 0.45, 12)[place]
        seen = every.having(quality=good.astype(float), success=good.astype(object))
        success = success_of_rows(seen, FAST, exact=True)
        held += success.low <= truth <= success.high
        low, high = clopper_pearson_interval(int(good.sum()), len(good))
        pooled += low <= truth <= high
    assert held / trials > 0.93
    assert pooled / trials < 0.8
