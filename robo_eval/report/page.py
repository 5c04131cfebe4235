"""How a report's content becomes one HTML page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from robo_eval.page import words
from robo_eval.page.agent_curves import characteristic_curves, spread_capability
from robo_eval.page.figure import Figure
from robo_eval.page.figures import Forms, both_forms, styles
from robo_eval.page.render import render_page
from robo_eval.report import figures
from robo_eval.report.calibration import Calibrations
from robo_eval.report.calibration_figures import calibration_charts
from robo_eval.report.figures import dose_curves
from robo_eval.report.level_figures import level_charts
from robo_eval.report.model import ConditionCell, Report
from robo_eval.report.robot_figures import robot_charts
from robo_eval.report.robots import (
    comparison_lines,
    conditions_note,
    not_measured,
    robots_text,
    robots_title,
    throughput_lines,
)

METHODS: Final = {"clopper_pearson": "Clopper–Pearson", "wilson": "Wilson"}
_BY_SEED: Final = re.compile(r"korn_graubard_(\d+)_seeds")


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


def render(report: Report, downloads: Sequence[Download]) -> str:
    """The whole page.

    Args:
        report: What it says.
        downloads: Files it offers.
    """
    charts = _charts(report)
    packs = {f"clip-{index}": clip.packed for index, clip in enumerate(report.clips)}
    packs |= {file.key: file.packed for file in downloads if file.packed}
    level = next((r.numbers.success_exact.level for r in report.results), 0.95)
    return render_page(
        "report.html.j2",
        charts,
        packs,
        report=report,
        contents=_contents(report),
        style=styles(report.policies),
        level=words.percent(level),
        success_method=_method(report),
        thin_note=_thin_note(report),
        interval_note=words.no_interval_note(cell.numbers.performance for cell in report.cells),
        robots_text=robots_text(report.robots),
        not_measured=not_measured(report.robots),
        comparison=comparison_lines(report.robots),
        conditions_note=conditions_note(report.robots),
        throughput=throughput_lines(report.robots),
        per_cell=_per_cell(report.mapped),
        has_levels=_has_levels(report),
        has_panels=any(cell.panel for cell in report.cells),
        rows=cell_rows(report.cells, report.policies),
        downloads=downloads,
    )


def _charts(report: Report) -> dict[str, Forms]:
    """Every picture of the report that has something to show, by its name."""
    names, acc = report.policies, report.characteristic
    drawn: dict[str, Callable[..., Figure]] = {}
    if any(cell.numbers.performance.value is not None for cell in report.mapped):
        drawn["heat_map"] = partial(figures.heat_map, report.mapped, names)
    if report.lengths:
        drawn["lengths"] = partial(figures.episode_lengths, report.lengths, names)
    if report.doses:
        drawn["doses"] = partial(dose_curves, report.doses, names)
    if report.thresholds:
        drawn["thresholds"] = partial(figures.threshold_curves, report.thresholds, names)
    if any(group.measured for group in report.effects):
        drawn["effects"] = partial(figures.novelty_effects, report.effects, names)
    if acc is not None:
        drawn["curves"] = partial(characteristic_curves, acc.curves, names)
        drawn["spread"] = partial(spread_capability, acc.curves, names, acc.isometrics)
    drawn |= robot_charts(report.robots, names)
    drawn |= calibration_charts(report.calibrations)
    if report.autonomy is not None:
        drawn |= level_charts(report.autonomy.findings, names)
    return {name: both_forms(draw) for name, draw in drawn.items()}


def _contents(report: Report) -> dict[str, str]:
    """Titles of the sections that have something to show, by key, in the order of the page."""
    calibrations, conduct = report.calibrations, report.conduct
    is_calibrated = any(robot.found.calibrations for robot in report.robots)
    sections = (
        ("levels", "Levels" if _has_levels(report) else "Tasks", report.mapped),
        ("compare", "Who is better", report.standings),
        ("robots", robots_title(report.robots), report.robots),
        ("simulated", "In simulation", report.simulated),
        ("calibration", "Calibration", is_calibrated or calibrations != Calibrations()),
        ("incident-log", "Incidents", report.incidents),
        ("autonomy", "Autonomy level", report.autonomy),
        ("episode", "Episodes", report.clips),
        ("stages", "Stages", report.stages),
        ("lengths", "Lengths", report.lengths),
        ("doses", "Magnitudes", report.doses),
        ("thresholds", "Thresholds", report.thresholds),
        ("effects", "Novelty effect", report.effects),
        ("acc", "Capability", report.characteristic),
        ("cells", "Every cell", report.cells),
        ("conduct", "Conduct", conduct is not None and conduct.is_shown),
        ("data", "Data and reproduction", True),
    )
    return {key: title for key, title, content in sections if content}


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


def _per_cell(cells: Sequence[ConditionCell]) -> str:
    """How many scored episodes a cell rests on."""
    counts = {cell.numbers.coverage.scored for cell in cells} or {0}
    low, high = min(counts), max(counts)
    return words.count(high, "episode") if low == high else f"{low} to {high} episodes"


def cell_rows(cells: Sequence[ConditionCell], policies: Sequence[str]) -> list[dict[str, Any]]:
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
