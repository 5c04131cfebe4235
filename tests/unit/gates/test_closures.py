"""The expansion closure: a gain that tasks needing a tool have, and that goes with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.gates.closures import Expansion, expansions_of
from robo_eval.log.evidence import ToolTrial


def trials(installed_by: str = "policy", n: int = 200, **successes: int) -> list[ToolTrial]:
    """A tool that helps, but for the successes that are given as `stage_group`."""
    found = {
        "before_needs": 60, "after_needs": 140, "before_control": 120, "after_control": 124,
        "ablated_needs": 64, **successes,
    }  # fmt: skip
    return [
        ToolTrial(
            line=2, tool="suction cup", stage=name.split("_")[0], group=name.split("_")[1],
            episodes=n, successes=count, installed_by=installed_by,
        )
        for name, count in found.items()
    ]  # fmt: skip


def closure(found: list[ToolTrial]) -> Expansion:
    (one,) = expansions_of(found, share_left=0.2)
    return one


def test_a_gain_that_goes_with_the_tool_closes():
    found = closure(trials())
    assert found.status == "pass"
    assert found.gain.value == pytest.approx(0.38)  # 140/200 - 60/200 - (124/200 - 120/200)
    assert found.left.value == pytest.approx(0.02)
    assert found.gain.n == 1000
    assert found == closure(trials())


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"after_needs": 68}, "lower end is not above 0"),
        ({"after_control": 200}, "lower end is not above 0"),  # everything became easier
        ({"ablated_needs": 120}, "which is not 0"),
        ({"ablated_needs": 77}, "more than 20% of the gain"),
    ],
)
def test_what_is_no_gain_or_stays_without_the_tool_does_not(changed: dict[str, int], why: str):
    found = closure(trials(**changed))
    assert found.status == "fail"
    assert why in found.reason


def test_a_tool_that_a_person_installed_does_not_close():
    found = closure(trials(installed_by="Ada"))
    assert found.status == "fail"
    assert "brought in by Ada" in found.reason


@pytest.mark.parametrize("absent", range(5))
def test_a_stage_that_was_not_played_is_missing_and_passes_nothing(absent: int):
    some = trials()
    gone = some.pop(absent)
    assert closure(some).status == "missing"
    assert f"{gone.stage}/{gone.group}" in closure(some).reason
    none = replace(gone, episodes=0, successes=0)
    assert closure([*some, none]).status == "missing"


def test_lines_of_one_stage_are_added_and_tools_are_apart():
    halves = [
        replace(trial, episodes=trial.episodes // 2, successes=trial.successes // 2)
        for trial in trials()
        for _ in range(2)
    ]
    assert closure(halves).gain.value == closure(trials()).gain.value
    other = [replace(trial, tool="camera") for trial in trials(after_needs=60)]
    assert [(one.tool, one.status) for one in expansions_of([*other, *halves], share_left=0.2)] == [
        ("camera", "fail"), ("suction cup", "pass"),
    ]  # fmt: skip


@given(st.integers(0, 200))
def test_more_that_is_left_never_helps(left: int):
    less, more = closure(trials(ablated_needs=left)), closure(trials(ablated_needs=200))
    assert (less.left.value or 0.0) <= (more.left.value or 0.0)
    if left > 60 + 0.2 * 76 + 1:
        assert less.status == "fail"
