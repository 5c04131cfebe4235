"""Which environments `gymnasium.make` finds under `RoboEval/`, registered without a simulator."""

from __future__ import annotations

from typing import Final

ENVIRONMENTS: Final[dict[str, str]] = {
    "RoboEval/CartPole3D-v0": "robo_eval_sim.cartpole3d:CartPole3DEnv",
}
"""Gymnasium id -> where its class is."""


def register_environments() -> None:
    """Register every environment; Gymnasium calls this through our entry point.

    The environments refuse bad actions and steps without a reset themselves, so Gymnasium's
    wrappers for that would only cost time. CartPole3D has its time limit inside, too.
    """
    from gymnasium.envs.registration import register, registry

    for environment_id, entry_point in ENVIRONMENTS.items():
        if environment_id not in registry:
            register(
                id=environment_id,
                entry_point=entry_point,
                disable_env_checker=True,
                order_enforce=False,
            )
