"""What the curves of a test and of a pair look like; `study.js` fills in those that are chosen."""

from __future__ import annotations

import math
from typing import Final

from robo_eval.page.figure import Figure, scatter
from robo_eval.page.figures import finish, legend_on_top
from robo_eval.page.theme import MUTED, POLICY, translucent
from robo_eval.study.outcome import Outcome

_QUARTERS: Final = (0, 0.25, 0.5, 0.75, 1)


def smallest_sizes(outcome: Outcome, *, narrow: bool = False) -> Figure:
    """Smallest size by performance of one test over the policies of the pool.

    Traces: policies, whole curve, the part that policies were seen in, curve by the other rule.

    Args:
        outcome: What was found.
        narrow: Whether it is for a phone.
    """
    figure = Figure()
    figure.add_trace(
        scatter(
            mode="markers", name="policies of the pool",
            marker={"color": translucent(POLICY[0]), "size": 8,
                    "line": {"color": POLICY[0], "width": 1}},
            hovertemplate="performance %{x:.3f}<br>%{y:,.0f} parameters<extra></extra>",
        )
    )  # fmt: skip
    lines = (
        ("extrapolated", {"color": POLICY[1], "width": 2, "dash": "dot", "shape": "hv"}),
        ("smallest size", {"color": POLICY[1], "width": 2.5, "shape": "hv"}),
        (
            f"by the other rule ({outcome.other_rule})",
            {"color": MUTED, "width": 1.5, "dash": "dash", "shape": "hv"},
        ),
    )
    for name, line in lines:
        figure.add_trace(
            scatter(
                mode="lines", name=name, line=line, cliponaxis=False,
                hovertemplate=f"{name}: %{{y:,.0f}} parameters<extra></extra>",
            )
        )  # fmt: skip
    sizes = outcome.measured.sizes
    highest = max(float(sizes.max()), *(float(one.curve.max()) for one in outcome.curves))
    decades = [math.log10(0.7 * float(sizes.min())), math.log10(1.4 * highest)]
    figure.update_xaxes(title="performance", range=[-0.02, 1.02], tickvals=[0, 0.25, 0.5, 0.75, 1])
    figure.update_yaxes(
        title=None if narrow else "trainable parameters", type="log", range=decades, dtick=1,
        tickformat="~s",
    )  # fmt: skip
    figure = finish(figure, height=340 if narrow else 380)
    return legend_on_top(figure, rows=2 if narrow else 1)


def mixtures(outcome: Outcome, *, narrow: bool = False) -> Figure:
    """What a learner of mixtures of two tests reaches, beside the straight line.

    Traces: straight line, mean of the trainings with the area between, each training.

    Args:
        outcome: What was found.
        narrow: Whether it is for a phone.
    """
    del outcome
    figure = Figure()
    figure.add_trace(
        scatter(
            mode="lines", name="each test alone, mixed in proportion", hoverinfo="skip",
            line={"color": MUTED, "width": 1.75, "dash": "dash"},
        )
    )  # fmt: skip
    figure.add_trace(
        scatter(
            mode="lines", name="learned together, O(p)", fill="tonexty",
            fillcolor=translucent(POLICY[0]), line={"color": POLICY[0], "width": 2.5},
            hovertemplate="share %{x:.1f}: %{y:.3f}<extra></extra>", cliponaxis=False,
        )
    )  # fmt: skip
    figure.add_trace(
        scatter(
            mode="markers", name="each training", hoverinfo="skip",
            marker={"color": POLICY[0], "size": 5, "opacity": 0.55}, cliponaxis=False,
        )
    )  # fmt: skip
    figure.update_xaxes(
        title="share p of the first test",
        range=[-0.02, 1.02],
        tickvals=_QUARTERS,
    )
    figure.update_yaxes(
        title=None if narrow else "performance in the mixture", range=[-0.02, 1.03],
        tickvals=_QUARTERS,
    )  # fmt: skip
    figure = finish(figure, height=340 if narrow else 380)
    return legend_on_top(figure, rows=3 if narrow else 1)
