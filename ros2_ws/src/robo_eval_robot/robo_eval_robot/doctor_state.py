"""Whether what a robot says of itself is complete, regular and in time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from robo_eval.core.names import unknown_name
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check, bad, good, note
from robo_eval_robot.hearing import CLOCK, FIELDS, Endpoint, Heard, JointMessage

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
        looks = (rate, joints, fields, numbers, stamps, wall_clock)
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
        return good(name, f"arrive on {topic}")
    publishers = heard.publishers.get(topic, ())
    remedy = why_silent(publishers)
    if config.body == "twin" and not publishers:
        remedy = "a twin runs while robo-eval run plays it; for this table start it by"
        remedy += " python -m robo_eval_twin.twin_node ROBOT.yaml"
    return bad(name, f"nothing arrives on {topic}", remedy)


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
    name, wanted = "state rate", config.state.rate_hz
    found = _rate_hz([each.received_s for each in heard.joints])
    heard_of = f"{len(heard.joints)} messages" if found is None else f"{found:.1f} Hz"
    text = f"{heard_of}, {wanted:g} Hz wanted"
    if found is not None and abs(found - wanted) <= RATE_TOLERANCE * wanted:
        return good(name, text)
    remedy = "set state.rate_hz to the driver's rate, or the broadcaster's update_rate to this one"
    return bad(name, text, remedy)


def joints(config: RobotConfig, heard: Heard) -> Check:
    """Whether all joints are named, together, and once."""
    name, named = "joint names", list(dict.fromkeys(n for each in heard.joints for n in each.names))
    others = [joint for joint in named if joint not in config.joints]
    missing = [joint for joint in config.joints if joint not in named]
    if missing:
        hint = str(unknown_name("joint", missing[0], named)) if named else "the messages are empty"
        remedy = f"name the driver's joints in the robot file; {hint}"
        return bad(name, f"not there: {', '.join(missing)}", remedy)
    ours = _ours(config, heard)
    if any(len(set(each.names)) < len(each.names) for each in ours):
        remedy = "configure the joint state broadcaster to name each joint once"
        return bad(name, "a joint is named twice", remedy)
    if not all(set(config.joints) <= set(each.names) for each in ours):
        remedy = "have one broadcaster publish all joints of the robot file in one message"
        return bad(name, "the joints come in several messages", remedy)
    also = f"; also {', '.join(others)}, which are ignored" if others else ""
    return good(name, f"{', '.join(config.joints)}{also}")


def fields(config: RobotConfig, heard: Heard) -> Check:
    """Which of position, velocity and effort are filled."""
    name, newest = "state fields", (_ours(config, heard) or heard.joints)[-1]
    counts = {field: len(values) for field, values in newest.fields.items()}
    wrong = [f for f, n in counts.items() if n not in (0, len(newest.names))]
    if wrong or not counts["position"]:
        found = f"{wrong[0]} has {counts[wrong[0]]} numbers" if wrong else "position is empty"
        remedy = "one number a joint is needed; look at the joint state broadcaster's interfaces"
        return bad(name, f"{found} for {len(newest.names)} joints", remedy)
    empty = [each for each, count in counts.items() if not count]
    full = f"{', '.join(each for each, count in counts.items() if count)} filled"
    if not empty:
        return good(name, full)
    remedies = {
        "velocity": "velocities are taken from positions, which is later and noisier",
        "effort": "limits of effort are not watched",
    }
    remedy = "; ".join(remedies[each] for each in empty)
    return note(name, f"{full}, {', '.join(empty)} empty", remedy)


def numbers(config: RobotConfig, heard: Heard) -> Check:
    """Whether the numbers are numbers."""
    name = "state numbers"
    broken: dict[str, str] = {}
    never: set[str] = set()
    for joint in config.joints:
        for field in FIELDS:
            values = _values(heard.joints, joint, field)
            odd = [value for value in values if not math.isfinite(value)]
            if not odd:
                continue
            # A driver fills with NaN what it never measures.
            if field != "position" and len(odd) == len(values) and all(map(math.isnan, odd)):
                never.add(f"{joint} {field}")
            else:
                broken[f"{joint} {field}"] = f"{odd[0]}"
    if broken:
        where, value = next(iter(broken.items()))
        remedy = "the guard stops the robot for that; look at the driver and its encoders"
        return bad(name, f"{where} is {value}", remedy)
    if never:
        found = f"always NaN: {', '.join(sorted(never))}"
        return note(name, found, "these are taken as not measured")
    return good(name, "all finite")


def stamps(config: RobotConfig, heard: Heard) -> Check:
    """Whether stamps go on."""
    found = [each.stamp_ns for each in _ours(config, heard)]
    name, remedy = "state stamps", "have the driver stamp each message with the time it measured"
    if any(later < earlier for earlier, later in pairwise(found)):
        remedy = "one clock and one publisher for joint states: stamps must never go back"
        return bad(name, "go back at times", remedy)
    if len(found) > 1 and len(set(found)) <= 0.5 * len(found):
        return bad(name, "stand still", remedy)
    if found and found[-1] == 0:
        return bad(name, "are zero", remedy)
    return good(name, "advance")


def wall_clock(config: RobotConfig, heard: Heard) -> Check:
    """How far the driver's clock is from this machine's; a difference is a note."""
    ours = _ours(config, heard) or heard.joints
    skew_s = statistics.median((each.wall_ns - each.stamp_ns) / 1e9 for each in ours)
    name, where = "wall clock", "behind" if skew_s >= 0 else "ahead of"
    found = f"stamps are {abs(skew_s):.3g} s {where} this clock"
    if abs(skew_s) <= SKEW_S:
        return good(name, found)
    remedy = "synchronise both clocks (chrony, PTP): times are compared later"
    if heard.publishers.get(CLOCK):
        remedy = f"somebody publishes {CLOCK}: a robot must run on wall time, without use_sim_time"
    return note(name, found, remedy)


def driver_heartbeat(config: RobotConfig, limit_s: float, heard: Heard) -> Check:
    """Whether the driver says often enough that it is alive."""
    topic, name = config.topic(topics.DRIVER_HEARTBEAT), "driver heartbeat"
    times = heard.arrivals.get(topic, [])
    gaps = [later - earlier for earlier, later in pairwise(times)]
    if not gaps:
        remedy = "have the driver publish it (std_msgs/Header), or remove guard.driver_heartbeat_s"
        return bad(name, f"{len(times)} messages on {topic}", remedy)
    found = f"every {statistics.median(gaps):.3g} s, longest silence {max(gaps):.3g} s"
    if max(gaps) <= limit_s:
        return good(name, found)
    remedy = f"guard.driver_heartbeat_s allows {limit_s:g} s: send it more often, or allow more"
    return bad(name, found, remedy)


def _arrives(name: str, topic: str, heard: Heard) -> Check:
    times = heard.arrivals.get(topic, [])
    if not times:
        remedy = "start its broadcaster, or name the topic it publishes on in the robot file"
        return bad(name, f"nothing arrives on {topic}", remedy)
    rate_hz = _rate_hz(times)
    often = f"{len(times)} messages" if rate_hz is None else f"{rate_hz:.1f} Hz"
    return good(name, f"{often} on {topic}")


def _ours(config: RobotConfig, heard: Heard) -> list[JointMessage]:
    """Messages with joints of this robot: others may come on the same topic."""
    return [each for each in heard.joints if set(each.names) & set(config.joints)]


def _values(messages: Sequence[JointMessage], joint: str, field: str) -> list[float]:
    found = []
    for each in messages:
        values = each.fields[field]
        if joint in each.names and each.names.index(joint) < len(values):
            found.append(values[each.names.index(joint)])
    return found


def _rate_hz(times: Sequence[float]) -> float | None:
    """Messages a second; None for a few."""
    if len(times) < _FEW or times[-1] <= times[0]:
        return None
    return (len(times) - 1) / (times[-1] - times[0])
