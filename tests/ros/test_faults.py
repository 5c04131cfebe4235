"""Messages that come late, twice, in another order, or broken: what the guard and the rows say."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from robo_eval_incidents import open_log

HERE = Path(__file__).parent
DEADLINE_S = 600.0
REMAPS = {
    "guard": ["/twin0/policy/joint_command:=/twin0/wire/requests"],
    "twin": [
        "/twin0/forward_effort_controller/commands:=/twin0/wire/commands",
        "/twin0/joint_states:=/twin0/wire/joint_states",
        "/twin0/imu_sensor_broadcaster/imu:=/twin0/wire/imu",
    ],
}
PLAN = """
name: faults
tasks: [{{env: RoboEval/CartPole3D-v0, kwargs: {{balls: 0}}, levels: [0]}}]
policies: [balancer]
episodes: {episodes}
sides: [sim, twin]
max_missed_ticks: null
"""
HOUR_S = 3600.0
LONG = 1000
"""More messages than are left in an episode."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fault, and what follows: causes the guard may stop for; none if it must not stop."""

    name: str
    fault: dict[str, Any]
    causes: tuple[str, ...] = ()
    counted: str = ""
    """A measure of the row that must be more than zero."""
    is_late: bool = False
    """Whether late messages may take the cart out of its margins, where the guard has to stop it.

    A busy computer adds to their delay, and a balancer that acts on what was balances worse."""
    is_silent: bool = False
    """Whether no states come for so long that the twin seems to hang."""

    def is_stopped_by(self, cause: str) -> bool:
        """Whether the guard may stop for a cause."""
        return cause in self.causes or (self.is_late and cause in {"position", "velocity"})


def case(
    name: str, channel: str, *causes: str, counted: str = "", is_late: bool = False,
    is_silent: bool = False, **fault: Any,
) -> Case:  # fmt: skip
    whole = {"channel": channel, "from": 5, "count": LONG, **fault}
    return Case(
        name=name, fault=whole, causes=causes, counted=counted, is_late=is_late, is_silent=is_silent
    )  # fmt: skip


HUNG = "the twin hung, and was ended"
"""Whose states do not come hangs, as far as anybody can tell; it is played again at the end."""
PATIENCE_S = 2.0
"""Of the guard: on a busy computer whoever asks may not run for a second.

An episode takes four. The twin brakes after 0.5 s without commands."""
CASES: tuple[Case, ...] = (
    case("requests NaN", "requests", "command_not_finite", kind="value", value="nan", count=3),
    case("requests swapped", "requests", kind="swap", count=40, counted="refused_requests"),
    case("states NaN", "states", "state_not_finite", kind="value", value="nan", count=3),
    case("states late", "states", "state_age", kind="late", seconds=3.2, is_silent=True),
    case("requests infinite", "requests", "command_not_finite", kind="value", value="-inf"),
    case("requests short", "requests", "command_length", kind="short", count=3),
    case("requests beyond", "requests", "command_effort", kind="value", value=1e3, count=3),
    case("requests twice", "requests", kind="twice", count=60, counted="refused_requests"),
    case("requests a little late", "requests", kind="late", seconds=0.06, count=40, is_late=True),
    case("requests much too late", "requests", "command_age", kind="late", seconds=3.2,
         **{"from": 0}),
    case("requests lost for 0.2 s", "requests", kind="drop", count=10),
    case("requests lost", "requests", "command_age", kind="drop", **{"from": 0}),
    case("requests of an hour ago", "requests", "command_age", kind="stamp", seconds=-HOUR_S),
    case("requests of the future", "requests", "command_future", kind="stamp", seconds=HOUR_S),
    case("requests in a storm", "requests", kind="storm", of=["drop", "twice", "swap"],
         counted="refused_requests"),
    case("states infinite", "states", "state_not_finite", kind="value", value="inf", count=3),
    case("states short", "states", "state_length", kind="short", count=3),
    case("states twice", "states", kind="twice"),
    case("states swapped", "states", "state_clock", kind="swap"),
    case("states a little late", "states", kind="late", seconds=0.06, is_late=True),
    case("states lost for 0.2 s", "states", kind="drop", count=10, counted="missed_ticks"),
    case("states lost", "states", "state_age", kind="drop", is_silent=True),
    case("states in a storm", "states", kind="storm", of=["drop", "twice"]),
    case("clock an hour back", "states", "state_clock", kind="stamp", seconds=-HOUR_S),
    case("clock an hour on and back", "states", "state_clock", kind="stamp", seconds=HOUR_S,
         count=10),
    case("clock an hour on", "states", kind="stamp", seconds=HOUR_S),
    case("commands NaN", "commands", kind="value", value="nan", count=5),
    case("commands NaN for good", "commands", kind="value", value="nan"),
    case("commands short", "commands", kind="short", count=5),
    case("commands beyond", "commands", "effort", "acceleration", "velocity", "position",
         kind="value", value=1e3),
    case("commands twice", "commands", kind="twice"),
    case("commands swapped", "commands", kind="swap", count=40),
    case("commands late", "commands", kind="late", seconds=0.06, count=40),
    case("commands lost", "commands", kind="drop"),
)  # fmt: skip


# `sitecustomize.py` of processes whose wall clock is set while they run; their monotonic clock goes
# on, as on a computer. What the middleware stamps by itself is not concerned.
CLOCK = """
import os, pathlib, time
command = pathlib.Path("/proc/self/cmdline").read_text()
if os.environ.get("RIG_CLOCK_OF", "-") in command:
    file, wall, wall_ns = pathlib.Path(os.environ["RIG_CLOCK"]), time.time, time.time_ns
    time.time = lambda: wall() + float(file.read_text() or 0)
    time.time_ns = lambda: wall_ns() + round(1e9 * float(file.read_text() or 0))
"""
STAMPED = "A request is stamped"


def clock(name: str, seconds: float, *causes: str, at: int = 5) -> Case:
    return case(name, "states", *causes, kind="clock", seconds=seconds, count=1, **{"from": at})


@dataclass
class Between:
    """The process in between."""

    process: subprocess.Popen[str]
    lines: list[dict[str, Any]] = field(default_factory=list)

    def read(self, key: str) -> Any:
        """The next value of a name it says."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.lines.append(json.loads(line))
            if key in self.lines[-1]:
                return self.lines[-1][key]
        raise AssertionError(f"the rig ended and did not say {key!r}: {self.lines[-3:]}")

    def seen(self) -> dict[str, Any]:
        """What passed it so far."""
        assert self.process.stdin is not None
        self.process.stdin.write("seen\n")
        self.process.stdin.flush()
        found: dict[str, Any] = self.read("seen")
        return found

    def episodes(self) -> list[str]:
        return [line["episode"] for line in self.lines if "episode" in line]


@dataclass
class Played:
    """A trial that was played with faults."""

    code: int
    err: str
    summary: dict[str, Any]
    trial: Path
    rows: dict[str, dict[str, Any]]
    incidents: dict[str, str]
    """First cause of the first incident of each episode."""
    seen: dict[str, Any]
    episodes: list[str]
    """Names, in the order they started."""


@pytest.fixture
def play(tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]) -> Callable[..., Played]:
    """Play one episode a fault on a robot, with somebody in between."""

    def call(robot: str, faults: list[Any], **extra: str) -> Played:
        (tmp_path / "robot.yaml").write_text(robot)
        (tmp_path / "plan.yaml").write_text(PLAN.format(episodes=len(faults)))
        options = {"channels": ["requests", "commands", "states", "imu"], "faults": faults}
        rig = Between(begin(HERE / "rig_faults.py", json.dumps(options), **extra))
        rig.read("up")
        trial = tmp_path / "trial"
        run = begin(
            HERE / "rig_run.py", "run", "plan.yaml", "-o", trial, "--sides", "twin",
            "--robot", "robot.yaml", "--json", "--no-report",
            RIG_REMAPS=json.dumps(REMAPS), **extra,
        )  # fmt: skip
        out, err = run.communicate(timeout=DEADLINE_S)
        assert (trial / "episodes.db").exists(), err
        seen = rig.seen()
        with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as rows:
            rows.row_factory = sqlite3.Row
            found = {row["episode_id"]: dict(row) for row in rows.execute("SELECT * FROM episodes")}
        incidents: dict[str, str] = {}
        with open_log(trial, read_only=True) as log:
            for incident in log.incidents():
                said = incident.report.description.splitlines()
                first = next(line.removeprefix("- ") for line in said if line.startswith("- "))
                incidents.setdefault(str(incident.report.episode_id), first)
        return Played(
            code=run.returncode, err=err, summary=json.loads(out) if out else {}, trial=trial,
            rows=found, incidents=incidents, seen=seen, episodes=rig.episodes(),
        )  # fmt: skip

    return call


def problems(case: Case, row: dict[str, Any], incident: str | None) -> list[str]:
    """How what was logged of an episode differs from what its fault should lead to."""
    ended, detail = row["end_reason"], row["end_detail"] or ""
    said = f"{case.name}: ended by {ended} ({detail}), incident {incident}"
    found = []
    if case.causes or (case.is_late and ended == "safety_stop"):
        cause = detail.removeprefix("guard: ")
        if ended != "safety_stop" or not case.is_stopped_by(cause):
            found.append(said)
        if incident is None or not incident.startswith(f"{cause}: "):
            found.append(f"{said}: not the incident of this stop")
    elif ended not in ("success", "failure") or incident is not None:
        found.append(said)
    if row["quality"] is None or row["trace_sha256"] is None:
        found.append(f"{said}: without score or bag")
    measures = json.loads(row["control_quality"])
    if case.counted and not measures.get(case.counted, 0.0) > 0.0:
        found.append(f"{case.name}: {case.counted} of {measures}")
    if not 0.0 <= measures.get("missed_ticks", 0.0) <= 200.0:
        found.append(f"{case.name}: {measures['missed_ticks']:g} missed ticks")
    return found


@pytest.mark.slow
def test_what_is_wrong_between_processes_is_survived_or_stops_the_robot(
    play: Callable[..., Played], waiting_twin: Callable[[float], str]
) -> None:
    played = play(waiting_twin(PATIENCE_S), [case.fault for case in CASES])
    hung = [name for name, row in played.rows.items() if row["end_detail"] == HUNG]
    assert (played.code, len(played.episodes)) == (0, len(CASES) + len(hung)), played.err
    assert {f"{name}-a2" for name in hung} == set(played.episodes[len(CASES) :])
    wrong = [
        problem
        for case, name in zip(CASES, played.episodes[: len(CASES)], strict=True)
        if not (case.is_silent and name in hung)
        for problem in problems(case, played.rows[name], played.incidents.get(name))
    ]
    assert not wrong, "\n".join(wrong)
    assert played.summary["unscored"] == 0
    # What the guard sent was always two finite numbers, and so were the twin's states.
    assert played.seen["commands"] > 20 * len(CASES)
    assert (played.seen["broken_commands"], played.seen["broken_states"]) == (0, 0)
    assert played.seen["last"] == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whose", "cases"),
    [
        # All on one computer. A request that was on its way when the clock was set may look old, or
        # of the future.
        (
            "python",
            (
                clock("an hour on", HOUR_S),
                clock("and back", 0.0),
                clock("as before", 0.0),
                clock("an hour back", -HOUR_S),
                clock("and on", 0.0),
            ),
        ),
        # The guard's alone, as on another computer.
        (
            "guard_node",
            (
                clock("an hour on", HOUR_S, "command_age"),
                clock("right again", 0.0, at=0),
                clock("an hour back", -HOUR_S, "command_future"),
                clock("right again", 0.0, at=0),
            ),
        ),
    ],
    ids=["of the computer", "of the guard"],
)
def test_a_clock_that_is_set_misleads_no_watchdog(
    play: Callable[..., Played],
    quick_twin: str,
    tmp_path: Path,
    whose: str,
    cases: tuple[Case, ...],
) -> None:
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    (tmp_path / "clock").write_text("0")
    faults, file = [case.fault for case in cases], str(tmp_path / "clock")
    played = play(quick_twin, faults, RIG_CLOCK=file, RIG_CLOCK_OF=whose)
    assert (played.code, len(played.episodes)) == (0, len(cases)), played.err
    wrong = []
    for case, name in zip(cases, played.episodes, strict=True):
        incident = played.incidents.get(name)
        if not case.causes and incident and STAMPED in incident:
            continue  # the request that was on its way
        wrong += problems(case, played.rows[name], incident)
    assert not wrong, "\n".join(wrong)
    assert played.summary["unscored"] == 0
    assert (played.seen["broken_commands"], played.seen["last"]) == (0, [0.0, 0.0])
