"""The records of a CSV file, whoever wrote it, with the line each of them begins in."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Final, TextIO

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.files import explained

REMARKS: Final = ("#", "%", "//")
"""What lines before the header begin with that hold remarks."""
_SEPARATOR: Final = re.compile(r'"?sep=(?P<sign>.)"?', re.IGNORECASE)
"""What Excel reads in a first line: the delimiter."""
_FOREIGN: Final = (
    (
        "PK\x03\x04",
        "is a workbook or an archive; save its sheet as CSV; import eval-info reads an .npz",
    ),
    ("\ufffd\ufffd\x11", "is an old workbook (.xls); save its sheet as CSV (UTF-8)"),
    ("\ufffdMCAP", "is a recording; robo-eval import bag reads it"),
    ("PAR1", "is Parquet; write it as CSV, with pandas.read_parquet(...).to_csv(...)"),
    ("SQLite format 3", "is a database; export its table as CSV"),
    ("{", "is JSON; robo-eval import eval-info reads results of lerobot-eval, others become CSV"),
    ("[", "is JSON; write its list of episodes as CSV"),
    ("<", "is HTML or XML; open it in a spreadsheet and save it as CSV (UTF-8)"),
)
"""What files begin with that are taken for CSV, and what to do with them."""


def check_kind(path: Path, head: bytes) -> None:
    """Refuse what is given as CSV and begins like something else.

    Raises:
        InputError: If it does; the message says what it is, and what would do.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").lstrip()
    for sign, what in _FOREIGN:
        if text.startswith(sign):
            raise InputError(f"{path}: {what}")


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A CSV file, open as text: UTF-8, or UTF-16 with its byte order mark.

    Raises:
        InputError: If it is no such text, or begins like something else.
        TrialDirectoryError: If it cannot be read.
    """
    with explained(path, "cannot be read"):
        with door.opened(path) as start:
            head = start.read(100)
        check_kind(path, head)
        encoding = "utf-16" if head[:2] in door.UTF_16 else "utf-8-sig"
        try:
            with path.open(encoding=encoding, newline="") as file:
                yield file
        except UnicodeError as err:
            # Read again: the error counts from the start of some buffer.
            door.decoded(door.bytes_of(path), path)
            raise InputError(f"{path}: changed while it was read; read it again") from err


class Records:
    """The header of a CSV file and its records, read as they come.

    Remarks and `sep=;` may stand before the header. Records have as many cells as the header
    names, apart from blank ones at the end, which spreadsheets write. Blank records are left out.

    Args:
        path: The file, for messages.
        lines: Its lines, with their ends.
        delimiter: Separates cells; if it is None the file may say so itself, else it is a comma.
        comment: What lines begin with that are left out; empty for none.
        skip: How many lines stand before the header.
        wanted: Columns by which a header is known that begins like a remark.

    Attributes:
        header: The names of the columns, up to the last that is not blank.
        delimiter: What separates cells.
        line: The line the header or the newest record begins in.
        remarks: Lines of remarks before the header.
        comments: Lines that were left out because they begin with `comment`.

    Raises:
        InputError: If there is no header, or it is not CSV.
    """

    def __init__(
        self,
        path: Path,
        lines: Iterable[str],
        *,
        delimiter: str | None = None,
        comment: str = "",
        skip: int = 0,
        wanted: Collection[str] = (),
    ) -> None:
        self._path = path
        self._comment = comment
        # Of all tables only those with a map of columns can have remarks further down.
        remedy = (
            "set comment in the column map if such lines are remarks; if another header follows"
        )
        remedy += ", two tables were joined: import each as a file of its own"
        self._remedy = f"; {remedy if wanted else 'remarks stand above the header only'}"
        self._begins = True
        self._lines = enumerate(lines, start=1)
        self.delimiter = delimiter or ","
        self.line = 1
        self.remarks = self.comments = 0
        for number, _ in islice(self._lines, skip):
            self.line = number
        texts = self._texts()
        for first in texts:
            sign = _SEPARATOR.fullmatch(first.rstrip("\r\n"))
            if sign and delimiter is None:
                self.delimiter = sign["sign"]
            is_remark = not sign and self._is_remark(first, wanted)
            self.remarks += is_remark
            if not (sign or is_remark):
                break
            self._begins = True
        else:
            left_out = skip or comment or self.remarks
            problem = "only holds lines that are left out" if left_out else "is empty"
            raise InputError(f"{path}: {problem}; it needs a header line")
        if "\0" in first:
            raise InputError(f"{path}: line {self.line}: holds NUL bytes; save the table as UTF-8")
        self._rows = csv.reader(chain([first], texts), delimiter=self.delimiter, strict=True)
        names = self._next() or []
        # Excel ends lines by two signs, within cells as well.
        own = _without_empty_end(names)
        self.header = [name.strip().replace("\r\n", "\n") for name in own]

    def _texts(self) -> Iterator[str]:
        """The lines; where a record begins, without those that are comments."""
        for number, text in self._lines:
            if self._begins:
                self.line = number
                if self._comment and text.startswith(self._comment):
                    self.comments += 1
                    continue
                self._begins = False
            yield text

    def _is_remark(self, text: str, wanted: Collection[str]) -> bool:
        # A spreadsheet puts a remark with a comma in it between quotes.
        if not text.removeprefix('"').startswith(REMARKS):
            return False
        names = next(csv.reader([text], delimiter=self.delimiter), [])
        return not (wanted and set(wanted) <= {name.strip() for name in names})

    def _next(self) -> list[str] | None:
        self._begins = True
        # Cells may have any length; the limit is one of the whole process.
        before = csv.field_size_limit(door.LARGEST_FILE)
        try:
            return next(self._rows, None)
        except csv.Error as err:
            raise InputError(f"{self._path}: line {self.line}: is not CSV: {err}") from err
        finally:
            csv.field_size_limit(before)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """The line each record begins in, and its cells, as many as the header names.

        Raises:
            InputError: If it is not CSV, or has other cells.
        """
        width = len(self.header)
        while (cells := self._next()) is not None:
            if len(cells) != width:
                given = _without_empty_end(cells)
                if not given:
                    continue
                if len(given) > width or len(cells) < width:
                    hint = self._remedy if cells[0].startswith(REMARKS) else ""
                    raise InputError(
                        f"{self._path}: line {self.line}: has {len(cells)} cells, the header has"
                        f" {width}{hint}"
                    )
                cells = cells[:width]
            elif not any(map(str.strip, cells)):
                continue
            yield self.line, cells

    def other_delimiter(self) -> str | None:
        """What else would divide a header of one column."""
        if len(self.header) != 1:
            return None
        return next((sign for sign in ";\t," if sign in self.header[0]), None)

    def following(self, most: int) -> Iterator[tuple[int, list[str]]]:
        """The next lines as they are, each as if it were a record, with their numbers."""
        for number, text in islice(self._lines, most):
            yield number, next(csv.reader([text], delimiter=self.delimiter), [])


def records(path: Path, data: bytes, delimiter: str | None = None) -> Records:
    """The records of what a CSV file holds; see `Records`.

    Raises:
        InputError: If it is no text, or begins like something else.
    """
    check_kind(path, data[:100])
    text = door.decoded(data, path)
    found = Records(path, io.StringIO(text, newline=""), delimiter=delimiter)
    if (other := found.other_delimiter()) is not None:
        raise InputError(f"{path}: its columns are divided by {called(other)}; save it with commas")
    return found


def called(sign: str) -> str:
    """A delimiter as messages and maps have it."""
    return "tab" if sign == "\t" else repr(sign)


def _without_empty_end(cells: list[str]) -> list[str]:
    """The cells up to the last that is not blank."""
    n = len(cells)
    while n and not cells[n - 1].strip():
        n -= 1
    return cells[:n]
