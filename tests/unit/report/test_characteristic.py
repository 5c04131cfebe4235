"""Tests of what is said of the curves, above all of policies that have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robo_eval.analysis.acc import AccTable
from robo_eval.analysis.acc.trial import AccRow
from robo_eval.core.estimate import Estimate
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.coverage import Coverage
from robo_eval.metrics.performance import PolicyResult
from robo_eval.metrics.summary import TrialSummary
from robo_eval.report.characteristic import characteristic_of
from robo_eval.report.model import Result

Section = Callable[..., tuple[Any, str]]
MEMBER = "mine (panel-firm, a member of the panel)"
TEXT = (
    "mine has no curve: it is panel-firm, one of the 10 reference controllers whose performance"
    " sets the difficulties, and would be measured by itself."
)


def row(policy: str) -> AccRow:
    estimate = Estimate(value=0.5, low=0.4, high=0.6, n=40, method="bootstrap", unit="ratio")
    return AccRow(
        side="sim", policy=policy, capability=estimate, spread=estimate,
        normalised_generality=estimate, generality=estimate, expected_difficulty=estimate,
        flag=None, n_items=2, n_missing_items=0, n_episodes=40, unreliable=None,
        levels=np.array([0.2, 0.6]), curve=np.array([1.0, 0.4]),
    )  # fmt: skip


def table(*policies: str, members: dict[str, str] | None = None, **changes: Any) -> AccTable:
    members = members or {}
    found = AccTable(
        rows=tuple(row(policy) for policy in policies),
        h0=0.2, q=0.6, left_fill=1.0, right_fill=0.0, n_items=2, n_levels=2,
        attainable_maximum=2 / 3, population={},
        left_out=tuple(f"{p} ({name}, a member of the panel)" for p, name in members.items()),
        reason=None, configuration={}, panel_members=members,
    )  # fmt: skip
    return replace(found, **changes)


@pytest.fixture
def section(make_result: Callable[..., PolicyResult]) -> Section:
    """The section of a trial of some policies, or the reason why there is none."""

    def make(acc: AccTable, *policies: str, scored: int = 40) -> tuple[Any, str]:
        results = [
            Result(policy=name, numbers=replace(make_result(scored // 2, scored, 40), policy=name))
            for name in policies
        ]
        summary = TrialSummary(
            name="x",
            coverage=Coverage(scored=40, attempted=40, planned=40, attempts=40, voids=0),
            policies=tuple(item.numbers for item in results),
            cells=(),
            find_acc=lambda: acc,
            score_versions={},
            config=MetricConfig(),
        )
        return characteristic_of(summary, lambda _side, policy: policy, results)

    return make


def test_a_member_of_the_panel_under_test_is_named_by_its_own_name(section: Section) -> None:
    shown, _ = section(table("other", members={"mine": "panel-firm"}), "other", "mine")
    assert [curve.policy for curve in shown.curves] == ["other"]
    assert list(shown.warnings) == [TEXT]
    assert "never of the policies under test" not in shown.source


def test_members_of_the_panel_alone_have_no_curve_for_that_reason(section: Section) -> None:
    acc = table(
        members={"mine": "panel-firm"}, h0=None, q=None, n_items=0,
        reason="no condition of this trial has an item difficulty",
    )  # fmt: skip
    assert section(acc, "mine") == (None, TEXT)


def test_conditions_that_are_left_out_are_named_with_the_reason(section: Section) -> None:
    acc = table("other", left_out=("T-v0 paper 3 hard (no known difficulty)", MEMBER))
    shown, _ = section(acc, "other")
    assert list(shown.warnings) == ["Not on the curves: T-v0 paper 3 hard (no known difficulty)."]


@pytest.mark.parametrize(
    ("changes", "scored", "reason"),
    [
        ({"rows": (), "reason": "no item"}, 40, "Not defined for this trial: no item."),
        ({"q": 0.2}, 40, "needs items of at least two difficulties"),
        ({"rows": ()}, 0, "Not defined yet: no episode has a score."),
    ],
)
def test_no_curve_comes_with_its_reason(
    section: Section, changes: dict[str, Any], scored: int, reason: str
) -> None:
    shown, text = section(table("other", **changes), "other", scored=scored)
    assert shown is None
    assert reason in text


def test_the_axis_says_how_general_a_policy_can_look(section: Section) -> None:
    shown, _ = section(table("other"), "other")
    assert shown.axis == (
        "2 items of 2 difficulties from 0.20 to 0.60; the best generality such items can show is"
        " 0.67"
    )
    assert (shown.curves[0].n_episodes, shown.curves[0].n_items) == (40, 2)
