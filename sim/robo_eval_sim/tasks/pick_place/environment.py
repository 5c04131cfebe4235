"""RoboEval/PickPlace-v0: an arm picks a thing up and puts it down at its goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError
from robo_eval_sim.arm.description import solid_link
from robo_eval_sim.arm.environment import ArmEnv, numbers
from robo_eval_sim.arm.setting import SHAPES, Setting
from robo_eval_sim.arm.world import Row, World, free_body
from robo_eval_sim.engine import BASE, UPRIGHT, place_of, put, set_dynamics, velocity_of
from robo_eval_sim.tasks.pick_place import layout
from robo_eval_sim.tasks.pick_place.spec import SPEC

_OBJECT_RGBA = (0.85, 0.35, 0.2, 1.0)
_GOAL_RGBA = (0.2, 0.6, 0.35, 0.6)
_FIRST = 27
"""Where the object begins in a row of the world."""
_FIELD = ((0.38, 0.60), (-0.22, 0.22))
"""Where object and goal may lie: x and y, metres."""
_APART_M = 0.12
_NEAR_M = 0.03
_LIFTED_M = 0.03
_STILL_M_S = 0.02
_ROOM_M = (0.2, 0.8)
"""How far from the base things may be that a state puts somewhere."""
_INSIDE_M, _HIGHEST_M = 0.005, 1.0


class PickPlaceWorld(World):
    """The thing that is picked up, and the mark of its goal."""

    def things(self, setting: Setting) -> None:
        """Build the thing, and the mark if anybody looks."""
        self.goal = self.engine.body(
            self.engine.disc(layout.TOLERANCE_M, _GOAL_RGBA), (0.0, 0.0, -1.0)
        )
        offset, direction = setting.mass_offset_m, setting.mass_direction_rad
        self.object = self.engine.body(
            self._shape(setting),
            (0.5, 0.0, 0.5),
            mass_kg=setting.object_mass_kg,
            centre_of_mass=(offset * math.cos(direction), offset * math.sin(direction), 0.0),
        )

    def _shape(self, setting: Setting) -> tuple[int, int]:
        size, kind = setting.object_size_m, SHAPES[setting.object_shape]
        if kind == "box":
            return self.engine.box((size / 2, size / 2, size / 2), _OBJECT_RGBA)
        make = self.engine.cylinder if kind == "cylinder" else self.engine.capsule
        return make(size / 2, size, _OBJECT_RGBA)

    def tune(self, setting: Setting) -> None:
        """Set mass, friction and restitution of the thing."""
        set_dynamics(
            self.object,
            BASE,
            mass=setting.object_mass_kg,
            lateralFriction=setting.friction,
            restitution=setting.restitution,
            physicsClientId=self.client,
        )

    def lay(self, rest: Sequence[float]) -> None:
        """Put the thing where it begins."""
        free_body(self, self.object, rest)

    def mark(self, goal: Sequence[float]) -> None:
        """Show where the goal is."""
        put(self.goal, (*goal, 0.001), UPRIGHT, physicsClientId=self.client)

    def rest(self) -> tuple[float, ...]:
        """Position, orientation, velocity and angular velocity of the thing."""
        position, quaternion = place_of(self.object, physicsClientId=self.client)
        velocity, turning = velocity_of(self.object, physicsClientId=self.client)
        return (*position, *quaternion, *velocity, *turning)


class PickPlaceEnv(ArmEnv):
    """Pick a thing up and put it down at its goal.

    Units are SI. World axes: x forward, y left, z up, right-handed; the base of the arm is at the
    origin, the top of the table at height 0. A Franka Panda of the pybullet wheel, whose meshes are
    replaced by boxes, cylinders and spheres.

    ## Action

    A `Box` of float32 in radians and metres; a number beyond its bounds is refused. A tick is
    0.05 s. The last number is the wanted width of the gripper, 0 to 0.08 m; its fingers close with
    20 N each.

    | `action_mode` | numbers | what they are |
    |---|---|---|
    | `joint_position` | 7 + 1 | positions of the joints, rad; each goes there as fast as it may |
    | `joint_velocity` | 7 + 1 | velocities of the joints, rad/s, within the Panda's limits |
    | `ee_delta` | 6 + 1 | how far the tip moves (x, y, z, m) and turns (rotation vector, rad) |

    ## Observation

    A flat `Box` of float32; the names of the slices are in `robo_eval_sim.arm.layout` and
    `robo_eval_sim.tasks.pick_place.layout`.

    | index | what | unit |
    |---|---|---|
    | 0 to 6 | positions of the joints | rad |
    | 7 to 13 | velocities of the joints | rad/s |
    | 14 | width of the gripper | m |
    | 15 to 17 | position of the tip, between the finger pads | m |
    | 18 to 21 | orientation of the tip, quaternion x, y, z, w | |
    | 22 to 24 | position of the middle of the object | m |
    | 25 to 28 | orientation of the object, quaternion x, y, z, w | |
    | 29 to 31 | velocity of the object | m/s |
    | 32 to 34 | angular velocity of the object, world axes | rad/s |
    | 35, 36 | goal x, y | m |

    `obs_mode="state+wrench"` adds six numbers: force (N) and torque (N m) between wrist and hand.
    `obs_mode="rgbd"` is a `Dict`: `image` (84, 84, 3) of uint8, `depth` (84, 84, 1) in metres, and
    the first 22 numbers as `state`; the goal is a green disc.

    ## Start

    The joints are within 0.02 rad of a fixed posture, the gripper is open. Object and goal are
    drawn uniformly from x 0.38 to 0.60 m and y ±0.22 m, at least 0.12 m apart; the object is turned
    by up to π/4. The same seed gives the same start at every level, so that an episode of level 0
    is a matched control.

    ## Reward and end

    The return is the quality: the share of five stages that were done, and of the next one how far
    it got: the tip is within 3 cm of the object (reached), both fingers touch it (grasped), it is
    3 cm above the table (lifted), within 2 cm of its goal (carried), and lies there let go and
    still (placed). `info["stage"]` counts the stages done so far. Being placed ends the episode as
    a success, however it came about; 160 ticks end it otherwise.
    """

    task = SPEC
    world_class = PickPlaceWorld
    own_size = layout.OWN_SIZE

    def _start(self, rng: np.random.Generator) -> dict[str, Any]:
        while True:
            x, y, goal_x, goal_y = (float(rng.uniform(*_FIELD[i % 2])) for i in range(4))
            if math.hypot(x - goal_x, y - goal_y) >= _APART_M:
                break
        yaw = float(rng.uniform(-math.pi / 4, math.pi / 4))
        return {
            "object_position": [x, y, None],
            "object_quat_xyzw": [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)],
            "goal_position": [goal_x, goal_y],
        }

    def _given(self, fields: Mapping[str, Any]) -> tuple[list[float], list[float]]:
        position = fields.get("object_position")
        if isinstance(position, list) and len(position) == 3 and position[2] is None:
            position = [*position[:2], self._height()]
        position = numbers({"object_position": position}, "object_position", 3)
        goal = numbers(fields, "goal_position", 2)
        for name, given in (("object_position", position), ("goal_position", goal)):
            away = math.hypot(*given[:2])
            if not _ROOM_M[0] <= away <= _ROOM_M[1]:
                hint = "; is it in millimetres?" if away > 10.0 else ""
                raise InputError(
                    f"state.{name}: must be {_ROOM_M[0]:g} to {_ROOM_M[1]:g} m from the arm's base,"
                    f" where the arm reaches it and does not stand, given {given}{hint}"
                )
        if not self._height() - _INSIDE_M <= position[2] <= _HIGHEST_M:
            raise InputError(
                f"state.object_position: its middle must be {self._height():g} to {_HIGHEST_M:g} m"
                f" high, or the object overlaps the table, given {position}"
            )
        quaternion = numbers(fields, "object_quat_xyzw", 4, default=list(UPRIGHT))
        if not math.isclose(math.hypot(*quaternion), 1.0, abs_tol=1e-3):
            raise InputError(
                f"state.object_quat_xyzw: a quaternion of length 1 is needed, given {quaternion}"
            )
        velocity = numbers(fields, "object_velocity", 3, default=[0.0] * 3)
        turning = numbers(fields, "object_angular_velocity", 3, default=[0.0] * 3)
        return [*position, *quaternion, *velocity, *turning], goal

    def _height(self) -> float:
        setting = self._setting
        return setting.object_size_m * (1.0 if SHAPES[setting.object_shape] == "capsule" else 0.5)

    def _own_fields(self) -> dict[str, Any]:
        thing = self._row[_FIRST:]
        return {
            "object_position": list(thing[:3]),
            "object_quat_xyzw": list(thing[3:7]),
            "object_velocity": list(thing[7:10]),
            "object_angular_velocity": list(thing[10:13]),
            "goal_position": list(self._goal),
        }

    def _own(self, bias: tuple[float, float]) -> list[float]:
        x, y, z, *rest = self._row[_FIRST:]
        return [x + bias[0], y + bias[1], z, *rest, *self._goal]

    @property
    def _places(self) -> list[int]:
        return list(range(layout.OBJECT_POSITION.start, layout.OBJECT_POSITION.stop))

    def _progress(self) -> tuple[int, float]:
        world: Any = self._world
        row, tip = self._row, self._tip
        x, y, z = row[_FIRST : _FIRST + 3]
        away = math.hypot(x - self._goal[0], y - self._goal[1])
        reach = math.dist(tip[:3], (x, y, z))
        lifted = z - self._height()
        is_there = away <= layout.TOLERANCE_M
        if reach < 2 * _NEAR_M:
            touching = [world.touches(finger, world.object) for finger in world.fingers]
        else:
            touching = [False, False]
        speed = math.hypot(*row[_FIRST + 7 : _FIRST + 10])
        if is_there and not any(touching) and abs(lifted) < 0.005 and speed < _STILL_M_S:
            return 5, 0.0
        if all(touching):
            if lifted < _LIFTED_M and not (self._deepest >= 3 and is_there):
                return 2, max(0.0, lifted) / _LIFTED_M
            if not is_there:
                return 3, 1.0 - math.tanh(5.0 * away)
            return 4, 0.5
        if reach < _NEAR_M:
            return 1, 0.0
        return 0, 1.0 - math.tanh(5.0 * reach)

    def _things_seen(self, rows: Sequence[Row]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        poses = np.array([row[_FIRST : _FIRST + 7] for row in rows])
        goal = np.tile([*self._goal, 0.001, *UPRIGHT], (len(rows), 1))
        return ("object", "goal"), np.stack([poses, goal], axis=1)

    def _things_described(self) -> str:
        size = self._setting.object_size_m
        kind = SHAPES[self._setting.object_shape]
        return solid_link("object", kind, size, _OBJECT_RGBA) + solid_link(
            "goal", "cylinder", layout.TOLERANCE_M * 2, _GOAL_RGBA, height_m=0.002
        )
