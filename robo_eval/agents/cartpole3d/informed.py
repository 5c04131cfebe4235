"""How much could be won by knowing what has changed: the balancer, told the novelty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robo_eval.agents.cartpole3d.balancer import AxisPush, Balancer
from robo_eval.agents.cartpole3d.model import PlanarModel
from robo_eval.agents.linear_quadratic import cost_to_go
from robo_eval.agents.registry import agent
from robo_eval_sim.tasks.cartpole3d.layout import NOMINAL, NominalParameters


@agent("informed")
@dataclass(kw_only=True, eq=False)
class Informed(Balancer):
    """The balancer, designed anew before each episode for the robot it is told of.

    A trial tells it with `begin_episode`. It makes use of the masses, the gravity and the length of
    the pole, and plays as the balancer where something else is new.
    """

    def begin_episode(self, info: Mapping[str, Any]) -> None:
        """Design the controller for the novelty in `info["novelty"]`, none if it is not there."""
        robot = told_robot(info.get("novelty") or {})
        a, b = PlanarModel.from_parameters(robot).discrete()
        weights = np.array(
            [self.position_weight, self.velocity_weight, self.lean_weight, self.lean_rate_weight]
        )
        self._push = AxisPush(a, b, cost_to_go(a, b, weights, self.push_weight), self.dead_band)


def told_robot(novelty: Mapping[str, Any]) -> NominalParameters:
    """The robot of an episode, by the record of its novelty; usual where that says no size.

    Example:
        >>> told_robot({"name": "cart_mass", "parameters": {"cart_mass": 5.0}}).cart_mass_kg
        5.0
    """
    drawn: dict[str, Any] = {}
    for name, value in (novelty.get("parameters") or {}).items():
        drawn.update(value if isinstance(value, Mapping) else {name: value})  # by axis, or plain

    def told(name: str, usual: float) -> float:
        value: Any = drawn.get(name)
        is_size = isinstance(value, int | float) and math.isfinite(value) and value > 0.0
        return float(value) if is_size else usual

    is_longer = "pole_length" in str(novelty.get("name")).split(" + ")
    scale = told("factor", 1.0) if is_longer else 1.0
    inertia = tuple(scale**3 * moment for moment in NOMINAL.pole_inertia_kg_m2)
    return replace(
        NOMINAL,
        cart_mass_kg=told("cart_mass", NOMINAL.cart_mass_kg),
        gravity_m_s2=told("gravity", NOMINAL.gravity_m_s2),
        pole_mass_kg=scale * NOMINAL.pole_mass_kg,
        pole_com_height_m=scale * NOMINAL.pole_com_height_m,
        pole_inertia_kg_m2=(inertia[0], inertia[1], inertia[2]),
    )
