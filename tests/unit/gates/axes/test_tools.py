"""Tools: how many categories work under drift, and how often."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.gates.axes.draws import Resampled
from robo_eval.gates.axes.settings import AxisSettings
from robo_eval.gates.axes.tools import categories_under_mild_drift, tools_measured
from robo_eval.log.evidence import ToolUse
from robo_eval.stats.proportions import clopper_pearson_interval


def use(category: str, successes: int, episodes: int = 100, drift: str = "mild") -> ToolUse:
    return ToolUse(line=2, category=category, episodes=episodes, successes=successes, drift=drift)


def tools(*uses: ToolUse, **settings: Any) -> Resampled:
    return tools_measured(uses, AxisSettings(**settings))


SIX = [use(f"tool-{i}", 90) for i in range(6)]


def test_the_worked_example_of_the_scale():
    found = tools(*SIX)
    assert found.raw.value == pytest.approx(0.6, abs=1e-9)
    assert found.raw.n == 600
    assert found.raw.low is not None
    assert 0.55 < found.raw.low < 0.6 < (found.raw.high or 0.0) < 0.65
    assert found.parts["categories"].value == 6.0
    share = found.parts["success of tool-0"]
    assert (share.low, share.high) == pytest.approx(clopper_pearson_interval(90, 100))


def test_success_is_that_of_all_categories_and_the_number_of_those_that_pass():
    found = tools(use("gripper", 90), use("suction", 10))
    assert found.raw.value == pytest.approx(1 / 4 * 0.5)
    assert found.parts["categories"].value == 1.0
    stricter = tools(use("gripper", 90), use("suction", 10), tool_success=0.05)
    assert stricter.raw.value == pytest.approx(2 / 5 * 0.5)


def test_a_category_of_exactly_the_least_success_passes():
    assert tools(use("gripper", 50)).raw.value == pytest.approx(1 / 4 * 0.5)


def test_the_headline_is_the_declared_drift_and_others_stand_beside_it():
    found = tools(*SIX, use("tool-0", 30, drift="strong"), use("tool-0", 100, drift=""))
    assert found.raw.value == pytest.approx(0.6)
    assert found.parts["T under strong drift"].value == 0.0
    assert found.parts["T under unnamed drift"].value == pytest.approx(1 / 4)
    assert "T under mild drift" not in found.parts
    assert tools(*SIX).draws == pytest.approx(found.draws)
    strong = tools(*SIX, use("tool-0", 60, drift="strong"), tool_drift="strong")
    assert strong.raw.value == pytest.approx(0.15)


def test_lines_of_one_category_are_added():
    halves = tools(use("gripper", 40, 50), use("gripper", 50, 50))
    assert halves.raw.value == pytest.approx(tools(use("gripper", 90)).raw.value)


@pytest.mark.parametrize("uses", [None, (), (use("gripper", 90, drift="strong"),),
                                  (use("gripper", 0, 0),)])  # fmt: skip
def test_without_the_declared_drift_there_is_no_axis(uses: tuple[ToolUse, ...] | None):
    found = tools_measured(uses, AxisSettings())
    assert (found.raw.value, found.draws) == (None, None)
    assert "tools.csv needs lines with drift 'mild'" in str(found.raw.reason)


def test_without_a_prior_categories_that_all_fail_are_worth_nothing():
    found = tools(use("gripper", 2), tool_prior=0.0)
    assert found.raw.value == 0.0
    assert found.draws is not None
    assert np.isfinite(found.draws).all()


def test_gates_count_categories_by_their_share_and_by_its_exact_interval():
    uses = [use("gripper", 90), use("suction", 52), use("brush", 45), use("hook", 5)]
    found = categories_under_mild_drift(uses, 0.95)
    assert (found.value, found.low, found.high, found.n) == (2.0, 1.0, 3.0, 400)
    assert (found.unit, found.method) == ("categories", "clopper_pearson")
    none = categories_under_mild_drift([use("gripper", 90, drift="strong")], 0.95)
    assert (none.value, none.reason) == (None, "tools.csv has no line with drift 'mild'")


def test_draws_are_the_same_for_a_seed():
    assert np.array_equal(tools(*SIX).draws, tools(*SIX).draws)  # type: ignore[arg-type]
    other = tools_measured(SIX, AxisSettings(), seed=1)
    assert not np.array_equal(tools(*SIX).draws, other.draws)  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=8),
    st.floats(0.0, 5.0),
)
def test_the_axis_is_the_formula_of_the_counts(counts: list[tuple[int, int]], prior: float):
    uses = [use(f"tool-{i}", min(a, b), b) for i, (a, b) in enumerate(counts)]
    found = tools_measured(uses, AxisSettings(tool_prior=prior), resamples=100)
    passing = sum(one.successes / one.episodes >= 0.5 for one in uses)
    success = sum(one.successes for one in uses) / sum(one.episodes for one in uses)
    expected = formulas.tool_economy(passing, success, prior)
    assert found.raw.value == pytest.approx(expected)
    assert found.draws is not None
    assert ((found.draws >= 0.0) & (found.draws <= 1.0)).all()
    assert (found.raw.low or 0.0) <= (expected or 0.0) <= (found.raw.high or 0.0)
