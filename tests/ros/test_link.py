"""What the conductor's connection to a robot makes of states that arrive in any order."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.duration import Duration
from sensor_msgs.msg import Imu, JointState

from robo_eval_robot import link as module
from robo_eval_robot import topics
from robo_eval_robot.config import read_robot
from robo_eval_robot.environment import RosRobotEnv
from robo_eval_robot.link import RobotLink

S = 1_000_000_000


@pytest.fixture
def link(
    tmp_path: Path,
    quick_twin: str,
    ros_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RobotLink]:
    for name, value in ros_environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "robot.yaml").write_text(quick_twin)
    found = RobotLink(read_robot(tmp_path / "robot.yaml"))
    yield found
    found.close()


def imu(link: RobotLink, stamp_ns: int, lean: float) -> None:
    message = Imu()
    message.header.stamp = topics.time_of(stamp_ns)
    message.orientation.x = lean
    link._on_imu(message)


def joints(link: RobotLink, stamp_ns: int) -> None:
    names = list(link.config.joints)
    message = JointState(name=names, position=[0.0] * len(names))
    message.header.stamp = topics.time_of(stamp_ns)
    link._on_joints(message)


@pytest.mark.parametrize("before_ns", [-1 * S, 3600 * S], ids=["earlier", "of a clock set back"])
def test_a_new_scene_is_seen_without_what_the_imu_said_of_the_old_one(
    link: RobotLink, before_ns: int
) -> None:
    scene = 10_000 * S
    imu(link, scene + before_ns, lean=0.5)
    joints(link, scene + before_ns)
    assert link.next_snapshot(0, 0.0) is not None
    link.forget_before(scene)
    joints(link, scene + 10_000_000)
    assert link.next_snapshot(scene, 0.0) is None, "its IMU has not arrived yet"
    imu(link, scene + 10_000_000, lean=0.0)
    snapshot = link.next_snapshot(scene, 0.0)
    assert snapshot is not None
    assert snapshot.imu is not None
    assert snapshot.imu.quat_xyzw[0] == 0.0


def test_only_silence_that_was_listened_to_counts(link: RobotLink) -> None:
    link._quiet_s["guard"] = 0.2
    assert not link.is_silent("guard"), "it has never spoken"
    assert not link.is_silent("guard", anew=True)
    link._hear("guard")
    time.sleep(0.4)  # a policy that thinks
    link.spin(0.0)
    assert not link.is_silent("guard")
    link.wait(lambda: False, 0.3)
    assert link.is_silent("guard")
    link._hear("guard")
    assert not link.is_silent("guard")
    assert link.is_silent("guard", anew=True)


def test_what_the_dead_said_last_is_not_said_by_their_successors(link: RobotLink) -> None:
    state = link.config.state
    assert state.imu is not None
    driver = {
        kind: link.node.create_publisher(kind, topic, topics.reliable(10))
        for kind, topic in ((JointState, state.joint_states), (Imu, state.imu.topic))
    }
    assert link.wait(lambda: all(p.get_subscription_count() for p in driver.values()), 10.0)
    imu(link, S, lean=0.0)
    joints(link, S)
    assert link.latest is not None
    names = list(link.config.joints)
    for _ in range(5):  # they lie in the queue when it dies
        driver[JointState].publish(JointState(name=names, position=[0.0] * len(names)))
        driver[Imu].publish(Imu())
    link.forget(["twin"])
    assert link.latest is None
    assert not link.wait(lambda: link.next_snapshot(-1, 0.0) is not None, 0.3)
    assert not link.is_silent("twin", anew=True), "its successor has not spoken yet"


def test_states_that_wait_are_all_taken_and_the_policy_sees_the_newest(link: RobotLink) -> None:
    """A conductor that got no processor for a while is late, and no state was lost."""
    state, config = topics.reliable(50), link.config
    assert config.state.imu is not None
    robot = link.node.create_publisher(JointState, config.state.joint_states, state)
    sensor = link.node.create_publisher(Imu, config.state.imu.topic, state)
    for publisher in (robot, sensor):
        assert link.wait(lambda one=publisher: one.get_subscription_count() > 0, 60.0)
    names, stamps = list(config.joints), [i * S for i in range(1, 31)]
    for stamp in stamps:
        joints, lean = JointState(name=names, position=[0.0] * len(names)), Imu()
        joints.header.stamp = lean.header.stamp = topics.time_of(stamp)
        sensor.publish(lean)
        robot.publish(joints)
    for publisher in (robot, sensor):
        assert publisher.wait_for_all_acked(Duration(seconds=60.0))
    snapshot = link.next_snapshot(0, 60.0)
    assert snapshot is not None
    assert snapshot.stamp_ns == stamps[-1]
    assert [one.stamp_ns for one in link.snapshots_after(stamps[9])] == stamps[10:]


class Asleep:
    """An executor in a process that is stopped for 6 s, and then has a state at each turn."""

    def __init__(self, link: RobotLink, monkeypatch: pytest.MonkeyPatch, states: int) -> None:
        self.now_s, self.turns, self.states = 100.0, 0, states
        self.link, self.shutdown = link, link._executor.shutdown
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(link, "_executor", self)
        link._spun_s = self.now_s

    def spin_once(self, timeout_sec: float) -> None:
        self.turns += 1
        self.now_s += max(0.001, timeout_sec) if self.turns > 1 else 6.0
        if 1 < self.turns <= self.states + 1:
            imu(self.link, 100 * S + self.turns * S // 50, lean=0.0)
            joints(self.link, 100 * S + self.turns * S // 50)
            if self.turns == 4:
                self.link.guard = module.GuardReport(state="PROTECTIVE_STOP", cause="heartbeat")


@pytest.mark.parametrize(("states", "found"), [(0, "lost"), (1, "stopped"), (20, "late")])
def test_a_conductor_that_was_stopped_looks_at_what_waits_before_it_calls_states_lost(
    link: RobotLink, monkeypatch: pytest.MonkeyPatch, states: int, found: str
) -> None:
    env = RosRobotEnv(robot=link.config, link=link, stagehand=SimpleNamespace(), balls=0)
    imu(link, 100 * S, lean=0.0)
    joints(link, 100 * S)
    last = link.next_snapshot(0, 0.0)
    assert last is not None
    link.guard = module.GuardReport(state=module.RUNNING)
    asleep = Asleep(link, monkeypatch, states if found != "stopped" else 3)
    if found == "stopped":
        last = replace(last, stamp_ns=200 * S)  # no state that waits is new
    if found == "lost":
        with pytest.raises(module.RobotLostError, match="states stopped coming"):
            env._next_tick(last)
        assert asleep.now_s > 106.8, "a second was listened to"
    else:
        snapshot = env._next_tick(last)
        assert (snapshot is None) == (found == "stopped")


def test_what_is_waited_for_may_have_come_while_the_process_was_stopped(
    link: RobotLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = Asleep(link, monkeypatch, 5)
    assert link.wait(lambda: asleep.turns >= 5, 1.0)
    assert not link.wait(lambda: False, 1.0)


def test_what_the_driver_complains_of_is_kept_until_it_is_well(link: RobotLink) -> None:
    def say(name: str, level: bytes) -> None:
        status = DiagnosticStatus(level=level, name=name, message="overcurrent")
        link._on_health(DiagnosticArray(status=[status]))

    own = f"{link.config.namespace}/driver"
    for name in (own, f"{link.config.namespace}/guard", "/another/driver"):
        say(name, DiagnosticStatus.ERROR)
    assert link.complaints == {own: "overcurrent"}
    say(own, DiagnosticStatus.OK)
    assert link.complaints == {}
