"""What the pictures of a study look like that show all of its tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from robo_eval.analysis.aiq import Complexity
from robo_eval.analysis.aiq.complexity import Variant
from robo_eval.core.estimate import Estimate
from robo_eval.page.figure import Figure, bar, grid, heatmap, scatter
from robo_eval.page.figures import colour_key, error_bars, finish, legend_on_top
from robo_eval.page.theme import INK, MUTED, PAPER, POLICY, translucent
from robo_eval.page.words import interval_text, number, percent, plain_text, shortened, thousands
from robo_eval.study.outcome import Outcome

LIKE_NOISE: Final = "≈"
"""Stands by a pair that is not clearly more unlike than training makes a test to itself."""
RULES: Final[Mapping[Variant, str]] = {
    "default": "the smallest policy in each of 30 bins",
    "envelope": "the smallest policy that does as well or better",
}
"""What the two rules of complexity take as size of a performance."""
TIMES_FLOOR: Final = 2.0
"""A pair at most so many times the noise floor carries the mark."""
SCALE: Final = ((0.0, "#edf3f9"), (0.35, "#9cc3e4"), (0.7, "#3576b5"), (1.0, "#10305c"))
"""From alike to unlike; the more, the darker, so that it also reads in grey."""
_MANY: Final = 22
"""From so many columns on a number has no room in its cell; on a phone, from a third of them."""
_QUARTERS: Final = (0, 0.25, 0.5, 0.75, 1)


def short(names: Sequence[str], *, narrow: bool) -> list[str]:
    """Names as an axis has room for them."""
    return [plain_text(shortened(name, 14 if narrow else 26)) for name in names]


def complexities(outcome: Outcome, *, narrow: bool = False) -> Figure:
    """A bar for each test, the most complex on top; what is extrapolated of it is pale.

    Args:
        outcome: What was found.
        narrow: Whether it is for a phone.
    """
    order = outcome.by_complexity
    names = [outcome.measured.tests[place] for place in order]
    curves = [outcome.curves[place] for place in order]
    rows = list(range(len(order)))
    words = [_complexity_words(outcome, place) for place in order]
    colour = POLICY[0]
    figure = Figure()
    parts = (
        ("seen in the pool", [1.0 - one.extrapolated_share for one in curves], colour),
        ("extrapolated", [one.extrapolated_share for one in curves], translucent(colour)),
    )
    for name, shares, fill in parts:
        figure.add_trace(
            bar(
                x=[one.area * share for one, share in zip(curves, shares, strict=True)],
                y=rows, orientation="h", name=name, width=0.62,
                marker={"color": fill, "line": {"color": colour, "width": 1}},
                customdata=words, hovertemplate="%{customdata}<extra></extra>",
            )
        )  # fmt: skip
    found = [outcome.complexities[place] for place in order]
    figure.add_trace(
        scatter(
            x=[one.value for one in found], y=rows, mode="markers", name="value and 95 % interval",
            error_x=error_bars(found, INK), marker={"color": INK, "size": 5}, hoverinfo="skip",
        )
    )  # fmt: skip
    figure.add_trace(
        scatter(
            x=[outcome.others[place].area for place in order], y=rows, mode="markers",
            name=f"by the other rule ({outcome.other_rule})", hoverinfo="skip",
            marker={"color": PAPER, "size": 9, "symbol": "diamond",
                    "line": {"color": POLICY[1], "width": 2}},
        )
    )  # fmt: skip
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title="complexity (trainable parameters)", rangemode="tozero")
    figure.update_yaxes(
        tickvals=rows, ticktext=short(names, narrow=narrow), range=[len(rows) - 0.4, -0.6],
        showgrid=False, tickfont={"color": INK, "size": 12},
    )  # fmt: skip
    legend_rows = 2 if narrow else 1
    height = 70 + (24 if narrow else 26) * len(rows) + 24 + 24 * legend_rows
    figure = legend_on_top(finish(figure, height=height), rows=legend_rows)
    figure.update_layout(legend={"traceorder": "normal"})
    return figure


def _complexity_words(outcome: Outcome, place: int) -> str:
    curve = outcome.curves[place]
    return (
        f"<b>{plain_text(outcome.measured.tests[place])}</b>"
        f"<br>{size_text(outcome.complexities[place])} parameters"
        f"<br>relative complexity {number(float(outcome.space.complexities[place]))}"
        f"<br>{percent(curve.extrapolated_share)} of it extrapolated"
        f"<br>by the other rule ({outcome.other_rule}):"
        f" {thousands(round(outcome.others[place].area))}"
    )


def seen(curve: Complexity) -> tuple[int, int]:
    """The first and the last bin that is not extrapolated."""
    filled = np.flatnonzero(np.isfinite(curve.observed))
    # What does as well as a lower performance is all that does better, so the envelope has no gap.
    return (0 if curve.variant == "envelope" else int(filled[0])), int(filled[-1])


def size_text(estimate: Estimate) -> str:
    """A number of parameters with its interval."""
    if estimate.value is None:
        return f"not measured: {estimate.reason}"
    value = thousands(round(estimate.value))
    if estimate.low is None or estimate.high is None:
        return f"{value} (no interval: {estimate.reason})"
    return f"{value} [{thousands(round(estimate.low))} to {thousands(round(estimate.high))}]"


def is_like_noise(outcome: Outcome, first: int, second: int) -> bool:
    """Whether a pair is at most twice as unlike as training makes a test to itself."""
    floor = outcome.dissimilarities.floor
    return floor is not None and bool(
        outcome.dissimilarities.table[first, second] <= TIMES_FLOOR * floor
    )


def pair_words(outcome: Outcome, first: int, second: int) -> str:
    """Dissimilarity of two tests in words, or of a test to itself."""
    if first == second:
        return f"to itself {number(float(outcome.itself[first]), digits=3)}: noise of training"
    estimate = outcome.pairs[min(first, second), max(first, second)]
    mark = (
        f"; {LIKE_NOISE} at most twice the noise" if is_like_noise(outcome, first, second) else ""
    )
    return f"dissimilarity {interval_text(estimate, digits=3)}{mark}"


def dissimilarity_map(outcome: Outcome, *, narrow: bool = False) -> Figure:
    """Dissimilarity of every two tests, alike ones side by side, and how they join.

    Args:
        outcome: What was found.
        narrow: Whether it is for a phone.
    """
    tree, names = outcome.tree, outcome.measured.tests
    order = tree.leaves
    places = list(range(len(order)))
    figure = grid(2, 1, down=0.015, heights=[0.15, 0.85])
    x: list[float | None] = []
    y: list[float | None] = []
    for across, up in tree.joints:
        x += [*across, None]
        y += [*up, None]
    figure.add_trace(
        scatter(
            x=x, y=y, mode="lines", line={"color": MUTED, "width": 1.25},
            hoverinfo="skip",
        ),
        panel=0,
    )  # fmt: skip
    values = outcome.dissimilarities.table.copy()
    np.fill_diagonal(values, outcome.itself)
    is_short = len(order) > (_MANY / 3 if narrow else _MANY)
    cells = heatmap(
        z=values[np.ix_(order, order)].tolist(),
        x=places,
        y=places,
        text=[
            [_cell(outcome, i, j, float(values[i, j]), is_short=is_short) for j in order]
            for i in order
        ],
        texttemplate="%{text}",
        textfont={"size": 10 if narrow else 11},
        customdata=[
            [
                f"<b>{plain_text(names[i])}</b>"
                + (f" and <b>{plain_text(names[j])}</b>" if i != j else "")
                + f"<br>{plain_text(pair_words(outcome, i, j))}"
                for j in order
            ]
            for i in order
        ],
        hovertemplate="%{customdata}<extra></extra>",
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
    )
    figure.add_trace(cells, panel=1)
    labels = short([names[place] for place in order], narrow=narrow)
    axis = {"tickvals": places, "ticktext": labels, "showgrid": False, "tickfont": {"size": 11}}
    ends = (-0.5, len(order) - 0.5)
    figure.update_xaxes(range=ends, showgrid=False, panel=0)
    figure.update_xaxes(range=ends, **axis, panel=1)
    figure.update_yaxes(range=ends[::-1], **axis, panel=1)
    figure.update_yaxes(showticklabels=False, showgrid=False, rangemode="tozero", panel=0)
    height = (60 if narrow else 80) + len(order) * (18 if narrow else 27) + 130
    figure = finish(figure, height=height, margin={"b": 64})
    figure.update_layout(coloraxis=_key("dissimilarity", float(values.max()), narrow=narrow))
    return figure


def _cell(outcome: Outcome, i: int, j: int, value: float, *, is_short: bool) -> str:
    mark = LIKE_NOISE if i != j and is_like_noise(outcome, i, j) else ""
    # Where all tests are rather alike two digits say nothing.
    digits = 2 if outcome.dissimilarities.table.max() >= 0.1 else 3
    return mark if is_short else mark + number(value, digits=digits).removeprefix("0")


def _key(name: str, most: float, *, narrow: bool) -> dict[str, Any]:
    most = most or 1.0
    end = number(most, digits=2 if most >= 0.1 else 3)
    return colour_key(name, SCALE, most=most, end=end, narrow=narrow)


def dimensions(outcome: Outcome, *, narrow: bool = False) -> Figure:
    """How far each test reaches along each kept dimension, without signs, below their shares.

    Args:
        outcome: What was found.
        narrow: Whether it is for a phone.
    """
    placed, names = outcome.space, outcome.measured.tests
    order, columns = outcome.tree.leaves, list(range(placed.k))
    reach = np.abs(placed.points)[order]
    figure = grid(2, 1, down=0.02, heights=[0.2, 0.8])
    shares = [float(share) for share in placed.shares]
    has_room = not narrow or placed.k < 7
    figure.add_trace(
        bar(
            x=columns, y=shares, width=0.7, marker={"color": POLICY[0]}, cliponaxis=False,
            text=[percent(round(share, 3)) if has_room else "" for share in shares],
            textposition="outside", textfont={"size": 11, "color": INK},
            hovertemplate="dimension %{customdata}: %{y:.1%} of the space<extra></extra>",
            customdata=[column + 1 for column in columns],
        ),
        panel=0,
    )  # fmt: skip
    is_short = placed.k > (6 if narrow else _MANY)
    figure.add_trace(
        heatmap(
            z=reach.tolist(), x=columns, y=list(range(len(order))),
            text=[["" if is_short else number(float(one)).removeprefix("0") for one in row]
                  for row in reach],
            texttemplate="%{text}", textfont={"size": 10 if narrow else 11},
            customdata=[
                [f"<b>{plain_text(names[place])}</b>, dimension {column + 1}"
                 f"<br>{number(float(placed.points[place, column]), digits=3)}"
                 for column in columns]
                for place in order
            ],
            hovertemplate="%{customdata}<extra></extra>", coloraxis="coloraxis", xgap=1, ygap=1,
        ),
        panel=1,
    )  # fmt: skip
    # Few dimensions do not fill the page: a wider cell says no more.
    width = min(1.0, placed.k * (0.2 if narrow else 0.11))
    figure.update_xaxes(range=[-0.5, placed.k - 0.5], domain=[0, width], showgrid=False)
    figure.update_xaxes(
        tickvals=columns, ticktext=[str(column + 1) for column in columns],
        title="dimension", panel=1,
    )  # fmt: skip
    figure.update_yaxes(showticklabels=False, showgrid=False, rangemode="tozero", panel=0)
    figure.update_yaxes(
        range=[len(order) - 0.5, -0.5], showgrid=False, tickfont={"size": 11},
        tickvals=list(range(len(order))), panel=1,
        ticktext=short([names[place] for place in order], narrow=narrow),
    )  # fmt: skip
    height = len(order) * (18 if narrow else 24) + 190
    figure = finish(figure, height=height, margin={"t": 22, "b": 64})
    figure.update_layout(coloraxis=_key("reach, without sign", float(reach.max()), narrow=narrow))
    return figure


# What `study.js` fills with the test and the pair that are chosen --------------------------------


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
