"""Which colours, fonts and line styles the charts of a report use, in light and in dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

FONT: Final = (
    'Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue",'
    ' "Noto Sans", Arial, sans-serif'
)

# Okabe and Ito's hues, darkened until each has a contrast of at least 4.5 on the page and apart
# in lightness as far as that allows; line dashes and marker shapes tell policies apart in grey.
POLICY: Final = (
    "#0b5cad",
    "#b8490f",
    "#00735a",
    "#8b3a8f",
    "#6f5d00",
    "#4a5560",
    "#a8264f",
    "#1f6f8b",
)
POLICY_DARK: Final = (
    "#6db3f8",
    "#f39a6b",
    "#4fcfa6",
    "#d89be0",
    "#dcc653",
    "#b4bfca",
    "#f58bab",
    "#7fd3ee",
)
DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS: Final = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "cross",
    "star",
    "hexagon",
    "bowtie",
)

INK: Final = "#1c2430"
MUTED: Final = "#5b6675"
FAINT: Final = "#c3cad3"
GRID: Final = "#e6e9ee"
PAPER: Final = "#ffffff"
PERFORMANCE_SCALE: Final = (
    (0.0, "#4d1430"),
    (0.25, "#98323f"),
    (0.45, "#cb6c50"),
    (0.6, "#e8a878"),
    (0.8, "#f3d5a0"),
    (1.0, "#e2eed0"),
)
"""Lightness rises with performance, so the map also reads in grey: failures are dark."""

_DARK: Final = {
    INK: "#e8ecf2",
    MUTED: "#a3aebd",
    FAINT: "#4a5666",
    GRID: "#2b3442",
    PAPER: "#161c26",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How one policy is drawn in every chart.

    Attributes:
        colour: Hexadecimal colour on a light page.
        dash: Plotly's name of the line dash.
        symbol: Plotly's name of the marker.
    """

    colour: str
    dash: str
    symbol: str

    @property
    def band(self) -> str:
        """The colour, transparent, for the area of an interval."""
        return translucent(self.colour)


def policy_style(index: int) -> Style:
    """The style of the policy at this place in the plan.

    Example:
        >>> policy_style(0).symbol
        'circle'
    """
    return Style(
        colour=POLICY[index % len(POLICY)],
        dash=DASHES[index % len(DASHES)],
        symbol=SYMBOLS[index % len(SYMBOLS)],
    )


def translucent(colour: str) -> str:
    """A hexadecimal colour at 16 % opacity.

    Example:
        >>> translucent("#000000")
        'rgba(0,0,0,0.16)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def dark_colours() -> dict[str, str]:
    """The colour a dark page uses in the place of each colour of a light one."""
    swaps = dict(_DARK)
    for light, dark in zip(POLICY, POLICY_DARK, strict=True):
        swaps[light] = dark
        swaps[translucent(light)] = translucent(dark)
    return swaps


def template() -> dict[str, Any]:
    """The look all charts share: no frame, thin grid, the page's own font."""
    axis = {
        "gridcolor": GRID,
        "linecolor": FAINT,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"color": MUTED, "size": 12},
        "title": {"font": {"color": MUTED, "size": 12.5}, "standoff": 10},
        "automargin": True,
        "fixedrange": True,
    }
    return {
        "layout": {
            "font": {"family": FONT, "color": INK, "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(POLICY),
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {
                "bgcolor": PAPER,
                "bordercolor": FAINT,
                "font": {"family": FONT, "color": INK, "size": 13},
                "align": "left",
            },
            "legend": {"font": {"color": INK, "size": 13}, "bgcolor": "rgba(0,0,0,0)"},
            "annotationdefaults": {"font": {"color": MUTED, "size": 12.5}, "showarrow": False},
            "dragmode": False,
        }
    }
