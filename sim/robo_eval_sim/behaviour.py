"""How a level behaves, as a digest of short episodes: it stays however the code is written."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from robo_eval.core.canonical import canonical_json
from robo_eval.core.cartpole3d import EPISODE_TICKS, PUSHES

if TYPE_CHECKING:
    from robo_eval_sim.cartpole3d import CartPole3DEnv

_SEEDS: Final = (1137, 1100, 1593)
"""Of the first 2000 the seeds whose pole stays up longest under their pushes: 64 to 76 ticks at
level 0, long enough for balls to meet walls, cart and each other."""
_EVERY: Final = 10
"""Ticks between two observations that count; the last one always does."""
_DECIMALS: Final = 4
"""Decimals that count. Another machine's arithmetic may differ in its last bits. Up to the fall a
push that differs by 1e-10 of itself changes no observation by 1e-6; afterwards by centimetres."""


def behaviour_of(env: CartPole3DEnv) -> str:
    """SHA-256 of what an environment draws, shows, pays and when it ends, in three short episodes.

    The pushes are drawn from the episode's seed and heed no observation.

    Args:
        env: Its current episode is lost.
    """
    found = hashlib.sha256()
    for seed in _SEEDS:
        actions = np.random.default_rng(seed).integers(0, len(PUSHES), EPISODE_TICKS).tolist()
        observation, _ = env.reset(seed=seed)
        seen, paid = [observation], 0.0
        is_over, tick = False, 0
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(actions[tick])
            tick, paid, is_over = tick + 1, paid + reward, terminated or truncated
            if is_over or not tick % _EVERY:
                seen.append(observation)
        assert env.novelty is not None
        drawn = env.novelty["parameters"]
        said = {"ticks": tick, "paid": paid, "terminated": terminated, "drawn": drawn}
        found.update(canonical_json(_rounded(said)))
        # Whole numbers, so that 0 has no sign and no byte depends on the machine.
        found.update(np.rint(np.asarray(seen, float) * 10**_DECIMALS).astype("<i8").tobytes())
    return found.hexdigest()


def _rounded(value: Any) -> Any:  # noqa: ANN401 - plain data
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list | tuple) else value
