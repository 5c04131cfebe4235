"""What tests of the incident log share: an empty log, and ways to put something into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents import IncidentLog, open_log
from robo_eval_incidents.bodies import Body, Nil, Report
from robo_eval_incidents.record import Record
from robo_eval_incidents.taxonomy import Category, Severity, Via

HAPPENED_NS = 1_772_000_000 * 10**9
HOUR_NS = 3_600 * 10**9
PLAN = """
name: lab
tasks: [{levels: [0], env: RoboEval/CartPole3D-v0}]
policies: [balancer]
episodes: 3
sides: [sim, twin, real]
metrics: {resamples: 200}
"""


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


@pytest.fixture
def played(tmp_path: Path) -> Callable[..., Path]:
    """Makes a trial with an hour of exposure for each physical episode, one every two hours."""

    def make(name: str = "trial", **changed: Any) -> Path:
        trial = TrialDirectory.create(tmp_path / name, parse_plan(PLAN, source="plan"))
        rows = []
        for side in trial.plan.sides:
            for number, planned in enumerate(schedule(trial.plan, side)):
                is_sim = side is Side.SIM
                fields: dict[str, Any] = {
                    "policy_digest": "1" * 64,
                    "start_ns": HAPPENED_NS + 2 * number * HOUR_NS,
                    "duration_s": 4.0 if is_sim else 3600.0,
                    "exposure_s": 0.0 if is_sim else 3600.0,
                    "ticks": 200,
                    "episode_return": 1.0,
                    "quality": 1.0,
                    "success": True,
                    "end_reason": EndReason.SUCCESS,
                    "software": "robo-eval 1",
                    "robot": None if is_sim else f"gantry-{side}",
                }
                own = {} if is_sim else changed
                rows.append(row_for(planned, trial.plan, trial.plan_digest, **(fields | own)))
        with EpisodeStore(trial.path, durable=False) as store:
            store.append(rows)
            trial.write_manifest(status="complete", store=store)
        return trial.path

    return make
