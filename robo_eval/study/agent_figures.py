"""What the pictures of ranked agents look like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from robo_eval.analysis.acc import isometrics
from robo_eval.analysis.coherence import EXPONENTS
from robo_eval.core.estimate import Estimate
from robo_eval.page.agent_curves import AgentCurve, characteristic_curves, spread_capability
from robo_eval.page.figure import Figure, Trace, scatter
from robo_eval.page.figures import error_bars, finish, legend_on_top, styles
from robo_eval.page.panels import Panels, name_panel, name_room, panel_figure
from robo_eval.page.theme import INK, MUTED, PAPER, policy_style
from robo_eval.page.words import interval_text, plain_text, shortened
from robo_eval.study.ranking import RankedAgent, Ranking

MEASURES: Final = {
    "mean": "mean",
    "apti": "APTI",
    "aiq": "AIQ",
    "capability": "capability",
    "normalised_generality": "generality",
    "coherence": "coherence AUC",
}
"""Fields of `RankedAgent` that are compared, and what they are called."""
_RANGES: Final = {"normalised_generality": (-1.0, 1.0)}
_SIDES: Final = {"sim": "simulation", "twin": "twin", "real": "robot"}
_DIFFICULTIES: Final = {"all": "all difficulties", "": ""}
_ROW: Final = 20
"""Height of an agent under one set of conditions, pixels."""


def conditions(ranking: Ranking) -> str:
    """Side and difficulty of a ranking in words."""
    difficulty = _DIFFICULTIES.get(ranking.difficulty, ranking.difficulty)
    return ", ".join(filter(None, (_SIDES.get(ranking.side, ranking.side), difficulty)))


def agents_of(rankings: Sequence[Ranking]) -> list[str]:
    """Every agent, in the order of the first ranking that has it."""
    return list(dict.fromkeys(one.policy for ranking in rankings for one in ranking.agents))


def measures(rankings: Sequence[Ranking], *, narrow: bool = False) -> Figure:
    """Every measure of every agent with its interval, the conditions of all rankings in each row.

    Args:
        rankings: One for each side and difficulty.
        narrow: Whether it is for a phone.
    """
    names = agents_of(rankings)
    # Where no measure has a value, as with too few episodes, each panel is there and empty.
    known = [key for key in MEASURES if any(_known(one, key) for one in rankings)]
    shown = known or list(MEASURES)
    row = max(22, _ROW * (len(rankings) if len(rankings) < 3 else 0.6 * len(rankings)))
    panels = Panels(
        count=len(shown), columns=1 if narrow else min(3, len(shown)),
        height=round(row * len(names)) + 12, gap=64, bottom=30,
    )  # fmt: skip
    figure = panel_figure(panels, spacing=0.035, shared="y")
    for index, key in enumerate(shown):
        for group, ranking in enumerate(rankings):
            figure.add_trace(_points(ranking, key, names, group, len(rankings), index), panel=index)
        name_panel(figure, index, MEASURES[key], INK, most=name_room(panels, narrow=narrow))
        if key != "capability":
            low, high = _RANGES.get(key, (0.0, 1.0))
            room = 0.03 * (high - low)
            figure.update_xaxes(range=[low - room, high + room], nticks=5, panel=index)
        figure.update_xaxes(tickfont={"size": 11}, panel=index)
    figure.update_yaxes(
        tickvals=list(range(len(names))), range=[len(names) - 0.5, -0.5], showgrid=False,
        ticktext=[plain_text(shortened(name, 16 if narrow else 22)) for name in names],
    )  # fmt: skip
    rows = len(rankings) if narrow else -(-len(rankings) // 3)
    height = panels.total + 24 * rows
    figure = finish(figure, height=height, margin=panels.margins())
    if len(rankings) < 2:
        return figure
    figure = legend_on_top(figure, rows=rows)
    figure.update_layout(
        margin={"t": panels.top + 24 * rows + 10}, height=height + 10,
        legend={"y": 1, "yref": "container", "yanchor": "top"},
    )  # fmt: skip
    return figure


def _known(ranking: Ranking, key: str) -> bool:
    return any(getattr(one, key).value is not None for one in ranking.agents)


def _points(
    ranking: Ranking, key: str, names: Sequence[str], group: int, groups: int, panel: int
) -> Trace:
    found: list[tuple[RankedAgent, Estimate]] = [
        (one, estimate)
        for one in ranking.agents
        if (estimate := getattr(one, key)).value is not None
    ]
    style = policy_style(group)
    shift = (group - (groups - 1) / 2.0) * 0.7 / groups
    return scatter(
        x=[estimate.value for _, estimate in found],
        y=[names.index(one.policy) + shift for one, _ in found],
        error_x=error_bars([estimate for _, estimate in found], style.colour),
        mode="markers",
        name=plain_text(conditions(ranking)),
        showlegend=panel == 0,
        legendgroup=str(group),
        marker={"size": 8, "symbol": style.symbol, "color": style.colour,
                "line": {"width": 1, "color": PAPER}},
        customdata=[
            f"<b>{plain_text(one.policy)}</b>, {plain_text(conditions(ranking))}"
            f"<br>{MEASURES[key]} {plain_text(interval_text(estimate, digits=3))}"
            for one, estimate in found
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip


def curves_of(ranking: Ranking) -> list[AgentCurve]:
    """Agent characteristic curves of the agents that have one."""
    return [
        AgentCurve.of(one.policy, one.characteristic)
        for one in ranking.agents
        if one.characteristic is not None
    ]


def agent_charts(ranking: Ranking, names: Sequence[str]) -> dict[str, Callable[..., Figure]]:
    """What draws the pictures of one ranking, by name; they are empty without difficulties.

    Args:
        ranking: Agents under the same conditions.
        names: Agents of all rankings, which set the styles.
    """
    charts: dict[str, Callable[..., Figure]] = {
        "coherence": partial(coherence_curves, ranking, names)
    }
    acc = ranking.acc
    if not has_curves(ranking) or acc is None or acc.h0 is None or acc.q is None:
        return charts | {"curves": _no_curves, "spread": _no_curves}
    curves = curves_of(ranking)
    return charts | {
        "curves": partial(characteristic_curves, curves, names),
        "spread": partial(spread_capability, curves, names, isometrics(acc.h0, acc.q)),
    }


def has_curves(ranking: Ranking) -> bool:
    """Whether the items have difficulties enough for a curve."""
    acc = ranking.acc
    is_axis = acc is not None and acc.h0 is not None and acc.q is not None and acc.h0 < acc.q
    return is_axis and any(one.characteristic is not None for one in ranking.agents)


def _no_curves(*, narrow: bool) -> Figure:
    del narrow
    figure = Figure()
    why = "no curves: the difficulty of these items is not known"
    figure.add_annotation(text=why, x=0, y=1, xref="paper", yref="paper", xanchor="left")
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return finish(figure, height=60)


def coherence_curves(ranking: Ranking, names: Sequence[str], *, narrow: bool = False) -> Figure:
    """Generalised mean over the tests against its exponent, a line for each agent.

    Args:
        ranking: Agents under the same conditions.
        names: Agents of all rankings, which set the styles.
        narrow: Whether it is for a phone.
    """
    style = styles(names)
    figure = Figure()
    complete = [(one, one.evenness) for one in ranking.agents if one.evenness is not None]
    for one, found in complete:
        every = max(1, len(found.exponents) // 50)
        figure.add_trace(
            scatter(
                x=found.exponents[::every].tolist(),
                y=found.curve[::every].round(5).tolist(),
                mode="lines",
                name=plain_text(shortened(one.policy, 24)),
                line={"color": style[one.policy].colour, "dash": style[one.policy].dash,
                      "width": 2.25},
                hovertemplate=f"<b>{plain_text(one.policy)}</b><br>exponent %{{x:.2f}}:"
                " %{y:.3f}<extra></extra>",
                cliponaxis=False,
            )
        )  # fmt: skip
    for name, exponent in (("harmonic", -1.0), ("geometric", 0.0), ("arithmetic", 1.0)):
        align = {-1.0: "left", 0.0: "center", 1.0: "right"}[exponent]
        figure.add_annotation(
            text=name, x=exponent, y=0, yref="paper", xanchor=align, yanchor="bottom",
            font={"size": 11, "color": MUTED},
        )  # fmt: skip
    figure.update_xaxes(
        title="exponent of the mean", range=list(EXPONENTS), tickvals=[-1, -0.5, 0, 0.5, 1]
    )
    figure.update_yaxes(
        title=None if narrow else "generalised mean", range=[-0.06, 1.03],
        tickvals=[0, 0.25, 0.5, 0.75, 1],
    )  # fmt: skip
    figure = finish(figure, height=330 if narrow else 380)
    return legend_on_top(figure, rows=-(-len(complete) // (2 if narrow else 5)))
