"""What the simulator does under what a robot's controller really applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium


def replay(
    env: str,
    start: Mapping[str, Any],
    applied: Sequence[tuple[float, ...]],
    *,
    seed: int,
    **keywords: Any,
) -> list[dict[str, Any]]:
    """Play again what was applied, without a policy.

    Args:
        env: Gymnasium id of the task.
        start: Physical state the episode started in.
        applied: What the controller applied in each tick, as the task's `advance` takes it.
        seed: Seed of the episode; novelty follows from it.
        **keywords: Of the environment.

    Returns:
        Physical states in full precision: the start, and the one after each tick.

    Raises:
        InputError: If the simulator cannot start there.
    """
    made = gymnasium.make(env, **keywords)
    try:
        made.reset(seed=seed, options={"state": dict(start)})
        task: Any = made.unwrapped
        states = [task.physical_state()]
        for force in applied:
            task.advance(force)
            states.append(task.physical_state())
    finally:
        made.close()
    return states
