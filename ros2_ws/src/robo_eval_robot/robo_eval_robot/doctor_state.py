"""Whether what a robot says of itself is complete, regular and in time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from robo_eval.core.names import unknown_name
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check
from robo_eval_robot.hearing import CLOCK, Endpoint, Heard, JointMessage

RATE_TOLERANCE: Final = 0.2
SKEW_S: Final = 0.1
_FEW: Final = 3


def state_checks(config: RobotConfig, heard: Heard) -> list[Check]:
    """Every check of joint states, other sensors and heartbeats.

    Args:
        config: The robot.
        heard: What was heard of it.
    """
    arrive = joint_states(config, heard)
    checks = [arrive]
    if heard.joints:
        looks: tuple[Callable[[RobotConfig, Heard], Check], ...] = (
            rate,
            joints,
            fields,
            numbers,
            stamps,
            wall_clock,
        )
        checks += [look(config, heard) for look in looks]
    state = config.state
    for name, sensor in (("IMU", state.imu), ("wrench", state.wrench), ("pose", state.workspace)):
        if sensor is not None:
            checks.append(_arrives(name, config.topic(sensor.topic), heard))
    if config.guard.driver_heartbeat_s is not None:
        checks.append(driver_heartbeat(config, config.guard.driver_heartbeat_s, heard))
    return checks


def joint_states(config: RobotConfig, heard: Heard) -> Check:
    """Whether joint states come at all."""
    topic, name = config.topic(config.state.joint_states), "joint states"
    if heard.joints:
        return Check(name, passed=True, found=f"arrive on {topic}")
    publishers = heard.publishers.get(topic, ())
    remedy = why_silent(publishers)
    if config.body == "twin" and not publishers:
        remedy = "a twin runs while robo-eval run plays it; for this table start it by"
        remedy += " python -m robo_eval_twin.twin_node ROBOT.yaml"
    return Check(name, passed=False, found=f"nothing arrives on {topic}", remedy=remedy)


def why_silent(publishers: Sequence[Endpoint]) -> str:
    """What to look at if nothing arrives on a topic that these publish."""
    if publishers:
        return (
            f"{publishers[0].node} is there and says nothing; if it runs as another user or in a"
            " container, shared memory may be in the way: set FASTDDS_BUILTIN_TRANSPORTS=UDPv4 for"
            " all processes"
        )
    return (
        "switch the robot on and start its driver; ROS_DOMAIN_ID and discovery range must be the"
        " same on both machines; compare namespace and topic in the file with the driver's"
    )


def rate(config: RobotConfig, heard: Heard) -> Check:
    """Whether joint states come as often as the file says."""
    wanted, found = config.state.rate_hz, _rate_hz([each.received_s for each in heard.joints])
    if found is None:
        text, is_so = f"{len(heard.joints)} messages, {wanted:g} Hz wanted", False
    else:
        text = f"{found:.1f} Hz, {wanted:g} Hz wanted"
        is_so = abs(found - wanted) <= RATE_TOLERANCE * wanted
    remedy = "set state.rate_hz to the driver's rate, or the broadcaster's update_rate to this one"
    return Check("state rate", passed=is_so, found=text, remedy="" if is_so else remedy)


def joints(config: RobotConfig, heard: Heard) -> Check:
    """Whether all joints are named, together, and once."""
    name, named = "joint names", list(dict.fromkeys(n for each in heard.joints for n in each.names))
    others = [joint for joint in named if joint not in config.joints]
    missing = [joint for joint in config.joints if joint not in named]
    if missing:
        hint = str(unknown_name("joint", missing[0], named)) if named else "the messages are empty"
        remedy = f"name the driver's joints in the robot file; {hint}"
        found = f"not there: {', '.join(missing)}"
        return Check(name, passed=False, found=found, remedy=remedy)
    ours = [each for each in heard.joints if set(each.names) & set(config.joints)]
    if any(len(set(each.names)) < len(each.names) for each in ours):
        remedy = "configure the joint state broadcaster to name each joint once"
        return Check(name, passed=False, found="a joint is named twice", remedy=remedy)
    if not all(set(config.joints) <= set(each.names) for each in ours):
        remedy = "have one broadcaster publish all joints of the robot file in one message"
        found = "the joints come in several messages"
        return Check(name, passed=False, found=found, remedy=remedy)
    also = f"; also {', '.join(others)}, which are ignored" if others else ""
    return Check(name, passed=True, found=f"{', '.join(config.joints)}{also}")


def fields(config: RobotConfig, heard: Heard) -> Check:
    """Which of position, velocity and effort are filled."""
    newest = _newest(config, heard)
    counts = {
        "position": len(newest.positions),
        "velocity": len(newest.velocities),
        "effort": len(newest.efforts),
    }
    wrong = [f for f, n in counts.items() if n not in (0, len(newest.names))]
    if wrong or not counts["position"]:
        found = f"{wrong[0]} has {counts[wrong[0]]} numbers" if wrong else "position is empty"
        remedy = "one number a joint is needed; look at the joint state broadcaster's interfaces"
        found += f" for {len(newest.names)} joints"
        return Check("state fields", passed=False, found=found, remedy=remedy)
    empty = [each for each, count in counts.items() if not count]
    full = [each for each, count in counts.items() if count]
    remedies = {
        "velocity": "velocities are taken from positions, which is later and noisier",
        "effort": "limits of effort are not watched",
    }
    return Check(
        "state fields",
        passed=None if empty else True,
        found=f"{', '.join(full)} filled" + (f", {', '.join(empty)} empty" if empty else ""),
        remedy="; ".join(remedies[each] for each in empty),
    )


def numbers(config: RobotConfig, heard: Heard) -> Check:
    """Whether the numbers are numbers."""
    name = "state numbers"
    broken: dict[str, str] = {}
    never: set[str] = set()
    for joint in config.joints:
        for field in ("position", "velocity", "effort"):
            values = _values(heard.joints, joint, field)
            bad = [value for value in values if not math.isfinite(value)]
            if not bad:
                continue
            # A driver fills with NaN what it never measures.
            if field != "position" and len(bad) == len(values) and all(map(math.isnan, bad)):
                never.add(f"{joint} {field}")
            else:
                broken[f"{joint} {field}"] = f"{bad[0]}"
    if broken:
        where, value = next(iter(broken.items()))
        remedy = "the guard stops the robot for that; look at the driver and its encoders"
        return Check(name, passed=False, found=f"{where} is {value}", remedy=remedy)
    if never:
        found, remedy = f"always NaN: {', '.join(sorted(never))}", "these are taken as not measured"
        return Check(name, passed=None, found=found, remedy=remedy)
    return Check(name, passed=True, found="all finite")


def stamps(config: RobotConfig, heard: Heard) -> Check:
    """Whether stamps go on."""
    found = [each.stamp_ns for each in _ours(config, heard)]
    name, remedy = "state stamps", "have the driver stamp each message with the time it measured"
    if any(later < earlier for earlier, later in pairwise(found)):
        remedy = "one clock and one publisher for joint states: stamps must never go back"
        return Check(name, passed=False, found="go back at times", remedy=remedy)
    if len(found) > 1 and len(set(found)) <= 0.5 * len(found):
        return Check(name, passed=False, found="stand still", remedy=remedy)
    if found and found[-1] == 0:
        return Check(name, passed=False, found="are zero", remedy=remedy)
    return Check(name, passed=True, found="advance")


def wall_clock(config: RobotConfig, heard: Heard) -> Check:
    """How far the driver's clock is from this machine's; a difference is a note."""
    ours = _ours(config, heard) or heard.joints
    skew_s = statistics.median((each.wall_ns - each.stamp_ns) / 1e9 for each in ours)
    is_near = abs(skew_s) <= SKEW_S
    found = f"stamps are {abs(skew_s):.3g} s {'behind' if skew_s >= 0 else 'ahead of'} this clock"
    remedy = "" if is_near else "synchronise both clocks (chrony, PTP): times are compared later"
    if heard.publishers.get(CLOCK) and not is_near:
        remedy = f"somebody publishes {CLOCK}: a robot must run on wall time, without use_sim_time"
    return Check("wall clock", passed=True if is_near else None, found=found, remedy=remedy)


def driver_heartbeat(config: RobotConfig, limit_s: float, heard: Heard) -> Check:
    """Whether the driver says often enough that it is alive."""
    topic, name = config.topic(topics.DRIVER_HEARTBEAT), "driver heartbeat"
    times = heard.arrivals.get(topic, [])
    gaps = [later - earlier for earlier, later in pairwise(times)]
    if not gaps:
        remedy = "have the driver publish it (std_msgs/Header), or remove guard.driver_heartbeat_s"
        found = f"{len(times)} messages on {topic}"
        return Check(name, passed=False, found=found, remedy=remedy)
    is_often = max(gaps) <= limit_s
    return Check(
        name,
        passed=is_often,
        found=f"every {statistics.median(gaps):.3g} s, longest silence {max(gaps):.3g} s",
        remedy=""
        if is_often
        else f"guard.driver_heartbeat_s allows {limit_s:g} s: send it more often, or allow more",
    )


def _arrives(name: str, topic: str, heard: Heard) -> Check:
    times = heard.arrivals.get(topic, [])
    if not times:
        remedy = "start its broadcaster, or name the topic it publishes on in the robot file"
        return Check(name, passed=False, found=f"nothing arrives on {topic}", remedy=remedy)
    rate_hz = _rate_hz(times)
    found = (
        f"{len(times)} messages on {topic}" if rate_hz is None else f"{rate_hz:.1f} Hz on {topic}"
    )
    return Check(name, passed=True, found=found)


def _ours(config: RobotConfig, heard: Heard) -> list[JointMessage]:
    """Messages with joints of this robot: others may come on the same topic."""
    return [each for each in heard.joints if set(each.names) & set(config.joints)]


def _newest(config: RobotConfig, heard: Heard) -> JointMessage:
    return (_ours(config, heard) or heard.joints)[-1]


def _values(messages: Sequence[JointMessage], joint: str, field: str) -> list[float]:
    found = []
    for each in messages:
        values = {
            "position": each.positions,
            "velocity": each.velocities,
            "effort": each.efforts,
        }[field]
        if joint in each.names and each.names.index(joint) < len(values):
            found.append(values[each.names.index(joint)])
    return found


def _rate_hz(times: Sequence[float]) -> float | None:
    """Messages a second; None for a few."""
    if len(times) < _FEW or times[-1] <= times[0]:
        return None
    return (len(times) - 1) / (times[-1] - times[0])
