"""What anybody may have of a competition whose seeds are revealed: given as lines, and fetched."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPException
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import insert
from sqlalchemy.exc import SQLAlchemyError

from robo_eval.compete.ledger import DATABASE, FILE, REVEAL, Ledger, Refusal
from robo_eval.compete.link import answered, checked_url
from robo_eval.compete.tables import FORM, SHOWN
from robo_eval.core.errors import InputError, said
from robo_eval.log.sql import Database, create

PATH: Final = "/v1/record"
_LINE_BYTES: Final = 64 * 2**20
_READ: Final = 2**20
_START_S: Final = 60.0
_SLOWEST: Final = 50_000
"""Bytes a second; whoever sends less is not waited for."""
_MOST_BYTES: Final = 8 * 2**30
_PORTION: Final = 1_000
"""Rows that are written at once."""


def lines(ledger: Ledger) -> Iterator[bytes]:
    """All that `check` needs, as lines of JSON: files and names first, then each row of a table.

    No token, no note, and nothing of the server is among them. Bytes are told in base64.

    Raises:
        Refusal: Before the first line, if the seeds are not revealed: `unrevealed`.
    """
    folder, meta = ledger.folder, ledger.meta()
    if "revealed_ns" not in meta or not (folder / REVEAL).exists():
        raise Refusal(
            "what was played is shown once the competition is closed and its seeds are revealed;"
            " GET /v1/me says what comes next",
            "unrevealed",
        )
    files = {name: (folder / name).read_text(encoding="utf-8") for name in (FILE, REVEAL)}
    version = meta.pop("version")
    return _told(ledger, {"version": version, "meta": meta, "files": files})


def _told(ledger: Ledger, head: dict[str, Any]) -> Iterator[bytes]:
    yield _line(head)
    n = 0
    for table, row in ledger.shown():
        n += 1
        yield _line({"table": table, "row": row})
    yield _line({"rows": n})


def _line(told: dict[str, Any]) -> bytes:
    return json.dumps(told, default=lambda data: base64.b64encode(data).decode()).encode() + b"\n"


def fetched(url: str, folder: Path, most_bytes: int = _MOST_BYTES) -> Path:
    """Fetch what a server shows into a new folder, which `check` takes like any other.

    Nothing of it is run, and no name of a file comes from it.

    Args:
        url: Where the competition is served.
        folder: The new folder.
        most_bytes: More than that is not taken.

    Raises:
        InputError: If it is something else, too large, or not shown yet.
        CompetitionError: If there is no competition.
    """
    where = checked_url(url)
    with answered(where, PATH, timeout_s=60.0) as answer:
        try:
            _keep(_lines_of(answer, most_bytes), folder)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError,
                HTTPException, SQLAlchemyError, zlib.error) as err:  # fmt: skip
            raise InputError(
                f"{where}: shows no competition that can be checked: {said(err):.200}"
            ) from err
    return folder


def _lines_of(answer: Any, left: int) -> Iterator[dict[str, Any]]:
    """Each line of an answer, which has to come at a least speed from its first minute on."""
    begin_s, n, held = time.monotonic(), 0, bytearray()
    while data := answer.read1(_READ):
        n += len(data)
        if n > left or len(held) > _LINE_BYTES:
            raise ValueError("it is larger than any that is taken")
        if time.monotonic() - begin_s > _START_S + n / _SLOWEST:
            raise ValueError("it comes too slowly; try again")
        *whole, rest = data.split(b"\n")
        for part in whole:
            yield _told_by(held + part)
            held.clear()
        held += rest
    if held:
        yield _told_by(held)


def _told_by(line: bytes | bytearray) -> Any:
    try:
        return json.loads(line)
    except RecursionError as err:
        raise ValueError("a line is nested too deeply; ask the organiser for the folder") from err


def _keep(told: Iterator[dict[str, Any]], folder: Path) -> None:
    """Make the folder of what was told."""
    head = next(told, {})
    if head["version"] != FORM.version:
        raise ValueError(f"its ledger is of version {head['version']!r:.20}; use its robo-eval")
    folder.mkdir()
    for name in (FILE, REVEAL):
        (folder / name).write_text(head["files"][name], encoding="utf-8")
    create(folder / DATABASE, FORM, {str(name): str(one) for name, one in head["meta"].items()})
    n, last = 0, {}
    with closing(Database(folder / DATABASE, FORM)) as database:
        while rows := list(islice(told, _PORTION)):
            last = rows[-1]
            with database.writing() as db:
                for name, some in groupby(rows, key=lambda one: one.get("table")):
                    if name is not None:
                        own = [_row(one["row"]) for one in some]
                        n += len(own)
                        db.execute(insert(SHOWN[name]), own)
    if last != {"rows": n}:
        raise ValueError(f"it breaks off after {n:,} rows; try again")


def _row(told: dict[str, Any]) -> dict[str, Any]:
    """A row as it is kept; what would unfold to more than a line may have is refused."""
    if told.get("actions") is None:
        return told
    actions = base64.b64decode(told["actions"], validate=True)
    if zlib.decompressobj().decompress(actions, _LINE_BYTES + 1)[_LINE_BYTES:]:
        raise ValueError("actions of an episode are larger than any that are taken")
    return {**told, "actions": actions}
