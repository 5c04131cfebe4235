"""Counts, rates and the safety score of a log, as they stand."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.core.kinds import Side
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.safety import safety_score
from robo_eval.stats.rates import garwood_interval
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Exposure, Nil, Reclassification, Report, Review
from robo_eval_incidents.paper import printed
from robo_eval_incidents.standing import SideStanding, standing
from robo_eval_incidents.text import span_of
from robo_eval_incidents.words import Category, Severity, Via

HOUR = 3_600 * 10**9
START = 1_772_000_000 * 10**9


def exposed(hours: float, **fields: object) -> Exposure:
    values = {"robot": "ur5e", "side": "real", "mode": "autonomous", "start_ns": START}
    return Exposure.model_validate(values | {"seconds": 3600.0 * hours} | fields)


def near(*numbers: float) -> object:
    return pytest.approx(numbers, abs=0.51e-7)


# The interval in incidents per hour, from the sheet of worked numbers of evaluation statistics.
@pytest.mark.parametrize(
    ("count", "hours", "low", "high"),
    [
        (0, 40.0, 0.0, 0.0922219864),
        (3, 120.0, 0.0051556010, 0.0730606089),
        (1, 10.0, 0.0025317808, 0.5571643391),
    ],
)
def test_rates_have_exact_intervals(log, say, report, count, hours, low, high):
    say(log, exposed(hours))
    say(log, Nil(start_ns=START, end_ns=START + HOUR))
    for _ in range(count):
        say(log, report(severity="minor"))
    found = standing(log).real
    rate = found.rates["minor"]
    assert (found.hours, rate.n, rate.unit) == (pytest.approx(hours), count, "incidents/1000 h")
    assert rate.value == pytest.approx(1000 * count / hours)
    assert (rate.low, rate.high) == near(1000 * low, 1000 * high)
    assert rate.method == "garwood"


def test_the_score_is_that_of_the_metrics(log, say, report):
    say(log, exposed(200))
    for severity in ("near_miss",) * 6 + ("minor",):
        say(log, report(severity=severity))
    found = standing(log).real
    assert found.counts == {"near_miss": 6, "minor": 1, "major": 0, "critical": 0}
    assert found.score == safety_score(found.counts, 200.0)
    assert found.score.value == pytest.approx(0.92)
    strict = standing(log, config=MetricConfig(safety_form="exponential")).real
    assert strict.score.value == pytest.approx(math.exp(-0.08))


def test_without_logged_hours_there_is_no_rate_and_no_score(log, say, report):
    say(log, report(severity="minor"))
    found = standing(log).real
    assert found.hours is None
    assert found.counts is not None
    assert found.counts["minor"] == 1
    for rate in (*found.rates.values(), found.score):
        assert (rate.value, rate.low, rate.high) == (None, None, None)
        assert rate.reason == "no exposure was logged"
    assert "NaN" not in json.dumps(standing(log).as_dict(), allow_nan=False)


def test_a_robot_that_was_off_or_a_twin_adds_no_hours(log, say, report):
    say(log, report())
    say(log, exposed(100, mode="off"))
    say(log, exposed(100, side="twin"))
    say(log, exposed(100, side="sim"))
    found = standing(log)
    assert found.real.hours is None
    assert found.real.score.value is None
    assert found.sides[Side.TWIN].hours == pytest.approx(100)
    assert found.sides[Side.SIM].score.value is None


def test_incidents_of_a_twin_or_a_simulation_never_count_for_a_robot(log, say, report):
    say(log, exposed(100))
    say(log, Nil(start_ns=START, end_ns=START + HOUR))
    say(log, report(side="twin", severity="critical"))
    say(log, report(side="sim", severity="critical"))
    found = standing(log)
    assert found.real.score.value == 1.0
    assert found.real.is_valid
    assert not found.sides[Side.TWIN].is_valid
    simulated = found.sides[Side.SIM]
    assert simulated.counts is not None
    assert simulated.counts["critical"] == 1
    assert simulated.rates["critical"].value is None
    assert simulated.rates["critical"].reason == "a simulation exposes nobody"


def test_hours_of_which_nobody_said_that_nothing_happened_are_no_good_record(log, say):
    say(log, exposed(100))
    found = standing(log).real
    assert found.counts is None
    assert found.score.value is None
    assert "nobody said that nothing happened" in str(found.score.reason)
    say(log, Nil(start_ns=START, end_ns=START + HOUR))
    found = standing(log).real
    assert found.counts == {"near_miss": 0, "minor": 0, "major": 0, "critical": 0}
    assert found.score.value == 1.0
    assert found.score.low is not None
    assert found.score.low < 1.0


def test_only_who_was_there_says_that_nothing_happened(log, say):
    say(log, exposed(100))
    say(log, Nil(start_ns=0, end_ns=HOUR))
    say(log, Nil(start_ns=START, end_ns=START + HOUR, robot="zz"))
    of_another = standing(log, START, robot="ur5e").real
    assert of_another.counts is None
    assert of_another.score.value is None
    assert standing(log, robot="ur5e").real.counts is not None, "a shift of the whole station"
    assert standing(log, START).real.counts is not None, "one robot of all of them"
    say(log, Nil(start_ns=START - HOUR, end_ns=START + 1, robot="ur5e"))
    assert standing(log, START, robot="ur5e").real.score.value == 1.0
    assert standing(log, START + 2 * HOUR, robot="ur5e").real.counts is None


def test_a_report_is_a_record_of_its_own_robot_and_time(log, say, report):
    say(log, exposed(100))
    say(log, report(happened_ns=START + HOUR, robot="arm-2"))
    say(log, report(happened_ns=START + HOUR))
    assert standing(log, START, START + HOUR).real.counts is None
    assert standing(log, START, START + 2 * HOUR, "ur5e").real.counts is not None
    say(log, exposed(1, robot="arm-3"))
    assert standing(log, START, START + 2 * HOUR, "arm-3").real.counts is None


def test_drafts_count_and_dismissed_incidents_do_not(log, say, report):
    say(log, exposed(100))
    draft = say(log, report(severity="minor", rule="stop"), by="guard", via=Via.RULE)
    found = standing(log).real
    assert found.counts is not None
    assert (found.counts["minor"], found.unreviewed) == (1, 1)
    say(log, Review(verdict="dismissed", note="a test"), incident_id=draft.record_id)
    found = standing(log).real
    assert found.counts is not None
    assert (found.counts["minor"], found.unreviewed) == (0, 0)


def test_a_milder_severity_counts_once_it_is_reviewed(log, say, report):
    say(log, exposed(100))
    first = say(log, report(severity="major"))
    about = {"incident_id": first.record_id}
    milder = Reclassification(
        severity=Severity.NEAR_MISS, category=Category.PROTECTIVE_STOP, reason="nobody was near"
    )

    def counts() -> dict[str, int]:
        found = standing(log).real.counts
        assert found is not None
        return {name: count for name, count in found.items() if count}

    say(log, milder, by="Reviewer B", **about)
    assert counts() == {"major": 1}
    say(log, Review(verdict="confirmed", note="so it was"), by="Reviewer C", **about)
    assert counts() == {"near_miss": 1}


def test_a_period_and_a_robot_have_their_own_hours_and_incidents(log, say, report):
    say(log, exposed(10))
    say(log, exposed(10, robot="arm-2", start_ns=START + 20 * HOUR))
    say(log, report(happened_ns=START + HOUR))
    say(log, report(happened_ns=START + 25 * HOUR, robot="arm-2"))
    assert standing(log).real.hours == pytest.approx(20)
    late = standing(log, START + 25 * HOUR, START + 26 * HOUR).real
    assert late.hours == pytest.approx(1)
    assert late.counts is not None
    assert sum(late.counts.values()) == 1
    own = standing(log, robot="arm-2")
    assert own.real.hours == pytest.approx(10)
    assert own.real.rates["near_miss"].value == pytest.approx(100)
    with pytest.raises(UnknownNameError, match="arm-2"):
        standing(log, robot="arm-3")
    with pytest.raises(InputError, match="not after"):
        standing(log, START, START - 1)


def test_a_log_that_cannot_be_written_has_the_same_standing(log, path, say, report):
    say(log, exposed(50))
    say(log, report(severity="minor"))
    wanted = standing(log).as_dict()
    with open_log(path, read_only=True) as closed:
        assert standing(closed).as_dict() == wanted


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A log with one of each severity at whole hours, so that periods tell them apart."""
    path = tmp_path_factory.mktemp("log") / "incidents.db"
    with open_log(path, make=True) as log:
        for hour, severity in enumerate(("near_miss", "minor", "near_miss", "major")):
            body = Report(
                happened_ns=START + hour * HOUR, robot="ur5e", side=Side.REAL, description="it",
                severity=Severity(severity), category=Category.OTHER,
            )  # fmt: skip
            log.file(body, by="Operator A", via=Via.CLI)
        log.file(exposed(8.0), by="Operator A", via=Via.CLI)
        quiet = Nil(start_ns=START + 4 * HOUR, end_ns=START + 20 * HOUR)
        log.file(quiet, by="Operator A", via=Via.CLI)
        yield log


@given(st.integers(0, 9), st.integers(1, 9))
def test_rates_of_any_period_are_those_of_its_counts_and_hours(filled, begin, length):
    found: SideStanding = standing(
        filled, START + begin * HOUR, START + (begin + length) * HOUR
    ).real
    hours = max(0, min(8, begin + length) - begin)
    assert (found.hours or 0.0) == pytest.approx(hours)
    assert found.counts is not None
    for name, rate in found.rates.items():
        if not hours:
            assert rate.value is None
            continue
        low, high = garwood_interval(found.counts[name], hours)
        assert (rate.value, rate.low, rate.high) == pytest.approx(
            (1000 * found.counts[name] / hours, 1000 * low, 1000 * high)
        )
        assert rate.high is not None
        assert rate.high > 0.0


def test_a_sum_that_lies_partly_in_the_period_is_named(log, say):
    begin, end = span_of("2026-02")
    say(log, exposed(96, start_ns=begin, until_ns=end))
    found = standing(log, begin, end).real
    assert (found.hours, found.left_out) == (pytest.approx(96), ())
    found = standing(log, begin + HOUR, end).real
    assert found.hours is None
    assert found.left_out == ("cell-1/2, ur5e (real), 2026-02, lies partly in this period",)
    assert standing(log, begin + HOUR, end, "ur5e").real.left_out == found.left_out
    assert "2026-02" in printed(log, begin + HOUR, end)


def test_a_quiet_shift_that_had_an_incident_is_quiet_in_none_of_its_parts(log, say, report):
    say(log, exposed(8))
    say(log, Nil(start_ns=START, end_ns=START + 8 * HOUR))
    say(log, report(happened_ns=START + 6 * HOUR))
    assert standing(log).real.nil_hours == 0
    assert standing(log, START, START + 2 * HOUR).real.nil_hours == 0
