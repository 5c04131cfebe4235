"""What tests of the incident log share: an empty log, and ways to put something into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.bodies import Body, Nil, Report
from robo_eval_incidents.record import Record
from robo_eval_incidents.taxonomy import Category, Severity, Via

HAPPENED_NS = 1_772_000_000 * 10**9


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "lab" / "incidents.db"


@pytest.fixture
def log(path: Path) -> Iterator[IncidentLog]:
    """An empty log of the station `cell-1`."""
    with open_log(path, station="cell-1", make=True) as opened:
        yield opened


@pytest.fixture
def report() -> Callable[..., Report]:
    """Makes a report of a near miss on a real robot; arguments are fields that differ."""

    def make(**fields: Any) -> Report:
        values = {
            "happened_ns": HAPPENED_NS,
            "robot": "ur5e",
            "side": "real",
            "severity": Severity.NEAR_MISS,
            "category": Category.PROTECTIVE_STOP,
            "description": "stopped before the fixture",
        }
        return Report.model_validate(values | fields)

    return make


@pytest.fixture
def say() -> Callable[..., Record]:
    """Files a record as somebody who is logged in."""

    def file(log: IncidentLog, body: Body, by: str = "Operator A", **more: Any) -> Record:
        return log.file(body, **({"by": by, "via": Via.WEB} | more))

    return file


@pytest.fixture
def nil() -> Callable[[int], Nil]:
    """Makes the report of an hour in which nothing happened; the argument numbers it."""

    def make(number: int) -> Nil:
        start_ns = HAPPENED_NS + number * 3_600 * 10**9
        return Nil(start_ns=start_ns, end_ns=start_ns + 3_600 * 10**9)

    return make


@pytest.fixture
def tamper(path: Path) -> Callable[..., None]:
    """Changes the file behind the log's back."""

    def run(*statements: str, parameters: tuple[object, ...] = ()) -> None:
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement, parameters)
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    return run
