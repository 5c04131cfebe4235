"""What all pictures share: their look, the legend, error bars, and their two forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from robo_eval.core.estimate import Estimate
from robo_eval.page.figure import Figure
from robo_eval.page.theme import MUTED, Style, policy_style, template
from robo_eval.page.words import plain_text

Forms = dict[str, Figure]
"""One picture as it is drawn on a page, `wide`, and on a phone, `narrow`."""


def both_forms(draw: Callable[..., Figure]) -> Forms:
    """A picture for a wide page and for a phone; `draw` takes the keyword `narrow`."""
    return {"wide": draw(narrow=False), "narrow": draw(narrow=True)}


def heights_of(charts: Mapping[str, Forms]) -> dict[str, int]:
    """The room a page keeps for each picture, pixels."""
    return {name: forms["wide"].layout["height"] for name, forms in charts.items()}


def styles(policies: Sequence[str]) -> dict[str, Style]:
    """The style of each policy, by its place in the plan."""
    return {name: policy_style(index) for index, name in enumerate(policies)}


def finish(figure: Figure, *, height: int, margin: dict[str, int] | None = None) -> Figure:
    """Give a figure the look all of them share."""
    figure.update_layout(
        template=template(),
        height=height,
        margin={"l": 8, "r": 12, "t": 8, "b": 8, "pad": 4} | (margin or {}),
        showlegend=False,
    )
    return figure


def legend_on_top(figure: Figure, *, rows: int) -> Figure:
    """The figure with its legend above, and room for so many rows of it."""
    figure.update_layout(
        showlegend=True,
        legend={
            "orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom",
            "itemclick": False, "itemdoubleclick": False, "itemwidth": 44,
        },
        margin={"t": 18 + 24 * rows},
    )  # fmt: skip
    return figure


def name_rows(figure: Figure, labels: Sequence[str], **ticks: Any) -> None:
    """One row for each label, the first on top."""
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=[plain_text(label) for label in labels],
        range=[len(labels) - 0.5, -0.5],
        tickfont={"size": 11},
        **ticks,
    )


def error_bars(estimates: Sequence[Estimate], colour: str) -> dict[str, Any]:
    """Bars from the low to the high end of each interval; none where there is no interval."""

    def gap(estimate: Estimate, edge: float | None) -> float:
        if edge is None or estimate.value is None:
            return 0.0
        return abs(edge - estimate.value)

    return {
        "type": "data",
        "symmetric": False,
        "array": [gap(estimate, estimate.high) for estimate in estimates],
        "arrayminus": [gap(estimate, estimate.low) for estimate in estimates],
        "thickness": 1.5,
        "width": 0,
        "color": colour,
    }


def colour_key(
    title: str, scale: Sequence[tuple[float, str]], *, most: float, end: str, narrow: bool
) -> dict[str, Any]:
    """A colour axis from 0 to `most` with its key below the figure.

    Args:
        title: What the colours stand for.
        scale: Colours by share of the way.
        most: Value of the last colour.
        end: How it is written.
        narrow: Whether it is for a phone.
    """
    return {
        "colorscale": [list(stop) for stop in scale],
        "cmin": 0,
        "cmax": most,
        "colorbar": {
            "orientation": "h",
            "thickness": 9,
            # In pixels: beside long names a share of the plot has no room for the words.
            "lenmode": "pixels",
            "len": 180 if narrow else 260,
            "x": 0,
            "xref": "container" if narrow else "paper",
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "tickvals": [0, most / 2.0, most],
            "ticktext": ["0", title, end],
            "tickfont": {"size": 11, "color": MUTED},
            "outlinewidth": 0,
        },
    }
