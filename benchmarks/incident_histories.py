"""The same filings in an incident log of this version, or of an earlier one of this repository."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robo_eval_incidents import log as logs
from robo_eval_incidents import open_log, record
from robo_eval_incidents.schema import RECORDS

START_NS: Final = 1_700_000_000 * 10**9
HOUR_NS: Final = 3_600 * 10**9
STATIONS: Final = ("cell", "truck")
IS_OLD: Final = hasattr(logs, "row_of") and hasattr(logs, "head_row")
"""Whether the code at hand is that before the log was rebuilt."""
_BATCH: Final = 20_000


@dataclass(frozen=True, slots=True)
class Filing:
    """What somebody filed: `number` is its place among all, from which its time follows."""

    number: int
    station: str
    kind: str
    body: dict[str, Any]
    by: str
    via: str
    record_id: str
    about: str | None = None
    after: tuple[str, ...] = ()


def filings(count: int) -> Iterator[Filing]:
    """Filings of two stations: a fifth incidents, half of them settled, hours, and some shifts."""
    draw = random.Random(5)
    number = 0
    open_ones: list[tuple[str, str, str]] = []  # incident, its newest record, station
    while number < count:
        station = STATIONS[number % 2]
        record_id = str(uuid.UUID(int=draw.getrandbits(128), version=4))
        at_ns = START_NS + number * 10**12 // 4
        robot = f"{station}_{number % 5}"
        turn = number % 50
        if turn < 10:
            body = {
                "happened_ns": at_ns, "robot": robot, "side": "real",
                "severity": ("near_miss", "minor", "major", "critical")[number // 50 % 4],
                "category": "protective_stop",
                "description": f"event {number}: stopped {number % 40} mm before the fixture",
                "task": "pick",
            }  # fmt: skip
            by_rule = draw.random() < 0.3
            yield Filing(number, station, "report", body, "robo-eval" if by_rule else "A. Example",
                         "rule" if by_rule else "web", record_id)  # fmt: skip
            open_ones.append((record_id, record_id, station))
        elif turn < 22 and open_ones:
            incident, newest, its = open_ones.pop(0) if turn % 2 else open_ones[0]
            review = {"verdict": "confirmed", "note": "seen in the trace"}
            yield Filing(number, its, "review", review, f"{'BC'[turn % 2]}. Example", "web",
                         record_id, incident, (newest,))  # fmt: skip
            if open_ones and open_ones[0][0] == incident:
                open_ones[0] = (incident, record_id, its)
        elif turn == 49:
            body = {"start_ns": at_ns, "end_ns": at_ns + 8 * HOUR_NS, "note": "late shift"}
            yield Filing(number, station, "nil", body, "A. Example", "cli", record_id)
        else:
            body = {
                "robot": robot, "side": "real", "mode": ("autonomous", "assisted", "off")[turn % 3],
                "task": "pick", "trial": f"{number // 500:064x}", "episode_id": f"e{number}",
                "start_ns": at_ns, "seconds": 200.0 + turn,
            }  # fmt: skip
            yield Filing(number, station, "exposure", body, "robo-eval", "rule", record_id)
        number += 1


def fill(path: Path, count: int) -> None:
    """Write a sound log of these filings in few transactions, with its lists."""
    if IS_OLD:
        _fill_old(path, count)
        return
    waiting: dict[str, list[Any]] = {name: [] for name in STATIONS}
    last: dict[str, Any] = {}
    with open_log(path, station="cell", make=True) as log:

        def put(station: str) -> None:
            if waiting[station]:
                with log.database.writing() as connection:
                    log.put_records(connection, station, waiting[station])
                waiting[station].clear()

        for made in _records(count, last):
            row = logs.row_of(made, *made.forms())
            last[made.station] = (made.sequence, row["sha256"])
            waiting[made.station].append((made, row))
            if len(waiting[made.station]) >= 2_000:
                put(made.station)
        for station in STATIONS:
            put(station)


def _records(count: int, last: dict[str, tuple[int, str]]) -> Iterator[Any]:
    """Records of the filings, each after the one of its station in `last`."""
    for one in filings(count):
        sequence, previous = last.get(one.station, (0, "0" * 64))
        body = _kinds()[one.kind].model_validate(one.body)
        more = {} if IS_OLD else {"salts": record.salted(one.kind, body)}
        time_ns = START_NS + one.number * 10**10
        yield record.Record(
            station=one.station, sequence=sequence + 1, previous_sha256=previous,
            record_id=one.record_id,
            incident_id=one.record_id if one.kind == "report" else one.about,
            at=record.Instant(time_ns=time_ns, monotonic_ns=one.number, boot_id="bench"),
            clock_step_ns=0, by=one.by, via=_via(one.via), body=body, after=one.after, **more,
        )  # fmt: skip


def _kinds() -> Any:
    if IS_OLD:
        from robo_eval_incidents.bodies import BODIES  # type: ignore[import-not-found]

        return BODIES
    from robo_eval_incidents.kinds import KINDS

    return KINDS


def _via(word: str) -> Any:
    if IS_OLD:
        from robo_eval_incidents.taxonomy import Via  # type: ignore[import-not-found]

        return Via(word)
    from robo_eval_incidents.words import Via as Door

    return Door(word)


def _fill_old(path: Path, count: int) -> None:
    from robo_eval_incidents.page import list_incidents  # type: ignore[import-not-found]

    old: Any = logs
    last: dict[str, tuple[int, str]] = {}
    heads: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    with open_log(path, station="cell", make=True) as log:
        opened: Any = log

        def put() -> None:
            with log.database.writing() as connection:
                if rows:
                    connection.execute(RECORDS.insert(), rows)
                    opened.put_heads(connection, heads)
            rows.clear()

        for made in _records(count, last):
            content = made.content()
            digest = record.content_digest(content)
            rows.append(old.row_of(made, content, digest))
            last[made.station] = (made.sequence, digest)
            heads[made.station] = old.Head(sequence=made.sequence, sha256=digest, at=made.at)
            if len(rows) >= _BATCH:
                put()
        put()
        list_incidents(log)
