"""Episodes matched to the tests of a study: made tables whose groups are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from robo_eval.metrics.frame import episodes_frame
from robo_eval.study.matched import ALL, Played, PolicyGroup, _described, _group, _wanted

Row = tuple[str, int, str, float | None]
"""Policy, level, difficulty and quality; no quality is an episode that a fault ended."""


def table(*rows: Row, levels: tuple[int, ...] = (0, 3)) -> pd.DataFrame:
    """Episodes of tests that are these levels."""
    frame = episodes_frame(
        pd.DataFrame(
            [
                {
                    "episode_id": f"e{number}",
                    "side": "sim",
                    "task": "made",
                    "policy": policy,
                    "level": level,
                    "difficulty": difficulty,
                    "quality": quality,
                    "success": None if quality is None else False,
                    "end_reason": "fault" if quality is None else "failure",
                }
                for number, (policy, level, difficulty, quality) in enumerate(rows)
            ]
        )
    )
    frame["test"] = [levels.index(level) for level in frame["level"]]
    frame["difficulty_name"] = frame["difficulty"]
    return frame


def played(group: PolicyGroup, policy: str) -> Played:
    return next(one for one in group.agents if one.policy == policy)


def lists(one: Played) -> list[list[float]]:
    return [row.tolist() for row in one.episodes]


def test_only_difficulties_that_were_scored_are_ranked():
    rows = table(("a", 3, "easy", 0.5), ("a", 3, "hard", None))
    assert _wanted(rows) == ["easy"]
    assert _wanted(table(("a", 3, "hard", 0.5), ("a", 3, "easy", 0.5))) == ["easy", "hard", ALL]


def test_level_0_counts_at_every_difficulty_and_no_other_level_does():
    rows = table(("a", 0, "easy", 0.2), ("a", 3, "easy", 0.4), ("a", 3, "hard", 0.6))
    assert lists(played(_group("sim", "easy", rows, 2), "a")) == [[0.2], [0.4]]
    assert lists(played(_group("sim", "hard", rows, 2), "a")) == [[0.2], [0.6]]
    assert lists(played(_group("sim", ALL, rows, 2), "a")) == [[0.2], [0.4, 0.6]]


def test_one_seed_of_level_0_is_one_episode_and_the_attempt_with_a_score_counts():
    rows = table(("a", 0, "easy", None), ("a", 0, "hard", 0.2), ("a", 3, "easy", 0.4))
    rows["seed"] = pd.array([7, 7, 8], dtype="Int64")
    assert lists(played(_group("sim", ALL, rows, 2), "a")) == [[0.2], [0.4]]


def test_who_lacks_a_difficulty_is_not_compared_over_all_of_them():
    """Easy episodes alone would look better than easy and hard ones."""
    rows = table(("a", 3, "easy", 0.9), ("b", 3, "easy", 0.9), ("b", 3, "hard", 0.1))
    group = _group("sim", ALL, rows, 2)
    assert lists(played(group, "a")) == [[], []]
    assert played(group, "a").gaps == {1: "hard"}
    assert lists(played(group, "b")) == [[], [0.9, 0.1]]
    assert played(group, "b").gaps == {}
    assert lists(played(_group("sim", "easy", rows, 2), "a")) == [[], [0.9]]


def test_episodes_without_a_score_are_counted_and_no_zero():
    rows = table(("a", 3, "easy", 0.5), ("a", 3, "easy", None), ("b", 3, "easy", 0.5))
    group = _group("sim", "easy", rows, 2)
    one, other = played(group, "a"), played(group, "b")
    assert lists(one) == [[], [0.5]]
    assert one.coverage is not None
    assert one.coverage.text == "1 of 2 scored (1 fault)"
    assert not one.coverage.is_sufficient
    assert other.coverage is not None
    assert other.coverage.is_sufficient


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_changes_nothing(seed: int):
    rng = np.random.default_rng(seed)
    made: list[Row] = [
        (policy, level, difficulty, float(rng.uniform()))
        for policy in "ab"
        for level in (0, 3)
        for difficulty in ("easy", "hard")
    ]
    rows = table(*made)
    mixed = rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)

    def values(group: PolicyGroup) -> Any:
        return [[sorted(row) for row in lists(one)] for one in group.agents]

    for name in ("easy", "hard", ALL):
        assert values(_group("sim", name, rows, 2)) == values(_group("sim", name, mixed, 2))


def test_tests_are_described_by_environment_profile_level_and_keywords():
    keys = [
        ("E-v0", "9", "compat", "{}"),
        ("E-v0", "0", "compat", "{}"),
        ("F-v0", "", "", "{'a': 1}"),
    ]
    assert _described(keys) == "E-v0 compat, level 0 and 9; F-v0 {'a': 1}"


def test_seeds_are_known_where_several_episodes_are_of_one():
    rows = table(
        ("a", 0, "easy", 0.2), ("a", 0, "easy", 0.3), ("a", 3, "easy", 0.4), ("a", 3, "easy", None)
    )
    rows["seed"] = pd.array([7, 2**62, 7, 9], dtype="Int64")
    group = _group("sim", "easy", rows, 2)
    assert [one.tolist() for one in played(group, "a").seeds or []] == [[0, 2], [0]]
    assert "seed_number" not in group.table
    rows["seed"] = pd.array([7, 8, 9, 10], dtype="Int64")
    assert played(_group("sim", "easy", rows, 2), "a").seeds is None
    rows["seed"] = pd.array([7, 7, 7, None], dtype="Int64")
    assert played(_group("sim", "easy", rows, 2), "a").seeds is not None
    rows["seed"] = pd.array([7, 7, None, 7], dtype="Int64")
    assert played(_group("sim", "easy", rows, 2), "a").seeds is None
