"""Gymnasium's CartPole whose parameters are keywords; it has no levels and needs no simulator."""

from __future__ import annotations

from typing import Final

from robo_eval.core.task import TaskSpec

SPEC: Final = TaskSpec(
    env="RoboEval/CartPoleVaried-v0",
    title="CartPoleVaried",
    environment="robo_eval_sim.tasks.cartpole_varied.environment:CartPoleVariedEnv",
    end="It ends when the pole leans 12 degrees, the cart is 2.4 m from the middle, or after 500"
    " ticks of 0.02 s.",
    success="The pole stayed up for the whole episode.",
    succeeded="survived",
    tick_s=0.02,
    max_ticks=500,
    limit_of_gymnasium=True,
    actions=("left", "right"),
)
