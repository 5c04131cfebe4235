"""How the actions of an episode are kept, and whether they still lead to what was logged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from robo_eval.agents import wire
from robo_eval.core.errors import InputError

if TYPE_CHECKING:
    from robo_eval.compete.draw import TrialDraw
    from robo_eval.core.episode import Episode
    from robo_eval.core.plan import TaskPlan


def packed(actions: Sequence[Any]) -> bytes:
    """The actions of an episode as bytes, exactly: numbers, or arrays with their type."""
    frame = wire.encode({"type": "actions"}, list(actions))
    return frame if isinstance(frame, bytes) else frame.encode()


def unpacked(data: bytes) -> list[Any]:
    """What `packed` was given.

    Raises:
        InputError: If it is something else.
    """
    found = wire.decode(data).get("value") if data else []
    if not isinstance(found, list):
        raise InputError("these are no actions of an episode")
    return found


def differences(
    trial: TrialDraw, episode: int, row: Episode, actions: Sequence[Any], task: TaskPlan
) -> list[str]:
    """Play an episode again from its seed and actions, and say what comes out otherwise.

    Args:
        trial: What was drawn.
        episode: Index of the episode within the trial.
        row: What was logged.
        actions: All actions, in order.
        task: By whose rules it is scored.

    Raises:
        InputError: If its environment cannot be made here.
    """
    from robo_eval.compete.worlds import Setting, Start, World
    from robo_eval.core.errors import foreign

    with foreign(trial.env, "making it again"):
        world = World(Setting(task, [trial.keywords_of(episode)]))
    try:
        world.reset(Start(trial.episodes[episode].seed, 0, {}))
        ended = None
        for tick, action in enumerate(actions):
            if ended is not None:
                return [f"it ended after {tick} of {len(actions)} ticks"]
            _, ended = world.step(action, 0)
    finally:
        world.close()
    if ended is None:
        return [f"it had not ended after {len(actions)} ticks"]
    return [
        f"{name} is {ended.measured[name]!r}, and {getattr(row, name)!r} was logged"
        for name in ("ticks", "episode_return", "quality", "end_reason")
        if ended.measured[name] != getattr(row, name)
    ]
