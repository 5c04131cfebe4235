"""How a table is laid out for a screen, so that names and numbers stay whole on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Final

from rich.cells import cell_len

_PIPE: Final = 160
"""Width where there is no screen, unless names and numbers need more."""
_BETWEEN, _TIGHT = "   ", "  "
"""What stands between columns, and where they fit side by side by that alone."""
_LEAST: Final = 24
"""Width that a sentence gets at least beside other columns."""
_LONG: Final = 40
"""Letters from which a sentence is told once in a narrow table."""


class Table:
    """Cells to be laid out.

    Args:
        columns: Names of the columns.
        rows: Cells of each row.
        right: Columns that are aligned to the right.
        prose: Columns of sentences, which may go on in the next line after any word.
        keys: How many columns say together what a row is of; where the others do not fit, they
            follow each other in parts, each behind these. 0 if rows are kept together.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        right: Collection[int] = (),
        prose: Collection[int] = (),
        keys: int = 0,
    ) -> None:
        self.columns, self.rows = columns, rows
        self.right, self.prose, self.keys = right, prose, keys
        self._between = _BETWEEN
        # Width of each column in which nothing goes on in the next line, and the width it needs.
        self._most, self._least = [], []
        for place, name in enumerate(columns):
            cells = [row[place] for row in rows]
            whole = _widest(line for cell in cells for line in cell.split("\n"))
            words = _widest(word for cell in cells for word in cell.split())
            least = max(words, min(whole, _LEAST)) if place in prose else whole
            self._most.append(max(cell_len(name), whole))
            self._least.append(max(_widest(name.split()), least))

    def laid_out(self, width: int | None) -> tuple[list[str], list[str]]:
        """Lines of the head and of the rows, in the way that takes the fewest.

        Where not all columns fit side by side, a name that rows share stands above them, sentences
        or all but the names stand below their row, and a long sentence is told once. A line is
        longer than the width only where a single name or word is.

        Args:
            width: Of the screen, in letters; None without one: then no row is taken apart.
        """
        every = range(len(self.columns))
        if width is None or self._needed(every, self._most) <= width:
            return self._lines(every, width or max(_PIPE, self._needed(every, self._least)))
        if self._needed(every, self._least) > width >= self._needed(every, self._least, _TIGHT):
            self._between = _TIGHT
            return self._lines(every, width)
        beside = [[*every[: self.keys], place] for place in every[self.keys :]]
        if self.keys and all(self._needed(part, self._least) <= width for part in beside):
            return self._in_parts(width)
        names = [row[0] for row in self.rows]
        is_shared = bool(self.columns[0]) and any(one == other for one, other in pairwise(names))
        rows = self._told_once(int(len(every) > 1 and (is_shared or not self.columns[0])))
        told = Table(self.columns, rows, right=self.right, prose=self.prose)
        return told.taken_apart(width, is_shared=is_shared)

    def _in_parts(self, width: int) -> tuple[list[str], list[str]]:
        """Tables of the same rows below each other, each with as many columns as fit."""
        keys, parts = [*range(self.keys)], [[*range(self.keys)]]
        for place in range(self.keys, len(self.columns)):
            if self._needed([*parts[-1], place], self._least) > width:
                parts.append([*keys])
            parts[-1].append(place)
        head, body = self._lines(parts[0], width, whole=False)
        for part in parts[1:]:
            more, rows = self._lines(part, width, whole=False)
            body += ["", *more, *rows]
        return head, body

    def taken_apart(self, width: int, *, is_shared: bool) -> tuple[list[str], list[str]]:
        """The same where some columns stand above or below the others, if that is shorter."""
        every = range(len(self.columns))
        firm = [place for place in every if place not in self.prose]
        ways: list[Sequence[int]] = [every, *([every[1:]] if is_shared and every[1:] else [])]
        ways += [firm[:count] for count in range(len(firm), 0, -1)]
        fitting = [way for way in ways if self._needed(way, self._least) <= width]
        laid = [self._lines(way, width) for way in fitting or ways[-1:]]
        return min(laid, key=lambda one: len(one[0]) + len(one[1]))

    def _told_once(self, name: int) -> list[list[str]]:
        """The rows, where a long sentence that an earlier one has names that one instead."""
        first: dict[str, str] = {}
        rows = [list(row) for row in self.rows]
        for row in rows:
            own = row[name]
            for place in self.prose:
                cell = row[place]
                if cell in first:
                    row[place] = "as above" if first[cell] == own else f"as for {first[cell]}"
                elif own and cell_len(cell) > _LONG + cell_len(own):
                    first[cell] = own
        return rows

    def _needed(self, way: Sequence[int], widths: Sequence[int], between: str = _BETWEEN) -> int:
        """Width of some columns side by side."""
        gaps = len(between) * (len(way) - 1)
        return len(_start(way)) + gaps + sum(widths[place] for place in way)

    def _lines(
        self, way: Sequence[int], width: int, *, whole: bool = True
    ) -> tuple[list[str], list[str]]:
        """Lines of head and rows with some columns side by side.

        The first stands above the rows if it is not one of them; the others stand below, if rows
        are to be whole.
        """
        wanted = {place: self._most[place] - self._least[place] for place in way}
        spare = max(0, width - self._needed(way, self._least, self._between))
        share = min(1.0, spare / max(1, sum(wanted.values())))
        widths = {place: self._least[place] + int(more * share) for place, more in wanted.items()}
        below = [place for place in range(1, len(self.columns)) if whole and place not in way]
        head = [f" {self.columns[0]}"] if 0 not in way else []
        head += [line for line in self._beside(self.columns, widths) if line]
        body, above = [], ""
        for row in self.rows:
            if 0 not in way and row[0] not in ("", above):
                above = row[0]
                body.append(f" {above}")
            body += self._beside(row, widths)
            body += self._below(row, below, width)
        return head, body

    def _beside(self, cells: Sequence[str], widths: Mapping[int, int]) -> Iterator[str]:
        """Lines of a row with some columns side by side."""
        parts = [wrapped(cells[place], width) for place, width in widths.items()]
        for line in zip_longest(*parts, fillvalue=""):
            padded = [
                f"{' ' * (width - cell_len(part))}{part}" if place in self.right
                else f"{part}{' ' * (width - cell_len(part))}"
                for (place, width), part in zip(widths.items(), line, strict=True)
            ]  # fmt: skip
            yield f"{_start(list(widths))}{self._between.join(padded)}".rstrip()

    def _below(self, row: Sequence[str], places: Sequence[int], width: int) -> Iterator[str]:
        """Lines of what stands below a row: each with the name of its column."""
        start = 2 * _BETWEEN
        room = width - len(start)
        parts = []
        for name, cell in ((self.columns[place], row[place]) for place in places if row[place]):
            text = f"{name}: {cell}" if name else cell
            is_apart = cell_len(text) > room >= cell_len(cell)
            parts += [f"{name}:", cell] if is_apart else [text]
        for line in _filled(parts, _BETWEEN, room):
            yield from (f"{start}{part}" for part in wrapped(line, room) if part)


def _start(way: Sequence[int]) -> str:
    """What a line begins with: rows are moved in below what they share."""
    return " " if 0 in way else _BETWEEN


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of a text that goes on in the next line between words only, as far in as it began."""
    lines = []
    for part in text.split("\n"):
        if cell_len(part) <= width:
            lines.append(part)
            continue
        start = part[: len(part) - len(part.lstrip())]
        lines += [f"{start}{line}" for line in _filled(part.split(), " ", width - len(start))]
    return lines


def _filled(parts: Iterable[str], between: str, width: int) -> list[str]:
    """Lines that each hold as many parts as fit."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}{between}{part}" if lines[-1] else part
        if lines[-1] and cell_len(longer) > width:
            lines.append(part)
        else:
            lines[-1] = longer
    return lines
