"""What the live view draws, from messages to a file, and where it refuses to go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from robo_eval.cli.view import view_target
from robo_eval.core.errors import InputError, MissingExtraError
from robo_eval.core.kinds import Side
from robo_eval_robot.config import RobotConfig, read_robot
from robo_eval_robot.view_layout import Group, Layout, Source

TWIN = (Side.SIM, Side.TWIN)


@pytest.fixture
def robot() -> RobotConfig:
    import robo_eval_twin

    return read_robot(Path(robo_eval_twin.__file__).with_name("gantry_twin.yaml"))


def test_a_plot_for_each_quantity_and_unit(robot):
    layout = Layout(robot)
    assert [plot.title for plot in layout.plots] == [
        "command: effort (N)",
        "position (m)",
        "position (rad)",
        "velocity (m/s)",
        "velocity (rad/s)",
        "effort (N)",
        "effort (N m)",
    ]
    assert layout.curve("velocity", "cart_x") == ("joints", "velocity_m_s", "cart_x")
    assert layout.curve("effort", "pole_roll") == ("joints", "effort_nm", "pole_roll")
    command = layout.command(Source.APPLIED, "cart_y")
    assert command == ("commands", "effort_n", "applied", "cart_y")
    limits = {plot.path: [(b.name, b.low, b.high) for b in plot.lines] for plot in layout.plots}
    assert limits["joints", "position_m"] == [("all", -4.4, 4.4)]
    assert limits["commands", "effort_n"] == [("all", -12.0, 12.0)]
    assert limits["joints", "position_rad"] == []


def test_limits_that_differ_and_a_tool_have_lines_of_their_own():
    config = Path(__file__).parents[3] / "ros2_ws/src/robo_eval_bringup/config/ur5e.yaml"
    layout = Layout(read_robot(config))
    by_path = {plot.path: plot for plot in layout.plots}
    velocity = by_path["joints", "velocity_rad_s"]
    assert len(velocity.names) == 6
    assert len(velocity.bounds) == 6
    assert all(bound.low == -bound.high for bound in velocity.bounds)
    for plot in layout.plots:
        if plot.group is Group.TOOL:
            assert [bound.name for bound in plot.lines] in (plot.names, ["all"])


def test_messages_become_curves_lanes_and_lines(robot, tmp_path):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed: pip install .[ros]")
    pytest.importorskip("rerun", reason="Rerun is not installed: pip install .[view]")
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
    from rerun.chunk import RrdReader
    from sensor_msgs.msg import JointState
    from std_msgs.msg import Bool, Float64MultiArray, String

    from robo_eval.core.blinding import Blinding
    from robo_eval_robot.view import Listener
    from robo_eval_robot.view_picture import Picture

    layout, began_ns = Layout(robot), 1_700_000_000_000_000_000
    picture = Picture(layout, began_ns=began_ns, title="test")
    picture.show(str(tmp_path / "a.rrd"))
    handlers = {
        topic.removeprefix("/twin0/"): handler
        for topic, (_, handler) in Listener(robot, layout, picture, Blinding({"mine": "B"}))
        .handlers()
        .items()
    }

    def hear(topic: str, message: object, second: float) -> None:
        handlers[topic](message, began_ns + int(second * 1e9))

    def guard(state: str, cause: str = "") -> DiagnosticArray:
        values = [KeyValue(key="state", value=state), KeyValue(key="cause", value=cause)]
        return DiagnosticArray(status=[DiagnosticStatus(name="guard", values=values)])

    event = {"event": "start", "episode_id": "x", "pair_id": "t0-mine-s1"}
    hear("episode/event", String(data=json.dumps(event)), 1.0)
    hear("episode/event", String(data="no json"), 1.0)
    # By name, in any order; what is not measured is left out, and so is who is not ours.
    states = JointState(name=["other", "cart_y", "cart_x"], position=[9.0, 2.0, 1.0])
    hear("joint_states", states, 1.5)
    request = JointState(name=["cart_y", "cart_x"], effort=[4.0, 3.0])
    hear("policy/joint_command", request, 1.5)
    hear("forward_effort_controller/commands", Float64MultiArray(data=[3.0, 4.0]), 1.6)
    hear("safety/state", guard("RUNNING"), 1.7)
    hear("safety/state", guard("RUNNING"), 1.8)
    hear("safety/estop", Bool(data=True), 1.9)
    hear("safety/state", guard("ESTOP", "estop"), 2.0)
    end = {"event": "end", "episode_id": "x", "end_reason": "safety_stop"}
    hear("episode/event", String(data=json.dumps(end)), 2.1)
    picture.limits(began_ns)
    picture.close()

    reader = RrdReader(tmp_path / "a.rrd")
    drawn: dict[str, list[tuple[float, object]]] = {}
    for chunk in reader.stream(store=reader.recordings()[0]):
        columns = chunk.to_record_batch().to_pydict()
        for name in columns:
            if not chunk.is_static and name.endswith((":scalars", ":state", ":text")):
                for moment, value in zip(columns["run"], columns[name], strict=True):
                    found = drawn.setdefault(chunk.entity_path, [])
                    found.append((moment.total_seconds(), value[0]))
    assert drawn["/joints/position_m/cart_x"] == [(1.5, 1.0)]
    assert drawn["/joints/position_m/cart_y"] == [(1.5, 2.0)]
    assert "/joints/velocity_m_s/cart_x" not in drawn
    assert drawn["/commands/effort_n/requested/cart_x"] == [(1.5, 3.0)]
    assert drawn["/commands/effort_n/applied/cart_y"] == [(1.6, 4.0)]
    assert drawn["/states/guard"] == [(1.7, "RUNNING"), (2.0, "ESTOP")]
    assert drawn["/states/episode"] == [(1.0, "t0-B-s1"), (2.1, "")]
    assert drawn["/states/emergency\\ stop"] == [(1.9, "pressed")]
    assert [text for _, text in drawn["/log"]] == [
        "begins: t0-B-s1", "guard: RUNNING", "guard: ESTOP, estop", "ended: safety_stop",
    ]  # fmt: skip
    assert drawn["/limits/joints/velocity_m_s/all/highest"] == [(0.0, 6.0)]


# Where it goes -----------------------------------------------------------------------------------


def test_targets(tmp_path, monkeypatch):
    pytest.importorskip("rerun", reason="Rerun is not installed: pip install .[view]")
    monkeypatch.setenv("DISPLAY", ":0")
    assert view_target(False, None, (Side.SIM,)) is None
    assert view_target(True, None, TWIN) == "window"
    file = tmp_path / "a.rrd"
    assert view_target(False, str(file), TWIN) == str(file)
    address = "rerun+http://192.0.2.7:9876/proxy"
    assert view_target(False, address, TWIN) == address


def test_refusals(tmp_path, monkeypatch):
    pytest.importorskip("rerun", reason="Rerun is not installed: pip install .[view]")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    (tmp_path / "there.rrd").touch()
    for view, to, sides, text in (
        (True, None, TWIN, "there is no display"),
        (True, "a.rrd", TWIN, "give one"),
        (False, "film.mp4", TWIN, "neither a file that ends in .rrd nor an address"),
        (False, "http://a/b.rrd", TWIN, "neither a file that ends in .rrd nor an address"),
        (False, "there.rrd", TWIN, "exists already"),
        (False, "nowhere/a.rrd", TWIN, "folder does not exist"),
        (False, "a.rrd", (Side.SIM,), "only sim is played"),
    ):
        with pytest.raises(InputError, match=text):
            view_target(view, to, sides)


def test_without_rerun_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr("robo_eval.cli.view.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"robo-eval-stack\[view\]"):
        view_target(False, "a.rrd", TWIN)
