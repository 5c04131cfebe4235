"""Durable appends to an incident log beside bare SQLite commits, and how long verifying takes.

Appends and bare commits of the same text, with the same sync setting, take turns in one process, in
one folder. Logs of 10,000 to 1,000,000 records are written in bulk, and each is verified in a
process of its own: printed are seconds, peak memory, and the slope of seconds over records, both on
logarithmic scales: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from robo_eval.log.chain import GENESIS
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.kinds import Body, Nil, Report
from robo_eval_incidents.lists import list_incidents
from robo_eval_incidents.log import Head, row_of
from robo_eval_incidents.record import Record, content_digest, new_id, now
from robo_eval_incidents.schema import RECORDS
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.words import Category, Severity, Via

ROUNDS: Final = 20
PER_ROUND: Final = 250
SIZES: Final = (10_000, 100_000, 1_000_000)
_BATCH: Final = 20_000


def report_of(number: int) -> Report:
    """A report of some length."""
    return Report(
        happened_ns=1_772_000_000 * 10**9 + number * 10**9,
        robot="ur5e" if number % 3 else "franka",
        side="real",
        severity=list(Severity)[number % 2],
        category=Category.PROTECTIVE_STOP,
        description=f"event {number}: stopped {number % 40} mm before the fixture, then released",
        task="pick",
    )


# Appending -------------------------------------------------------------------------------------


def bench_append() -> None:
    """Durable appends beside bare commits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            open_log(folder / "incidents.db", station="bench", make=True) as log,
            closing(_bare(folder / "bare.db")) as bare,
        ):
            reports = [report_of(number) for number in range(PER_ROUND)]
            text = log.file(reports[0], by="Operator A", via=Via.CLI).content()
            _append(log, reports)
            _commit(bare, text, PER_ROUND)
            ours, theirs = 0.0, 0.0
            for _ in range(ROUNDS):
                theirs += _timed(lambda: _commit(bare, text, PER_ROUND))
                ours += _timed(lambda: _append(log, reports))
    count = ROUNDS * PER_ROUND
    print(
        f"append: {count / ours:,.0f}/s; bare commit of {len(text)} characters:"
        f" {count / theirs:,.0f}/s; ratio {theirs / ours:.2f} (at least 0.5 is wanted)"
    )


def _bare(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, content TEXT NOT NULL)")
    return connection


def _commit(bare: sqlite3.Connection, text: str, count: int) -> None:
    for _ in range(count):
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("INSERT INTO line (content) VALUES (?)", (text,))
        bare.execute("COMMIT")


def _append(log: IncidentLog, reports: list[Report]) -> None:
    for report in reports:
        log.file(report, by="Operator A", via=Via.CLI)


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# Verifying -------------------------------------------------------------------------------------


def fill(path: Path, count: int) -> None:
    """A sound log of some records, one in ten a report; written in few transactions."""
    with open_log(path, station="bench", make=True) as log:
        log.file(report_of(0), by="Operator A", via=Via.CLI)
        head = log.heads()["bench"]
        while head.sequence < count:
            end = min(count, head.sequence + _BATCH)
            rows = []
            while head.sequence < end:
                record = _next(head, report_of(head.sequence) if head.sequence % 10 == 0 else None)
                content = record.content()
                digest = content_digest(content)
                rows.append(row_of(record, content, digest))
                head = Head(sequence=record.sequence, sha256=digest, at=record.at)
            with log.database.writing() as connection:
                connection.execute(RECORDS.insert(), rows)
                log.put_heads(connection, {"bench": head})
        list_incidents(log)


def _next(head: Head, body: Body | None) -> Record:
    record_id = new_id()
    return Record(
        station="bench",
        sequence=head.sequence + 1,
        previous_sha256=head.sha256 or GENESIS,
        record_id=record_id,
        incident_id=record_id if body is not None else None,
        at=now(),
        clock_step_ns=0,
        by="Operator A",
        via=Via.CLI,
        body=body or Nil(start_ns=head.sequence, end_ns=head.sequence + 1, robot="ur5e"),
    )


def bench_verify(sizes: tuple[int, ...]) -> None:
    """Seconds and memory of verifying, by the number of records."""
    seconds: dict[int, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "incidents.db"
            fill(path, size)
            command = [sys.executable, __file__, "--verify", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        seconds[size] = found["seconds"]
        print(
            f"verify: {size:>9,} records in {found['seconds']:6.2f} s, peak {found['mb']:,.0f} MB"
            + (" (under 20 s is wanted)" if size == 1_000_000 else "")
        )
    small, large = min(sizes), max(sizes)
    if small < large:
        slope = math.log(seconds[large] / seconds[small]) / math.log(large / small)
        print(f"verify: slope {slope:.2f}")


def verify_one(path: Path) -> None:
    """Verify a log in this process, and say how long it took."""
    start = time.perf_counter()
    found = verify_log(path)
    seconds = time.perf_counter() - start
    assert found.ok, found.problems
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "mb": peak}))


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, help="verify a log of one size only")
    parser.add_argument("--verify", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.verify is not None:
        verify_one(arguments.verify)
        return
    print(f"{platform.machine()}, Python {platform.python_version()}")
    bench_append()
    bench_verify((arguments.records,) if arguments.records else SIZES)


if __name__ == "__main__":
    main()
