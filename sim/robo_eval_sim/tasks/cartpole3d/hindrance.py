"""What constants of a calibration do beside the bodies: late pushes, a hidden force, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from robo_eval_sim.novelty import Effect, Novelty
from robo_eval_sim.tasks.cartpole3d.layout import (
    CART_POSITION,
    CART_VELOCITY,
    POLE_ANGULAR_VELOCITY,
    POLE_QUAT_XYZW,
    PUSHES,
    TICK_S,
)
from robo_eval_sim.tasks.cartpole3d.motion import turned
from robo_eval_sim.tasks.cartpole3d.physics import Physics
from robo_eval_sim.tasks.cartpole3d.scene import World
from robo_eval_sim.tasks.cartpole3d.start import Row, Vector3

_NOTHING: Final = (0.0, 0.0)


def late_push(actions: Sequence[int | np.int64], physics: Physics) -> Vector3:
    """Force that the drive applies in the tick of the last of these actions, newtons.

    Before the first action has arrived nothing acts.
    """
    ticks, part = divmod(physics.delay_s / TICK_S, 1.0)
    newer = len(actions) - 1 - int(ticks)
    one = PUSHES[actions[newer]] if newer >= 0 else _NOTHING
    before = PUSHES[actions[newer - 1]] if newer >= 1 else _NOTHING
    gain, kept = physics.push_gain * (1.0 - part), physics.push_gain * part
    return gain * one[0] + kept * before[0], gain * one[1] + kept * before[1], 0.0


class Hindrance(Effect[World]):
    """Friction of the slides and a force that nobody models, beside what a level does.

    Args:
        drawn: What was drawn for the episode.
        world: The world it acts on.
        physics: Constants of the episode.
        seed: Of the force.
        effect: What the level does tick by tick, if it does anything.
    """

    def __init__(
        self,
        drawn: Novelty,
        world: World,
        physics: Physics,
        seed: int,
        effect: Effect[World] | None,
    ) -> None:
        super().__init__(drawn, world)
        memory = physics.force_memory_s
        self._force_n = physics.force_noise_n
        self._kept = math.exp(-TICK_S / memory) if memory else 0.0
        self._new = math.sqrt(1.0 - self._kept * self._kept)
        # No tick of `noisy` draws from this stream.
        self._rng = np.random.default_rng((seed, 0, 1))
        self._now: tuple[float, float] = tuple(self._rng.standard_normal(2).tolist())
        self._effect = effect

    def push(self, tick: int) -> None:
        """Apply friction and force, and what the level does."""
        self.world.resist()
        if self._force_n:
            (x, y), size = self._now, self._force_n
            self.world.push_cart((size * x, size * y, 0.0))
            a, b = self._rng.standard_normal(2).tolist()
            self._now = self._kept * x + self._new * a, self._kept * y + self._new * b
        if self._effect is not None:
            self._effect.push(tick)

    def after(self, tick: int) -> None:
        """Let the level do its part."""
        if self._effect is not None:
            self._effect.after(tick)


def noisy(row: Row, physics: Physics, seed: int, tick: int) -> Row:
    """What the sensors of cart and pole show of a state after so many ticks."""
    # Of the tick, so that a restored episode goes on with the same noise.
    draw = np.random.default_rng((seed, tick + 1)).standard_normal(8)
    seen = np.array(row)
    seen[CART_POSITION] += physics.position_noise_m * draw[0:2]
    seen[CART_VELOCITY] += physics.velocity_noise_m_s * draw[2:4]
    seen[POLE_QUAT_XYZW] = turned(seen[POLE_QUAT_XYZW], physics.tilt_noise_rad * draw[4:6])
    seen[POLE_ANGULAR_VELOCITY][:2] += physics.tilt_rate_noise_rad_s * draw[6:8]
    return tuple(seen.tolist())
