"""How an episode becomes a GIF that anyone can watch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import gymnasium

from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.policy import Policy
from robo_eval.core.schedule import policy_seed

_EVERY: Final = 2
"""Ticks per picture: 25 pictures a second show a 50 Hz episode at its own speed."""


def save_film(env: gymnasium.Env[Any, Any], policy: Policy, path: Path, *, seed: int) -> int:
    """Play one episode and save it as an animated GIF at the speed it was played.

    Args:
        env: An environment made with `render_mode="rgb_array"`.
        policy: Who acts.
        path: File to write, ending in `.gif`; it appears complete or not at all.
        seed: Seed of the episode.

    Returns:
        How many ticks the episode took.

    Raises:
        InputError: If the file does not end in `.gif` or the environment draws no pictures.
        MissingExtraError: If Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError as err:
        raise MissingExtraError(f"films need Pillow; run: {pip_install('sim')}") from err
    if path.suffix.lower() != ".gif":
        raise InputError(f"{path}: name a file that ends in .gif")
    if env.render_mode != "rgb_array":
        raise InputError(f"{env.spec}: make it with render_mode='rgb_array'")
    rate_hz = env.metadata.get("render_fps") or 50
    ticks = 0
    pictures = []
    for ticks, picture in _play(env, policy, seed):  # noqa: B007 - the last count is the result
        if picture is not None:
            pictures.append(Image.fromarray(picture).quantize(64))
    part = path.with_name(f".{path.name}.part")
    pictures[0].save(
        part,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=round(1000 * _EVERY / rate_hz),
        loop=0,
    )
    part.replace(path)
    return ticks


def _play(env: gymnasium.Env[Any, Any], policy: Policy, seed: int) -> Iterator[tuple[int, Any]]:
    """Ticks passed and, every so often and at the end, a picture."""
    observation, _ = env.reset(seed=seed)
    policy.reset(seed=policy_seed(seed))
    yield 0, env.render()
    ticks, over = 0, False
    while not over:
        observation, _, terminated, truncated, _ = env.step(policy.act(observation))
        over = terminated or truncated
        ticks += 1
        yield ticks, env.render() if over or ticks % _EVERY == 0 else None
