"""A level is issued only of a battery of tasks that is fit to show one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from robo_eval.core.plan import ImportPlan, TrialPlan, parse_plan
from robo_eval.gates import Audit, Readings, assess
from robo_eval.gates.battery import battery_of
from robo_eval.gates.profile import AUDITS, Battery
from robo_eval.log.evidence import Checkpoint, EvidenceDeclaration, ToolUse
from robo_eval.metrics.frame import episodes_frame

SETTINGS = Battery(scoring=("binary-success", "brier"), episodes=6, instances=3)
PLAN = """
name: lab
tasks:
  - {env: RoboEval/CartPole3D-v0, levels: [0, 4], difficulties: [easy, hard]}
policies: [arm]
episodes: 3
sides: [sim]
"""


def plan(**changed: Any) -> TrialPlan:
    found = parse_plan(PLAN, source="plan")
    return found.model_copy(update=changed)


def table(**changed: Any) -> pd.DataFrame:
    """Three seeds at two levels and two difficulties."""
    conditions = [(level, how, seed) for level in (0, 4) for how in ("easy", "hard")
                  for seed in (1, 2, 3)]  # fmt: skip
    columns: dict[str, Any] = {
        "episode_id": [f"e{i}" for i in range(len(conditions))],
        "side": "sim", "task": "RoboEval/CartPole3D-v0", "family": "RoboEval/CartPole3D-v0",
        "policy": "arm", "plan_digest": "1" * 64, "quality": 1.0, "success": True,
        "end_reason": "success",
        "level": [level for level, _, _ in conditions],
        "difficulty": [how for _, how, _ in conditions],
        "seed": [seed for _, _, seed in conditions],
        **changed,
    }  # fmt: skip
    return episodes_frame(pd.DataFrame(columns))


def checks(frame: pd.DataFrame, of: TrialPlan | None = None, **noted: Any) -> dict[str, Audit]:
    found = battery_of(of or plan(), frame, SETTINGS, policy="arm", side="sim", **noted)
    return {audit.id: audit for audit in found}


def failing(found: dict[str, Audit]) -> dict[str, str]:
    return {name: one.reason for name, one in found.items() if one.status != "pass"}


def test_a_whole_battery_passes_every_check() -> None:
    found = checks(table())
    assert list(found) == [
        "proper_scoring", "family_size", "distinct_families", "drift_support", "frozen_accounting",
        "seeds_escrow",
    ]  # fmt: skip
    assert failing(found) == {}


def test_one_task_under_two_names_is_found() -> None:
    courses = {"ticks": [7, 8, 9] * 4, "episode_return": [0.5, 1.0, 1.5] * 4}
    twice = table(family=["a"] * 6 + ["b"] * 6, level=0, difficulty="easy", seed=[1, 2, 3] * 4)
    assert "distinct_families" not in failing(checks(twice))
    named = table(
        family=["a"] * 6 + ["b"] * 6, level=0, difficulty="easy", seed=[1, 2, 3] * 4, **courses
    )
    said = failing(checks(named))["distinct_families"]
    assert said.startswith("'a' and 'b' are one task")


def test_too_few_episodes_or_instances_of_a_family_are_counted() -> None:
    some = table(quality=[1.0] * 5 + [None] * 7, success=[True] * 5 + [None] * 7)
    said = failing(checks(some))["family_size"]
    assert said == "too few for a level: RoboEval/CartPole3D-v0: 5 of the 6 episodes required"
    same = table(level=0, difficulty="easy", seed=1)
    assert failing(checks(same))["family_size"].endswith("1 of the 3 instances required")
    # An instance at another step of the drift calendar is another one.
    drifted = table(level=0, difficulty="easy", seed=1, drift_step=[0, 1, 2] * 4)
    assert "family_size" not in failing(checks(drifted))


def test_what_was_declared_and_not_drawn_is_named() -> None:
    missing = table(level=0)
    assert failing(checks(missing))["drift_support"] == (
        "no episode of RoboEval/CartPole3D-v0 t0-l04-easy; no episode of RoboEval/CartPole3D-v0"
        " t0-l04-hard"
    )
    idle = ToolUse(line=2, category="gripper", episodes=0, successes=0, drift="mild")
    assert failing(checks(table(), tools=[idle])) == {
        "drift_support": "no use of tools under drift 'mild'"
    }
    used = replace(idle, line=3, episodes=4)
    assert failing(checks(table(), tools=[idle, used])) == {}


def test_resources_counted_in_two_ways_are_no_account() -> None:
    first = Checkpoint(line=2, time_ns=1, family="pick", capability=0.5, resources=1.0, schema="a")
    second = replace(first, line=3, schema="")
    assert failing(checks(table(), checkpoints=[first, second])) == {
        "frozen_accounting": "checkpoints.csv counts resources by (none); a"
    }
    assert failing(checks(table(), checkpoints=[first, first])) == {}
    mixed = table(plan_digest=["1" * 64] * 6 + ["2" * 64] * 6)
    assert "rows of 2 plans" in failing(checks(mixed))["frozen_accounting"]


def test_seeds_that_nobody_fixed_before_are_none() -> None:
    assert failing(checks(table(seed=[None] + [1, 2, 3] * 3 + [1, 2])))["seeds_escrow"] == (
        "1 episodes have no seed"
    )


def test_a_rule_that_is_not_among_the_proper_ones_is_named() -> None:
    (task,) = plan().tasks
    other = plan(tasks=(task.model_copy(update={"scoring": "log"}),))
    assert failing(checks(table(), other))["proper_scoring"] == (
        "no proper scoring rule: RoboEval/CartPole3D-v0: log; declare tasks.scoring in the plan"
    )


def test_of_declarations_about_the_seeds_of_an_import_the_newest_counts() -> None:
    found = plan(imported=ImportPlan(file="lab.csv", sha256="0" * 64, rows=12))
    first = EvidenceDeclaration(
        line=2, what="seeds_escrow", value=1.0, low=None, high=None, n=12, by="lab", time_ns=1,
        document="page 7",
    )  # fmt: skip
    later = replace(first, line=3, value=0.0, time_ns=2, document="page 8")
    assert "nothing shows" in failing(checks(table(), found))["seeds_escrow"]
    assert failing(checks(table(), found, declarations=[first])) == {}
    assert "seeds_escrow" in failing(checks(table(), found, declarations=[first, later]))
    assert "seeds_escrow" in failing(checks(table(), found, declarations=[later, first]))


@pytest.mark.parametrize("status", ["fail", "missing"])
def test_no_level_is_issued_of_a_battery_that_is_not_admissible(status: Any) -> None:
    unfit = Audit(id="family_size", title="size", status=status, reason="pick has 3 of 30")
    audits = tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS)
    readings = Readings(policy="arm", side="real", values={}, audits=audits, battery=(unfit,))
    found = assess(readings)
    assert (found.level_conservative, found.level, found.would_be) == (None, None, 0)
    assert found.reason == "pick has 3 of 30"
    assert found.next_level == 1
    assert found.lacking[0].text == "size: pick has 3 of 30"
    fit = replace(readings, battery=(replace(unfit, status="pass"),))
    assert assess(fit).level_conservative == 0
