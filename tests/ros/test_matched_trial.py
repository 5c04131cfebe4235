"""A matched trial over real DDS: twin, guard, recorder and conductor as processes of their own."""

from __future__ import annotations

import csv
import json
import resource
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from robo_eval.core.canonical import file_digest
from robo_eval_incidents import open_log
from robo_eval_incidents.words import Category, Status

PLAN = """
name: matched
tasks:
  - env: RoboEval/CartPole3D-v0
    family: balancing
    levels: [0, 9]
    kwargs: {balls: 0}
policies: [balancer, random]
episodes: 1
# On a busy machine actions come late, and the pole may fall before the second tick. This start is
# ten times as near to upright as most, at both levels, and so it falls 0.7 s later.
seeds: {first: 1813}
sides: [sim, twin]
max_missed_ticks: null
order: interleaved
metrics: {resamples: 200}
injections:
  # Early for the same reason. A replay is compared from the fifth tick on.
  - {fault: command_dropout, episode: 0, level: 0, policy: balancer, tick: 1, ticks: 3}
  - {fault: estop, episode: 0, level: 9, policy: balancer, tick: 6}
"""
SHORT = """
name: short
tasks: [{env: RoboEval/CartPole3D-v0, kwargs: {balls: 0}, levels: [0]}]
policies: [balancer]
episodes: 2
sides: [sim, twin]
max_missed_ticks: null
"""
HANGS = """
import time
from robo_eval.agents.cartpole3d.balancer import Balancer

class Hangs(Balancer):
    def reset(self, *, seed=None):
        super().reset(seed=seed)
        self.ticks = 0

    def act(self, observation):
        self.ticks += 1
        if self.ticks == 20:
            time.sleep(1.5)
        return super().act(observation)

class Counts(Hangs):
    def act(self, observation):
        self.ticks += 1
        open("ticks", "w").write(str(self.ticks))
        return super(Hangs, self).act(observation)

class Breaks(Hangs):
    def act(self, observation):
        self.ticks += 1
        return 1 / 0 if self.ticks == 20 else super(Hangs, self).act(observation)

class Never(Hangs):
    def act(self, observation):
        self.ticks += 1
        while self.ticks == 20:
            try:
                time.sleep(1000)
            except BaseException:
                pass
        return super(Hangs, self).act(observation)
"""


@pytest.fixture
def plan(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "plan.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def robot(tmp_path: Path, twin: str) -> Callable[..., Path]:
    """A twin's robot file, with changes."""

    def write(name: str = "", **changes: str) -> Path:
        own = twin.replace("name: twin-", f"name: twin-{name}")
        for old, new in changes.items():
            assert old.replace("_", " ") in own or old in own
            own = own.replace(old, new)
        path = tmp_path / f"robot{name}.yaml"
        path.write_text(own)
        return path

    return write


def rows(trial: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{trial / 'episodes.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM episodes ORDER BY sequence")]


def notes(trial: Path, name: str) -> list[dict[str, str]]:
    with (trial / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def is_recording(trial: Path) -> bool:
    """Whether a bag has its first chunk."""
    return any(file.stat().st_size > 20_000 for file in trial.glob("traces/*/*.mcap"))


def test_pairs_from_plan_to_report(cli, plan, robot, tmp_path):
    trial = tmp_path / "trial"
    done = cli(
        "run", plan(PLAN), "--out", trial, "--sides", "sim,twin", "--robot", robot(), "--json"
    )
    assert done.code == 0, done.err
    assert json.loads(done.out)["unscored"] == 0
    logged = rows(trial)
    twin = {row["episode_id"]: row for row in logged if row["side"] == "twin"}
    sim = {row["pair_id"]: row for row in logged if row["side"] == "sim"}
    assert len(twin) == len(sim) == 4

    for row in twin.values():
        partner = sim[row["pair_id"]]
        for column in ("task", "level", "seed", "policy_digest", "initial_state"):
            assert partner[column] == row[column]
        assert json.loads(row["initial_state"])["balls"] == []
        assert (row["initial_state_source"], partner["initial_state_source"]) == ("topic", "state")
        assert row["robot"].startswith("twin-")
        measured = json.loads(row["control_quality"])
        periods = [measured[f"action_period_{which}_s"] for which in ("p50", "p99", "max")]
        assert 0.0 < periods[0] <= periods[1] <= periods[2]
        assert measured["missed_ticks"] >= 0.0
        assert measured["inference_p50_s"] > 0.0
        assert measured["clamped_requests"] == measured["dropped_messages"] == 0.0
    assert json.loads((trial / "preflight.json").read_text())["passed"] is True

    # The provoked emergency stop ended its episode and is one incident; the fault is noted.
    stopped = twin["t0-l09-easy-balancer-s1813-twin"]
    assert (stopped["end_reason"], stopped["success"]) == ("safety_stop", 0)
    with open_log(trial, read_only=True) as log:
        (incident,) = log.incidents()
    assert (incident.status, incident.category) == (Status.DRAFT, Category.EMERGENCY_STOP)
    assert (incident.report.episode_id, incident.report.side) == (stopped["episode_id"], "twin")
    assert "The plan had injected: estop." in incident.report.description
    piece = incident.evidence[-1]
    assert piece.uri.startswith(f"incidents/{incident.incident_id}-")
    cut = trial / piece.uri
    assert file_digest(cut) == piece.sha256
    with cut.open("rb") as stream:
        decoded = make_reader(stream, decoder_factories=[DecoderFactory()])
        pressed = {
            message.data
            for *_, message in decoded.iter_decoded_messages(topics=["/twin0/safety/estop"])
        }
    assert pressed == {True, False}
    again = ("incidents", "test", incident.name, "--log", trial, "--within-ms", "500", "--json")
    told = json.loads(cli(*again).out)
    assert (told["same"], told["was"], told["is"]) == (True, ["estop"], ["estop"])
    (fault,) = notes(trial, "faults")
    disturbed = twin["t0-l00-easy-balancer-s1813-twin"]
    is_overcome = disturbed["success"] or disturbed["ticks"] >= 1 + 3 + 50
    assert (fault["episode_id"], fault["fault"], fault["injected"], fault["recovered"]) == (
        disturbed["episode_id"], "command_dropout", "true", "true" if is_overcome else "false",
    )  # fmt: skip

    # Under the forces that were really applied the simulator follows an unperturbed twin.
    found = json.loads(cli("replay", trial, "--json").out)["episodes"]
    assert len(found) == 4
    for entry in found:
        known = [v for k, v in entry.items() if "_within_" in k and v is not None]
        assert known
        assert max(known) < 1e-9

    text = (trial / "report" / "metrics.json").read_text()
    assert "S2S" in text
    assert "S2R" not in text
    assert cli("verify", trial).code == 0
    page = (trial / "report" / "index.html").read_text()
    assert "AR_twin" in page
    assert f'href="../{piece.uri}"' in page

    before = len(logged)
    assert cli("partner", trial, "--no-report").code == 0
    assert len(rows(trial)) == before


@pytest.mark.slow
def test_the_bag_of_an_episode_holds_what_was_asked_and_what_was_applied(
    cli, plan, robot, tmp_path
):
    from rosbags.highlevel import AnyReader

    trial = tmp_path / "trial"
    text = SHORT.replace("episodes: 2", "episodes: 1").replace("balancer", "random")
    assert cli("run", plan(text), "-o", trial, "--sides", "twin", "--robot", robot()).code in (0, 1)
    (row,) = rows(trial)
    with AnyReader([trial / row["trace_uri"]]) as reader:
        counts = {connection.topic: connection.msgcount for connection in reader.connections}
        events = [
            json.loads(reader.deserialize(raw, connection.msgtype).data)["event"]
            for connection, _, raw in reader.messages()
            if connection.topic == "/twin0/episode/event"
        ]
    assert counts["/twin0/policy/joint_command"] == row["ticks"]
    # The guard passes each request on and then stops the robot.
    assert counts["/twin0/forward_effort_controller/commands"] > row["ticks"]
    assert counts["/twin0/joint_states"] >= row["ticks"]
    assert counts["/twin0/safety/state"] >= 1
    assert "start" in events
    assert "end" in events
    # The partner can be played later, on a machine without the robot.
    assert cli("partner", trial, "--no-report").code in (0, 1)
    assert [r["side"] for r in rows(trial)] == ["twin", "sim"]


@pytest.mark.slow
def test_a_twin_that_stays_silent_is_an_error_and_no_robot_of_another_machine(
    cli, plan, robot, tmp_path
):
    trial, file = tmp_path / "trial", robot()
    with file.open("a") as text:
        text.write("start_up_s: 0.05\n")
    run = "run", plan(SHORT), "-o", trial, "--sides", "twin", "--robot", file
    for command in (run, ("resume", trial)):
        done = cli(*command, "--no-report")
        assert done.code == 2, done.out
        assert "within 0.05 s" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["twin", "guard", "recorder"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
def test_a_process_that_dies_or_hangs_costs_the_running_episode_which_is_played_again(
    start, plan, robot, tmp_path, wait_until, is_alive, victim, number
):
    trial = tmp_path / "trial"
    command = start(
        "run", plan(SHORT), "-o", trial, "--sides", "twin", "--robot", robot(), "--json"
    )
    pids = command.wait_children()
    wait_until(lambda: is_recording(trial), "the first bag is written")
    signal_now(pids[victim], number)
    done = command.finish()
    assert done.code == 0, done.err
    first, second, again = rows(trial)
    assert (first["end_reason"], first["quality"]) == ("lost", None)
    assert victim in first["end_detail"]
    assert again["episode_id"] == f"{first['episode_id']}-a2"
    # How good they are depends on how busy the machine is.
    assert None not in (second["quality"], again["quality"])
    assert first["trace_sha256"]
    assert first["recovered"] == (victim == "recorder")
    assert not is_alive(pids[victim])


@pytest.mark.slow
def test_a_recording_with_a_hole_costs_its_episode_which_is_played_again(
    start, cli, plan, robot, tmp_path, wait_until
):
    trial = tmp_path / "trial"
    command = start(
        "run", plan(SHORT), "-o", trial, "--sides", "twin", "--robot", robot(), "--json"
    )
    pids = command.wait_children()
    wait_until(lambda: is_recording(trial), "the first bag is written")
    signal_now(pids["recorder"], signal.SIGSTOP)
    time.sleep(3.0)  # less than a recorder may be silent
    signal_now(pids["recorder"], signal.SIGCONT)
    done = command.finish()
    assert done.code == 0, done.err
    first, *others = rows(trial)
    assert (first["end_reason"], first["quality"]) == ("lost", None)
    assert first["end_detail"].startswith("the recording ")
    assert all(row["quality"] is not None for row in others)
    assert cli("verify", trial).code == 0


@pytest.mark.slow
def test_a_full_disk_ends_the_episode_and_the_run_in_one_line(
    start, cli, plan, robot, tmp_path, wait_until, is_alive
):
    (tmp_path / "policies.py").write_text(HANGS)
    trial = tmp_path / "trial"
    text = SHORT.replace("[balancer]", "[{name: counts, factory: 'policies:Counts'}]")
    command = start("run", plan(text), "-o", trial, "--sides", "twin", "--robot", robot(), "--json")
    pids = command.wait_children()
    wait_until(lambda: is_recording(trial), "the first bag is written")
    resource.prlimit(pids["recorder"], resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    done = command.finish()
    assert done.code not in (0, 1), done.err
    assert done.err.count("\n") == 1
    assert "cannot be written: File too large" in done.err
    assert int((tmp_path / "ticks").read_text()) < 200  # the episode did not go on to its end
    assert not any(map(is_alive, pids.values()))
    assert rows(trial) == []
    # There is room again.
    assert cli("resume", trial, "--no-report").code in (0, 1)
    first, *others = rows(trial)
    assert (first["end_reason"], first["recovered"]) == ("lost", 1)
    assert all(row["quality"] is not None for row in others)
    assert cli("verify", trial).code == 0


def signal_now(pid: int, number: int) -> None:
    import os

    os.kill(pid, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_is_stopped_stops_the_robot_and_goes_on_later(
    start, cli, plan, robot, tmp_path, wait_until, is_alive, number
):
    # On a busy machine actions come late, and the pole may fall before the stop comes.
    for attempt in range(3):
        trial = tmp_path / f"trial {attempt}"
        command = start(
            "run", plan(SHORT), "-o", trial, "--sides", "twin", "--robot", robot(), "--json"
        )
        pids = command.wait_children()
        wait_until(partial(is_recording, trial), "the first bag is written")
        command.process.send_signal(number)
        done = command.finish()
        assert done.code == 3, done.err
        assert "robot was stopped" in done.err
        assert not any(map(is_alive, pids.values()))
        (row,) = rows(trial)
        if row["end_reason"] != "failure":
            break
    assert (row["end_reason"], row["quality"]) == ("void", None)
    if number == signal.SIGINT:
        assert cli("resume", trial, "--no-report").code == 0
        scored = [
            (row["side"], row["end_reason"]) for row in rows(trial) if row["quality"] is not None
        ]
        assert scored.count(("sim", "success")) == 2
        assert [side for side, _ in scored].count("twin") == 2


@pytest.fixture
def killed(start, plan, robot, tmp_path, wait_until, is_alive):
    """A trial whose conductor was killed in its first episode, when all it started has ended."""
    trial = tmp_path / "trial"
    command = start("run", plan(SHORT), "-o", trial, "--sides", "twin", "--robot", robot())
    pids = command.wait_children()
    wait_until(lambda: is_recording(trial), "the first bag is written")
    command.process.kill()
    command.finish()
    wait_until(lambda: not any(map(is_alive, pids.values())), "guard, recorder and twin end")
    return trial


@pytest.mark.slow
def test_a_conductor_that_is_killed_leaves_nothing_running(cli, killed):
    trial = killed
    assert rows(trial) == []
    found = json.loads(cli("recover", trial, "--json").out)
    assert len(found["rows"]) == 1
    assert found["failed"] == []
    (row,) = rows(trial)
    assert (row["end_reason"], row["recovered"]) == ("lost", 1)
    again = json.loads(cli("recover", trial, "--json").out)
    assert (again["rows"], again["bags"]) == ([], [])
    assert cli("verify", trial).code == 0


@pytest.mark.slow
def test_resume_recovers_plays_and_fills_in_pairs_after_a_conductor_was_killed(cli, killed):
    trial = killed
    assert cli("resume", trial, "--no-report").code == 0
    logged = rows(trial)
    assert (logged[0]["end_reason"], logged[0]["recovered"]) == ("lost", 1)
    # What was lost is played again, and the trial is complete: nothing is there twice.
    assert [row["side"] for row in logged] == ["twin"] * 3 + ["sim"] * 2
    assert len({row["episode_id"] for row in logged}) == 5
    assert sum(row["quality"] is not None for row in logged) == 4
    again = json.loads(cli("resume", trial, "--no-report", "--json").out)
    assert (again["played"], again["elsewhere"]) == (0, [])
    assert rows(trial) == logged
    assert cli("verify", trial).code == 0


@pytest.mark.slow
def test_the_guard_stops_a_robot_whose_policy_hangs_and_one_that_never_answers_is_a_fault(
    cli, plan, quick_twin, tmp_path
):
    (tmp_path / "policies.py").write_text(HANGS)
    trial = tmp_path / "trial"
    text = SHORT.replace("episodes: 2", "episodes: 1").replace(
        "[balancer]",
        "[{name: hangs, factory: 'policies:Hangs'}, {name: breaks, factory: 'policies:Breaks'},"
        " {name: never, factory: 'policies:Never'}]\ndecision_timeout_s: 3",
    )
    robot = tmp_path / "robot.yaml"
    robot.write_text(quick_twin)
    done = cli("run", plan(text), "-o", trial, "--sides", "twin", "--robot", robot, "--json")
    assert done.code == 1
    ended = {row["policy"]: row for row in rows(trial)}
    assert ended["hangs"]["end_reason"] == "safety_stop"
    assert "command_age" in ended["hangs"]["end_detail"]
    assert ended["breaks"]["end_reason"] == "fault"
    assert "ZeroDivisionError" in ended["breaks"]["end_detail"]
    assert ended["never"]["end_reason"] == "fault"
    assert ended["never"]["end_detail"].startswith("the policy gave no action within 3 s")
    assert [ended[name]["fault_by"] for name in ("hangs", "breaks", "never")] == [
        None,
        "policy",
        "policy",
    ]


@pytest.mark.slow
def test_one_robot_one_run(start, cli, plan, robot, tmp_path):
    file, text = robot(), plan(SHORT)
    first = start("run", text, "-o", tmp_path / "one", "--sides", "twin", "--robot", file)
    first.wait_children()
    second = cli("run", text, "-o", tmp_path / "two", "--sides", "twin", "--robot", file)
    assert second.code == 2
    assert f"process {first.process.pid}" in second.err
    assert second.err.count("\n") == 1 + second.err.count("locked in")
    first.process.send_signal(signal.SIGTERM)
    assert first.finish().code == 3


@pytest.mark.slow
def test_two_robots_on_one_graph_do_not_meet(start, plan, robot, tmp_path):
    text = plan(SHORT.replace("balancer", "random"))
    commands = [
        start(
            "run", text, "-o", tmp_path / f"trial{name}", "--sides", "twin", "--no-report",
            "--robot", robot(name, **{"namespace: /twin0": f"namespace: /twin{name}"}), "--json",
        )
        for name in ("1", "2")
    ]  # fmt: skip
    for command in commands:
        done = command.finish()
        assert done.code == 0, done.err
    assert [len(rows(tmp_path / f"trial{name}")) for name in ("1", "2")] == [2, 2]


def test_a_robot_that_cannot_play_the_plan_is_refused_in_one_line(cli, plan, robot, tmp_path):
    for changes, said in (
        ({"velocity_m_s: 6.0": "velocity_deg_s: 6.0"}, "did you mean 'velocity_m_s'"),
        ({"control_rate_hz: 50": "control_rate_hz: 100"}, "acts 50 times a second"),
    ):
        done = cli("run", plan(SHORT), "-o", tmp_path / "t", "--sides", "twin", "--robot",
                   robot(**changes))  # fmt: skip
        assert done.code == 2
        assert said in done.err
        assert done.err.count("\n") == 1
        assert not (tmp_path / "t").exists()


def test_balls_are_for_the_simulator(cli, plan, robot, tmp_path):
    text = SHORT.replace("kwargs: {balls: 0}, ", "")
    done = cli("run", plan(text), "-o", tmp_path / "t", "--sides", "twin", "--robot", robot())
    assert done.code == 2
    assert "without balls" in done.err
