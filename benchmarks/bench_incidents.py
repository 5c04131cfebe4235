"""What the incident log costs, beside the code of an earlier version on the same filings.

One process after the other builds the log, verifies it, prints rates, hours and lists, and merges
all of it into an empty log; printed are seconds of CPU, peak memory, and ratios of this version to
the earlier one. `--against` names that version; its files are taken out of git into a folder of
their own. Appends are measured beside bare SQLite commits of the same text, in turns in one
process. With `--records` another number of records; `--only-this` leaves the earlier version out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from incident_histories import IS_OLD, START_NS, fill

from robo_eval_incidents import open_log

AGAINST: Final = "e283b57"
ROOT: Final = Path(__file__).parents[1]
WANTED: Final = {
    "verify": 0.65, "rates": 0.5, "a page of todo": 0.05, "hours with findings": 0.7,
    "merge": 0.7, "list": 2.0, "filtered list": 2.0, "search": 2.0, "memory of verify, MB": 1.5,
}  # fmt: skip
"""Ratios of this version to the earlier one that are wanted at most."""
ROUNDS: Final = 20
PER_ROUND: Final = 250
_WHO: Final = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


# One version -----------------------------------------------------------------------------------


def work(folder: Path, count: int) -> dict[str, float]:
    """Seconds of CPU of each task, of this process and its helpers, and peak memory."""
    path = folder / "incidents.db"
    if not path.exists():
        fill(path, count)
    found: dict[str, float] = {}
    for name, task in _tasks(path).items():
        started = _cpu()
        task()
        found[name] = _cpu() - started
    return found


def verify(folder: Path) -> dict[str, float]:
    """The same of a verification, in a process of its own."""
    from robo_eval_incidents.verify import verify_log

    started = _cpu()
    report = verify_log(folder / "incidents.db")
    assert report.ok, report.problems
    own, largest = (resource.getrusage(who).ru_maxrss for who in _WHO)
    # The version before verified in as many processes as there are processors.
    kib = own + largest * (os.cpu_count() or 1)
    return {"verify": _cpu() - started, "memory of verify, MB": kib / 1024}


def merge(folder: Path) -> dict[str, float]:
    """Seconds until all of it is in an empty log and can be listed."""
    from robo_eval_incidents.merge import merge as merge_into

    started = _cpu()
    with (
        tempfile.TemporaryDirectory() as name,
        open_log(Path(name) / "incidents.db", station="office", make=True) as log,
    ):
        merge_into(folder / "incidents.db", log)
        _lists().list_incidents(log)
    return {"merge": _cpu() - started}


def _lists() -> Any:
    if IS_OLD:
        from robo_eval_incidents import page  # type: ignore[attr-defined]

        return page
    from robo_eval_incidents import lists

    return lists


def _tasks(path: Path) -> dict[str, Callable[[], object]]:
    from robo_eval_incidents.standing import standing

    lists = _lists()
    log = open_log(path, station="cell")
    if IS_OLD:
        from robo_eval_incidents.exposure import hours  # type: ignore[import-not-found]
        from robo_eval_incidents.todo import todo  # type: ignore[import-not-found]

        page: Callable[[], object] = lambda: todo(log)[:50]  # noqa: E731
    else:
        from robo_eval_incidents.hours import hours

        page = lambda: lists.todo(log, limit=50)  # noqa: E731
    wanted = lists.Filter(robot="cell_0", since_ns=START_NS + 10**15)
    return {
        "list": lambda: lists.list_incidents(log),
        "filtered list": lambda: lists.list_incidents(log, wanted),
        "search": lambda: lists.list_incidents(log, lists.Filter(text="thunderstorm")),
        "a page of todo": page,
        "rates": lambda: standing(log),
        "hours with findings": lambda: hours(log),
    }


def _cpu() -> float:
    both = (resource.getrusage(who) for who in _WHO)
    return sum(one.ru_utime + one.ru_stime for one in both)


# Both ------------------------------------------------------------------------------------------


def compare(count: int, against: str | None) -> None:
    """Every task by this version and the earlier one, and the ratio of both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = {"this": ROOT}
        if against is not None:
            places[against] = folder / "code"
            _take_out(against, places[against])
        found = {who: _measured(place, folder / who, count) for who, place in places.items()}
    print(f"{count:,} records, {platform.machine()}, Python {platform.python_version()}")
    for task, seconds in found["this"].items():
        line = f"{task:24} {seconds:9.3f}"
        if against is not None:
            before = found[against][task]
            line += f"   before {before:9.3f}   ratio {seconds / max(before, 1e-9):5.2f}"
            line += f" (at most {WANTED[task]})"
        print(line)


def _take_out(revision: str, folder: Path) -> None:
    folder.mkdir()
    files = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", folder], input=files.stdout, check=True)
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks", dirs_exist_ok=True)


def _measured(place: Path, folder: Path, count: int) -> dict[str, float]:
    folder.mkdir()
    paths = [place, *(place / name for name in ("incidents", "sim", "benchmarks"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    found: dict[str, float] = {}
    for step in ("work", "verify", "merge"):
        command = [sys.executable, str(place / "benchmarks" / "bench_incidents.py"), "--step", step,
                   "--folder", str(folder), "--records", str(count)]  # fmt: skip
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found |= json.loads(done.stdout)
    return found


# Appending -------------------------------------------------------------------------------------


def append() -> None:
    """Durable appends beside bare commits of as much text."""
    from robo_eval_incidents.words import Via

    fields = {
        "happened_ns": START_NS, "robot": "ur5e", "side": "real", "severity": "minor",
        "category": "protective_stop", "task": "pick",
        "description": "stopped 12 mm before the fixture, then released",
    }  # fmt: skip
    with (
        tempfile.TemporaryDirectory() as name,
        open_log(Path(name) / "incidents.db", station="bench", make=True) as log,
        closing(sqlite3.connect(Path(name) / "bare.db", isolation_level=None)) as bare,
    ):
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            bare.execute(f"PRAGMA {pragma}")
        bare.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, content TEXT NOT NULL)")
        record = log.record("report", fields, by="Operator A", via=Via.CLI)
        text = "".join(filter(None, record.forms()))
        seconds = [0.0, 0.0]
        for _ in range(ROUNDS):
            started = time.perf_counter()
            for _ in range(PER_ROUND):
                bare.execute("BEGIN IMMEDIATE")
                bare.execute("INSERT INTO line (content) VALUES (?)", (text,))
                bare.execute("COMMIT")
            middle = time.perf_counter()
            for _ in range(PER_ROUND):
                log.record("report", fields, by="Operator A", via=Via.CLI)
            seconds[0] += middle - started
            seconds[1] += time.perf_counter() - middle
    rates = [ROUNDS * PER_ROUND / one for one in seconds]
    print(
        f"append {rates[1]:,.0f}/s; bare commit of {len(text)} characters {rates[0]:,.0f}/s;"
        f" ratio {rates[1] / rates[0]:.2f} (at least 0.5)"
    )


def main() -> None:
    """Run all of it, or, as a helper, one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=150_000)
    parser.add_argument("--against", default=AGAINST)
    parser.add_argument("--only-this", action="store_true")
    parser.add_argument("--step", choices=("work", "verify", "merge"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step == "work":
        print(json.dumps(work(given.folder, given.records)))
    elif given.step is not None:
        print(json.dumps((verify if given.step == "verify" else merge)(given.folder)))
    else:
        append()
        compare(given.records, None if given.only_this else given.against)


if __name__ == "__main__":
    main()
