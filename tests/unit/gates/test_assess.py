"""Which level readings support, gate by gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.gates import Assessment, Audit, Readings, assess, load_profile
from robo_eval.gates.axes.improvement import Streak
from robo_eval.gates.profile import AUDITS

ROBOTICS = load_profile("robotics")


def ratio(value: float, half: float = 0.01, n: int = 500) -> Estimate:
    return Estimate(
        value=value, low=max(0.0, value - half), high=min(1.0, value + half), n=n,
        method="clopper_pearson", unit="ratio",
    )  # fmt: skip


def counted(value: float, unit: str = "h") -> Estimate:
    return Estimate.exact(value, unit=unit, n=1)


def passing(**changed: Estimate | None) -> Readings:
    """Evidence that supports level 2 on a robot, but for what is changed."""
    values: dict[str, Estimate | None] = {
        "autonomy": ratio(0.9),
        "AR_new_task": ratio(0.86),
        "S2R_new_task": ratio(0.9),
        "SS": ratio(0.9),
        "E": ratio(0.88),
        "RA": ratio(0.7),
        "QC_worst": ratio(0.7),
        "minor_per_100_h": Estimate(
            value=0.0, low=0.0, high=0.8, n=0, method="garwood", unit="incidents/100 h"
        ),
        "major_incidents": counted(0.0, "incidents"),
        "critical_incidents": counted(0.0, "incidents"),
        "exposure_hours": counted(480.0),
        "MTBSI": Estimate(
            value=None, low=160.0, n=0, method="garwood", unit="h", reason="none happened"
        ),
        "kappa": Estimate(
            value=0.007, low=0.004, high=0.01, n=12, method="moving_block_bootstrap", unit="1"
        ),
        "maintenance_days": counted(8.0, "days"),
    }
    values.update(changed)
    slope = values["kappa"] or Estimate.missing(reason="none", unit="1")
    return Readings(
        policy="arm",
        side="real",
        values={name: found for name, found in values.items() if found is not None},
        families={"AR": {"pick": ratio(0.86)}, "S2R": {"pick": ratio(0.9)}},
        streaks={"pick": Streak(kappa=slope, days=8, of_days=12)},
        events={"near_miss": 0, "minor": 0, "major": 0, "critical": 0},
        audits=tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS),
    )


def texts(found: Assessment) -> str:
    return "\n".join(one.text for level in found.missing for one in found.missing[level])


def test_what_was_counted_needs_no_interval():
    whole = Estimate(value=480.0, n=1, method="counted", unit="h")
    assert assess(passing(exposure_hours=whole)).level_conservative == 2


def test_evidence_for_level_2_is_level_2_by_intervals_and_by_points():
    found = assess(passing())
    assert (found.level_conservative, found.level, found.next_level) == (2, 2, 3)
    assert found.evidence_tag == "real"
    assert {gate.status for gate in found.at(2)} == {"pass"}
    assert found.as_dict()["level_conservative"] == 2


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("AR_new_task", ratio(0.79)),
        ("S2R_new_task", ratio(0.7)),
        ("SS", ratio(0.7)),
        ("E", ratio(0.7)),
        ("RA", ratio(0.4)),
        ("QC_worst", ratio(0.5)),
        ("major_incidents", counted(1.0, "incidents")),
        ("exposure_hours", counted(99.9)),
        ("maintenance_days", counted(6.0, "days")),
    ],
)
def test_each_gate_can_keep_level_2(name: str, worse: Estimate):
    found = assess(passing(**{name: worse}))
    assert found.level_conservative == 0
    (failed,) = [gate for gate in found.at(2) if gate.status == "fail"]
    assert failed.reads == name
    assert assess(passing(**{name: None})).level_conservative == 0
    (absent,) = [gate for gate in assess(passing(**{name: None})).at(2) if gate.status == "missing"]
    assert absent.reads == name
    assert absent.status_by_points == "missing"


@pytest.mark.parametrize("audit", AUDITS)
@pytest.mark.parametrize("status", ["fail", "missing"])
def test_each_audit_can_keep_level_2(audit: str, status: Any):
    good = passing()
    audits = tuple(replace(one, status=status) if one.id == audit else one for one in good.audits)
    found = assess(replace(good, audits=audits))
    assert found.level_conservative == 0
    assert audit in texts(assess(replace(good, audits=audits, side="real")))


def test_a_gate_reads_the_end_of_the_interval_that_speaks_against_it():
    wide = passing(AR_new_task=ratio(0.86, half=0.07, n=100))
    found = assess(replace(wide, families={**wide.families, "AR": {"pick": ratio(0.86)}}))
    assert (found.level_conservative, found.level) == (0, 2)
    high = Estimate(value=0.4, low=0.0, high=1.4, n=1, method="garwood", unit="incidents/100 h")
    found = assess(passing(minor_per_100_h=high))
    assert (found.level_conservative, found.level) == (0, 2)


def test_no_interval_passes_nothing_but_says_why():
    bare = Estimate(value=0.99, n=3, method="none", unit="ratio", reason="all values are equal")
    found = assess(passing(QC_worst=bare))
    (gate,) = [gate for gate in found.at(2) if gate.reads == "QC_worst"]
    assert (gate.status, gate.status_by_points) == ("missing", "pass")
    assert gate.reason.startswith("all values are equal")


@pytest.mark.parametrize(("side", "tag"), [("twin", "twin"), ("sim", "sim_only")])
def test_without_a_robot_nothing_is_above_level_1(side: str, tag: str):
    found = assess(replace(passing(), side=side))
    assert (found.level_conservative, found.would_be, found.evidence_tag) == (1, 2, tag)
    assert "physical robot" in found.reason
    assert "episodes on a physical robot" in texts(found)


def test_after_a_critical_incident_there_is_no_level():
    found = assess(replace(passing(), invalid="a critical incident: the window does not count"))
    assert (found.level_conservative, found.level, found.next_level) == (None, None, None)
    assert (found.lacking, found.missing) == ((), {})


def test_more_families_are_asked_for_at_each_level():
    asked = {
        level: {gate.id: gate.threshold for gate in assess(passing()).at(level)}
        for level in (2, 3, 4)
    }
    assert [asked[level]["ar_families"] for level in (2, 3, 4)] == [1, 3, 1]  # all of one
    assert [asked[level]["kappa"] for level in (2, 3, 4)] == [1, 2, 2]  # half, two at least
    four = replace(passing(), families={"AR": {name: ratio(0.98) for name in "abcd"}})
    (gate,) = [gate for gate in assess(four).at(4) if gate.id == "ar_families"]
    assert (gate.threshold, gate.status) == (4, "pass")


def test_what_is_missing_is_said_in_hours_and_episodes():
    short = Estimate(
        value=0.0, low=0.0, high=3.688879454 / 0.61, n=0, method="garwood", unit="incidents/100 h"
    )
    found = assess(passing(exposure_hours=counted(61.0), minor_per_100_h=short))
    (hours,) = [one for one in found.missing[2] if one.unit == "h" and "exposure" in one.gates]
    assert set(hours.gates) == {"exposure", "minor"}
    # Garwood's two-sided upper bound after none, 3.6889, per 100 h at most 1: 368.9 h in all.
    assert hours.amount == 308
    assert hours.text == "308 more exposure hours without a safety incident"
    few = passing(AR_new_task=Estimate(
        value=0.85, low=0.7016473332, high=0.9428977418, n=40, method="clopper_pearson",
        unit="ratio",
    ))  # fmt: skip
    (more,) = [one for one in assess(few).missing[2] if one.unit == "tasks"]
    from scipy.stats import binomtest

    total = 40 + int(more.amount or 0)
    low = binomtest(int(0.85 * total), total).proportion_ci(0.95, "exact").low
    before = binomtest(int(0.85 * (total - 20)), total - 20).proportion_ci(0.95, "exact").low
    assert low >= 0.8 > before
