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
    import gymnasium

    from robo_eval.core.errors import foreign
    from robo_eval.metrics.scoring import reward_of, score_played

    with foreign(trial.env, "making it again"):
        env = gymnasium.make(trial.env, **trial.keywords_of(episode))
    try:
        _, info = env.reset(seed=trial.episodes[episode].seed)
        rewards: list[float] = []
        terminated = truncated = False
        for action in actions:
            if terminated or truncated:
                return [f"it ended after {len(rewards)} of {len(actions)} ticks"]
            _, reward, terminated, truncated, info = env.step(action)
            rewards.append(reward_of(reward))
        if not (terminated or truncated):
            return [f"it had not ended after {len(rewards)} ticks"]
    finally:
        env.close()
    end, quality, total = score_played(
        task, rewards, terminated=bool(terminated), truncated=bool(truncated), info=info
    )
    again = {
        "ticks": len(rewards),
        "episode_return": total,
        "quality": quality,
        "end_reason": end,
    }
    return [
        f"{name} is {value!r}, and {getattr(row, name)!r} was logged"
        for name, value in again.items()
        if value != getattr(row, name)
    ]
