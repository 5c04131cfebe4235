"""The process that shows a robot live: it listens, and nobody waits for it."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.context import Context
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String

from robo_eval.core import door
from robo_eval.core.blinding import Blinding, blinding_of
from robo_eval.core.errors import MissingExtraError, pip_install
from robo_eval.log.directory import TrialDirectory
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig, read_robot
from robo_eval_robot.guard import STOPPED
from robo_eval_robot.process import run
from robo_eval_robot.recorder import Swept
from robo_eval_robot.view_layout import Layout, Source

if TYPE_CHECKING:
    from rclpy.subscription import MessageInfo, Subscription

    from robo_eval_robot.view_picture import Picture

_DEEP: Final = 1000
_SWEEP_S: Final = 0.1
_LIMITS_S: Final = 2.0
_POLITE: Final = 10
"""How far it stands back behind guard and driver, on a machine that is busy."""

Handler = Callable[[Any, int], None]
"""Takes a message and when it came, ns since 1970."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Turns messages into curves, states and lines of the log.

    Attributes:
        config: The robot.
        layout: Its plots.
        picture: Where they are drawn.
        blinding: How policies are called.
    """

    config: RobotConfig
    layout: Layout
    picture: Picture
    blinding: Blinding
    _seen: set[tuple[int, str]] = field(default_factory=set, init=False)

    def handlers(self) -> dict[str, tuple[type[Any], Handler]]:
        """Type and handler by topic, full names."""
        config, state = self.config, self.config.state
        named: list[tuple[str, type[Any], Handler]] = [
            (state.joint_states, JointState, self._on_joints),
            (topics.POLICY_COMMAND, JointState, self._on_request),
            (config.controller.topic, Float64MultiArray, self._on_command),
            (topics.SAFETY_STATE, DiagnosticArray, self._on_guard),
            (topics.INCIDENTS, DiagnosticArray, self._on_incident),
            (config.guard.estop.topic, Bool, self._on_estop),
            (topics.EPISODE_EVENT, String, self._on_event),
        ]
        if state.workspace is not None:
            named.append((state.workspace.topic, PoseStamped, self._on_pose))
        if state.wrench is not None:
            named.append((state.wrench.topic, WrenchStamped, self._on_wrench))
        return {config.topic(name): (kind, handler) for name, kind, handler in named}

    def _on_joints(self, message: JointState, now_ns: int) -> None:
        for quantity in ("position", "velocity", "effort"):
            # A driver may leave out what it does not measure.
            for joint, value in zip(message.name, getattr(message, quantity), strict=False):
                if joint in self.config.joints:
                    self.picture.sample(self.layout.curve(quantity, joint), now_ns, value)

    def _on_request(self, message: JointState, now_ns: int) -> None:
        values = getattr(message, self.config.controller.interface)
        for joint, value in zip(message.name, values, strict=False):
            if joint in self.config.commanded:
                path = self.layout.command(Source.REQUESTED, joint)
                self.picture.sample(path, now_ns, value)

    def _on_command(self, message: Float64MultiArray, now_ns: int) -> None:
        for joint, value in zip(self.config.commanded, message.data, strict=False):
            self.picture.sample(self.layout.command(Source.APPLIED, joint), now_ns, value)

    def _on_pose(self, message: PoseStamped, now_ns: int) -> None:
        place = message.pose.position
        for axis, value in (("x", place.x), ("y", place.y), ("z", place.z)):
            self.picture.sample(self.layout.tool("position", axis), now_ns, value)

    def _on_wrench(self, message: WrenchStamped, now_ns: int) -> None:
        for quantity in ("force", "torque"):
            part = getattr(message.wrench, quantity)
            norm = math.hypot(part.x, part.y, part.z)
            self.picture.sample(self.layout.tool(quantity, "norm"), now_ns, norm)

    def _on_guard(self, message: DiagnosticArray, now_ns: int) -> None:
        said = topics.guard_of(message)
        if said and self.picture.state("guard", now_ns, state := said["state"]):
            cause = f", {said['cause']}" if said.get("cause") else ""
            self.picture.say(now_ns, f"guard: {state}{cause}", is_bad=state in list(STOPPED))

    def _on_incident(self, message: DiagnosticArray, now_ns: int) -> None:
        stamp_ns = topics.ns_of(message.header.stamp)
        for status in message.status:
            if (stamp_ns, status.name) not in self._seen:
                self._seen.add((stamp_ns, status.name))
                text = self.blinding.text(f"{status.name}: {status.message}")
                self.picture.say(now_ns, text, is_bad=True)

    def _on_estop(self, message: Bool, now_ns: int) -> None:
        self.picture.state("emergency stop", now_ns, "pressed" if message.data else "released")

    def _on_event(self, message: String, now_ns: int) -> None:
        try:
            event = door.object_of(message.data)
        except ValueError:
            return
        kind = event.get("event")
        if kind == "start":
            name = self.blinding.episode(str(event.get("pair_id") or event.get("episode_id")))
            self.picture.state("episode", now_ns, name)
            self.picture.say(now_ns, f"begins: {name}")
        elif kind == "end":
            self.picture.state("episode", now_ns, "")
            self.picture.say(now_ns, f"ended: {event.get('end_reason') or event.get('reason')}")
        elif kind == "inject":
            self.picture.say(now_ns, f"injected: {event.get('fault')}")
        elif kind == "preflight":
            found = "passed" if event.get("passed") else "failed"
            self.picture.say(now_ns, f"preflight {found}", is_bad=found == "failed")


class View:
    """The node around a listener.

    Every subscription is best effort: a publisher waits for no receipt, and so neither for a view
    that hangs. A timer takes what came; the executor would spend more on it than drawing does.

    Args:
        context: What it lives in.
        config: The robot.
        listener: What takes the messages.
        picture: Where they are drawn.
    """

    def __init__(
        self, context: Context, config: RobotConfig, listener: Listener, picture: Picture
    ) -> None:
        self._picture: Final = picture
        self._next_limits_s = 0.0
        self.node = Node(
            "view",
            context=context,
            namespace=config.namespace,
            start_parameter_services=False,
            enable_rosout=False,
        )
        group = Swept()
        self._heard: list[tuple[Subscription[Any], Handler]] = [
            (
                self.node.create_subscription(
                    kind,
                    name,
                    lambda _: None,
                    topics.from_any(_DEEP),
                    callback_group=group,
                    event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
                ),
                handler,
            )
            for name, (kind, handler) in listener.handlers().items()
        ]
        self.node.create_timer(_SWEEP_S, self._sweep)

    @property
    def is_over(self) -> bool:
        """A view goes on until it is stopped."""
        return False

    def finish(self) -> None:
        """Draw what came last."""
        self._sweep()
        self._picture.limits(time.time_ns())
        self._picture.close()

    def _sweep(self) -> None:
        for subscription, handler in self._heard:
            for _ in range(_DEEP):
                taken = _take(subscription)
                if taken is None:
                    break
                handler(*taken)
        now = time.monotonic()
        if now >= self._next_limits_s:
            self._next_limits_s = now + _LIMITS_S
            self._picture.limits(time.time_ns())
        self._picture.tick(now)


def _take(subscription: Subscription[Any]) -> tuple[Any, int] | None:
    """Take a message that came and waits, and when it came; None if there is none."""
    is_raw = False
    with subscription.handle:
        taken: tuple[Any, MessageInfo] | None = subscription.handle.take_message(
            subscription.msg_type, is_raw
        )
    if taken is None:
        return None
    message, info = taken
    return message, info["received_timestamp"] or time.time_ns()


def make(context: Context, args: Sequence[str]) -> View:
    """Build the view from its arguments.

    Raises:
        InputError: If the robot file or the trial cannot be used.
        MissingExtraError: If Rerun is not installed.
    """
    parser = argparse.ArgumentParser(prog="view", description="Show a robot live with Rerun.")
    parser.add_argument("robot", type=Path, help="robot file (YAML)")
    parser.add_argument(
        "--to",
        default="window",
        help="`window`, a new file FILE.rrd, or rerun+http://HOST:PORT/proxy (default: window)",
    )
    parser.add_argument("--trial", type=Path, help="trial folder: its name, and its plan's codes")
    parser.add_argument("--began", type=int, help="start of the run, ns since 1970 (default: now)")
    given = parser.parse_args(list(args))
    config = read_robot(given.robot)
    title, blinding = config.name, Blinding({})
    if given.trial is not None:
        trial = TrialDirectory.open(given.trial)
        title, blinding = trial.path.name, blinding_of(trial.plan, trial.plan_digest)
    try:
        from robo_eval_robot.view_picture import Picture
    except ImportError as err:
        raise MissingExtraError(
            f"the view needs Rerun, which cannot be loaded ({err}): {pip_install('view')}"
        ) from err
    layout = Layout(config)
    picture = Picture(
        layout,
        began_ns=time.time_ns() if given.began is None else given.began,
        title=title,
    )
    picture.show(given.to)
    return View(context, config, Listener(config, layout, picture, blinding), picture)


def main(args: Sequence[str] | None = None) -> int:
    """Run the view until a signal ends it."""
    os.nice(_POLITE)  # before DDS starts its threads, which inherit it
    return run(make, args)


if __name__ == "__main__":
    sys.exit(main())
