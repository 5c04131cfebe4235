"""The live view over real DDS: what it draws, and that nobody notices when it dies."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rerun", reason="Rerun is not installed: pip install .[view]")

PLAN = """
name: viewed
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies: [balancer]
episodes: 2
sides: [sim, twin]
max_missed_ticks: null
blind: true
injections: [{fault: estop, episode: 1, level: 0, policy: balancer, tick: 100}]
"""
THREE = """
name: viewed
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies: [balancer]
episodes: 3
sides: [sim, twin]
max_missed_ticks: null
"""


@pytest.fixture
def given(tmp_path: Path, twin: str) -> Callable[[str], tuple[Any, ...]]:
    """Command line of a trial on a twin that nobody else uses, without its target."""

    def write(plan: str) -> tuple[Any, ...]:
        (tmp_path / "plan.yaml").write_text(plan)
        robot = tmp_path / "robot.yaml"
        robot.write_text(twin)
        out = ("--out", tmp_path / "trial", "--sides", "twin", "--robot", robot)
        return ("run", tmp_path / "plan.yaml", *out, "--no-report", "--json")

    return write


def samples(file: Path) -> dict[str, list[tuple[float, Any]]]:
    """Seconds since the run began and value of everything that is drawn, by entity."""
    from rerun.chunk import RrdReader

    reader = RrdReader(file)
    (recording,) = reader.recordings()
    found: defaultdict[str, list[tuple[float, Any]]] = defaultdict(list)
    for chunk in reader.stream(store=recording):
        if chunk.is_static:
            continue
        assert {"run", "wall_time"} <= set(chunk.timeline_names)
        columns = chunk.to_record_batch().to_pydict()
        (name,) = (n for n in columns if n.endswith((":scalars", ":state", ":text")))
        for moment, value in zip(columns["run"], columns[name], strict=True):
            found[chunk.entity_path].append((moment.total_seconds(), value[0]))
    return {path: sorted(points) for path, points in found.items()}


def rows(trial: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM episodes ORDER BY sequence")]


def view_of(run: subprocess.Popen[str]) -> int | None:
    """Process id of the view a run has started."""
    listing = subprocess.run(
        ["pgrep", "-a", "-P", str(run.pid)], capture_output=True, text=True
    ).stdout
    for line in listing.splitlines():
        if ".view " in line:
            return int(line.split()[0])
    return None


@pytest.mark.slow
def test_every_tick_is_drawn_with_limits_guard_and_episodes(cli, given, tmp_path):
    file = tmp_path / "live.rrd"
    done = cli(*given(PLAN), "--view-to", file)
    assert done.code in (0, 1), done.err  # an episode that was stopped is scored, and may fail
    # Nobody waits for a view: on a busy machine it may miss the first episode.
    row = rows(tmp_path / "trial")[-1]
    assert row["end_reason"] == "safety_stop"
    drawn = samples(file)

    lanes = {path: [value for _, value in points] for path, points in drawn.items()}
    (begin, name), (end, after) = drawn["/states/episode"][-2:]
    assert (name, after) == ("t0-l00-easy-A-s1001", "")  # a blind trial names no policy
    assert "balancer" not in json.dumps(lanes["/log"])
    assert "RUNNING" in lanes["/states/guard"]
    assert lanes["/states/guard"][-1] in ("ESTOP", "READY", "PROTECTIVE_STOP")
    assert "ESTOP" in lanes["/states/guard"]
    assert "pressed" in lanes["/states/emergency\\ stop"]
    assert any("estop" in line for line in lanes["/log"])

    def during(path: str) -> list[float]:
        return [value for moment, value in drawn[path] if begin <= moment <= end]

    # A view asks for no receipts, so that a message may be lost; here hardly one is.
    ticks = row["ticks"]
    assert ticks > 90
    for path in (
        "/joints/position_m/cart_x",
        "/joints/velocity_m_s/cart_y",
        "/joints/position_rad/pole_roll",
        "/commands/effort_n/requested/cart_x",
        "/commands/effort_n/applied/cart_y",
    ):
        assert len(during(path)) >= 0.95 * ticks, path
    assert len(during("/commands/effort_n/requested/cart_x")) <= ticks + 2
    limits = "/limits/joints/position_m/all"
    assert set(lanes[f"{limits}/lowest"]) == {-4.4}
    assert set(lanes[f"{limits}/highest"]) == {4.4}
    assert set(lanes["/limits/commands/effort_n/all/highest"]) == {12.0}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_view_that_dies_or_hangs_costs_nothing(start, given, tmp_path, wait_until, number):
    file = tmp_path / "live.rrd"
    run = start(*given(THREE), "--view-to", file)
    trial = tmp_path / "trial"
    wait_until(lambda: any(trial.glob("traces/*/*.mcap")), "an episode is recorded")
    wait_until(lambda: file.exists() and file.stat().st_size > 200_000, "the view draws")
    view = view_of(run.process)
    assert view is not None
    os.kill(view, number)
    done = run.finish()
    assert done.code == 0, done.err
    # Scored at once, and no safety stop; on a busy machine a pole may fall all by itself.
    assert {row["end_reason"] for row in rows(trial)} <= {"success", "failure"}
    assert [row["attempt"] for row in rows(trial)] == [1, 1, 1]
    assert view_of(run.process) is None
    # What it had written can still be read.
    assert samples(file)["/joints/position_m/cart_x"]
