"""Tests of the charts of autonomy levels, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import plain
from robo_eval.gates import Readings, assess
from robo_eval.gates.axes.anchors import TITLES, Axis
from robo_eval.gates.axes.frontier import Frontier, frontier_of
from robo_eval.gates.axes.improvement import Upkeep
from robo_eval.gates.axes.progress import DayIndex, Progress, progress_of
from robo_eval.gates.axes.settings import FrontierSettings, ProgressSettings
from robo_eval.gates.checklist import Checklist
from robo_eval.gates.profile import load_profile
from robo_eval.gates.trial import TrialFindings
from robo_eval.log.evidence import Checkpoint
from robo_eval.metrics.config import MetricConfig
from robo_eval.page.theme import dark_colours, policy_style
from robo_eval.report.level_figures import level_charts, level_styles
from robo_eval.report.levels import Autonomy
from robo_eval.report.model import Report
from robo_eval.report.page import render

NAMES = ["axes", "capability", "frontier"]
FIRST = 20_514
"""2 March 2026."""


def axes(**changed: float | None) -> tuple[Axis, ...]:
    """Ten axes of 0.5 with intervals of 0.1 to both sides, but for what is changed."""
    found = []
    for name in TITLES:
        value = changed.get(name, 0.5)
        estimate = (
            Estimate.missing(reason="not there", unit="ratio")
            if value is None
            else Estimate(
                value=value, low=max(0.0, value - 0.1), high=min(1.0, value + 0.1), n=9,
                method="bootstrap", unit="ratio",
            )
        )  # fmt: skip
        found.append(Axis(name=name, raw=estimate, baseline=0.0, expert=1.0, value=estimate))
    return tuple(found)


def days(number: int = 15, patched: int | None = None) -> tuple[DayIndex, ...]:
    drifts = {2: ("payload",), 5: ("friction", "lighting")}
    return tuple(
        DayIndex(
            day=FIRST + i,
            capability=0.5 + 0.02 * i,
            families=3,
            drifts=drifts.get(i, ()),
            human_patches=2 * (i == patched),
        )
        for i in range(number)
    )


def progress(families: Sequence[str]) -> dict[str, Progress]:
    found = progress_of(
        [
            Checkpoint(
                line=i + 2,
                policy=None,
                side="real",
                time_ns=(FIRST + i) * 86_400 * 10**9,
                family="pick",
                capability=0.4 + 0.02 * i,
                resources=2.0 * i,
            )
            for i in range(9)
        ],
        ProgressSettings(resamples=100),
    )
    return {family: replace(found, family=family) for family in families}


def level(policy: str = "ours", **changed: Any) -> Readings:
    return Readings(
        policy=policy,
        side="real",
        **{"values": {}, "axes": axes(), "days": days(), "progress": progress(["pick"]), **changed},
    )


def kept(first: int, last: int) -> dict[str, Any]:
    """Days in a row on which a capability was kept, enough for the closure of a level."""
    number = Estimate(value=99.0, low=99.0, high=99.0, n=1, method="counted", unit="days")
    upkeep = Upkeep(
        days=99, kept=99, missing_drifts=(), patched=0, reason="", first_day=first, last_day=last
    )
    return {"values": {"maintenance_days": number}, "upkeep": upkeep}


def frontier() -> Frontier:
    """Helped often with 0.9, helped never with 0.5: the first up to autonomy 0.2."""
    lines = [
        (name, "pick", quality + more, often)
        for name, quality, often in (("ours", 0.5, 0), ("theirs", 0.9, 4))
        for more in (-0.05, 0.0, 0.0, 0.05)
    ]
    table = pd.DataFrame(lines, columns=["policy", "family", "quality", "interventions"])
    return frontier_of(table, FrontierSettings(resamples=100))


def findings(*levels: Readings, found: Frontier | None = None) -> TrialFindings:
    profile = load_profile("robotics")
    return TrialFindings(
        policies=tuple(assess(one, profile) for one in levels or (level("ours"), level("theirs"))),
        checklist=Checklist(items=()),
        frontier=found or frontier(),
        profile=profile,
        config=MetricConfig(),
    )


def charts(*levels: Readings, narrow: bool = False) -> dict[str, go.Figure]:
    found = level_charts(findings(*levels), ["ours", "theirs"])
    return {name: go.Figure(plain(draw(narrow=narrow))) for name, draw in found.items()}


def texts(figure: go.Figure) -> list[str]:
    return [str(note.text) for note in figure.layout.annotations]


# All of them -------------------------------------------------------------------------------------


@pytest.mark.parametrize("narrow", [False, True])
def test_each_chart_is_drawn_and_a_phone_has_one_column(*, narrow: bool) -> None:
    found = charts(narrow=narrow)
    assert list(found) == NAMES
    polar = [found["axes"].layout[key].domain.x for key in ("polar", "polar2")]
    columns = {axis.domain for axis in found["capability"].select_xaxes()}
    assert len(set(polar)) == len(columns) == (1 if narrow else 2)


def test_what_is_too_little_to_draw_is_left_out() -> None:
    few = dict.fromkeys(list(TITLES)[2:])
    poor = level("ours", axes=axes(**few), days=days(1))
    assert list(charts(poor)) == ["frontier"]
    assert list(charts(poor, level("theirs"))) == NAMES
    assert len(charts(poor, level("theirs"))["axes"].data) == 2
    nobody = pd.DataFrame(columns=["policy", "family", "quality", "interventions"])
    empty = frontier_of(nobody, FrontierSettings(resamples=100))
    assert level_charts(findings(poor, found=empty), ["ours"]) == {}
    said = Autonomy(findings=findings(poor, level("theirs")))
    assert said.axes_note.startswith("There is no picture for ours of the axes: fewer than 3")
    assert said.days_note.startswith("There is no picture for ours of capability over time")


def test_every_colour_has_a_dark_one() -> None:
    known = set(dark_colours()) | {"rgba(0,0,0,0)"}
    found = charts(level("ours", days=days(patched=4), **kept(FIRST, FIRST)))
    for figure in found.values():
        text = json.dumps(figure.to_plotly_json(), default=str)
        used = set(re.findall(r"#[0-9a-f]{6}|rgba\([^)]*\)", text))
        assert used <= known
        assert used & set(dark_colours())


def test_a_policy_looks_as_in_the_other_charts() -> None:
    names = ["ours (sim)", "theirs (sim)", "ours (real)", "theirs (real)"]
    found = level_styles(findings(level("theirs"), level("ours")).policies, names)
    assert found == {"theirs": policy_style(3), "ours": policy_style(2)}
    one = findings(level("theirs")).policies
    assert level_styles(one, ["a", "theirs"])["theirs"] == policy_style(1)


def test_names_with_markup_stay_text() -> None:
    name = "<i>ours</i>"
    for figure in charts(level(name), level("theirs")).values():
        assert name not in json.dumps(figure.to_plotly_json(), default=str)


def test_charts_stand_in_the_page_with_words_for_those_who_do_not_see_them(
    make_report: Callable[..., Report],
) -> None:
    page = render(replace(make_report(), autonomy=Autonomy(findings=findings())), [])
    figures = json.loads(page.split('id="figures">')[1].split("</script>")[0])
    for name in NAMES:
        assert set(figures[name]) == {"wide", "narrow"}
        (tag,) = re.findall(rf'<div class="chart" data-figure="{name}" [^>]*>', page)
        assert 'role="img"' in tag
        assert len(re.findall(r'aria-label="([^"]*)"', tag)[0]) > 60


# Axes --------------------------------------------------------------------------------------------


def test_axes_stand_on_their_spokes_with_their_intervals() -> None:
    (one,) = [charts(level())["axes"]]
    bars, points = one.data
    assert list(points.r) == [0.5] * 11  # closed: the first stands at the end, too
    assert points.theta[0] == points.theta[-1] == 90.0
    assert len(set(points.theta)) == 10
    assert list(bars.r[:3]) == [0.4, 0.6, None]
    assert list(one.layout.polar.angularaxis.ticktext) == list(TITLES.values())
    assert list(one.layout.polar.angularaxis.tickvals) == list(points.theta[:-1])
    assert points.fill == "toself"
    assert not texts(one)


def test_an_axis_without_a_value_is_a_gap_with_its_name_and_no_zero() -> None:
    one = charts(level(axes=axes(M=None, S=None)))["axes"]
    bars, points = one.data
    names = list(TITLES)
    assert [points.r[names.index(name)] for name in "MS"] == [None, None]
    assert points.connectgaps is False
    assert points.fill == "none"  # an area across a gap would say that there is a value
    assert len([r for r in bars.r if r is not None]) == 2 * 8
    assert texts(one) == ["no value: memory, sociality"]
    assert "not measured: not there" in points.customdata[names.index("M")]


def test_a_gap_at_the_top_is_not_closed_over() -> None:
    _, points = charts(level(axes=axes(A=None)))["axes"].data
    assert points.r[0] is None
    assert points.r[-1] is None


# Over time ---------------------------------------------------------------------------------------


def test_capability_stands_at_its_days_with_kappa_written_on_it() -> None:
    one = charts(level())["capability"]
    line = one.data[-1]
    assert (line.x[0], line.x[-1]) == ("2026-03-02", "2026-03-16")
    assert line.y[0] == 0.5
    assert any(text.startswith("κ pick 0.01 (") for text in texts(one))


def test_a_drift_has_a_row_with_its_name_and_a_line_at_its_day() -> None:
    one = charts(level())["capability"]
    rows = dict(zip(one.layout.yaxis.ticktext, one.layout.yaxis.tickvals, strict=True))
    lowest = min(value for name, value in rows.items() if name[0].isdigit())
    names = ["friction", "lighting", "payload"]
    assert all(rows[name] < lowest for name in names)
    lines = sorted((shape.x0, shape.y0) for shape in one.layout.shapes)
    assert lines == sorted(
        [
            ("2026-03-04", rows["payload"]),
            ("2026-03-07", rows["friction"]),
            ("2026-03-07", rows["lighting"]),
        ]
    )
    assert "changed by people" not in rows
    assert one.layout.yaxis.range[0] < min(rows.values())


def test_what_people_changed_is_marked_apart_from_drifts() -> None:
    one = charts(level(days=days(patched=4)))["capability"]
    assert "changed by people" in one.layout.yaxis.ticktext
    solid = [shape for shape in one.layout.shapes if shape.line.dash == "solid"]
    assert [shape.x0 for shape in solid] == ["2026-03-06"]
    (marks,) = [trace for trace in one.data if trace.marker.symbol == "x"]
    assert marks.customdata[0].startswith("2 changes by people")


def test_days_on_which_capability_was_kept_up_are_shaded() -> None:
    held = level(**kept(FIRST + 3, FIRST + 9))
    shapes = charts(held)["capability"].layout.shapes
    (band,) = [shape for shape in shapes if shape.type == "rect"]
    assert (band.x0, band.x1) == ("2026-03-05", "2026-03-11")
    assert Autonomy(findings=findings(held)).has_kept
    assert not Autonomy(findings=findings(replace(held, values={}))).has_kept


def test_of_many_families_some_have_their_kappa_on_the_picture() -> None:
    many = progress([f"family {i}" for i in range(6)])
    (text,) = [it for it in texts(charts(level(progress=many))["capability"]) if "κ" in it]
    assert text.count("κ") == 3
    assert text.endswith("and 3 more families")


@pytest.mark.parametrize("capability", [0.0, 0.03, 0.5, 1.0])
def test_every_capability_is_inside_the_picture(capability: float) -> None:
    flat = tuple(replace(day, capability=capability) for day in days(3))
    axis = charts(level(days=flat))["capability"].layout.yaxis
    low, high = axis.range
    ticks = [float(text) for text in axis.ticktext if text[0].isdigit()]
    assert min(ticks) <= capability <= high
    assert low < min(ticks)
    assert 2 <= len(ticks) <= 7


# Delegation --------------------------------------------------------------------------------------


def test_the_frontier_has_dots_bands_fit_and_target() -> None:
    one = charts()["frontier"]
    by_name = {trace.name: trace for trace in one.data if trace.name}
    assert set(by_name) == {"fit that never rises", "theirs", "ours"}
    assert list(by_name["theirs"].x) == pytest.approx([0.05, 0.15])
    assert list(by_name["theirs"].y) == pytest.approx([0.9, 0.9])
    assert len(by_name["ours"].x) == 8
    fit = by_name["fit that never rises"]
    assert (fit.x[0], fit.x[-1]) == pytest.approx((0.0, 1.0))
    assert all(first >= second for first, second in zip(fit.y, fit.y[1:], strict=False))
    bands = [trace for trace in one.data if trace.fill == "toself"]
    assert sum(trace.x.count(None) for trace in bands) == 10
    (target,) = one.layout.shapes
    assert (target.y0, target.y1) == (0.75, 0.75)
    assert texts(one) == ["asked of delegated work: 0.75"]
