"""Joints, commands and clocks as robots have them: the numbers of numpy, or a refusal."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from robo_eval.core.errors import InputError
from robo_eval.log.bag_importer import import_bags
from robo_eval.log.store import EpisodeStore
from robo_eval.metrics.bag_measures import measure

STORE = get_typestore(Stores.ROS2_HUMBLE)
STORE.register(
    get_types_from_msg(
        "std_msgs/Header header\nstring[] joint_names\n"
        "trajectory_msgs/JointTrajectoryPoint reference\n",
        "lab_msgs/msg/ControllerState",
    )
)
T = STORE.types
START = 1_772_361_000 * 10**9
S = 10**9
NAMES = ["lift", "arm", "finger"]
NONE = np.array([])

Rows = list[tuple[str, float, Any]]


def time_of(seconds: float) -> Any:
    stamp = START + round(seconds * S) if seconds >= 0.0 else 0
    return T["builtin_interfaces/msg/Time"](sec=stamp // S, nanosec=stamp % S)


def header(seconds: float) -> Any:
    return T["std_msgs/msg/Header"](stamp=time_of(seconds), frame_id="")


def state(seconds: float, names: list[str], position: Any = (), velocity: Any = ()) -> Any:
    return T["sensor_msgs/msg/JointState"](
        header=header(seconds),
        name=names,
        position=np.array(position, float),
        velocity=np.array(velocity, float),
        effort=NONE,
    )


def point(position: Any, later: float = 0.0) -> Any:
    return T["trajectory_msgs/msg/JointTrajectoryPoint"](
        positions=np.array(position, float),
        velocities=NONE,
        accelerations=NONE,
        effort=NONE,
        time_from_start=T["builtin_interfaces/msg/Duration"](sec=0, nanosec=round(later * S)),
    )


def trajectory(seconds: float, names: list[str], position: Any, later: float = 0.0) -> Any:
    return T["trajectory_msgs/msg/JointTrajectory"](
        header=header(seconds), joint_names=names, points=[point(position, later)]
    )


def controller(seconds: float, names: list[str], position: Any) -> Any:
    return T["lab_msgs/msg/ControllerState"](
        header=header(seconds), joint_names=names, reference=point(position)
    )


def array(_seconds: float, _names: list[str], position: Any) -> Any:
    layout = T["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    return T["std_msgs/msg/Float64MultiArray"](layout=layout, data=np.array(position, float))


def twist(linear: float, angular: float) -> Any:
    vector = T["geometry_msgs/msg/Vector3"]
    return T["geometry_msgs/msg/Twist"](
        linear=vector(x=linear, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=angular)
    )


def odometry(linear: float, angular: float) -> Any:
    found = {name: T[f"geometry_msgs/msg/{name}"] for name in ("Point", "Quaternion", "Pose")}
    pose = found["Pose"](
        position=found["Point"](x=9.0, y=9.0, z=9.0),
        orientation=found["Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    none = np.zeros(36)
    return T["nav_msgs/msg/Odometry"](
        header=header(0.0),
        child_frame_id="",
        pose=T["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=none),
        twist=T["geometry_msgs/msg/TwistWithCovariance"](
            twist=twist(linear, angular), covariance=none
        ),
    )


@pytest.fixture
def bring(tmp_path: Path) -> Callable[..., Any]:
    """Write a bag of rows and import it."""

    def run(rows: Rows, text: str, *, side: str = "sim", end: float = 5.0) -> Any:
        path = tmp_path / "bag"
        truth = T["std_msgs/msg/Bool"](data=True)
        with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connections: dict[str, Any] = {}
            for topic, seconds, message in [*rows, ("/success", end, truth)]:
                kind = message.__msgtype__
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
                stamp = max(0, START + round(seconds * S))
                writer.write(connections[topic], stamp, STORE.serialize_cdr(message, kind))
        (tmp_path / "map.yaml").write_text(
            f"constants: {{task: t, side: {side}, policy: p, robot: r}}\n"
            f"columns: {{success: /success}}\n{text}"
        )
        return import_bags([path], tmp_path / "map.yaml", tmp_path / "out", measure=measure)

    return run


def only(done: Any) -> Any:
    with EpisodeStore(done.trial.path, durable=False, read_only=True) as store:
        (episode,) = store.episodes()
    return episode


def quality(done: Any) -> dict[str, float]:
    return only(done).control_quality


# Joints and commands -----------------------------------------------------------------------------


def wanted(t: np.ndarray) -> np.ndarray:
    """Lift (m), arm (rad) and finger (m) are told to follow these."""
    return np.stack([0.2 * t, np.sin(2.0 * t), 0.01 * np.cos(3.0 * t)], axis=1)


ERROR = np.array([0.004, 0.03, 0.001])
TICKS = np.arange(0.0, 2.0, 0.02)
KINDS = {"array": array, "state": state, "trajectory": trajectory, "controller": controller}
PUBLISHERS = {"one": [NAMES], "two": [["lift", "arm"], ["finger"]], "each": [[n] for n in NAMES]}


@pytest.mark.parametrize(
    ("kind", "publishers", "is_turned", "clock"),
    [
        case
        for case in product(KINDS, PUBLISHERS, [False, True], ["received", "header"])
        if (case[0], case[3]) != ("array", "header")  # which has no header
    ],
)
def test_joints_are_compared_by_name_and_unit(bring, kind, publishers, is_turned, clock):
    command = wanted(TICKS)
    reached = command + ERROR
    late = 0.003 if clock == "header" else 0.0
    named = NAMES[::-1] if is_turned and kind != "array" else NAMES
    rows: Rows = []
    for tick, t in enumerate(TICKS):
        values = [command[tick, NAMES.index(name)] for name in named]
        rows.append(("/command", t, KINDS[kind](t, named, values)))
        for place, names in enumerate(PUBLISHERS[publishers]):
            order = [*names, "other"][:: -1 if is_turned and tick % 2 else 1]
            values = [math.nan if n == "other" else reached[tick, NAMES.index(n)] for n in order]
            # A few ms after the command, in turn.
            stamp = t + 0.001 * (place + 1)
            rows.append(("/joint_states", stamp + late, state(stamp, order, values)))
    field = "/command.reference.positions" if kind == "controller" else "/command"
    text = (
        f"signals: {{joint_state: /joint_states, command: {field}, joints: [lift, arm, finger],"
        f" joint_unit: {{lift: m, finger: m}}, clock: {clock}}}\n"
    )
    found = quality(bring(rows, text))
    assert found["tracking_rmse_rad"] == pytest.approx(abs(ERROR[1]), rel=1e-9)
    assert found["tracking_rmse_m"] == pytest.approx(np.sqrt(np.mean(ERROR[[0, 2]] ** 2)), rel=1e-9)
    # Of the sine (2^3) and the cosine (0.01 3^3), over the middle of 2 s.
    inside = TICKS[3:-3]
    assert found["jerk_rms_rad_s3"] == pytest.approx(
        np.sqrt(np.mean((8.0 * np.cos(2.0 * inside)) ** 2)), rel=0.02
    )
    assert found["jerk_rms_m_s3"] == pytest.approx(
        np.sqrt(np.mean((0.27 * np.sin(3.0 * inside)) ** 2) / 2.0), rel=0.03
    )


# Kinds and names of joints -----------------------------------------------------------------------

URDF = """<?xml version="1.0"?><robot name="r">
  <!-- <joint name="two" type="revolute"/> -->
  <joint name="one" type="revolute"><axis xyz="0 0 1"/></joint>
  <joint
     type='prismatic' name = 'two'/>
  <ros2_control name="x" type="system"><joint name="one"/></ros2_control>
</robot>"""


def two_joints(first: str, second: str, urdf: str = "") -> Rows:
    """One is told to be 0.3 farther, the other 0.004."""
    names = [first, second]
    rows: Rows = []
    if urdf:
        rows.append(("/r/robot_description", 0.0, T["std_msgs/msg/String"](data=urdf)))
    for t in np.arange(0.0, 2.0, 0.02):
        rows.append(("/command", t, state(t, names, [t + 0.3, 0.1 * t + 0.004])))
        rows.append(("/joint_states", t + 0.001, state(t, names, [t, 0.1 * t])))
    return rows


BOTH = "signals: {joint_state: /joint_states, command: /command%s}\n"


@pytest.mark.parametrize("more", ["", ", joint_unit: {one: rad}", ", joints: [two, one]"])
def test_a_description_of_the_robot_says_which_joints_slide(bring, more):
    done = bring(two_joints("one", "two", URDF), BOTH % more)
    found = quality(done)
    assert found["tracking_rmse_rad"] == pytest.approx(0.3)
    assert found["tracking_rmse_m"] == pytest.approx(0.004)
    assert not done.remarks


@pytest.mark.parametrize("unit", ["rad", "{two: rad}"])
def test_a_map_and_a_description_that_contradict_each_other_are_refused(bring, unit):
    with pytest.raises(InputError, match=r"bag: signals\.joint_unit .*'two', which slides.*two: m"):
        bring(two_joints("one", "two", URDF), BOTH % f", joint_unit: {unit}")


def test_the_unit_of_a_joint_that_may_slide_by_its_name_is_asked_for(bring):
    done = bring(two_joints("hinge", "slide"), BOTH % "")
    assert quality(done) == {}
    assert {one.measure for one in done.left_out} == {"tracking_rmse_rad", "jerk_rms_rad_s3"}
    assert all(
        "joint 'slide' may slide" in one.reason and "signals.joint_unit" in one.reason
        for one in done.left_out
    )
    assert not done.remarks


@pytest.mark.parametrize(("unit", "count"), [("{slide: m}", 1), ("rad", 0)])
def test_what_the_map_says_of_such_a_joint_counts(bring, unit, count):
    found = quality(bring(two_joints("hinge", "slide"), BOTH % f", joint_unit: {unit}"))
    assert ("tracking_rmse_m" in found) is bool(count)


@pytest.mark.parametrize(("more", "is_said"), [("", True), (", joint_unit: rad", False)])
def test_that_joints_are_taken_to_turn_is_said_once(bring, more, is_said):
    done = bring(two_joints("hip", "knee"), BOTH % more)
    assert set(quality(done)) == {"tracking_rmse_rad", "jerk_rms_rad_s3"}
    said = [one.what for one in done.remarks if one.episode_id is None]
    assert [what.partition(" are")[0] for what in said] == ["hip, knee"] * is_said


def test_a_torque_is_no_force(bring):
    vector = T["geometry_msgs/msg/Vector3"](x=1.0, y=0.0, z=0.0)
    wrench = T["geometry_msgs/msg/Wrench"](force=vector, torque=vector)
    with pytest.raises(InputError, match=r"/wrench\.torque .*is a torque, in N m.*name the field"):
        bring([("/wrench", 0.0, wrench)], "signals: {wrench: /wrench.torque}\n")


RENAMED = {
    "renamed": (["fr3_joint1", "fr3_joint2"], ["panda_joint1", "panda_joint2"]),
    "prefix": (["left_shoulder", "left_elbow"], ["shoulder", "elbow"]),
}


def renamed(case: str) -> Rows:
    ours, theirs = RENAMED[case]
    return [
        row
        for t in np.arange(0.0, 2.0, 0.1)
        for row in (
            ("/command", t, trajectory(t, theirs[::-1], [0.2 * t, t + 0.1])),
            ("/joint_states", t + 0.001, state(t, ours, [t, 0.2 * t])),
        )
    ]


@pytest.mark.parametrize("case", RENAMED)
@pytest.mark.parametrize("is_listed", [False, True])
def test_joint_states_and_commands_without_a_joint_in_common_are_refused(bring, case, is_listed):
    ours, theirs = RENAMED[case]
    more = f", joints: [{', '.join(ours)}]" if is_listed else ""
    with pytest.raises(InputError, match=r"signals\.joints of the topic map, such as \{") as caught:
        bring(renamed(case), BOTH % more)
    assert all(name in str(caught.value) for name in (*ours, *theirs))


@pytest.mark.parametrize("case", RENAMED)
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_map_pairs_joints_of_two_names(bring, case, is_turned):
    ours, theirs = RENAMED[case]
    pairs = zip(*((theirs, ours) if is_turned else (ours, theirs)), strict=True)
    text = ", ".join(f"{one}: {other}" for one, other in pairs)
    found = quality(bring(renamed(case), BOTH % f", joints: {{{text}}}, joint_unit: rad"))
    assert found["tracking_rmse_rad"] == pytest.approx(np.sqrt(0.01 / 2))


JOINT = "signals: {joint_state: /joint_states, command: /command, joints: [j]%s}\n"


@pytest.mark.parametrize("rate", [0.5, -0.5, 3.0])
@pytest.mark.parametrize("both", [False, True])
def test_a_joint_without_end_is_compared_within_a_turn(bring, rate, both):
    rows: Rows = []
    for t in np.arange(0.0, 4.0, 0.02):
        c = 3.0 + rate * t
        q = math.remainder(c - 0.02, 2.0 * math.pi)
        rows += [
            ("/command", t, array(t, ["j"], [math.remainder(c, 2.0 * math.pi) if both else c])),
            ("/joint_states", t, state(t, ["j"], [q])),
        ]
    found = quality(bring(rows, JOINT % ", continuous: [j]" + "measures: {settling_band: 0.1}\n"))
    assert found["tracking_rmse_rad"] == pytest.approx(0.02)
    assert found["jerk_rms_rad_s3"] == pytest.approx(0.0, abs=1e-6)
    assert found["settling_time_s"] == pytest.approx(0.0, abs=0.2)


def test_settling_counts_in_the_band_of_each_unit(bring):
    rows: Rows = []
    for t in np.arange(0.0, 3.0, 0.01):
        step = np.array([0.1, 1.0]) * (t >= 0.5)
        rows += [
            ("/command", t, array(t, [], step)),
            ("/joint_states", t + 0.001, state(t, ["lift"], [0.1 * (t >= 0.8)])),
            ("/joint_states", t + 0.002, state(t, ["arm"], [1.0 * (t >= 1.2)])),
        ]
    text = (
        "signals: {joint_state: /joint_states, command: /command, joints: [lift, arm],"
        " joint_unit: {lift: m}}\nmeasures: {settling_band: %s}\n"
    )
    done = bring(rows, text % "{rad: 0.02, m: 0.002}")
    assert quality(done)["settling_time_s"] == pytest.approx(0.702, abs=0.0105)


def test_one_band_does_not_serve_two_units(bring):
    rows: Rows = [
        ("/command", 0.0, array(0.0, [], [0.0, 0.0])),
        *(("/joint_states", t, state(t, ["lift", "arm"], [0, 0])) for t in np.arange(0, 1, 0.1)),
    ]
    text = (
        "signals: {joint_state: /joint_states, command: /command, joints: [lift, arm],"
        " joint_unit: {lift: m}}\nmeasures: {settling_band: 0.1}\n"
    )
    done = bring(rows, text)
    assert {left.measure: left.reason for left in done.left_out}["settling_time_s"].startswith(
        "measures.settling_band is not given for joints in m, rad"
    )


# NaN, publishers and clocks -----------------------------------------------------------------------


def followed(change: Callable[[int, float], Rows | None], stamp: Any = lambda t: t) -> Rows:
    """A joint that follows its command, with what a case makes of it."""
    rows: Rows = []
    for tick, t in enumerate(np.arange(0.0, 2.0, 0.02)):
        rows.append(("/command", t, state(t, ["j"], [0.5 * t])))
        extra = change(tick, t)
        usual = [("/joint_states", t + 0.001, state(stamp(t), ["j"], [0.5 * t]))]
        rows += usual if extra is None else extra
    return rows


def at(t: float, position: float) -> Rows:
    return [("/joint_states", t, state(t, ["j"], [position]))]


def says(position: float, names: tuple[str, ...] = ("j",), stamp: float | None = None) -> Any:
    def make(tick: int, t: float) -> Rows:
        message = state(t if stamp is None else stamp, list(names), [position] * len(names))
        return [
            ("/joint_states", t + 0.001, state(t, ["j"], [0.5 * t])),
            ("/joint_states", t + 0.002, message),
        ]

    return make


CASES: dict[str, tuple[Rows, str, str]] = {
    "NaN later": (
        followed(lambda k, t: at(t, math.nan) if k in (7, 9) else None),
        "",
        r"'j' is NaN or infinite in 2 of 100 messages, first in message 8, at 0\.139 s.*skip",
    ),
    "NaN always": (
        followed(lambda _, t: at(t, math.nan)),
        "",
        r"in 100 of 100 messages.*list the joints that count without it",
    ),
    "zeros in another order": (
        followed(says(9.0, ("k", "j"))), "", "two publishers say where joint 'j' is.*record one",
    ),
    "zeros in the same order": (
        followed(says(9.0)), "", "two publishers say where joint 'j' is.*record one",
    ),
    "zeros now and then": (
        followed(lambda k, t: says(9.0)(k, t) if k % 10 == 5 else None), "",
        "two publishers say where joint 'j' is.*record one",
    ),
    "zeros now and then in another order": (
        followed(lambda k, t: says(9.0, ("k", "j"))(k, t) if k == 50 else None), "",
        "two publishers say where joint 'j' is: message 51 says 0.5, message 52 9",
    ),
    "twice in a message": (
        followed(says(0.0, ("j", "j"))), "", "message 2: names joint 'j' twice",
    ),
    "stamps 0": (
        followed(lambda *_: None, stamp=lambda _: -1.0), "header",
        "100 of 100 messages have stamp 0, first message 1; set signals.clock: received",
    ),
    "stamps equal": (
        followed(lambda *_: None, stamp=lambda _: 1.0), "header",
        "99 of 100 messages repeat the stamp of the one before with another position",
    ),
    "stamps equal, standing still": (
        [("/joint_states", t, state(1.0, ["j"], [0.0])) for t in np.arange(0, 1, 0.1)], "header",
        "9 of 10 messages have the stamp of the first",
    ),
    "stamps repeated": (
        followed(lambda *_: None, stamp=lambda t: 0.1 * (t // 0.1)), "header",
        "messages repeat the stamp of the one before",
    ),
    "stamps start again": (
        followed(lambda *_: None, stamp=lambda t: t % 1.0), "header",
        "1 of 100 messages go back in time, first message 51",
    ),
    "an hour ahead": (
        followed(lambda *_: None, stamp=lambda t: t + 3600.0), "header",
        r"stamps of 100 of its 100 messages are 3599\.999 s behind those of /joint_states",
    ),
    "later point": (
        [("/command", 0.0, trajectory(0.0, ["j"], [1.0], 0.5)), *at(0.1, 0.5)], "",
        r"message 1: asks for its point 0\.5 s later \(time_from_start\).*reference",
    ),
    "later point, by its field": (
        [("/command.points[0].positions", 0.0, trajectory(0.0, ["j"], [1.0], 0.5)), *at(0.1, 0.5)],
        "", r"message 1: asks for its point 0\.5 s later \(time_from_start\)",
    ),
    "commands in another order": (
        followed(lambda _, t: [
            ("/command", t + 0.001, state(t, ["k", "j"], [9.0, 9.0])), *at(t + 0.002, 0.5 * t)
        ]),
        "", "signals.command.*two publishers say where joint 'j' is to be: message 1 says 0",
    ),
    "a clock that was set ahead": (
        followed(lambda *_: None, stamp=lambda t: t + 60.0 * (t > 1.8)), "header",
        r"the stamps of 9 of its 100 messages are 59\.999 s behind those of /joint_states",
    ),
    "no positions": (
        followed(lambda _, t: [("/joint_states", t, state(t, ["j"], []))]), "",
        "message 1: has 0 positions for 1 joint; name a topic with positions",
    ),
    "whole turn, once": (
        followed(lambda _, t: at(t, t + 3.0 - 2 * math.pi * (t > 1.0))),
        "", r"'j' steps by a whole turn once; set signals.continuous: \[j\]",
    ),
    "whole turn between few messages": (
        [row for t in np.arange(0.0, 3.0, 0.1) for row in at(t, 6.0 * t % (2 * math.pi))],
        "", r"'j' steps by a whole turn 2 times",
    ),
    "whole turn": (
        followed(lambda _, t: at(t, math.remainder(9 * t, 2 * math.pi))),
        "", r"'j' steps by a whole turn \d times; set signals.continuous: \[j\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_would_give_a_wrong_number_is_refused(bring, case):
    rows, clock, message = CASES[case]
    text = JOINT % (f", clock: {clock}" if clock else "")
    commands = [topic for topic, _, _ in rows if topic.startswith("/command")]
    if not commands:
        text = text.replace("command: /command, ", "")
    elif commands[0] != "/command":
        # What a case calls a topic is the field it is about.
        text = text.replace("/command", f"'{commands[0]}'")
        rows = [(topic.partition(".")[0], seconds, message) for topic, seconds, message in rows]
    with pytest.raises(InputError, match=message) as caught:
        bring(rows, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "other",
    [state(0.0, ["wheel"], [], [0.5]), state(0.0, ["wheel", "wheel"], [1.0, 1.0])],
    ids=["a wheel has no position", "a wheel is named twice"],
)
def test_what_is_said_about_other_joints_does_no_harm(bring, other):
    rows = followed(lambda _, t: [*at(t, 0.5 * t), ("/joint_states", t, other)])
    assert quality(bring(rows, JOINT % ""))["tracking_rmse_rad"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("field", ["/force", "/force.data"])
def test_a_force_of_one_number_has_the_digits_it_was_given(bring, field):
    rows = [("/force", t, T["std_msgs/msg/Float32"](data=v)) for t, v in ((0.0, 0.7), (1.0, -10.1))]
    assert quality(bring(rows, f"signals: {{wrench: {field}}}\n")) == {"peak_force_N": 10.1}


@pytest.mark.parametrize(("second", "count"), [(0.0, 1), (1.0, 0)])
def test_commands_of_a_second_publisher_are_remarked(bring, second, count):
    rows: Rows = []
    for t in np.arange(0.0, 2.0, 0.02):
        rows += [
            ("/command", t, array(t, [], [1.0])),
            ("/command", t + 0.01, array(t, [], [second])),
        ]
        rows += at(t + 0.001, 1.0)
    done = bring(rows, JOINT % "")
    assert [remark.what[:54] for remark in done.remarks] == (
        ["/command: commands of joint 'j' leave and come back at"] * count
    )


@pytest.mark.parametrize("case", ["NaN later", "zeros in another order", "stamps 0"])
def test_an_unusable_signal_leaves_its_measures_out(bring, case):
    rows, clock, _ = CASES[case]
    text = JOINT % (f", clock: {clock}" if clock else "")
    done = bring(rows, text + "measures: {invalid: leave_out}\n")
    assert quality(done) == {}
    assert {left.measure for left in done.left_out} == {"tracking_rmse_rad", "jerk_rms_rad_s3"}


@pytest.mark.parametrize(("ticks", "text"), [((7, 9), "skip"), ((0, 1), "refuse")])
def test_messages_without_numbers_are_counted(bring, ticks, text):
    rows = followed(
        lambda k, t: [("/joint_states", t, state(t, ["j"], [math.nan]))] * (k in ticks) or None
    )
    done = bring(rows, JOINT % "" + f"measures: {{invalid: {text}}}\n")
    assert quality(done)["tracking_rmse_rad"] == pytest.approx(0.0, abs=1e-12)
    (left,) = done.left_out
    assert left.measure == "NaN in /joint_states"
    assert left.reason == "joint 'j' is NaN or infinite in 2 of 100 messages"


def test_a_second_publisher_of_the_same_positions_is_none(bring):
    rng = np.random.default_rng(1)
    orders = [["j", "k"], ["k", "j"]]
    rows = followed(
        lambda k, t: [
            ("/joint_states", t, state(t, orders[k % 2], [0.5 * t + rng.normal(0, 1e-3)] * 2))
        ]
    )
    assert quality(bring(rows, JOINT % ""))["tracking_rmse_rad"] == pytest.approx(1e-3, rel=0.2)


def in_bursts(size: int) -> Rows:
    """The cube of time at 100 Hz, of which some messages come at once."""
    return [
        (
            "/joint_states",
            0.01 * size * (i // size) + 2e-5 * (i % size),
            state(0.01 * i, ["j"], [(0.01 * i) ** 3]),
        )
        for i in range(400)
    ]


def test_joints_that_no_message_names_are_those_of_the_map(bring):
    rows: Rows = [
        row
        for t in np.arange(0.0, 1.0, 0.1)
        for row in (
            ("/command", t, state(t, [], [1.0])),
            ("/joint_states", t, state(t, [], [1.25])),
        )
    ]
    assert quality(bring(rows, JOINT % ""))["tracking_rmse_rad"] == pytest.approx(0.25)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_bursts_are_named_with_the_clock_of_headers_as_remedy(bring, size):
    text = "signals: {joint_state: /joint_states%s}\n"
    done = bring(in_bursts(size), text % "")
    assert quality(done) == {}
    assert "received in bursts" in done.left_out[0].reason
    assert done.left_out[0].reason.endswith("set signals.clock: header")


def test_messages_that_came_twice_do_no_harm_with_the_clock_of_headers(bring):
    rows = [
        ("/joint_states", 0.01 * i + late, state(0.01 * i, ["j"], [(0.01 * i) ** 3]))
        for i in range(200)
        for late in (0.0, 2e-5)
    ]
    text = "signals: {joint_state: /joint_states, clock: header}\n"
    assert quality(bring(rows, text))["jerk_rms_rad_s3"] == pytest.approx(6.0)


def test_stamps_of_headers_are_free_of_bursts(bring):
    found = quality(bring(in_bursts(3), "signals: {joint_state: /joint_states, clock: header}\n"))
    assert found["jerk_rms_rad_s3"] == pytest.approx(6.0, rel=1e-6)


@pytest.mark.parametrize(("first", "begins"), [(1000.0, 1000.0), (0.5, 0.0)])
def test_what_came_before_a_simulators_clock_is_no_part_of_the_episode(bring, first, begins):
    rows: Rows = [("/command", -2.0 * START / S, array(0, [], [0.0]))]
    rows += [("/command", -START / S + first + i, array(0, [], [0.0])) for i in range(6)]
    done = bring(rows, "signals: {command: /command, joints: [j]}\n", end=-START / S + first + 5.0)
    episode = only(done)
    assert episode.start_ns == begins * S
    assert episode.duration_s == pytest.approx(first + 5.0 - begins)
    said = [left.reason for left in done.left_out]
    assert said == ["1 message came before the simulator's clock"] * (begins > 0.0)


# Exposure ----------------------------------------------------------------------------------------

SPEED = "exposure: {field: %s, above: %s}\n"


def speeds(*publishers: tuple[list[str], list[float]], until: float = 4.0) -> Rows:
    return [
        ("/joint_states", t + 0.01 * place, state(t, names, [0.0] * len(names), values))
        for t in np.arange(0.0, until, 0.1)
        for place, (names, values) in enumerate(publishers)
    ]


EXPOSED: dict[str, tuple[Rows, str, float]] = {
    "one": (speeds((["a", "b"], [0.0, -0.5])), SPEED % ("/joint_states.velocity", 0.01), 5.0),
    "topic": (speeds((["a", "b"], [0.0, -0.5])), SPEED % ("/joint_states", 0.01), 5.0),
    "two publishers": (
        speeds((["a"], [0.5]), (["b"], [0.0])), SPEED % ("/joint_states.velocity", 0.01), 5.0,
    ),
    "still": (speeds((["a"], [0.0]), (["b"], [0.0])), SPEED % ("/joint_states", 0.01), 0.0),
    "moves, then not": (
        [*speeds((["a"], [0.5]), until=2.0), ("/joint_states", 2.0, state(2.0, ["a"], [0], [0]))],
        SPEED % ("/joint_states", 0.01), 2.0,
    ),
    "NaN beside motion": (
        speeds((["a", "passive"], [0.5, math.nan])), SPEED % ("/joint_states.velocity", 0.01), 5.0,
    ),
    "NaN of another joint": (
        speeds((["a", "passive"], [0.0, math.nan])),
        SPEED % ("/joint_states.velocity", "0.01, joints: [a]"), 0.0,
    ),
    "chosen joint": (
        speeds((["a", "b"], [0.0, 0.5])), SPEED % ("/joint_states", "0.01, joints: [a]"), 0.0,
    ),
    "drives": (
        [("/cmd_vel", t, twist(0.3 * (t < 2.0), 0.0)) for t in np.arange(0.0, 4.0, 0.5)],
        SPEED % ("/cmd_vel", 0.01), 2.0,
    ),
    "turns": (
        [("/odom", t, odometry(0.0, -0.3 * (t < 3.0))) for t in np.arange(0.0, 4.0, 0.5)],
        SPEED % ("/odom", "{linear: 0.01, angular: 0.02}"), 3.0,
    ),
    "slow turn": (
        [("/odom", t, odometry(0.0, 0.3)) for t in np.arange(0.0, 4.0, 0.5)],
        SPEED % ("/odom.twist.twist", "{linear: 0.01, angular: 0.5}"), 0.0,
    ),
    "vector": (
        [("/odom", t, odometry(-0.3, 0.0)) for t in np.arange(0.0, 4.0, 0.5)],
        SPEED % ("/odom.twist.twist.linear", 0.01), 5.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPOSED)
def test_exposure_is_the_time_in_which_something_moves(bring, case):
    rows, text, expected = EXPOSED[case]
    episode = only(bring(rows, text, side="real", end=5.0))
    assert episode.exposure_s == pytest.approx(expected)


UNKNOWN: dict[str, tuple[Rows, str, str]] = {
    "empty": (speeds((["a"], [])), SPEED % ("/joint_states.velocity", 0.01),
              r"velocity of joint 'a' is empty or NaN in message 1 of 40.*another field"),
    "NaN": (speeds((["a", "b"], [0.0, math.nan])), SPEED % ("/joint_states.velocity", 0.01),
            "of joint 'b' is empty or NaN in message 1 of 40.*exposure.joints"),
    "short": (speeds((["a", "b"], [0.0])), SPEED % ("/joint_states.velocity", 0.01),
              "message 1 of topic /joint_states has 1 number for 2 joints"),
    "unknown joint": (speeds((["arm"], [0.0])), SPEED % ("/joint_states", "0.01, joints: [amr]"),
                      "unknown joint 'amr'; did you mean 'arm'"),
    "two speeds": (speeds((["a"], [0.0])), SPEED % ("/joint_states", "{linear: 0.1}"),
                   "no linear and angular speed; write exposure.above as one number"),
    "zeros of another": (speeds((["a", "b"], [0.5, 0.5]), (["b", "a"], [0.0, 0.0])),
                         SPEED % ("/joint_states", 0.01), "two publishers on topic /joint_states"),
    "positions": (speeds((["a"], [0.5])), SPEED % ("/joint_states.position", 0.01),
                  "/joint_states.position is a position, and no speed; name a number"),
    "past the end": (speeds((["a"], [0.5])), SPEED % ("'/joint_states.velocity[3]'", 0.01),
                     r"/joint_states\.velocity\[3\] says nothing in the episode or before it"),
    "pose": ([("/odom", 0.0, odometry(0.0, 0.0))], SPEED % ("/odom.pose", 0.1),
             "and no speed; name a number"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_speed_that_is_not_known_is_no_standstill(bring, case):
    rows, text, message = UNKNOWN[case]
    with pytest.raises(InputError, match=message):
        bring(rows, text, side="real")
