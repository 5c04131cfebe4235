"""The page of a loop: how far simulation is from a robot, by what it was calibrated with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from robo_eval.core.estimate import Estimate
from robo_eval.page.figure import Figure, scatter
from robo_eval.page.figures import both_forms, error_bars, finish, legend_on_top
from robo_eval.page.render import render_page
from robo_eval.page.theme import FAINT, PAPER, policy_style
from robo_eval.page.words import interval_text, plain_text

Lines = Mapping[str, Mapping[int | None, Estimate]]
"""Physical less simulated success in each setting, by the number of recordings; None where it rests
on none."""
_HEIGHT: Final = 380
_APART: Final = 0.09
"""Between two settings at one number of recordings, in steps of these numbers."""


def page(
    title: str,
    lines: Lines,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    name: str,
) -> str:
    """The page as text.

    Args:
        title: What was compared.
        lines: What is drawn.
        columns: Names of the columns of the table.
        rows: Its cells.
        notes: What else is to be known.
        name: `S2R` or `S2S`.
    """
    charts = {"loop": both_forms(partial(differences, lines))}
    return render_page(
        "loop.html.j2", charts,
        title=title, columns=[*columns[:-1], name], rows=rows, notes=notes,
    )  # fmt: skip


def differences(lines: Lines, *, narrow: bool = False) -> Figure:
    """Difference of success with its interval against the number of recordings, a line a setting.

    Args:
        lines: What is drawn; a setting that rests on no recordings is level.
        narrow: Whether it is for a phone.
    """
    sizes = sorted({size for line in lines.values() for size in line if size is not None})
    figure = Figure()
    figure.add_shape("line", y0=0, y1=0, line={"color": FAINT, "width": 1.5}, layer="below")
    for index, (setting, line) in enumerate(lines.items()):
        known = {size: line.get(size, line.get(None)) for size in sizes}
        found = {n: one for n, one in known.items() if one is not None and one.value is not None}
        style = policy_style(index)
        shift = (index - (len(lines) - 1) / 2.0) * _APART
        figure.add_trace(
            scatter(
                x=[sizes.index(size) + shift for size in found],
                y=[one.value for one in found.values()],
                error_y=error_bars(list(found.values()), style.colour),
                mode="lines+markers",
                name=plain_text(setting),
                line={"color": style.colour, "dash": style.dash, "width": 1.5},
                marker={"size": 8, "symbol": style.symbol, "color": style.colour,
                        "line": {"width": 1, "color": PAPER}},
                customdata=[f"<b>{plain_text(setting)}</b><br>"
                            f"{plain_text(interval_text(one, signed=True))}"
                            for one in found.values()],
                hovertemplate="%{customdata}<extra></extra>",
            )
        )  # fmt: skip
    figure.update_xaxes(
        title="recordings that were fitted", tickvals=list(range(len(sizes))),
        ticktext=[str(size) for size in sizes], range=[-0.5, len(sizes) - 0.5], showgrid=False,
    )  # fmt: skip
    figure.update_yaxes(title="success: robot less simulation")
    finish(figure, height=_HEIGHT)
    return legend_on_top(figure, rows=len(lines) if narrow else 1)
