"""Where the panels of a chart stand when one is not enough."""

from __future__ import annotations

from dataclasses import dataclass

from robo_eval.page.figure import Figure, axis_number, grid
from robo_eval.page.figures import finish, legend_on_top
from robo_eval.page.words import plain_text, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Panels of one size in pixels: whatever their number, none touches its neighbour.

    Attributes:
        count: How many.
        columns: How many side by side.
        height: Height of one, pixels.
        gap: Room between two rows for ticks and the names of the lower one, pixels.
        top: Room above for names.
        bottom: Room below for ticks, titles and keys.
    """

    count: int
    columns: int
    height: int
    gap: int
    top: int = 26
    bottom: int = 48

    @property
    def rows(self) -> int:
        """Rows of panels."""
        return -(-self.count // self.columns)

    @property
    def total(self) -> int:
        """Height of the figure, pixels."""
        return self.top + self._inner + self.bottom

    @property
    def _inner(self) -> int:
        return self.rows * self.height + (self.rows - 1) * self.gap

    @property
    def spacing(self) -> float:
        """The gap as plotly wants it: a share of the height between the margins."""
        return self.gap / self._inner if self.rows > 1 else 0.0

    def is_first(self, index: int) -> bool:
        """Whether no panel is on the left."""
        return index % self.columns == 0

    def is_lowest(self, index: int) -> bool:
        """Whether no panel is below: the column ends here."""
        return index + self.columns >= self.count

    def margins(self) -> dict[str, int]:
        """The margins, for `finish`."""
        return {"t": self.top, "b": self.bottom}


def panel_figure(panels: Panels, *, spacing: float = 0.0, shared: str = "xy") -> Figure:
    """An empty figure of these panels.

    Args:
        panels: Where they stand.
        spacing: Room between two columns as a share of the width.
        shared: Which axes they share, see `grid`.
    """
    return grid(panels.count, panels.columns, across=spacing, down=panels.spacing, shared=shared)


def legend_over_panels(figure: Figure, panels: Panels, *, rows: int) -> Figure:
    """The finished figure with its legend above the names of the panels, in so many rows."""
    figure = finish(figure, height=panels.total + 24 * rows, margin=panels.margins())
    figure = legend_on_top(figure, rows=rows)
    figure.update_layout(
        margin={"t": panels.top + 24 * rows}, legend={"yref": "container", "yanchor": "top"}
    )
    return figure


def title_below(figure: Figure, panels: Panels, index: int, title: str) -> None:
    """Ticks and a title under the lowest panel of each column, nothing under the others."""
    is_lowest = panels.is_lowest(index)
    figure.update_xaxes(showticklabels=is_lowest, panel=index)
    if is_lowest:
        figure.update_xaxes(title=title, panel=index)


def side_by_side(count: int, *, narrow: bool) -> int:
    """Columns for so many panels: as few rows as the width allows, and those about equal."""
    most = 2 if narrow else 4
    rows = -(-count // most)
    return -(-count // rows)


def name_panel(figure: Figure, index: int, text: str, colour: str, *, most: int) -> None:
    """Write a panel's name above it, in so many characters at most."""
    axis = axis_number(index)
    figure.add_annotation(
        text=f"<b>{plain_text(shortened(text, most))}</b>" if text else "",
        x=0, xref=f"x{axis} domain", xanchor="left",
        y=1, yref=f"y{axis} domain", yanchor="bottom", yshift=4,
        font={"size": 13, "color": colour},
    )  # fmt: skip


def name_room(panels: Panels, *, narrow: bool) -> int:
    """How many characters a panel's name may have, in the widest of common fonts, DejaVu Sans.

    On paper a wide figure is 690 pixels wide.
    """
    return (34 if narrow else 72) // panels.columns


def name_room_over_rows(panels: Panels, *, narrow: bool) -> int:
    """How many characters the name of a panel may have that stands beside the names of its rows."""
    return min(22 if narrow else 26, name_room(panels, narrow=narrow))
