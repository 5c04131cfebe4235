"""Who else is on a robot's topics, and whether they and our nodes understand each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check, bad, good, note
from robo_eval_robot.hearing import COMMAND_TYPE, Endpoint, Heard, listened, type_of

_LISTENERS: Final = ("guard", "recorder", "conductor", "policy", "doctor", "view")
"""Our nodes that may listen to the controller's topic without moving anything."""
_NAMELESS: Final = "_NODE_NAME_UNKNOWN_"
"""Of a node that joins, its topics may be known before its name."""
_POLICIES: Final = ("conductor", "policy")


def peer_checks(config: RobotConfig, heard: Heard) -> list[Check]:
    """Every check of publishers, subscribers, emergency stop and guard.

    Args:
        config: The robot.
        heard: What was heard of it.
    """
    return [
        *delivery(config, heard),
        controller(config, heard),
        commanders(config, heard),
        requesters(config, heard),
        estop(config, heard),
        guard(heard),
    ]


def delivery(config: RobotConfig, heard: Heard) -> list[Check]:
    """Whether our nodes get what is published: one check a topic that somebody publishes."""
    checks = []
    for topic, (kind, requested) in listened(config).items():
        found = heard.publishers.get(topic, ())
        if not found:
            continue  # that nothing arrives is said elsewhere
        problems = [_misfit(each, type_of(kind), requested) for each in found]
        problem = next(filter(None, problems), None)
        name = f"delivery of {topic.removeprefix(config.namespace + '/')}"
        if problem is None:
            offered = "reliable, latched" if found[0].is_latched else "reliable"
            checks.append(good(name, f"{offered}, {found[0].type}"))
        else:
            checks.append(bad(name, *problem))
    return checks


def _misfit(offered: Endpoint, kind: str, requested: QoSProfile) -> tuple[str, str] | None:
    """What keeps a publisher's messages from one of our nodes, with its remedy."""
    if offered.type != kind:
        return f"{offered.node} publishes {offered.type}", f"{kind} is needed; name another topic"
    if requested.reliability == ReliabilityPolicy.RELIABLE and not offered.is_reliable:
        return (
            f"{offered.node} offers reliability BEST_EFFORT, RELIABLE is requested",
            "set the publisher's reliability to RELIABLE",
        )
    if requested.durability == DurabilityPolicy.TRANSIENT_LOCAL and not offered.is_latched:
        return (
            f"{offered.node} offers durability VOLATILE, TRANSIENT_LOCAL is requested",
            "set the publisher's durability to TRANSIENT_LOCAL",
        )
    return None


def controller(config: RobotConfig, heard: Heard) -> Check:
    """Whether somebody takes the guard's commands."""
    topic, name = config.topic(config.controller.topic), "controller"
    takers = takers_of(config, heard.subscribers.get(topic, ()))
    if not takers:
        remedy = "is the controller loaded and active? if so, set controller.topic to its own"
        return bad(name, f"nobody listens on {topic}", remedy)
    told = [word for word in ("position", "velocity", "effort") if word in topic]
    if told and config.controller.interface not in told:
        remedy = f"set controller.interface to {told[0]}, or controller.topic to another controller"
        found = f"controller.interface is {config.controller.interface}, the topic {topic}"
        return bad(name, found, remedy)
    for taker in takers:
        if taker.type != COMMAND_TYPE:
            remedy = f"{COMMAND_TYPE} is sent; set controller.topic to a forward controller's"
            found = f"{taker.node} takes {taker.type} on {topic}"
            return bad(name, found, remedy)
        if taker.is_latched:
            remedy = "set the subscriber's durability to VOLATILE: commands are not kept"
            found = f"{taker.node} requests durability TRANSIENT_LOCAL, VOLATILE is offered"
            return bad(name, found, remedy)
    nodes = ", ".join(each.node for each in takers)
    return good(name, f"{nodes} listens on {topic}")


def takers_of(config: RobotConfig, subscribers: Sequence[Endpoint]) -> list[Endpoint]:
    """Subscribers of the controller's topic without our own nodes, which move nothing."""
    own = {f"{config.namespace}/{node}" for node in _LISTENERS}
    others = [each for each in subscribers if each.node not in own]
    return [each for each in others if not each.node.endswith(_NAMELESS)]


def commanders(config: RobotConfig, heard: Heard) -> Check:
    """Whether anybody but the guard commands the controller."""
    topic, name = config.topic(config.controller.topic), "one commander"
    found = heard.publishers.get(topic, ())
    guards = [each for each in found if each.node == f"{config.namespace}/guard"]
    others = [each.node for each in found if each not in guards]
    if others or len(guards) > 1:
        who = ", ".join(others) or "a second guard"
        remedy = "end that node: only the guard may command the controller"
        return bad(name, f"{who} publishes on {topic}", remedy)
    return good(name, "the guard only" if guards else f"nobody on {topic}")


def requesters(config: RobotConfig, heard: Heard) -> Check:
    """Whether anybody asks for commands."""
    topic, name = config.topic(topics.POLICY_COMMAND), "one policy"
    own = {f"{config.namespace}/{node}" for node in _POLICIES}
    found = [each for t, who in heard.publishers.items() if t.startswith(topic) for each in who]
    others = [each.node for each in found if each.node not in own]
    if others:
        remedy = "end that node: the policy of a run must be the only one"
        return bad(name, f"{', '.join(others)} publishes on {topic}", remedy)
    if found:
        there = f"{', '.join(each.node for each in found)} is there"
        return note(name, there, "a run seems to be on; let it end")
    return good(name, f"nobody on {topic}")


def estop(config: RobotConfig, heard: Heard) -> Check:
    """Whether the emergency stop is seen, and released."""
    topic, name = config.topic(config.guard.estop.topic), "e-stop"
    if not heard.estop:
        is_needed = config.guard.estop.required
        remedy = f"have the driver publish its state on {topic} (std_msgs/Bool, true = pressed,"
        remedy += " latched): "
        remedy += "without it the guard enables nothing" if is_needed else "the guard cannot see it"
        return (bad if is_needed else note)(name, f"nothing on {topic}", remedy)
    if heard.estop[-1]:
        return bad(name, "is pressed", "see why it was pressed, then release it")
    return good(name, "is released; --estop also sees it pressed")


def guard(heard: Heard) -> Check:
    """What the guard says, if one runs; none has to."""
    name, state = "guard", heard.guard.get("state", "")
    if not state:
        return good(name, "not running; robo-eval run starts it")
    if state == "READY":
        return good(name, "READY: nothing is passed on")
    if state == "INIT":
        return note(name, "INIT", heard.guard.get("waits_for", ""))
    if state == "RUNNING":
        return note(name, "RUNNING: motion is enabled", "a run seems to be on; let it end")
    found = f"{state} ({heard.guard.get('causes', '')})"
    return note(name, found, "remove the cause, then call safety/reset")
