"""From the numbers of a trial to what gates read, for each policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from robo_eval import formulas
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import strongest_side
from robo_eval.core.number import Numbers
from robo_eval.gates.axes.anchors import axes_of
from robo_eval.gates.axes.cognition import (
    CORE,
    core_score,
    covered_abilities,
    probe_results,
    retrieved_of,
)
from robo_eval.gates.axes.experts import Margins, innovation, margins_of
from robo_eval.gates.axes.improvement import Streak, patched_by_family, streak_of, upkeep_of
from robo_eval.gates.axes.index import Index, index_of
from robo_eval.gates.axes.progress import Progress, index_over_time, progress_by_family
from robo_eval.gates.axes.revision import RevisionResult, revisions_measured
from robo_eval.gates.axes.tools import categories_under_mild_drift
from robo_eval.gates.battery import battery_of
from robo_eval.gates.closures import Expansion, expansions_of
from robo_eval.gates.readings import AXIS_QUANTITIES, Readings
from robo_eval.log.evidence import ABOUT_POLICIES, PROBES, Evidence
from robo_eval.metrics import registry
from robo_eval.metrics.registered.recovery import recovery_of_all
from robo_eval.metrics.registered.safety import harm_of
from robo_eval.metrics.trials import once_in_trials

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.gates.audits import Audit
    from robo_eval.gates.axes.anchors import Axis
    from robo_eval.gates.axes.cognition import ProbeResult
    from robo_eval.gates.axes.settings import ProgressSettings
    from robo_eval.gates.profile import Innovation, Profile
    from robo_eval.log.evidence import Checkpoint, Declaration, ToolTrial
    from robo_eval.metrics.body import Body
    from robo_eval.metrics.config import MetricConfig
    from robo_eval.metrics.summary import TrialSummary

_RATIO: Final = "ratio"
_MONTH_NS: Final = 30.4375 * 86_400 * 1e9
_PROBES: Final = dict(zip(("memory_span", "recall_1_day", "recall_7_days"), PROBES, strict=True))
"""Quantities of the probes that gates read."""


def readings_of(
    summary: TrialSummary,
    table: pd.DataFrame,
    profile: Profile,
    *,
    evidence: Evidence | None = None,
    audits: Mapping[str, Sequence[Audit]] | None = None,
    grounds: Mapping[str, tuple[str, ...]] | None = None,
    plan: TrialPlan | None = None,
) -> tuple[Readings, ...]:
    """What gates read of each policy of a trial.

    A policy is judged by the episodes on a robot; without one on a twin; else in simulation. What
    a twin or a simulator showed is not passed on as if a robot had.

    Args:
        summary: Numbers of the trial.
        table: Its episodes, of `metrics.frame.episodes_frame`.
        profile: Settings of slopes and closures.
        evidence: What was noted beside the episodes.
        audits: Of each policy.
        grounds: What a reader has to know of the evidence on each policy.
        plan: The locked plan, for the checks of the battery; without one they are not made.
    """
    policies = [str(name) for name in dict.fromkeys(table["policy"])]
    noted = evidence or Evidence()
    found = []
    for policy in policies:
        told = {one.side: one for one in summary.bodies if one.policy == policy}
        bodies = {side: one.strict for side, one in told.items()}
        side = strongest_side(bodies).value
        own = _Own(
            policy=policy,
            side=side,
            body=bodies.get(side),
            episodes=once_in_trials(bodies[side].episodes if side in bodies else table.iloc[:0]),
            noted=_of_policy(noted, policy, side),
            config=summary.config,
        )
        readings = _readings(own, profile)
        if plan is not None:
            checks = battery_of(
                plan, table, profile.battery, policy=policy, side=side,
                tools=own.noted.tools or (), checkpoints=own.noted.checkpoints or (),
                declarations=own.noted.declarations or (),
            )  # fmt: skip
            readings = replace(readings, battery=checks)
        own_audits = tuple((audits or {}).get(policy, ()))
        readings = replace(
            readings, origin=summary.origin, audits=own_audits,
            grounds=(grounds or {}).get(policy, ()),
        )  # fmt: skip
        if side in told:
            out = told[side].left_out
            readings = replace(readings, left_out=out.problem, left_out_allowed=out.allowed)
        found.append(readings)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Own:
    """All there is on one policy, on the side it is judged on."""

    policy: str
    side: str
    body: Body | None
    episodes: pd.DataFrame
    noted: Evidence
    config: MetricConfig

    @property
    def robot(self) -> Body | None:
        """The body, if it is a robot or a twin of one."""
        return self.body if self.side in registry.PHYSICAL else None

    @property
    def played(self) -> tuple[str, ...]:
        """Task families that were played, in order of name."""
        return tuple(sorted(map(str, self.episodes["family"].unique())))


def _readings(own: _Own, profile: Profile) -> Readings:
    points, config = own.noted.checkpoints or (), own.config
    streaks = _streaks(points, profile)
    progress = progress_by_family(points, profile.progress, level=config.level)
    changes = revisions_measured(
        own.noted.revisions, profile.axes,
        share_left=profile.expansion.share_left, level=config.level,
        resamples=profile.index.resamples, seed=config.seed,
    )  # fmt: skip
    axes = axes_of(
        own.episodes, own.robot, own.noted, profile.axes,
        revision=changes.measured, level=config.level,
        resamples=profile.index.resamples, seed=config.seed,
    )  # fmt: skip
    index = index_of(axes, profile.index, level=config.level, seed=config.seed)
    # Raw: no anchors that a file names may move the threshold of a gate. $ has no other meaning.
    # E of a robot is a number of its own.
    values = {
        AXIS_QUANTITIES[axis.name]: axis.value if axis.name == "$" else axis.raw
        for axis in axes
        if axis.name != "E" or own.robot is None
    }
    if len(own.played) == 1:
        reason = "one task family says nothing of generality"
        values["generality"] = Estimate.missing(reason=reason, unit=_RATIO)
    if own.robot is not None:
        values |= harm_of(own.robot)
        values["RA"] = recovery_of_all(own.robot)
    values |= _grown(own, profile, changes.revisions)
    if own.noted.tools:
        values["tools"] = categories_under_mild_drift(own.noted.tools, config.level)
    if streaks:
        values["kappa"] = _best(streaks)
    upkeep = None
    if points:
        kept = profile.maintenance
        upkeep = upkeep_of(points, share=kept.share, drifts=kept.drifts)
        days, why = float(upkeep.days), upkeep.reason or None
        values["maintenance_days"] = Estimate.exact(days, unit="days", n=len(points), reason=why)
    probes = probe_results(own.noted.probes or (), level=config.level)
    values |= _cognition(own, axes, probes, profile)
    margins = None
    if own.noted.experts is not None:
        margins = margins_of(own.episodes, own.noted.experts, level=config.level)
        values |= _against_experts(margins)
    values |= _declared(own.noted.declarations or (), index, profile.progress)
    return Readings(
        policy=own.policy,
        side=own.side,
        values=values,
        numbers=Numbers() if own.body is None else own.body.numbers,
        played=own.played,
        families={**_families(own.robot), **_bends(progress)},
        streaks=streaks,
        events=None if own.robot is None else own.robot.counts,
        axes=axes,
        index=index,
        progress=progress,
        days=index_over_time(points),
        upkeep=upkeep,
        revisions=changes.revisions,
        margins=margins,
        probes=probes,
        crosswalk=covered_abilities(own.noted.probes or ()),
        invalid=_invalid(own.robot),
        unusual=config.unusual,
        confidence=config.level,
    )


def _bends(progress: Mapping[str, Progress]) -> dict[str, Mapping[str, Estimate]]:
    """Of each family whether its improvement speeds up, slows down, and pays more the more."""
    if not progress:
        return {}
    found: dict[str, dict[str, Estimate]] = {"acceleration": {}, "curvature": {}, "elasticity": {}}
    for name, one in progress.items():
        bend = one.mean_curvature
        # What is above 0 by no more than rounding is a straight line.
        if bend.low is not None and bend.low > 0.0 and not one.accelerates:
            bend = replace(bend, low=0.0)
        found["acceleration"][name] = bend
        found["curvature"][name] = one.curvature
        found["elasticity"][name] = one.elasticity
    return dict(found)


def _grown(own: _Own, profile: Profile, revisions: Sequence[RevisionResult]) -> dict[str, Estimate]:
    """The expansion closure, and how much that is new came in a month."""
    found = {}
    expansions = _expansions(own, profile)
    if own.noted.expansion:
        found["expansion"] = _expansion(expansions, own.noted.expansion)
    new = _innovation(own, expansions, revisions, profile.innovation)
    if new is not None:
        found["innovation"] = new
    return found


def _of_policy(noted: Evidence, policy: str, side: str) -> Evidence:
    """Notes on a policy; one that names none is about every policy of its side."""
    found: dict[str, Any] = {}
    for kind in ABOUT_POLICIES:
        notes = getattr(noted, kind)
        if notes is not None:
            found[kind] = tuple(
                note for note in notes if note.side == side and note.policy in (None, policy)
            )
    return replace(noted, **found)


def _invalid(body: Body | None) -> str | None:
    if body is None or not (body.counts or {}).get("critical"):
        return None
    return "a critical incident: the window does not count"


# What a robot showed -----------------------------------------------------------------------------


def _families(body: Body | None) -> dict[str, Mapping[str, Estimate]]:
    """Of a trial of one family its agreement, which it has in the whole."""
    found = None if body is None else body.agreement
    return {} if found is None or found.families else {"S2R": {"all": found.agreement}}


# What was noted beside the episodes --------------------------------------------------------------


def _streaks(points: Sequence[Checkpoint], profile: Profile) -> dict[str, Streak]:
    settings = profile.kappa
    return {
        family: streak_of(
            found,
            least=settings.least,
            window_days=settings.window_days,
            resamples=settings.resamples,
        )
        for family, found in patched_by_family(points).items()
    }


def _best(streaks: Mapping[str, Streak]) -> Estimate:
    def rank(one: Streak) -> tuple[int, float]:
        return one.days, -math.inf if one.kappa.value is None else one.kappa.value

    return max(streaks.values(), key=rank).kappa


def _expansions(own: _Own, profile: Profile) -> tuple[Expansion, ...]:
    return expansions_of(
        own.noted.expansion or (), share_left=profile.expansion.share_left,
        level=own.config.level, seed=own.config.seed,
    )  # fmt: skip


def _expansion(found: Sequence[Expansion], trials: Sequence[ToolTrial]) -> Estimate:
    """How many new tools close; one is enough."""
    if all(one.status == "missing" for one in found):
        return Estimate.missing(reason=found[0].reason, unit="tools")
    passed = sum(one.status == "pass" for one in found)
    why = "; ".join(one.reason for one in found if one.status != "pass")
    return Estimate.exact(
        float(passed), unit="tools", n=sum(trial.episodes for trial in trials), reason=why or None
    )


def _innovation(
    own: _Own, expansions: Sequence[Expansion], revisions: Sequence[RevisionResult], by: Innovation
) -> Estimate | None:
    """New tools that close and revisions that count, a month; None where neither was noted."""
    start = own.episodes["start_ns"].dropna().astype("int64")
    if (own.noted.expansion is None and own.noted.revisions is None) or not len(start):
        return None
    # A window shorter than a month is none to extrapolate from.
    months = max(1.0, float(start.max() - start.min()) / _MONTH_NS)
    tools = sum(one.status == "pass" for one in expansions)
    changes = sum(one.counts for one in revisions)
    found = innovation(
        tools, changes, months, tools_per_month=by.tools, revisions_per_month=by.revisions
    )
    text = f"{tools} new tools and {changes} revisions in {months:.1f} months"
    return replace(_counted(found), reason=text)


def _counted(found: Estimate) -> Estimate:
    """A count, which is its own interval; see `Estimate.exact`."""
    return replace(found, low=found.value, high=found.value, method="counted")


# Cognition, experts, declarations ----------------------------------------------------------------


def _cognition(
    own: _Own, axes: Sequence[Axis], probes: Sequence[ProbeResult], profile: Profile
) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    level = own.config.level
    if own.noted.retrieval:
        shown = retrieved_of(own.noted.retrieval, k=profile.axes.recall_k, level=level)
        found |= {"vrp": shown.precision, "hr": shown.hallucination}
    # With tools a probe shows something else.
    ratios = {one.probe: one.ratio for one in probes if not one.assisted}
    found |= {quantity: ratios[name] for quantity, name in _PROBES.items() if name in ratios}
    known = {axis.name: axis for axis in axes}
    draws = {name: known[name].draws for name in CORE}
    found["core"] = core_score(
        {name: known[name].value.value for name in CORE},
        draws={name: drawn for name, drawn in draws.items() if drawn is not None},
        n=sum(known[name].value.n for name in CORE),
        level=level,
    )
    return found


def _against_experts(margins: Margins) -> dict[str, Estimate]:
    return {
        "expert_families": _counted(margins.at_least_human),
        "superhuman_families": _counted(margins.superhuman),
    }


def _declared(
    found: Sequence[Declaration], index: Index, settings: ProgressSettings
) -> dict[str, Estimate]:
    """What people vouch for; of several declarations of one thing the newest counts."""
    newest = {one.what: one for one in sorted(found, key=lambda one: one.time_ns)}
    values = {
        what: Estimate(
            value=one.value,
            low=one.value if one.low is None else one.low,
            high=one.value if one.high is None else one.high,
            n=one.n,
            method="declared",
            unit="",
            reason=f"declared by {one.by}: {one.document}",
        )
        for what, one in newest.items()
    }
    values.pop("seeds_escrow", None)  # read by a check of the battery, and by no gate
    for level in (2, 4):
        milestone = values.pop(f"milestone_{level}", None)
        if milestone is not None:
            values[f"steps_from_{level}"] = _steps(index.index, milestone, settings)
    return values


def _steps(index: Estimate, milestone: Estimate, settings: ProgressSettings) -> Estimate:
    """Steps of the index beyond a milestone, at the ends that speak against it and for it."""
    if index.value is None or milestone.value is None:
        return Estimate.missing(reason=index.reason or "no index", unit="steps")

    def between(start: float | None, end: float | None) -> float | None:
        if start is None or end is None:
            return None
        return formulas.link_steps_between(min(start, 1.0), end, settings.delta, settings.link)

    return Estimate(
        value=between(milestone.value, index.value),
        low=between(milestone.high, index.low),
        high=between(milestone.low, index.high),
        level=index.level,
        n=index.n,
        method=index.method,
        unit="steps",
        reason=index.reason,
    )
