"""A cart with a pole behind a drive: CartPole3D physics, perturbed, with a driver's own brake."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from robo_eval.agents.kinematics import rotation_of
from robo_eval.core.errors import InputError
from robo_eval_robot.config import Perturbation
from robo_eval_sim.novelty import Novelty
from robo_eval_sim.tasks.cartpole3d.environment import CartPole3DEnv
from robo_eval_sim.tasks.cartpole3d.layout import (
    CART_POSITION,
    CART_VELOCITY,
    POLE_ANGULAR_VELOCITY,
    POLE_QUAT_XYZW,
    TICK_S,
)
from robo_eval_sim.tasks.cartpole3d.motion import roll_pitch_yaw, turned
from robo_eval_sim.tasks.cartpole3d.physics import Physics
from robo_eval_twin.body import Reading

_BRAKE_N_S_M: Final = 25.0
_BRAKE_N: Final = 10.0
"""The drive's own brake: viscous, and within the effort that `gantry_twin.yaml` allows."""


class _Heavier(CartPole3DEnv):
    """The room with heavier bodies, of any level: over constants a level would win."""

    mass_scale = 1.0

    def _physics(self, drawn: Novelty) -> Physics:
        physics, scale = super()._physics(drawn), self.mass_scale
        if scale == 1.0:
            return physics
        return replace(
            physics,
            cart_mass_kg=physics.cart_mass_kg * scale,
            pole_mass_kg=physics.pole_mass_kg * scale,
        )


class Gantry:
    """A gantry with a pole: two slides, and encoders of the pole's roll and pitch.

    It is arranged, held, let go by a command, braked when none come.

    Args:
        perturbation: What it hides.
        timeout_s: How long after the last command the drive brakes; None for a drive that goes on
            with the last command for ever.
    """

    joints: ClassVar = ("cart_x", "cart_y", "pole_roll", "pole_pitch")
    driven: ClassVar = joints[:2]
    imu_frame: ClassVar = "pole"
    tick_s: ClassVar = TICK_S

    def __init__(self, perturbation: Perturbation, timeout_s: float | None) -> None:
        self._hides = perturbation
        self._timeout_ticks = None if timeout_s is None else max(1, round(timeout_s / TICK_S))
        self._env: _Heavier | None = None
        self._keywords: Mapping[str, Any] = {}
        self._rng = np.random.default_rng(perturbation.seed)
        self._pipe: deque[tuple[float, float]] = deque()
        self._deaf_ticks = 0
        self._quiet_ticks = 0
        self._effort = (0.0, 0.0)
        self._command = (0.0, 0.0)
        self._is_held = True
        self._is_armed = False
        self.arrange({"level": 0}, seed=0)

    @property
    def is_braking(self) -> bool:
        """Whether the drive brakes because no command came in time."""
        return self._timeout_ticks is not None and self._quiet_ticks > self._timeout_ticks

    def arrange(
        self,
        keywords: Mapping[str, Any],
        *,
        seed: int,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Set everything up for an episode and hold it there.

        Args:
            keywords: Of the environment: level, difficulty, profile; there are no balls.
            seed: Of the episode; start and novelty follow from it.
            state: Start from this state instead.

        Raises:
            InputError: If the task cannot be set up so; all stays as it was.
        """
        # Friction is the world's, not the drive's: it shows in no effort. Whatever constants a
        # simulator is to be played with, a robot has its own.
        hidden = {"slide_friction_n_s_m": self._hides.friction_n_s_m}
        keywords = {"balls": 0, **keywords, "constants": hidden}
        if self._env is None or keywords != self._keywords:
            fresh = _Heavier(**keywords)
            fresh.mass_scale = self._hides.mass_scale
            if self._env is not None:
                self._env.close()
            self._env, self._keywords = fresh, keywords
        self._env.reset(seed=seed, options=None if state is None else {"state": dict(state)})
        if state is None:
            # What is held stands: in a simulator's first tick a wind has moved the cart already.
            drawn = {**self._env.physical_state(), "cart_velocity": (0.0, 0.0)}
            self._env.reset(seed=seed, options={"state": drawn})
        # A stream for each episode, so that what is hidden does not depend on what came before.
        self._rng = np.random.default_rng([self._hides.seed, seed])
        self._pipe = deque([(0.0, 0.0)] * self._hides.delay_ticks)
        self._command = self._effort = (0.0, 0.0)
        self._quiet_ticks = self._deaf_ticks = 0
        self._is_held, self._is_armed = True, False

    def hear(self, command: Sequence[float]) -> None:
        """Take a command, newtons along x and y: it acts until the next one.

        Raises:
            InputError: If it is not two finite numbers; the last command stays.
        """
        if len(command) != 2 or not all(map(math.isfinite, command)):
            raise InputError(f"command: two finite numbers are needed, given {list(command)!r:.80}")
        if self._is_held and not self._is_armed:
            return
        if self._deaf_ticks or self._rng.random() < self._hides.drop_command:
            return
        fx, fy = float(command[0]), float(command[1])
        if self._hides.swapped_joints:
            fx, fy = fy, fx
        self._command = (-fx if self._hides.reversed_sign else fx, fy)
        self._quiet_ticks = 0
        self._is_held = False

    def arm(self) -> None:
        """Be let go by the next command; those before were not of the policy."""
        self._is_armed = True

    def go_deaf(self, ticks: int) -> None:
        """Hear no command for some ticks: a fault that a robot can recover from."""
        self._deaf_ticks = ticks

    def tick(self) -> Reading | None:
        """Let a tick pass, unless held; what the sensors show, or None if it was not sent."""
        assert self._env is not None
        if not self._is_held:
            self._effort = self._applied()
            self._env.advance(self._effort)
            self._quiet_ticks += 1
            self._deaf_ticks = max(0, self._deaf_ticks - 1)
        reading = self._read()
        return None if self._rng.random() < self._hides.drop_state else reading

    def close(self) -> None:
        """Give the engine back."""
        if self._env is not None:
            self._env.close()

    def _applied(self) -> tuple[float, float]:
        if self.is_braking:
            self._pipe = deque([(0.0, 0.0)] * self._hides.delay_ticks)
            return self._brake()
        self._pipe.append(self._command)
        return self._pipe.popleft()

    def _brake(self) -> tuple[float, float]:
        vx, vy = self._row()[CART_VELOCITY]
        limited = (max(-_BRAKE_N, min(_BRAKE_N, -_BRAKE_N_S_M * v)) for v in (vx, vy))
        fx, fy = limited
        return fx, fy

    def _row(self) -> tuple[float, ...]:
        assert self._env is not None
        state = self._env.physical_state()
        return (
            *state["cart_position"],
            *state["cart_velocity"],
            *state["pole_quat_xyzw"],
            *state["pole_angular_velocity"],
        )

    def _read(self) -> Reading:
        row = np.array(self._row())
        hides, draw = self._hides, self._rng.standard_normal(8)
        quat = row[POLE_QUAT_XYZW]
        if hides.tilt_noise_rad:
            quat = turned(quat, hides.tilt_noise_rad * draw[:2])
        in_world = row[POLE_ANGULAR_VELOCITY]
        roll, pitch, yaw = (float(angle[0]) for angle in roll_pitch_yaw(quat[None, :]))
        forward = math.cos(yaw) * in_world[0] + math.sin(yaw) * in_world[1]
        rates = (
            forward / max(math.cos(pitch), 1e-9),
            math.cos(yaw) * in_world[1] - math.sin(yaw) * in_world[0],
        )
        position = row[CART_POSITION] + hides.position_noise_m * draw[2:4]
        velocity = row[CART_VELOCITY] + hides.velocity_noise_m_s * draw[4:6]
        return Reading(
            position=np.array([*position, roll, pitch]),
            velocity=np.array([*velocity, *rates]),
            effort=np.array([*self._effort, 0.0, 0.0]),
            quat_xyzw=quat,
            angular_velocity=rotation_of(quat.tolist()).T @ in_world,
        )
