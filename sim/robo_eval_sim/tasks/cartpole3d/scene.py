"""How cart, pole, balls and room are built, placed and moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval_sim.engine import (
    BASE,
    STILL,
    UPRIGHT,
    WORLD,
    Engine,
    link_state,
    link_states,
    place_of,
    push,
    put,
    restore,
    set_joint,
    set_joints,
    step,
    throw,
    velocity_of,
)
from robo_eval_sim.tasks.cartpole3d.description import engine_urdf
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL, TICK_S
from robo_eval_sim.tasks.cartpole3d.physics import LEVEL_0, Physics
from robo_eval_sim.tasks.cartpole3d.start import Row, Vector3, pole_frame

_SLIDER_X, _CART, _POLE = 0, 1, 2
_LINKS: Final = (_CART, _POLE)
_PIVOT_M: Final = NOMINAL.pivot_height_m
_PARK_Z_M: Final = -100.0
_PARK_STEP_M: Final = 10.0
_FLOOR_RGBA: Final = (0.82, 0.84, 0.86, 1.0)
_CLEAR_RGBA: Final = (1.0, 1.0, 1.0, 0.0)
_BALL_RGBA: Final = (0.75, 0.25, 0.25, 1.0)
_WALL_M: Final = 5.0
"""Thickness of the slabs around the room. The reference has 0.1 m, seen from inside the same; at
the engine's speed limit a ball moves 2 m a tick and would leave through those."""
_SPAN_M: Final = NOMINAL.arena_half_width_m + _WALL_M
_SIDE_M: Final = NOMINAL.arena_half_width_m + _WALL_M / 2
_WALLS: Final[tuple[tuple[Vector3, Vector3], ...]] = (
    ((_SIDE_M, 0.0, 5.0), (_WALL_M / 2, _SPAN_M, _SPAN_M)),
    ((-_SIDE_M, 0.0, 5.0), (_WALL_M / 2, _SPAN_M, _SPAN_M)),
    ((0.0, _SIDE_M, 5.0), (_SPAN_M, _WALL_M / 2, _SPAN_M)),
    ((0.0, -_SIDE_M, 5.0), (_SPAN_M, _WALL_M / 2, _SPAN_M)),
    ((0.0, 0.0, NOMINAL.arena_ceiling_m + _WALL_M / 2), (_SPAN_M, _SPAN_M, _WALL_M / 2)),
    ((0.0, 0.0, NOMINAL.arena_floor_m - _WALL_M / 2), (_SPAN_M, _SPAN_M, _WALL_M / 2)),
)
"""Centre and half extents of the six slabs, metres."""
_FLOOR: Final = 5


class World:
    """One engine with room, cart, pole and a pool of balls.

    An episode is set up by `prepare` (constants) and `place` (positions), and goes on by `tick`.
    Whatever was played before, the same calls give the same numbers, bit for bit: every `prepare`
    goes back to a snapshot taken when the bodies were built.
    """

    def __init__(self) -> None:
        self._engine = Engine()
        self._client = self._engine.client
        self._built: Physics | None = None
        self._bodies: Physics = LEVEL_0
        self.physics: Physics = LEVEL_0
        self._restitution = (LEVEL_0.wall_restitution, LEVEL_0.ball_restitution)
        self._walls: list[int] = []
        self._balls: list[int] = []
        self._active: list[int] = []
        self._robot = -1
        self._snapshot = -1
        self._weight: Vector3 = STILL
        self._is_weighed = False
        self._is_free = True
        self._cart_at: Vector3 = STILL
        self._pole_com: Vector3 = STILL
        self._pole_com_m = LEVEL_0.pole_com_height_m
        self.row: Row = ()

    def close(self) -> None:
        """Free the engine; closing twice does nothing."""
        self._engine.close()

    # Building ----------------------------------------------------------------------------------

    def prepare(
        self,
        physics: Physics = LEVEL_0,
        balls: int = 0,
        is_visible: bool = False,  # noqa: FBT001, FBT002 - keywords cost time at each reset
        is_crowded: bool = False,  # noqa: FBT001, FBT002
    ) -> None:
        """Go back to the untouched world with these constants: robot upright at 0, no balls.

        Args:
            physics: The constants.
            balls: Most balls there can be, if that is more than `physics.pool`.
            is_visible: Whether `picture` will be called.
            is_crowded: Whether many bodies may touch at once. The engine solves contacts that hang
                together one after the other, in an order that a restored snapshot does not
                bring back; then everything is built anew.
        """
        if (
            not is_crowded
            and (physics is self._built or self._is_like_built(physics))
            and balls <= len(self._balls)
            and is_visible <= self._engine.is_visible
            # A number that is not finite would survive in the engine's caches.
            and math.isfinite(sum(self.row))
        ):
            restore(self._snapshot, physicsClientId=self._client)
        else:
            self._build(physics, max(balls, physics.pool), is_visible=is_visible)
        if physics is not self.physics:
            self._set_restitution(physics)
            self.physics = physics
        self._capacity = max(physics.pool, balls)
        self._active = []

    def _is_like_built(self, physics: Physics) -> bool:
        """Whether the bodies there are do for these constants; others are set on them."""
        return self._built is not None and self._bodies == physics.bodies

    def _set_restitution(self, physics: Physics) -> None:
        wanted = (physics.wall_restitution, physics.ball_restitution)
        if wanted == self._restitution:
            return
        link = self._ball_link(physics)
        for wall in self._walls:
            self._engine.set_contact(wall, BASE, restitution=wanted[0])
        for ball in self._balls:
            self._engine.set_contact(ball, link, restitution=wanted[1])
        self._restitution = wanted

    @staticmethod
    def _ball_link(physics: Physics) -> int:
        return 0 if physics.ball_kind == "rail" else BASE

    def _build(self, physics: Physics, pool: int, *, is_visible: bool) -> None:
        self._built = None  # until all went well
        # Balls feel no gravity: weighing the robot alone takes one force a tick and not one a
        # ball, with the same numbers.
        self._engine.clear(
            tick_s=TICK_S,
            gravity_m_s2=physics.gravity_m_s2 if physics.balls_fall else 0.0,
            is_visible=is_visible,
            numSolverIterations=50,
            contactERP=0.08,
            contactSlop=1e-5,
        )
        self._weight = (0.0, 0.0, -physics.pole_mass_kg * physics.gravity_m_s2)
        self._is_weighed = not physics.balls_fall
        self._is_free = physics.ball_kind == "free"
        self._pole_com_m = physics.pole_com_height_m
        self._build_room(physics)
        self._build_robot(physics)
        self._build_balls(physics, pool)
        self._snapshot = self._engine.snapshot()
        self._restitution = (physics.wall_restitution, physics.ball_restitution)
        self._built = self.physics = physics
        self._bodies = physics.bodies

    def _build_room(self, physics: Physics) -> None:
        own = self._engine
        self._walls = []
        for index, (centre, half) in enumerate(_WALLS):
            shapes = own.box(half, _FLOOR_RGBA if index == _FLOOR else _CLEAR_RGBA)
            self._walls.append(own.body(shapes, centre, restitution=physics.wall_restitution))

    def _build_robot(self, physics: Physics) -> None:
        own = self._engine
        self._robot = own.robot(engine_urdf(physics))
        for slider in (_SLIDER_X, _CART):
            own.let_go(self._robot, slider)
        own.let_go(self._robot, _POLE, is_ball_joint=True)
        for link in _LINKS:
            own.set_contact(self._robot, link, restitution=0.0, friction=0.5)

    def _build_balls(self, physics: Physics, pool: int) -> None:
        shapes = self._engine.sphere(physics.ball_radius_m, _BALL_RGBA)
        self._balls = [
            self._engine.body(
                shapes,
                (0.0, 0.0, _PARK_Z_M - _PARK_STEP_M * index),
                mass_kg=0.0 if physics.ball_kind == "fixed" else physics.ball_mass_kg,
                rail=(1.0, 0.0, 0.0) if physics.ball_kind == "rail" else None,
                restitution=physics.ball_restitution,
            )
            for index in range(pool)
        ]

    # Placing -----------------------------------------------------------------------------------

    def place(self, row: Row, frame: tuple[Vector3, Vector3] | None = None) -> None:
        """Put everything somewhere.

        Args:
            row: Cart x, y, vx, vy (m, m/s); pole quaternion xyzw and angular velocity (world,
                rad/s); number of balls; position and velocity of each ball.
            frame: `pole_frame(row)` if it is known.
        """
        robot, client = self._robot, self._client
        px, py, vx, vy = row[:4]
        (nx, ny, nz), turning = frame or pole_frame(row)
        # One call for both sliders: their base moves, they stay at zero.
        at = self._cart_at = (px, py, 0.0)
        put(robot, at, UPRIGHT, client)
        if vx or vy:
            set_joint(robot, _SLIDER_X, 0.0, vx, client)
            set_joint(robot, _CART, 0.0, vy, client)
        set_joints(robot, _POLE, row[4:8], turning, client)
        h = self._pole_com_m
        self._pole_com = (px + h * nx, py + h * ny, _PIVOT_M + h * nz)
        if not self._is_free:
            self.row = (*row[:11], 0.0)
            for i in range(12, len(row), 6):
                self.add_ball(row[i : i + 3], row[i + 3 : i + 6])
            return
        active = self._active = self._balls[: int(row[11])]
        i = 12
        for ball in active:
            put(ball, row[i : i + 3], UPRIGHT, client)
            i += 6
            throw(ball, row[i - 3 : i], STILL, client)
        self.row = row

    def add_ball(self, position: Sequence[float], velocity: Sequence[float]) -> bool:
        """Put one more ball into the room; False if there can be no more.

        A ball on a rail slides along the horizontal part of its velocity; a fixed one has none.
        """
        n = len(self._active)
        # Not what the pool holds: an earlier episode may have needed a larger one.
        if n >= self._capacity:
            return False
        ball, client, kind = self._balls[n], self._client, self.physics.ball_kind
        if kind == "free":
            put(ball, position, UPRIGHT, client)
            throw(ball, velocity, STILL, client)
        elif kind == "rail":
            velocity = (velocity[0], velocity[1], 0.0)
            yaw = math.atan2(velocity[1], velocity[0])
            turn = (0.0, 0.0, math.sin(yaw / 2.0), math.cos(yaw / 2.0))
            put(ball, position, turn, client)
            set_joint(ball, 0, 0.0, math.hypot(*velocity), client)
        else:
            velocity = STILL
            put(ball, position, UPRIGHT, client)
        self._active.append(ball)
        row = self.row
        self.row = (*row[:11], n + 1.0, *row[12:], *position, *velocity)
        return True

    # Pushing and stepping ----------------------------------------------------------------------

    def push_cart(self, force: Vector3) -> None:
        """Apply a force (N, world axes) to the cart's centre of mass during the next tick."""
        push(self._robot, _CART, force, self._cart_at, WORLD, self._client)

    def resist(self) -> None:
        """Apply the friction of the slides to the cart during the next tick."""
        friction = self.physics.slide_friction_n_s_m
        if friction:
            vx, vy = self.row[2:4]
            self.push_cart((-friction * vx, -friction * vy, 0.0))

    def push_pole(self, force: Vector3, at: Vector3) -> None:
        """Apply a force (N, world axes) to the pole at a point in world (m)."""
        push(self._robot, _POLE, force, at, WORLD, self._client)

    def push_ball(self, index: int, force: Vector3) -> None:
        """Apply a force (N, world axes) to the centre of a ball during the next tick."""
        at = self.row[12 + 6 * index : 15 + 6 * index]
        link = self._ball_link(self.physics)
        push(self._active[index], link, force, at, WORLD, self._client)

    def tick(self) -> Row:
        """Let one tick pass and read where everything is."""
        client, robot = self._client, self._robot
        if self._is_weighed:
            push(robot, _POLE, self._weight, self._pole_com, WORLD, client)
        step(client)
        cart, pole = link_states(robot, _LINKS, 1, 1, client)
        at = cart[0]
        self._cart_at, self._pole_com = at, pole[0]
        before = self.row
        row: Row = at[:2] + cart[6][:2] + pole[1] + pole[7] + before[11:12]
        if self._is_free:
            # The engine moves a ball by x += dt v, so its position needs no call of its own.
            i = 12
            for ball in self._active:
                a, b, c = velocity_of(ball, client)[0]
                row += (
                    before[i] + TICK_S * a,
                    before[i + 1] + TICK_S * b,
                    before[i + 2] + TICK_S * c,
                    a,
                    b,
                    c,
                )
                i += 6
        else:
            row += self._read_balls()
        self.row = row
        return row

    def read(self) -> Row:
        """Everything as the engine has it; `row` holds the same without asking."""
        cart, pole = link_states(self._robot, _LINKS, 1, 1, self._client)
        count = (float(len(self._active)),)
        row: Row = cart[0][:2] + cart[6][:2] + pole[1] + pole[7] + count
        return row + self._read_balls()

    def _read_balls(self) -> Row:
        client = self._client
        row: Row = ()
        for ball in self._active:
            if self.physics.ball_kind == "rail":
                state = link_state(ball, 0, 1, 1, client)
                row += state[0] + state[6]
            else:
                row += place_of(ball, client)[0]
                row += velocity_of(ball, client)[0]
        return row

    def picture(self) -> NDArray[np.uint8]:
        """The room seen from above one corner as RGB, shape (360, 480, 3)."""
        return self._engine.picture((4.2, -4.6, 3.6), (0.0, 0.0, 0.9))

    # What levels look at -----------------------------------------------------------------------

    @property
    def n_balls(self) -> int:
        """Balls in the room."""
        return len(self._active)

    @property
    def cart_position(self) -> Vector3:
        """Cart frame in world, metres."""
        return self._cart_at

    @property
    def cart_velocity(self) -> Vector3:
        """Velocity of the cart in world, m/s."""
        return self.row[2], self.row[3], 0.0

    @property
    def ball_positions(self) -> list[Vector3]:
        """Centres of the balls in world, metres."""
        row = self.row
        return [(row[i], row[i + 1], row[i + 2]) for i in range(12, len(row), 6)]

    @property
    def ball_velocities(self) -> list[Vector3]:
        """Velocities of the balls in world, m/s."""
        row = self.row
        return [(row[i], row[i + 1], row[i + 2]) for i in range(15, len(row), 6)]

    def pole_point(self, height_m: float) -> tuple[Vector3, Vector3]:
        """Where a point of the pole's axis is and how it moves.

        Args:
            height_m: Height above the pivot while the pole is upright.

        Returns:
            Position (m) and velocity (m/s) in world.
        """
        px, py, vx, vy, x, y, z, w, wx, wy, wz = self.row[:11]
        nx = 2.0 * (x * z + w * y) * height_m
        ny = 2.0 * (y * z - w * x) * height_m
        nz = (1.0 - 2.0 * (x * x + y * y)) * height_m
        return (
            (px + nx, py + ny, _PIVOT_M + nz),
            (vx + wy * nz - wz * ny, vy + wz * nx - wx * nz, wx * ny - wy * nx),
        )
