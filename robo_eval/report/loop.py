"""How far simulation is from a robot, by what it was played with, over numbers of recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.plan import TrialPlan
from robo_eval.metrics.body import Body
from robo_eval.page.figure import Figure, scatter
from robo_eval.page.figures import error_bars, finish, legend_on_top
from robo_eval.page.theme import FAINT, PAPER, policy_style
from robo_eval.page.words import interval_text, plain_text

_HEIGHT: Final = 360
_STYLES: Final = (5, 0, 1, 2, 3)
"""Numbers of the styles of settings: grey is nominal, and no two others are alike."""
_APART: Final = 0.09
"""Between two settings at one number of recordings, in steps of these numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSetting:
    """What simulation was played with, and how well it told what a robot does.

    Attributes:
        calibration: Its name in the plan.
        played: What of a snapshot is played, or what else is.
        recordings: Of how many recordings the snapshot is; None without one.
        success: Share of simulated successes, mean over recordings; None if nothing was scored.
        difference: Physical less simulated success.
        agreement: S2R, or S2S.
    """

    calibration: str
    played: str
    recordings: int | None
    success: float | None
    difference: Estimate
    agreement: Estimate


def settings_of(body: Body, plan: TrialPlan) -> list[LoopSetting]:
    """What simulation was played with, in the order of the plan.

    Args:
        body: A policy on a robot or its twin.
        plan: The plan, with its calibrations.
    """
    found = {one.calibration: one for one in body.calibrations}
    return [
        LoopSetting(
            calibration=one.calibration,
            played=", ".join(entry.play) if entry.file else one.calibration,
            recordings=len(entry.recordings) if entry.file else None,
            success=_mean(own.ar_sim.value for own in one.by_recording.values()),
            difference=one.difference,
            agreement=one.agreement,
        )
        for entry in plan.calibrations
        if (one := found.get(str(entry.name))) is not None
    ]


def _mean(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


def sizes_of(settings: Sequence[LoopSetting]) -> list[int]:
    """Numbers of recordings of which snapshots were played, rising."""
    return sorted({one.recordings for one in settings if one.recordings is not None})


def differences(settings: Sequence[LoopSetting], *, narrow: bool = False) -> Figure:
    """Difference of success with its interval against the number of recordings, a line a setting.

    Args:
        settings: What is drawn; one without recordings is level.
        narrow: Whether it is for a phone.
    """
    sizes = sizes_of(settings)
    names = list(dict.fromkeys(one.played for one in settings))
    figure = Figure()
    figure.add_shape("line", y0=0, y1=0, line={"color": FAINT, "width": 1.5}, layer="below")
    for index, name in enumerate(names):
        found = {
            size: one.difference
            for one in settings
            for size in (sizes if one.recordings is None else [one.recordings])
            if one.played == name and one.difference.value is not None
        }
        style = policy_style(_STYLES[index % len(_STYLES)])
        shift = (index - (len(names) - 1) / 2.0) * _APART
        figure.add_trace(
            scatter(
                x=[sizes.index(size) + shift for size in found],
                y=[one.value for one in found.values()],
                error_y=error_bars(list(found.values()), style.colour),
                mode="lines+markers",
                name=plain_text(name),
                line={"color": style.colour, "dash": style.dash, "width": 1.5},
                marker={"size": 8, "symbol": style.symbol, "color": style.colour,
                        "line": {"width": 1, "color": PAPER}},
                customdata=[f"<b>{plain_text(name)}</b><br>{interval_text(one, signed=True)}"
                            for one in found.values()],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )  # fmt: skip
    figure.update_xaxes(
        title="recordings", tickvals=list(range(len(sizes))), ticktext=list(map(str, sizes)),
        range=[-0.5, len(sizes) - 0.5], showgrid=False,
    )  # fmt: skip
    figure.update_yaxes(title="success there less success simulated")
    finish(figure, height=_HEIGHT)
    return legend_on_top(figure, rows=len(names) if narrow else 1)
