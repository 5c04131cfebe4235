"""The report shows what a threshold does to detection, and which novelty never began."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.metrics.performance import success_estimate
from robo_eval.metrics.thresholds import MeasuredThreshold, ThresholdCurve
from robo_eval.report import figures
from robo_eval.report.model import Report
from robo_eval.report.page import render

Maker = Callable[..., Report]


def point(threshold: float | None, hits: int, alarms: int) -> MeasuredThreshold:
    delay = Estimate.missing(reason="no trial is detected", unit="episodes")
    if hits:
        delay = Estimate(value=1.5, low=1.0, high=2.0, n=hits, method="t", unit="episodes")
    return MeasuredThreshold(
        threshold=threshold,
        detected=success_estimate(hits, 8, exact=False),
        false=success_estimate(alarms, 10, exact=False),
        delay=delay,
    )


@pytest.fixture
def curve() -> ThresholdCurve:
    return ThresholdCurve(
        side="sim",
        policy="shaky",
        stated=(0.5, 0.5),
        own=point(None, 6, 1),
        points=(point(0.3, 8, 5), point(0.5, 6, 1), point(0.9, 0, 0)),
    )


@pytest.mark.parametrize("narrow", [False, True])
def test_each_panel_has_the_points_that_have_a_value(
    make_report: Maker, curve: ThresholdCurve, narrow: bool
) -> None:
    drawn = figures.threshold_curves([curve], make_report().policies, narrow=narrow)
    hits, alarms, delay = go.Figure(plain(drawn)).data
    assert list(hits.x) == list(alarms.x) == [0.3, 0.5, 0.9]
    assert list(hits.y) == [1.0, 0.75, 0.0]
    assert list(alarms.y) == [0.5, 0.1, 0.0]
    assert list(delay.x) == [0.3, 0.5]
    assert [line.showlegend for line in (hits, alarms, delay)] == [True, False, False]


def test_the_page_says_in_a_sentence_and_a_table_what_the_threshold_does(
    make_report: Maker, curve: ThresholdCurve
) -> None:
    page = render(replace(make_report(), thresholds=[curve]), [])
    assert 'data-figure="thresholds"' in page
    assert curve.text in page
    assert "detections exceed false alarms most at 0.5: by 0.65." in curve.text
    assert "shaky: 8 trials with novelty of 10" in page
    assert "no trial is detected" in page
    assert 'id="thresholds"' not in render(make_report(), [])


def test_the_page_says_beside_both_tables_which_novelty_never_began(make_report: Maker) -> None:
    told = "Novel episodes that ended before their novelty began: steady 3 at level 9."
    page = render(replace(make_report(), not_begun={"steady": "3 at level 9"}), [])
    assert page.count(told) == 2
    assert "before their novelty began" not in render(make_report(), [])
