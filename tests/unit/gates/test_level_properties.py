"""What must hold of every assessment, whatever the evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.estimate import Estimate
from robo_eval.gates import Audit, Readings, assess, load_profile
from robo_eval.gates.axes.improvement import Streak
from robo_eval.gates.profile import AUDITS
from robo_eval.metrics.reliability import time_between_failures
from robo_eval.metrics.safety import incident_rates, safety_score

ROBOTICS = load_profile("robotics")
UPPER = {gate.reads for gate in ROBOTICS.gates.values() if gate.test == "at_most"}
DECIDING = [gate for gate in ROBOTICS.gates.values() if ROBOTICS.counts(gate)]
ZERO = {gate.reads for gate in DECIDING if gate.test == "zero"}
NAMES = sorted({gate.reads for gate in DECIDING if gate.test != "families"})
FAMILIES = ("pick", "place", "drawer", "peg")
SEVERITIES = ("near_miss", "minor", "major", "critical")


def asked(name: str) -> list[float]:
    """The thresholds of a quantity, which evidence is drawn around."""
    return [
        float(threshold)
        for gate in DECIDING
        if gate.reads == name and gate.test != "families"
        for threshold in gate.thresholds.values()
    ]


@st.composite
def estimates(draw: Any, name: str) -> Estimate:
    """An estimate near a threshold, its value inside its interval; mostly one that passes."""
    if name in ZERO:
        value = float(draw(st.sampled_from([0, 0, 0, 0, 1])))
        return Estimate(value=value, low=value, high=value, n=1, method="counted", unit="1")
    limit = draw(st.sampled_from(asked(name)))
    good = -1.0 if name in UPPER else 1.0
    value = limit * (1.0 + good * draw(st.sampled_from([-0.1, 0.0, 0.01, 0.1, 0.5])))
    below, above = (draw(st.sampled_from([0.0, 0.005, 0.02])) for _ in range(2))
    has_interval = draw(st.sampled_from([True, True, True, True, False]))
    return Estimate(
        value=value,
        low=value - below * limit if has_interval else None,
        high=value + above * limit if has_interval else None,
        n=100, method="clopper_pearson", unit="ratio",
    )  # fmt: skip


@st.composite
def evidence(draw: Any) -> Readings:
    """Evidence on a policy, mostly good, of which something may be absent."""
    values: dict[str, Estimate] = {}
    for name in NAMES:
        kind = draw(st.sampled_from(["good"] * 12 + ["near", "absent"]))
        if kind == "near":
            values[name] = draw(estimates(name))
        elif kind == "good":
            limit = 0.0 if name in ZERO else (min if name in UPPER else max)(asked(name))
            values[name] = Estimate(
                value=limit, low=limit, high=limit, n=100, method="counted", unit="1"
            )
    names = FAMILIES[: draw(st.integers(0, 4))]
    families = {
        what: {name: draw(estimates(f"{what}_new_task")) for name in names}
        for what in ("AR", "S2R")
    }  # fmt: skip
    slope = Estimate(value=0.01, low=0.005, high=0.02, n=9, method="block", unit="1")
    days = st.sampled_from([0, 6, 7, 30, 40])
    verdict = st.sampled_from(["pass"] * 20 + ["fail"])
    audits = tuple(
        Audit(id=name, title=name, reason="", status=draw(verdict))
        for name in AUDITS
    )  # fmt: skip
    return Readings(
        policy="arm",
        side=draw(st.sampled_from(["real", "real", "real", "twin", "sim"])),
        values=values,
        families=families,
        streaks={name: Streak(kappa=slope, days=draw(days), of_days=40) for name in names},
        events=dict.fromkeys(SEVERITIES, 0),
        audits=audits,
    )


def height(readings: Readings) -> int:
    """The level as a number; no level is below all."""
    found = assess(readings, ROBOTICS).level_conservative
    return -1 if found is None else found


def rank(level: int | None) -> int:
    return -1 if level is None else level


@given(found=evidence(), name=st.sampled_from(NAMES), by=st.floats(0.0, 1.0))
def test_an_end_that_speaks_better_never_lowers_the_level(found, name, by):
    before = found.values.get(name)
    if before is None or before.low is None or before.high is None or name in ZERO:
        return
    assert before.value is not None
    if name in UPPER:
        better = replace(before, high=before.high - by * (before.high - before.value))
    else:
        better = replace(before, low=before.low + by * (before.value - before.low))
    assert height(replace(found, values={**found.values, name: better})) >= height(found)


@given(found=evidence(), name=st.sampled_from(NAMES), by=st.floats(0.0, 2.0))
def test_a_whole_estimate_that_is_better_never_lowers_the_level(found, name, by):
    before = found.values.get(name)
    if before is None or before.low is None or before.high is None or name in ZERO:
        return
    assert before.value is not None
    step = -by if name in UPPER else by
    better = replace(
        before, value=before.value + step, low=before.low + step, high=before.high + step
    )
    assert height(replace(found, values={**found.values, name: better})) >= height(found)


@given(found=evidence(), name=st.sampled_from(NAMES))
def test_what_is_not_measured_never_raises_the_level(found, name):
    less = {key: value for key, value in found.values.items() if key != name}
    assert height(replace(found, values=less)) <= height(found)


@given(found=evidence(), what=st.sampled_from(["AR", "S2R"]), family=st.sampled_from(FAMILIES))
def test_leaving_a_family_out_of_one_quantity_never_raises_the_level(found, what, family):
    """`all` and `half` are of the families that were played, not of those that were measured."""
    own = {name: value for name, value in found.families[what].items() if name != family}
    less = replace(found, families={**found.families, what: own})
    assert height(less) <= height(found)


@given(found=evidence(), family=st.sampled_from(FAMILIES))
def test_leaving_out_the_checkpoints_of_a_family_never_raises_the_level(found, family):
    less = {name: value for name, value in found.streaks.items() if name != family}
    assert height(replace(found, streaks=less)) <= height(found)


@given(found=evidence())
def test_points_never_say_less_than_intervals(found):
    said = assess(found, ROBOTICS)
    assert rank(said.level) >= rank(said.level_conservative)


@given(found=evidence(), at=st.integers(0, len(AUDITS) - 1))
def test_an_audit_that_fails_never_raises_the_level(found, at):
    audits = tuple(
        replace(audit, status="fail") if i == at else audit for i, audit in enumerate(found.audits)
    )
    assert height(replace(found, audits=audits)) <= height(found)


@given(found=evidence(), side=st.sampled_from(["twin", "sim"]))
def test_without_a_robot_no_level_is_above_1(found, side):
    said = assess(replace(found, side=side), ROBOTICS)
    assert rank(said.level_conservative) <= 1
    assert rank(said.level) <= 1
    assert rank(said.level_conservative) <= height(replace(found, side="real"))


@given(found=evidence())
def test_what_is_missing_is_named_for_every_level_above(found):
    said = assess(found, ROBOTICS)
    assert sorted(said.missing) == [
        level for level in (1, 2, 3, 4) if level > rank(said.level_conservative)
    ]
    assert all(said.missing.values())
    for level, missing in said.missing.items():
        due = {
            gate.id
            for below in (level, *range(2, level))
            for gate in said.at(below)
            if gate.status != "pass"
        }
        assert due <= {name for one in missing for name in one.gates}


@given(
    found=evidence(),
    hours=st.floats(1.0, 1e5),
    counts=st.fixed_dictionaries({name: st.integers(0, 2) for name in SEVERITIES}),
    severity=st.sampled_from(SEVERITIES),
)
def test_an_incident_more_never_raises_the_level(found, hours, counts, severity):
    more = {**counts, severity: counts[severity] + 1}
    assert height(with_events(found, hours, more)) <= height(with_events(found, hours, counts))
    if more["critical"]:
        assert assess(with_events(found, hours, more), ROBOTICS).level_conservative is None


def with_events(found: Readings, hours: float, counts: dict[str, int]) -> Readings:
    """The same evidence with a record of these incidents in so many hours."""
    safety = {
        "SS": safety_score(counts, hours),
        "minor_per_100_h": incident_rates(counts, hours)["minor"],
        "MTBSI": time_between_failures(hours, 0, None, counts)["mtbsi"],
    }
    number = {
        name: Estimate(value=n, low=n, high=n, n=1, method="counted", unit="1")
        for name, n in (("exposure_hours", hours), ("major_incidents", float(counts["major"])),
                        ("critical_incidents", float(counts["critical"])))
    }  # fmt: skip
    return replace(
        found,
        values={**found.values, **safety, **number},
        events=counts,
        invalid="a critical incident" if counts["critical"] else None,
    )


def test_evidence_that_is_drawn_reaches_the_highest_level():
    """Else the properties above would hold of nothing."""
    full = {
        name: Estimate(
            value=v, low=v, high=v, n=1, method="counted", unit="1"
        )
        for name in NAMES
        for v in [0.0 if name in ZERO else (min if name in UPPER else max)(asked(name))]
    }  # fmt: skip
    slope = Estimate(value=0.01, low=0.005, high=0.02, n=9, method="block", unit="1")
    good = dict.fromkeys(FAMILIES, full["AR_new_task"])
    found = Readings(
        policy="arm", side="real", values=full,
        families={"AR": good, "S2R": dict.fromkeys(FAMILIES, full["S2R_new_task"])},
        streaks={name: Streak(kappa=slope, days=30, of_days=40) for name in FAMILIES[:2]},
        audits=tuple(Audit(id=name, title=name, status="pass", reason="") for name in AUDITS),
    )  # fmt: skip
    assert (height(found), assess(found, ROBOTICS).missing) == (4, {})
    few = replace(found, streaks={"pick": found.streaks["pick"]})
    assert height(few) == 2
