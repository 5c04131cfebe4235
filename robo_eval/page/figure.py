"""A picture as plotly.js reads it, in mappings and lists: drawing needs no Python of plotly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

Trace = dict[str, Any]
"""One series of a picture, by plotly's names."""


def trace(kind: str, **properties: object) -> Trace:
    """A series of plotly's kind, without the properties that are None."""
    return {"type": kind} | merged({}, properties)


bar = partial(trace, "bar")
box = partial(trace, "box")
heatmap = partial(trace, "heatmap")
mesh3d = partial(trace, "mesh3d")
scatter = partial(trace, "scatter")
scatter3d = partial(trace, "scatter3d")
scatterpolar = partial(trace, "scatterpolar")


def merged(old: Mapping[str, Any], new: Mapping[str, object]) -> dict[str, Any]:
    """Settings with newer ones in their places, mappings key by key; None leaves what is there.

    Example:
        >>> merged({"font": {"size": 11}}, {"font": {"color": "red"}, "range": None})
        {'font': {'size': 11, 'color': 'red'}}
    """
    found = dict(old)
    for key, value in new.items():
        if isinstance(value, Mapping):
            found[key] = merged(found.get(key, {}), value)
        elif value is not None:
            found[key] = value
    return found


@dataclass(slots=True)
class Figure:
    """A picture. Panels are counted from 0, row by row; None means all of them.

    Attributes:
        data: The series.
        layout: Everything else.
    """

    data: list[Trace] = field(default_factory=list)
    layout: dict[str, Any] = field(default_factory=dict)

    def add_trace(self, series: Trace, panel: int | None = None) -> None:
        """Draw a series, in a panel if there are any."""
        self.data.append(series if panel is None else series | _axes_of(panel))

    def add_annotation(self, **properties: object) -> None:
        """Write a text."""
        self.layout.setdefault("annotations", []).append(merged({}, properties))

    def add_shape(self, kind: str, panel: int = 0, **properties: object) -> None:
        """Draw a `line` or a `rect`; along an axis without ends it reaches over the panel."""
        shape: dict[str, object] = {"type": kind}
        for letter, axis in zip("xy", _axes_of(panel).values(), strict=True):
            if f"{letter}0" in properties:
                shape[f"{letter}ref"] = axis
            else:
                shape |= {f"{letter}ref": f"{axis} domain", f"{letter}0": 0, f"{letter}1": 1}
        self.layout.setdefault("shapes", []).append(merged(shape, properties))

    def update_layout(self, **properties: object) -> None:
        """Set what belongs to no axis."""
        self.layout = merged(self.layout, properties)

    def update_xaxes(self, panel: int | None = None, **properties: object) -> None:
        """Set what horizontal axes look like; `title` is a text."""
        self._update_axes("xaxis", panel, properties)

    def update_yaxes(self, panel: int | None = None, **properties: object) -> None:
        """Set what vertical axes look like; `title` is a text."""
        self._update_axes("yaxis", panel, properties)

    def _update_axes(self, kind: str, panel: int | None, properties: dict[str, object]) -> None:
        if "title" in properties:
            properties["title"] = {"text": properties["title"]}
        every = [name for name in self.layout if name.startswith(kind)]
        names = every or [kind] if panel is None else [kind + axis_number(panel)]
        for name in names:
            self.layout[name] = merged(self.layout.get(name, {}), properties)


def axis_number(panel: int) -> str:
    """What plotly appends to the names of the axes of a panel.

    Example:
        >>> axis_number(0), axis_number(1)
        ('', '2')
    """
    return str(panel + 1) if panel else ""


def grid(
    count: int,
    columns: int,
    *,
    across: float = 0.0,
    down: float = 0.0,
    shared: str = "xy",
    heights: Sequence[float] | None = None,
) -> Figure:
    """An empty figure with panels.

    Args:
        count: How many; there are axes where a panel is.
        columns: How many side by side.
        across: Room between two columns, as a share of the width.
        down: Room between two rows, as a share of the height.
        shared: Which axes panels share: `x` all of them, `y` those of a row.
        heights: Of the rows, in any unit; None for equal ones.
    """
    rows = -(-count // columns)
    width = (1.0 - across * (columns - 1)) / columns
    parts = heights or [1.0] * rows
    unit = (1.0 - down * (rows - 1)) / sum(parts)
    lowest_left = (rows - 1) * columns
    figure = Figure()
    for panel in range(count):
        row, column = divmod(panel, columns)
        left = column * (width + across)
        low = unit * sum(parts[row + 1 :]) + down * (rows - 1 - row)
        x: dict[str, Any] = {"domain": [left, left + width]}
        y: dict[str, Any] = {"domain": [low, low + unit * parts[row]]}
        if "x" in shared and panel != lowest_left:
            x["matches"] = "x" + axis_number(lowest_left)
            x["showticklabels"] = row == rows - 1
        if "y" in shared and column > 0:
            y |= {"matches": "y" + axis_number(row * columns), "showticklabels": False}
        number = axis_number(panel)
        figure.layout[f"xaxis{number}"] = x | {"anchor": f"y{number}"}
        figure.layout[f"yaxis{number}"] = y | {"anchor": f"x{number}"}
    return figure


def _axes_of(panel: int) -> dict[str, str]:
    return {f"{letter}axis": letter + axis_number(panel) for letter in "xy"}
