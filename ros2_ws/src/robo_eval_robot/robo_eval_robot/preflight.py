"""Whether a robot does what is asked and stops by itself: slow, small motions before a run."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from robo_eval.core.errors import CheckFailedError
from robo_eval.log.files import write_atomically
from robo_eval.log.notes import iso_time
from robo_eval_robot import topics
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.link import RUNNING, STOPPED, RobotLink, RobotLostError
from robo_eval_robot.preflight_motion import TOO_FAST, Aim, Push, Speeds, aims
from robo_eval_robot.preflight_report import JointFinding, Report, StopFinding
from robo_eval_robot.snapshot import Snapshot
from robo_eval_robot.stagehand import Scene, Stagehand
from robo_eval_robot.timing import Pace

_REST_S: Final = 0.4
"""How long the robot is asked for nothing first, while requests and answers are timed."""
_EFFORT_RATIO: Final = (0.2, 5.0)
"""Between which shares of the asked effort the measured one must change: more is another unit."""
_TRIES: Final = 3
"""How often a motion is tried that the guard ends because a message was late."""
_LATE: Final = (
    "command_age", "policy_heartbeat", "driver_heartbeat", "state_age", "guard_overrun",
    # Half of each limit is asked for: more of it is a request that came late, or early next.
    "command_velocity", "command_acceleration", "command_jerk",
)  # fmt: skip
_FALLING: Final = ("mode", "position", "velocity", "acceleration")
"""What an axis that falls leads to, in the guard or in the driver."""
_ASKED_FOR: Final = "operator_stop"
_AT_ZERO_EFFORT: Final = (
    "A stop ends in efforts of zero: a vertical axis falls then, unless brakes or a gravity"
    " compensation below the guard hold it."
)
_SERVICE_S: Final = 1.0


class PreflightError(CheckFailedError):
    """The robot does not do what is asked, or does not stop by itself."""


class _LateError(PreflightError):
    """The guard stopped the robot because a message was late, which may happen once."""


def preflight(
    link: RobotLink,
    config: RobotConfig,
    stagehand: Stagehand,
    file: Path,
    *,
    ask: Callable[[str], bool] | None = None,
    check: Callable[[], None] = lambda: None,
) -> Report:
    """Move every commanded joint a little, and see that it stops when nothing is sent.

    What was found is written to a file and published as an event, also if it failed; the guard is
    closed at the end in either case.

    Args:
        link: Connection to robot and guard.
        config: The robot.
        stagehand: Sets a twin up, and says whether the guard may be reset.
        file: JSON file to write.
        ask: Asks the person at a robot to confirm that it may move; not needed for a twin.
        check: Called at every control tick; what it raises ends the preflight.

    Raises:
        PreflightError: If it failed; the message says what to look at.
        RobotLostError: If robot or guard do not answer.
        TrialDirectoryError: If the file cannot be written.
    """
    note = _AT_ZERO_EFFORT if config.controller.interface == "effort" else ""
    told = f"The preflight moves {', '.join(config.commanded)} of {config.name} a little. "
    if (fastest := config.preflight.stop_velocity) is not None:
        told += f"It stops each from up to {fastest:g} m/s or rad/s. "
    told += note
    if ask is not None and not ask(f"{told.rstrip()} Is the robot clear of people and things?"):
        raise PreflightError(f"robot {config.name!r}: its preflight was not confirmed")
    flight = _Flight(link, config, stagehand, check)
    flight.report.at_zero_effort = note
    failure: CheckFailedError | None = None
    # The stops that are asked for now are of no episode of a plan.
    link.event(event="preflight", episode_id="preflight")
    try:
        flight.fly()
    except CheckFailedError as err:
        failure = err
        flight.report.problem = str(err)
    flight.sum_up()
    found = flight.report.as_dict()
    # No episode is on any more: the twin was set up as one.
    link.event(event="preflight", episode_id=None, **found)
    write_atomically(file, json.dumps(found, indent=2, allow_nan=False).encode() + b"\n")
    if failure is None:
        return flight.report
    if isinstance(failure, RobotLostError):
        raise failure
    raise PreflightError(
        f"robot {config.name!r}: preflight failed, motors stay disabled: {failure}"
    ) from failure


@dataclass
class _Flight:
    """One preflight, phase by phase."""

    link: RobotLink
    config: RobotConfig
    stagehand: Stagehand
    check: Callable[[], None]

    def __post_init__(self) -> None:
        config = self.config
        self._aims = aims(config)
        self._findings = {name: JointFinding(joint=name) for name in self._aims}
        self._still = config.guard.stop.standstill_velocity
        self._round_trips: list[float] = []
        self._pace = Pace(1.0 / config.control_rate_hz, config.state.rate_hz)
        self._speeds = Speeds()
        self._last: Snapshot = self.link.fresh()
        self._asked_s = time.monotonic()
        """When the last request was sent."""
        self.report = Report(
            robot=config.name,
            time=iso_time(time.time_ns()),
            timeout_s=config.controller.timeout_s,
            timeout_provided_by=config.controller.timeout_provided_by,
            allowed_s=config.controller.timeout_s + config.guard.stop.within_s,
            joints=list(self._findings.values()),
        )

    def fly(self) -> None:
        """All phases; the guard is closed after each."""
        try:
            self._phase(self._rest, next(iter(self._aims.values())))
            for aim in self._aims.values():
                self._phase(self._move, aim)
            # Only now is it known that braking against the motion brakes.
            for aim in self._aims.values():
                # Other stops remove power, and it is a person who switches it on again.
                for faster in aim.stops() if self.config.guard.stop.category == 2 else ():
                    self._phase(self._stop, faster)
                self._phase(self._withhold, aim)
        finally:
            self._close()

    def sum_up(self) -> None:
        """Put the times of all requests into the report."""
        times, report = self._round_trips, self.report
        report.requests = len(times)
        if times:
            report.round_trip_p50_s = float(np.quantile(times, 0.5))
            report.round_trip_p99_s = float(np.quantile(times, 0.99))

    # Phases ------------------------------------------------------------------------------------

    def _phase(self, play: Callable[[Aim, Push], None], aim: Aim) -> None:
        """Play a phase, again if it was cut short because a message was late."""
        while True:
            try:
                return self._play(play, aim)
            except _LateError:
                self.report.repeated += 1
                if self.report.repeated >= _TRIES:
                    raise
            self.stagehand.may_reset(self.link.guard.cause)
            self.link.reset()

    def _play(self, play: Callable[[Aim, Push], None], aim: Aim) -> None:
        if self.config.body == "twin" and self.config.tasks:
            self._arrange()
        self._open()
        self._speeds = Speeds()
        self._last = self.link.fresh()
        start = {name: self._last.joints[name].position for name in self._aims}
        play(aim, Push(self.config, aim, start))
        self._close()
        if not self._stands_within(self.report.allowed_s):
            raise PreflightError(
                f"{aim.joint} does not stand again within {self.report.allowed_s:g} s"
            )

    def _arrange(self) -> None:
        """Have a twin stand up again: its pole falls meanwhile, which does not matter."""
        task, entry = next(iter(self.config.tasks.items()))
        scene = Scene(
            task=task,
            keywords={"level": 0},
            seed=0,
            episode_id="preflight",
            state=None,
            within_s=entry.settle_s,
        )
        self.stagehand.arrange(scene)
        self.stagehand.let_go()

    def _rest(self, _aim: Aim, push: Push) -> None:
        """Ask for nothing: nothing may move."""
        for _ in range(max(1, round(_REST_S * self.config.control_rate_hz))):
            self._tick(push.rest())
            for aim in self._aims.values():
                if abs(speed := self._speeds.of(aim.joint)) >= aim.moving:
                    raise PreflightError(
                        f"{aim.joint} moves at {_quantity(speed, aim)} while nothing is asked of"
                        " it; does a load or an offset pull at it?"
                        f" {self.report.at_zero_effort}".rstrip()
                    )

    def _move(self, aim: Aim, push: Push) -> None:
        """Move one joint and bring it to rest."""
        finding = self._findings[aim.joint]
        before = self._last.joints[aim.joint].effort
        finding.moved_s = self._push(aim, push)
        finding.speed = push.direction * self._speeds.of(aim.joint)
        if self.config.controller.interface == "effort":
            self._check_effort(aim, push, before)
        deadline = time.monotonic() + self.config.preflight.within_s
        while (speed := push.direction * self._speeds.of(aim.joint)) > self._still:
            if time.monotonic() > deadline:
                raise PreflightError(
                    f"{aim.joint} was asked to slow down and still moves at {_quantity(speed, aim)}"
                )
            self._tick(push.brake(speed))

    def _stop(self, aim: Aim, push: Push) -> None:
        """Move one joint and ask for a stop: how long and how far does it go on?"""
        self._push(aim, push)
        began, speed = self._last, self._speeds.of(aim.joint)
        within_s = self.config.guard.stop.within_s
        self.link.call(topics.SAFETY_STOP)
        self.link.wait(lambda: self.link.guard.state in STOPPED, _SERVICE_S)
        if self.link.guard.cause != _ASKED_FOR:
            self._check_guard(moving=False)
        deadline = time.monotonic() + within_s + self.link.state_patience_s
        while not self._speeds.stand((aim.joint,), self._still) and time.monotonic() <= deadline:
            self._see()
        stop_s = (self._last.stamp_ns - began.stamp_ns) / 1e9
        start = began.joints[aim.joint].position
        is_ramped = self.config.controller.interface != "effort"
        # It was seen to stand by the mean of three states.
        if stop_s - 3.0 / self.config.state.rate_hz > within_s:
            braking = self.config.guard.stop.braking
            more = "brake more" if is_ramped else f"raise guard.stop.braking, {braking:g} now"
            raise PreflightError(
                f"{aim.joint} does not stand within the {within_s:g} s that guard.stop.within_s"
                f" promises, after a stop at {_quantity(abs(speed), aim)}: {more}, move more"
                " slowly or allow more"
            )
        limits = self.config.limited[aim.joint]
        fast = min(abs(speed), limits.velocity)
        finding = StopFinding(
            asked=aim.slow,
            speed=abs(speed),
            stop_s=stop_s,
            distance=abs(self._last.joints[aim.joint].position - start),
            expected_s=limits.stop_s(fast) if is_ramped else None,
            expected_distance=limits.stop_distance(fast, 0.0) if is_ramped else None,
        )
        self._findings[aim.joint].stops.append(finding)
        self.link.reset()

    def _withhold(self, aim: Aim, push: Push) -> None:
        """Move one joint and send nothing any more: the driver has to stop it."""
        self._push(aim, push)
        problem = self.link.call(topics.SAFETY_WITHHOLD)
        if problem is not None:
            raise PreflightError(f"the guard does not withhold commands: {problem}")
        self.link.wait(lambda: self.link.guard.state != RUNNING, _SERVICE_S)
        # The guard passes a request on after it was sent: too much, never too little.
        self._findings[aim.joint].stopped_s = self._see_stop(aim, self._asked_s)

    def _see_stop(self, aim: Aim, began: float) -> float:
        """Watch a joint stop by its driver; returns how long that took.

        Raises:
            PreflightError: If it does not.
        """
        timeout_s, fastest = self.config.controller.timeout_s, 0.0
        acts_s = timeout_s + 3.0 / self.config.state.rate_hz
        while (elapsed := time.monotonic() - began) <= self.report.allowed_s:
            self._see()
            self._check_guard(moving=False)
            speed = abs(self._speeds.of(aim.joint))
            if self._speeds.stand(self.config.commanded, self._still):
                return time.monotonic() - began
            if elapsed <= acts_s:
                fastest = max(fastest, speed)
            elif speed > 2.0 * fastest:
                break  # it only gets faster: nobody has to wait for more
        # It moves as asked, so the guard's brake brakes.
        self.link.call(topics.SAFETY_STOP)
        self._stands_within(self.config.guard.stop.within_s)
        raise PreflightError(
            f"the driver does not stop by itself: {aim.joint} moves at {_quantity(speed, aim)}"
            f" {elapsed:.2f} s after the last command; controller.timeout_s promises"
            f" {timeout_s:g} s, provided by: {self.config.controller.timeout_provided_by}."
            " Set that up and try again"
        )

    def _push(self, aim: Aim, push: Push) -> float:
        """Move a joint until it is as fast as it should be; returns how long that took.

        Raises:
            PreflightError: If it does not move, or something else does.
        """
        began, fastest = time.monotonic(), 0.0
        while (elapsed := time.monotonic() - began) <= self.config.preflight.within_s:
            self._tick(push.push())
            speed = push.direction * self._speeds.of(aim.joint)
            fastest = max(fastest, speed)
            self._check_others(aim, speed)
            if speed <= -aim.moving:
                raise PreflightError(
                    f"{aim.joint} moves the wrong way ({_quantity(abs(speed), aim)}): its sign is"
                    " reversed, in the driver or in its joint states"
                )
            if speed >= aim.moving:
                return elapsed
        asked = f"{_number(abs(push.asked))} {aim.limits.force_unit}"
        raise PreflightError(
            f"{aim.joint} does not move: {fastest:.3g} {aim.limits.unit}/s at most in"
            f" {self.config.preflight.within_s:g} s"
            + (f" with {asked}" if self.config.controller.interface == "effort" else "")
            + "; is its drive enabled, is the controller active, is preflight.effort or"
            " preflight.velocity enough?"
        )

    # Checks ------------------------------------------------------------------------------------

    def _check_others(self, aim: Aim, speed: float) -> None:
        for other in {**self._aims, aim.joint: aim}.values():
            found = abs(self._speeds.of(other.joint))
            if found >= TOO_FAST * other.slow:
                raise PreflightError(
                    f"{other.joint} moves at {_quantity(found, other)} while"
                    f" {_quantity(other.slow, other)} is wanted of {aim.joint}: is the unit of"
                    " commands or of joint states another, or preflight.effort too much?"
                )
            # Joints pull at their neighbours, so a share of the motion is no mistake.
            is_more = found / other.moving > 0.5 * speed / aim.moving
            if other.joint != aim.joint and found >= other.moving and is_more:
                raise PreflightError(
                    f"{aim.joint} was asked to move and {other.joint} moves"
                    f" ({_quantity(found, other)}): compare the order of controller.joints with"
                    " the controller's, and the wiring"
                )

    def _check_effort(self, aim: Aim, push: Push, before: float | None) -> None:
        after = self._last.joints[aim.joint].effort
        if before is None or after is None or not math.isfinite(after - before) or not push.asked:
            return
        ratio = (after - before) / push.asked
        self._findings[aim.joint].effort_ratio = ratio
        low, high = _EFFORT_RATIO
        if not low <= ratio <= high:
            unit = aim.limits.force_unit
            raise PreflightError(
                f"{aim.joint} was asked for {_number(push.asked)} {unit}, and its"
                f" measured effort changed by {_number(after - before)} {unit}: is the"
                " unit or the sign of one of them another?"
            )

    def _check_guard(self, *, moving: bool) -> None:
        state = self.link.guard.state
        if state in STOPPED or (moving and state != RUNNING):
            cause = self.link.guard.cause
            trips = [trip.text for trip in self.link.trips if trip.code == cause]
            kind = _LateError if cause in _LATE else PreflightError
            told = [f"the guard is {state}: {trips[-1] if trips else cause}"]
            if cause in _FALLING:
                told += [f"{name}: {said}." for name, said in self.link.complaints.items()]
                told.append(self.report.at_zero_effort)
            raise kind(" ".join(told).rstrip())

    # Ticks -------------------------------------------------------------------------------------

    def _tick(self, values: list[float]) -> None:
        """Ask for a command and wait for the next control tick."""
        self._asked_s = time.monotonic()
        self.link.request(values)
        due_ns = self._pace.next(self._last.stamp_ns)
        first = self._see()
        self._round_trips.append(first.received_s - self._asked_s)
        while self._last.stamp_ns < due_ns:
            self._see()
        self._check_guard(moving=True)

    def _see(self) -> Snapshot:
        """Wait for the next state."""
        self.check()
        self._last = self.link.state_after(self._last.stamp_ns)
        self._speeds.see(self._last)
        return self._last

    def _stands_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        self._speeds = Speeds()
        while not self._speeds.stand(self.config.commanded, self._still):
            if time.monotonic() > deadline:
                return False
            self._see()
        return True

    def _open(self) -> None:
        """Open the guard; it may have stopped the robot just after a motion was over."""
        try:
            self.link.enable()
        except RobotLostError:
            raise
        except CheckFailedError:
            self.link.wait(lambda: self.link.guard.state in STOPPED, _SERVICE_S)
            self._check_guard(moving=False)
            raise

    def _close(self) -> None:
        """Close the guard, and hear it say so: its old state must not pass for the next one."""
        with contextlib.suppress(RobotLostError):
            self.link.disable()
            self.link.wait(lambda: self.link.guard.state != RUNNING, _SERVICE_S)


def _quantity(value: float, aim: Aim) -> str:
    return f"{_number(value)} {aim.limits.unit}/s"


def _number(value: float) -> str:
    return f"{value:.3g}"
