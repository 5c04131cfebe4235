"""What the simulator does under the forces that a robot's controller really applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robo_eval_sim.cartpole3d import CartPole3DEnv


def replay(
    start: Mapping[str, Any],
    forces: Sequence[tuple[float, float]],
    *,
    seed: int,
    **keywords: Any,  # noqa: ANN401 - of the environment
) -> NDArray[np.float64]:
    """Play applied forces again, without a policy.

    Args:
        start: Physical state the episode started in.
        forces: Force on the cart (x, y; newtons) in each tick.
        seed: Seed of the episode; novelty follows from it.
        **keywords: Of CartPole3D: level, difficulty, profile, balls.

    Returns:
        States, shape (len(forces) + 1, 11): cart position and velocity, orientation quaternion
        xyzw and angular velocity of the pole, as in the observation, in full precision.

    Raises:
        InputError: If the simulator cannot start there.
    """
    env = CartPole3DEnv(**keywords)
    try:
        env.reset(seed=seed, options={"state": dict(start)})
        state = env.physical_state()
        rows = [
            [
                *state["cart_position"],
                *state["cart_velocity"],
                *state["pole_quat_xyzw"],
                *state["pole_angular_velocity"],
            ]
        ]
        rows += [list(env.advance(force)[:11]) for force in forces]
    finally:
        env.close()
    return np.array(rows)
