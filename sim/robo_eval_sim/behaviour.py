"""How a level behaves, as a digest of short episodes: it stays however the code is written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from gymnasium import spaces

from robo_eval.core.canonical import canonical_json

if TYPE_CHECKING:
    import gymnasium

_EVERY: Final = 10
"""Ticks between two observations that count; the last one always does."""
_DECIMALS: Final = 4
"""Decimals that count. Another machine's arithmetic may differ in its last bits. Up to the fall a
push that differs by 1e-10 of itself changes no observation by 1e-6; afterwards by centimetres."""


def behaviour_of(env: gymnasium.Env[Any, Any], seeds: Sequence[int], ticks: int) -> str:
    """SHA-256 of what an environment draws, shows, pays and when it ends, in short episodes.

    The actions are drawn from the episode's seed and heed no observation.

    Args:
        env: Its current episode is lost.
        seeds: Of the episodes.
        ticks: Most ticks of an episode.
    """
    found = hashlib.sha256()
    for seed in seeds:
        actions = _actions(env.action_space, np.random.default_rng(seed), ticks)
        observation, _ = env.reset(seed=seed)
        seen, paid = [observation], 0.0
        is_over, tick = False, 0
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(actions[tick])
            tick, paid, is_over = tick + 1, paid + float(reward), terminated or truncated
            if is_over or not tick % _EVERY:
                seen.append(observation)
        novelty: Any = getattr(env, "novelty", None) or {}
        drawn = novelty.get("parameters")
        said = {"ticks": tick, "paid": paid, "terminated": terminated, "drawn": drawn}
        found.update(canonical_json(_rounded(said)))
        # Whole numbers, so that 0 has no sign and no byte depends on the machine.
        found.update(np.rint(np.asarray(seen, float) * 10**_DECIMALS).astype("<i8").tobytes())
    return found.hexdigest()


def _actions(space: spaces.Space[Any], rng: np.random.Generator, ticks: int) -> list[Any]:
    if isinstance(space, spaces.Discrete):
        return list((space.start + rng.integers(0, space.n, ticks)).tolist())
    assert isinstance(space, spaces.Box), space
    low, high = np.maximum(space.low, -1.0), np.minimum(space.high, 1.0)
    return list(rng.uniform(low, high, (ticks, *space.shape)).astype(space.dtype))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items()}
    return [_rounded(entry) for entry in value] if isinstance(value, list | tuple) else value
