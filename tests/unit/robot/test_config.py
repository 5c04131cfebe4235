"""What a robot file may hold, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import robo_eval_twin
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.plan import parse_plan
from robo_eval_robot.adapter import load_adapter
from robo_eval_robot.config import parse_robot

TEXT = Path(robo_eval_twin.__file__).with_name("gantry_twin.yaml").read_text()
TASK = "RoboEval/CartPole3D-v0"
PLAN = "name: x\ntasks: [{kwargs: {balls: 0}}]\npolicies: [nothing]\nsides: [sim, twin]"


def test_the_built_in_twin():
    config = parse_robot(TEXT, source="x")
    assert config.side is Side.TWIN
    assert config.topic("joint_states") == "/twin0/joint_states"
    assert config.topic("/joint_states") == "/joint_states"
    limits = config.limits("cart_x")
    assert limits is not None
    assert (limits.low, limits.high, limits.unit) == (-4.4, 4.4, "m")
    assert config.limits("pole_roll") is None
    assert load_adapter(config, TASK, {"balls": 0}).tick_s == 0.02


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("body: twin ", "body: ghost ", "body"),
        ("body: twin ", "body: physical ", "twin: a physical robot has no such section"),
        ("cart_y]", "cart_z]", "controller.joints.1: unknown joint 'cart_z'"),
        ("cart_y]", "cart_x]", "names a joint twice"),
        ("velocity_m_s: 6.0", "velocity_deg_s: 6.0", "did you mean 'velocity_m_s'"),
        ("velocity_m_s: 6.0, ", "", "velocity_m_s: is missing"),
        ("position_m: [-4.4, 4.4]", "position_m: [4.4, -4.4]", "must be below"),
        ("position_m: [-4.4, 4.4]", "position_m: [.nan, 4.4]", "joints.cart_x.limits.position_m"),
        ("type: prismatic", "type: prismatik", "did you mean 'prismatic'"),
        ("timeout_s: 0.5", "timeout_s: -1", "controller.timeout_s"),
        ("command_age_s: 0.4", "command_age_s: 0.01", "shorter than a control period"),
        ("namespace: /twin0", "namespace: twin0", "namespace: must begin with a slash"),
        ("category: 2", "category: 1", "service that removes power, or write category: 2"),
        ("version: 1", "version: 1\nversion: 1", "there twice"),
        ("version: 1", "version: [", "not valid YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_field(old, new, said):
    assert old in TEXT
    with pytest.raises(InputError) as caught:
        parse_robot(TEXT.replace(old, new, 1), source="robot.yaml")
    message = str(caught.value)
    assert message.startswith("robot.yaml: ")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("old", "new", "keywords", "said"),
    [
        ("control_rate_hz: 50", "control_rate_hz: 100", {"balls": 0}, "acts 50 times a second"),
        ("interface: effort", "interface: velocity", {"balls": 0}, "it needs effort"),
        ("adapter: cartpole3d", "adapter: cartpole", {"balls": 0}, "did you mean 'cartpole3d'"),
        ("adapter: cartpole3d", "adapter: 'nowhere:Adapter'", {"balls": 0}, "cannot be loaded"),
        (TASK, "RoboEval/Other-v0", {"balls": 0}, "unknown task of robot"),
        ("pole_roll: {type", "roll: {type", {"balls": 0}, None),  # the IMU says it as well
        ("", "", {}, "without balls"),
        ("", "", {"balls": 3}, "without balls"),
    ],
)
def test_a_task_the_robot_cannot_play_is_refused(old, new, keywords, said):
    config = parse_robot(TEXT.replace(old, new, 1), source="x")
    if said is None:
        assert load_adapter(config, TASK, keywords)
    else:
        with pytest.raises(InputError, match=said):
            load_adapter(config, TASK, keywords)


def test_an_action_of_another_task_is_refused():
    adapter = load_adapter(parse_robot(TEXT, source="x"), TASK, {"balls": 0})
    assert adapter.command(3) == (0.0, 10.0)
    for action in (5, -1, 1.0, None, "1"):
        with pytest.raises(InputError, match="from 0 to 4"):
            adapter.command(action)


def test_a_plan_for_another_side_is_refused():
    pytest.importorskip("rclpy", reason="ROS 2 is not installed: pip install .[ros]")
    from robo_eval_robot.adapter import check_robot

    config = parse_robot(TEXT, source="x")
    check_robot(parse_plan(PLAN, source="p"), config, "x")
    for old, new, said in (
        ("[sim, twin]", "[sim, real]", "plays side twin"),
        ("tasks: [{", "tasks: [{env: RoboEval/Other-v0, ", "does not play RoboEval/Other-v0"),
        ("{balls: 0}", "{balls: 0, wind: 3}", "tasks.0: "),
    ):
        with pytest.raises(InputError, match=said):
            check_robot(parse_plan(PLAN.replace(old, new), source="p"), config, "x")


ARM = (Path(__file__).parents[3] / "ros2_ws/src/robo_eval_bringup/config/arm_twin.yaml").read_text()
STEEL = ARM[: ARM.index("\ntwin:")].replace("body: twin", "body: physical")


@pytest.mark.parametrize(
    ("old", "new", "field", "remedy"),
    [
        ("[-6.28, 6.28]", "[-360, 360]", "shoulder_pan_joint.limits.position_rad", "write 6.283"),
        ("velocity_rad_s: 3.14", "velocity_rad_s: 180", "limits.velocity_rad_s", "write 3.142"),
        ("acceleration_rad_s2: 15.0, ", "", "limits.acceleration_rad_s2", "add what its data"),
        ("- elbow_joint", "- elbow_joit", "controller.joints.2", "did you mean 'elbow_joint'"),
        ("interface: position", "interface: torque", "controller.interface", "position, velocity"),
        ("type: revolute", "type: hinge", "shoulder_pan_joint.type", "revolute"),
        ("/commands ", "/../joint_states ", "controller.topic", ""),
        ("forward_position_controller/commands", "joint_states", "controller.topic", "another"),
        (
            "forward_position_controller/commands",
            "policy/joint_command",
            "controller.topic",
            "name",
        ),
        ("forward_position_controller/commands", "/arm0/safety/estop", "controller.topic", "na"),
        ("standstill_velocity: 0.02", "standstill_velocity: 4", "standstill_velocity", "a lower"),
        ("standstill_velocity: 0.02", "standstill_velocity: 0.5", "standstill_velocity", "0.314"),
        ("s2: 15.0,", "s2: 860.0,", "shoulder_pan_joint.limits.acceleration_rad_s2", "write 15.0"),
        ("effort_nm", "jerk_rad_s3: 57000, effort_nm", "limits.jerk_rad_s3", "write 994.8"),
        ("command_step: 0.06", "command_step: 3.4", "guard.command_step", "write less"),
        ("rate_hz: 125", "rate_hz: 4", "guard.state_age_s", "write at least 0.5"),
        ("deadline_s: 1.0", "deadline_s: 0.001", "guard.estop.deadline_s", "equal to 0.01"),
        ("heartbeat_s: 0.8", "heartbeat_s: 0.001", "guard.policy_heartbeat_s", "equal to 0.01"),
        (
            "driver_heartbeat_s: 0.8",
            "driver_heartbeat_s: 0.001",
            "guard.driver_heartbeat_s",
            "0.01",
        ),
    ],
)
def test_degrees_unknown_joints_and_contradictions_are_refused_with_a_remedy(
    old: str, new: str, field: str, remedy: str
) -> None:
    assert old in STEEL
    with pytest.raises(InputError) as caught:
        parse_robot(STEEL.replace(old, new, 1), source="arm.yaml")
    message = str(caught.value)
    assert message.startswith("arm.yaml: ")
    assert field in message
    assert remedy in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("field", "old"),
    [
        ("state.joint_states", "joint_states: joint_states"),
        ("guard.estop.topic", "topic: safety/estop"),
        ("state.mode.topic", "topic: driver/mode"),
        ("controller.topic", "topic: forward_position_controller/commands"),
    ],
)
@pytest.mark.parametrize(
    "taken",
    [
        "policy/joint_command",
        "/arm0/safety/state",
        "heartbeat/policy",
        "heartbeat/driver",
        "heartbeat/guard",
        "safety/incidents",
        "episode/event",
    ],
)
def test_a_topic_of_ours_is_for_nothing_else(field: str, old: str, taken: str) -> None:
    assert ARM.count(old) == 1
    with pytest.raises(InputError, match=rf"^arm.yaml: {field}: .*{taken} .*name another topic$"):
        parse_robot(ARM.replace(old, f"{old.partition(':')[0]}: {taken}"), source="arm.yaml")


@pytest.mark.parametrize("other", ["joint_states", "driver/mode", "/arm0/safety/estop"])
def test_one_topic_is_not_for_two_things(other: str) -> None:
    text = ARM.replace(
        "rate_hz: 125", f"rate_hz: 125\n  wrench: {{topic: {other}, force_n: 9, torque_nm: 9}}"
    )
    with pytest.raises(InputError, match=r"(wrench|mode|estop)\.topic: .*name another topic$"):
        parse_robot(text, source="arm.yaml")


def test_light_arms_may_accelerate_fast() -> None:
    limits = "velocity_rad_s: 1.0, acceleration_rad_s2: 300.0, jerk_rad_s3: 30000"
    given = "velocity_rad_s: 3.14, acceleration_rad_s2: 15.0"
    parse_robot(STEEL.replace(given, limits), source="x")
    parse_robot(ARM.replace(given, limits.replace("300.0", "9000.0")), source="x")  # no inertia


def test_a_joint_that_turns_on_and_on_may_turn_far_and_fast() -> None:
    text = ARM.replace("type: revolute", "type: continuous").replace("[-6.28, 6.28]", "[-99, 99]")
    limits = parse_robot(text, source="x").limits("shoulder_pan_joint")
    assert limits is not None
    assert limits.high == 99.0
