"""RoboEval/PickPlace-v0: an arm picks a thing up and puts it down at its goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.kinematics import rotation_of
from robo_eval.core.errors import InputError
from robo_eval_sim.arm.description import solid_link
from robo_eval_sim.arm.environment import ArmEnv, numbers
from robo_eval_sim.arm.footprint import Footprint, is_reached, scattered
from robo_eval_sim.arm.setting import SHAPES, Setting
from robo_eval_sim.arm.world import Row, World, about_z, free_body, is_on_table, wall_of
from robo_eval_sim.engine import BASE, UPRIGHT, place_of, put, set_dynamics, velocity_of
from robo_eval_sim.tasks.pick_place import layout
from robo_eval_sim.tasks.pick_place.spec import SPEC

_OBJECT_RGBA = (0.85, 0.35, 0.2, 1.0)
_GOAL_RGBA = (0.2, 0.6, 0.35, 0.6)
_LYING = (0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))
"""Turn of what stands upright, to lie along x."""
_BOUNCE = 0.95
"""The engine adds the gravity of a step to a bounce; without that share none is too high."""
_ROLLING_M = 0.001
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
_FREE_M = 0.03
"""How far from object and goal further things stand."""
_HAND_M = (0.037, 0.107)
"""Half of the hand's edges with 5 mm to spare; its fingers open along the longer one."""
_SPARE_M = 0.005
_ARM_M = 0.1
"""Half of the width that the arm takes, from its base to what it holds."""
_LOW_M = 0.15
"""A wall up to here comes in the way of the hand alone; above are wrist and forearm."""
_HOME = Footprint(0.307, 0.0, 0.0, (0.06, 0.13))
"""Where the hand is when an episode begins."""
_WAYS = 8
"""Directions in which the hand may put something down."""


class PickPlaceWorld(World):
    """The thing that is picked up, and the mark of its goal."""

    def things(self, setting: Setting) -> None:
        """Build the thing, and the mark if anybody looks."""
        self.goal = self.engine.body(
            self.engine.disc(layout.TOLERANCE_M, _GOAL_RGBA), (0.0, 0.0, -1.0)
        )
        offset, direction = setting.mass_offset_m, setting.mass_direction_rad
        centre = (offset * math.cos(direction), offset * math.sin(direction), 0.0)
        self._centre = centre if offset else None
        self.object = self.engine.body(
            self._shape(setting),
            (0.5, 0.0, 0.5),
            mass_kg=setting.object_mass_kg,
            centre_of_mass=centre,
        )

    def _shape(self, setting: Setting) -> tuple[int, int]:
        size, kind = setting.object_size_m, SHAPES[setting.object_shape]
        if kind == "box":
            return self.engine.box((size / 2, size / 2, size / 2), _OBJECT_RGBA)
        if kind == "cylinder":
            return self.engine.cylinder(size / 2, size, _OBJECT_RGBA)
        return self.engine.capsule(size / 2, size, _OBJECT_RGBA, turn=_LYING)

    def tune(self, setting: Setting) -> None:
        """Set mass, friction and restitution of the thing."""
        set_dynamics(
            self.object,
            BASE,
            mass=setting.object_mass_kg,
            lateralFriction=setting.friction,
            restitution=_BOUNCE * setting.restitution,
            # A capsule that lies on the table does not roll away.
            rollingFriction=_ROLLING_M if SHAPES[setting.object_shape] == "capsule" else 0.0,
            physicsClientId=self.client,
        )

    def lay(self, rest: Sequence[float]) -> None:
        """Put the thing where it begins."""
        free_body(self, self.object, self._beside(rest, 1.0))

    def mark(self, goal: Sequence[float]) -> None:
        """Show where the goal is."""
        put(self.goal, (*goal, 0.001), UPRIGHT, physicsClientId=self.client)

    def rest(self) -> tuple[float, ...]:
        """Position, orientation, velocity and angular velocity of the thing's middle."""
        position, quaternion = place_of(self.object, physicsClientId=self.client)
        velocity, turning = velocity_of(self.object, physicsClientId=self.client)
        return self._beside((*position, *quaternion, *velocity, *turning), -1.0)

    def _beside(self, moving: Sequence[float], way: float) -> tuple[float, ...]:
        """From its middle to its centre of mass, of which the engine speaks, or back (-1)."""
        if self._centre is None:
            return tuple(moving)
        lever = way * rotation_of(moving[3:7]) @ self._centre
        velocity = np.cross(moving[10:13], lever) + moving[7:10]
        position = lever + moving[:3]
        return (*position.tolist(), *moving[3:7], *velocity.tolist(), *moving[10:13])


def _line(start: Sequence[float], end: Sequence[float], half_m: float) -> Footprint:
    """A line on the table, so many metres wide to either side."""
    x, y = end[0] - start[0], end[1] - start[1]
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    return Footprint(*middle, math.atan2(y, x), (math.hypot(x, y) / 2, half_m))


class PickPlaceEnv(ArmEnv):
    """Pick a thing up and put it down at its goal.

    Units are SI. World axes: x forward, y left, z up, right-handed; the base of the arm is at the
    origin, the top of the table at height 0. A Franka Panda of the pybullet wheel, whose meshes are
    replaced by boxes, cylinders and spheres.

    ## Action

    A `Box` of float32 in radians and metres; a number beyond its bounds is refused. A tick is
    0.05 s.

    | `action_mode` | numbers | what they are |
    |---|---|---|
    | `joint_position` | 7 + 1 | positions of the joints, rad; they go there together, and stop |
    | `joint_velocity` | 7 + 1 | velocities of the joints, rad/s |
    | `ee_delta` | 6 + 1 | how far the tip moves (x, y, z, m) and turns (rotation vector, rad) |

    The last number is the wanted width of the gripper, 0 to 0.08 m; each finger presses with 20 N.
    An action that asks for more than the motors may do is slowed, and not refused: a ramp asks
    every joint for Franka's limits of acceleration (15, 7.5, 10, 12.5, 15, 20 and 20 rad/s²) and
    2.175 rad/s, the least of Franka's limits of speed, or less, and lets it stop at the end of its
    range. In mode `joint_position` the joint that needs longest sets the pace of all. In the other
    modes joints go at 1.95 rad/s and 0.67 of these accelerations or less, and slow down together
    where the torques (87 N m, and 12 N m from the fifth joint on) would not suffice for an arm
    without load. A finger is told to go at 0.05 m/s or less, which is Franka's limit. In steps of
    the engine under extreme actions (each number at either bound for 1, 3 or 10 ticks) and
    swinging ones, accelerations were at most 0.85 of the limits in modes `joint_velocity` and
    `ee_delta` where nothing was touched, with 1 kg in the hand, too. In mode `joint_position` they
    were up to 1.43 of them, as its targets may need more torque than the wrist has; those of the
    expert keep within the limits. When the arm hits something, accelerations were up to 73 of the
    limits and speeds of the fingers up to 44 of theirs; the speed of a joint never exceeds its
    limit. The ramp begins anew in each tick, from the positions and velocities that the joints
    have: these are all of its state.

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

    `obs_mode="state+wrench"` adds six numbers: force (N) and torque (N m) between wrist and
    hand, their mean over the tick, and zeros before the first one.
    `obs_mode="rgbd"` is a `Dict`: `image` (84, 84, 3) of uint8, `depth` (84, 84, 1) in metres, and
    the first 22 numbers as `state`; the goal is a green disc.

    ## Start

    The joints are within 0.02 rad of a fixed posture, the gripper is open. Object and goal are
    drawn uniformly from x 0.38 to 0.60 m and y ±0.22 m, at least 0.12 m apart; the object is turned
    by up to π/4. The same seed draws the same joints, object and goal whatever the novelty, so that
    an episode of level 0 is a matched control. An axis changes one thing about them: `goal_shift`
    where the goal is, `object_size` and `object_shape` how high the middle of the object is.
    `path_blocked` and `distractors` put further bodies on the table, and the others leave the start
    as it is.

    Draws that would make an episode impossible, or change nothing in it, are turned down, and the
    next one is taken; `novelty["turned_down"]` counts them. The goal moves to where the arm
    reaches, 0.28 to 0.75 m from its base, and stays 0.12 m from the object. The wall leaves room
    for the hand at object and goal and crosses the line between them; one above 0.15 m also leaves
    room for the arm, and may stand beside that line. Further things stand free of each other, of
    object, goal and wall.

    ## Reward and end

    The return is the quality: the share of five stages that were done, and of the next one how far
    it got: the tip is within 3 cm of the object (reached), both fingers touch it (grasped), it is
    3 cm above the table (lifted), within 2 cm of its goal (carried), and lies there let go and
    still (placed). `info["stage"]` counts the stages done so far. Being placed ends the episode as
    a success, however it came about; 200 ticks end it otherwise.
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
            "object_quat_xyzw": list(about_z(yaw)),
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

    def _is_possible(
        self, things: Sequence[float], goal: Sequence[float], moved: Sequence[float]
    ) -> bool:
        del goal
        if self._setting.goal_shift_m:
            is_there = is_reached(*moved) and is_on_table(*np.array(moved))
            if not is_there or math.dist(things[:2], moved) < _APART_M:
                return False
        return not self._setting.block_height_m or self._is_passed(things, moved)

    def _is_passed(self, things: Sequence[float], goal: Sequence[float]) -> bool:
        """Whether the wall leaves room to pick up and put down, and stands between both places.

        One that reaches the forearm may stand beside the way: between places that lie one behind
        the other it would leave no room.
        """
        setting, at = self._setting, things[:2]
        wall, half = wall_of(setting), self._half() + _SPARE_M
        is_tall = setting.block_height_m > _LOW_M
        if wall.overlaps(_HOME) if is_tall else not wall.overlaps(_line(at, goal, 0.0)):
            return False
        yaw = 2.0 * math.atan2(things[5], things[6])
        for (x, y), ways in ((at, 2), (goal, _WAYS)):
            turns = [yaw + way * math.pi / ways for way in range(ways)]
            if not any(
                not wall.overlaps(Footprint(x, y, turn, _HAND_M))
                and not wall.overlaps(Footprint(x, y, turn, (half, half)))
                for turn in turns
            ):
                return False
            if is_tall and wall.overlaps(_line((0.0, 0.0), (x, y), _ARM_M)):
                return False
        return True

    def _further(
        self, things: Sequence[float], goal: Sequence[float]
    ) -> tuple[Sequence[Footprint], int]:
        setting = self._setting
        half = self._half() + _FREE_M
        taken = [Footprint(x, y, 0.0, (half, half)) for x, y in (things[:2], goal)]
        if setting.block_height_m:
            taken.append(wall_of(setting))
        return scattered(setting.distractors, setting.place_seed, tuple(taken))

    def _moved_goal(self, goal: Sequence[float], by: float) -> tuple[float, ...]:
        towards = self._setting.goal_direction_rad
        return goal[0] + by * math.cos(towards), goal[1] + by * math.sin(towards)

    def _height(self) -> float:
        return self._setting.object_size_m / 2

    def _half(self) -> float:
        """Half of its longest edge: a capsule that lies is twice as long as it is thick."""
        is_long = SHAPES[self._setting.object_shape] == "capsule"
        return self._setting.object_size_m / (1 if is_long else 2)

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
