"""How a document of the incident log is laid out: headings, paragraphs and tables on A4."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import MissingExtraError, pip_install

if TYPE_CHECKING:
    from fpdf import FPDF

FONTS: Final = Path(__file__).with_name("fonts")
MISSING: Final = "\N{WHITE SQUARE}"
"""Stands for a character that the font has not."""
_COUNT: Final = "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
"""Stands for the number of pages until that is known; no other text keeps these characters."""
_FAMILY: Final = "DejaVu"
_INK: Final = (28, 36, 48)
_MUTED: Final = (91, 102, 117)
_RULE: Final = (195, 202, 211)
_WASH: Final = (240, 242, 245)
_MARGIN_MM: Final = 18.0
_LINE: Final = 1.45
"""Height of a line, as a multiple of the size of its letters."""
_MM_PER_PT: Final = 25.4 / 72.0


class Sheet:
    """A document that grows from top to bottom.

    Args:
        title: Its title.
        footer: What is at the foot of each page, beside its number.
        made_ns: When it was made, UTC, ns since 1970. The same content made at the same time is the
            same bytes.

    Attributes:
        missing: Characters that the font has not; a square stands for each.

    Raises:
        MissingExtraError: If the library that writes PDF is not installed.
    """

    def __init__(self, title: str, footer: str, made_ns: int) -> None:
        self.missing: set[str] = set()
        self._pdf = _pages(self, footer)
        for style, name in (("", "DejaVuSans.ttf"), ("B", "DejaVuSans-Bold.ttf")):
            self._pdf.add_font(_FAMILY, style, FONTS / name)
        regular: Any = self._pdf.fonts[_FAMILY.lower()]
        self._known = frozenset(regular.cmap) - {ord(_COUNT[0])}
        self._pdf.set_creation_date(datetime.fromtimestamp(made_ns // 10**9, tz=UTC))
        self._pdf.set_title(self.text(title))
        self._pdf.set_lang("en")
        self._pdf.set_margins(_MARGIN_MM, _MARGIN_MM)
        self._pdf.set_auto_page_break(auto=True, margin=_MARGIN_MM + 4.0)
        self._pdf.alias_nb_pages(_COUNT)
        self._pdf.add_page()

    def text(self, text: str) -> str:
        """A text as the font can show it."""
        found = []
        for letter in text.replace("\t", "    "):
            if letter == "\n" or ord(letter) in self._known:
                found.append(letter)
            else:
                self.missing.add(letter)
                found.append(MISSING)
        return "".join(found)

    def bytes(self) -> bytes:
        """The document."""
        return bytes(self._pdf.output())

    # Parts -------------------------------------------------------------------------------------

    def title(self, text: str, *below: str) -> None:
        """The title, and lines below it."""
        self._write(text, size=20.0, style="B")
        for line in below:
            self._write(line, size=9.5, colour=_MUTED)
        self._pdf.ln(3.0)

    def heading(self, text: str, *, level: int = 0) -> None:
        """A heading, which is never the last line of a page."""
        size = 13.0 if level == 0 else 10.5
        self._keep_together(30.0 if level == 0 else 24.0)
        self._pdf.ln(4.0 if level == 0 else 3.0)
        self._pdf.start_section(self.text(text)[:120].replace("\n", " "), level=level)
        self._write(text, size=size, style="B")
        self._pdf.ln(1.0)

    def paragraph(self, text: str, *, is_quiet: bool = False) -> None:
        """Some sentences."""
        self._write(text, size=9.0, colour=_MUTED if is_quiet else _INK)
        self._pdf.ln(0.8)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Names with what they have, one a line."""
        self._table(None, pairs, widths=(24, 76), has_rules=False)

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
    ) -> None:
        """A table; its header is on each page it reaches.

        Args:
            header: Names of the columns.
            rows: Cells.
            widths: How wide the columns are, as shares.
        """
        self._table(header, rows, widths=widths, has_rules=True)

    def _table(
        self,
        header: Sequence[str] | None,
        rows: Sequence[Sequence[str]],
        *,
        widths: Sequence[int],
        has_rules: bool,
    ) -> None:
        from fpdf.enums import TableBordersLayout
        from fpdf.fonts import FontFace

        self._font(8.0)
        self._pdf.set_draw_color(*_RULE)
        layout = TableBordersLayout.HORIZONTAL_LINES if has_rules else TableBordersLayout.NONE
        with self._pdf.table(
            borders_layout=layout,
            col_widths=tuple(widths),
            first_row_as_headings=header is not None,
            headings_style=FontFace(emphasis="BOLD", fill_color=_WASH),
            line_height=8.0 * _MM_PER_PT * _LINE,
            padding=(0.8, 1.2),
            text_align="LEFT",
            v_align="TOP",
        ) as table:
            for cells in ([header] if header is not None else []) + list(rows):
                row = table.row()
                for place, cell in enumerate(cells):
                    is_name = header is None and place == 0
                    style = FontFace(color=_MUTED) if is_name else None
                    row.cell(self.text(cell), style=style)
        self._pdf.ln(1.5)

    # Letters -----------------------------------------------------------------------------------

    def _font(self, size: float, style: str = "", colour: tuple[int, int, int] = _INK) -> None:
        self._pdf.set_font(_FAMILY, style, size)
        self._pdf.set_text_color(*colour)

    def _write(
        self, text: str, *, size: float, style: str = "", colour: tuple[int, int, int] = _INK
    ) -> None:
        self._font(size, style, colour)
        height = size * _MM_PER_PT * _LINE
        self._pdf.multi_cell(0, height, self.text(text), align="L", new_x="LMARGIN", new_y="NEXT")

    def _keep_together(self, height_mm: float) -> None:
        if self._pdf.will_page_break(height_mm):
            self._pdf.add_page()

    def _foot(self, pdf: Any, footer: str) -> None:  # noqa: ANN401 - the library's own class
        """The foot of a page."""
        pdf.set_y(-_MARGIN_MM + 4.0)
        self._font(7.5, colour=_MUTED)
        pdf.cell(0, 4.0, self.text(footer), align="L")
        pdf.set_x(_MARGIN_MM)
        pdf.cell(0, 4.0, f"page {pdf.page_no()} of {_COUNT}", align="R")


def _pages(sheet: Sheet, footer: str) -> FPDF:
    try:
        from fpdf import FPDF
    except ImportError as err:
        raise MissingExtraError(f"documents need fpdf2: {pip_install('server')}") from err

    class Pages(FPDF):
        """Pages with a foot."""

        def footer(self) -> None:
            """The foot of a page."""
            sheet._foot(self, footer)  # noqa: SLF001 - a part of it

    return Pages(format="A4")
