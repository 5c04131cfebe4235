"""How an episode becomes a GIF that anyone can watch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import gymnasium

from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.policy import Policy
from robo_eval.core.schedule import policy_seed

_EVERY: Final = 2
"""Ticks per picture: 25 pictures a second show a 50 Hz episode at its own speed."""


def save_film(
    env: gymnasium.Env[Any, Any], policy: Policy, path: Path, *, seed: int
) -> tuple[int, float, bool | None]:
    """Play one episode and save it as an animated GIF at the speed it was played.

    Args:
        env: An environment made with `render_mode="rgb_array"`.
        policy: Who acts.
        path: File to write, ending in `.gif`; it appears complete or not at all.
        seed: Seed of the episode.

    Returns:
        How many ticks the episode took, its return, and whether the environment says that it was a
        success; None if it says nothing.

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
    pictures: list[Any] = []

    def keep() -> None:
        picture: Any = env.render()
        pictures.append(Image.fromarray(picture).quantize(64))

    observation, info = env.reset(seed=seed)
    policy.reset(seed=policy_seed(seed))
    keep()
    ticks, performance, over = 0, 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = env.step(policy.act(observation))
        over = terminated or truncated
        ticks, performance = ticks + 1, performance + float(reward)
        if over or ticks % _EVERY == 0:
            keep()
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
    return ticks, performance, info.get("is_success")
