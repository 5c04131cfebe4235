import json
import math

import numpy as np
import pandas as pd
import pytest

from robo_eval.analysis.acc import acc_for_trial, analyse
from robo_eval.analysis.acc.trial import acc_of_table
from robo_eval.core.errors import InputError
from robo_eval.metrics.frame import episodes_frame

ENV = "RoboEval/CartPole3D-v0"
CELLS = [(level, d) for level in (0, 1, 2) for d in ("easy", "medium", "hard")]


def _panel(**more):
    return pd.DataFrame(
        [
            {"level": level, "difficulty": d, "item_difficulty": 0.1 * index, **more}
            for index, (level, d) in enumerate(CELLS)
        ]
    )


def _frame(policies, n=4, arm="main", side="sim"):
    rng = np.random.default_rng(7)
    rows = []
    for policy, slope in policies.items():
        for index, (level, d) in enumerate(CELLS):
            for seed in range(n):
                quality = round(float(np.clip(1 - slope * index + rng.normal(0, 0.05), 0, 1)), 3)
                rows.append(
                    {
                        "episode_id": f"{side}-{arm}-{policy}-{level}-{d}-{seed}",
                        "side": side,
                        "task": ENV,
                        "policy": policy,
                        "level": level,
                        "difficulty": d,
                        "profile": "paper",
                        "arm": arm,
                        "quality": quality,
                        "success": quality == 1.0,
                        "end_reason": "success" if quality == 1.0 else "failure",
                    }
                )
    return pd.DataFrame(rows)


def test_items_are_the_cells_and_responses_their_mean_quality():
    frame = _frame({"balancer": 0.08, "random": 0.12})
    table = acc_for_trial(frame, _panel())
    assert [row.policy for row in table.rows] == ["balancer", "random"]
    for row in table.rows:
        own = frame[frame["policy"] == row.policy]
        means = [
            own[(own["level"] == level) & (own["difficulty"] == d)]["quality"].mean()
            for level, d in CELLS
        ]
        expected = analyse(means, 0.1 * np.arange(9))
        assert row.capability.value == pytest.approx(expected.capability)
        assert row.spread.value == pytest.approx(expected.spread)
        assert row.normalised_generality.value == pytest.approx(expected.normalised_generality)
        assert row.expected_difficulty.value == pytest.approx(expected.expected_difficulty)
        assert row.generality.value == pytest.approx(expected.generality)
        for name in ("capability", "spread", "generality", "expected_difficulty"):
            estimate = getattr(row, name)
            assert estimate.low < estimate.value < estimate.high
            assert estimate.n == 36
        assert (row.n_items, row.n_missing_items, row.n_episodes) == (9, 0, 36)
    assert (table.h0, table.q, table.n_items, table.n_levels) == (0.0, pytest.approx(0.8), 9, 9)
    assert table.population["capability_generality"] is None
    assert (
        "2 policies with a defined generality; a correlation needs 4" in table.population["caution"]
    )


def test_five_episodes_an_item_are_unreliable_and_twenty_are_not():
    few, many = (acc_for_trial(_frame({"p": 0.1}, n), _panel()).rows[0] for n in (5, 20))
    assert few.unreliable == "unreliable: fewer than 20 episodes at 9 of 9 difficulty levels"
    assert few.normalised_generality.reason == few.unreliable
    assert many.unreliable is None
    assert many.normalised_generality.reason is None


def test_controls_and_unscored_episodes_are_not_items():
    frame = _frame({"p": 0.1})
    first = acc_for_trial(frame, _panel())
    extra = _frame({"p": 0.0}, arm="control")
    fault = frame.iloc[[0]].assign(episode_id="f", quality=None, success=None, end_reason="fault")
    second = acc_for_trial(pd.concat([frame, extra, fault]), _panel()).as_dict()
    coverage = second["rows"][0].pop("coverage")
    assert coverage["text"] == "36 of 37 scored (1 fault)"
    expected = first.as_dict()
    expected["rows"][0].pop("coverage")
    assert second == expected


def test_an_item_without_a_score_is_bridged_and_reported():
    frame = _frame({"p": 0.1, "q": 0.05})
    gone = (frame["policy"] == "p") & (frame["level"] == 1) & (frame["difficulty"] == "medium")
    p, q = acc_for_trial(frame[~gone], _panel()).rows
    assert (p.n_items, p.n_missing_items) == (8, 1)
    assert (q.n_items, q.n_missing_items) == (9, 0)
    assert math.isnan(p.curve[4])
    assert len(p.as_dict()["curve"]["difficulty"]) == 8


def test_sides_stay_apart():
    frame = pd.concat([_frame({"p": 0.1}), _frame({"p": 0.12}, side="real")])
    assert [(r.side, r.policy) for r in acc_for_trial(frame, _panel()).rows] == [
        ("real", "p"),
        ("sim", "p"),
    ]


def test_conditions_without_a_difficulty_are_named():
    frame = _frame({"p": 0.1})
    table = acc_for_trial(frame, _panel()[lambda items: items["level"] < 2])
    assert table.left_out == tuple(
        f"2 {difficulty} (no known difficulty)" for difficulty in ("easy", "hard", "medium")
    )
    assert table.n_items == 6
    nothing = acc_for_trial(frame, _panel(task="Other-v0"))
    assert nothing.rows == ()
    assert nothing.reason == "no condition of this trial has an item difficulty"
    json.dumps(nothing.as_dict(), allow_nan=False)


def test_an_agent_that_never_or_always_succeeds_has_no_generality():
    frame = _frame({"ace": 0.0, "dud": 0.0})
    frame[["quality", "success", "end_reason"]] = [1.0, True, "success"]
    dud = frame["policy"] == "dud"
    frame.loc[dud, "quality"] = 0.0
    frame.loc[dud, "success"] = False
    frame.loc[dud, "end_reason"] = "failure"
    ace, dud_row = acc_for_trial(frame, _panel()).rows
    assert (ace.flag, dud_row.flag) == ("ceiling", "floor")
    assert ace.normalised_generality.value is None
    assert ace.normalised_generality.reason == "not defined at ceiling"
    assert dud_row.capability.value == 0.0
    json.dumps([ace.as_dict(), dud_row.as_dict()], allow_nan=False)


def test_bad_difficulty_tables_are_refused():
    frame = _frame({"p": 0.1})
    with pytest.raises(InputError, match="column 'item_difficulty' is missing"):
        acc_for_trial(frame, _panel().drop(columns="item_difficulty"))
    with pytest.raises(InputError, match="row 9 names 0 easy a second time"):
        acc_for_trial(frame, pd.concat([_panel(), _panel().iloc[:1]]))
    broken = _panel()
    broken.loc[3, "item_difficulty"] = math.nan
    with pytest.raises(InputError, match="row 3, column 'item_difficulty' is nan"):
        acc_for_trial(frame, broken)


def _alike_at_zero():
    """A panel that found level 0 equally difficult whatever its difficulty, as ours does."""
    panel = _panel()
    panel.loc[panel["level"] == 0, "item_difficulty"] = 0.0
    return panel


def test_level_0_is_played_once_a_seed_whatever_the_difficulty():
    rng = np.random.default_rng(3)
    frame = _frame({"p": 0.1}, n=10)
    frame["seed"] = list(range(10)) * 9
    base = rng.uniform(0.7, 0.95, 10).round(3)
    at_zero = frame["level"] == 0
    frame.loc[at_zero, "quality"] = np.tile(base, 3)
    frame.loc[at_zero, ["success", "end_reason"]] = [False, "failure"]
    table = acc_for_trial(frame, _alike_at_zero())
    (row,) = table.rows
    # The three items of level 0 have 10 episodes between them: its 30 rows make no 20 episodes.
    assert (table.n_items, table.n_levels, row.n_items, row.n_episodes) == (9, 7, 9, 70)
    assert row.unreliable == "unreliable: fewer than 20 episodes at 7 of 7 difficulty levels"
    assert row.curve[0] == pytest.approx(base.mean())
    once = frame[~at_zero | (frame["difficulty"] == "easy")]
    again = acc_for_trial(once, _alike_at_zero()).rows[0].as_dict()
    assert (row.coverage.text, again["coverage"]["text"]) == ("90 of 90 scored", "70 of 70 scored")
    assert again == row.as_dict() | {"n_items": 7, "coverage": again["coverage"]}
    # Without seeds nothing says that they are the same episodes.
    unknown = acc_for_trial(frame.assign(seed=None), _alike_at_zero()).rows[0]
    assert unknown.n_episodes == 90
    assert unknown.unreliable == "unreliable: fewer than 20 episodes at 6 of 7 difficulty levels"


def test_one_difficulty_gives_no_number_and_no_interval():
    frame = _frame({"p": 0.1, "q": 0.2}, n=25)
    table = acc_for_trial(frame[frame["level"] == 0], _alike_at_zero())
    assert (table.n_items, table.n_levels, table.h0, table.q) == (3, 1, 0.0, 0.0)
    for row in table.rows:
        assert row.flag == "single_level"
        for name in ("capability", "spread", "normalised_generality", "generality"):
            estimate = getattr(row, name)
            assert (estimate.value, estimate.low, estimate.high) == (None, None, None)
            assert "a curve needs two difficulties" in estimate.reason
        assert row.n_episodes == 75
    assert table.population == {}
    json.dumps(table.as_dict(), allow_nan=False)


def test_an_agent_with_one_difficulty_on_a_wider_axis_has_no_number_either():
    frame = _frame({"p": 0.1, "q": 0.1})
    own = (frame["policy"] == "p") | ((frame["level"] == 1) & (frame["difficulty"] == "easy"))
    p, q = acc_for_trial(frame[own], _panel()).rows
    assert p.capability.value is not None
    assert (q.flag, q.capability.value) == ("single_level", None)


def test_episodes_that_all_ended_alike_have_no_interval():
    frame = _frame({"step": 0.0}, n=30)
    is_easy = frame["level"] < 2
    frame["quality"] = np.where(is_easy, 1.0, 0.3)
    frame["success"] = is_easy
    frame["end_reason"] = np.where(is_easy, "success", "failure")
    (row,) = acc_for_trial(frame, _panel()).rows
    for estimate in (row.capability, row.spread, row.normalised_generality, row.generality):
        assert estimate.value is not None
        assert (estimate.low, estimate.high) == (None, None)
        assert "ended alike" in estimate.reason


def test_floor_and_ceiling_have_no_interval_without_width():
    frame = _frame({"dud": 0.0})
    frame[["quality", "success", "end_reason"]] = [0.0, False, "failure"]
    (row,) = acc_for_trial(frame, _panel()).rows
    assert (row.capability.value, row.capability.low, row.capability.high) == (0.0, None, None)
    assert row.expected_difficulty.reason == "not defined at floor"
    assert row.generality.value is None


# Seeds that all items share ----------------------------------------------------------------------


def _with_seed_effect(n):
    """One policy that is as far up or down in every item as its seed says."""
    frame = _frame({"p": 0.06}, n)
    frame["seed"] = list(range(n)) * len(CELLS)
    quality = frame["quality"] - 0.1 + 0.15 * np.cos(frame["seed"])
    frame["quality"] = quality.clip(0.01, 0.99).round(4)
    frame[["success", "end_reason"]] = [False, "failure"]
    return frame


def _width(estimate):
    return estimate.high - estimate.low


def test_seeds_that_items_share_are_resampled_as_one():
    frame = _with_seed_effect(20)
    (shared,) = acc_for_trial(frame, _panel()).rows
    (unknown,) = acc_for_trial(frame.assign(seed=None), _panel()).rows
    (own,) = acc_for_trial(frame.assign(seed=range(len(frame))), _panel()).rows
    assert shared.capability.method == "seed_bootstrap_percentile"
    assert unknown.capability.method == own.capability.method == "stratified_bootstrap_percentile"
    assert own.capability == unknown.capability
    assert shared.capability.value == own.capability.value
    # What a seed does it does in all nine items, which do not average it out.
    assert _width(shared.capability) > 2 * _width(own.capability)
    means = frame.groupby("seed")["quality"].mean()
    expected = 2 * 2.09 * means.std() / math.sqrt(20) * 0.8
    assert _width(shared.capability) == pytest.approx(expected, rel=0.15)
    assert shared.unreliable is None
    shuffled = frame.sample(frac=1, random_state=1)
    assert acc_for_trial(shuffled, _panel()).rows[0].as_dict() == shared.as_dict()


def test_few_shared_seeds_are_unreliable_and_fewer_give_no_interval():
    few, two, one = (acc_for_trial(_with_seed_effect(n), _panel()).rows[0] for n in (5, 2, 1))
    assert few.unreliable.startswith("unreliable: 5 seeds, shared by the items, 8 needed; fewer")
    assert few.capability.low < few.capability.value < few.capability.high
    for row, seeds in ((two, "2 seeds"), (one, "1 seed")):
        assert row.unreliable.startswith(f"unreliable: {seeds}, shared by the items, 8 needed")
        for estimate in (row.capability, row.spread, row.normalised_generality, row.generality):
            assert estimate.value is not None
            assert (estimate.low, estimate.high) == (None, None)
            assert estimate.reason == (
                f"{seeds}, shared by the items, cannot be resampled; 3 needed"
            )


def test_an_item_without_some_seeds_uses_those_it_has():
    frame = _with_seed_effect(10)
    last = (frame["level"] == 2) & (frame["difficulty"] == "hard")
    (row,) = acc_for_trial(frame[~last | (frame["seed"] == 3)], _panel()).rows
    assert row.n_items == 9
    assert row.n_episodes == 81
    assert row.curve[-1] == frame[last & (frame["seed"] == 3)]["quality"].iloc[0]
    assert row.capability.low < row.capability.value < row.capability.high


def test_one_episode_a_level_cannot_be_resampled():
    frame = _frame({"p": 0.1}, n=1)
    (row,) = acc_for_trial(frame, _panel()).rows
    for estimate in (row.capability, row.spread, row.normalised_generality, row.generality):
        assert (estimate.low, estimate.high) == (None, None)
        assert estimate.reason == "one episode at each level; it cannot be resampled"


# Gaps --------------------------------------------------------------------------------------------


def _planned(*policies, episodes=4):
    conditions = {(ENV, "paper", level, difficulty): episodes for level, difficulty in CELLS}
    return {("sim", policy): conditions for policy in policies}


def _table(frame, *policies):
    return acc_of_table(
        episodes_frame(frame),
        _panel(),
        resamples=200,
        level=0.95,
        seed=0,
        planned=_planned(*policies),
    )


def test_incomplete_rows_say_so_and_are_not_comparable():
    frame = _frame({"part": 0.1, "whole": 0.1})
    table = _table(frame[(frame["policy"] == "whole") | (frame["level"] == 0)], "part", "whole")
    part, whole = table.rows
    assert (part.n_items, part.n_missing_items, part.is_covered) == (3, 6, False)
    assert part.unreliable.startswith(
        "unreliable: 3 of 9 items, 12 of 36 episodes scored;"
        " 6 items of other policies missing, so not to be compared with them; "
    )
    assert part.capability.reason == part.unreliable
    assert table.uncovered == ("part: 3 of 9 items, 12 of 36 episodes scored",)
    assert (whole.is_covered, whole.is_partial, part.is_partial) == (True, False, True)
    assert part.as_dict()["coverage"]["text"] == "12 of 36 scored (24 not played)"
    assert "different items" in table.population["caution"]


def test_a_trial_that_is_under_way_counts_the_items_of_its_plan():
    frame = _frame({"p": 0.1})
    (row,) = _table(frame[frame["level"] == 0], "p").rows
    assert (row.n_items, row.n_expected_items, row.is_partial) == (3, 9, False)
    assert row.unreliable.startswith("unreliable: 3 of 9 items, 12 of 36 episodes scored; ")
    assert _table(frame, "p").uncovered == ()


def test_policies_without_a_scored_episode_are_left_out_by_name():
    frame = _frame({"mine": 0.1, "other": 0.1})
    lost = (frame["policy"] == "mine") & (frame["level"] == 0)
    frame = frame[(frame["policy"] == "other") | lost]
    frame = frame.astype({"quality": object, "success": object})
    frame.loc[lost, ["quality", "success", "end_reason"]] = [None, None, "fault"]
    table = _table(frame, "mine", "other", "third")
    assert [row.policy for row in table.rows] == ["other"]
    assert table.left_out == (
        "mine: no scored episode (12 fault, 24 not played)",
        "third: no scored episode (36 not played)",
    )
    assert table.uncovered == (
        "mine: 0 of 36 scored (12 fault, 24 not played)",
        "third: 0 of 36 scored (36 not played)",
    )
    nothing = _table(frame[frame["policy"] == "mine"], "mine")
    assert nothing.reason == "no scored episode of an item with a difficulty"
    assert acc_for_trial(frame, _panel()).left_out == ("mine: no scored episode (12 fault)",)
