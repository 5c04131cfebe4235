"""What can be refused before anything slow is loaded."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from robo_eval.core.errors import InputError, PlanError, TrialDirectoryError, UnknownNameError
from robo_eval.core.task import known_task, limit_problem, unknown_in

if TYPE_CHECKING:
    from robo_eval.core.plan import PolicyPlan, TaskPlan, TrialPlan

_ROW_BYTES: Final = 6_000
_TRACE_BYTES: Final = 150_000
_REPORT_BYTES: Final = 10_000_000


def check_names(plan: TrialPlan, *, probed: bool = False) -> None:
    """Refuse unknown agents, levels and environments of ours, with the nearest valid name.

    Args:
        plan: The plan.
        probed: Whether policies by `factory` are left to a probe, which makes them as well: large
            ones take minutes.

    Raises:
        PlanError: If a name is unknown; the message names the field.
    """
    from robo_eval.agents.confined import digest_of

    for index, task in enumerate(plan.tasks):
        for field, problem in _problems(task):
            raise PlanError(f"tasks.{index}.{field}: {problem}")
    if plan.control and not any(level for task in plan.tasks for level in task.levels or ()):
        raise PlanError("control: no task has a level above 0, so there is nothing to control")
    # Last, because building an agent loads numpy.
    for index, policy in enumerate(plan.policies):
        if probed and policy.factory:
            continue
        try:
            with contextlib.redirect_stdout(sys.stderr):  # modules may print while they load
                digest_of(policy, plan.decision_timeout_s)
        except InputError as err:
            raise PlanError(f"policies.{index}.{_field(policy, err)}: {err}") from err


def _problems(task: TaskPlan) -> Iterator[tuple[str, str]]:
    """What is wrong with an entry of `tasks`: its field, and what to do."""
    try:
        spec = known_task(task.env)
    except UnknownNameError as err:
        yield "env", str(err)
        return
    if (spec is None or spec.quality is None) and "quality_range" not in task.model_fields_set:
        yield (
            "quality_range",
            f"say which returns of {task.env} count as quality 0 and 1, such as [0, 500]",
        )
    if spec is None:
        return
    if (limit := limit_problem(spec, task.env, task.max_ticks)) is not None:
        yield "max_ticks", limit
    if task.levels and not spec.levels():
        yield "levels", f"{task.env} has no levels; remove the key"
    for field, problem in unknown_in(spec, task.levels or ()):
        yield field, str(problem)


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
    episodes = n_conditions * len(plan.policies) * max(map(plan.episodes_on, plan.sides)) * arms
    traced = {
        "none": 0,
        "first": n_conditions * len(plan.policies),
        "first_and_failures": episodes,
        "all": episodes,
    }[plan.traces]
    return _REPORT_BYTES + episodes * _ROW_BYTES + traced * _TRACE_BYTES
