"""What the space of a study looks like; hulls are filled in by `study.js`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.page.figure import Figure, mesh3d, scatter, scatter3d
from robo_eval.page.figures import finish
from robo_eval.page.theme import FAINT, GRID, INK, MUTED, POLICY, translucent
from robo_eval.page.words import number, percent, plain_text
from robo_eval.study.figures import short
from robo_eval.study.outcome import Outcome

_SHOWN: Final = 3
"""Dimensions that the space is drawn in."""
_SIDES: Final = {
    "middle right": (1.0, 0.0), "top center": (0.0, 1.0), "bottom center": (0.0, -1.0),
    "middle left": (-1.0, 0.0), "top right": (1.0, 1.0), "bottom right": (1.0, -1.0),
    "top left": (-1.0, 1.0), "bottom left": (-1.0, -1.0),
}  # fmt: skip
"""Where a name may stand beside its point, the best place first."""


def space_solid(outcome: Outcome, *, narrow: bool = False) -> Figure:
    """The first three dimensions of the space, which can be turned.

    Traces: rays from the origin, tests, then the area and the edges of each of two hulls.

    Args:
        outcome: What was found.
        narrow: Whether it is for a phone.
    """
    points, names = outcome.space.points[:, :_SHOWN], outcome.measured.tests
    figure = Figure()
    rays = np.full((3 * len(points), _SHOWN), np.nan)
    rays[0::3], rays[1::3] = 0.0, points
    figure.add_trace(
        scatter3d(
            **_columns(rays),
            mode="lines",
            hoverinfo="skip",
            line={"color": FAINT, "width": 2},
        )
    )
    figure.add_trace(
        scatter3d(
            **_columns(points), mode="markers+text", text=short(names, narrow=narrow),
            textfont={"size": 10 if narrow else 12, "color": INK},
            textposition="top center", marker={"color": INK, "size": 4},
            customdata=_place_words(outcome), hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip
    for colour in POLICY[:2]:
        figure.add_trace(
            mesh3d(
                x=[], y=[], z=[], i=[], j=[], k=[], color=colour, opacity=0.22, hoverinfo="skip",
                flatshading=True,
                lighting={"ambient": 0.85, "diffuse": 0.4, "specular": 0.0},
            )
        )  # fmt: skip
        figure.add_trace(
            scatter3d(
                x=[],
                y=[],
                z=[],
                mode="lines",
                hoverinfo="skip",
                line={"color": colour, "width": 4},
            )
        )
    axis = {
        "showbackground": False, "gridcolor": GRID, "zerolinecolor": FAINT, "zeroline": True,
        "showspikes": False, "nticks": 4, "tickfont": {"size": 10, "color": MUTED},
    }  # fmt: skip
    shares = [percent(round(float(share), 2)) for share in outcome.space.shares[:_SHOWN]]
    titles = [f"{place + 1} ({share})" for place, share in enumerate(shares)]
    figure = finish(figure, height=380 if narrow else 560, margin={"l": 0, "r": 0, "t": 0, "b": 0})
    font = {"size": 11 if narrow else 12, "color": MUTED}
    figure.update_layout(
        scene={
            **{f"{letter}axis": {**axis, "title": {"text": title, "font": font}}
               for letter, title in zip("xyz", titles, strict=True)},
            "camera": {"eye": {"x": 2.4 if narrow else 1.8, "y": 0.0, "z": 0.75},
                       "center": {"x": 0.0, "y": 0.0, "z": -0.12}},
            "aspectmode": "data", "dragmode": "turntable", "bgcolor": "rgba(0,0,0,0)",
        }
    )  # fmt: skip
    return figure


def space_flat(outcome: Outcome, *, narrow: bool = False) -> Figure:
    """The first two dimensions of the space, for paper and where there are no more.

    Traces: rays from the origin, tests, two hulls.

    Args:
        outcome: What was found.
        narrow: Whether it is for a phone.
    """
    points = flat_points(outcome.space.points)
    # Both axes have one scale, or angles would mislead.
    inner, height = (270, 360) if narrow else (600, 460)
    reach = np.vstack([points, np.zeros(2)])
    pixels = 0.8 * min(np.array([inner, height - 60]) / np.maximum(np.ptp(reach, axis=0), 1e-9))
    texts, sides = _labels(points * pixels, short(outcome.measured.tests, narrow=narrow))
    figure = Figure()
    rays = np.full((3 * len(points), 2), np.nan)
    rays[0::3], rays[1::3] = 0.0, points
    figure.add_trace(
        scatter(
            **_columns(rays), mode="lines", hoverinfo="skip",
            line={"color": FAINT, "width": 1.25},
        )
    )  # fmt: skip
    figure.add_trace(
        scatter(
            x=points[:, 0].tolist(), y=points[:, 1].tolist(), mode="markers+text",
            text=texts, textposition=sides, marker={"color": INK, "size": 6},
            textfont={"size": 10 if narrow else 11.5, "color": INK}, cliponaxis=False,
            customdata=_place_words(outcome), hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip
    for colour in POLICY[:2]:
        figure.add_trace(
            scatter(
                x=[], y=[], mode="lines", fill="toself", fillcolor=translucent(colour),
                line={"color": colour, "width": 2}, hoverinfo="skip",
            )
        )  # fmt: skip
    for update, column in ((figure.update_xaxes, 0), (figure.update_yaxes, 1)):
        low, high = float(reach[:, column].min()), float(reach[:, column].max())
        room = 0.1 * float(np.ptp(reach))
        update(
            title=f"dimension {column + 1}", range=[low - room, high + room], nticks=5,
            zeroline=True, zerolinecolor=FAINT,
        )  # fmt: skip
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    return finish(figure, height=height)


def _labels(places: NDArray[np.float64], texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names and the sides they stand on so that none covers another; without room, no name.

    Args:
        places: Of the points, pixels, shape (n, 2).
        texts: Their names.
    """
    taken = [(place, np.array([5.0, 5.0])) for place in places]
    shown, sides = [], []
    for place, text in zip(places, texts, strict=True):
        half = np.array([3.4 * len(text), 7.0])
        for side, direction in _SIDES.items():
            centre = place + np.array(direction) * (half + 5.0)
            if all((np.abs(centre - at) >= half + own).any() for at, own in taken):
                taken.append((centre, half))
                shown.append(text)
                sides.append(side)
                break
        else:
            shown.append("")
            sides.append("top center")
    return shown, sides


def flat_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first two coordinates; the second is 0 where there is one only."""
    padded = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))
    found: NDArray[np.float64] = padded[:, :2]
    return found


def _columns(points: NDArray[np.float64]) -> dict[str, list[float | None]]:
    return {
        letter: [None if math.isnan(one) else float(one) for one in points[:, place]]
        for place, letter in enumerate("xyz"[: points.shape[1]])
    }


def _place_words(outcome: Outcome) -> list[str]:
    placed = outcome.space
    return [
        f"<b>{plain_text(name)}</b><br>relative complexity {number(float(size))}"
        f"<br>{percent(round(float(held), 2))} of it in {placed.k} dimensions"
        for name, size, held in zip(
            outcome.measured.tests, placed.complexities, placed.communality, strict=True
        )
    ]
