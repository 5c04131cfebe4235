"""How a report's content becomes one HTML page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

import jinja2
import plotly.graph_objects as go
from markupsafe import Markup

import robo_eval
from robo_eval.report import figures, words
from robo_eval.report.embed import packed_plotly, script_json, static
from robo_eval.report.level_evidence import frontier_note
from robo_eval.report.level_figures import level_charts
from robo_eval.report.meanings import MEANINGS, ROBOT_MEANINGS
from robo_eval.report.model import Cell, Report
from robo_eval.report.robot_figures import robot_charts
from robo_eval.report.robots import (
    comparison_lines,
    conditions_note,
    not_measured,
    robots_text,
    robots_title,
    throughput_lines,
)
from robo_eval.report.theme import PERFORMANCE_SCALE, POLICY, Style, dark_colours

METHODS: Final = {"clopper_pearson": "Clopper–Pearson", "wilson": "Wilson"}
_BY_SEED: Final = re.compile(r"korn_graubard_(\d+)_seeds")
_DASH_ARRAYS: Final = {
    "solid": "none",
    "dash": "7 4",
    "dot": "2.5 3",
    "dashdot": "7 3 2 3",
    "longdash": "12 4",
    "longdashdot": "12 3 2 3",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file offered by the page: inside it where `packed` is given, else next to it."""

    name: str
    mime: str
    size: str
    packed: str | None = None

    @property
    def key(self) -> str:
        """Id of the element that holds the packed file."""
        return "file-" + self.name.replace(".", "-")


@cache
def environment() -> jinja2.Environment:
    """The templates, with autoescape on for every one of them."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("robo_eval.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.globals.update(
        static=static,
        number=words.number,
        mark=words.MARK,
        no_interval_mark=words.NO_INTERVAL,
        no_interval=words.no_interval,
        bounds_or_reason=words.bounds_or_reason,
        bounds=words.bounds,
        percent=words.percent,
        count=words.count,
        missing_words=words.missing_words,
        not_recorded=words.NOT_RECORDED,
        interval_text=words.interval_text,
        thousands=words.thousands,
        tone=tone,
        dash_array=_DASH_ARRAYS.__getitem__,
        colour_variable=_colour_variable,
        frontier_note=frontier_note,
        software=robo_eval.__version__,
    )
    return env


def render(report: Report, downloads: Sequence[Download]) -> str:
    """The whole page.

    Args:
        report: What it says.
        downloads: Files it offers.
    """
    charts = _charts(report)
    packs = [("plotly", packed_plotly())]
    packs += [(f"clip-{index}", clip.packed) for index, clip in enumerate(report.clips)]
    packs += [(file.key, file.packed) for file in downloads if file.packed]
    level = next((r.numbers.success_exact.level for r in report.results), 0.95)
    template = environment().get_template("report.html.j2")
    return template.render(
        report=report,
        heights=_heights(charts),
        contents=_contents(report),
        style=figures.styles(report.policies),
        level=words.percent(level),
        success_method=_method(report),
        thin_note=_thin_note(report),
        interval_note=words.no_interval_note(cell.numbers.performance for cell in report.cells),
        robots_title=robots_title(report.robots),
        robots_text=robots_text(report.robots),
        not_measured=not_measured(report.robots),
        comparison=comparison_lines(report.robots),
        conditions_note=conditions_note(report.robots),
        throughput=throughput_lines(report.robots),
        per_cell=_per_cell(report.cells),
        has_levels=_has_levels(report),
        has_panels=any(cell.panel for cell in report.cells),
        rows=cell_rows(report.cells, report.policies),
        downloads=downloads,
        meanings=MEANINGS + (ROBOT_MEANINGS if report.robots else ()),
        packs=[(key, Markup(text)) for key, text in packs],  # noqa: S704 - base64
        figures=script_json({name: _forms(forms) for name, forms in charts.items()}),
        dark_colours=script_json(dark_colours()),
    )


def _charts(report: Report) -> dict[str, dict[str, go.Figure]]:
    charts = {
        name: figure
        for name in ("heat_map", "lengths", "effects", "curves", "spread")
        if (figure := _both_forms(report, name))
    }
    wide, narrow = (
        robot_charts(report.robots, report.policies, narrow=narrow)
        | level_charts(report.autonomy, report.policies, narrow=narrow)
        for narrow in (False, True)
    )
    return charts | {name: {"wide": wide[name], "narrow": narrow[name]} for name in wide}


def _both_forms(report: Report, name: str) -> dict[str, go.Figure]:
    wide = _chart(report, name, narrow=False)
    narrow = _chart(report, name, narrow=True)
    return {} if wide is None or narrow is None else {"wide": wide, "narrow": narrow}


def _chart(report: Report, name: str, *, narrow: bool) -> go.Figure | None:
    names = report.policies
    acc = report.characteristic
    if name == "heat_map" and _has_a_value(report.cells):
        return figures.heat_map(report.cells, names, narrow=narrow)
    if name == "lengths" and report.lengths:
        return figures.episode_lengths(report.lengths, names, narrow=narrow)
    if name == "effects" and any(e.difference.value is not None for e in report.effects):
        return figures.novelty_effects(report.effects, names, narrow=narrow)
    if name == "curves" and acc is not None:
        return figures.characteristic_curves(acc.curves, names, narrow=narrow)
    if name == "spread" and acc is not None:
        return figures.spread_capability(
            acc.curves, names, start=acc.start, end=acc.end, narrow=narrow
        )
    return None


def _has_a_value(cells: Sequence[Cell]) -> bool:
    return any(cell.numbers.performance.value is not None for cell in cells)


def _forms(forms: Mapping[str, go.Figure]) -> dict[str, Any]:
    return {name: figure.to_plotly_json() for name, figure in forms.items()}


def _heights(charts: Mapping[str, Mapping[str, go.Figure]]) -> dict[str, int]:
    return {name: forms["wide"].layout.height for name, forms in charts.items()}


def _contents(report: Report) -> list[tuple[str, str]]:
    present = {
        "levels": bool(report.cells),
        "compare": bool(report.standings),
        "robots": bool(report.robots),
        "incident-log": report.incidents is not None,
        "autonomy": report.autonomy is not None,
        "episode": bool(report.clips),
        "lengths": bool(report.lengths),
        "effects": bool(report.effects),
        "acc": report.characteristic is not None,
        "cells": bool(report.cells),
        "conduct": report.conduct is not None and report.conduct.is_shown,
        "data": True,
    }
    names = {
        "levels": "Levels" if _has_levels(report) else "Tasks",
        "compare": "Who is better",
        "robots": robots_title(report.robots),
        "incident-log": "Incidents",
        "autonomy": "Autonomy level",
        "episode": "Episodes",
        "lengths": "Lengths",
        "effects": "Novelty effect",
        "acc": "Capability",
        "cells": "Every cell",
        "conduct": "Conduct",
        "data": "Data and reproduction",
    }
    return [(key, names[key]) for key, there in present.items() if there]


def _has_levels(report: Report) -> bool:
    return any(cell.numbers.level is not None for cell in report.cells)


def _thin_note(report: Report) -> str:
    """What the mark means; empty where nothing carries it."""
    thin = [cell for cell in report.cells if not cell.numbers.coverage.is_sufficient]
    if not thin:
        return ""
    share = words.percent(thin[0].numbers.coverage.minimum)
    return (
        f"{words.MARK} Fewer than {share} of the cell's episodes are scored: the number speaks"
        " about those that were, not about the policy."
    )


def _method(report: Report) -> str:
    """How the intervals of the shares of successes were made; empty where there is none."""
    methods = dict.fromkeys(
        result.numbers.success_exact.method
        for result in report.results
        if result.numbers.success_exact.low is not None
    )
    return " or ".join(_method_name(method) for method in methods)


def _method_name(method: str) -> str:
    by_seed = _BY_SEED.fullmatch(method)
    if by_seed:
        seeds = words.count(int(by_seed[1]), "seed")
        return f"Korn–Graubard; episodes of one seed start alike, so it rests on {seeds}"
    return METHODS.get(method, method.replace("_", " "))


def _per_cell(cells: Sequence[Cell]) -> str:
    """How many scored episodes a cell rests on."""
    counts = {cell.numbers.coverage.scored for cell in cells} or {0}
    low, high = min(counts), max(counts)
    return words.count(high, "episode") if low == high else f"{low} to {high} episodes"


def cell_rows(cells: Sequence[Cell], policies: Sequence[str]) -> list[dict[str, Any]]:
    """The cells as the rows of a table: grouped by column, one line a panel, one cell a policy.

    A place the plan leaves out holds None.
    """
    by_place = {(cell.column, cell.panel, cell.policy): cell for cell in cells}
    groups: dict[str, dict[str, Any]] = {}
    for cell in cells:
        group = groups.setdefault(cell.column, {"label": cell.column, "name": "", "lines": {}})
        group["name"] = group["name"] or cell.column_name
        group["lines"].setdefault(
            cell.panel, [by_place.get((cell.column, cell.panel, name)) for name in policies]
        )
    return list(groups.values())


def tone(value: float) -> str:
    """The heat map's colour for a performance, as a CSS colour.

    Example:
        >>> tone(0.0)
        '#4d1430'
    """
    stops = PERFORMANCE_SCALE
    for (left, low), (right, high) in pairwise(stops):
        if value <= right:
            share = (value - left) / (right - left)
            mixed = (
                round(int(low[i : i + 2], 16) * (1 - share) + int(high[i : i + 2], 16) * share)
                for i in (1, 3, 5)
            )
            return "#" + "".join(f"{part:02x}" for part in mixed)
    return stops[-1][1]


def _colour_variable(style: Style) -> str:
    return f"var(--policy-{POLICY.index(style.colour)})"
