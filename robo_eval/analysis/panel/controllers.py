"""The controllers whose frozen results say how difficult an item is.

They are no agents to compete with: plain proportional-derivative rules, from clumsy to firm, that
share no code with the baseline agents. Change nothing here without making the panel anew.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval_sim.tasks.cartpole3d.layout import Action

_ACTIONS = tuple(int(action) for action in Action)


@dataclass(kw_only=True, eq=False)
class PanelController(Agent):
    """Pushes along the axis with the larger weighted sum of lean, its rate, speed and distance.

    Attributes:
        rate_gain: Weight of the lean's rate against the lean, s.
        velocity_gain: Weight of the cart's speed, s/m.
        position_gain: Weight of the distance from the start, 1/m.
        dead_band: Sum below which it does not push.
        delay: Ticks between what it sees and what it does.
        repeat: Ticks it holds a decision for.
        noise: Standard deviation of the error with which it sees the lean.
        lapse: Share of decisions that are random.
    """

    name = "panel"
    rate_gain: float = 0.25
    velocity_gain: float = 0.0
    position_gain: float = 0.0
    dead_band: float = 0.01
    delay: int = 0
    repeat: int = 1
    noise: float = 0.0
    lapse: float = 0.0

    def __post_init__(self) -> None:
        for field in ("rate_gain", "velocity_gain", "position_gain", "dead_band", "noise"):
            self._check_number(field, low=0.0, high=100.0)
        self._check_number("delay", low=0, high=200)
        self._check_number("repeat", low=1, high=200)
        self._check_number("lapse", low=0.0, high=1.0)
        super().__post_init__()
        self._draw = random.Random(0)  # noqa: S311 - pushes, not secrets
        self.reset()

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the last episode; the seed sets noise and lapses."""
        self._draw.seed(seed)
        self._home: tuple[float, float] | None = None
        self._waiting = deque([0] * self.delay)
        self._held = 0
        self._ticks = 0

    def act(self, observation: NDArray[Any]) -> int:
        """The decision that is due."""
        if self._ticks % self.repeat == 0:
            self._held = self._decide(observation[:11].tolist())
        self._ticks += 1
        self._waiting.append(self._held)
        return self._waiting.popleft()

    def _decide(self, seen: list[float]) -> int:
        x, y, vx, vy, qx, qy, qz, qw, wx, wy, _ = seen
        if self._home is None:
            self._home = (x, y)
        # The horizontal part of the pole's direction; its rate, for a pole that leans little.
        lean_x, lean_y = 2.0 * (qx * qz + qw * qy), 2.0 * (qy * qz - qw * qx)
        if self.noise:
            lean_x += self._draw.gauss(0.0, self.noise)
            lean_y += self._draw.gauss(0.0, self.noise)
        if self.lapse and self._draw.random() < self.lapse:
            return self._draw.choice(_ACTIONS)
        need_x = self._need(lean_x, wy, vx, x - self._home[0])
        need_y = self._need(lean_y, -wx, vy, y - self._home[1])
        if max(abs(need_x), abs(need_y)) <= self.dead_band:
            return int(Action.NOTHING)
        if abs(need_x) >= abs(need_y):
            return int(Action.RIGHT if need_x > 0.0 else Action.LEFT)
        return int(Action.FORWARD if need_y > 0.0 else Action.BACKWARD)

    def _need(self, lean: float, rate: float, velocity: float, distance: float) -> float:
        return (
            lean
            + self.rate_gain * rate
            + self.velocity_gain * velocity
            + self.position_gain * distance
        )
