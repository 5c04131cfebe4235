"""What a page of the incident list costs over 100,000 incidents, beside the same page over 100.

Both logs are open in one process and are asked in turns, by way of the whole application: session,
query, template or JSON. Printed are medians and their ratio; at most 3 is wanted. A word that
nobody wrote is looked for in every incident. Lists are written with each record: what that takes
is printed first.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastapi.testclient import TestClient

from robo_eval.log.provenance import machine
from robo_eval.web.sessions import COOKIE
from robo_eval_incidents import open_log
from robo_eval_incidents.kinds import Report
from robo_eval_incidents.log import row_of
from robo_eval_incidents.record import Record, new_id, now, salted
from robo_eval_incidents.web.app import API, make_app
from robo_eval_incidents.web.deps import Site
from robo_eval_incidents.words import Category, Severity, Via

SMALL: Final = 100
LARGE: Final = 100_000
ROUNDS: Final = 40
WANTED: Final = 3.0
HAPPENED_NS: Final = 1_772_000_000 * 10**9
_BATCH: Final = 2_000
_STATION: Final = "bench"

PAGES: Final = {
    "page": "/incidents",
    "page, one robot": "/incidents?robot=arm_3",
    "page, critical": "/incidents?severity=critical",
    "page, a common word": "/incidents?text=fixture",
    "page, a word nobody wrote": "/incidents?text=thunderstorm",
    "page, the oldest": f"/incidents?after={HAPPENED_NS + 10}~{'f' * 36}",
    "list for programs": f"{API}/incidents",
    "list, one status": f"{API}/incidents?status=reported&side=real",
}
"""What is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A log that is asked.

    Attributes:
        client: Asks it.
        headers: Who asks, as a browser and as a program.
    """

    client: TestClient
    headers: dict[str, str]

    def seconds(self, path: str) -> float:
        """Seconds until an answer is there."""
        start = time.perf_counter()
        answer = self.client.get(path, headers=self.headers)
        took = time.perf_counter() - start
        assert answer.status_code == 200, answer.text[:200]
        return took


def fill(path: Path, count: int) -> float:
    """Writes a sound log of some incidents, with its lists; returns how many seconds it took."""
    start = time.perf_counter()
    with open_log(path, station=_STATION, make=True) as log:
        previous = "0" * 64
        for first in range(0, count, _BATCH):
            rows = []
            for number in range(first, min(count, first + _BATCH)):
                record = _record(number, previous)
                rows.append((record, row_of(record, *record.forms())))
                previous = str(rows[-1][1]["sha256"])
            with log.database.writing() as connection:
                log.put_records(connection, _STATION, rows)
    return time.perf_counter() - start


def _record(number: int, previous: str) -> Record:
    record_id, report = new_id(), _report(number)
    return Record(
        station=_STATION,
        sequence=number + 1,
        previous_sha256=previous,
        record_id=record_id,
        incident_id=record_id,
        at=now(),
        clock_step_ns=0,
        by="Operator A",
        via=Via.CLI,
        body=report,
        salts=salted("report", report),
    )


def _report(number: int) -> Report:
    return Report(
        happened_ns=HAPPENED_NS + number * 60 * 10**9,
        robot=f"arm_{number % 5}",
        side="real",
        severity=list(Severity)[number % 4],
        category=list(Category)[number % len(Category)],
        description=f"event {number}: stopped {number % 40} mm before the fixture, then released",
        task="pick",
    )


def opened(folder: Path, count: int, stack: ExitStack) -> tuple[Asked, float]:
    """A log with its application, and somebody who has logged in as browser and program."""
    path = folder / f"{count}.db"
    wrote_s = fill(path, count)
    app = make_app(path)
    site: Site = app.state.site
    user = site.accounts.add("auditor", "auditor has a password", ["auditor"], by="bench")
    headers = {
        "cookie": f"{COOKIE}={site.sessions.begin(user)}",
        "authorization": f"Bearer {site.sessions.begin(user, for_program=True)}",
    }
    client = stack.enter_context(TestClient(app, base_url="http://localhost"))
    return Asked(client=client, headers=headers), wrote_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=int, default=LARGE, help="incidents of the large log")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each is asked")
    given = parser.parse_args()
    where = machine()
    print(f"{where['cpu']}, {where['cores']} cores, {where['system']}")
    print(f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        small, _ = opened(Path(name), SMALL, stack)
        large, wrote_s = opened(Path(name), given.large, stack)
        print(
            f"\n{given.large:,} reports with their lists, written in transactions of {_BATCH:,}:"
            f" {wrote_s:.1f} s, {wrote_s / given.large * 1e6:.0f} us each"
        )
        print(
            f"\n{'ms':28}{SMALL:>10,}{given.large:>10,}{'ratio':>8} (at most {WANTED:g} is wanted)"
        )
        for title, path in PAGES.items():
            times: dict[str, list[float]] = {"small": [], "large": []}
            for number in range(given.rounds + 1):
                # In turns, so that whatever else the machine does falls on both.
                taken = {"small": small.seconds(path), "large": large.seconds(path)}
                if number:
                    for key, value in taken.items():
                        times[key].append(value)
            few, many = (statistics.median(times[key]) * 1e3 for key in ("small", "large"))
            print(f"  {title:26}{few:>10.1f}{many:>10.1f}{many / few:>8.2f}")


if __name__ == "__main__":
    main()
