"""Autonomy, generality, planning and world model from tables of scored episodes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.gates.axes.draws import Resampled
from robo_eval.gates.axes.episodes import (
    EPISODE_AXES,
    episodes_measured,
    family_mean,
    stated_skill,
)
from robo_eval.gates.axes.settings import AxisSettings
from robo_eval.stats.proportions import clopper_pearson_interval


def episodes(n: int, **columns: Any) -> pd.DataFrame:
    table = {
        "family": ["pick"] * n, "quality": [1.0] * n, "success": [True] * n,
        "interventions": [0] * n, "uninterrupted_actions": [None] * n, "plan_depth": [None] * n,
        "stated_success_probability": [np.nan] * n, **columns,
    }  # fmt: skip
    return pd.DataFrame(table)


def mixed(n: int, *, families: int = 3, seed: int = 0) -> pd.DataFrame:
    """Episodes of which everything is known and nothing is constant."""
    rng = np.random.default_rng(seed)
    success = rng.random(n) < 0.6
    return episodes(
        n,
        family=[f"family-{i % families}" for i in range(n)],
        quality=np.clip(success * 0.6 + rng.random(n) * 0.4, 0.0, 1.0),
        success=success,
        uninterrupted_actions=rng.integers(0, 80, n),
        plan_depth=rng.integers(1, 13, n),
        stated_success_probability=np.clip(0.6 * success + 0.4 * rng.random(n), 0.0, 1.0),
        interventions=rng.integers(0, 2, n),
    )


def measured(table: pd.DataFrame, **settings: Any) -> dict[str, Resampled]:
    return episodes_measured(table, AxisSettings(**settings))


def draws(found: Resampled) -> np.ndarray:
    assert found.draws is not None
    return found.draws


# Worked numbers of the scale ---------------------------------------------------------------------


def test_the_worked_example_of_autonomy():
    found = measured(episodes(4, uninterrupted_actions=[10, 50, 80, 25]))["A"]
    assert found.raw.value == pytest.approx(0.675, abs=1e-9)
    solved = [True, True, True, False]
    gated = measured(
        episodes(4, uninterrupted_actions=[10, 50, 80, 25], success=solved), success_gated=True
    )
    assert gated["A"].raw.value == pytest.approx(0.55, abs=1e-9)


def test_the_worked_example_of_generality():
    quality = [0.9] * 5 + [0.8] * 5 + [0.7] * 5 + [0.4] * 5
    family = [name for name in "abcd" for _ in range(5)]
    found = measured(episodes(20, family=family, quality=quality))["G"]
    assert found.raw.value == pytest.approx(0.75, abs=1e-9)


def test_the_worked_example_of_planning():
    table = episodes(4, plan_depth=[4, 8, 12, 6], success=[True, True, True, False])
    assert measured(table)["P"].raw.value == pytest.approx(0.625, abs=1e-9)


def test_the_worked_example_of_the_world_model():
    table = episodes(
        4, stated_success_probability=[0.9, 0.2, 0.7, 0.6], success=[True, False, True, False]
    )
    assert measured(table)["W"].raw.value == pytest.approx(0.5, abs=1e-9)


# What gates read ---------------------------------------------------------------------------------


def test_episodes_that_are_all_alike_have_an_exact_lower_end():
    found = measured(episodes(50, uninterrupted_actions=60))["A"].raw
    low, _ = clopper_pearson_interval(50, 50)
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(low)


STATED = {
    "even": lambda rng, n: rng.beta(2.0, 2.0, n),
    "mostly sure of success": lambda rng, n: np.where(rng.random(n) < 0.8, 0.95, 0.5),
    "sure either way": lambda rng, n: np.where(rng.random(n) < 0.5, 0.9, 0.1),
}


@pytest.mark.parametrize("n", [5, 10, 20, 50])
@pytest.mark.parametrize("kind", STATED)
def test_the_interval_of_the_skill_covers_few_episodes(kind, n):
    """Resampled, it held the truth in 67 to 92 % of trials of ten episodes."""
    rng, runs, held = np.random.default_rng(n), 400, 0
    chance = STATED[kind](rng, 200_000)
    truth = 1.0 - (chance * (1.0 - chance)).mean() / (chance.mean() * (1.0 - chance.mean()))
    for _ in range(runs):
        p = STATED[kind](rng, n)
        found = stated_skill(p, (rng.random(n) < p).astype(float), level=0.95)
        held += found.low <= truth <= found.high
    assert held / runs >= 0.93 - 0.01


def test_the_skill_of_many_episodes_has_the_interval_of_its_resamples():
    rng = np.random.default_rng(5)
    y = (rng.random(3000) < 0.5).astype(float)
    p = np.clip(0.5 + 0.3 * (y - 0.5) + rng.normal(0.0, 0.1, 3000), 0.0, 1.0)
    found = stated_skill(p, y, level=0.9)
    at = rng.integers(0, 3000, size=(1000, 3000))
    brier = ((p[at] - y[at]) ** 2).mean(axis=1)
    skill = 1.0 - brier / y[at].var(axis=1)
    low, high = np.quantile(skill, [0.05, 0.95])
    assert (found.low, found.high) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))


def test_the_mean_counts_every_family_once():
    credit = np.array([1.0, 1.0, 1.0, 0.5, 0.0, 0.1])
    family = np.array(["a", "a", "a", "a", "b", "b"], dtype=object)
    found = family_mean(credit, family, level=0.95)
    assert found.value == pytest.approx((0.875 + 0.05) / 2)


@pytest.mark.parametrize("n", [5, 10, 20, 50])
@pytest.mark.parametrize("families", [1, 3])
def test_the_mean_of_rare_credit_covers(n, families):
    """Resampled, what few episodes earn held the truth in 40 to 89 % of trials."""
    rng, runs, held = np.random.default_rng(n), 300, 0
    family = np.repeat(np.arange(families), n).astype(object)
    for _ in range(runs):
        credit = (rng.random(len(family)) < 0.1) * rng.choice([0.25, 0.5, 1.0], len(family))
        found = family_mean(credit, family, level=0.95)
        held += found.low <= 0.1 * 1.75 / 3.0 <= found.high
    assert held / runs >= 0.93


def test_full_credit_is_one_to_the_last_digit():
    family = np.repeat(np.array(["a", "b", "c"], dtype=object), [3, 7, 11])
    assert family_mean(np.ones(21), family, level=0.95).value == 1.0


def test_no_credit_at_all_leaves_doubt():
    found = family_mean(np.zeros(5), np.array(["a"] * 5, dtype=object), level=0.95)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(clopper_pearson_interval(0, 5)[1])


# Missing and degenerate --------------------------------------------------------------------------


def test_without_episodes_every_axis_is_missing_and_says_which_column_it_needs():
    found = measured(episodes(0))
    assert set(found) == set(EPISODE_AXES)
    for name, column in (("A", "uninterrupted_actions"), ("G", "quality"), ("P", "plan_depth"),
                         ("W", "stated_success_probability")):  # fmt: skip
        assert found[name].raw.value is None
        assert column in str(found[name].raw.reason)
        assert found[name].draws is None


def test_one_episode_has_values_and_no_interval():
    table = episodes(
        1, uninterrupted_actions=[20], plan_depth=[4], stated_success_probability=[0.7]
    )
    found = measured(table)
    for name in ("A", "P", "W"):
        assert found[name].raw.value is not None
        assert (found[name].raw.low, found[name].draws) == (None, None)
    # One episode says nothing about whether its family is covered.
    assert (found["G"].raw.value, found["G"].raw.low, found["G"].raw.high) == (1.0, 0.0, 1.0)


def test_episodes_that_are_all_alike_leave_doubt_in_the_draws():
    found = measured(episodes(30, uninterrupted_actions=60))["A"]
    assert found.raw.value == 1.0
    assert draws(found).max() <= 1.0
    assert 0.9 < np.quantile(draws(found), 0.025) < 0.97
    many = measured(episodes(3000, uninterrupted_actions=60))["A"]
    assert draws(many).min() > 0.99


def test_a_success_rate_that_foretells_everything_is_said():
    table = episodes(30, stated_success_probability=[1.0] * 30)
    found = measured(table)["W"]
    assert found.raw.value == 1.0
    assert "ended alike" in str(found.raw.reason)


def test_where_few_episodes_say_it_resamples_without_one_count_as_others():
    """Two of forty say it: more than one resample in ten holds neither of them."""
    actions: list[int | None] = [None] * 40
    actions[3], actions[20] = 40, 50
    found = measured(episodes(40, uninterrupted_actions=actions))["A"]
    assert found.raw.n == 2
    assert draws(found).min() >= 0.8


# Generality --------------------------------------------------------------------------------------


def test_families_are_covered_by_the_ends_of_their_intervals():
    """One is sure to be covered, one sure not to be, and of one nobody knows."""
    quality = [1.0, 0.9] * 50 + [0.1, 0.2] * 50 + [0.0, 1.0, 1.0, 0.9] * 2
    family = ["sure"] * 100 + ["not"] * 100 + ["perhaps"] * 8
    found = measured(episodes(208, family=family, quality=quality))["G"]
    values = (found.raw.value, found.raw.low, found.raw.high)
    assert values == (pytest.approx(2 / 3), pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert found.parts["perhaps"].value == pytest.approx(0.725)
    shares = {round(float(x), 3) for x in draws(found)}
    assert shares == {0.333, 0.667}


def test_a_family_may_have_a_threshold_of_its_own():
    table = episodes(40, family=["a", "b"] * 20, quality=[0.8, 0.6] * 20)
    assert measured(table)["G"].raw.value == 0.5
    assert measured(table, family_qualities={"b": 0.5})["G"].raw.value == 1.0
    found = measured(table, family_qualities={"c": 0.5})["G"]
    assert found.raw.reason == "no episode of c"


def test_rounding_does_not_decide_what_is_covered():
    table = episodes(30, quality=[0.6, 0.7, 0.8] * 10)
    assert measured(table)["G"].raw.value == 1.0
    alike = measured(episodes(30, quality=[0.7] * 30))["G"]
    assert (alike.raw.value, alike.raw.low) == (1.0, 0.0)


@pytest.mark.parametrize(("quality", "value"), [(0.75, 1.0), (0.65, 0.0)])
def test_a_family_of_equal_qualities_near_its_threshold_is_in_doubt(quality: float, value: float):
    found = measured(episodes(10, quality=[quality] * 10))["G"]
    assert (found.raw.value, found.raw.low, found.raw.high) == (value, 0.0, 1.0)
    assert 0.0 < draws(found).mean() < 1.0


# Parts of autonomy -------------------------------------------------------------------------------


def test_who_intervened_and_how_long_it_went_on():
    table = episodes(10, interventions=[0] * 8 + [1, 3], uninterrupted_actions=list(range(10)))
    parts = measured(table)["A"].parts
    alone = parts["no_intervention"]
    assert (alone.value, alone.n) == (0.8, 10)
    assert (alone.low, alone.high) == pytest.approx(clopper_pearson_interval(8, 10))
    names = ("actions_lower_quartile", "actions_median", "actions_upper_quartile")
    assert [parts[name].value for name in names] == [2.25, 4.5, 6.75]


# The bootstrap -----------------------------------------------------------------------------------


def test_the_draws_of_all_axes_are_of_the_same_resamples():
    """Planning is credit for solved episodes, and quality is solving: the two rise together."""
    rng = np.random.default_rng(3)
    success = rng.random(60) < 0.7
    table = episodes(
        60, success=success, quality=success.astype(float), plan_depth=[8] * 60,
        uninterrupted_actions=np.where(success, 50, 0),
        stated_success_probability=np.clip(rng.random(60), 0.0, 1.0),
    )  # fmt: skip
    found = measured(table)
    assert draws(found["A"]) == pytest.approx(draws(found["P"]), abs=1e-12)
    covered = draws(found["G"]) == 1.0
    assert draws(found["P"])[covered].min() >= 0.7 - 1e-9
    assert draws(found["P"])[~covered].max() < 0.7


def test_draws_are_the_same_for_a_seed_and_for_any_order_of_episodes():
    table = mixed(120)
    first = episodes_measured(table, AxisSettings(), resamples=200, seed=7)
    again = episodes_measured(
        table.sample(frac=1.0, random_state=1), AxisSettings(), resamples=200, seed=7
    )
    other = episodes_measured(table, AxisSettings(), resamples=200, seed=8)
    for name in EPISODE_AXES:
        assert np.allclose(draws(first[name]), draws(again[name]), atol=1e-12)
        assert draws(first[name]).shape == (200,)
    assert not np.array_equal(draws(first["A"]), draws(other["A"]))


def test_the_draws_of_the_world_model_weigh_families_by_their_episodes():
    """A large family that foretells well, and a small one that does not: skill is of all."""
    rng = np.random.default_rng(6)
    success = rng.random(330) < 0.5
    good = np.where(success, 0.9, 0.1)
    bad = np.where(success, 0.2, 0.8)
    table = episodes(
        330, family=["large"] * 300 + ["small"] * 30, success=success,
        stated_success_probability=np.concatenate([good[:300], bad[300:]]),
    )  # fmt: skip
    found = measured(table)["W"]
    assert found.raw.value is not None
    assert draws(found).mean() == pytest.approx(found.raw.value, abs=0.01)


@pytest.mark.parametrize("n", [60, 600, 5000])
def test_draws_spread_as_the_intervals_say(n: int):
    """The draws have the ends of the estimates, which are wider where episodes are few."""
    found = episodes_measured(mixed(n), AxisSettings(), resamples=4000)
    for name in ("A", "P"):
        raw = found[name].raw
        assert raw.low is not None
        assert raw.high is not None
        low, high = np.quantile(draws(found[name]), [0.025, 0.975])
        width = raw.high - raw.low
        assert abs(low - raw.low) < 0.08 * width
        assert abs(high - raw.high) < 0.08 * width


@given(
    outcomes=st.lists(
        st.tuples(st.integers(0, 90), st.integers(0, 12), st.floats(0.0, 1.0), st.booleans(),
                  st.sampled_from("abc")),
        min_size=1, max_size=25,
    ),
)  # fmt: skip
def test_every_value_and_draw_is_a_share(outcomes: Sequence[tuple[int, int, float, bool, str]]):
    actions, depth, p, success, family = zip(*outcomes, strict=True)
    table = episodes(
        len(outcomes), uninterrupted_actions=actions, plan_depth=depth,
        stated_success_probability=p, success=success, family=family,
        quality=[float(ok) for ok in success],
    )  # fmt: skip
    found = episodes_measured(table, AxisSettings(), resamples=100)
    for one in found.values():
        assert one.raw.value is not None
        assert 0.0 <= one.raw.value <= 1.0
        if one.draws is not None:
            assert ((one.draws >= 0.0) & (one.draws <= 1.0)).all()
    by_family: dict[str, list[float]] = {}
    for action, own in zip(actions, family, strict=True):
        by_family.setdefault(own, []).append(float(action))
    means = [formulas.autonomy(own) for own in by_family.values()]
    assert found["A"].raw.value == pytest.approx(np.mean([mean or 0.0 for mean in means]))


def test_many_episodes_need_no_gigabytes():
    table = mixed(10_000, families=5)
    tracemalloc.start()
    episodes_measured(table, AxisSettings())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150e6  # all resamples of all episodes at once would be 160e6
