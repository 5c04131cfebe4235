"""Whether those the guard depends on are there, and alone."""

from __future__ import annotations

from robo_eval_robot.config import POLICY_COMMAND, POLICY_HEARTBEAT, RobotConfig
from robo_eval_robot.guard_author import Author
from robo_eval_robot.guard_checks import Code, Violation, counted, too_long
from robo_eval_robot.guard_estop import EmergencyStops


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
