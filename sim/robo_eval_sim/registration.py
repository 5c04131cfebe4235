"""Which environments `gymnasium.make` finds under `RoboEval/`, registered without a simulator."""

from __future__ import annotations

from typing import Final

from robo_eval.core.task import tasks

ROBOT: Final = "RoboEval/RosRobot-v0"
"""The environment with a robot behind it; a plan names the simulated one, and a robot plays it."""
_ROBOT_CLASS: Final = "robo_eval_robot.environment:RosRobotEnv"
REMOTE: Final = "RoboEval/Remote-v0"
"""The environment with a competition behind it."""
_REMOTE_CLASS: Final = "robo_eval.compete.client:RemoteEnv"
_REMOTE_CLASSES: Final = "robo_eval.compete.client:RemoteVectorEnv"


def register_environments() -> None:
    """Register every task; Gymnasium calls this through our entry point.

    Ours refuse bad actions and steps without a reset themselves, so Gymnasium's wrappers for that
    would only cost time, and most have their time limit inside, too.
    """
    from gymnasium.envs.registration import register, registry

    for spec in tasks().values():
        if spec.env in registry:
            continue
        is_limited = spec.limit_of_gymnasium
        register(
            id=spec.env,
            entry_point=spec.environment,
            max_episode_steps=spec.max_ticks if is_limited else None,
            disable_env_checker=True,
            order_enforce=is_limited,
        )
    if ROBOT not in registry:
        register(id=ROBOT, entry_point=_ROBOT_CLASS, disable_env_checker=True, order_enforce=False)
    if REMOTE not in registry:
        register(
            id=REMOTE,
            entry_point=_REMOTE_CLASS,
            vector_entry_point=_REMOTE_CLASSES,
            disable_env_checker=True,
            order_enforce=False,
        )
