"""How well a fixed controller for the nominal robot does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval.agents.cartpole3d.model import PlanarModel, read_state
from robo_eval.agents.linear_quadratic import Vector, cost_to_go
from robo_eval.agents.registry import agent
from robo_eval_sim.tasks.cartpole3d.layout import PUSH_N, Action


class AxisPush:
    """Which single push brings the pole on the cheapest way to rest.

    The linear-quadratic regulator of one axis has a cost-to-go x'Px. Pushing with F this tick
    changes it by 2 F b'PAx + F^2 b'Pb: `need` is the first factor, and a push pays only where it
    outweighs the second, which gives the dead band. Of the two axes the one that gains more is
    pushed.

    Args:
        a: State matrix of one tick, shape (4, 4).
        b: Input column, shape (4,).
        p: Cost-to-go, shape (4, 4).
        dead_band: Factor on the need below which nothing is pushed; 1 is the exact rule.
    """

    __slots__ = ("band", "need")

    def __init__(self, a: Vector, b: Vector, p: Vector, dead_band: float = 1.0) -> None:
        pb = p @ b
        # Plain floats: for four numbers they are ten times faster than arrays.
        self.need: tuple[float, ...] = tuple((2.0 * pb @ a).tolist())
        self.band = dead_band * PUSH_N * float(b @ pb)

    def choose(self, x: float, vx: float, nx: float, mx: float, *y: float) -> int:
        """The action for the states of both axes, positions given relative to the goal."""
        kp, kv, kn, km = self.need
        sx = kp * x + kv * vx + kn * nx + km * mx
        sy = kp * y[0] + kv * y[1] + kn * y[2] + km * y[3]
        if abs(sx) >= abs(sy):
            if abs(sx) <= self.band:
                return NOTHING
            return LEFT if sx > 0.0 else RIGHT
        if abs(sy) <= self.band:
            return NOTHING
        return BACKWARD if sy > 0.0 else FORWARD


NOTHING, RIGHT, LEFT, FORWARD, BACKWARD = (int(action) for action in Action)


@agent("balancer")
@dataclass(kw_only=True, eq=False)
class Balancer(Agent):
    """Linear-quadratic regulator for the nominal robot; sees no balls and learns nothing.

    Attributes:
        position_weight: Cost of 1 m away from where the episode started, 1/m2.
        velocity_weight: Cost of moving, s2/m2.
        lean_weight: Cost of leaning.
        lean_rate_weight: Cost of leaning further, s2.
        push_weight: Cost of pushing, 1/N2.
        dead_band: Factor on the rule's own dead band.
    """

    position_weight: float = 1.0
    velocity_weight: float = 1.0
    lean_weight: float = 1000.0
    lean_rate_weight: float = 1.0
    push_weight: float = 0.001
    dead_band: float = 1.0

    def __post_init__(self) -> None:
        for field in ("position", "velocity", "lean", "lean_rate"):
            self._check_number(f"{field}_weight", low=0.0, high=1e6)
        self._check_number("push_weight", low=1e-9, high=1e6)
        self._check_number("dead_band", low=0.0, high=1e3)
        super().__post_init__()
        a, b = PlanarModel.from_parameters().discrete()
        weights = np.array(
            [self.position_weight, self.velocity_weight, self.lean_weight, self.lean_rate_weight]
        )
        self._push = AxisPush(a, b, cost_to_go(a, b, weights, self.push_weight), self.dead_band)
        self._home: tuple[float, float] | None = None

    def reset(self, *, seed: int | None = None) -> None:
        """Forget where the last episode started."""
        del seed
        self._home = None

    def act(self, observation: NDArray[Any]) -> int:
        """The push that lowers the cost-to-go most, or none."""
        x, vx, nx, mx, y, vy, ny, my = read_state(observation)
        if self._home is None:
            self._home = (x, y)
        return self._push.choose(x - self._home[0], vx, nx, mx, y - self._home[1], vy, ny, my)
