"""The ten axes of one policy: anchors, calibration, and what is missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.formulas import AXES
from robo_eval.gates.axes.anchors import Axis, axes_of, axis_of
from robo_eval.gates.axes.draws import Resampled
from robo_eval.gates.axes.episodes import EPISODE_AXES
from robo_eval.gates.axes.revision import revisions_measured
from robo_eval.gates.axes.settings import AnchorSettings, AxisSettings
from robo_eval.log.evidence import (
    Anchor,
    Evidence,
    Retention,
    Retrieval,
    Revision,
    TeamTrial,
    ToolUse,
)
from robo_eval.metrics.body import Body
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.summary import summarise

PAID = MetricConfig(resamples=200, price_card={"operator": 2.0, "energy": 1.0})


def episodes(n: int = 24, *, side: str = "real") -> pd.DataFrame:
    """Every second episode of five minutes succeeds: six an hour."""
    ok = [i % 2 == 0 for i in range(n)]
    table = {
        "episode_id": [f"{side}-{i}" for i in range(n)], "side": side, "task": "pick",
        "family": "pick", "policy": "arm", "quality": [0.9 if one else 0.1 for one in ok],
        "success": ok, "end_reason": ["success" if one else "failure" for one in ok],
        "seed": range(n), "pair_id": [f"pair-{i}" for i in range(n)], "start_ns": range(n),
        "duration_s": 300.0, "exposure_s": 0.0 if side == "sim" else 300.0,
        "uninterrupted_actions": [40 if one else 20 for one in ok], "plan_depth": 6,
        "stated_success_probability": [0.8 if one else 0.3 for one in ok],
    }  # fmt: skip
    return pd.DataFrame(table)


def body_of(side: str = "real", config: MetricConfig = PAID) -> Body:
    table = pd.concat([episodes(side=side), episodes(side="sim")], ignore_index=True)
    summary = summarise(table, config=config, evidence=Evidence(incidents=()))
    (body,) = summary.robots
    return body


def noted(**changed: Any) -> Evidence:
    """A little of everything."""
    given: dict[str, Any] = {
        "retention": (Retention(line=2, family="x", lag_days=14, trials=100, recalled=50),),
        "retrieval": (
            Retrieval(line=2, family="x", k=5, queries=20, relevant=100, found=81, returned=90,
                      verified=85),
        ),
        "tools": (ToolUse(line=2, category="hook", episodes=50, successes=45, drift="mild"),),
        "revisions": (
            Revision(
                line=2, revision="r", time_ns=1, diff="d", holdout="h", resources_equal=True,
                proposed_by="policy", edits=1, edits_by_policy=1, checks=1,
                checks_without_labels=1, episodes=100, before=50, after=55, control_before=50,
                control_after=50, ablated=50,
            ),
        ),
        "teams": (
            TeamTrial(line=2, task="lift", robots=1, episodes=50, successes=20),
            TeamTrial(line=3, task="lift", robots=2, episodes=50, successes=35),
        ),
        **changed,
    }  # fmt: skip
    return Evidence(**given)


def anchor(axis: str, baseline: float, expert: float, **changed: Any) -> Anchor:
    given = {"line": 2, "scale": "linear", "source": "a team of three", **changed}
    return Anchor(axis=axis, baseline=baseline, expert=expert, **given)


def revised(evidence: Evidence | None, settings: AxisSettings, resamples: int = 300) -> Resampled:
    noted = None if evidence is None else evidence.revisions
    return revisions_measured(noted, settings, resamples=resamples).measured


def table(
    body: Body | None = None, evidence: Evidence | None = None, **settings: Any
) -> dict[str, Axis]:
    own = episodes_frame(episodes())
    found = axes_of(
        own, body, evidence or Evidence(), AxisSettings(**settings), resamples=300,
        revision=revised(evidence, AxisSettings(**settings)),
    )  # fmt: skip
    assert tuple(axis.name for axis in found) == AXES
    return {axis.name: axis for axis in found}


def measured(value: float | None, low: float | None = None, high: float | None = None) -> Resampled:
    if value is None:
        return Resampled(raw=Estimate.missing(reason="nothing was noted", unit="x"))
    raw = Estimate(value=value, low=low, high=high, n=9, method="counted", unit="x")
    return Resampled(raw=raw, draws=np.array([value, low or value, high or value]))


# All ten -----------------------------------------------------------------------------------------


def test_with_everything_all_ten_axes_have_a_value_an_interval_and_draws():
    found = table(body_of(), noted(anchors=(anchor("$", 1.0, 9.0),)))
    for axis in found.values():
        value = axis.value
        assert value.value is not None, (axis.name, value.reason)
        assert value.low is not None
        assert value.high is not None
        assert 0.0 <= value.low <= value.value <= value.high <= 1.0
        assert axis.draws is not None
        assert ((axis.draws >= 0.0) & (axis.draws <= 1.0)).all()
        assert value.unit == "ratio"
    assert found["A"].value.value == pytest.approx(0.6)
    assert found["M"].value.value == pytest.approx(0.7348469228, abs=1e-9)
    assert found["R"].value.value == pytest.approx(0.5)
    assert found["S"].value.value == pytest.approx(0.5)


def test_with_nothing_every_missing_axis_says_which_file_or_column_it_needs():
    empty = episodes_frame(episodes(1)).iloc[:0]
    found = axes_of(empty, None, Evidence(), AxisSettings(), revision=revised(None, AxisSettings()))
    assert tuple(axis.name for axis in found) == AXES
    needs = {
        "A": "uninterrupted_actions", "G": "quality", "P": "plan_depth", "M": "retention.csv",
        "T": "tools.csv", "R": "revisions.csv", "S": "teams.csv", "E": "incidents.db",
        "W": "stated_success_probability", "$": "metrics.price_card",
    }  # fmt: skip
    for axis in found:
        assert axis.value.value is None
        assert needs[axis.name] in str(axis.value.reason)
        assert axis.draws is None
        assert plain(axis)["value"]["value"] is None


def test_files_without_lines_measure_no_memory_but_a_revision_of_0():
    found = table(None, Evidence(revisions=(), retention=(), retrieval=(), tools=(), teams=()))
    assert found["R"].value.value == 0.0
    for name in "MTS":
        assert found[name].value.value is None


def test_the_same_seed_gives_the_same_draws_and_axes_do_not_share_them():
    first, again = (table(body_of(), noted()) for _ in range(2))
    for name, axis in first.items():
        if axis.draws is not None:
            assert np.array_equal(axis.draws, again[name].draws)  # type: ignore[arg-type]
    draws = {name: axis.draws for name, axis in first.items() if axis.draws is not None}
    for one in "MTRE":
        for other in EPISODE_AXES:
            if draws[one].std() and draws[other].std():
                assert abs(np.corrcoef(draws[one], draws[other])[0, 1]) < 0.25


# Throughput and embodiment -----------------------------------------------------------------------


def test_the_worked_example_of_throughput():
    """Twelve tasks an hour at three an hour are four for one; between 1 and 9 that is 0.375."""
    raw = Estimate(value=formulas.throughput(12, 3), n=12, method="garwood", unit="x")
    axis = axis_of("$", Resampled(raw=raw), AnchorSettings(baseline=1.0, expert=9.0))
    assert axis.value.value == pytest.approx(0.375, abs=1e-9)


def test_throughput_is_that_of_the_robot_with_draws_of_a_rate():
    body = body_of()
    found = table(body, noted(anchors=(anchor("$", 0.0, 10.0),)))["$"]
    assert found.raw.value == pytest.approx(2.0)  # six an hour at three
    assert found.value.value == pytest.approx(0.2)
    assert found.draws is not None
    # Twelve successes in two hours: the mean of the posterior is 12.5 / 2 h / 3.
    assert found.draws.mean() == pytest.approx(12.5 / 2 / 3 / 10, rel=0.05)
    assert found.parts["per_hour"].value == pytest.approx(6.0)
    assert found.parts["cost of operator"].value == 2.0


def test_throughput_without_anchors_is_measured_and_no_axis():
    found = table(body_of(), noted())["$"]
    assert found.raw.value == pytest.approx(2.0)
    assert (found.value.value, found.baseline, found.draws) == (None, None, None)
    assert "anchors.csv" in str(found.value.reason)
    assert plain(found)["anchors"] is None


def test_throughput_without_a_price_card_says_so():
    found = table(body_of(config=MetricConfig(resamples=200)), noted())["$"]
    assert found.value.value is None
    assert "no price card" in str(found.value.reason)


def test_embodiment_is_that_of_the_robot_and_its_draws_have_its_ends(monkeypatch):
    body = body_of()
    joint = Estimate(value=0.6, low=0.3, high=0.7, n=40, method="joint_bootstrap", unit="ratio")
    monkeypatch.setattr(body, "of", {"E": joint}.get)
    own = episodes_frame(episodes())
    every = axes_of(
        own, body, Evidence(), AxisSettings(), resamples=20_000,
        revision=revised(None, AxisSettings(), 20_000),
    )  # fmt: skip
    found = {axis.name: axis for axis in every}["E"]
    assert found.raw == joint
    assert set(found.parts) == {"AR", "SS", "S2R"}
    assert found.draws is not None
    quantiles = np.quantile(found.draws, [0.025, 0.5, 0.975])
    assert quantiles == pytest.approx([0.3, 0.6, 0.7], abs=0.01)


def test_embodiment_without_an_interval_has_no_draws(monkeypatch):
    bare = Estimate(value=0.6, n=40, method="none", unit="ratio", reason="a part has no interval")
    body = body_of()
    monkeypatch.setattr(body, "of", {"E": bare}.get)
    found = table(body)["E"]
    assert (found.value.value, found.draws) == (0.6, None)


def test_what_a_twin_showed_is_called_so(monkeypatch):
    shown = body_of("twin")
    score = Estimate(value=0.5, low=0.4, high=0.6, n=9, method="x", unit="ratio")
    monkeypatch.setattr(shown, "of", {"E": score}.get)
    assert table(shown)["E"].value.reason == "of a twin, not of a robot"


# Anchors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "baseline", "expert", "scale", "expected"),
    [
        (7, 2, 10, "linear", 0.625),
        (1, 2, 10, "linear", 0.0),
        (11, 2, 10, "linear", 1.0),
        (10, 1, 100, "log", 0.5),
        (0, 1, 100, "log", 0.0),
        (3, 10, 2, "linear", 0.875),
    ],
)
def test_worked_examples_of_anchors(
    raw: float, baseline: float, expert: float, scale: Any, expected: float
):
    anchors = AnchorSettings(baseline=baseline, expert=expert, scale=scale)
    axis = axis_of("T", measured(raw, raw, raw), anchors)
    assert axis.value.value == pytest.approx(expected, abs=1e-9)
    assert axis.draws == pytest.approx([expected] * 3)
    assert (axis.baseline, axis.expert, axis.scale) == (baseline, expert, scale)


def test_where_lower_is_better_the_ends_change_places():
    anchors = AnchorSettings(baseline=10.0, expert=2.0)
    value = axis_of("T", measured(3.0, 2.5, 8.0), anchors).value
    assert (value.low, value.value, value.high) == pytest.approx((0.25, 0.875, 0.9375))


def test_an_interval_that_reaches_below_0_is_cut_off():
    """Student's t of few episodes knows no bounds."""
    log = AnchorSettings(baseline=0.1, expert=1.0, scale="log")
    for anchors in (AnchorSettings(), log):
        value = axis_of("A", measured(0.5, -0.4, 1.4), anchors).value
        assert (value.low, value.high) == (0.0, 1.0)


def test_noted_anchors_come_before_settings_and_these_before_0_and_1():
    settings = {"T": AnchorSettings(baseline=0.1, expert=0.5, source="settings"),
                "A": AnchorSettings(baseline=0.2, expert=1.0, source="settings")}  # fmt: skip
    found = table(None, noted(anchors=(anchor("T", 0.0, 0.225),)), anchors=settings)
    assert (found["T"].baseline, found["T"].expert) == (0.0, 0.225)
    assert found["T"].source == "a team of three"
    assert found["T"].value.value == pytest.approx(1.0)  # one category: 1/4 of 0.9
    assert found["A"].source == "settings"
    assert found["A"].value.value == pytest.approx(0.5)
    assert (found["P"].baseline, found["P"].expert, found["P"].source) == (0.0, 1.0, "")


def test_versioned_anchors_say_who_set_them_when_from_what_and_in_which_file():
    one = replace(
        anchor("T", 0.0, 0.225), version="2", by="A. Lab", time_ns=1_772_357_400_000_000_000,
        trials="runs/base 3fa0",
    )  # fmt: skip
    files = {"files": {"anchors": "lab/a.csv"}, "sources": {"a.csv": "9c1d"}}
    found = table(None, noted(anchors=(one,), **files))["T"]
    told = "version 2, by A. Lab, on 2026-03-01, from runs/base 3fa0; a.csv 9c1d"
    assert found.source == f"a team of three ({told})"
    bare = table(None, noted(anchors=(replace(one, by="", time_ns=None, trials=""),)))["T"]
    assert bare.source == "a team of three (version 2; anchors.csv)"


def test_anchors_that_disagree_are_refused_with_their_line():
    same = (anchor("T", 0.0, 0.5), anchor("T", 0.0, 0.5, line=3))
    assert table(None, noted(anchors=same))["T"].expert == 0.5
    other = noted(anchors=(*same, anchor("T", 0.0, 0.6, line=4)), files={"anchors": "a.csv"})
    with pytest.raises(InputError, match=r"a\.csv: line 4: T has other anchors in line 2"):
        table(None, other)


@given(
    raw=st.lists(st.floats(0.0, 20.0), min_size=3, max_size=3),
    ends=st.tuples(st.floats(0.1, 20.0), st.floats(0.1, 20.0)).filter(lambda x: x[0] != x[1]),
    scale=st.sampled_from(["linear", "log"]),
)
def test_values_ends_and_draws_are_those_of_the_formula(
    raw: list[float], ends: tuple[float, float], scale: Any
):
    low, value, high = sorted(raw)
    anchors = AnchorSettings(baseline=ends[0], expert=ends[1], scale=scale)
    if scale == "log" and np.log(ends[0]) == np.log(ends[1]):
        return
    one = replace(measured(value, low, high), draws=np.array([low, value, high]))
    axis = axis_of("T", one, anchors)
    expected = [formulas.calibrate(x, *ends, scale=scale) for x in (low, value, high)]
    assert axis.draws == pytest.approx(expected, abs=1e-9)
    assert axis.value.value == pytest.approx(expected[1])
    assert sorted([expected[0], expected[2]]) == pytest.approx([axis.value.low, axis.value.high])


def test_what_was_not_measured_stays_so_whatever_its_anchors():
    axis = axis_of("M", measured(None), AnchorSettings(baseline=0.2, expert=0.9))
    assert (axis.value.value, axis.value.reason) == (None, "nothing was noted")
    assert plain(axis)["anchors"]["expert"] == 0.9
