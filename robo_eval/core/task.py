"""What a task declares of itself, as data: all that the rest of the product knows of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import Any, Final, Protocol

from robo_eval.core.errors import InputError, UnknownNameError, foreign
from robo_eval.core.names import unknown_name
from robo_eval.core.points import points

TASKS: Final = "robo_eval.tasks"
"""Entry point group under which packages name the specifications of their tasks."""
NAMESPACE: Final = "RoboEval/"
"""What the Gymnasium ids of our own environments begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Neighbouring numbers of an observation or a state.

    Attributes:
        name: As the state calls it, e.g. `cart_position`.
        size: How many numbers.
        unit: Their unit, empty if they have none; `QUATERNION` marks an orientation.
        about: What they are, in which axes.
    """

    name: str
    size: int
    unit: str = ""
    about: str = ""

    @property
    def is_pose(self) -> bool:
        """Whether they say where something is, and not how fast."""
        return self.unit in ("m", QUATERNION)

    @property
    def place(self) -> str:
        """Name and unit of a distance of two: `cart_position_m`, `pole_quat_xyzw_rad`."""
        return f"{self.name}_{'rad' if self.unit == QUATERNION else 'm'}"

    def apart(self, one: Sequence[float], other: Sequence[float]) -> float:
        """Distance of two positions (m), or the angle between two orientations (rad)."""
        if self.unit != QUATERNION:
            return math.dist(one, other)
        # Of the chord between the quaternions: acos would lose half of the digits near zero.
        chord = min(math.dist(one, other), math.dist(one, [-number for number in other]))
        return 4.0 * math.asin(min(1.0, chord / 2.0))


QUATERNION: Final = "quaternion xyzw"
"""Unit of an orientation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilt:
    """A frame whose roll and pitch are drawn over time, because they end an episode.

    Attributes:
        frame: Its name in traces.
        limit_rad: Roll or pitch at which an episode ends.
    """

    frame: str
    limit_rad: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """Walls around the origin, floor and ceiling, metres."""

    half_width: float
    floor: float
    ceiling: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A number of a simulator that calibration can find, and `constants` of an environment sets.

    Attributes:
        name: A field of the task's physics.
        unit: Its unit; empty if it has none.
        low: Least value that is looked for, and taken.
        high: Greatest.
        nominal: What the simulator has without calibration.
        wanted: Half-width of an interval that is narrow enough, in its unit.
        about: What it is, in a few words.
        stage: In which part of a replay it shows: of `steps` none, of `whole` `free` or `loaded`
            (before anything is touched, in motion or in forces), `held` or `sliding`. `noise` and
            `disturbance` are sensors and hidden forces.
        quantum: Least difference that the simulator can play, 0 if any.
        is_log: Whether a grid on which it is looked for is one of its logarithm.
    """

    name: str
    unit: str = ""
    low: float
    high: float
    nominal: float
    wanted: float
    about: str = ""
    stage: str = ""
    quantum: float = 0.0
    is_log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A number that recordings hold of each tick, and a replay foretells.

    Attributes:
        name: Such as `cart_x`.
        unit: Its unit.
        noise: The constant that is the standard deviation of its sensor's noise.
        rate_of: Name of the channel whose time derivative it is; empty if it is of none.
    """

    name: str
    unit: str
    noise: str
    rate_of: str = ""


class LevelLike(Protocol):
    """A novelty level, as listings and checks of plans see it."""

    @property
    def name(self) -> str:
        """Registered name."""

    @property
    def number(self) -> int:
        """Its number."""

    @property
    def unit(self) -> str:
        """Unit of its magnitude; empty if it has none."""

    def as_dict(self, profile: str) -> dict[str, Any]:
        """`level`, `name`, `effect`, and `ranges`: a text for each difficulty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """A task as data; loading it loads no simulator.

    Attributes:
        env: Gymnasium id.
        title: Its name in texts.
        environment: Where its class is, `package.module:Class`.
        end: When an episode ends, in a sentence.
        success: What the strict success of an episode is, in a sentence; and `succeeded`, the verb.
        quality: What the quality of an episode is, in a sentence; None where a plan has to say
            which returns count as quality 0 and 1.
        stages: What has to be done one after the other, if that is told; `info["stage"]` counts.
        tick_s: Control period, seconds.
        max_ticks: Ticks of a full episode.
        limit_of_gymnasium: Whether Gymnasium counts them and not the environment.
        actions: Names of the discrete actions; and `pushes`, the world direction (x, y) in which
            each one acts, to be drawn.
        state: Parts of the physical state that say where the robot is, in the order of the
            observation, which begins with them.
        tilt: What is drawn over time, if it tilts.
        room: Walls to draw.
        bodies: What a moving frame is to the eye, by how its name begins: `base`, `body`, `thing`.
        levels: Gives the novelty levels by number.
        adapters: How robots play it: short name for a robot file, and `package.module:Class`.
        twin: `package.module:Class` of the stand-in robot, if there is one.
        find_constants: Gives what calibration can find.
        channels: What recordings hold of each tick, in this order.
        replay: How calibration plays recordings: `steps`, one tick from each measured state, or
            `whole`, all commands from the recorded start; empty where it cannot.
        is_default: Whether it is meant where a plan or a command names no task.
    """

    env: str
    title: str
    environment: str
    end: str
    success: str
    succeeded: str = "succeeded"
    quality: str | None = None
    stages: tuple[str, ...] = ()
    tick_s: float
    max_ticks: int
    limit_of_gymnasium: bool = False
    actions: tuple[str, ...] = ()
    pushes: tuple[tuple[float, float], ...] = ()
    state: tuple[Part, ...] = ()
    tilt: Tilt | None = None
    room: Walls | None = None
    bodies: Mapping[str, str] = field(default_factory=dict)
    levels: Callable[[], Mapping[int, LevelLike]] = dict
    adapters: Mapping[str, str] = field(default_factory=dict)
    twin: str | None = None
    find_constants: Callable[[], tuple[Constant, ...]] = tuple
    channels: tuple[Channel, ...] = ()
    replay: str = ""
    is_default: bool = False

    @property
    def constants(self) -> tuple[Constant, ...]:
        """What calibration can find."""
        return self.find_constants()

    def is_thing(self, frame: str) -> bool:
        """Whether a moving frame is that of a thing, which is not the robot's."""
        return any(frame.startswith(name) for name, kind in self.bodies.items() if kind == "thing")

    def checked(self, constants: Any) -> dict[str, float]:
        """What `constants` of an environment were given, if this task has them.

        Raises:
            UnknownNameError: If it has no constant of a name.
            InputError: If they are no mapping, or a value cannot be.
        """
        if constants is None:
            return {}
        if not isinstance(constants, Mapping):
            raise InputError(
                f"constants: a mapping of names to numbers is needed, given {constants!r:.80}"
            )
        known = {constant.name: constant for constant in self.constants}
        for name, value in constants.items():
            if name not in known:
                raise unknown_name(f"constant of {self.title}", name, known)
            one = known[name]
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            if not is_number or not one.low <= value <= one.high:  # NaN fails as well
                unit = f" {one.unit}" if one.unit else ""
                raise InputError(
                    f"constants.{name}: a number from {one.low:g} to {one.high:g}{unit} is needed,"
                    f" given {value!r:.80}"
                )
        return {name: float(value) for name, value in constants.items()}


@cache
def tasks() -> Mapping[str, TaskSpec]:
    """The tasks of all installed packages, by Gymnasium id.

    Raises:
        InputError: If a specification cannot be loaded, or two tasks have one id.
    """
    found: dict[str, TaskSpec] = {}
    for point in points(TASKS):
        where = f"task of {point.value} (entry point {point.name!r} of group {TASKS})"
        with foreign(where, "importing it"):
            spec = point.load()
        if not isinstance(spec, TaskSpec):
            raise InputError(f"{where}: is a {type(spec).__name__}, and no TaskSpec")
        if spec.env in found:
            raise InputError(f"{where}: {spec.env} is a task already; give it another id")
        found[spec.env] = spec
    return found


def task_of(env: str) -> TaskSpec | None:
    """The specification of an environment; None for those of others."""
    return tasks().get(env)


def unit_of(env: str, axis: str) -> str:
    """Unit of the magnitudes of an axis of novelty; empty if it has none, or it is not known."""
    spec = task_of(env)
    levels = () if spec is None else spec.levels().values()
    return next((level.unit for level in levels if level.name == axis), "")


def known_task(env: str) -> TaskSpec | None:
    """`task_of` an environment that is to be played.

    Raises:
        UnknownNameError: If it would be one of ours, and there is none of this name.
    """
    spec = task_of(env)
    if spec is None and env.startswith(NAMESPACE):
        raise unknown_name("environment", env, tasks())
    return spec


def limit_problem(spec: TaskSpec | None, env: str, max_ticks: int | None) -> str | None:
    """Why a task may not be given a time limit; None where it may."""
    if spec is None or spec.limit_of_gymnasium or max_ticks is None:
        return None
    return f"{env} has a time limit of its own; remove the key"


def unknown_in(
    spec: TaskSpec, levels: Iterable[int] = (), axes: Iterable[str] = ()
) -> Iterator[tuple[str, UnknownNameError]]:
    """Levels and axes that a task lacks, each with the field of a plan that asks for it."""
    own = spec.levels()
    for level in levels:
        if level not in own:
            yield "levels", unknown_name("level", level, own)
    names = [one.name for one in own.values()]
    for axis in axes:
        if axis not in names:
            yield "axes", unknown_name("axis", axis, names)


def task_named(name: str = "") -> TaskSpec:
    """The task with this Gymnasium id; without a name the one that is meant then.

    Raises:
        UnknownNameError: If there is none.
    """
    for env, spec in tasks().items():
        if env == name or (not name and spec.is_default):
            return spec
    raise unknown_name("task", name, tasks())
