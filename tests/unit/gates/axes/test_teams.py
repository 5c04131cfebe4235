"""Sociality from counts of episodes with one robot and with several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.formulas import PENALTIES
from robo_eval.gates.axes.tools import sociality_measured
from robo_eval.log.evidence import TeamTrial


def team(
    task: str, robots: int, successes: int, episodes: int = 100, **penalties: Any
) -> TeamTrial:
    return TeamTrial(
        line=2, task=task, robots=robots, successes=successes, episodes=episodes, **penalties
    )


def test_the_worked_example_of_the_scale():
    found = sociality_measured(
        [
            team("lift", 1, 50),
            team("lift", 2, 75, unresolved_conflict=20, loop=30, mode_collapse=10),
            team("carry", 1, 80),
            team("carry", 2, 70, loop=10, mode_collapse=10),
        ]
    ).raw
    assert found.value == pytest.approx(0.23)  # lift 0.25, penalties 0.05 (0.1 + 0.2 + 0 + 0.1)
    assert found.n == 400
    assert found.low is not None
    assert 0.0 < found.low < 0.23 < (found.high or 0.0)


def test_the_best_number_of_robots_counts_and_of_equals_the_smallest():
    trials = [
        team("lift", 1, 50), team("lift", 2, 75), team("lift", 3, 75, chatter=100),
        team("lift", 4, 60),
    ]  # fmt: skip
    assert sociality_measured(trials).raw.value == pytest.approx(0.5)


def test_tasks_without_both_are_left_out():
    alone = [team("lift", 1, 50), team("carry", 2, 90), team("push", 1, 5), team("push", 2, 0, 0)]
    found = sociality_measured(alone).raw
    assert found.value is None
    assert "one robot and with several" in str(found.reason)
    assert sociality_measured([*alone, team("lift", 3, 75)]).raw.value == pytest.approx(0.5)


def test_lines_of_one_task_are_added():
    halves = [team("lift", 1, 20, 50), team("lift", 1, 30, 50), team("lift", 2, 75)]
    assert sociality_measured(halves).raw.value == pytest.approx(0.5)


@pytest.mark.slow
@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
def test_it_stays_in_its_range_and_penalties_never_help(solo: int, both: int, loops: int):
    plain = sociality_measured([team("lift", 1, solo), team("lift", 2, both)]).raw
    fined = sociality_measured([team("lift", 1, solo), team("lift", 2, both, loop=loops)]).raw
    for found in (plain, fined):
        assert found.value is not None
        assert 0.0 <= (found.low or 0.0) <= found.value <= (found.high or 0.0) <= 1.0
    assert (fined.value or 0.0) <= (plain.value or 0.0) + 1e-12


def test_with_draws_it_is_the_same_number_and_shows_its_parts():
    trials = [
        team("lift", 1, 50),
        team("lift", 2, 75, unresolved_conflict=20, loop=30, mode_collapse=10),
        team("carry", 1, 80),
        team("carry", 2, 70, loop=10, mode_collapse=10),
    ]
    found = sociality_measured(trials, seed=3)
    assert found.raw == sociality_measured(trials, seed=3).raw
    assert found.draws is not None
    low, high = np.quantile(found.draws, [0.025, 0.975])
    assert (found.raw.low, found.raw.high) == (pytest.approx(low), pytest.approx(high))
    assert found.parts["lift"].value == pytest.approx(0.25, abs=1e-9)
    means = {name: found.parts[name].value for name in PENALTIES}
    expected = {"unresolved_conflict": 0.1, "loop": 0.2, "chatter": 0.0, "mode_collapse": 0.1}
    assert means == pytest.approx(expected, abs=1e-9)


def test_without_a_team_there_are_no_draws():
    found = sociality_measured([team("lift", 1, 50)])
    assert (found.raw.value, found.draws, dict(found.parts)) == (None, None, {})
