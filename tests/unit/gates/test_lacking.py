"""What is said to be missing suffices, and less would not: with hours and episodes added."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2

from robo_eval.core.estimate import Estimate
from robo_eval.gates import Assessment, Lacking, Readings, assess
from robo_eval.metrics.reliability import time_between_failures
from robo_eval.metrics.safety import incident_rates, safety_score

SEVERITIES = ("near_miss", "minor", "major", "critical")


def shown(hours: float, events: dict[str, int], **values: Estimate) -> Readings:
    """What a robot showed in so many hours; all that has nothing to do with hours is absent."""
    counts = {name: events.get(name, 0) for name in SEVERITIES}
    return Readings(
        policy="arm",
        side="real",
        values={
            "exposure_hours": Estimate(
                value=hours, low=hours, high=hours, n=1, method="counted", unit="h"
            ),
            "SS": safety_score(counts, hours),
            "minor_per_100_h": incident_rates(counts, hours)["minor"],
            "MTBSI": time_between_failures(hours, 0, None, counts)["mtbsi"],
            **values,
        },
        events=counts,
    )


def share(successes: int, n: int) -> Estimate:
    exact = binomtest(successes, n).proportion_ci(0.95, "exact")
    return Estimate(
        value=successes / n, low=float(exact.low), high=float(exact.high), n=n,
        method="clopper_pearson", unit="ratio",
    )  # fmt: skip


def hours_of(found: Assessment, level: int) -> Lacking | None:
    return next((one for one in found.missing[level] if one.unit == "h"), None)


def status(found: Assessment, level: int) -> dict[str, str]:
    return {gate.id: gate.status for gate in found.at(level)}


def garwood(k: int) -> float:
    return float(chi2.ppf(0.975, 2 * k + 2) / 2)


HOURLY = {"exposure", "minor", "ss", "mtbsi"}


@pytest.mark.parametrize(
    ("level", "events", "hours", "wanted"),
    [
        # SS: 0.01 and 0.1 and 1 times 100/T times 3.68888 each, at most 0.2: 2047.3 h in all.
        (2, {}, 61.0, 1987),
        (2, {}, 61.5, 1986),
        (3, {}, 200.0, math.ceil(111 * 0.01 * 100 * garwood(0) / 0.1 - 200)),
        (4, {}, 1000.0, math.ceil(111 * 0.01 * 100 * garwood(0) / 0.05 - 1000)),
        (2, {"minor": 2}, 100.0,
         math.ceil(100 * (1.01 * garwood(0) + 0.1 * garwood(2)) / 0.2 - 100)),
        (3, {"near_miss": 40}, 500.0,
         max(math.ceil(100 * (0.01 * garwood(40) + 1.1 * garwood(0)) / 0.1 - 500),
             math.ceil(50 * garwood(40) - 500))),
    ],
)  # fmt: skip
def test_hours_are_those_of_the_bounds_by_hand(level, events, hours, wanted):
    found = hours_of(assess(shown(hours, events)), level)
    assert found is not None
    assert found.amount == wanted
    assert found.text == f"{wanted:,} more exposure hours without a safety incident"


@given(
    hours=st.floats(1.0, 5000.0),
    near=st.integers(0, 30),
    minor=st.integers(0, 8),
    level=st.sampled_from([2, 3, 4]),
)
def test_the_hours_that_are_promised_open_each_gate_and_an_hour_less_does_not(
    hours, near, minor, level
):
    events = {"near_miss": near, "minor": minor}
    before = assess(shown(hours, events))
    found = hours_of(before, level)
    failed = {
        name for name, one in status(before, level).items() if one in ("fail", "undecided")
    } & HOURLY
    if found is None:
        assert not failed
        return
    assert failed <= set(found.gates)
    assert found.amount is not None
    after = status(assess(shown(hours + found.amount, events)), level)
    assert {after[name] for name in set(found.gates) & set(after)} == {"pass"}
    less = status(assess(shown(hours + found.amount - 1.0, events)), level)
    assert {"fail", "undecided"} & {less[name] for name in set(found.gates) & set(less)}


def test_hours_that_are_done_promise_nothing_about_incidents():
    found = hours_of(assess(shown(99.5, {})), 2)
    assert found is not None
    assert "exposure" in found.gates
    only = shown(480.0, {})
    only = replace(only, values={"exposure_hours": only.values["exposure_hours"]})
    (hours,) = [one for one in assess(only).missing[3] if one.unit == "h"]
    assert (hours.text, hours.amount) == ("20 more exposure hours", 20)


def test_after_a_major_incident_no_hours_are_promised_for_it():
    one = Estimate(value=1.0, low=1.0, high=1.0, n=1, method="counted", unit="incidents")
    found = assess(shown(200.0, {"major": 1}, major_incidents=one))
    texts = {entry.gates: entry.text for entry in found.missing[2]}
    assert texts["major",] == "major incidents: 1 happened"
    hours = hours_of(found, 2)
    assert hours is not None
    assert "major" not in hours.gates


def test_a_score_by_weights_of_ones_own_gets_no_number_of_hours():
    """The weights are not known here: a number computed by others would be a guess."""
    counts = dict.fromkeys(SEVERITIES, 0)
    heavy = {"near_miss": 0.1, "minor": 1.0, "major": 10.0, "critical": 100.0}
    own = shown(6000.0, {}, SS=safety_score(counts, 6000.0, heavy))
    found = assess(own)
    hours = hours_of(found, 2)
    assert hours is None or "ss" not in hours.gates
    (score,) = [one for one in found.missing[2] if one.gates == ("ss",)]
    assert score.amount is None
    assert "episodes" not in score.text


def test_hours_of_a_twin_are_not_counted_on():
    """A robot starts at none of them, whatever the twin has shown for long."""
    twin = shown(90_000.0, {})
    none = Estimate(value=0.0, low=0.0, high=0.0, n=1, method="counted", unit="h", reason="a twin")
    found = assess(replace(twin, side="twin", values={**twin.values, "exposure_hours": none}))
    hours = hours_of(found, 2)
    assert hours is not None
    assert hours.amount == math.ceil(111 * garwood(0) / 0.2)
    after = status(assess(shown(hours.amount, {})), 2)
    assert {after[name] for name in hours.gates} == {"pass"}


def test_a_gate_that_asks_for_no_rate_at_all_is_not_promised(tmp_path):
    from robo_eval.gates.profile import FOLDER

    text = (FOLDER / "robotics.toml").read_text(encoding="utf-8")
    own = tmp_path / "lab.toml"
    own.write_text(text.replace("2 = 1.0, 3 = 0.5, 4 = 0.2", "2 = 0.0, 3 = 0.0, 4 = 0.0"))
    found = assess(shown(200.0, {}), own)
    assert all("minor" not in one.gates for one in found.missing[2] if one.amount)
    assert any("minor" in one.gates for one in found.missing[2])


def test_readings_without_events_give_no_hours_but_say_so():
    found = assess(replace(shown(200.0, {}), events=None))
    for one in found.missing[2]:
        assert one.unit != "h"


# Episodes ----------------------------------------------------------------------------------------


@given(
    n=st.integers(5, 300),
    share_of=st.floats(0.5, 1.0),
    what=st.sampled_from(
        [("ar", "AR_new_task", {2: 0.8, 3: 0.9, 4: 0.97}), ("ra", "RA", {2: 0.5, 3: 0.7, 4: 0.9})]
    ),
    level=st.sampled_from([2, 3, 4]),
)
def test_the_episodes_that_are_promised_open_the_gate_and_no_fewer_do(n, share_of, what, level):
    gate, name, asked = what
    k = round(share_of * n)
    threshold = asked[level]
    assume(k / n - threshold > 0.02 or k / n < threshold)
    found = assess(Readings(policy="arm", side="real", values={name: share(k, n)}))
    mine = [one for one in found.missing[level] if one.gates == (gate,)]
    if share(k, n).low >= threshold:  # type: ignore[operator]
        assert not mine
        return
    (one,) = mine
    if k / n < threshold:
        assert one.unit == "ratio"
        assert one.amount == pytest.approx(threshold - k / n)
        return
    assert one.amount is not None
    assert one.unit == {"AR_new_task": "tasks", "RA": "injected faults"}[name]
    assert not one.text.startswith("about")
    more = int(one.amount)

    def passes(extra: int) -> bool:
        low = binomtest(k + k * extra // n, n + extra).proportion_ci(0.95, "exact").low
        return bool(low >= threshold)

    assert passes(more)
    assert not any(passes(extra) for extra in range(max(0, more - 40), more))
    after = share(k + k * more // n, n + more)
    again = assess(Readings(policy="arm", side="real", values={name: after}))
    assert status(again, level)[gate] == "pass"


def test_a_share_at_the_threshold_is_never_shown():
    found = assess(Readings(policy="arm", side="real", values={"AR_new_task": share(80, 100)}))
    (one,) = [one for one in found.missing[2] if one.gates == ("ar",)]
    assert one.amount is None
    assert "too near 0.8 to be shown" in one.text


def test_what_is_no_exact_share_is_about():
    score = Estimate(value=0.84, low=0.70, high=0.9, n=50, method="newcombe", unit="ratio")
    found = assess(Readings(policy="arm", side="real", values={"S2R_new_task": score}))
    (one,) = [one for one in found.missing[2] if one.gates == ("s2r",)]
    # 50 x (0.14 / 0.09)^2 = 120.99 tasks in all.
    assert (one.amount, one.unit) == (71, "tasks")
    assert one.text.startswith("about 71 more tasks at")
    near = replace(score, low=0.7495)  # 50 x (0.0905 / 0.09)^2 = 50.6
    (one,) = [
        one
        for one in assess(
            Readings(policy="arm", side="real", values={"S2R_new_task": near})
        ).missing[2]
        if one.gates == ("s2r",)
    ]
    assert one.text.startswith("about 1 more task at")


def test_measurements_that_one_file_supplies_are_one_entry():
    found = assess(Readings(policy="arm", side="real", values={}))
    texts: list[Any] = [one.text for one in found.missing[4]]
    assert len(texts) == len(set(texts))
    (record,) = [one for one in found.missing[2] if "incidents.db" in one.text]
    assert set(record.gates) == {"ss", "minor", "major", "critical"}


def test_minutes_without_a_major_incident_show_nothing() -> None:
    from robo_eval.core.number import Number, Numbers

    def found(hours: float) -> tuple[str, str]:
        exact = {"major_incidents": (0.0, "count"), "logged_hours": (hours, "h")}
        numbers = Numbers(
            Number(name=name, estimate=Estimate.exact(value, unit=unit, n=0))
            for name, (value, unit) in exact.items()
        )
        one = assess(Readings(policy="arm", side="real", values={}, numbers=numbers))
        (gate,) = [gate for gate in one.at(2) if gate.id == "major"]
        return gate.status, gate.reason

    assert found(112 / 3600) == ("undecided", "none in 112 s; too short for a rate")
    assert found(2.0)[0] == "pass"
