"""What was run, on what, and how to do it again: the part of a report that holds no result."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from robo_eval.analysis import panel
from robo_eval.analysis.acc import AccTable
from robo_eval.core.plan import PolicyPlan, TrialPlan
from robo_eval.metrics.summary import TrialSummary
from robo_eval.report.words import count, duration

if TYPE_CHECKING:
    from robo_eval.log.manifest import Manifest
    from robo_eval.report.content import TrialData

Facts = list[tuple[str, str]]


def synopsis(plan: TrialPlan, frame: pd.DataFrame) -> str:
    """One line: what was played, how often, when."""
    parts = [count(len(plan.policies), "policy", "policies")]
    levels = {level for task in plan.tasks for level in task.levels or ()}
    difficulties = {d for task in plan.tasks if task.levels is not None for d in task.difficulties}
    if len(plan.tasks) > 1:
        parts.append(count(len(plan.tasks), "task"))
    if levels:
        parts.append(count(len(levels), "level"))
    if len(difficulties) > 1:
        parts.append(count(len(difficulties), "difficulty", "difficulties"))
    parts.append(count(plan.episodes, "seed"))
    sides = " and ".join(side.value for side in plan.sides)
    return f"{count(len(frame), 'attempt')} ({' × '.join(parts)}), {sides}{_when(frame)}"


def _when(frame: pd.DataFrame) -> str:
    if frame.empty:
        return ""
    first, last = (_instant(int(frame["start_ns"].agg(pick))) for pick in ("min", "max"))
    took = duration((last - first).total_seconds())
    return f", played {first:%d %B %Y}".replace(" 0", " ") + f" within {took}"


def _instant(stamp_ns: int) -> datetime:
    return datetime.fromtimestamp(stamp_ns / 1e9, tz=UTC)


def conditions(plan: TrialPlan, frame: pd.DataFrame, manifest: Manifest | None) -> Facts:
    """What was played, on which machine, and how the attempts ended."""
    facts: Facts = []
    for task in plan.tasks:
        text = task.env
        if task.levels is not None:
            text += f"; levels {_ranges(task.levels)}; {', '.join(task.difficulties)}"
            text += f"; profile {task.profile.value}"
        if task.kwargs:
            text += f"; {_keywords(task.kwargs)}"
        facts.append(("Task", text))
    facts.append(("Policies", ", ".join(_policy(policy) for policy in plan.policies)))
    seeds = f"{plan.seeds.first} to {plan.seeds.first + plan.episodes - 1}"
    facts.append(("Seeds", f"{seeds}, the same for every condition and policy"))
    facts.append(("Order", plan.order + f" (seed {plan.order_seed})" * (plan.order != "blocked")))
    control = "each novelty episode has the same policy and seed at level 0" if plan.control else ""
    facts.append(("Matched control", control or "none"))
    if not frame.empty:
        ends = frame["end_reason"].astype(str).value_counts().sort_index()
        text = ", ".join(f"{n} {str(end).replace('_', ' ')}" for end, n in ends.items())
        facts.append(("Attempts", f"{count(len(frame), 'row')}: {text}"))
        first, last = (_instant(int(frame["start_ns"].agg(pick))) for pick in ("min", "max"))
        facts.append(("Started", f"{first:%Y-%m-%d %H:%M:%S} UTC; last {last:%H:%M:%S}"))
    if manifest is not None and manifest.machine:
        facts.append(("Machine", ", ".join(f"{k} {v}" for k, v in manifest.machine.items())))
    return facts


def _policy(policy: PolicyPlan) -> str:
    text = policy.name + (f" = {policy.factory}" if policy.factory else "")
    return f"{text} ({_keywords(policy.kwargs)})" if policy.kwargs else text


def provenance(data: TrialData, summary: TrialSummary) -> Facts:
    """Digests and versions that tell this log from any other."""
    facts: Facts = [("Plan", data.plan_digest)]
    if data.manifest is not None and data.manifest.rows:
        chain = f"{data.manifest.head} (after {count(data.manifest.rows, 'row')})"
        facts.append(("Log, end of the chain", chain))
    for result in summary.policies:
        for digest in result.policy_digests:
            facts.append((f"Policy {result.policy}", digest))
    if not data.frame.empty:
        facts.append(("Played by", ", ".join(sorted(set(data.frame["software"].astype(str))))))
    if data.manifest is not None and data.manifest.versions:
        versions = data.manifest.versions
        facts.append(("Versions", ", ".join(f"{name} {text}" for name, text in versions.items())))
    rules = ", ".join(f"version {v} ({n} episodes)" for v, n in summary.score_versions.items())
    facts.append(("Scoring rules", rules or "nothing scored"))
    if isinstance(summary.acc, AccTable) and summary.acc.rows:
        made = panel.provenance()
        facts.append(("Reference panel", f"plan {made.plan_digest}, played by {made.software}"))
    config = summary.config
    intervals = f"{config.level:.0%}, {config.resamples} resamples, seed {config.seed}"
    facts.append(("Intervals", f"{intervals}; configuration {config.digest}"))
    return facts


def panel_source() -> str:
    """Where the difficulties of the items come from, as one sentence."""
    return (
        "The difficulty of an item, a level at a difficulty, is one minus the mean performance of"
        f" a frozen panel of {count(len(panel.members()), 'reference controller')}, never of the"
        " policies under test."
    )


def panel_warnings() -> list[str]:
    """Why the difficulties of the items may not be those of the levels that were played."""
    if panel.provenance().is_current is False:
        return ["The installed novelty levels are not those the panel was measured on."]
    return []


def commands(trial: Path) -> list[tuple[str, str]]:
    """Commands to play it again, check the log and write this report from it."""
    name = shlex.quote(trial.name)
    plan = shlex.quote(f"{trial.name}/plan.yaml")
    again = shlex.quote(f"{trial.name}-again")
    return [
        ("Play the same plan again", f"robo-eval run {plan} --out {again}"),
        ("Check that no byte of the log changed", f"robo-eval verify {name}"),
        ("Print the numbers", f"robo-eval metrics {name}"),
        ("Write this report from the log", f"robo-eval report {name}"),
    ]


def _ranges(levels: tuple[int, ...]) -> str:
    """Whole numbers, runs of three or more as `0 to 16`."""
    parts: list[list[int]] = []
    for level in sorted(levels):
        if parts and parts[-1][-1] == level - 1:
            parts[-1].append(level)
        else:
            parts.append([level])
    return ", ".join(
        f"{part[0]} to {part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts
    )


def _keywords(keywords: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in keywords.items())
