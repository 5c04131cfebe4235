"""The general profile: axes, cognition, AAI-5, and groups of gates that decide or report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.gates import Audit, Readings, assess, load_profile
from robo_eval.gates.axes.improvement import Streak
from robo_eval.gates.profile import AUDITS, Profile

GENERAL = load_profile("general")
ROBOTICS = load_profile("robotics")
FAMILIES = ("pick", "place")
LOW = {"hr": 0.1, "cost_ratio": 0.9}
"""What has to be low, at a value that will do everywhere."""


def sure(value: float, half: float = 0.0) -> Estimate:
    return Estimate(
        value=value, low=value - half, high=value + half, n=500, method="bootstrap", unit="ratio"
    )


def best(side: str = "sim", **changed: Estimate | None) -> Readings:
    """Evidence that supports the highest level, but for what is changed."""
    asked: Mapping[str, Estimate] = {
        gate.reads: sure(LOW.get(gate.reads, max(map(float, gate.thresholds.values()))))
        for gate in GENERAL.gates.values()
        if gate.test not in ("families", "closure")
    }
    values: dict[str, Estimate | None] = {**asked, "sociality": sure(0.98), "expansion": sure(1.0)}
    values |= changed
    slope = sure(0.01, 0.005)
    return Readings(
        policy="agent",
        side=side,
        values={name: one for name, one in values.items() if one is not None},
        families={
            name: dict.fromkeys(FAMILIES, sure(0.002, 0.001))
            for name in ("acceleration", "curvature", "elasticity")
        },
        streaks={name: Streak(kappa=slope, days=30, of_days=40) for name in FAMILIES},
        audits=tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS),
    )


def asking(profile: Profile, *groups: str) -> Profile:
    return profile.model_copy(update={"ask": groups})


def test_an_agent_without_a_body_can_reach_every_level():
    found = assess(best(), GENERAL)
    assert (found.level_conservative, found.next_level, found.evidence_tag) == (5, None, "sim_only")
    assert [step.level for step in found.steps] == [5, 4, 3, 2, 1]
    assert all(step.passed for step in found.steps)
    assert not any(gate.reads == "E" for gate in found.gates)


def test_an_agent_with_a_body_is_asked_for_embodiment_as_well():
    assert assess(best("real"), GENERAL).level_conservative == 5
    assert assess(best("real", E=None), GENERAL).level_conservative == 1
    assert assess(best("real", E=sure(0.93)), GENERAL).level_conservative == 4
    # S >= 0.95 will do with a body, and without one 0.97 is asked.
    assert assess(best("real", sociality=sure(0.96)), GENERAL).level_conservative == 5
    assert assess(best(sociality=sure(0.96)), GENERAL).level_conservative == 4


def test_a_twin_supports_no_level_above_1_here_either():
    found = assess(best("twin"), GENERAL)
    assert (found.level_conservative, found.would_be) == (1, 5)


@pytest.mark.parametrize(
    ("name", "worse", "level"),
    [
        ("generality", sure(0.6), 3),
        ("memory", sure(0.55), 2),
        ("self_revision", sure(0.1), 1),
        ("throughput", sure(0.45), 2),
        ("vrp", sure(0.8), 1),
        ("hr", sure(0.2), 1),
        ("memory_span", sure(1.05, 0.1), 1),
        ("recall_7_days", None, 1),
        ("core", sure(0.85), 2),
        ("project_days", sure(29.0), 2),
        ("expert_families", sure(0.5), 3),
        ("superhuman_families", sure(0.5), 4),
        ("throughput_ratio", sure(1.9), 4),
        ("innovation", sure(0.7), 4),
        ("steps_from_4", sure(1.5), 4),
    ],
)
def test_each_condition_holds_a_level_back(name: str, worse: Estimate | None, level: int):
    assert assess(best(**{name: worse}), GENERAL).level_conservative == level


def test_improvement_that_does_not_accelerate_surely_is_not_of_level_5():
    flat = dict.fromkeys(FAMILIES, sure(0.0))
    found = assess(replace(best(), families={**best().families, "acceleration": flat}), GENERAL)
    assert found.level_conservative == 4
    (gate,) = [gate for gate in found.at(5) if gate.reads == "acceleration"]
    assert (gate.status, gate.reason) == (
        "fail", "0 of 2 families reach above 0, 2 needed; not pick, place",
    )  # fmt: skip


def test_a_family_without_checkpoints_is_one_of_those_asked_for():
    """Else leaving out the checkpoints of a bad family would raise the level."""
    found = assess(replace(best(), played=(*FAMILIES, "drawer", "peg", "wipe")), GENERAL)
    assert found.level_conservative == 3
    (gate,) = [gate for gate in found.at(4) if gate.reads == "kappa"]
    assert gate.reason == (
        "2 of 5 families reach 30 days in a row, 3 needed; not drawer, peg, wipe"
    )
    (gate,) = [gate for gate in found.at(5) if gate.reads == "acceleration"]
    assert gate.status == "fail"


def test_cognitive_gates_only_report_where_they_are_not_asked_for():
    poor = best(vrp=sure(0.5))
    assert assess(poor, GENERAL).level_conservative == 1
    found = assess(poor, asking(GENERAL))
    assert found.level_conservative == 5
    (gate,) = [gate for gate in found.reported(2) if gate.id == "vrp"]
    assert (gate.status, gate.counts) == ("fail", False)
    assert "vrp" not in {gate.id for gate in found.at(2)}
    assert found.as_dict()["gates"]


def test_extended_gates_ask_for_acceleration_and_steps():
    asked = asking(GENERAL, "cognitive", "extended")
    assert assess(best(), asked).level_conservative == 5
    assert assess(best(steps_from_2=sure(1.2)), asked).level_conservative == 3
    assert assess(best(steps_from_2=sure(0.9)), asked).level_conservative == 2
    slowing = dict.fromkeys(FAMILIES, sure(-0.02, 0.001))
    slower = replace(best(), families={**best().families, "curvature": slowing})
    assert assess(slower, asked).level_conservative == 3
    assert assess(slower, GENERAL).level_conservative == 5
    within = dict.fromkeys(FAMILIES, sure(-0.009, 0.001))
    steady = replace(best(), families={**best().families, "curvature": within})
    assert assess(steady, asked).level_conservative == 5


def test_the_robotics_profile_reports_the_axes_until_it_asks_for_them():
    assert {gate.group for gate in ROBOTICS.gates.values()} == {"", "general", "extended"}
    found = assess(best("real"), ROBOTICS)
    assert {gate.reads for gate in found.reported(2)} == {
        "autonomy", "generality", "planning", "memory", "tool_economy", "self_revision",
        "sociality", "world_model", "throughput",
    }  # fmt: skip
    strict = assess(best("real"), asking(ROBOTICS, "general"))
    assert len(strict.at(2)) == len(found.at(2)) + 9


def test_the_thresholds_of_the_axes_are_the_same_in_both_profiles():
    for name, gate in ROBOTICS.gates.items():
        if gate.group != "general":
            continue
        (other,) = [one for one in GENERAL.gates.values()
                    if one.reads == gate.reads and one.when == "always"]  # fmt: skip
        for level, threshold in gate.thresholds.items():
            assert other.thresholds[level] == threshold, name


def test_the_procedure_says_what_kept_a_level_from_being_issued():
    found = assess(best(project_days=sure(3.0), expansion=None), GENERAL)
    assert found.level_conservative == 2
    steps = {step.level: step for step in found.steps}
    assert (steps[3].thresholds, steps[3].closures, steps[3].durations) == (
        "pass", "missing", "fail",
    )  # fmt: skip
    assert (steps[3].audits, steps[3].below, steps[3].passed) == ("pass", "pass", False)
    assert steps[4].below == "fail"
    assert steps[2].passed
    assert [step["level"] for step in found.as_dict()["procedure"]] == [5, 4, 3, 2, 1]
