"""Whether a robot can play a plan at all, told before anything moves."""

from __future__ import annotations

from typing import Any

from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import (
    PlannedEpisode,
    environment_keywords,
    schedule,
    task_and_policy,
)
from robo_eval_robot.adapter import load_adapter
from robo_eval_robot.config import RobotConfig


def check_robot(plan: TrialPlan, config: RobotConfig, source: str) -> None:
    """Refuse a plan that this robot cannot play, before anything moves.

    Args:
        plan: The plan.
        config: The robot.
        source: What messages call the robot file.

    Raises:
        PlanError: If the plan asks for another side, a task the robot lacks, or an injection that
            needs a twin; the message names the field.
    """
    physical = [side for side in plan.sides if side is not Side.SIM]
    if physical != [config.side]:
        raise PlanError(
            f"sides: {', '.join(physical)} is planned, and {source} has body: {config.body}, which"
            f" plays side {config.side.value}"
        )
    for index, task in enumerate(plan.tasks):
        if task.env not in config.tasks:
            raise PlanError(
                f"tasks.{index}.env: robot {config.name!r} does not play {task.env}; {source}"
                f" has {', '.join(config.tasks) or 'no tasks yet, see docs/robots.md'}"
            )
    # One episode of each condition and policy: the others differ in what no adapter looks at.
    for planned in {(p.condition, p.policy): p for p in schedule(plan, config.side)}.values():
        task, _ = task_and_policy(plan, planned)
        try:
            load_adapter(config, task.env, task_keywords(plan, planned))
        except (TypeError, InputError) as err:
            raise PlanError(f"tasks.{planned.condition.task}: {err}") from err
    if plan.injections and config.body != "twin":
        raise PlanError("injections: are for a twin; a person does not break a robot on purpose")


def task_keywords(plan: TrialPlan, planned: PlannedEpisode) -> dict[str, Any]:
    """Keywords of a planned episode's task; the plan's time limit is none of them."""
    task, policy = task_and_policy(plan, planned)
    keywords = environment_keywords(task, planned, policy)
    keywords.pop("max_episode_steps", None)
    return keywords
