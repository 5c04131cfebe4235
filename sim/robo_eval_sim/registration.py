"""Which environments `gymnasium.make` finds under `RoboEval/`, registered without a simulator."""

from __future__ import annotations

from typing import Final

ENVIRONMENTS: Final[dict[str, str]] = {
    "RoboEval/CartPole3D-v0": "robo_eval_sim.cartpole3d:CartPole3DEnv",
}
"""Simulated environments: Gymnasium id -> where its class is."""
ROBOTS: Final[dict[str, str]] = {
    "RoboEval/RosRobot-v0": "robo_eval_robot.environment:RosRobotEnv",
}
"""Environments with a robot behind them; a plan names the simulated one, and a robot plays it."""
VARIED: Final[dict[str, tuple[str, int]]] = {
    "RoboEval/CartPoleVaried-v0": ("robo_eval_sim.cartpole_varied:CartPoleVariedEnv", 500),
}
"""Tasks of Gymnasium whose parameters are keywords, with the time limit that Gymnasium gives them.

They have no levels, and need no simulator."""


def register_environments() -> None:
    """Register every environment; Gymnasium calls this through our entry point.

    Ours refuse bad actions and steps without a reset themselves, so Gymnasium's wrappers for that
    would only cost time. CartPole3D has its time limit inside, too.
    """
    from gymnasium.envs.registration import register, registry

    for environment_id, entry_point in {**ENVIRONMENTS, **ROBOTS}.items():
        if environment_id not in registry:
            register(
                id=environment_id,
                entry_point=entry_point,
                disable_env_checker=True,
                order_enforce=False,
            )
    for environment_id, (entry_point, ticks) in VARIED.items():
        if environment_id not in registry:
            register(
                id=environment_id,
                entry_point=entry_point,
                max_episode_steps=ticks,
                disable_env_checker=True,
            )
