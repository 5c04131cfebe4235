"""What the curves of agents over difficulty look like, with capability and spread read off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.page.figure import Figure, Trace, scatter
from robo_eval.page.figures import error_bars, finish, legend_on_top, styles
from robo_eval.page.panels import (
    Panels,
    name_panel,
    name_room,
    panel_figure,
    side_by_side,
    title_below,
)
from robo_eval.page.theme import FAINT, MUTED, PAPER, Style
from robo_eval.page.words import interval_text, plain_text, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCurve:
    """Agent characteristic curve of one policy with the numbers read off it.

    Attributes:
        policy: Name shown.
        difficulty: Difficulties of the items.
        response: Mean performance at each.
        capability: Area under the curve, from the easiest difficulty on.
        spread: How gradually performance is lost.
        generality: Spread compared with that of curves of equal capability.
        n_episodes: Scored episodes the curve rests on.
        n_items: Items with a scored episode.
        flag: What to mind, in a few words.
    """

    policy: str
    difficulty: Sequence[float]
    response: Sequence[float]
    capability: Estimate
    spread: Estimate
    generality: Estimate
    n_episodes: int = 0
    n_items: int = 0
    flag: str | None = None

    @classmethod
    def of(cls, policy: str, found: Characterised, *, flag: str | None = None) -> Self:
        """The curve of a policy, as it was analysed."""
        difficulty, response = found.points
        return cls(
            policy=policy,
            difficulty=difficulty.tolist(),
            response=response.tolist(),
            capability=found.capability,
            spread=found.spread,
            generality=found.normalised_generality,
            n_episodes=found.n_episodes,
            n_items=found.n_items,
            flag=flag,
        )


class Characterised(Protocol):
    """What an analysis says of one policy; see `AgentCurve`."""

    @property
    def points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Difficulties, and the mean performance at each, shape (n,) each."""

    @property
    def capability(self) -> Estimate:
        """Area under the curve."""

    @property
    def spread(self) -> Estimate:
        """How gradually performance is lost."""

    @property
    def normalised_generality(self) -> Estimate:
        """Spread compared with that of curves of equal capability."""

    @property
    def n_episodes(self) -> int:
        """Scored episodes."""

    @property
    def n_items(self) -> int:
        """Items with a scored episode."""


class IsometricCurves(Protocol):
    """Spread of three kinds of curve over capability, each array of shape (n,)."""

    @property
    def capability(self) -> NDArray[np.float64]:
        """From h0 to q, in units of difficulty."""

    @property
    def falling_step(self) -> NDArray[np.float64]:
        """Spread where generality is 1."""

    @property
    def constant(self) -> NDArray[np.float64]:
        """Spread where it is 0."""

    @property
    def rising_step(self) -> NDArray[np.float64]:
        """Spread where it is -1."""


def characteristic_curves(
    curves: Sequence[AgentCurve], policies: Sequence[str], *, narrow: bool = False
) -> Figure:
    """Performance against difficulty, one panel for each agent, the others behind it in grey."""
    panels = Panels(
        count=len(curves),
        columns=side_by_side(len(curves), narrow=narrow),
        height=130 if narrow else 180,
        gap=52,
        bottom=52,
    )
    figure = panel_figure(panels, spacing=0.06 if narrow else 0.03)
    style = styles(policies)
    for index, curve in enumerate(curves):
        for other in curves:
            if other is not curve:
                figure.add_trace(_line(other, FAINT, width=1), panel=index)
        words = (
            f"<b>{plain_text(curve.policy)}</b><br>difficulty %{{x:.3f}}<br>performance %{{y:.2f}}"
            "<extra></extra>"
        )
        line = _line(curve, style[curve.policy].colour, width=2.25, words=words)
        figure.add_trace(line, panel=index)
        name_panel(
            figure, index, curve.policy, style[curve.policy].colour,
            most=name_room(panels, narrow=narrow),
        )  # fmt: skip
        title = "difficulty" if narrow else "difficulty of the item"
        title_below(figure, panels, index, title)
        if panels.is_first(index) and not narrow:
            figure.update_yaxes(index, title="performance")
    figure.update_yaxes(range=[-0.03, 1.05], tickvals=[0, 0.5, 1])
    figure.update_xaxes(tickfont={"size": 11}, nticks=5)
    return finish(figure, height=panels.total, margin=panels.margins())


def _line(curve: AgentCurve, colour: str, *, width: float, words: str | None = None) -> Trace:
    return scatter(
        x=curve.difficulty,
        y=curve.response,
        mode="lines",
        line={"color": colour, "width": width},
        hoverinfo=None if words else "skip",
        hovertemplate=words,
    )


def spread_capability(
    curves: Sequence[AgentCurve],
    policies: Sequence[str],
    lines: IsometricCurves,
    *,
    narrow: bool = False,
) -> Figure:
    """Spread against capability with the three isometrics that bound and halve generality.

    Args:
        curves: The agents.
        policies: Order of the styles.
        lines: The isometrics, over the difficulties from h0 to q.
        narrow: Whether it is for a phone.
    """
    start, end = float(lines.capability[0]), float(lines.capability[-1])
    width = end - start
    figure = Figure()
    shapes = (
        ("rising step (generality −1)", lines.rising_step, "dot"),
        ("constant (0)", lines.constant, "dash"),
        ("falling step (+1)", lines.falling_step, "solid"),
    )
    for name, spread, dash in shapes:
        figure.add_trace(
            scatter(
                x=lines.capability,
                y=spread,
                mode="lines",
                line={"color": MUTED, "width": 1.25, "dash": dash},
                hoverinfo="skip",
                name=name,
            )
        )
    style = styles(policies)
    for curve in curves:
        if curve.capability.value is not None and curve.spread.value is not None:
            figure.add_trace(_agent_point(curve, style[curve.policy]))
    figure.update_xaxes(title="capability (units of difficulty)", range=[start, end])
    figure.update_yaxes(title="spread", rangemode="tozero", range=[-0.01 * width, 0.76 * width])
    entries = len(curves) + len(shapes)
    rows = entries if narrow else -(-entries // 4)
    figure = finish(figure, height=(300 if narrow else 390) + 24 * rows)
    return legend_on_top(figure, rows=rows)


def _agent_point(curve: AgentCurve, style: Style) -> Trace:
    name = plain_text(curve.policy)
    return scatter(
        x=[curve.capability.value],
        y=[curve.spread.value],
        error_x=error_bars([curve.capability], style.colour),
        error_y=error_bars([curve.spread], style.colour),
        mode="markers",
        name=plain_text(shortened(curve.policy, 30)),
        marker={
            "size": 12,
            "symbol": style.symbol,
            "color": style.colour,
            "line": {"width": 1.5, "color": PAPER},
        },
        hovertemplate=f"<b>{name}</b><br>capability {plain_text(interval_text(curve.capability))}"
        f"<br>spread {plain_text(interval_text(curve.spread))}"
        f"<br>generality {plain_text(interval_text(curve.generality))}<extra></extra>",
    )
