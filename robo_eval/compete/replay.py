"""How the actions of an episode are kept, and whether they still lead to what was logged."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from robo_eval.agents import wire
from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError, NotHereError, said

if TYPE_CHECKING:
    from robo_eval.compete.draw import TrialDraw
    from robo_eval.compete.ledger import ChainRow
    from robo_eval.core.episode import Episode
    from robo_eval.core.plan import TaskPlan
    from robo_eval.core.trajectory import Trajectory


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


class Again(NamedTuple):
    """An episode that was played again.

    Attributes:
        rewards: Of each tick.
        terminated: Whether it ended by itself.
        truncated: Whether it was cut off.
        info: What the environment said last.
        novelty: What it said of its novelty when the episode began.
        motion: What moved; None unless it was asked for.
    """

    rewards: list[float]
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
    novelty: Mapping[str, Any]
    motion: Trajectory | None


def played_again(
    trial: TrialDraw, episode: int, actions: Sequence[Any], *, keeps_motion: bool = False
) -> Again:
    """Play an episode again from its seed and actions, until it ends or they do.

    Args:
        trial: What was drawn.
        episode: Index of the episode within the trial.
        actions: All actions, in order.
        keeps_motion: Whether what moves is noted.

    Raises:
        NotHereError: If its environment cannot be made here.
    """
    import gymnasium

    from robo_eval.log.motion import trajectory_of
    from robo_eval.log.planned_row import novelty_of
    from robo_eval.metrics.scoring import reward_of

    try:
        env = gymnasium.make(trial.env, **trial.keywords_of(episode))
    except (Exception, SystemExit) as err:
        raise NotHereError(f"{trial.env}: making it again fails: {said(err)}") from err
    try:
        if keeps_motion and hasattr(env.unwrapped, "records_motion"):
            env.unwrapped.records_motion = True
        observation, info = env.reset(seed=trial.episodes[episode].seed)
        novelty = novelty_of(env)
        seen, rewards = [copy.deepcopy(observation)], list[float]()
        terminated = truncated = False
        for action in actions:
            if terminated or truncated:
                break
            observation, reward, terminated, truncated, info = env.step(action)
            rewards.append(reward_of(reward))
            if keeps_motion:
                seen.append(copy.deepcopy(observation))
        done = actions[: len(rewards)]
        motion = trajectory_of(env, seen, done, rewards) if keeps_motion else None
    finally:
        env.close()
    return Again(rewards, bool(terminated), bool(truncated), info, novelty, motion)


def differences(trial: TrialDraw, logged: ChainRow, task: TaskPlan) -> list[str]:
    """Play an episode again from its seed and actions, and say what comes out otherwise.

    Args:
        trial: What was drawn.
        logged: What was logged of it.
        task: By whose rules it is scored.

    Raises:
        NotHereError: If its environment cannot be made here.
    """
    from robo_eval.metrics.scoring import score_played

    row, actions = logged.row, unpacked(logged.actions or b"")
    try:
        found = played_again(trial, logged.episode, actions)
    except NotHereError:
        raise
    except Exception as err:  # noqa: BLE001 - of any environment, by actions it never took
        return [f"it breaks: {said(err)}"]
    ticks = len(found.rewards)
    if ticks < len(actions):
        return [f"it ended after {ticks} of {len(actions)} ticks"]
    if not (found.terminated or found.truncated):
        return [f"it had not ended after {ticks} ticks"]
    end, quality, total = score_played(
        task,
        found.rewards,
        terminated=found.terminated,
        truncated=found.truncated,
        info=found.info,
    )
    again = {"ticks": ticks, "episode_return": total, "quality": quality, "end_reason": end}
    before = {name: getattr(row, name) for name in again} | {"novelty": own_novelty(row)}
    again["novelty"] = json.loads(canonical_json(found.novelty))
    return [
        f"{name} is {value!r:.200}, and {before[name]!r:.200} was logged"
        for name, value in again.items()
        if value != before[name]
    ]


def own_novelty(row: Episode) -> dict[str, Any]:
    """What a row holds of its environment's own account of the novelty."""
    added = ("axes", "began", "trial")  # by `log.planned_row`
    return {name: told for name, told in (row.novelty or {}).items() if name not in added}
