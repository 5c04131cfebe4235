"""What quality, success and end reason follow from what an episode left behind."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.episode import QUALITY_DECIMALS, is_good_enough
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.names import listing, unknown_name
from robo_eval.metrics.tasks import TaskLookup

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.defaults import PolicyFaults
    from robo_eval.core.plan import TaskPlan, TrialPlan

SCORE_VERSION: Final = 1
"""Version of the rules in this module; a change that can alter a score raises it."""

_STOPPED: Final = frozenset(
    {EndReason.SAFETY_STOP, EndReason.OUT_OF_BOUNDS, EndReason.OPERATOR_STOP}
)
"""Ends that are never a success, whatever the quality."""


def quality_of(episode_return: float, quality_range: tuple[float, float]) -> float:
    """Score in [0, 1] of an episode's return.

    Args:
        episode_return: Sum of rewards, finite.
        quality_range: Returns that count as 0 and 1; values between are interpolated, values
            beyond are clipped.

    Raises:
        InputError: If the return is not finite.

    Example:
        >>> quality_of(sum([1 / 200] * 200), (0.0, 1.0))
        1.0
        >>> quality_of(-150.0, (-200.0, -100.0))
        0.5
    """
    if not math.isfinite(episode_return):
        raise InputError(f"episode_return is {episode_return}; a score needs a finite number")
    low, high = quality_range
    quality = (episode_return - low) / (high - low)
    return round(min(max(quality, 0.0), 1.0), QUALITY_DECIMALS)


def score_end(
    *,
    terminated: bool,
    truncated: bool,
    quality: float,
    success_quality: float,
    info: Mapping[str, Any] | None = None,
    interventions: int = 0,
    success: str | None = None,
) -> EndReason:
    """Why an episode that was played to its end ended.

    A stop named by the environment in `info["end_reason"]` (safety_stop, out_of_bounds,
    operator_stop) wins over any quality, and an assisted episode is never a success. Else the
    quality decides, or what `info` says under the key `success`; what falls short is a failure if
    the task ended it, a timeout if the clock did.

    Args:
        terminated: The task ended the episode.
        truncated: A time limit ended it.
        quality: Score in [0, 1].
        success_quality: Least quality that counts as success.
        info: The last `info` of the environment.
        interventions: Human interventions during the episode.
        success: Key of `info` that says whether it succeeded; none where quality decides.

    Raises:
        InputError: If `info["end_reason"]` is no end reason, or one of an episode without a
            score, if `info` lacks the key `success`, or if the episode has not ended.

    Example:
        >>> score_end(terminated=False, truncated=True, quality=1.0, success_quality=1.0).value
        'success'
    """
    declared = _declared_end(info)
    if declared in _STOPPED:
        return declared
    if not (terminated or truncated):
        raise InputError("episode is neither terminated nor truncated; only an end can be scored")
    if success is None:
        is_success = is_good_enough(quality, success_quality)
    else:
        is_success = _told_success(info or {}, success)
    if interventions == 0 and is_success:
        return EndReason.SUCCESS
    return EndReason.FAILURE if terminated else EndReason.TIMEOUT


def score_played(
    task: TaskPlan,
    rewards: Sequence[float],
    *,
    terminated: bool,
    truncated: bool,
    info: Mapping[str, Any],
) -> tuple[EndReason, float, float]:
    """End reason, quality and return of an episode that was played to its end; see `score_end`.

    Args:
        task: What was played.
        rewards: One a tick.
        terminated: The task ended the episode.
        truncated: A time limit ended it.
        info: The last `info` of the environment.
    """
    episode_return = float(sum(rewards))
    quality = quality_of(episode_return, task.quality_range)
    end_reason = score_end(
        terminated=terminated,
        truncated=truncated,
        quality=quality,
        success_quality=task.success_quality,
        info=info,
        success=task.success,
    )
    return end_reason, quality, episode_return


def reward_of(given: Any) -> float:
    """The reward of a step as a number; an array that holds one number is one.

    Raises:
        InputError: If it is no finite number.

    Example:
        >>> reward_of([0.25])
        0.25
    """
    try:
        reward = float(given)
    except (TypeError, ValueError):
        reward = _only_number(given)
    if not math.isfinite(reward):
        raise InputError(f"the reward is {given!r:.80}; a score needs a finite number in each step")
    return reward


def _only_number(given: object) -> float:
    """The number that an array or list holds alone; NaN if it holds anything else."""
    import numpy as np

    try:
        return float(np.asarray(given, dtype=np.float64).reshape(()))
    except (TypeError, ValueError):
        return math.nan


def _told_success(info: Mapping[str, Any], key: str) -> bool:
    if key not in info:
        raise InputError(
            f"the last info lacks {key!r}, which `success` of the task names; it holds:"
            f" {listing([*map(str, info)]) or 'nothing'}"
        )
    told = _only_number(info[key])
    if told not in (0.0, 1.0):
        raise InputError(f"info[{key!r}] is {info[key]!r:.80}; `success` needs true or false")
    return bool(told)


def _declared_end(info: Mapping[str, Any] | None) -> EndReason | None:
    given = (info or {}).get("end_reason")
    if given is None:
        return None
    try:
        reason = EndReason(given)
    except ValueError:
        scored = [reason.value for reason in EndReason if reason.is_scored]
        raise unknown_name("info['end_reason']", given, scored) from None
    if not reason.is_scored:
        raise InputError(
            f"info['end_reason'] is {reason.value!r}, which has no score; an environment that"
            " cannot go on raises an exception instead"
        )
    return reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One version's verdict on one episode.

    Attributes:
        quality: Score in [0, 1]; None if there is none.
        success: Strict success; None if there is no score.
        end_reason: Why the episode ended, by the rules of this version.
        version: Version of the scoring rules.
        reason: Why there is no score.
    """

    quality: float | None
    success: bool | None
    end_reason: EndReason
    version: int
    reason: str | None = None


def score_row(
    *,
    episode_return: float | None,
    ticks: int | None,
    end_reason: EndReason,
    interventions: int,
    task: TaskPlan,
) -> Score:
    """Score a logged episode again from its raw columns and its task's settings.

    A recorded `success` that no longer is one becomes a timeout if it used up the plan's
    `max_ticks`, else a failure: the row does not say which clock ended it.

    Args:
        episode_return: Sum of rewards; None or NaN if it was not recorded.
        ticks: Control ticks; None if not known.
        end_reason: As recorded.
        interventions: Human interventions.
        task: Section of the plan it was played under.
    """
    if not end_reason.is_scored:
        return _no_score(end_reason, f"ended by {end_reason.value}")
    if episode_return is None or math.isnan(episode_return):
        return _no_score(end_reason, "no episode_return to score")
    quality = quality_of(episode_return, task.quality_range)
    used_up = ticks is not None and task.max_ticks is not None and ticks >= task.max_ticks
    timed_out = end_reason is EndReason.TIMEOUT or (end_reason is EndReason.SUCCESS and used_up)
    reason = score_end(
        terminated=not timed_out,
        truncated=timed_out,
        quality=quality,
        success_quality=task.success_quality,
        info={"end_reason": end_reason} if end_reason in _STOPPED else None,
        interventions=interventions,
    )
    return Score(
        quality=quality,
        success=reason is EndReason.SUCCESS,
        end_reason=reason,
        version=SCORE_VERSION,
    )


def _no_score(end_reason: EndReason, reason: str) -> Score:
    return Score(
        quality=None, success=None, end_reason=end_reason, version=SCORE_VERSION, reason=reason
    )


def rescore(frame: pd.DataFrame, plan: TrialPlan) -> pd.DataFrame:
    """Score logged episodes again with the rules at hand; the recorded scores stay as they are.

    Where a person judged, only the quality is computed again: no rule replaces a verdict.

    Args:
        frame: Episodes with the columns of `core.episode.COLUMNS`.
        plan: The plan they were recorded under.

    Returns:
        One row per episode and version, sorted by episode_id and score_version: the recorded
        score first, then that of this version if the recorded one is older. Columns
        episode_id, score_version, quality, success, end_reason, reason.

    Raises:
        InputError: If a row fits no task of the plan, or a return is not finite.
    """
    import pandas as pd

    from robo_eval.metrics.frame import episodes_frame

    episodes = episodes_frame(frame)
    lookup = _Sections(plan)
    rows: list[dict[str, object]] = []
    for row in episodes.to_dict(orient="records"):
        rows.append(_recorded(row))
        if row["score_version"] == SCORE_VERSION:
            continue
        score = _score_record(row, lookup.task_of(row), is_judged=_is_judged(row, plan))
        rows.append(_version_row(str(row["episode_id"]), score))
    columns = ["episode_id", "score_version", "quality", "success", "end_reason", "reason"]
    result = pd.DataFrame(rows, columns=columns, dtype=object)
    return result.sort_values(["episode_id", "score_version"], ignore_index=True)


def rescored_frame(
    frame: pd.DataFrame, plan: TrialPlan, policy_faults: PolicyFaults = "missing"
) -> pd.DataFrame:
    """The episodes with the scores of this version in place of the recorded ones.

    Rows that hold no return, such as those of another lab, keep the score they came with.

    Args:
        frame: Episodes with the columns of `core.episode.COLUMNS`.
        plan: The plan they were recorded under.
        policy_faults: Whether what an error of the policy ended is left without a score, or is a
            `failure` of quality 0 where no other attempt at the episode has a score.

    Returns:
        The table of `metrics.frame.episodes_frame`.

    Raises:
        InputError: If a row fits no task of the plan, or a return is not finite.
    """
    from robo_eval.metrics.frame import episodes_frame
    from robo_eval.metrics.tables import policy_faults as policy_faults_of

    episodes = _rescored(episodes_frame(frame, plan), plan)
    if policy_faults == "failure":
        failed = episodes.index[policy_faults_of(episodes)]
        episodes.loc[failed, "quality"] = 0.0
        episodes.loc[failed, "success"] = False
        episodes.loc[failed, "end_reason"] = EndReason.FAILURE.value
    return episodes


def _rescored(episodes: pd.DataFrame, plan: TrialPlan) -> pd.DataFrame:
    import pandas as pd

    if (episodes["score_version"] == SCORE_VERSION).all():
        return episodes
    lookup = _Sections(plan)
    columns = ("quality", "success", "end_reason", "score_version")
    scores: dict[str, list[object]] = {column: list(episodes[column]) for column in columns}
    for index, row in enumerate(episodes.to_dict(orient="records")):
        if row["score_version"] == SCORE_VERSION:
            continue
        score = _score_record(row, lookup.task_of(row), is_judged=_is_judged(row, plan))
        if score.quality is None:
            continue
        new = (score.quality, score.success, score.end_reason.value, score.version)
        for column, value in zip(columns, new, strict=True):
            scores[column][index] = value
    for column in columns:
        episodes[column] = pd.Series(scores[column], dtype=episodes[column].dtype)
    return episodes


def _is_judged(row: Mapping[Hashable, Any], plan: TrialPlan) -> bool:
    """Whether success of a row is what a person said, not what the task measured."""
    return plan.imported is None and plan.judging.asks(Side(row["side"]))


def _score_record(row: Mapping[Hashable, Any], task: TaskPlan, *, is_judged: bool) -> Score:
    from robo_eval.metrics.frame import is_missing

    episode_return, ticks = row["episode_return"], row["ticks"]
    end_reason = EndReason(row["end_reason"])
    try:
        score = score_row(
            episode_return=None if is_missing(episode_return) else float(episode_return),
            ticks=None if is_missing(ticks) else int(ticks),
            end_reason=end_reason,
            interventions=int(row["interventions"]),
            task=task,
        )
    except InputError as err:
        raise InputError(f"episode {row['episode_id']}: {err}") from err
    if not (is_judged or task.success) or score.success is None:
        return score
    return replace(score, success=end_reason is EndReason.SUCCESS, end_reason=end_reason)


def _recorded(row: Mapping[Hashable, Any]) -> dict[str, object]:
    quality = row["quality"]
    has_score = quality is not None and not math.isnan(quality)
    end_reason = EndReason(row["end_reason"])
    reason = f"ended by {end_reason.value}" if not end_reason.is_scored else "no score recorded"
    return {
        "episode_id": row["episode_id"],
        "score_version": row["score_version"],
        "quality": quality if has_score else None,
        "success": row["success"],
        "end_reason": end_reason.value,
        "reason": None if has_score else reason,
    }


def _version_row(episode_id: str, score: Score) -> dict[str, object]:
    return {
        "episode_id": episode_id,
        "score_version": score.version,
        "quality": score.quality,
        "success": score.success,
        "end_reason": score.end_reason.value,
        "reason": score.reason,
    }


class _Sections:
    """Finds the section of a plan by whose rules a row is scored."""

    def __init__(self, plan: TrialPlan) -> None:
        self._tasks = plan.tasks
        self._lookup = TaskLookup(plan)

    def task_of(self, row: Mapping[Hashable, Any]) -> TaskPlan:
        index = self._lookup.index_of(row, self._scoring)
        if index is None:
            envs = sorted({task.env for task in self._tasks})
            raise InputError(
                f"episode {row['episode_id']}: task {row['task']!r} is not in the plan, which has"
                f" {', '.join(envs)}"
            )
        return self._tasks[index]

    def _scoring(self, index: int) -> Hashable:
        task = self._tasks[index]
        return task.quality_range, task.success_quality, task.max_ticks, task.success
