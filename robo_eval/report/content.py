"""What the report of one trial says: log and summary in, named content out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from robo_eval.analysis.acc import AccTable
from robo_eval.core.kinds import Arm
from robo_eval.core.plan import TrialPlan
from robo_eval.metrics.performance import Cell as CellNumbers
from robo_eval.metrics.summary import TrialSummary
from robo_eval.report.clips import choose, clips
from robo_eval.report.facts import (
    commands,
    conditions,
    panel_source,
    panel_warnings,
    provenance,
    synopsis,
)
from robo_eval.report.lengths import lengths_of
from robo_eval.report.model import (
    AgentCurve,
    Cell,
    Characteristic,
    Effect,
    Lengths,
    Report,
    Result,
)
from robo_eval.report.verdict import coverage_warnings, verdict_text

if TYPE_CHECKING:
    from robo_eval.log.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialData:
    """What is known of a trial.

    Attributes:
        path: The trial directory.
        plan: The locked plan.
        plan_text: Its text.
        plan_digest: Its SHA-256.
        status: `"complete"`, or e.g. `"interrupted at 12/40"`.
        manifest: What the trial says of its own making.
        frame: Episodes, one row per attempt.
    """

    path: Path
    plan: TrialPlan
    plan_text: str
    plan_digest: str
    status: str
    manifest: Manifest | None
    frame: pd.DataFrame


def make_report(data: TrialData, summary: TrialSummary) -> Report:
    """The content of a trial's report.

    Args:
        data: The trial.
        summary: Its metrics.
    """
    names = Names(summary)
    results = [
        Result(policy=names.policy(row.side, row.policy), numbers=row) for row in summary.policies
    ]
    verb = "survived" if _is_cartpole(data.plan) else "succeeded"
    order = [result.policy for result in results]
    characteristic, why_not = _characteristic(summary.acc, names, order)
    drawn = clips(choose(data.frame, summary.cells, data.path))
    return Report(
        title=data.plan.name,
        description=data.plan.description,
        status=data.status,
        synopsis=synopsis(data.plan, data.frame),
        results=results,
        verdict=verdict_text(summary, results, data.frame, verb=verb),
        warnings=coverage_warnings(summary, results),
        cells=_cells(summary, names, data.frame),
        effects=_effects(summary, names),
        lengths=_lengths(summary, names, data.frame),
        characteristic=characteristic,
        characteristic_reason=why_not,
        clips=drawn,
        clips_reason="" if drawn else "No episode of this trial left a trace that can be drawn.",
        conditions=conditions(data.plan, data.frame, data.manifest),
        provenance=provenance(data, summary),
        commands=commands(data.path),
        plan_text=data.plan_text,
        verb=verb,
    )


class Names:
    """How policies, panels and columns are called, as short as the trial allows."""

    def __init__(self, summary: TrialSummary) -> None:
        self._has_sides = len({row.side for row in summary.policies}) > 1
        tasks = list(dict.fromkeys((cell.family, cell.profile) for cell in summary.cells))
        self._has_tasks = len(tasks) > 1
        self._has_profiles = len({family for family, _ in tasks}) < len(tasks)

    def policy(self, side: str, policy: str) -> str:
        """The policy, and the side where there are several."""
        return f"{policy} ({side})" if self._has_sides else policy

    def task(self, family: str | None, profile: str | None) -> str:
        """The task family where there are several, the profile where one family has several."""
        if not self._has_tasks:
            return ""
        return f"{family} {profile}" if self._has_profiles and profile else f"{family}"

    def panel(self, cell: CellNumbers) -> str:
        """What groups the columns a cell stands in."""
        if cell.level is None:
            return ""
        parts = [self.task(cell.family, cell.profile), cell.difficulty or ""]
        return ", ".join(part for part in parts if part)

    def column(self, cell: CellNumbers) -> str:
        """What a cell stands under."""
        return cell.family if cell.level is None else str(cell.level)


def _is_cartpole(plan: TrialPlan) -> bool:
    return all(task.env.startswith("RoboEval/CartPole3D") for task in plan.tasks)


def _cells(summary: TrialSummary, names: Names, frame: pd.DataFrame) -> list[Cell]:
    level_names = _level_names(frame)
    return [
        Cell(
            policy=names.policy(cell.side, cell.policy),
            panel=names.panel(cell),
            column=names.column(cell),
            column_name=level_names.get(cell.level, ""),
            numbers=cell,
        )
        for cell in summary.cells
    ]


def _level_names(frame: pd.DataFrame) -> dict[int | None, str]:
    """What the log calls each level: the name of the novelty most of its episodes had."""
    counts: dict[int, Counter[str]] = {}
    main = frame[frame["arm"] == Arm.MAIN.value]
    for level, novelty in zip(main["level"], main["novelty"], strict=True):
        if pd.notna(level) and isinstance(novelty, Mapping) and novelty.get("name"):
            counts.setdefault(int(level), Counter())[str(novelty["name"])] += 1
    found = {level: names.most_common(1)[0][0] for level, names in counts.items()}
    return {
        level: "no novelty" if name == "none" else name.replace("_", " ")
        for level, name in found.items()
    }


def _effects(summary: TrialSummary, names: Names) -> list[Effect]:
    """Differences by level, which rest on three times the pairs of a single cell."""
    found = []
    for effect in summary.effects.levels:
        task = names.task(effect.family, effect.profile)
        level = "" if effect.level is None else str(effect.level)
        found.append(
            Effect(
                policy=names.policy(effect.side, effect.policy),
                label=" ".join(part for part in (task, level) if part) or "all",
                difference=effect.difference,
                n_pairs=effect.n_pairs,
                verdict=effect.verdict,
            )
        )
    return found


def _lengths(summary: TrialSummary, names: Names, frame: pd.DataFrame) -> list[Lengths]:
    shown = frame[(frame["arm"] == Arm.MAIN.value) & frame["success"].notna()]
    end = float(shown["duration_s"].max()) if len(shown) else 0.0
    found = []
    for row in summary.policies:
        own = shown[(shown["side"] == row.side) & (shown["policy"] == row.policy)]
        lengths = lengths_of(own, names.policy(row.side, row.policy), end_s=end)
        if lengths is not None:
            found.append(lengths)
    return found


def _characteristic(
    acc: object, names: Names, order: Sequence[str]
) -> tuple[Characteristic | None, str]:
    if not isinstance(acc, AccTable):
        return None, "Not asked for."
    if not acc.rows or acc.h0 is None or acc.q is None or not acc.h0 < acc.q:
        return None, f"Not defined for this trial: {acc.reason or 'all items are equally hard'}."
    by_name = {names.policy(row.side, row.policy): row for row in acc.rows}
    by_name = {name: by_name[name] for name in order if name in by_name}
    curves = [
        AgentCurve(
            policy=name,
            difficulty=row.levels[~pd.isna(row.curve)].tolist(),
            response=row.curve[~pd.isna(row.curve)].tolist(),
            capability=row.capability,
            spread=row.spread,
            generality=row.normalised_generality,
            flag=_note(row.flag, row.unreliable),
        )
        for name, row in by_name.items()
    ]
    warnings = list(dict.fromkeys(row.unreliable for row in acc.rows if row.unreliable))
    text = [f"{warning[:1].upper()}{warning[1:]}." for warning in warnings]
    text += panel_warnings()
    if acc.left_out:
        text.append(f"Left out of the curves: {_listed(acc.left_out)}.")
    shown = Characteristic(
        curves=curves, start=acc.h0, end=acc.q, source=panel_source(), warnings=text
    )
    return shown, ""


def _note(flag: str | None, unreliable: str | None) -> str | None:
    parts = [flag.replace("_", " ") if flag else "", "unreliable" if unreliable else ""]
    return ", ".join(part for part in parts if part) or None


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
