"""What the charts of a robot, or its twin, look like."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from robo_eval.core.estimate import Estimate
from robo_eval.report.condition_figures import condition_scatter
from robo_eval.report.figures import error_bars, finish, name_rows, styles
from robo_eval.report.panels import (
    name_panel,
    name_room_over_rows,
    row_panels,
    title_below,
)
from robo_eval.report.robot_groups import SEVERITIES
from robo_eval.report.robot_model import Robot
from robo_eval.report.robot_work_figures import control_quality, fault_recovery, hourly_cost
from robo_eval.report.theme import PAPER, Style
from robo_eval.report.words import interval_text, plain_text, shortened

Maker = Callable[..., go.Figure]


def robot_charts(
    robots: Sequence[Robot], policies: Sequence[str], *, narrow: bool = False
) -> dict[str, go.Figure]:
    """Every chart of the robots that has something to show, by its name.

    Args:
        robots: Each policy on each physical side.
        policies: Order of the styles.
        narrow: Whether they are for a phone.
    """
    makers: dict[str, tuple[Maker, Callable[[Robot], bool]]] = {
        "robots": (robot_numbers, _has_numbers),
        "conditions": (condition_scatter, lambda robot: bool(robot.conditions)),
        "incidents": (incident_rates, _has_rates),
        "recovery": (fault_recovery, _has_faults),
        "control": (control_quality, _has_samples),
        "cost": (hourly_cost, _has_costs),
    }
    shown = {name: [r for r in robots if has(r)] for name, (_, has) in makers.items()}
    return {
        name: make(shown[name], policies, narrow=narrow)
        for name, (make, _) in makers.items()
        if shown[name]
    }


def _has_numbers(robot: Robot) -> bool:
    return any(it.is_share and it.estimate.value is not None for it in robot.numbers)


def _has_rates(robot: Robot) -> bool:
    return any(rate.value is not None for rate in robot.found.safety.rates.values())


def _has_faults(robot: Robot) -> bool:
    return any(rate.value is not None for rate in robot.found.faults.values())


def _has_samples(robot: Robot) -> bool:
    return any(measure.values for task in robot.found.control for measure in task.measures)


def _has_costs(robot: Robot) -> bool:
    found = robot.found.throughput
    return found is not None and found.per_hour.value is not None and found.cost_per_hour > 0.0


# Reliability and agreement -----------------------------------------------------------------------


def robot_numbers(
    robots: Sequence[Robot], policies: Sequence[str], *, narrow: bool = False
) -> go.Figure:
    """Reliability on the robot and in simulation, and agreement; one panel for each policy."""
    labels = list(
        dict.fromkeys(it.label for robot in robots for it in robot.numbers if it.is_share)
    )
    panels, figure = row_panels(len(robots), max(46, len(labels) * 24 + 8), narrow=narrow)
    style = styles(policies)
    for index, robot in enumerate(robots):
        place = panels.place(index)
        own = style[robot.policy]
        figure.add_trace(_robot_points(robot, own), **place)
        name_panel(
            figure, index, robot.policy, own.colour, most=name_room_over_rows(panels, narrow=narrow)
        )
        title_below(figure, panels, index, "share")
    name_rows(
        figure,
        labels,
        tickvals=[plain_text(label) for label in labels],
        ticktext=[plain_text(shortened(label, 20 if narrow else 32)) for label in labels],
    )
    figure.update_xaxes(
        range=[-0.04, 1.04], tickvals=[0, 0.5, 1], ticktext=["0", "0.5", "1"],
        tickfont={"size": 11},
    )  # fmt: skip
    return finish(figure, height=panels.total, margin=panels.margins())


def _robot_points(robot: Robot, style: Style) -> go.Scatter:
    found = [it for it in robot.numbers if it.is_share and it.estimate.value is not None]
    # Filled is the robot, hollow the simulator, a diamond their agreement: legible without colour.
    return go.Scatter(
        x=[it.estimate.value for it in found],
        y=[plain_text(it.label) for it in found],
        error_x=error_bars([it.estimate for it in found], style.colour),
        mode="markers",
        marker={
            "size": 9,
            "symbol": [
                "circle" if it.is_physical or it.is_simulated else "diamond" for it in found
            ],
            "color": [PAPER if it.is_simulated else style.colour for it in found],
            "line": {"color": style.colour, "width": 1.5},
        },
        cliponaxis=False,
        customdata=[
            f"<b>{plain_text(robot.policy)}</b>, {plain_text(it.label)}<br>"
            f"{plain_text(interval_text(it.estimate))}<br>{plain_text(it.rests_on)}"
            for it in found
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


# Incidents ---------------------------------------------------------------------------------------


def incident_rates(
    robots: Sequence[Robot], policies: Sequence[str], *, narrow: bool = False
) -> go.Figure:
    """Incidents per 100 h by severity on a logarithmic axis, one panel for each policy.

    Where none happened a rate of 0 has no place on the axis: an arrow at the upper end of the
    interval points down to it.

    Args:
        robots: Those with exposure and a record of incidents.
        policies: Order of the styles.
        narrow: Whether it is for a phone.
    """
    labels = list(SEVERITIES.values())
    panels, figure = row_panels(len(robots), len(labels) * 27 + 8, narrow=narrow)
    style = styles(policies)
    rates = [rate for robot in robots for rate in robot.found.safety.rates.values()]
    low, high = _decades(rates)
    for index, robot in enumerate(robots):
        place = panels.place(index)
        colour = style[robot.policy].colour
        figure.add_trace(_seen(robot, colour), **place)
        for trace in _unseen(robot, colour, low):
            figure.add_trace(trace, **place)
        most = name_room_over_rows(panels, narrow=narrow)
        name_panel(figure, index, robot.title, colour, most=most)
        title_below(figure, panels, index, "incidents per 100 h")
    name_rows(figure, labels, tickvals=labels, ticktext=labels)
    powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
    step = -(-len(powers) // 5)
    figure.update_xaxes(
        type="log",
        range=[powers[0] - 0.05, powers[-1] + 0.05],
        tickvals=[10.0**power for power in powers[::step]],
        ticktext=[f"{10.0**power:,.5g}".replace(",", "\u00a0") for power in powers[::step]],
        tickfont={"size": 11},
    )
    return finish(figure, height=panels.total, margin=panels.margins())


def _decades(rates: Sequence[Estimate]) -> tuple[float, float]:
    """Powers of ten that hold every end but a lower end of 0."""
    ends = [end for rate in rates for end in (rate.low, rate.value, rate.high) if end]
    least, most = min(ends), max(ends)
    low = 10.0 ** math.floor(math.log10(least))
    if least == min(rate.high for rate in rates if rate.high):
        low /= 10.0  # room for the line that ends in the lowest arrow
    return low, 10.0 ** math.ceil(math.log10(most))


def _seen(robot: Robot, colour: str) -> go.Scatter:
    found = {key: rate for key, rate in robot.found.safety.rates.items() if rate.value}
    return go.Scatter(
        x=[rate.value for rate in found.values()],
        y=[SEVERITIES[key] for key in found],
        error_x=error_bars(list(found.values()), colour),
        mode="markers",
        marker={"size": 9, "color": colour},
        customdata=[_rate_words(robot, key) for key in found],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _unseen(robot: Robot, colour: str, left: float) -> list[go.Scatter]:
    """Lines from the left edge to the upper end, each with an arrow that points back."""
    found = {key: rate for key, rate in robot.found.safety.rates.items() if rate.value == 0.0}
    lines = go.Scatter(
        x=[x for rate in found.values() for x in (left * 0.85, rate.high, None)],
        y=[y for key in found for y in (SEVERITIES[key], SEVERITIES[key], None)],
        mode="lines",
        line={"color": colour, "width": 1.5, "dash": "dot"},
        hoverinfo="skip",
    )
    arrows = go.Scatter(
        x=[rate.high for rate in found.values()],
        y=[SEVERITIES[key] for key in found],
        mode="markers",
        marker={
            "size": 11,
            "symbol": "triangle-left",
            "color": PAPER,
            "line": {"color": colour, "width": 1.5},
        },
        customdata=[_rate_words(robot, key) for key in found],
        hovertemplate="%{customdata}<extra></extra>",
    )
    return [lines, arrows]


def _rate_words(robot: Robot, severity: str) -> str:
    safety = robot.found.safety
    n = (safety.counts or {}).get(severity, 0)
    return (
        f"<b>{plain_text(robot.title)}</b>, {SEVERITIES[severity]}"
        f"<br>{plain_text(interval_text(safety.rates[severity]))} per 100 h"
        f"<br>{n} in {safety.exposure.hours:.2f} h"
    )
