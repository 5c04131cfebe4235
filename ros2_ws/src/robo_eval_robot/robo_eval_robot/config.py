"""What a robot is, as its YAML file says: joints with limits, topics, guard, tasks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, Strict, ValidationError, model_validator

from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import Count, Section, first_problem, mapping_of, text_of, validated
from robo_eval.log.bag_metadata import POLICY_COMMAND as POLICY_COMMAND

PAGE: Final = "docs/robots.md"
POLICY_HEARTBEAT: Final = "heartbeat/policy"
"""`std_msgs/Header` from the policy's control loop."""
DRIVER_HEARTBEAT: Final = "heartbeat/driver"
"""`std_msgs/Header` from the driver, if it has one."""
SAFETY_STATE: Final = "safety/state"
"""`diagnostic_msgs/DiagnosticArray`: first the guard, then one status a limit."""
GUARD_HEARTBEAT: Final = "heartbeat/guard"
"""`std_msgs/Header` from the guard's cycle."""
INCIDENTS: Final = "safety/incidents"
"""`diagnostic_msgs/DiagnosticArray`: one a trip, with value, limit, unit and episode."""
EPISODE_EVENT: Final = "episode/event"
"""`std_msgs/String` with one JSON object: what begins and ends."""
_OURS: Final = (
    POLICY_COMMAND,
    POLICY_HEARTBEAT,
    DRIVER_HEARTBEAT,
    SAFETY_STATE,
    GUARD_HEARTBEAT,
    INCIDENTS,
    EPISODE_EVENT,
)
Positive = Annotated[float, Field(gt=0.0)]
Silence = Annotated[float, Field(ge=0.01)]
"""Seconds; less than any process keeps to."""
NotNegative = Annotated[float, Field(ge=0.0)]
Flag = Annotated[bool, Strict()]
Topic = Annotated[str, Field(pattern=r"^/?[A-Za-z~][A-Za-z0-9_~/]*$")]
"""Name of a topic or service; without a leading slash it is below the robot's namespace."""
Vector = tuple[float, float]
_MOST_OF_A_HINGE: Final = 4.0 * math.pi
"""Two turns either way, and two turns a second: a revolute joint beyond is told in degrees."""
_SOONEST_S: Final = 0.01, 0.0005
"""No revolute joint comes to its full velocity, nor to its acceleration, as soon as that."""
_STATES: Final = 2.0
"""Joint states that come, at least, before their age stops the robot."""
_STILL: Final = 0.1
"""Most that a standstill may be of the lowest limit of velocity."""


class SliderLimits(Section):
    """Limits of a prismatic joint, in metres, seconds and newtons."""

    position_m: Vector
    velocity_m_s: Positive
    acceleration_m_s2: Positive
    effort_n: Positive
    jerk_m_s3: Positive | None = None


class HingeLimits(Section):
    """Limits of a revolute joint, in radians, seconds and newton metres."""

    position_rad: Vector
    velocity_rad_s: Positive
    acceleration_rad_s2: Positive
    effort_nm: Positive
    jerk_rad_s3: Positive | None = None


class Slider(Section):
    """A joint that moves along its axis."""

    type: Literal["prismatic"]
    limits: SliderLimits | None = None
    """None only for a joint that is watched and not commanded."""


class Hinge(Section):
    """A joint that turns about its axis."""

    type: Literal["revolute", "continuous"]
    limits: HingeLimits | None = None
    """None only for a joint that is watched and not commanded."""


class Limits(Section):
    """Limits of a joint, whatever its kind: metres or radians, seconds, newtons or N m."""

    low: float
    high: float
    velocity: float
    acceleration: float
    effort: float
    jerk: float | None
    """None if it is not limited."""
    unit: Literal["m", "rad"]

    @property
    def force_unit(self) -> str:
        """Unit of the effort."""
        return "N" if self.unit == "m" else "N m"

    @property
    def slowing(self) -> tuple[float, float | None]:
        """Deceleration and jerk of a stop: less than the limits, as drives overshoot a little."""
        return 0.9 * self.acceleration, None if self.jerk is None else 0.9 * self.jerk

    def stop_s(self, speed: float) -> float:
        """How long a stop from a speed takes of a joint that does not slow down yet."""
        most, jerk = self.slowing
        # No joint that slows down gently comes to more than this.
        most = most if jerk is None else min(most, math.sqrt(speed * jerk))
        return speed / most + (0.0 if jerk is None else most / jerk)

    def stop_distance(self, velocity: float, slowing: float) -> float:
        """How far a joint still goes in its direction; with what it slows down or speeds up by."""
        most, jerk = self.slowing
        # As one that began to slow down earlier, or will later, at its highest speed.
        began_s = 0.0
        if jerk is not None:
            began_s = min(slowing, most, math.sqrt(2.0 * jerk * max(velocity, 0.0))) / jerk
        change = 0.5 * (jerk or 0.0) * began_s
        highest = velocity + change * began_s
        if highest <= 0.0:
            return 0.0
        return 0.5 * highest * self.stop_s(highest) - began_s * (highest - change * began_s / 3.0)


class Controller(Section):
    """Where guarded commands go, and what the driver does when none come."""

    topic: Topic
    """`std_msgs/Float64MultiArray`, one number a joint, as forward_command_controller reads it."""
    interface: Literal["position", "velocity", "effort"]
    joints: Annotated[tuple[str, ...], Field(min_length=1)]
    """Order of the numbers in a command."""
    timeout_s: Positive
    """How long after the last command the driver brings the robot to a standstill by itself."""
    timeout_provided_by: str = Field(min_length=3, max_length=200)
    """How it does that: name of the parameter, firmware or circuit. The preflight proves it."""


class Imu(Section):
    """An inertial sensor: orientation of its link in world, and its angular velocity."""

    topic: Topic = "imu_sensor_broadcaster/imu"


class Workspace(Section):
    """The box a driver's pose topic must stay in (`geometry_msgs/PoseStamped`, metres)."""

    topic: Topic
    x_m: Vector
    y_m: Vector
    z_m: Vector


class Wrench(Section):
    """The most force and torque a force-torque sensor may show."""

    topic: Topic = "force_torque_sensor_broadcaster/wrench"
    force_n: Positive
    torque_nm: Positive


class DriverMode(Section):
    """The driver's mode in a word (`std_msgs/String`, latched)."""

    topic: Topic
    follows: Annotated[tuple[str, ...], Field(min_length=1)]
    """Words with which the drives follow commands; with all others they do not."""


class State(Section):
    """Topics that say where the robot is."""

    joint_states: Topic = "joint_states"
    rate_hz: Positive
    """How often joint states come."""
    imu: Imu | None = None
    workspace: Workspace | None = None
    wrench: Wrench | None = None
    mode: DriverMode | None = None


class Stop(Section):
    """What the guard does to stop the robot.

    Effort is braked against the measured velocity; velocity and position slow down within the
    limits of the joints, and the position is held.
    """

    category: Literal[0, 1, 2] = 2
    """Of IEC 60204-1, as the site's risk assessment says: 2 keeps power on, 0 and 1 also ask
    the driver to remove it, by its `power_off` service."""
    power_off: Topic | None = None
    """`std_srvs/Trigger` of the driver; needed for categories 0 and 1."""
    power_off_within_s: Positive = 1.0
    """How soon the driver says that it removed power; it is asked again after each such time."""
    holds: Literal["brakes", "gravity_compensation", "nothing_falls"] | None = None
    """What holds vertical axes at an effort of zero; needed for an effort controller."""
    braking: NotNegative = 0.0
    """Braking effort per velocity, N s/m or N m s/rad; 0 lets an effort-controlled joint coast
    until the driver's own brake."""
    standstill_velocity: Positive = 0.02
    """Below this velocity (m/s or rad/s) of every commanded joint the robot stands."""
    within_s: Positive = 1.0
    """How soon it stands after a stop."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.category < 2 and self.power_off is None:
            raise ValueError(
                f"power_off: is needed for a stop of category {self.category}: name the driver's"
                " service that removes power, or write category: 2"
            )
        return self


class EStop(Section):
    """The mirror of the hardware emergency stop (`std_msgs/Bool`, true = pressed, latched)."""

    topic: Topic = "safety/estop"
    required: Flag = True
    """Whether the guard stays stopped until the input was seen released."""
    deadline_s: Silence | None = None
    """Longest silence of each source; None if they publish only what changes."""


class GuardConfig(Section):
    """When the guard stops the robot, beside the limits of the joints."""

    cycle_hz: Annotated[float, Field(ge=20.0, le=1000.0)] = 100.0
    """How often ages are checked and, after a stop, stop commands sent."""
    realtime_priority: Annotated[Count, Field(ge=0, le=98)] = 10
    """Real-time priority of the guard's process where the machine allows it; 0 for none."""
    command_age_s: Positive = 0.1
    """Oldest command of the policy that is passed on, and longest silence while it acts."""
    state_age_s: Positive = 0.1
    """Oldest joint state with which motion goes on."""
    policy_heartbeat_s: Silence = 0.3
    """Longest silence of the policy's heartbeat."""
    driver_heartbeat_s: Silence | None = None
    """Longest silence of the driver's heartbeat; None if it has none."""
    command_step: Positive | None = None
    """Most a command may change from one to the next, in the unit of the interface."""
    on_excess: Literal["stop", "clamp"] = "stop"
    """What follows a request beyond a limit: a stop, or the limit instead and a count of it."""
    debounce: Annotated[Count, Field(ge=1, le=10)] = 1
    """Samples in a row that must violate a limit of a measured quantity."""
    stop: Stop = Stop()
    estop: EStop = EStop()


class Preflight(Section):
    """The slow, small motion before a run, which shows that the driver stops by itself."""

    effort: Positive | None = None
    """What an effort controller is asked for, N or N m; by default a twentieth of the limit."""
    velocity: Positive | None = None
    """Speed (m/s or rad/s) that counts as motion, and that a velocity or position controller is
    asked for; by default a hundredth of the limit, and three times the standstill velocity at
    least. A speed five times as high ends the preflight."""
    stop_velocity: Positive | None = None
    """Highest speed (m/s or rad/s) from which a stop is asked for, after a third and two thirds of
    it; by default three times that speed, which is slow."""
    within_s: Positive = 2.0
    """How long a joint may take to reach a speed, and to stand again."""


class StartState(Section):
    """Where an episode's initial state comes from, and how near to the planned one it must be."""

    source: Literal["topic", "fixture", "operator"] = "topic"
    tolerance: dict[str, Positive] = Field(default_factory=dict)
    """By field of the state, the greatest deviation from the planned start."""


class RobotTask(Section):
    """A task the robot can play."""

    adapter: str = Field(pattern=r"^[A-Za-z_][\w.]*(:[A-Za-z_]\w*)?$")
    """Short name that the task's specification gives, or `package.module:Class`."""
    joints: dict[str, str] = Field(default_factory=dict)
    """Joint of the robot by its name in the task; those not named have the same name."""
    initial_state: StartState = StartState()
    settle_s: Positive = 20.0
    """How long the robot may take to reach the start of an episode."""


class Record(Section):
    """What else is recorded beside commands, joint states, safety and events."""

    topics: dict[Topic, str] = Field(default_factory=dict)
    """Type by topic, such as `sensor_msgs/msg/CompressedImage`."""
    chunk_bytes: Annotated[Count, Field(ge=1024, le=4 << 20)] = 32 * 1024
    """Size of a chunk of the file: what a killed recorder may lose of each."""


class Perturbation(Section):
    """How a twin's hidden physics and topics differ from the simulator's; all of it by seed."""

    seed: Annotated[Count, Field(ge=0, lt=2**31)] = 0
    mass_scale: Positive = 1.0
    """Factor on the masses of cart and pole."""
    friction_n_s_m: NotNegative = 0.0
    """Viscous friction of the sliders."""
    delay_ticks: Annotated[Count, Field(ge=0, le=10)] = 0
    """Control ticks between a command and its effect, beyond those of the topics."""
    position_noise_m: NotNegative = 0.0
    """Standard deviation of measured slider positions."""
    velocity_noise_m_s: NotNegative = 0.0
    tilt_noise_rad: NotNegative = 0.0
    """Standard deviation of the pole's measured roll and pitch."""
    drop_state: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Share of the joint states that are not published."""
    drop_command: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Share of the commands that are not heard."""
    swapped_joints: Flag = False
    """Whether a command for one slider reaches the other, as with two plugs exchanged."""
    reversed_sign: Flag = False
    """Whether commands move the first slider the wrong way."""


class Drive(Section):
    """How the drives of an arm behave that has no physics; it plays no task."""

    bandwidth_rad_s: Positive = 10.0
    """How fast they follow a command."""
    margin: Annotated[float, Field(ge=1.0)] = 1.2
    """Their own limits of velocity and acceleration, over those of the joints."""
    inertia: Positive = 1.0
    """What they move, kg or kg m^2."""
    gravity: dict[str, float] = Field(default_factory=dict)
    """By joint, the effort that holds it at position zero, N or N m."""
    start: dict[str, float] = Field(default_factory=dict)
    """By joint, where it is at first, m or rad; zero if it is not named."""


class Twin(Section):
    """The stand-in behind the topics; a physical robot has no such section."""

    perturbation: Perturbation = Perturbation()
    has_command_timeout: Flag = True
    """Whether it brakes by itself when commands stop coming; without, the preflight fails."""
    drive: Drive | None = None
    """Drives with modes, in place of a task's body."""


class RobotConfig(Section):
    """One robot: what its YAML file says, checked."""

    version: Literal[1] = 1
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$")
    """Name in rows, locks and reports."""
    body: Literal["twin", "physical"]
    """`twin` for a stand-in simulator behind ROS; its results never count as real."""
    namespace: str = Field(pattern=r"^(/[A-Za-z_][A-Za-z0-9_]*)+$")
    """ROS namespace of everything that belongs to this robot."""
    control_rate_hz: Positive
    """How often the policy acts."""
    joints: Annotated[dict[str, Slider | Hinge], Field(min_length=1)]
    controller: Controller
    state: State
    guard: GuardConfig
    preflight: Preflight = Preflight()
    tasks: dict[str, RobotTask] = Field(default_factory=dict)
    """By Gymnasium id; a robot without can be guarded, recorded and checked, and plays nothing."""
    record: Record = Record()
    start_up_s: Positive = 10.0
    """How long to wait for processes, topics and the first messages."""
    twin: Twin | None = None

    @model_validator(mode="before")
    @classmethod
    def _joint_kinds(cls, data: Any) -> Any:
        # Said here, so that the message is about the joint's kind and not about both kinds.
        joints = data.get("joints") if isinstance(data, dict) else None
        if isinstance(joints, dict):
            read: dict[str, Any] = {}
            for name, joint in joints.items():
                if isinstance(joint, dict):
                    read[name] = _joint(str(name), joint, is_real=data.get("body") != "twin")
                else:
                    raise ValueError(f"joints.{name}: must be a mapping with `type` and `limits`")
            return {**data, "joints": read}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, name in enumerate(self.controller.joints):
            if name not in self.joints:
                raise ValueError(
                    f"controller.joints.{number}: {unknown_name('joint', name, self.joints)}"
                )
            if self.joints[name].limits is None:
                raise ValueError(
                    f"joints.{name}.limits: is missing; a commanded joint needs its limits of"
                    " position, velocity, acceleration and effort"
                )
        if len(set(self.controller.joints)) < len(self.controller.joints):
            raise ValueError("controller.joints: names a joint twice")
        for task, entry in self.tasks.items():
            for joint in entry.joints.values():
                if joint not in self.joints:
                    raise ValueError(
                        f"tasks.{task}.joints: {unknown_name('joint', joint, self.joints)}"
                    )
        if self.twin is not None and self.body != "twin":
            raise ValueError("twin: a physical robot has no such section; remove it")
        self._check_drive()
        self._check_topics()
        self._check_speeds()
        return self

    def _check_topics(self) -> None:
        told = {self.topic(name): "messages of our own" for name in _OURS}
        given = [("state.joint_states", self.state.joint_states)]
        sections = {f"state.{key}": getattr(self.state, key) for key in State.model_fields}
        sections |= {"guard.estop": self.guard.estop, "controller": self.controller}
        given += [
            (f"{key}.topic", each.topic) for key, each in sections.items() if hasattr(each, "topic")
        ]
        for field, name in given:
            if (topic := self.topic(name)) in told:
                raise ValueError(f"{field}: {topic} is for {told[topic]}; name another topic")
            told[topic] = field

    def _check_speeds(self) -> None:
        still, slow = self.guard.stop.standstill_velocity, self.preflight.velocity
        most = min(self.limited[name].velocity for name in self.commanded)
        if still > _STILL * most:
            raise ValueError(
                f"guard.stop.standstill_velocity: {still:g} is no standstill: a commanded joint"
                f" moves at {most:g} at most; give {_STILL * most:g} or a lower one"
            )
        if slow is not None and slow <= still:
            raise ValueError(
                f"preflight.velocity: {slow:g} is a standstill by guard.stop.standstill_velocity"
                f" {still:g}; give a higher one"
            )
        fastest = self.preflight.stop_velocity
        if fastest is not None and not 3.0 * still < fastest <= most:
            raise ValueError(
                f"preflight.stop_velocity: {fastest:g} must be above {3.0 * still:g}, of which a"
                f" third is a standstill, and at most {most:g}, the lowest limit of the joints"
            )

    def _check_drive(self) -> None:
        if self.twin is None or (drive := self.twin.drive) is None:
            return
        if self.tasks:
            raise ValueError("tasks: drives without an arm play none; remove tasks or twin.drive")
        if "perturbation" in self.twin.model_fields_set:
            raise ValueError("twin.perturbation: is of a task's body; remove it or twin.drive")
        for key, given in (("gravity", drive.gravity), ("start", drive.start)):
            for name in given:
                if name not in self.commanded:
                    problem = unknown_name("commanded joint", name, self.commanded)
                    raise ValueError(f"twin.drive.{key}: {problem}")
        for name, place in drive.start.items():
            limits = self.limits(name)
            if limits is not None and not limits.low <= place <= limits.high:
                raise ValueError(
                    f"twin.drive.start.{name}: {place:g} is beyond the joint's limits"
                    f" {limits.low:g} to {limits.high:g} {limits.unit}"
                )

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        within_s, interface = self.guard.stop.within_s, self.controller.interface
        can_fall = self.body == "physical" or (
            self.twin is not None and self.twin.drive is not None
        )
        if interface == "effort" and can_fall and self.guard.stop.holds is None:
            raise ValueError(
                "guard.stop.holds: is missing; a stop ends in efforts of zero, at which a vertical"
                " axis falls: write brakes, gravity_compensation or nothing_falls"
            )
        for name in self.commanded if interface != "effort" else ():
            limits = self.limited[name]
            if (needed_s := limits.stop_s(limits.velocity)) > within_s:
                raise ValueError(
                    f"guard.stop.within_s: {within_s:g} s is shorter than {name} needs to stop"
                    f" within its limits; write at least {needed_s:.3g} or limit its velocity"
                )
        if self.guard.command_age_s > self.controller.timeout_s * 10:
            raise ValueError(
                "guard.command_age_s: is more than ten times the driver's own timeout_s, which"
                " would stop the robot first"
            )
        if self.state.rate_hz * self.guard.state_age_s < _STATES:
            raise ValueError(
                f"guard.state_age_s: {self.guard.state_age_s:g} s is shorter than the time of"
                f" {_STATES:g} joint states; write at least {_STATES / self.state.rate_hz:.3g},"
                " or a higher state.rate_hz if they come more often"
            )
        if 1.0 / self.control_rate_hz > self.guard.command_age_s:
            raise ValueError(
                f"guard.command_age_s: {self.guard.command_age_s:g} s is shorter than a control"
                f" period of {1.0 / self.control_rate_hz:g} s"
            )
        fastest = max(self.limited[name].velocity for name in self.commanded)
        step, longest = self.guard.command_step, fastest * self.guard.command_age_s
        if step is not None and interface == "position" and step > longest:
            raise ValueError(
                f"guard.command_step: {step:g} is more than any joint moves within command_age_s,"
                f" {longest:.3g} in rad or m; write less, in these units, or remove it"
            )
        return self

    @property
    def side(self) -> Side:
        """Side of its episodes."""
        return Side.TWIN if self.body == "twin" else Side.REAL

    @property
    def commanded(self) -> tuple[str, ...]:
        """Commanded joints, in the order of a command."""
        return self.controller.joints

    def limits(self, joint: str) -> Limits | None:
        """Limits of a joint; None if it is only watched."""
        limits = self.joints[joint].limits
        if limits is None:
            return None
        low_high, velocity, acceleration, effort, jerk = (
            getattr(limits, name) for name in type(limits).model_fields
        )
        return Limits(
            low=low_high[0],
            high=low_high[1],
            velocity=velocity,
            acceleration=acceleration,
            effort=effort,
            jerk=jerk,
            unit="m" if isinstance(limits, SliderLimits) else "rad",
        )

    @property
    def limited(self) -> dict[str, Limits]:
        """Limits by joint, of those that have some; every commanded one does."""
        return {name: limits for name in self.joints if (limits := self.limits(name)) is not None}

    def topic(self, name: str) -> str:
        """A topic's or service's full name."""
        return name if name.startswith("/") else f"{self.namespace}/{name}"


def _joint(name: str, data: dict[str, Any], *, is_real: bool) -> Slider | Hinge:
    kinds: dict[str, type[Slider | Hinge]] = {
        "prismatic": Slider,
        "revolute": Hinge,
        "continuous": Hinge,
    }
    kind = data.get("type")
    if kind not in kinds:
        raise ValueError(f"joints.{name}.type: {unknown_name('type', kind, kinds)}")
    try:
        joint = kinds[kind].model_validate(data)
    except ValidationError as err:
        problem = first_problem(err, kinds[kind])
        if problem.endswith("is missing"):
            problem += "; add what its data sheet and your risk assessment allow"
        raise ValueError(f"joints.{name}.{problem}") from err
    if joint.limits is not None:
        low, high = next(iter(joint.limits.model_dump().values()))
        if not low < high or math.isnan(low):
            raise ValueError(f"joints.{name}.limits: the lower position {low} must be below {high}")
        if kind == "revolute":
            _check_radians(f"joints.{name}.limits", joint.limits, is_real=is_real)
    return joint


def _check_radians(where: str, limits: SliderLimits | HingeLimits, *, is_real: bool) -> None:
    assert isinstance(limits, HingeLimits)
    most = {"position_rad": _MOST_OF_A_HINGE, "velocity_rad_s": _MOST_OF_A_HINGE}
    if is_real:  # a stand-in may have no inertia
        # Or what light arms reach, whatever velocity they are held to.
        most["acceleration_rad_s2"] = max(limits.velocity_rad_s / _SOONEST_S[0], 300.0)
        most["jerk_rad_s3"] = max(limits.acceleration_rad_s2 / _SOONEST_S[1], 30_000.0)
    for key, value in limits.model_dump(include=set(most), exclude_none=True).items():
        given = max(map(abs, value)) if isinstance(value, tuple) else value
        if given > most[key]:
            raise ValueError(
                f"{where}.{key}: {given:g} looks like degrees: write {math.radians(given):.4g}, or"
                " `type: continuous` if the joint really turns so far or so fast"
            )


def read_robot(path: Path) -> RobotConfig:
    """Read and check a robot file.

    Raises:
        PlanError: If the file is missing, is not YAML, or holds an unknown key or a wrong value;
            the message names file and field.
    """
    return parse_robot(text_of(path, "robot"), source=str(path))


def parse_robot(text: str, *, source: str) -> RobotConfig:
    """Check the YAML text of a robot file.

    Args:
        text: YAML.
        source: What error messages call it.

    Raises:
        PlanError: If the text is not YAML, or holds an unknown key or a wrong value.
    """
    data = mapping_of(text, source, "a robot is", PAGE)
    return validated(data, RobotConfig, source)
