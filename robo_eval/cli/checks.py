"""What can be refused before anything slow is loaded."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

from robo_eval.core.errors import InputError, PlanError, TrialDirectoryError

if TYPE_CHECKING:
    from pathlib import Path

    from robo_eval.core.plan import PolicyPlan, TrialPlan

_ROW_BYTES: Final = 6_000
_TRACE_BYTES: Final = 150_000
_REPORT_BYTES: Final = 10_000_000


def check_names(plan: TrialPlan) -> None:
    """Refuse unknown agents, levels and environments of ours, with the nearest valid name.

    Raises:
        PlanError: If a name is unknown; the message names the field.
    """
    from robo_eval.agents.confined import digest_of
    from robo_eval.core.names import unknown_name
    from robo_eval_sim.novelty import levels
    from robo_eval_sim.registration import ENVIRONMENTS, VARIED

    for index, task in enumerate(plan.tasks):
        ours = [*ENVIRONMENTS, *VARIED]
        if task.env.startswith("RoboEval/") and task.env not in ours:
            raise PlanError(f"tasks.{index}.env: {unknown_name('environment', task.env, ours)}")
        if task.env not in ENVIRONMENTS and "quality_range" not in task.model_fields_set:
            raise PlanError(
                f"tasks.{index}.quality_range: say which returns of {task.env} count as quality 0"
                " and 1, such as [0, 500]"
            )
        if task.env in ENVIRONMENTS and task.max_ticks is not None:
            raise PlanError(
                f"tasks.{index}.max_ticks: {task.env} has a time limit of its own; remove the key"
            )
        for level in task.levels or ():
            if task.env in ENVIRONMENTS and level not in levels():
                raise PlanError(f"tasks.{index}.levels: {unknown_name('level', level, levels())}")
    if plan.control and not any(level for task in plan.tasks for level in task.levels or ()):
        raise PlanError("control: no task has a level above 0, so there is nothing to control")
    # Last, because building an agent loads numpy.
    for index, policy in enumerate(plan.policies):
        try:
            with contextlib.redirect_stdout(sys.stderr):  # modules may print while they load
                digest_of(policy, plan.decision_timeout_s)
        except InputError as err:
            raise PlanError(f"policies.{index}.{_field(policy, err)}: {err}") from err


def _field(policy: PolicyPlan, err: InputError) -> str:
    """Which field of a policy an error is about."""
    if policy.factory:
        return "factory"
    return "name" if str(err).startswith("unknown agent") else "kwargs"


def check_there(folder: Path) -> None:
    """Refuse a folder that is not there, before what reads it is loaded.

    Raises:
        TrialDirectoryError: If it is not there.
    """
    if not folder.exists():
        raise TrialDirectoryError(f"{folder}: no such trial directory")


def needed_bytes(plan: TrialPlan) -> int:
    """Disk space a run may need, rounded up: rows, traces and the report."""
    n_conditions = sum(1 for _ in plan.conditions())
    arms = 2 if plan.control else 1
    episodes = n_conditions * len(plan.policies) * plan.episodes * arms
    traced = {
        "none": 0,
        "first": n_conditions * len(plan.policies),
        "first_and_failures": episodes,
        "all": episodes,
    }[plan.traces]
    return _REPORT_BYTES + episodes * _ROW_BYTES + traced * _TRACE_BYTES
