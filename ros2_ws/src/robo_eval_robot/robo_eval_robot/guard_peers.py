"""Whether those the guard depends on are there, and alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from robo_eval_robot.config import POLICY_COMMAND, POLICY_HEARTBEAT, EStop, RobotConfig
from robo_eval_robot.guard_checks import Code, Violation, counted, too_long


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message is from, as far as the middleware says."""

    source: str = ""
    """Its publisher; the same as on the graph."""
    sequence: int | None = None
    """Its number among those of its publisher."""


class Author:
    """The publisher that is listened to while motion is enabled.

    Args:
        topic: Full name of the topic.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._source: str | None = None
        self._sequence: int | None = None
        self.missed = 0
        """Messages of the author that did not come, by the numbers of those that did."""
        self.nodes: Mapping[str, str] = {}
        """Name of the node by publisher of the topic, as the graph has it."""

    def begin(self) -> None:
        """Motion is enabled: from now on the author is who is there alone, else who comes first."""
        self._source = next(iter(self.nodes)) if len(self.nodes) == 1 else None
        self._sequence = None

    def foreign(self, origin: Origin) -> tuple[Violation, ...]:
        """That a message is of somebody else.

        Args:
            origin: Where it is from.
        """
        if self._source is None:
            self._source = origin.source
        if origin.source == self._source:
            return ()
        stranger = self.nodes.get(origin.source, f"publisher {origin.source or 'unknown'}")
        text = f"{stranger} published on {self._topic}, and is not the policy that was enabled."
        return (counted(Code.OTHER_AUTHOR, text, 2, 1, "authors"),)

    def is_next(self, origin: Origin) -> bool:
        """Whether a message of the author came for the first time, and was not overtaken.

        Args:
            origin: Where it is from.
        """
        last = self._sequence
        if origin.sequence is None:
            return True
        if last is not None and origin.sequence <= last:
            return False
        self.missed += 0 if last is None else origin.sequence - last - 1
        self._sequence = origin.sequence
        return True

    def several(self) -> tuple[Violation, ...]:
        """That several nodes are there, of which nobody can say which is the policy.

        Not those of one name: a process that was killed stays on the graph for a while.
        """
        names = sorted(set(self.nodes.values()))
        if len(names) <= 1:
            return ()
        text = f"{' and '.join(names)} publish on {self._topic}; end all but the policy."
        return (counted(Code.OTHER_AUTHOR, text, len(names), 1, "authors"),)


class EmergencyStops:
    """Remembers each source of the emergency stop's topic.

    A source that is pressed counts until it is released itself. If it is gone meanwhile, its node
    has to come back and say so. A node of the same name that was there beside it is another one.

    Args:
        config: What the robot file says of them.
    """

    def __init__(self, config: EStop) -> None:
        self._config = config
        self._pressed: dict[str, bool] = {}
        self._heard: dict[str, float] = {}
        self._nodes: dict[str, str] = {}
        self._since: dict[str, float] = {}
        """When each was first seen or heard."""
        self._gone: dict[str, float] = {}
        """When its end was seen."""
        self._count = 1

    def hear(self, source: str, now: float, *, pressed: bool) -> None:
        """Take a message.

        Args:
            source: Which publisher it is of.
            now: Monotonic time, s.
            pressed: What it says.
        """
        self._pressed[source], self._heard[source] = pressed, now
        self._since.setdefault(source, now)
        self._gone.pop(source, None)  # it is heard after all
        self._forget_followed()

    def see(self, count: int, nodes: Mapping[str, str] | None, now: float) -> None:
        """Look at who publishes the topic.

        Args:
            count: How many there are.
            nodes: Name of the node by publisher; None if that is not known.
            now: Monotonic time, s.
        """
        self._count = count
        if nodes is not None:
            self._nodes |= nodes
            self._since = dict.fromkeys(nodes, now) | self._since
            ended = self._nodes.keys() - nodes
            self._gone = {s: self._gone.get(s, now) for s in self._heard if s in ended}
            self._forget_followed()

    def _forget_followed(self) -> None:
        """Forget who is gone, where the node that was ended has been started again, and spoke."""
        for gone in list(self._gone):
            if any(self._follows(gone, each) for each in self._heard.keys() - self._gone.keys()):
                del self._gone[gone], self._pressed[gone], self._heard[gone]

    def _follows(self, gone: str, source: str) -> bool:
        if self._nodes.get(source) != self._nodes[gone]:
            return False
        since = self._since[source]
        # The graph may show the end long after it. But a release counts only after that.
        return since >= self._gone[gone] if self._pressed[gone] else since > self._heard[gone]

    def lost(self, now: float) -> tuple[Violation, ...]:
        """That one that has been heard could not be heard any more.

        Args:
            now: Monotonic time, s.
        """
        wrong = []
        if self._config.required and self._pressed and (self._gone or not self._count):
            text = "Nobody publishes the emergency stop's topic any more."
            if self._count:
                names = ", ".join(sorted({self._name(source) for source in self._gone}))
                text = f"A source of the emergency stop is gone: {names}."
            there = max(self._count + len(self._gone), 1)
            wrong.append(counted(Code.ESTOP_LOST, text, self._count, there, "publishers"))
        deadline_s = self._config.deadline_s
        for source, at in self._heard.items():
            if deadline_s is not None and now - at > deadline_s:
                who = self._name(source)
                text = f"{who} has said nothing of the emergency stop for {now - at:.3f} s."
                wrong.append(too_long(Code.ESTOP_LOST, text, now - at, deadline_s))
        return tuple(wrong)

    def persisting(self, now: float) -> tuple[Violation, ...]:
        """What keeps the robot from being enabled.

        Args:
            now: Monotonic time, s.
        """
        wrong = list(self.lost(now))
        pressed = [self._name(source) for source, is_so in self._pressed.items() if is_so]
        if pressed:
            text = f"The emergency stop is pressed: {', '.join(sorted(set(pressed)))}."
            wrong.append(Violation(code=Code.ESTOP, message=text))
        elif not self._pressed and self._config.required:
            text = "The emergency stop has not been seen released yet."
            wrong.append(Violation(code=Code.ESTOP, message=text))
        return tuple(wrong)

    def _name(self, source: str) -> str:
        return self._nodes.get(source, f"source {source or 'unknown'}")


class Peers:
    """Remembers when policy and driver were last heard, and who else is on the network.

    Args:
        robot: The robot.
        now: Monotonic time, s.
    """

    def __init__(self, robot: RobotConfig, now: float) -> None:
        self._config = robot.guard
        self._topic = robot.topic(robot.controller.topic)
        self._has_power_off = robot.guard.stop.category == 2
        self.publishers = 1
        """Of the controller's topic, the guard among them."""
        self.estops = EmergencyStops(robot.guard.estop)
        self._mode = robot.state.mode
        self.mode: str | None = None
        """Of the driver; None if it was never heard."""
        self._driver_beat: float | None = None
        self._enabled_at = self._policy_beat = self._command_at = now
        self.requests = Author(robot.topic(POLICY_COMMAND))
        self.beats = Author(robot.topic(POLICY_HEARTBEAT))

    def enabled(self, now: float) -> None:
        """From now on the policy has to be heard."""
        self._enabled_at = self._policy_beat = self._command_at = now
        self.requests.begin()
        self.beats.begin()

    def commanded(self, now: float) -> None:
        """A request of the policy was passed on."""
        self._command_at = now

    def heard_policy(self, now: float) -> None:
        """The policy's control loop is alive."""
        self._policy_beat = now

    def heard_driver(self, now: float) -> None:
        """The driver's control loop is alive."""
        self._driver_beat = now

    def see_power_off(self, *, is_ready: bool) -> None:
        """Whether the driver's service that removes power is there, where it is needed."""
        self._has_power_off = is_ready or self._config.stop.category == 2

    def policy_ages_s(self, now: float) -> dict[Code, float]:
        """Seconds since the policy's last request and heartbeat, or since it was enabled."""
        return {
            Code.COMMAND_AGE: now - self._command_at,
            Code.POLICY_HEARTBEAT: now - self._policy_beat,
        }

    def driver_age_s(self, now: float) -> float | None:
        """Seconds since the driver's last heartbeat; None if there was none."""
        return None if self._driver_beat is None else now - self._driver_beat

    def silent_policy(self, now: float) -> tuple[Violation, ...]:
        """What the policy should have sent and did not."""
        config, ages_s, found = self._config, self.policy_ages_s(now), []
        for what, code, limit_s in (
            ("request", Code.COMMAND_AGE, config.command_age_s),
            ("heartbeat", Code.POLICY_HEARTBEAT, config.policy_heartbeat_s),
        ):
            if (age_s := ages_s[code]) > limit_s:
                text = f"The policy's last {what} is {age_s:.3f} s old."
                if age_s == now - self._enabled_at:
                    text = f"No {what} has come in the {age_s:.3f} s since motion was enabled."
                found.append(too_long(code, text, age_s, limit_s))
        return tuple(found)

    def silent_driver(self, now: float) -> tuple[Violation, ...]:
        """That the driver's heartbeat stays out, if it has one."""
        limit_s, age_s = self._config.driver_heartbeat_s, self.driver_age_s(now)
        if limit_s is None or (age_s is not None and age_s <= limit_s):
            return ()
        text = "No heartbeat of the driver has come yet."
        if age_s is not None:
            text = f"The driver's last heartbeat is {age_s:.3f} s old."
        return (too_long(Code.DRIVER_HEARTBEAT, text, age_s, limit_s),)

    def second_publisher(self) -> tuple[Violation, ...]:
        """That somebody else commands the controller."""
        if self.publishers <= 1:
            return ()
        text = f"Another node publishes on {self._topic}."
        return (counted(Code.SECOND_PUBLISHER, text, self.publishers, 1, "publishers"),)

    def follows(self) -> bool:
        """Whether the robot follows commands, as far as its driver says."""
        return self.mode is None or self._mode is None or self.mode in self._mode.follows

    def not_followed(self) -> tuple[Violation, ...]:
        """That the robot does not follow commands, by what its driver says."""
        if self._mode is None or self.follows():
            return ()
        text = f"The driver is in mode {self.mode!r:.80}, in which the robot follows no commands."
        return (Violation(code=Code.MODE, message=text),)

    def persisting(self, now: float) -> tuple[Violation, ...]:
        """What keeps the robot from being enabled."""
        wrong = [*self.silent_driver(now), *self.second_publisher(), *self.not_followed()]
        wrong += (*self.requests.several(), *self.beats.several())
        if self._mode is not None and self.mode is None:
            text = f"The driver has not told its mode on {self._mode.topic} yet."
            wrong.append(Violation(code=Code.MODE, message=text))
        if not self._has_power_off:
            text = f"The driver's service {self._config.stop.power_off} is not there."
            wrong.append(Violation(code=Code.POWER_OFF, message=text))
        return (*wrong, *self.estops.persisting(now))
