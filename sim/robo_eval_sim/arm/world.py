"""How arm, table and what lies there are built, placed and moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval_sim.arm import layout
from robo_eval_sim.arm.description import arm_urdf
from robo_eval_sim.arm.footprint import Footprint
from robo_eval_sim.arm.layout import FINGERS, JOINTS, TIP
from robo_eval_sim.arm.ramp import STEP_S, Wish, ramp
from robo_eval_sim.arm.setting import NOMINAL, Setting
from robo_eval_sim.engine import (
    BASE,
    BY_VELOCITY,
    STILL,
    Engine,
    Vector3,
    contacts,
    drive,
    find_contacts,
    joint_states,
    link_state,
    put,
    restore,
    set_dynamics,
    set_joint,
    step,
    throw,
    torques_of,
)

GRAVITY_M_S2: Final = 9.81
_EFFORT: Final = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
"""Greatest torques of the joints, N m; those of the description."""
_BORNE: Final = 0.7 * np.array(_EFFORT)
"""Torques that given speeds may need; the rest is for what happens within a tick."""
_PACES: Final = (1.0, 0.4, 0.2, 0.1, 0.0, -0.2, -0.4)
"""Shares of Franka's accelerations by which joints get faster, tried until torques are borne."""
_GRIP_N: Final = 20.0
_TABLE: Final[tuple[Vector3, Vector3]] = ((0.4, 0.6, 0.2), (0.4, 0.0, -0.2))
"""Half extents and centre of the table, whose top is at height 0."""
_TABLE_RGBA: Final = (0.72, 0.66, 0.56, 1.0)
_DISTRACTOR_RGBA: Final = (0.35, 0.45, 0.7, 1.0)
_BLOCK_RGBA: Final = (0.55, 0.35, 0.6, 1.0)
_BLOCK_M: Final = (0.005, 0.12)
"""Half of the thickness and of the width of the wall that stands in the way."""
_HAND_KG: Final = 0.81

Row = tuple[float, ...]
"""Positions of 7 joints and 2 fingers, 9 velocities, 9 torques of motors; then what a task adds."""
TORQUE: Final = slice(18, 27)


class World:
    """One engine with an arm on a table; a subclass adds the things of its task.

    An episode is set up by `prepare` (constants) and `place` (positions), and goes on by `tick`.
    Whatever was played before, the same calls give the same numbers, bit for bit: every `prepare`
    goes back to a snapshot taken when the bodies were built.
    """

    def __init__(self) -> None:
        self.engine = Engine()
        self.client = self.engine.client
        self.setting = NOMINAL
        self.row: Row = ()
        self.felt: list[tuple[float, ...]] = []
        self._built: tuple[object, ...] | None = None
        self._snapshot = -1
        self.robot = -1
        self.table = -1

    def close(self) -> None:
        """Free the engine; closing twice does nothing."""
        self.engine.close()

    # Building ----------------------------------------------------------------------------------

    def prepare(
        self,
        setting: Setting,
        *,
        is_visible: bool = False,
        further: Sequence[Footprint] = (),
    ) -> None:
        """Go back to the untouched world with these constants.

        Args:
            setting: The constants.
            is_visible: Whether pictures will be wanted.
            further: Where further things stand, cubes.
        """
        shapes = (*setting.shapes, is_visible)
        # The engine solves contacts that hang together one after the other, in an order that a
        # restored snapshot does not bring back: with further things all is built anew.
        is_crowded = setting.distractors > 0
        if shapes == self._built and not is_crowded and math.isfinite(sum(self.row)):
            restore(self._snapshot, physicsClientId=self.client)
            # Nothing touches there: contacts of the episode before are forgotten, with the
            # impulses by which the engine would begin to solve the next ones.
            find_contacts(physicsClientId=self.client)
            if setting is not self.setting:
                self._tune(setting)
        else:
            self._build(setting, is_visible=is_visible, further=further)
            self._built = shapes
        self.setting = setting

    def _build(self, setting: Setting, *, is_visible: bool, further: Sequence[Footprint]) -> None:
        engine = self.engine
        engine.clear(
            tick_s=STEP_S,
            gravity_m_s2=GRAVITY_M_S2,
            is_visible=is_visible,
            # Bodies that overlap come apart slowly, so that a bounce gains nothing.
            contactERP=0.02,
        )
        self.robot = engine.robot(arm_urdf(for_engine=True))
        links = engine.links(self.robot)
        numbers = engine.joints(self.robot)
        self.tip = links[TIP]
        self.hand = links["panda_hand"]
        self.fingers = (links["panda_leftfinger"], links["panda_rightfinger"])
        self.driven = [numbers[name] for name in (*JOINTS, *FINGERS)]
        # The engine works out torques for ever by the masses of the first time: those without load.
        torques_of(self.robot, *[[0.0] * 9] * 3, physicsClientId=self.client)
        engine.feel(self.robot, self.hand)
        engine.gear(self.robot, *self.driven[7:])
        half, centre = _TABLE
        # The engine multiplies what two bodies have: how much a thing bounces is its own.
        self.table = engine.body(
            engine.box(half, _TABLE_RGBA), centre, friction=1.0, restitution=1.0
        )
        # What hits the arm makes no joint faster, either.
        set_dynamics(
            self.robot, BASE, maxJointVelocity=layout.FASTEST_RAD_S, physicsClientId=self.client
        )
        for link in self.fingers:
            set_dynamics(self.robot, link, lateralFriction=1.0, physicsClientId=self.client)
        self.things(setting)
        self._obstruct(setting, further)
        self._tune(setting)
        self._snapshot = engine.snapshot()

    def things(self, setting: Setting) -> None:
        """Build what the task adds."""

    def _obstruct(self, setting: Setting, further: Sequence[Footprint]) -> None:
        """Put further things on the table, and what stands in the way."""
        engine = self.engine
        for x, y, _, (half, _) in further:
            shape = engine.box((half, half, half), _DISTRACTOR_RGBA)
            engine.body(shape, (x, y, half), mass_kg=0.03, friction=1.0)
        if setting.block_height_m > 0.0:
            x, y, turn, (thick, wide) = wall_of(setting)
            half = setting.block_height_m / 2
            wall = engine.body(engine.box((thick, wide, half), _BLOCK_RGBA), STILL, friction=1.0)
            put(wall, (x, y, half), about_z(turn), physicsClientId=self.client)

    def _tune(self, setting: Setting) -> None:
        """Set the constants that bodies do not have to be built anew for."""
        down, aside = math.cos(setting.tilt_rad), math.sin(setting.tilt_rad)
        self.engine.set_gravity(
            (
                GRAVITY_M_S2 * aside * math.cos(setting.tilt_direction_rad),
                GRAVITY_M_S2 * aside * math.sin(setting.tilt_direction_rad),
                -GRAVITY_M_S2 * down,
            )
        )
        mass = _HAND_KG + setting.payload_kg
        set_dynamics(self.robot, self.hand, mass=mass, physicsClientId=self.client)
        self._forces = [*_EFFORT, *[_GRIP_N * setting.grip] * 2]
        self.tune(setting)

    def tune(self, setting: Setting) -> None:
        """Set the constants of what the task adds."""

    # Placing -----------------------------------------------------------------------------------

    def place(self, row: Sequence[float], rest: Sequence[float]) -> None:
        """Put arm and things where they begin.

        Args:
            row: 9 positions and 9 velocities of joints and fingers.
            rest: What the task adds, as in `row` after the torques.
        """
        client = self.client
        for index, joint in enumerate(self.driven):
            set_joint(self.robot, joint, row[index], row[9 + index], physicsClientId=client)
        self.lay(rest)
        self.read()
        # The engine still tells the torques of the episode before.
        self.row = (*self.row[: TORQUE.start], *(0.0,) * 9, *self.row[TORQUE.stop :])

    def lay(self, rest: Sequence[float]) -> None:
        """Put what the task adds where it begins."""

    def mark(self, goal: Sequence[float]) -> None:
        """Show where the goal is, if anybody looks."""

    # Moving ------------------------------------------------------------------------------------

    def tick(self, *parts: tuple[Wish, int]) -> None:
        """Let a control period pass, and measure in each sub-step.

        Args:
            *parts: What is wanted, and for how many sub-steps.
        """
        self.energy_j, self.peak_n, self.felt = 0.0, 0.0, []
        for wish, substeps in parts:
            self._go(wish, substeps)

    def _go(self, wish: Wish, substeps: int) -> None:
        at, speed = np.array(self.row[:9]), np.array(self.row[9:18])
        robot, driven, client, forces = self.robot, self.driven, self.client, self._forces
        watched, peak_n, read = (*driven, self.hand), self.peak_n, []
        for speeds in self._borne(wish, at, speed, substeps):
            drive(
                robot,
                driven,
                BY_VELOCITY,
                targetVelocities=speeds,
                forces=forces,
                physicsClientId=client,
            )
            step(client)
            read.append(joint_states(robot, watched, physicsClientId=client))
            for contact in contacts(robot, physicsClientId=client):
                if contact[9] > peak_n:
                    peak_n = contact[9]
        powers = [abs(state[1] * state[3]) for states in read for state in states[:-1]]
        self.energy_j += sum(powers) * STEP_S
        self.peak_n = peak_n
        self.felt += [states[-1][2] for states in read]
        self._keep(read[-1][:-1])

    def _borne(
        self, wish: Wish, at: NDArray[np.float64], speed: NDArray[np.float64], substeps: int
    ) -> list[list[float]]:
        """Speeds of the ramp; where a wish gives them, joints get faster as torques suffice for it.

        Several joints at their greatest speeds turn the wrist harder than its motors can hold:
        then all of them slow down.
        """
        places, most = wish
        if most is None:
            return ramp(wish, at, speed, substeps)
        period, tried = substeps * STEP_S, []
        for pace in _PACES:
            able = abs(speed[:7]) + pace * period * np.array(layout.ACCELERATION_RAD_S2)
            speeds = ramp((places, np.clip(able, 0.0, most)), at, speed, substeps)
            then = np.array([*speeds[-1][:7], 0.0, 0.0])
            change = np.array([*(then - speed)[:7] / period, 0.0, 0.0])
            given = at.tolist(), then.tolist(), change.tolist()
            torques = torques_of(self.robot, *given, physicsClientId=self.client)
            need = float((abs(np.array(torques[:7])) / _BORNE).max())
            tried.append((need, speeds))
            if need <= 1.0:
                break
        return min(tried)[1]

    def read(self) -> Row:
        """Read where everything is; also keeps it as `row`."""
        return self._keep(joint_states(self.robot, self.driven, physicsClientId=self.client))

    def _keep(self, states: Sequence[tuple[Any, ...]]) -> Row:
        self.row = (
            *[state[0] for state in states],
            *[state[1] for state in states],
            *[state[3] for state in states],
            *self.rest(),
        )
        return self.row

    def rest(self) -> tuple[float, ...]:
        """What the task adds."""
        return ()

    def tip_pose(self) -> tuple[float, ...]:
        """Position (m) and quaternion xyzw of the tip."""
        found = link_state(self.robot, self.tip, 0, 1, physicsClientId=self.client)
        return (*found[4], *found[5])

    def wrench(self) -> tuple[float, ...]:
        """Mean force (N) and torque (N m) between wrist and hand over the last tick.

        Before the first one nothing was felt yet: zeros.
        """
        return tuple(np.mean(self.felt or np.zeros((1, 6)), axis=0).tolist())

    def touches(self, link: int, body: int) -> bool:
        """Whether a link of the arm touches a body."""
        return bool(contacts(self.robot, body, link, physicsClientId=self.client))


def wall_of(setting: Setting) -> Footprint:
    """Where the wall stands that is in the way."""
    return Footprint(setting.block_x_m, setting.block_y_m, setting.block_turn_rad, _BLOCK_M)


def about_z(turn: float) -> tuple[float, float, float, float]:
    """Quaternion xyzw of a turn about the vertical, rad."""
    return 0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2)


def free_body(world: World, body: int, place: Sequence[float]) -> None:
    """Put a free body: position, quaternion, velocity and angular velocity, 13 numbers."""
    client = world.client
    put(body, place[:3], place[3:7], physicsClientId=client)
    throw(body, place[7:10], place[10:13], physicsClientId=client)


def is_on_table(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which places lie above the table, of arrays of coordinates of one shape."""
    half, centre = _TABLE
    found: NDArray[np.bool_] = (abs(x - centre[0]) < half[0]) & (abs(y - centre[1]) < half[1])
    return found
