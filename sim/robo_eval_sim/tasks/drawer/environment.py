"""RoboEval/Drawer-v0: an arm opens or closes a drawer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval_sim.arm.description import boxes_link
from robo_eval_sim.arm.environment import ArmEnv, numbers
from robo_eval_sim.arm.footprint import is_reached
from robo_eval_sim.arm.setting import Setting
from robo_eval_sim.arm.world import Row, World, about_z
from robo_eval_sim.engine import Vector3, joint_states, put, set_dynamics, set_joint
from robo_eval_sim.tasks.drawer import layout
from robo_eval_sim.tasks.drawer.setting import DrawerSetting
from robo_eval_sim.tasks.drawer.spec import SPEC

Boxes = tuple[tuple[Vector3, Vector3], ...]
_CABINET_RGBA: Final = (0.5, 0.52, 0.56, 1.0)
_DRAWER_RGBA: Final = (0.82, 0.6, 0.35, 1.0)
_CABINET: Final[Boxes] = (((0.12, 0.15, 0.08), (0.0, 0.0, 0.08)),)
"""Half extents and centres of its boxes, in the frame of the cabinet on the table, metres."""
_HANDLE_M: Final = (-0.20, 0.0, 0.15)
"""Middle of the handle in that frame, when the drawer is shut."""
_DRAWER: Final[Boxes] = (
    ((0.01, 0.14, 0.055), (-0.13, 0.0, 0.10)),
    ((0.01, 0.06, 0.01), _HANDLE_M),
    ((0.03, 0.008, 0.008), (-0.165, 0.05, 0.145)),
    ((0.03, 0.008, 0.008), (-0.165, -0.05, 0.145)),
    ((0.1, 0.005, 0.03), (-0.02, 0.13, 0.09)),
    ((0.1, 0.005, 0.03), (-0.02, -0.13, 0.09)),
)
"""Front, handle, what holds it, and sides."""
_FIELD: Final = ((0.66, 0.72), (-0.12, 0.12), 0.15)
"""Where the cabinet may stand, x and y (m), and how far it may be turned (rad)."""
_FIRST: Final = 27
"""Where cabinet and drawer begin in a row of the world: x, y, yaw, opening and its speed."""
_OUT_M: Final = (0.12, 0.18)
"""How far out the drawer may be at the end that is not shut."""
_NEAR_M: Final = 0.03
_STILL_M_S: Final = 0.02
_REACH_M: Final = 1.0
_CLEAR_M: Final = 2 * layout.TOLERANCE_M
"""How far from where the drawer stands a goal is moved at least."""


class DrawerWorld(World):
    """A cabinet with a drawer."""

    def things(self, setting: Setting) -> None:
        """Build the cabinet; `tune` says what the drawer weighs in this episode."""
        del setting
        engine = self.engine
        self.cabinet = engine.slider(
            engine.boxes(_CABINET, _CABINET_RGBA),
            engine.boxes(_DRAWER, _DRAWER_RGBA),
            (0.7, 0.0, 0.0),
            mass_kg=DrawerSetting().object_mass_kg,
            axis=(-1.0, 0.0, 0.0),
        )
        engine.limit(self.cabinet, 0, 0.0, layout.RANGE_M)

    def tune(self, setting: Setting) -> None:
        """Set the mass of the drawer, how it runs and how its handle rubs."""
        set_dynamics(
            self.cabinet,
            0,
            mass=setting.object_mass_kg,
            lateralFriction=setting.friction,
            restitution=setting.restitution,
            physicsClientId=self.client,
        )
        self.engine.let_go(self.cabinet, 0, friction_n=setting.slide_friction_n)

    def lay(self, rest: Sequence[float]) -> None:
        """Put the cabinet where it stands, and the drawer as far out as it is."""
        x, y, yaw, opening, speed = rest
        self._at = (x, y, yaw)
        put(self.cabinet, (x, y, 0.0), about_z(yaw), physicsClientId=self.client)
        set_joint(self.cabinet, 0, opening, speed, physicsClientId=self.client)

    def rest(self) -> tuple[float, ...]:
        """Where the cabinet stands, how far the drawer is out, and how fast it goes."""
        state = joint_states(self.cabinet, (0,), physicsClientId=self.client)[0]
        return (*self._at, state[0], state[1])


class DrawerEnv(ArmEnv):
    """Open or close a drawer.

    Units are SI. World axes: x forward, y left, z up, right-handed; the base of the arm is at the
    origin, the top of the table at height 0. A Franka Panda of the pybullet wheel, whose meshes are
    replaced by boxes, cylinders and spheres; the cabinet is made of boxes.

    ## Action

    A `Box` of float32 in radians and metres; a number beyond its bounds is refused. A tick is
    0.05 s.

    | `action_mode` | numbers | what they are |
    |---|---|---|
    | `joint_position` | 7 + 1 | positions of the joints, rad; they go there together, and stop |
    | `joint_velocity` | 7 + 1 | velocities of the joints, rad/s |
    | `ee_delta` | 6 + 1 | how far the tip moves (x, y, z, m) and turns (rotation vector, rad) |

    The last number is the wanted width of the gripper, 0 to 0.08 m; each finger presses with 20 N.
    The motors slow what would be faster than the limits of the Panda.

    ## Observation

    A flat `Box` of float32; the names of the slices are in `robo_eval_sim.arm.layout` and
    `robo_eval_sim.tasks.drawer.layout`.

    | index | what | unit |
    |---|---|---|
    | 0 to 6 | positions of the joints | rad |
    | 7 to 13 | velocities of the joints | rad/s |
    | 14 | width of the gripper | m |
    | 15 to 17 | position of the tip, between the finger pads | m |
    | 18 to 21 | orientation of the tip, quaternion x, y, z, w | |
    | 22 to 24 | position of the middle of the handle | m |
    | 25 | how far the cabinet is turned about the vertical | rad |
    | 26 | how far the drawer is pulled out | m |
    | 27 | how fast it is pulled out | m/s |
    | 28 | how far out it is to be | m |

    Handle and cabinet are where the cabinet is known to stand; under `fixture_shift` and
    `fixture_turn` it stands beside that. `obs_mode="state+wrench"` adds six numbers: force (N) and
    torque (N m) between wrist and hand, their mean over the tick, and zeros before the first one.
    `obs_mode="rgbd"` is a `Dict`: `image` (84, 84, 3) of uint8, `depth` (84, 84, 1) in metres, and
    the first 22 numbers as `state`.

    ## Start

    The joints are within 0.02 rad of a fixed posture, the gripper is open. The cabinet stands at x
    0.66 to 0.72 m and y ±0.12 m, turned by up to 0.15 rad. With `motion="open"` the drawer is shut
    and is to be 0.12 to 0.18 m out; with `motion="close"` it is so far out and is to be shut. The
    same seed draws the same joints, cabinet, opening and goal whatever the novelty, so that an
    episode of level 0 is a matched control. An axis changes one thing about them: `goal_shift`
    where the goal is, `fixture_shift` and `fixture_turn` where the cabinet really stands; the
    others leave the start as it is.

    Draws that would make an episode impossible, or change nothing in it, are turned down, and the
    next one is taken; `novelty["turned_down"]` counts them. Wherever the cabinet stands, the arm
    reaches its handle on the whole way, 0.28 to 0.75 m from its base. `goal_shift` moves the goal
    out or in; up to 0.1 m there is room for it from every start. Beyond, it goes where there is
    more room: from 0 to 0.18 m, and no nearer than 2 cm to where the drawer stands.

    ## Reward and end

    The return is the quality: the share of four stages that were done, and of the next one how far
    it got: the tip is within 3 cm of the handle (reached), both fingers touch the drawer (grasped),
    it is half way to its goal (moved), and stands still within 1 cm of it (done); the last two
    count once the handle was grasped. `info["stage"]` counts the stages done so far. Being done
    ends the episode as a success; 200 ticks end it otherwise.

    Args:
        motion: `open` or `close`.
        **keywords: As `ArmEnv` takes them.

    Raises:
        UnknownNameError: If there is no such motion.
    """

    task = SPEC
    world_class = DrawerWorld
    setting_class = DrawerSetting
    own_size = layout.OWN_SIZE
    keywords = frozenset({"profile", "motion"})

    def __init__(self, *, motion: str = "open", **keywords: Any) -> None:
        super().__init__(motion=motion, **keywords)
        if motion not in layout.MOTIONS:
            raise unknown_name("motion", motion, layout.MOTIONS)
        self._motion = motion

    def _start(self, rng: np.random.Generator) -> dict[str, Any]:
        (low_x, high_x), width, turn = _FIELD
        x, y = float(rng.uniform(low_x, high_x)), float(rng.uniform(*width))
        yaw, out = float(rng.uniform(-turn, turn)), float(rng.uniform(*_OUT_M))
        opening, goal = (0.0, out) if self._motion == "open" else (out, 0.0)
        return {
            "cabinet_position": [x, y],
            "cabinet_yaw": [yaw],
            "opening": [opening],
            "goal_opening": [goal],
        }

    def _given(self, fields: Mapping[str, Any]) -> tuple[list[float], list[float]]:
        place = numbers(fields, "cabinet_position", 2)
        if not 0.5 <= math.hypot(*place) <= _REACH_M:
            hint = "; is it in millimetres?" if math.hypot(*place) > 10.0 else ""
            raise InputError(
                f"state.cabinet_position: must be 0.5 to {_REACH_M:g} m from the arm's base, so"
                f" that the arm reaches it and has room, given {place}{hint}"
            )
        (yaw,) = numbers(fields, "cabinet_yaw", 1, default=[0.0])
        if abs(yaw) > math.pi:
            hint = "; is it in degrees?" if abs(yaw) > 2 * math.pi else ""
            raise InputError(
                f"state.cabinet_yaw: ±{math.pi:.4g} rad is possible, given {yaw:g}{hint}"
            )
        (opening,), (goal,) = numbers(fields, "opening", 1), numbers(fields, "goal_opening", 1)
        for name, value in (("opening", opening), ("goal_opening", goal)):
            if not -0.01 <= value <= layout.RANGE_M + 0.01:
                hint = "; is it in millimetres?" if value > 1.0 else ""
                raise InputError(
                    f"state.{name}: 0 to {layout.RANGE_M:g} m is possible, given {value:g}{hint}"
                )
        (speed,) = numbers(fields, "opening_speed", 1, default=[0.0])
        setting = self._setting
        self._known = (*place, yaw)
        self._from = opening
        shift, towards = setting.fixture_shift_m, setting.fixture_direction_rad
        x = place[0] + shift * math.cos(towards)
        y = place[1] + shift * math.sin(towards)
        return [x, y, yaw + setting.fixture_turn_rad, opening, speed], [goal]

    def _handle(self, place: Sequence[float], opening: float) -> tuple[float, float, float]:
        """Middle of the handle of a cabinet that stands somewhere: x, y, yaw."""
        x, y, yaw = place
        along, height = _HANDLE_M[0] - opening, _HANDLE_M[2]
        return x + along * math.cos(yaw), y + along * math.sin(yaw), height

    def _own_fields(self) -> dict[str, Any]:
        opening, speed = self._row[_FIRST + 3 : _FIRST + 5]
        return {
            "handle_position": list(self._handle(self._known, opening)),
            "cabinet_position": list(self._known[:2]),
            "cabinet_yaw": [self._known[2]],
            "opening": [opening],
            "opening_speed": [speed],
            "goal_opening": list(self._goal),
        }

    def _own(self, bias: tuple[float, float]) -> list[float]:
        opening, speed = self._row[_FIRST + 3 : _FIRST + 5]
        x, y, z = self._handle(self._known, opening)
        return [x + bias[0], y + bias[1], z, self._known[2], opening, speed, *self._goal]

    @property
    def _places(self) -> list[int]:
        return list(range(layout.HANDLE_POSITION.start, layout.HANDLE_POSITION.stop))

    def _is_possible(
        self, things: Sequence[float], goal: Sequence[float], moved: Sequence[float]
    ) -> bool:
        *place, opening, _ = things
        setting = self._setting
        if setting.goal_shift_m:
            back = self._moved(goal[0], -self._aside(setting.goal_shift_m))
            if round(abs(moved[0] - goal[0]), 9) < round(abs(back - goal[0]), 9):
                return False
        if not (setting.fixture_shift_m or setting.fixture_turn_rad):
            return True
        way = opening, (opening + moved[0]) / 2, moved[0]
        return all(is_reached(*self._handle(place, out)[:2]) for out in way)

    def _aside(self, by: float) -> float:
        """How much further out a goal is that moves so far, in the direction that was drawn."""
        return math.copysign(by, math.cos(self._setting.goal_direction_rad))

    def _moved_goal(self, goal: Sequence[float], by: float) -> tuple[float, ...]:
        return (self._moved(goal[0], self._aside(by)),)

    def _moved(self, goal: float, by: float) -> float:
        """A goal so much further out, between the ends and not where the drawer stands."""
        moved = min(max(goal + by, 0.0), _OUT_M[1])
        if abs(moved - self._from) >= _CLEAR_M:
            return moved
        return self._from + math.copysign(_CLEAR_M, goal - self._from)

    def _progress(self) -> tuple[int, float]:
        world: Any = self._world
        *place, opening, speed = self._row[_FIRST:]
        goal = self._goal[0]
        left, way = abs(goal - opening), max(abs(goal - self._from), 1e-6)
        reach = math.dist(self._tip[:3], self._handle(place, opening))
        if self._deepest >= 2:
            if left <= layout.TOLERANCE_M and abs(speed) < _STILL_M_S:
                return 4, 0.0
            if left <= way / 2:
                return 3, 1.0 - 2.0 * left / way
        if reach < 2 * _NEAR_M and all(
            world.touches(finger, world.cabinet) for finger in world.fingers
        ):
            return 2, max(0.0, 1.0 - left / way) * 2.0
        if reach < _NEAR_M:
            return 1, 0.0
        return 0, 1.0 - math.tanh(5.0 * reach)

    def _things_seen(self, rows: Sequence[Row]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        poses = np.zeros((len(rows), 2, 7))
        for index, row in enumerate(rows):
            x, y, yaw, opening = row[_FIRST : _FIRST + 4]
            turn = about_z(yaw)
            poses[index, 0] = (x, y, 0.0, *turn)
            out = (x - opening * math.cos(yaw), y - opening * math.sin(yaw), 0.0)
            poses[index, 1] = (*out, *turn)
        return ("cabinet", "drawer"), poses

    def _things_described(self) -> str:
        return boxes_link("cabinet", _CABINET, _CABINET_RGBA) + boxes_link(
            "drawer", _DRAWER, _DRAWER_RGBA
        )
