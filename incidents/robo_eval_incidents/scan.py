"""Reading every record of a log: whether each is what its digest says, and in its place."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Generic, Self, TypeVar

from sqlalchemy import Connection, select

from robo_eval.core.errors import InputError
from robo_eval.core.wording import counted
from robo_eval.log.provenance import cores
from robo_eval.log.verify import Problem
from robo_eval_incidents.bodies import Account, Attachment, Body, Evidence, Report
from robo_eval_incidents.database import is_url
from robo_eval_incidents.log import open_log
from robo_eval_incidents.record import GENESIS, parsed
from robo_eval_incidents.schema import RECORDS
from robo_eval_incidents.text import person_key

_Seen = TypeVar("_Seen")

_PAGE: Final = 10_000
_LARGE: Final = 50_000
"""Records from which on several processes read them."""
_PART: Final = 25_000
"""Records that a process reads at a time."""
_MOST: Final = 100
"""Problems that are listed."""
_MOST_PROCESSES: Final = 4
_COLUMNS: Final = tuple(
    RECORDS.c[name]
    for name in ("number", "station", "sequence", "record_id", "about", "content", "sha256")
)


@dataclass(slots=True)
class Scan:
    """What consecutive records of a log say, and what is wrong with them.

    Attributes:
        name: The log, for messages.
        wanted: Records whose digest is asked for, by station and number.
        problems: What is wrong.
        records: How many there are.
        first: Number, digest of the one before, and row of the first record, by station.
        stations: Number and digest of the newest record, by station.
        found: Digests that were asked for.
        reports: Ids of incidents that are reported.
        about: Ids of incidents that are told of.
        accounts: Roles that records gave to each account.
        evidence: Files whose digest was recorded: by which record, path, and SHA-256.
        steps: Records that were written after somebody set the clock.
    """

    name: str = ""
    wanted: set[tuple[str, int]] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    records: int = 0
    first: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    stations: dict[str, tuple[int, str]] = field(default_factory=dict)
    found: dict[tuple[str, int], str] = field(default_factory=dict)
    reports: set[str] = field(default_factory=set)
    about: set[str] = field(default_factory=set)
    accounts: dict[str, set[frozenset[str]]] = field(default_factory=dict)
    evidence: list[tuple[str, str, str]] = field(default_factory=list)
    steps: int = 0

    def problem(self, what: str, row: int | None = None) -> None:
        """Note something that is not as it was recorded."""
        if len(self.problems) <= _MOST:
            self.problems.append(Problem(file=self.name, what=what, row=row))

    def take(
        self,
        number: int,
        station: Any,  # noqa: ANN401 - cells of an untrusted file
        sequence: Any,  # noqa: ANN401
        record_id: Any,  # noqa: ANN401
        about: Any,  # noqa: ANN401
        content: Any,  # noqa: ANN401
        stated: Any,  # noqa: ANN401
    ) -> None:
        """Look at the next record."""
        self.records += 1
        name = f"{station!s:.70}/{sequence!s:.20}"
        cells = (station, sequence, record_id, content)
        if tuple(map(type, cells)) != (str, int, str, str) or not isinstance(about, str | None):
            self.problem(f"{name}: has cells that are neither text nor number", number)
            return
        digest = sha256(content.encode()).hexdigest()
        if digest != stated:
            self.problem(
                f"{name}: was changed: its SHA-256 is {digest}, not {stated!s:.80}", number
            )
        if number < 1:
            self.problem(f"{name}: has the row number {number}, which no log gives", number)
        try:
            frame, body = parsed(content, where=name)
        except InputError as err:
            self.problem(str(err), number)
            return
        if (frame.station, frame.sequence, frame.record_id) != (station, sequence, record_id):
            self.problem(f"{name}: is filed as another record than it says it is", number)
        if about != (frame.incident_id if frame.incident_id != record_id else None):
            self.problem(f"{name}: is filed under another incident than it names", number)
        if station in self.stations:
            self._check_place(station, sequence, frame.previous_sha256, number)
        else:
            self.first[station] = (sequence, frame.previous_sha256, number)
        self.stations[station] = (sequence, digest)
        if (station, sequence) in self.wanted:
            self.found[station, sequence] = digest
        self.steps += bool(frame.clock_step_ns)
        self._note_said(name, record_id, about, body)

    def _check_place(self, station: str, sequence: int, previous: str, number: int) -> None:
        name = f"{station}/{sequence}"
        last, head = self.stations.get(station, (0, GENESIS))
        if sequence == last + 1:
            if previous != head:
                self.problem(f"{name}: does not follow the record before it", number)
            return
        if sequence > last:
            between = sequence - last - 1
            self.problem(f"{name}: {counted(between, 'record')} before it missing", number)
        else:
            self.problem(f"{name}: comes after {station}/{last}; records were moved", number)

    def _note_said(self, name: str, record_id: str, about: str | None, body: Body) -> None:
        """What a record says that other checks need."""
        if about is not None:
            self.about.add(about)
        match body:
            case Report():
                self.reports.add(record_id)
                self._note_evidence(name, body.evidence)
            case Attachment():
                self._note_evidence(name, body.evidence)
            case Account():
                self.accounts.setdefault(person_key(body.user), set()).add(frozenset(body.roles))
            case _:
                pass

    def _note_evidence(self, name: str, pieces: Sequence[Evidence]) -> None:
        for piece in pieces:
            if piece.sha256 is not None:
                self.evidence.append((name, piece.uri, piece.sha256))

    def join(self, later: Scan) -> None:
        """Go on with what was read of the records that come next."""
        for station, (sequence, previous, number) in later.first.items():
            self._check_place(station, sequence, previous, number)
        for problem in later.problems:
            self.problem(problem.what, problem.row)
        self.records += later.records
        self.stations |= later.stations
        self.found |= later.found
        self.reports |= later.reports
        self.about |= later.about
        for name, roles in later.accounts.items():
            self.accounts.setdefault(name, set()).update(roles)
        self.evidence += later.evidence
        self.steps += later.steps


class Helpers(Generic[_Seen]):
    """Processes that read a large log together, from the moment this is made.

    Args:
        target: The log.
        name: The log, for messages.
        newest: Row number of the newest record.
        wanted: Records whose digest is asked for.
        aside: What else is to be looked at meanwhile; of the target, in another process.
    """

    def __init__(
        self,
        target: str | Path,
        name: str,
        newest: object,
        wanted: set[tuple[str, int]],
        aside: Callable[[str | Path], _Seen],
    ) -> None:
        self._name = name
        self._wanted = wanted
        self._pool: ProcessPoolExecutor | None = None
        self._aside: Future[_Seen] | None = None
        self._parts: list[Future[Scan]] = []
        last = newest if isinstance(newest, int) else 0
        count = 1 if is_url(target) or last <= _LARGE else _processes()
        if count == 1:
            return
        self._pool = ProcessPoolExecutor(count, multiprocessing.get_context("fork"))
        # The longest piece first; the many small ones then keep every process busy to the end.
        self._aside = self._pool.submit(aside, target)
        bounds = (None, *range(_PART, last, _PART), last)
        self._parts = [
            self._pool.submit(_scanned_there, target, name, wanted, after, until)
            for after, until in pairwise(bounds)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def scan(self, connection: Connection) -> Scan:
        """All records, in the order of their rows.

        Args:
            connection: A transaction on the log.
        """
        # Joined to an empty one, also a single part begins where the chains have to.
        found = Scan(name=self._name, wanted=self._wanted)
        if self._pool is None:
            found.join(_scanned(connection, self._name, self._wanted, None, None))
        for part in self._parts:
            found.join(part.result())
        return found

    def aside(self) -> _Seen | None:
        """What was seen aside; None if nobody looked."""
        return None if self._aside is None else self._aside.result()


def _processes() -> int:
    # A program of several threads must not be forked.
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return min(cores(), _MOST_PROCESSES)


def _scanned_there(
    target: str | Path,
    name: str,
    wanted: set[tuple[str, int]],
    after: int | None,
    until: int | None,
) -> Scan:
    with open_log(target, read_only=True) as log, log.database.reading() as connection:
        return _scanned(connection, name, wanted, after, until)


def _scanned(
    connection: Connection,
    name: str,
    wanted: set[tuple[str, int]],
    after: int | None,
    until: int | None,
) -> Scan:
    found = Scan(name=name, wanted=wanted)
    try:
        for row in _rows(connection, after, until):
            found.take(*row)
    except InputError as err:
        # Half of it can be read: what was found until then, and what ended it.
        found.problem(str(err).removeprefix(f"{name}: "))
    return found


def _rows(connection: Connection, after: int | None, until: int | None) -> Iterator[Any]:
    """Records by their number, without the indexes."""
    query = select(*_COLUMNS).order_by(RECORDS.c.number).limit(_PAGE)
    if until is not None:
        query = query.where(RECORDS.c.number <= until)
    while True:
        rows = connection.execute(
            query if after is None else query.where(RECORDS.c.number > after)
        ).fetchall()
        yield from rows
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]
