"""The quantities gates read beside the numbers of metrics: a function for each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from robo_eval import formulas
from robo_eval.core.estimate import Estimate
from robo_eval.gates.axes.cognition import CORE, core_score
from robo_eval.gates.axes.experts import innovation as innovation_of
from robo_eval.gates.axes.tools import categories_under_mild_drift
from robo_eval.gates.quantity import REGISTERED, Quantity
from robo_eval.log.evidence import PROBES

if TYPE_CHECKING:
    from robo_eval.gates.axes.improvement import Streak
    from robo_eval.gates.axes.settings import ProgressSettings
    from robo_eval.gates.evidence import Judged

_MONTH_NS: Final = 30.4375 * 86_400 * 1e9
_OVER_RESOURCES: Final = "measure capability over resources, by family and day: checkpoints.csv"
_PROFESSIONALS: Final = "measure how human professionals do in each family: experts.csv"
_RETRIEVAL: Final = "measure items returned and verified: retrieval.csv"
_TOOLS: Final = "measure the success of tool categories under drift: tools.csv"


def _axis(axis: str, name: str, remedy: str, noun: str = "") -> None:
    """Register an axis as it was measured: anchors that a file names move no threshold of a gate.

    Args:
        axis: One of `formulas.AXES`.
        name: What profiles call it.
        remedy: What supplies it.
        noun: What its sample is counted in, more of which narrow its interval.
    """

    def raw(own: Judged) -> Estimate:
        return own.axis(axis).raw

    Quantity(name, remedy, axis=axis, noun=noun, more=noun, is_share=True)(raw)


def _probe(name: str, probe: str) -> None:
    """Register a cognitive probe without tools, with which it shows something else."""

    def ratio(own: Judged) -> Estimate | None:
        return {one.probe: one.ratio for one in own.probes if not one.assisted}.get(probe)

    Quantity(name, f"measure the probe {probe}: probes.csv")(ratio)


def _declared(name: str, remedy: str, *, is_duration: bool = False) -> None:
    """Register what people vouch for."""

    def newest(own: Judged) -> Estimate | None:
        return own.declared.get(name)

    Quantity(name, remedy, kind="duration" if is_duration else "threshold", is_vouched=True)(newest)


def _steps_from(level: int) -> None:
    """Register the steps of the index beyond what it was when a level was reached."""
    milestone = f"milestone_{level}"

    def steps(own: Judged) -> Estimate | None:
        if milestone not in own.declared:
            return None
        return _steps(own.declared[milestone], own.index.index, own.profile.progress)

    remedy = f"record the index at which level {level} was reached: {milestone}"
    Quantity(f"steps_from_{level}", remedy, is_vouched=True)(steps)


# Messages about an unknown name list them in this order.
_axis("A", "autonomy", "have the run count uninterrupted_actions of each episode", "episode")
_axis(
    "P", "planning", "have the run log plan_depth of each episode of a multi-stage task", "episode"
)


@Quantity("tools", _TOOLS, needs="tools", noun="episode")
def tools(own: Judged) -> Estimate:
    """Tool categories that succeed under mild drift."""
    return categories_under_mild_drift(own.noted.tools or (), own.level)


@Quantity("generality", "play episodes of several task families", axis="G", is_share=True)
def generality(own: Judged) -> Estimate:
    """Share of the task families that are covered."""
    if len(own.played) == 1:
        reason = "one task family says nothing of generality"
        return Estimate.missing(reason=reason, unit="ratio")
    return own.axis("G").raw


_axis("M", "memory", "measure what is still known after days: retention.csv and retrieval.csv")
_axis("T", "tool_economy", _TOOLS)
_axis("R", "self_revision", "measure what it changed about itself, and the effect: revisions.csv")


@Quantity(
    "throughput",
    "give a price card in the plan, metrics.price_card, and anchors.csv for $",
    axis="$",
    is_share=True,
)
def throughput(own: Judged) -> Estimate:
    """Work for money between its anchors, without which it has no meaning."""
    return own.axis("$").value


@Quantity("core", "it needs the axes G, P, M and W", is_share=True)
def core(own: Judged) -> Estimate:
    """Geometric mean of four axes."""
    axes = {name: own.axis(name) for name in CORE}
    return core_score(
        {name: axis.value.value for name, axis in axes.items()},
        draws={name: axis.draws for name, axis in axes.items() if axis.draws is not None},
        n=sum(axis.value.n for axis in axes.values()),
        level=own.level,
    )


@Quantity("vrp", _RETRIEVAL, needs="retrieval", is_share=True)
def vrp(own: Judged) -> Estimate:
    """Verified items of those that were asked for."""
    return own.retrieved.precision


@Quantity("hr", _RETRIEVAL, needs="retrieval", is_share=True)
def hr(own: Judged) -> Estimate:
    """Returned items that are not verified."""
    return own.retrieved.hallucination


for _name, _noted in zip(("memory_span", "recall_1_day", "recall_7_days"), PROBES, strict=True):
    _probe(_name, _noted)


@Quantity("acceleration", _OVER_RESOURCES, needs="checkpoints")
def acceleration(own: Judged) -> Mapping[str, Estimate]:
    """Whether the improvement of each family speeds up."""
    found = {}
    for name, one in own.progress.items():
        bend = one.mean_curvature
        # What is above 0 by no more than rounding is a straight line.
        is_straight = bend.low is not None and bend.low > 0.0 and not one.accelerates
        found[name] = replace(bend, low=0.0) if is_straight else bend
    return found


@Quantity("curvature", _OVER_RESOURCES, needs="checkpoints")
def curvature(own: Judged) -> Mapping[str, Estimate]:
    """Whether the improvement of each family slows down in the end."""
    return {name: one.curvature for name, one in own.progress.items()}


@Quantity("elasticity", _OVER_RESOURCES, needs="checkpoints")
def elasticity(own: Judged) -> Mapping[str, Estimate]:
    """Whether more resources pay each family more."""
    return {name: one.elasticity for name, one in own.progress.items()}


_steps_from(2)
_steps_from(4)


@Quantity("expert_families", _PROFESSIONALS, is_share=True)
def expert_families(own: Judged) -> Estimate | None:
    """Families that are at least as good as human professionals."""
    return None if own.margins is None else _counted(own.margins.at_least_human)


@Quantity("superhuman_families", _PROFESSIONALS, is_share=True)
def superhuman_families(own: Judged) -> Estimate | None:
    """Families that are better."""
    return None if own.margins is None else _counted(own.margins.superhuman)


_declared("throughput_ratio", "compare tasks per cost with an ensemble of experts")


@Quantity(
    "innovation", "measure new tools and revisions: expansion.csv and revisions.csv", is_share=True
)
def innovation(own: Judged) -> Estimate | None:
    """New tools that close and revisions that count, a month; None where neither was noted."""
    start = own.episodes["start_ns"].dropna().astype("int64")
    if (own.noted.expansion is None and own.noted.revisions is None) or not len(start):
        return None
    # A window shorter than a month is none to extrapolate from.
    months = max(1.0, float(start.max() - start.min()) / _MONTH_NS)
    new = sum(one.status == "pass" for one in own.expansions)
    changes = sum(one.counts for one in own.changes.revisions)
    full = own.profile.innovation
    found = innovation_of(
        new, changes, months, tools_per_month=full.tools, revisions_per_month=full.revisions
    )
    text = f"{new} new tools and {changes} revisions in {months:.1f} months"
    return replace(_counted(found), reason=text)


_declared("project_days", "carry a project for days", is_duration=True)


@Quantity(
    "kappa",
    "measure capability and resources by day and family: checkpoints.csv",
    needs="checkpoints",
    noun="checkpoint",
)
def kappa(own: Judged) -> Estimate:
    """Self-improvement of the family with the longest streak."""

    def rank(one: Streak) -> tuple[int, float]:
        return one.days, -math.inf if one.kappa.value is None else one.kappa.value

    return max(own.streaks.values(), key=rank).kappa


@Quantity(
    "maintenance_days",
    "measure capability by day through a drift calendar: checkpoints.csv",
    needs="checkpoints",
    kind="closure",
)
def maintenance_days(own: Judged) -> Estimate:
    """Days in a row on which it kept what it could do."""
    kept, n = own.upkeep, len(own.checkpoints)
    return Estimate.exact(float(kept.days), unit="days", n=n, reason=kept.reason or None)


@Quantity(
    "expansion",
    "measure success before, after and without a new tool: expansion.csv",
    needs="expansion",
    kind="closure",
)
def expansion(own: Judged) -> Estimate:
    """How many new tools close; one is enough."""
    found = own.expansions
    if all(one.status == "missing" for one in found):
        return Estimate.missing(reason=found[0].reason, unit="tools")
    passed = sum(one.status == "pass" for one in found)
    why = "; ".join(one.reason for one in found if one.status != "pass")
    n = sum(trial.episodes for trial in own.noted.expansion or ())
    return Estimate.exact(float(passed), unit="tools", n=n, reason=why or None)


_axis("S", "sociality", "measure episodes with one robot and with several: teams.csv")
_axis(
    "W",
    "world_model",
    "have the policy state its probability of success before each episode",
    "episode",
)
_declared("delivery", "deliver in novel workcells")
_declared("cost_ratio", "compare the cost with an expert team")
_declared("domain_audit", "have the domain audited")

QUANTITIES: Final[Mapping[str, str]] = MappingProxyType(
    {name: one.remedy for name, one in REGISTERED.items()}
)
"""What gates read beside the numbers of metrics, and what supplies it where it is missing."""


def _counted(found: Estimate) -> Estimate:
    """A count, which is its own interval; see `Estimate.exact`."""
    return replace(found, low=found.value, high=found.value, method="counted")


def _steps(milestone: Estimate, index: Estimate, settings: ProgressSettings) -> Estimate:
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
