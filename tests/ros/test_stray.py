"""An episode in which a stray node asks for motion is void, and played again when it is gone."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from robo_eval.core.kinds import EndReason
from robo_eval.core.plan import OTHER_AUTHOR
from robo_eval_incidents import open_log
from robo_eval_robot.attempt import Attempt
from robo_eval_robot.episode import without_strangers
from robo_eval_robot.link import Trip

HERE = Path(__file__).parent
PLAN = """
name: stray
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies: [balancer]
episodes: 1
sides: [twin]
"""


@pytest.mark.parametrize("end", [EndReason.SUCCESS, EndReason.SAFETY_STOP, EndReason.FAULT])
def test_whatever_an_attempt_ended_by_a_second_author_makes_it_void(end: EndReason) -> None:
    played = Attempt(end_reason=end, quality=1.0, success=True, episode_return=3.0)
    trips = [
        Trip(code=code, text="words", stamp_ns=0, values={}) for code in ("position", OTHER_AUTHOR)
    ]
    assert without_strangers(played, trips[:1]) is played
    void = without_strangers(played, trips)
    assert (void.end_reason, void.detail) == (EndReason.VOID, f"{OTHER_AUTHOR}: words")
    assert (void.success, void.quality, void.episode_return) == (None, None, None)


@pytest.mark.slow
def test_an_episode_of_two_authors_is_void_and_an_incident(
    start: Callable[..., Any], tmp_path: Path, twin: str, ros_environment: dict[str, str]
) -> None:
    from rosbags.highlevel import AnyReader

    (tmp_path / "robot.yaml").write_text(twin)
    (tmp_path / "plan.yaml").write_text(PLAN)
    trial = tmp_path / "trial"
    stray = subprocess.Popen(
        [sys.executable, str(HERE / "rig_stray.py"), "/twin0"],
        stdout=subprocess.PIPE,
        text=True,
        env=ros_environment,
    )
    try:
        done = start(
            "run", "plan.yaml", "-o", trial, "--sides", "twin", "--robot", "robot.yaml",
            "--no-report",
        ).finish()  # fmt: skip
        topic, *said = stray.communicate(timeout=60.0)[0].splitlines()
    finally:
        stray.kill()
        stray.wait()
    assert said == ["asked"], done.err
    assert re.fullmatch(r"/twin0/policy/joint_command/s[0-9a-f]{8}", topic)
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        logged = database.execute("SELECT * FROM episodes ORDER BY sequence").fetchall()
    assert done.code == 0, done.err
    void, again = logged
    assert (void["end_reason"], void["success"], void["quality"]) == ("void", None, None)
    assert void["end_detail"].startswith("other_author: /twin0/stray published on ")
    assert void["void_by"] is None
    assert again["attempt"] == 2
    assert again["quality"] is not None
    with open_log(trial, read_only=True) as log:
        (incident,) = log.incidents()
    assert incident.report.episode_id == void["episode_id"]
    assert "other_author" in incident.report.description
    # Bags keep the plain name; both authors are in it.
    with AnyReader([trial / void["trace_uri"]]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
    assert counts["/twin0/policy/joint_command"] > void["ticks"] > 0
    assert not [name for name in counts if name.startswith("/twin0/policy/joint_command/")]
