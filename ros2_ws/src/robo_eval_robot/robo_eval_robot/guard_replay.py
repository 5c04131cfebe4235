"""What a guard says today to what another one heard when it stopped: an incident, replayed.

There is no ROS in it: clips are replayed wherever they lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcap.reader import make_reader

from robo_eval.core.errors import InputError
from robo_eval.log.cdr import Cursor
from robo_eval.log.messages import after_header, diagnostics, joint_state
from robo_eval_incidents.cut import explained_damage, opened, sound_files
from robo_eval_incidents.happened import heard_in, physical_events
from robo_eval_robot.config import (
    DRIVER_HEARTBEAT,
    POLICY_COMMAND,
    POLICY_HEARTBEAT,
    SAFETY_STATE,
    RobotConfig,
)
from robo_eval_robot.guard import MOVING, STOPPED, Guard, GuardState, Reaction
from robo_eval_robot.guard_checks import Code, Request
from robo_eval_robot.guard_watch import JointSample

UNSEEN: Final = (
    Code.OPERATOR_STOP, Code.ESTOP_LOST, Code.SECOND_PUBLISHER, Code.POWER_OFF,
    Code.GUARD_OVERRUN, Code.GUARD_SHUTDOWN, Code.OTHER_AUTHOR,
)  # fmt: skip
"""Causes that no message tells of: calls, processes, and who is on the network."""
_FIELDS: Final = ("position", "velocity", "effort")
_S_PER_NS: Final = 1e-9
_LEAST_S: Final = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a guard stopped.

    Attributes:
        stopped_ns: When the stop began, UTC; None if it did not stop.
        causes: Why, the first cause first; without those that no message tells of.
    """

    stopped_ns: int | None
    causes: tuple[str, ...]

    def late_s(self, other: Outcome) -> float | None:
        """How much later another one stops, s; None if one of them does not."""
        if self.stopped_ns is None or other.stopped_ns is None:
            return None
        return (other.stopped_ns - self.stopped_ns) * _S_PER_NS


def replay(clip: Path, robot: RobotConfig, happened_ns: int) -> tuple[Outcome, Outcome]:
    """How the guard stopped by what a clip says, and how one with these settings does.

    Args:
        clip: The trace around the incident, MCAP.
        robot: The robot with its settings.
        happened_ns: When it happened, UTC.

    Raises:
        InputError: If the clip is missing or damaged, lacks what the guard hears, or its event
            began with a cause that no message tells of.
    """
    guard = _Replay(robot)
    with sound_files(clip) as files, explained_damage(clip):
        for file in files:
            with opened(file) as stream:
                for _, channel, message in make_reader(stream, validate_crcs=True).iter_messages():
                    guard.hear(channel.topic, message.log_time, message.data)
    if guard.missing:
        raise InputError(f"{clip}: cannot be replayed: it lacks {', '.join(sorted(guard.missing))}")
    heard = heard_in(clip)
    said = [each for each in heard.occurrences if each.on == "guard"]
    groups = physical_events(said, heard.armed_ns)
    group = next((each for each in groups if each[-1].time_ns >= happened_ns), ())
    before = [(each.time_ns, each.name) for each in group]
    if not before or before[0][1] in UNSEEN:
        of = before[0][1] if before else "a stop at that time"
        raise InputError(f"{clip}: cannot be replayed: no message in it tells of {of}")
    # Between the last two times of being enabled: what was before or after is of other stops.
    first_ns = max((at for at in guard.enabled_ns if at <= happened_ns), default=0)
    last_ns = min((at for at in guard.enabled_ns if at > before[-1][0]), default=math.inf)
    now = [(at, code) for at, code in guard.trips if first_ns <= at <= last_ns]
    return _outcome(before), _outcome(now)


def _outcome(trips: list[tuple[int, str]]) -> Outcome:
    causes = tuple(dict.fromkeys(str(code) for _, code in trips if code not in UNSEEN))
    return Outcome(stopped_ns=trips[0][0] if trips else None, causes=causes)


class _Replay:
    """A guard that hears a clip, at the times at which the recorder did."""

    def __init__(self, robot: RobotConfig) -> None:
        self._robot = robot
        self._guard: Guard | None = None
        self._now = 0.0
        self._asked: list[Request] = []
        """The last two requests of a policy that was guarded before the clip began."""
        self.trips: list[tuple[int, str]] = []
        self.enabled_ns: list[int] = []
        state = robot.state
        heard: dict[str, Callable[[Guard, bytes], Reaction | None]] = {
            state.joint_states: self._joints,
            POLICY_COMMAND: self._request,
            POLICY_HEARTBEAT: lambda guard, _: guard.peers.heard_policy(self._now),
            DRIVER_HEARTBEAT: lambda guard, _: guard.peers.heard_driver(self._now),
            SAFETY_STATE: self._state,
            robot.guard.estop.topic: lambda guard, data: guard.estop(
                pressed=bool(Cursor(data).uint8()), now=self._now
            ),
        }
        if robot.guard.driver_heartbeat_s is None:
            del heard[DRIVER_HEARTBEAT]
        if state.mode is not None:
            heard[state.mode.topic] = lambda guard, data: guard.mode(
                Cursor(data).string(), self._now
            )
        if state.workspace is not None:
            heard[state.workspace.topic] = self._pose
        if state.wrench is not None:
            heard[state.wrench.topic] = self._wrench
        self._heard = {robot.topic(name): take for name, take in heard.items()}
        self.missing = set(self._heard)

    def hear(self, topic: str, at_ns: int, data: bytes) -> None:
        """Let time pass until a message, and take it."""
        at, period_s = at_ns * _S_PER_NS, 1.0 / self._robot.guard.cycle_hz
        if self._guard is None:
            self._guard, self._now = Guard(self._robot, at), at
        # A cycle after each message as well: it is told by time, and not by count.
        while self._now < at:
            self._now = min(self._now + period_s, at)
            self._note(self._guard.cycle(self._now), at_ns)
        self.missing.discard(topic)
        if topic in self._heard:
            self._note(self._heard[topic](self._guard, data), at_ns)

    def _note(self, reaction: Reaction | None, at_ns: int) -> None:
        if reaction is not None:
            self.trips += [(at_ns, each.code) for each in reaction.incidents]

    def _state(self, guard: Guard, data: bytes) -> Reaction | None:
        """Do what was asked of the guard, by the states that it led to."""
        said = next(diagnostics(data))[3].get("state")  # the limits come after it
        if said == GuardState.READY and guard.state in STOPPED:
            guard.power_is_off()  # no message tells of it, and without there was no reset
            return guard.reset(self._now).reaction
        if said == GuardState.READY and guard.state in MOVING:
            return guard.enable(on=False, now=self._now).reaction
        if said == GuardState.WITHHELD:
            return guard.withhold(self._now).reaction
        if said != GuardState.RUNNING or guard.state in STOPPED | MOVING:
            return None
        oldest_ns = (self._now - self._robot.guard.command_age_s) / _S_PER_NS
        # The clip begins in motion.
        moves = len(self._asked) == 2 and self._asked[1].stamp_ns >= oldest_ns
        if guard.enable(on=True, now=self._now, moves=moves).success:
            self.enabled_ns.append(round(self._now / _S_PER_NS))
            if moves:
                self._take_over(guard, *self._asked)
        return None

    def _take_over(self, guard: Guard, before: Request, last: Request) -> None:
        elapsed_s = max((last.stamp_ns - before.stamp_ns) * _S_PER_NS, _LEAST_S)
        ends = [dict(zip(each.names, each.values, strict=True)) for each in (before, last)]
        first, then = ([each[name] for name in self._robot.commanded] for each in ends)
        rates = [(b - a) / elapsed_s for a, b in zip(first, then, strict=True)]
        guard.take_over(then, rates, self._now)

    def _joints(self, guard: Guard, data: bytes) -> Reaction:
        stamp_ns, names, numbers = joint_state(data)
        sample = JointSample(names, *(each.tolist() for each in numbers), stamp_ns=stamp_ns)
        return guard.joint_state(sample, self._now)

    def _request(self, guard: Guard, data: bytes) -> Reaction:
        stamp_ns, names, numbers = joint_state(data)
        values = numbers[_FIELDS.index(self._robot.controller.interface)].tolist()
        request = Request(names=names, values=values, stamp_ns=stamp_ns)
        if guard.state not in STOPPED:
            self._asked = [*self._asked[-1:], request]
        return guard.request(request, wall_ns=round(self._now / _S_PER_NS), now=self._now)

    def _pose(self, guard: Guard, data: bytes) -> Reaction:
        x, y, z = after_header(data, 3).tolist()
        return guard.pose((x, y, z), self._now)

    def _wrench(self, guard: Guard, data: bytes) -> Reaction:
        numbers = after_header(data, 6).tolist()
        return guard.wrench(math.hypot(*numbers[:3]), math.hypot(*numbers[3:]), self._now)
