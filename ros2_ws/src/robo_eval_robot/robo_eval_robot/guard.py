"""Whether the robot may move: the states of the guard, and what leads from one to another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from robo_eval.core import door
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.guard_checks import Code, Request, RequestCheck, Violation, too_long
from robo_eval_robot.guard_peers import Author, Origin, Peers
from robo_eval_robot.guard_stop import StopMotion
from robo_eval_robot.guard_watch import JointSample, JointWatch, workspace_watch, wrench_watch

WITHHOLD_S: Final = 2.0
"""Commands are withheld on request for this long beyond the driver's own timeout."""
OVERRUN_PERIODS: Final = 10
"""A cycle later than this many periods is one of a guard that was not in control."""
_MOST_EVENT_CHARACTERS: Final = 65_536
_UNKNOWN: Final = Origin()
_MOVES: Final = Violation(code=Code.NO_STANDSTILL, message="The robot does not stand.")


class GuardState(StrEnum):
    """What the guard is doing."""

    INIT = "INIT"
    """Something is unknown or wrong: nothing is passed on, and motion cannot be enabled."""
    READY = "READY"
    """All is well; nothing is passed on until motion is enabled."""
    RUNNING = "RUNNING"
    """Requests are passed on."""
    WITHHELD = "WITHHELD"
    """Nothing is sent, to see that the driver stops by itself."""
    PROTECTIVE_STOP = "PROTECTIVE_STOP"
    """Stopped for a cause, until a reset."""
    ESTOP = "ESTOP"
    """The emergency stop was pressed; until it is released and a reset."""


MOVING: Final = frozenset({GuardState.RUNNING, GuardState.WITHHELD})
STOPPED: Final = frozenset({GuardState.PROTECTIVE_STOP, GuardState.ESTOP})


@dataclass(slots=True)
class Reaction:
    """What has to be done now, in this order."""

    command: tuple[float, ...] | None = None
    """To publish for the controller."""
    power_off: bool = False
    """Whether to ask the driver to remove power."""
    incidents: list[Violation] = field(default_factory=list)
    """To report."""
    stopped: bool = False
    """Whether a stop began."""


@dataclass(slots=True)
class Answer:
    """What a service says, and what has to be done."""

    success: bool
    message: str
    reaction: Reaction = field(default_factory=Reaction)


@dataclass(slots=True)
class Counts:
    """Requests since the guard was started."""

    requests: int = 0
    passed: int = 0
    clamped: int = 0
    refused: int = 0


class Guard:
    """Decides about every request, and stops the robot.

    Times are seconds of a monotonic clock; only stamps of requests are compared with wall time.

    Args:
        robot: The robot.
        now: Monotonic time, s.
    """

    def __init__(self, robot: RobotConfig, now: float) -> None:
        config = robot.guard
        self._robot = robot
        self._config = config
        self.state = GuardState.INIT
        self.causes: list[Code] = []
        """Why it stopped: the first cause, and those that came later."""
        self.counts = Counts()
        self.episode_id = ""
        """Episode that is on; empty between episodes."""
        self.stopped_episode_id = ""
        """Episode in which the last stop began: its causes are of that one, also late ones."""
        self.joints = JointWatch(robot)
        self._workspace, self._wrench = workspace_watch(robot), wrench_watch(robot)
        self.points = [each for each in (self._workspace, self._wrench) if each is not None]
        self._check = RequestCheck(robot)
        self._stop = StopMotion(robot, self.joints)
        self.peers = Peers(robot, now)
        self._power_asked: float | None = None
        """When the driver was last asked to remove power; infinity once it did."""
        self._says_unpowered = False
        self.stops = 0
        """How often the robot was stopped or let go: an answer belongs to one of them."""
        self._slows_down = False
        self._withheld_until = now
        self._cycle_at: float | None = None

    # What comes in.

    def request(
        self, request: Request, *, wall_ns: int, now: float, origin: Origin = _UNKNOWN
    ) -> Reaction:
        """Decide about what a policy asks for.

        Args:
            request: What it asks.
            wall_ns: Wall clock, ns since 1970.
            now: Monotonic time, s.
            origin: Where the request is from.
        """
        reaction = Reaction()
        self.counts.requests += 1
        if not self._is_of_policy(self.peers.requests, origin, now, reaction):
            self.counts.refused += 1
            return reaction
        judged = self._check.judge(request, wall_ns, now)
        if judged.command is None:
            self.counts.refused += 1
            self._trip(judged.violations, now, reaction)
            return reaction
        self.peers.commanded(now)
        self.counts.passed += 1
        self.counts.clamped += judged.clamped
        reaction.command = judged.command
        return reaction

    def policy_beat(self, now: float, origin: Origin = _UNKNOWN) -> Reaction:
        """Hear that the policy's control loop is alive.

        Args:
            now: Monotonic time, s.
            origin: Where the heartbeat is from.
        """
        reaction = Reaction()
        if self._is_of_policy(self.peers.beats, origin, now, reaction):
            self.peers.heard_policy(now)
        return reaction

    def joint_state(self, sample: JointSample, now: float) -> Reaction:
        """Look at where the robot is.

        Args:
            sample: What the driver says.
            now: Monotonic time, s.
        """
        reaction = self._measured(self.joints.see(sample, now), now)
        if self.state is GuardState.RUNNING and self._check.is_new:
            self._begin_check(now)
        return reaction

    def pose(self, position_m: tuple[float, float, float], now: float) -> Reaction:
        """Look at where the frame is that must stay in the workspace.

        Args:
            position_m: x, y and z in the frame of the limits.
            now: Monotonic time, s.
        """
        assert self._workspace is not None
        return self._measured(
            self._workspace.see(dict(zip("xyz", position_m, strict=True)), now), now
        )

    def wrench(self, force_n: float, torque_nm: float, now: float) -> Reaction:
        """Look at what the sensor feels.

        Args:
            force_n: Norm of the force.
            torque_nm: Norm of the torque.
            now: Monotonic time, s.
        """
        assert self._wrench is not None
        return self._measured(self._wrench.see({"force": force_n, "torque": torque_nm}, now), now)

    def estop(self, *, pressed: bool, now: float, source: str = "") -> Reaction:
        """Look at the emergency stop.

        Args:
            pressed: Whether it is pressed.
            now: Monotonic time, s.
            source: Which publisher says so; each is pressed until it is released itself.
        """
        reaction = Reaction()
        self.peers.estops.hear(source, now, pressed=pressed)
        if pressed:
            text = "The emergency stop is pressed."
            self._trip((Violation(code=Code.ESTOP, message=text),), now, reaction)
        return reaction

    def mode(self, word: str, now: float) -> Reaction:
        """Look at the driver's mode: its power, who moves the robot, its controller.

        Args:
            word: What the driver says.
            now: Monotonic time, s.
        """
        if word != self.peers.mode:
            self.peers.mode = word
            self._stop.drive(now, is_driven=self.peers.follows())
        self._see_power()
        return self._measured(self.peers.not_followed(), now)

    def graph(
        self,
        *,
        publishers: int,
        estop_sources: int,
        power_off_ready: bool,
        now: float,
        estop_nodes: Mapping[str, str] | None = None,
    ) -> Reaction:
        """Look at who else is there.

        Args:
            publishers: Publishers of the controller's topic, the guard's own among them.
            estop_sources: Publishers of the emergency stop's topic.
            power_off_ready: Whether the driver's service that removes power is there.
            now: Monotonic time, s.
            estop_nodes: Name of the node by source of the emergency stop; None if not known.
        """
        self.peers.publishers = publishers
        self.peers.estops.see(estop_sources, estop_nodes, now)
        self.peers.see_power_off(is_ready=power_off_ready)
        return self._measured((*self.peers.second_publisher(), *self.peers.estops.lost(now)), now)

    def event(self, text: str) -> None:
        """Remember which episode is on; what cannot be read is ignored.

        Args:
            text: JSON object; its `episode_id` is kept, null or empty ends it.
        """
        if len(text) > _MOST_EVENT_CHARACTERS:
            return
        try:
            data = door.object_of(text)
        except ValueError:
            return
        if "episode_id" in data:
            self.episode_id = str(data["episode_id"] or "")[:200]

    def cycle(self, now: float, *, blocked_s: float = 0.0) -> Reaction:
        """Look at all ages, and go on stopping; at the configured rate.

        Args:
            now: Monotonic time, s.
            blocked_s: How long a command has been on its way to the controller.
        """
        reaction = Reaction()
        if self.state in MOVING | STOPPED:
            self._trip((*self._overrun(now, blocked_s), *self._watchdogs(now)), now, reaction)
        self._cycle_at = now
        if self.state in STOPPED:
            self._keep_stopped(now, reaction)
        elif self.state is GuardState.WITHHELD and now >= self._withheld_until:
            self._begin_stop(now)
            self.state = GuardState.READY
        elif self.state not in MOVING:
            reaction.command = self.slow_down(now) or self._stop.renewed(now)
            self.state = GuardState.INIT if self.persisting(now) else GuardState.READY
        return reaction

    def slow_down(self, now: float) -> tuple[float, ...] | None:
        """The next command of a robot that was let go in motion, until it is asked to stand.

        Args:
            now: Monotonic time, s.
        """
        if not self._slows_down:
            return None
        command = self._stop.command(now)
        self._slows_down = self._stop.slows_down
        return command

    # What people and other processes ask for.

    def enable(self, *, on: bool, now: float, moves: bool = False) -> Answer:
        """Begin or end passing requests on.

        Args:
            on: Whether to.
            now: Monotonic time, s.
            moves: Whether the robot may move already, as where a recording begins.
        """
        if not on:
            return self._disable(now)
        if self.state in MOVING:
            is_running = self.state is GuardState.RUNNING
            return Answer(success=is_running, message=f"is {self.state}")
        if self.state in STOPPED:
            return Answer(
                success=False,
                message=f"is stopped ({', '.join(self.causes)}); call safety/reset first",
            )
        wrong = self.persisting(now)
        if wrong:
            self.state = GuardState.INIT
            return Answer(success=False, message=_sentences(wrong))
        # Nothing holds a robot of efforts while nothing is sent: it may have begun to move.
        has_to_stand = self._robot.controller.interface != "effort" and not moves
        if has_to_stand and (self._slows_down or not self._stop.stands(now)):
            return Answer(success=False, message=_MOVES.message)
        self._begin_check(now)
        self.peers.enabled(now)
        self.state = GuardState.RUNNING
        return Answer(success=True, message="is RUNNING")

    def take_over(self, command: Sequence[float], rates: Sequence[float], now: float) -> None:
        """Go on, right after being enabled, from a command that the controller acts on already.

        Args:
            command: It, in the controller's order.
            rates: How fast it changes.
            now: Monotonic time, s.
        """
        self._check.begin(command, rates, now)
        self._check.is_new = False

    def stop(self, now: float) -> Answer:
        """Stop because somebody asks for it.

        Args:
            now: Monotonic time, s.
        """
        answer = Answer(success=True, message="stopped; safety/reset leads back to READY")
        text = "A stop was asked for."
        self._trip((Violation(code=Code.OPERATOR_STOP, message=text),), now, answer.reaction)
        return answer

    def reset(self, now: float) -> Answer:
        """Leave a stop whose causes are gone; nothing moves before it is enabled again.

        Args:
            now: Monotonic time, s.
        """
        if self.state in MOVING:
            return Answer(success=False, message=f"is {self.state}; there is nothing to reset")
        wrong = self.persisting(now)
        if self.state in STOPPED and not self._stop.stands(now):
            wrong.append(_MOVES)
        is_asked = self.state in STOPPED and self._stop.wants_power_off
        if is_asked and self._power_asked != math.inf:
            wrong.append(self._unpowered())
        if wrong:
            return Answer(success=False, message=_sentences(wrong))
        answer = Answer(success=True, message="is READY")
        if self.state in STOPPED and self._robot.controller.interface != "position":
            # What brakes ends; a position is held already, and nothing may move now.
            answer.reaction.command = self._stop.last(now)
        self.state = GuardState.READY
        self.causes.clear()
        return answer

    def withhold(self, now: float) -> Answer:
        """Send nothing for a while and end in READY, to see that the driver stops by itself.

        Args:
            now: Monotonic time, s.
        """
        if self.state is not GuardState.RUNNING:
            return Answer(
                success=False, message=f"is {self.state}; commands are withheld from RUNNING only"
            )
        seconds = self._robot.controller.timeout_s + WITHHOLD_S
        self._withheld_until = now + seconds
        self.state = GuardState.WITHHELD
        return Answer(success=True, message=f"sends nothing for {seconds:g} s")

    def power_off_failed(self, why: str, now: float, stop: int | None = None) -> Reaction:
        """The driver did not remove power when asked to.

        Args:
            why: What it said.
            now: Monotonic time, s.
            stop: When it was asked, by `stops`; None for the stop that is on.
        """
        is_late = stop not in {None, self.stops}
        return self._measured(() if is_late else (_power_stays(why),), now)

    def power_is_off(self, stop: int | None = None) -> None:
        """The driver says that it removed power.

        Args:
            stop: When it was asked, by `stops`; None for the stop that is on.
        """
        if self._power_asked is None or stop not in {None, self.stops}:
            return
        self._says_unpowered = True
        self._stop.take_anew()
        self._see_power()

    def shut_down(self, now: float) -> Reaction:
        """The guard's process ends: a last stop command, `slow_down` if it moves, then silence.

        Args:
            now: Monotonic time, s.
        """
        reaction = Reaction()
        if self.state in MOVING:
            text = "The guard was shut down while motion was enabled."
            self._trip((Violation(code=Code.GUARD_SHUTDOWN, message=text),), now, reaction)
        elif self.state not in STOPPED and not self._slows_down:
            self._begin_stop(now)
        reaction.command = self._stop.last(now)
        self._slows_down = self._stop.slows_down
        return reaction

    def persisting(self, now: float) -> list[Violation]:
        """What keeps motion from being enabled, or a stop from being reset.

        Args:
            now: Monotonic time, s.
        """
        wrong = list(self.joints.persisting(now))
        for point in self.points:
            wrong += point.persisting(now)
        wrong += self.peers.persisting(now)
        return wrong

    # How it gets from one state to another.

    def _begin_check(self, now: float) -> None:
        """Compare the first request with what is measured now."""
        velocities = [self.joints.velocities[name] for name in self._robot.commanded]
        self._check.begin(self._start(), velocities, now)

    def _start(self) -> tuple[float, ...]:
        measured = {
            "position": self.joints.positions,
            "velocity": self.joints.velocities,
            "effort": dict.fromkeys(self._robot.commanded, 0.0),
        }[self._robot.controller.interface]
        return tuple(measured[name] for name in self._robot.commanded)

    def _disable(self, now: float) -> Answer:
        answer = Answer(success=True, message=f"is {self.state}")
        if self.state in MOVING:
            self._begin_stop(now)
            answer.reaction.command = self._stop.last(now)
            self._slows_down = self._stop.slows_down
            self.state = GuardState.READY
            answer.message = "is READY"
        return answer

    def _is_of_policy(self, author: Author, origin: Origin, now: float, reaction: Reaction) -> bool:
        """Whether a message counts: motion is enabled, and it is a new one of the policy."""
        if self.state is not GuardState.RUNNING:
            return False
        foreign = author.foreign(origin)
        self._trip(foreign, now, reaction)
        return not foreign and author.is_next(origin)

    def _measured(self, violations: tuple[Violation, ...], now: float) -> Reaction:
        reaction = Reaction()
        if self.state in MOVING | STOPPED:
            self._trip(violations, now, reaction)
        return reaction

    def _trip(self, violations: tuple[Violation, ...], now: float, reaction: Reaction) -> None:
        """Stop, or add to the causes of the stop that is on."""
        new = [each for each in violations if each.code not in self.causes]
        if not new:
            return
        reaction.incidents += new
        self.causes += dict.fromkeys(each.code for each in new)
        is_estop = Code.ESTOP in self.causes
        begins = self.state not in STOPPED
        rises = is_estop and self.state is not GuardState.ESTOP
        if begins:
            self.stopped_episode_id = self.episode_id
            self._begin_stop(now)
            reaction.stopped = True
        self.state = GuardState.ESTOP if is_estop else GuardState.PROTECTIVE_STOP
        if begins or rises:
            reaction.command = self._stop.command(now)
        self._remove_power(now, reaction)

    def _keep_stopped(self, now: float, reaction: Reaction) -> None:
        late = self._stop.proceed(now)
        if late is None:
            reaction.command = self._stop.command(now)
        else:
            reaction.command = self._stop.rest()
            reaction.incidents.append(late)
            self.causes.append(late.code)
        self._remove_power(now, reaction)

    def _begin_stop(self, now: float) -> None:
        moves = self.state in MOVING
        if not moves and (self._slows_down or not self._stop.has_stood):
            self._stop.begin_anew(now)
        else:
            self._stop.begin(now, self._check.last if moves else None, moves=moves)
        self._power_asked, self._says_unpowered, self._slows_down = None, False, False
        self.stops += 1

    def _remove_power(self, now: float, reaction: Reaction) -> None:
        """Ask the driver to remove power, and again as long as it does not say that it did."""
        if not self._stop.wants_power_off:
            return
        within_s = self._config.stop.power_off_within_s
        if self._power_asked is None:
            reaction.power_off, self._power_asked = True, now
        elif now - self._power_asked > within_s:
            reaction.power_off, self._power_asked = True, now
            self._trip((self._unpowered(),), now, reaction)

    def _see_power(self) -> None:
        """Believe what the driver says of its power, if its mode agrees."""
        if self._says_unpowered and not (self._robot.state.mode and self.peers.follows()):
            self._power_asked = math.inf

    def _unpowered(self) -> Violation:
        lies = f"says that it did, but is in mode {self.peers.mode!r:.80}"
        why = lies if self._says_unpowered else "did not answer"
        return _power_stays(f"it is asked again, and {why}.")

    # What is looked at in every cycle.

    def _watchdogs(self, now: float) -> list[Violation]:
        wrong = list(self.joints.stale(now))
        for point in self.points:
            wrong += point.stale(now)
        wrong += self.peers.silent_driver(now)
        wrong += self.peers.estops.lost(now)
        if self.state is GuardState.RUNNING:
            wrong += self.peers.silent_policy(now)
        return wrong

    def _overrun(self, now: float, blocked_s: float) -> tuple[Violation, ...]:
        limit_s = OVERRUN_PERIODS / self._config.cycle_hz
        away_s = 0.0 if self._cycle_at is None else now - self._cycle_at
        gap_s = max(away_s, blocked_s)
        if self.state not in MOVING or gap_s <= limit_s:
            return ()
        what = "guard itself was not running" if away_s >= blocked_s else "controller took nothing"
        text = f"The {what} for {gap_s:.3f} s."
        return (too_long(Code.GUARD_OVERRUN, text, gap_s, limit_s),)


def _power_stays(why: str) -> Violation:
    return Violation(code=Code.POWER_OFF, message=f"The driver did not remove power: {why:.200}")


def _sentences(violations: list[Violation]) -> str:
    return " ".join(dict.fromkeys(each.message for each in violations))
