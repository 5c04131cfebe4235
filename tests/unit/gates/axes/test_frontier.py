"""The delegability frontier from episodes, and cutpoints of levels from exemplars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.plain import plain
from robo_eval.gates.axes.cutpoints import Cutpoint, cutpoints
from robo_eval.gates.axes.frontier import Frontier, frontier_of, shift
from robo_eval.gates.axes.settings import FrontierSettings

DAY = 86_400 * 10**9
FIVE = FrontierSettings(bins=5, resamples=200)


def episodes(
    policy: str, quality: Sequence[float], interventions: float, family: str = "pick", **more: Any
) -> pd.DataFrame:
    return pd.DataFrame(
        {"policy": policy, "family": family, "quality": quality,
         "interventions": interventions, **more}
    )  # fmt: skip


def ladder(**more: Any) -> pd.DataFrame:
    """One policy for each of five bins, with the qualities of the worked example."""
    qualities = [0.9, 0.92, 0.8, 0.6, 0.65]
    budgets = [4.5, 3.5, 2.5, 1.5, 0.5]
    return pd.concat(
        [
            episodes(f"p{i}", [q - 0.02, q + 0.02] * 5, h)
            for i, (q, h) in enumerate(zip(qualities, budgets, strict=True))
        ]
    )


def noisy(seed: int = 0, lift: float = 0.0, n: int = 40, days: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    tables = []
    for policy, (q, h) in {"careful": (0.8, 4.0), "bold": (0.6, 0.5)}.items():
        for family in ("pick", "place"):
            quality = np.clip(rng.normal(q + lift, 0.1, n), 0.0, 1.0)
            own = episodes(policy, quality.tolist(), 0.0, family)
            own["interventions"] = rng.poisson(h, n)
            if days:
                own["start_ns"] = (20_500 + np.arange(n) % days) * DAY
            tables.append(own)
    return pd.concat(tables)


def test_a_policy_that_needs_less_help_counts_wherever_more_is_allowed() -> None:
    """In the worked example of the scale the first two bins are pooled, and so are the last two.

    The best of all policies that are allowed cannot rise with autonomy: nothing is left to pool.
    """
    alone = formulas.delegability([0.9, 0.92, 0.8, 0.6, 0.65], [10] * 5, 0.75)
    assert alone["isotonic"] == pytest.approx([0.91, 0.91, 0.8, 0.625, 0.625])
    found = frontier_of(ladder(), FIVE)
    assert [one.policy for one in found.bins] == ["p1", "p1", "p2", "p4", "p4"]
    assert [one.fitted for one in found.bins] == pytest.approx([0.92, 0.92, 0.8, 0.65, 0.65])
    assert found.auf.value == pytest.approx((0.92 * 2 + 0.8 + 0.65 * 2) / 5, abs=1e-9)
    assert found.fraction_delegable.value == pytest.approx(0.6, abs=1e-9)
    assert [one.demand for one in found.bins] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    assert [one.budget for one in found.bins] == pytest.approx([4.5, 3.5, 2.5, 1.5, 0.5])
    assert [one.quality.n for one in found.bins] == [10] * 5
    assert found.auf.n == 30  # three policies are the best somewhere
    assert found.empty == ()


def test_the_share_of_good_episodes_is_a_frontier_of_its_own() -> None:
    mixed = pd.concat(
        [episodes("even", [0.7] * 10, 0), episodes("uneven", [1.0] * 6 + [0.0] * 4, 0)]
    )
    found = frontier_of(mixed, FIVE)
    assert found.bins[0].policy == "even"
    assert found.auf.value == pytest.approx(0.7)
    assert found.auf_share.value == pytest.approx(0.6)
    assert found.fraction_delegable.value == 0.0


def test_where_no_policy_stays_within_the_interventions_the_bin_is_empty() -> None:
    found = frontier_of(episodes("p", [0.5, 0.7] * 10, 2.0), FIVE)
    assert found.empty == pytest.approx((0.7, 0.9))
    assert [one.fitted is None for one in found.bins] == [False] * 3 + [True] * 2
    assert found.bins[4].quality.reason == "no policy stays within the interventions"
    assert found.auf.value == pytest.approx(0.6)


def test_exactly_the_budget_is_within_it() -> None:
    found = frontier_of(episodes("p", [0.5, 0.7] * 10, 0.5), FIVE)
    assert found.empty == ()


def test_policies_that_always_need_more_help_delegate_nothing() -> None:
    found = frontier_of(episodes("p", [0.9] * 10, 50), FIVE)
    assert found.auf.value is None
    assert "at no degree of autonomy" in str(found.auf.reason)
    assert len(found.empty) == 5


def test_families_weigh_alike_and_a_policy_without_one_is_left_out() -> None:
    easy = episodes("all", [1.0] * 90, 0, "pick")
    hard = episodes("all", [0.2, 0.4] * 5, 0, "place")
    alone = episodes("picker", [1.0] * 50, 0, "pick")
    found = frontier_of(pd.concat([easy, hard, alone]), FIVE)
    assert found.left_out == ("picker",)
    assert found.auf.value == pytest.approx(0.65)
    assert found.auf.n == 100


def test_no_policy_with_every_family_has_no_frontier() -> None:
    found = frontier_of(
        pd.concat([episodes("a", [0.5], 0, "pick"), episodes("b", [0.5], 0, "place")]), FIVE
    )
    assert (found.auf.value, found.left_out) == (None, ("a", "b"))
    assert found.auf.reason == "no policy has an episode in every family"


def test_no_episode_has_no_frontier() -> None:
    found = frontier_of(noisy().iloc[:0], FIVE)
    assert found.auf.value is None
    assert len(found.empty) == 5
    json.dumps(plain(found), allow_nan=False)


def test_episodes_that_are_all_alike_have_no_interval() -> None:
    found = frontier_of(episodes("p", [1.0] * 20, 0), FIVE)
    for one in (found.auf, found.auf_share, found.fraction_delegable, found.bins[0].quality):
        assert (one.value, one.low, one.reason) == (1.0, None, "all episodes are alike")


def test_days_are_drawn_only_if_each_policy_played_each_family_on_five() -> None:
    assert frontier_of(noisy(), FIVE).method.startswith("bootstrap_of_episodes: it is not known")
    few = frontier_of(noisy(days=4), FIVE)
    assert few.method == (
        "bootstrap_of_episodes: a policy played a family on 4 days; blocks need 5"
    )
    many = frontier_of(noisy(days=8), FIVE)
    assert many.method.startswith("moving_block_bootstrap: each policy played each family on 8")
    assert (many.auf.method, few.auf.method) == ("moving_block_bootstrap", "bootstrap_of_episodes")
    assert many.auf.value == few.auf.value
    unknown = noisy(days=8).reset_index(drop=True)
    unknown["start_ns"] = unknown["start_ns"].astype("Int64")
    unknown.loc[3, "start_ns"] = pd.NA
    assert frontier_of(unknown, FIVE).method.startswith("bootstrap_of_episodes")


def test_days_that_differ_widen_the_interval() -> None:
    """Every episode of a day is alike: there are as many observations as days."""
    table = noisy(days=8, n=80)
    luck = np.random.default_rng(3).normal(0.0, 0.1, 8)
    day = (table["start_ns"] // DAY - 20_500).to_numpy()
    table["quality"] = np.clip(table["quality"] * 0.0 + 0.6 + luck[day], 0.0, 1.0)
    by_day = frontier_of(table, FIVE).auf
    alone = frontier_of(table.drop(columns="start_ns"), FIVE).auf
    assert by_day.low is not None
    assert by_day.high is not None
    assert alone.low is not None
    assert alone.high is not None
    assert by_day.high - by_day.low > 2.0 * (alone.high - alone.low)


def test_the_same_seed_has_the_same_result_in_any_order_of_rows() -> None:
    table = noisy(days=8)
    once, again = (
        frontier_of(one, FIVE, seed=1) for one in (table, table.sample(frac=1.0, random_state=0))
    )
    assert once == again
    assert np.array_equal(once.qualities, again.qualities, equal_nan=True)
    assert once.auf.low != frontier_of(table, FIVE, seed=2).auf.low


@given(
    rows=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["pick", "place"]),
                  st.floats(0.0, 1.0), st.integers(0, 6)),
        min_size=1, max_size=30,
    ),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_frontier_never_rises_and_is_its_own_isotonic_fit(
    rows: list[tuple[str, str, float, int]],
) -> None:
    table = pd.DataFrame(rows, columns=["policy", "family", "quality", "interventions"])
    found = frontier_of(table, FrontierSettings(resamples=100))
    fitted = [one.fitted for one in found.bins if one.fitted is not None]
    assert fitted == sorted(fitted, reverse=True)
    for one in found.bins:
        assert one.quality.value is None or one.fitted == pytest.approx(one.quality.value)
        if one.quality.low is not None:
            assert one.quality.low <= (one.quality.value or 0.0) <= (one.quality.high or 0.0)
    for row in found.qualities[:5]:
        full = row[~np.isnan(row)]
        assert (np.diff(full) <= 1e-12).all()
        if len(full):
            n = [0 if np.isnan(x) else 1 for x in row]
            values = [None if np.isnan(x) else float(x) for x in row]
            assert formulas.delegability(values, n)["auf"] == pytest.approx(full.mean())
    json.dumps(plain(found), allow_nan=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"quality": 1.2}, "row 0, column 'quality' is 1.2"),
     ({"quality": float("nan")}, "column 'quality'"),
     ({"interventions": -1}, "row 0, column 'interventions' is -1"),
     ({"interventions": float("inf")}, "of at least 0")],
)  # fmt: skip
def test_what_is_no_scored_episode_is_refused(change: dict[str, float], message: str) -> None:
    table = episodes("p", [0.5], 0).assign(**change)
    with pytest.raises(InputError, match=message):
        frontier_of(table, FIVE)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(InputError, match="column 'interventions' is missing"):
        frontier_of(episodes("p", [0.5], 0).drop(columns="interventions"), FIVE)


# Shift -------------------------------------------------------------------------------------------


def test_a_better_second_trial_is_progress_on_every_bin() -> None:
    first, second = frontier_of(noisy(0), FIVE), frontier_of(noisy(1, lift=0.15), FIVE)
    found = shift(first, second)
    assert found.progress is True
    assert found.below == ()
    assert found.auf.value == pytest.approx(
        (second.auf.value or 0.0) - (first.auf.value or 0.0), abs=1e-9
    )
    assert found.auf.low is not None
    assert found.auf.low > 0.0
    back = shift(second, first)
    assert back.progress is False
    assert len(back.below) == 5
    assert back.auf.value == pytest.approx(-(found.auf.value or 0.0))


def test_a_trial_beside_one_just_like_it_is_still_in_doubt() -> None:
    """Draws with the same seed are the same; taken in pairs they would leave no doubt at all."""
    one = frontier_of(noisy(), FIVE)
    found = shift(one, one)
    assert (found.auf.value, found.progress) == (0.0, True)
    assert found.auf.low is not None
    assert found.auf.low < -0.01


def test_areas_are_compared_where_both_have_a_policy_and_a_lost_bin_is_no_progress() -> None:
    helped = frontier_of(episodes("p", [0.8, 1.0] * 10, 2.0), FIVE)
    alone = frontier_of(episodes("p", [0.5, 0.7] * 10, 0.0), FIVE)
    assert shift(helped, alone).auf.value == pytest.approx(-0.3)
    lost = shift(alone, helped)
    assert lost.auf.value == pytest.approx(0.3)
    assert lost.progress is False
    assert lost.below == pytest.approx((0.7, 0.9))


def test_nothing_to_compare_has_no_shift() -> None:
    nothing = frontier_of(noisy().iloc[:0], FIVE)
    found = shift(nothing, frontier_of(noisy(), FIVE))
    assert (found.auf.value, found.progress) == (None, None)
    assert shift(frontier_of(noisy(), FIVE), nothing).progress is False
    json.dumps(plain(found), allow_nan=False)


def test_frontiers_of_different_settings_are_not_compared() -> None:
    one: Frontier = frontier_of(noisy(), FIVE)
    for other in (
        FrontierSettings(bins=4, resamples=200),
        FrontierSettings(bins=5, resamples=200, most_interventions=4.0),
        FrontierSettings(bins=5, resamples=200, quality=0.5),
    ):
        with pytest.raises(InputError, match="different settings"):
            shift(one, frontier_of(noisy(), other))


# Cutpoints ---------------------------------------------------------------------------------------


def test_a_level_begins_half_way_between_its_exemplars_and_those_below() -> None:
    found = cutpoints([0.9, 0.1, 0.3, 0.5], [2, 0, 0, 1])
    assert found == (Cutpoint(level=1, score=0.4), Cutpoint(level=2, score=0.7))


def test_exemplars_out_of_order_are_pooled() -> None:
    # Levels 0 1 0 1 1 in order of score: the middle two pool to one half, which reaches level 1.
    found = cutpoints([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 1])
    assert [one.level for one in found] == [1]
    assert found[0].score == pytest.approx(0.15)


def test_a_level_that_is_never_reached_has_no_cutpoint() -> None:
    found = cutpoints([0.1, 0.9], [2, 0])
    assert [one.score for one in found] == [None, None]
    assert [one.reason for one in found] == [
        "exemplars of lower levels score as high",
        "exemplars of it score too low",
    ]


def test_one_level_or_no_exemplar_has_no_cutpoint() -> None:
    assert cutpoints([0.1, 0.2], [1, 1]) == ()
    assert cutpoints([], []) == ()


def test_exemplars_of_equal_score_count_together() -> None:
    found = cutpoints([0.1, 0.5, 0.5, 0.5, 0.9], [0, 0, 0, 1, 1])
    assert found[0].score == pytest.approx(0.7)  # one of three at 0.5 is below one half


@given(
    pairs=st.lists(st.tuples(st.floats(0.0, 1.0), st.integers(0, 4)), min_size=1, max_size=20)
)  # fmt: skip
def test_cutpoints_rise_with_the_level(pairs: list[tuple[float, int]]) -> None:
    scores, levels = zip(*pairs, strict=True)
    found = cutpoints(scores, levels)
    assert [one.level for one in found] == list(range(min(levels) + 1, max(levels) + 1))
    given = [one.score for one in found if one.score is not None]
    assert given == sorted(given)


def test_exemplars_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ShapeError):
        cutpoints([0.1], [1, 2])
    with pytest.raises(InputError, match=r"levels\[0\]"):
        cutpoints([0.1], [1.5])  # type: ignore[list-item]
