"""How much is won by re-estimating the robot while balancing it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from robo_eval.agents.base import Agent
from robo_eval.agents.cartpole3d.identification import OnlineModel
from robo_eval.agents.cartpole3d.model import read_state
from robo_eval.agents.registry import agent
from robo_eval_sim.tasks.cartpole3d.layout import POLE_LIMIT_RAD, PUSH_N, PUSHES, TICK_S, Action

NOTHING, RIGHT, LEFT, FORWARD, BACKWARD = (int(action) for action in Action)


@agent("adaptive")
@dataclass(kw_only=True, eq=False)
class Adaptive(Agent):
    """Re-estimates masses, gravity, pole, wind and control sign online and redesigns its gains.

    Attributes:
        memory: `"episode"` forgets what was learnt at each reset, as episodes that count as
            independent require; `"trial"` keeps the estimate and only doubts it.
        home_rate: How fast it drifts back to where the episode started, 1/s.
        brake_rate: How fast it gets rid of speed, 1/s.
        lean_share: Largest lean used for going home, as a share of what pushes can hold.
        lean_limit: Largest lean aimed at, as a share of the lean that ends an episode.
        dead_band: Least error that is pushed against, in steps of one push.
    """

    memory: Literal["episode", "trial"] = "episode"
    home_rate: float = 0.5
    brake_rate: float = 1.0
    lean_share: float = 0.05
    lean_limit: float = 0.6
    dead_band: float = 0.3

    def __post_init__(self) -> None:
        self._check_choice("memory", ("episode", "trial"))
        for field in ("home_rate", "brake_rate"):
            self._check_number(field, low=0.0, high=50.0)
        for field in ("lean_share", "lean_limit"):
            self._check_number(field, low=0.0, high=1.0)
        self._check_number("dead_band", low=0.0, high=100.0)
        super().__post_init__()
        self._online = OnlineModel()
        self.reset()

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the last episode, and with memory "episode" the estimate too."""
        del seed
        if self.memory == "episode":
            self._online.forget()
        else:
            self._online.doubt()
        self._home: tuple[float, float] | None = None
        self._action = NOTHING
        self._has_pushed = False

    def act(self, observation: NDArray[Any]) -> int:
        """The push the redesigned controller asks for."""
        state = read_state(observation)
        if self._home is None:
            self._home = (state[0], state[4])
            self._online.start(state)
        else:
            self._online.learn(state, PUSHES[self._action])
        self._action = self._decide(state, self._home)
        return self._action

    def _decide(self, state: tuple[float, ...], home: tuple[float, float]) -> int:
        law = Law(*self._online.coefficients())
        error_x = self._error(law, home[0], state[:4], (law.pole_x, law.cart_x))
        error_y = self._error(law, home[1], state[4:], (law.pole_y, law.cart_y))
        # The first push comes at once, however small the error: it shows what a push does.
        band = self.dead_band * abs(law.step) if self._has_pushed else 0.0
        if max(abs(error_x), abs(error_y)) <= band:
            return NOTHING
        self._has_pushed = True
        if abs(error_x) >= abs(error_y):
            return RIGHT if (error_x > 0.0) == (law.step > 0.0) else LEFT
        return FORWARD if (error_y > 0.0) == (law.step > 0.0) else BACKWARD

    def _error(
        self, law: Law, home: float, axis: tuple[float, ...], drift: tuple[float, float]
    ) -> float:
        """How far one axis will be from the lean it should have, if nothing is pushed now.

        A lean falls away with e^(growth t) when lean + rate / growth, less the lean aimed at, is
        not 0: this part of the state only pushes can keep small, so it alone is what they serve.
        """
        x, v, lean, rate = axis
        wish = self.brake_rate * (self.home_rate * (home - x) - v) / law.cart_per_held_lean
        most = self.lean_share * law.held_lean
        limit = self.lean_limit * POLE_LIMIT_RAD
        aim = law.level_lean(*drift) + min(max(wish, -most), most)
        aim = min(max(aim, -limit), limit)
        rate += TICK_S * (law.pole_lean * lean + drift[0])
        return lean + TICK_S * rate - aim + rate / law.growth


class Law:
    """What the estimated coefficients mean for a controller.

    Args:
        pole: Angular acceleration of the pole by lean, by push, and steady along x and y.
        cart: Acceleration of the cart by the same.

    Attributes:
        growth: Rate at which a lean grows, 1/s.
        cart_per_held_lean: Acceleration of the cart while pushes hold a lean of 1, m/s2.
        held_lean: Largest lean that pushing without pause can hold.
        step: What one push changes of the error an axis is judged by.
    """

    __slots__ = (
        "_cart_per_pole",
        "cart_per_held_lean",
        "cart_x",
        "cart_y",
        "growth",
        "held_lean",
        "pole_lean",
        "pole_x",
        "pole_y",
        "step",
    )

    def __init__(self, pole: tuple[float, ...], cart: tuple[float, ...]) -> None:
        pole_lean, push, self.pole_x, self.pole_y = pole
        cart_lean, cart_push, self.cart_x, self.cart_y = cart
        # An estimate on its way may pass 0, where the formulas below have no value.
        self.pole_lean = max(pole_lean, 0.5)
        push = push if abs(push) > 1e-4 else math.copysign(1e-4, push)
        self.growth = math.sqrt(self.pole_lean)
        self._cart_per_pole = -cart_push / push
        held = cart_lean + self._cart_per_pole * self.pole_lean
        self.cart_per_held_lean = held if abs(held) > 0.1 else math.copysign(0.1, held)
        self.held_lean = PUSH_N * abs(push) / self.pole_lean
        self.step = -TICK_S * PUSH_N * push * (TICK_S + 1.0 / self.growth)

    def level_lean(self, pole_drift: float, cart_drift: float) -> float:
        """The lean at which pushes can hold both pole and cart against their drifts."""
        return -(cart_drift + self._cart_per_pole * pole_drift) / self.cart_per_held_lean
