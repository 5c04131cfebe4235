"""Tests of what a report says of how a trial was run, and by which settings."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from robo_eval.metrics.config import MetricConfig
from robo_eval.report.conduct import MEANINGS, OURS, settings_of, value_text
from robo_eval.report.page import render


def test_voids_raters_and_evidence_are_told(lab: Any) -> None:
    report = lab.report()
    conduct = report.conduct
    (voids,) = conduct.voids
    assert voids.policy == "ours (real)"
    assert (voids.attempts, voids.reasons) == (32, "4 power cut")
    assert voids.success.value == pytest.approx(22 / 28)
    assert voids.with_voids.value == pytest.approx(22 / 32)
    (rater,) = conduct.raters
    assert (rater.agreed.n, rater.blind) == (6, 6)
    assert rater.table[1][0] == 1  # success in the log only: episode 4
    assert rater.table[0][1] == 1  # the rater calls the failed episode 0 a success
    assert [name for name, _ in conduct.evidence] == ["incidents.csv", "faults.csv", "ratings.csv"]
    page = render(report, [])
    assert 'id="conduct"' in page
    assert str(lab.folder) not in page
    assert all(sha in page for _, sha in conduct.evidence)
    assert "1 success only in the log, 1 only for the rater" in page


def test_many_voids_are_a_warning_at_the_top(lab: Any) -> None:
    flagged = lab.report().warnings
    assert any("More than 5" in text and text.endswith("ours (real): 4 of 32.") for text in flagged)
    allowed = lab.report(config=replace(lab.settings, max_voids=0.2))
    assert not any("declared void" in text for text in allowed.warnings)
    page = render(allowed, [])
    assert "more than 20" in page


def test_evidence_that_does_not_fit_is_a_warning_at_the_top(lab: Any) -> None:
    rows = ["incident_id,severity,episode_id"]
    rows += [f"i{i},minor,nowhere{i}" for i in range(9)]
    report = lab.report(evidence={"incidents": rows})
    (warning,) = [text for text in report.warnings if "audit" in text]
    assert warning.startswith("The audit of the evidence failed: incidents.csv: line 2: ")
    assert str(lab.folder) not in warning
    more = len(report.conduct.findings) - 5
    assert f"and {more} more, see metrics.json" in warning
    page = render(report, [])
    assert page.index("The audit of the evidence failed") < page.index('class="results"')
    assert all(text.split(": ")[1] in page for text in report.conduct.findings)


def test_a_trial_in_simulation_has_settings_but_no_section(lab: Any) -> None:
    report = lab.report(
        "sim", lines=[lab.lines()[0], *(x for x in lab.lines() if ",sim," in x)], evidence={}
    )
    assert not report.conduct.is_shown
    page = render(report, [])
    assert 'id="conduct"' not in page
    assert 'id="settings"' in page
    assert report.conduct.digest in page


def test_every_setting_is_listed_with_whose_choice_it_is() -> None:
    plain = {it.name: it for it in settings_of(MetricConfig())}
    assert list(plain) == [part.name for part in fields(MetricConfig)] == list(MEANINGS)
    assert plain["severity_weights"].value == "near miss 0.01, minor 0.1, major 1, critical 10"
    assert plain["safety_form"].value == "linear: max(0, 1 − x)"
    given = ("tolerances", "price_card", "currency", "calibration")
    assert all(it.origin == ("" if name in given else OURS) for name, it in plain.items())
    assert not any("paper" in it.origin for it in plain.values())
    changed = MetricConfig(
        max_voids=0.1, tolerances={"*": {"error_mm": 5.0}}, price_card={"energy": 2.0}
    )
    found = {it.name: it for it in settings_of(changed)}
    assert found["max_voids"].origin == f"for this trial; {OURS} is 5\N{NO-BREAK SPACE}%"
    assert found["tolerances"].value == "* (error mm 5)"
    assert found["tolerances"].origin == "for this trial"
    assert found["price_card"].value == "energy 2"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("resamples", 9999, "9\N{NO-BREAK SPACE}999"),
        ("level", 0.9, "90\N{NO-BREAK SPACE}%"),
        ("control_weights", {}, "all 1"),
        ("calibration", None, "not set"),
        ("min_effective_size", 30, "30"),
        ("safety_form", "exponential", "exponential: exp(−x)"),
    ],
)
def test_settings_are_written_for_people(name: str, value: object, text: str) -> None:
    assert value_text(name, value) == text
