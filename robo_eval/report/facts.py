"""What was run, on what, and how to do it again: the part of a report that holds no result."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from robo_eval.analysis import panel
from robo_eval.analysis.acc import AccTable
from robo_eval.core.kinds import Side
from robo_eval.core.plan import ImportPlan, PolicyPlan, TrialPlan
from robo_eval.core.wording import NOT_RECORDED, noun_for
from robo_eval.log import incident_log
from robo_eval.log.evidence import NAMES
from robo_eval.metrics import registry
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.summary import TrialSummary
from robo_eval.page.words import (
    count,
    duration,
    percent,
    spaced,
    thousands,
)

if TYPE_CHECKING:
    from robo_eval.log.manifest import Manifest
    from robo_eval.report.model import LogCheck, TrialData

Facts = list[tuple[str, str]]


def synopsis(plan: TrialPlan, frame: pd.DataFrame) -> str:
    """One line: what was played, how often, when."""
    parts = [count(len(plan.policies), "policy", "policies")]
    levels = {level for task in plan.tasks for level in task.levels or ()}
    difficulties = {d for task in plan.tasks if task.levels is not None for d in task.difficulties}
    if any(task.axes or task.pairs for task in plan.tasks):
        parts.append(count(len(list(plan.conditions())), "condition"))
    else:
        if len(plan.tasks) > 1:
            parts.append(count(len(plan.tasks), "task"))
        if levels:
            parts.append(count(len(levels), "level"))
        if len(difficulties) > 1:
            parts.append(count(len(difficulties), "difficulty", "difficulties"))
    parts.append(plan.trials.in_words if plan.trials else count(plan.episodes, "seed"))
    if plan.calibrations:
        parts.append(count(len(plan.ways(Side.SIM)), "simulator"))
    sides = " and ".join(side.value for side in plan.sides)
    if plan.imported is not None:
        # What was found is described, not what a plan asked for.
        source = f"imported from {plan.imported.file}"
        return f"{count(len(frame), 'attempt')} of {parts[0]}, {sides}, {source}{_when(frame)}"
    return f"{count(len(frame), 'attempt')} ({' × '.join(parts)}), {sides}{_when(frame)}"


def _when(frame: pd.DataFrame) -> str:
    starts = _starts(frame)
    if frame.empty:
        return ""
    if starts is None:
        return f", time {NOT_RECORDED}"
    first, last = starts
    took = duration((last - first).total_seconds()).replace(" ", "\N{NO-BREAK SPACE}")
    days = dict.fromkeys(f" {one:%d %B %Y}".replace(" 0", " ") for one in starts)
    return f", played{' to'.join(days)}, all started within {took}"


def _starts(frame: pd.DataFrame) -> tuple[datetime, datetime] | None:
    """When the first and the last attempt started; None if no start is recorded."""
    known = frame["start_ns"].dropna()
    if known.empty:
        return None
    return _instant(int(known.min())), _instant(int(known.max()))


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
        if task.success:
            text += f"; success as the environment's info[{task.success!r}] says"
        facts.append(("Task", text))
    facts.append(("Policies", ", ".join(_policy(policy) for policy in plan.policies)))
    facts += _schedule(plan) if plan.imported is None else _origin(plan.imported)
    if not frame.empty:
        facts += _attempts(frame)
    if manifest is not None and manifest.machine:
        where = "Machine" if plan.imported is None else "Machine of the import"
        facts.append((where, ", ".join(f"{k} {v}" for k, v in manifest.machine.items())))
    return facts


def _schedule(plan: TrialPlan) -> Facts:
    shared = plan.seeds.shared
    n = plan.episodes if shared else plan.episodes * len(list(plan.conditions()))
    which = "the same for every condition and policy"
    if not shared:
        which = f"{plan.episodes} of them for each condition, the same for every policy"
    seeds = f"{plan.seeds.first} to {plan.seeds.first + n - 1}, {which}"
    control = "each novelty episode has the same policy and seed at level 0" if plan.control else ""
    return [
        ("Seeds", seeds),
        ("Order", plan.order + f" (seed {plan.order_seed})" * (plan.order != "blocked")),
        ("Matched control", control or "none"),
        *([("Trials", plan.trials.in_words)] if plan.trials else []),
        *([("Simulated with", _calibrations(plan))] if plan.calibrations else []),
    ]


def _calibrations(plan: TrialPlan) -> str:
    """What the simulated half was played with, and which part of each snapshot."""
    parts = []
    for entry in plan.calibrations:
        ranges = [f"{name} {low:g} to {high:g}" for name, (low, high) in entry.randomised.items()]
        what = f" (each episode draws {', '.join(ranges)})" if ranges else ""
        if entry.file is not None:
            recordings = count(len(entry.recordings), "recording")
            what = f" ({', '.join(entry.play)} of {recordings})"
        parts.append(f"{entry.name}{what}")
    return "; ".join(parts)


def _origin(imported: ImportPlan) -> Facts:
    return [
        ("Imported from", f"{imported.file}, SHA-256 {imported.sha256}"),
        ("Planned", f"{NOT_RECORDED}: what was found is taken for what there should be"),
    ]


def _attempts(frame: pd.DataFrame) -> Facts:
    ends = frame["end_reason"].astype(str).value_counts().sort_index()
    text = ", ".join(f"{thousands(n)} {spaced(str(end))}" for end, n in ends.items())
    facts: Facts = [("Attempts", f"{count(len(frame), 'row')}: {text}")]
    starts = _starts(frame)
    if starts is None:
        facts.append(("Started", NOT_RECORDED))
    else:
        first, last = starts
        same_day = first.date() == last.date()
        end = f"{last:%H:%M:%S}" if same_day else _stamp(last)
        facts.append(("Started", f"{_stamp(first)} UTC; last {end}"))
    facts += [(name, text) for name, column in _AMOUNTS if (text := _total(frame[column]))]
    helped = frame["interventions"].fillna(0)
    if helped.sum():
        text = f"{thousands(int(helped.sum()))} in {count(int((helped > 0).sum()), 'attempt')}"
        facts.append(("Interventions", text))
    return facts


_AMOUNTS: Final = (("Task time", "duration_s"), ("Exposure of the robot", "exposure_s"))


def _total(seconds: pd.Series[Any]) -> str:
    """The sum of what is recorded, and of how many attempts that is not; empty for none."""
    known = seconds.dropna()
    unknown = len(seconds) - len(known)
    if known.empty:
        return NOT_RECORDED
    # Numbers of an old log may be so large that their sum is none; pandas would warn of it.
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(known.sum())
    if not total:
        return ""
    lacking = f" ({NOT_RECORDED} for {count(unknown, 'attempt')})" if unknown else ""
    return f"{duration(total)} in all{lacking}"


def _stamp(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}"


def _policy(policy: PolicyPlan) -> str:
    text = policy.name + (f" = {policy.factory}" if policy.factory else "")
    mode = {} if policy.action_mode is None else {"action_mode": policy.action_mode}
    given = {**mode, **policy.kwargs}
    return f"{text} ({_keywords(given)})" if given else text


def provenance(data: TrialData, summary: TrialSummary, log: LogCheck | None) -> Facts:
    """Digests and versions that tell this log from any other."""
    facts: Facts = [("Plan", data.plan_digest)]
    if log is not None:
        facts.append(("Check of the log", log.text))
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
    rules = ", ".join(
        f"version {v} ({count(n, 'episode')})" for v, n in summary.score_versions.items()
    )
    facts.append(("Scoring rules", rules or "nothing scored"))
    if isinstance(summary.acc, AccTable) and summary.acc.rows:
        made = panel.provenance()
        facts.append(("Reference panel", f"plan {made.plan_digest}, played by {made.software}"))
    config = summary.config
    resamples = f"{thousands(config.resamples)} resamples, seed {config.seed}"
    intervals = f"{percent(config.level)}, {resamples}"
    facts.append(("Intervals", f"{intervals}; configuration {config.digest}"))
    return facts


def commands(trial: Path, plan: TrialPlan, status: str) -> list[tuple[str, str]]:
    """Commands to go on with it, play it again, check the log and write this report from it."""
    folder = trial.resolve().name
    name = shlex.quote(folder)
    found = []
    if plan.imported is None:
        if status != "complete":
            found.append(("Play what is missing", f"robo-eval resume {name}"))
        locked, again = shlex.quote(f"{folder}/plan.yaml"), shlex.quote(f"{folder}-again")
        found.append(("Play the same plan again", f"robo-eval run {locked} --out {again}"))
    return [
        *found,
        ("Check that no byte of the log changed", f"robo-eval verify {name}"),
        ("Print the numbers", f"robo-eval metrics {name}"),
        ("Write this report from the log", f"robo-eval report {name}"),
    ]


def commands_note(trial: Path, plan: TrialPlan) -> str:
    """From where the commands are to be given, and what Python must find to play again."""
    text = f"Give these commands in the folder that holds {trial.resolve().name}."
    paths = [policy.factory for policy in plan.policies] + [task.env for task in plan.tasks]
    modules = [path.partition(":")[0] for path in paths if path and ":" in path]
    # What comes with robo-eval is always found.
    foreign = [name for name in dict.fromkeys(modules) if name.split(".")[0] != "robo_eval"]
    if plan.imported is not None or not foreign:
        return text
    return (
        f"{text} Playing also needs the {noun_for(len(foreign), 'module')}"
        f" {' and '.join(foreign)}, which the plan names: unless"
        " installed or in that folder, PYTHONPATH must hold the folder that"
        f" {'it is' if len(foreign) == 1 else 'they are'} in."
    )


def settings_note(trial: Path, plan: TrialPlan, summary: TrialSummary) -> str:
    """What else the commands need so that they print the numbers of this report."""
    names = (incident_log.DATABASE, *(f"{kind}.csv" for kind in NAMES))
    beside = {name for name in names if (trial / name).exists()}
    files = [name for name in summary.evidence if name not in beside]
    note = ""
    if summary.config != MetricConfig.of(plan.metrics):
        note += " Settings came from a file: give the same --config."
    named = [f"--metrics {name}" for name in registry.files() if name not in plan.metrics.modules]
    if named:
        note += f" Metrics came from files that were named: give {' '.join(named)} again."
    if files:
        note += f" Evidence came from files that were named: give {', '.join(files)} again."
    return note


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
