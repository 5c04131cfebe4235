"""Whether a battery of tasks is fit to show a level: a level is issued of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from robo_eval.core.kinds import Arm
from robo_eval.gates.audits import Audit, audit
from robo_eval.gates.grounds import alike_families

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.gates.profile import Battery
    from robo_eval.log.evidence import Checkpoint, EvidenceDeclaration, ToolUse

_INSTANCE: Final = ("task", "level", "difficulty", "drift_step", "seed")
"""What tells one instance of a task family from another."""
_FIRST: Final = 3
"""So many names are said; of more, how many there are."""


def battery_of(
    plan: TrialPlan,
    table: pd.DataFrame,
    settings: Battery,
    *,
    policy: str,
    side: str,
    tools: Sequence[ToolUse] = (),
    checkpoints: Sequence[Checkpoint] = (),
    declarations: Sequence[EvidenceDeclaration] = (),
) -> tuple[Audit, ...]:
    """The checks of the battery one policy was judged by, each under its name.

    Args:
        plan: The locked plan.
        table: Every episode of the trial, of `metrics.frame.episodes_frame`.
        settings: What is asked.
        policy: Name of the policy.
        side: The side it is judged on.
        tools: Its use of tools.
        checkpoints: Its checkpoints.
        declarations: What people vouch for.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3. What tells instances apart, and the numbers,
        are this project's choice.
    """
    own = table[(table["policy"] == policy) & (table["arm"] == Arm.MAIN.value)]
    judged = own[own["side"] == side]
    scored = judged[judged["quality"].notna()]
    return (
        _proper_scoring(plan, settings),
        _family_size(plan, scored, settings),
        _distinct(table),
        _drift_support(plan, scored, tools),
        _frozen_accounting(own, checkpoints),
        _seeds_escrow(plan, own, declarations),
    )


def _proper_scoring(plan: TrialPlan, settings: Battery) -> Audit:
    """Whether each task is scored by a rule that rewards the truth."""
    wrong = [
        f"{task.family or task.env}: {task.scoring}"
        for task in plan.tasks
        if task.scoring not in settings.scoring
    ]
    rules = sorted({task.scoring for task in plan.tasks})
    return audit(
        "proper_scoring", "proper scoring rules", passes=not wrong,
        good=", ".join(rules),
        bad=f"no proper scoring rule: {_few(wrong)}; declare tasks.scoring in the plan",
    )  # fmt: skip


def _family_size(plan: TrialPlan, scored: pd.DataFrame, settings: Battery) -> Audit:
    """Whether each family has enough episodes, of enough different instances."""
    short = []
    for family in dict.fromkeys(task.family or task.env for task in plan.tasks):
        own = scored[scored["family"] == family]
        instances = len(own[list(_INSTANCE)].drop_duplicates())
        if len(own) < settings.episodes:
            short.append(f"{family}: {len(own)} of the {settings.episodes} episodes required")
        elif instances < settings.instances:
            short.append(f"{family}: {instances} of the {settings.instances} instances required")
    return audit(
        "family_size", "episodes and instances of each task family", passes=not short,
        good=f"at least {settings.episodes} episodes of {settings.instances} instances each",
        bad=f"too few for a level: {_few(short)}",
    )  # fmt: skip


def _distinct(table: pd.DataFrame) -> Audit:
    """Whether no two task families are one task under two names."""
    alike = " and ".join(map(repr, alike_families(table) or ()))
    return audit(
        "distinct_families", "task families that differ", passes=not alike,
        good="no two are one task in simulation",
        bad=f"{alike} are one task in every simulated episode; give them one family",
    )  # fmt: skip


def _drift_support(plan: TrialPlan, scored: pd.DataFrame, tools: Sequence[ToolUse]) -> Audit:
    """Whether everything that was declared to vary was drawn at least once."""
    absent = []
    for index, task in enumerate(plan.tasks):
        own = scored[scored["task"] == task.env]
        for condition in plan.conditions():
            if condition.task != index or condition.level is None:
                continue
            drawn = own["level"] == condition.level
            if condition.difficulty is not None:
                drawn &= own["difficulty"] == condition.difficulty.value
            if not drawn.any():
                absent.append(f"no episode of {task.env} {condition.key}")
    drifts: dict[str, int] = {}
    for use in tools:
        drifts[use.drift] = drifts.get(use.drift, 0) + use.episodes
    absent += [f"no use of tools under drift {name!r}" for name, n in drifts.items() if not n]
    return audit(
        "drift_support", "every declared condition and drift was drawn",
        passes=not absent, good="each has episodes", bad=_few(absent),
    )  # fmt: skip


def _frozen_accounting(own: pd.DataFrame, checkpoints: Sequence[Checkpoint]) -> Audit:
    """Whether resources were counted by one set of rules in the whole window."""
    schemas = sorted({point.schema or "(none)" for point in checkpoints})
    plans = own["plan_digest"].nunique()
    problems = []
    if len(schemas) > 1:
        problems.append(f"checkpoints.csv counts resources by {_few(schemas)}")
    if plans > 1:
        problems.append(f"episodes.db has rows of {plans} plans, which hold the price card")
    return audit(
        "frozen_accounting", "one way of counting resources", passes=not problems,
        good=f"schema {schemas[0]}" if schemas else "one plan with its price card",
        bad="; ".join(problems),
    )  # fmt: skip


def _seeds_escrow(
    plan: TrialPlan, own: pd.DataFrame, declarations: Sequence[EvidenceDeclaration]
) -> Audit:
    """Whether the seeds were fixed before the first episode: every row commits to the plan."""
    newest = max(
        (one for one in declarations if one.what == "seeds_escrow"),
        key=lambda one: one.time_ns,
        default=None,
    )
    good = "the locked plan names them, and every row carries its digest"
    problem = ""
    if plan.imported is not None and newest is not None and newest.value == 1.0:
        good = f"declared by {newest.by}: {newest.document}"
    elif plan.imported is not None:
        problem = "the episodes were imported, so nothing shows that seeds were fixed before"
    elif own["seed"].isna().any():
        problem = f"{int(own['seed'].isna().sum())} episodes have no seed"
    return audit(
        "seeds_escrow", "seeds fixed before the window",
        passes=not problem, good=good, bad=problem,
    )  # fmt: skip


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FIRST} more" if len(names) > _FIRST else ""
    return f"{'; '.join(names[:_FIRST])}{more}"
