"""From the numbers of a trial to what gates read, for each policy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from robo_eval import formulas
from robo_eval.axes.draws import percentile_ends, tallied
from robo_eval.axes.improvement import Streak, streak_of, upkeep_of
from robo_eval.axes.teams import sociality_of
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm, Side
from robo_eval.core.names import unknown_name
from robo_eval.formulas.axes import FULL_DEPTH, HORIZON
from robo_eval.gates.closures import expansions_of
from robo_eval.gates.readings import Readings
from robo_eval.log.evidence import Evidence
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.resampling import mean_interval, stratified_mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.gates.audits import Audit
    from robo_eval.gates.profile import Profile
    from robo_eval.log.evidence import (
        Checkpoint,
        Declaration,
        TeamTrial,
        ToolTrial,
        ToolUse,
    )
    from robo_eval.metrics.config import MetricConfig
    from robo_eval.metrics.robot import RobotResult
    from robo_eval.metrics.summary import TrialSummary

_Note = TypeVar("_Note", bound="Checkpoint | Declaration | TeamTrial | ToolTrial | ToolUse")
_ENOUGH: Final = 0.5
"""Success under mild drift that a category of tools counts from."""
_MILD: Final = "mild"
_RATIO: Final = "ratio"


def readings_of(
    summary: TrialSummary,
    table: pd.DataFrame,
    profile: Profile,
    *,
    evidence: Evidence | None = None,
    audits: Mapping[str, Sequence[Audit]] | None = None,
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

    Raises:
        InputError: If a note names a policy that the trial does not have.
    """
    policies = list(dict.fromkeys(table["policy"]))
    noted = evidence or Evidence()
    _check_names(noted, policies)
    found = []
    for policy in policies:
        robots = {one.side: one for one in summary.robots if one.policy == policy}
        side = next((s for s in (Side.REAL.value, Side.TWIN.value) if s in robots), Side.SIM.value)
        body = robots.get(side)
        own = table[
            (table["policy"] == policy)
            & (table["side"] == side)
            & (table["arm"] == Arm.MAIN.value)
            & table["quality"].notna()
        ]
        points = _of_policy(noted.checkpoints, policy, side)
        uses = _of_policy(noted.tools, policy, side)
        streaks = _streaks(points, profile)
        values = {**_axes(own, summary.config), **_shown(body)}
        if uses:
            values["tools"] = _tools(uses, summary.config.level)
        if streaks:
            values["kappa"] = _best(streaks)
        added = _of_policy(noted.expansion, policy, side)
        if added:
            values["expansion"] = _expansion(added, profile, summary.config)
        teams = _of_policy(noted.teams, policy, side)
        if teams:
            values["sociality"] = sociality_of(teams, level=summary.config.level)
        values |= _declared(_of_policy(noted.declarations, policy, side))
        if points:
            values["maintenance_days"] = _maintenance(points, profile)
        found.append(
            Readings(
                policy=str(policy),
                side=side,
                values=values,
                families=_families(body),
                streaks=streaks,
                events=None if body is None else body.safety.counts,
                audits=tuple((audits or {}).get(str(policy), ())),
                invalid=_invalid(body),
            )
        )
    return tuple(found)


def _check_names(evidence: Evidence, policies: Sequence[str]) -> None:
    for kind in ("tools", "checkpoints", "expansion", "teams", "declarations"):
        for note in getattr(evidence, kind) or ():
            if note.policy is not None and note.policy not in policies:
                problem = unknown_name("policy", note.policy, policies)
                raise InputError(f"{evidence.files.get(kind, kind)}: line {note.line}: {problem}")


def _of_policy(notes: Sequence[_Note] | None, policy: str, side: str) -> list[_Note]:
    """Notes on a policy; one that names none is about every policy of its side."""
    return [note for note in notes or () if note.side == side and note.policy in (None, policy)]


def _invalid(body: RobotResult | None) -> str | None:
    if body is None or body.safety.is_valid:
        return None
    return "a critical incident: the window does not count"


# What a robot showed -----------------------------------------------------------------------------


def _shown(body: RobotResult | None) -> dict[str, Estimate]:
    """Numbers of a body; of a twin the same, which gates of a robot are capped for."""
    if body is None:
        return {}
    found = {
        "ar": body.reliability_exact,
        "ss": body.safety.score,
        "e": body.embodiment,
        "ra": body.recovery,
        "minor_per_100_h": body.safety.rates["minor"],
        "exposure_hours": _hours(body),
    }
    if body.agreement is not None:
        found["s2r"] = body.agreement.agreement
    if body.control:
        found["qc"] = min(
            (one.quality for one in body.control),
            key=lambda one: -1.0 if one.value is None else one.value,
        )
    if "mtbsi" in body.times:
        found["mtbsi"] = body.times["mtbsi"]
    if body.safety.counts is not None:
        for severity in ("major", "critical"):
            found[severity] = _number(float(body.safety.counts[severity]), "incidents")
    return found


def _hours(body: RobotResult) -> Estimate:
    if body.side != Side.REAL.value:
        return _number(0.0, "h", "hours of a twin expose no robot")
    return _number(body.safety.exposure.hours, "h", n=body.safety.exposure.episodes)


def _number(value: float, unit: str, reason: str | None = None, *, n: int = 1) -> Estimate:
    """A count or a measured length, which has no interval to speak of: it is its own."""
    return Estimate(
        value=value, low=value, high=value, n=n, method="counted", unit=unit, reason=reason
    )


def _families(body: RobotResult | None) -> dict[str, Mapping[str, Estimate]]:
    if body is None:
        return {}
    found: dict[str, Mapping[str, Estimate]] = {"ar": body.families}
    if body.agreement is not None:
        agreed = body.agreement
        # A trial of one family has its agreement in the whole.
        found["s2r"] = agreed.families or {"all": agreed.agreement}
    return found


# Axes of the episodes ----------------------------------------------------------------------------


def _axes(own: pd.DataFrame, config: MetricConfig) -> dict[str, Estimate]:
    found = {}
    known = own[own["uninterrupted_actions"].notna()]
    if len(known):
        actions = known["uninterrupted_actions"].to_numpy(dtype=float)
        credit = np.minimum(actions, HORIZON) / HORIZON
        found["autonomy"] = _mean(credit, known["family"].to_numpy(dtype=object), config)
    planned = own[own["plan_depth"].notna()]
    if len(planned):
        depth = planned["plan_depth"].to_numpy(dtype=float)
        solved = planned["success"].to_numpy(dtype=float)
        credit = solved * np.minimum(depth, FULL_DEPTH) / FULL_DEPTH
        found["planning"] = _mean(credit, planned["family"].to_numpy(dtype=object), config)
    stated = own[own["stated_success_probability"].notna()]
    if len(stated):
        p = stated["stated_success_probability"].to_numpy(dtype=float)
        found["world_model"] = _world_model(p, stated["success"].to_numpy(dtype=float), config)
    return found


def _mean(credit: np.ndarray, family: np.ndarray, config: MetricConfig) -> Estimate:
    """Mean over task families of the mean of each."""
    strata = [credit[family == name] for name in dict.fromkeys(family)]
    if len(strata) > 1:
        interval = stratified_mean_interval(
            strata, over="these", level=config.level, resamples=config.resamples, seed=config.seed
        )
    else:
        interval = mean_interval(
            credit, level=config.level, resamples=config.resamples, seed=config.seed
        )
    low, high, reason = interval.low, interval.high, interval.reason
    if low is None and len(credit) > 1 and credit.min() == credit.max():
        # All alike: what bounded values of which none differed may still hide, by Clopper-Pearson
        # for the share of episodes that would differ, at worst by all there is to lose.
        share, _ = clopper_pearson_interval(len(credit), len(credit), level=config.level)
        low, high, reason = interval.value * share, interval.value, None
    return Estimate(
        value=interval.value, low=low, high=high, level=config.level, n=interval.n,
        method=interval.method, unit=_RATIO, reason=reason,
    )  # fmt: skip


def _world_model(p: np.ndarray, y: np.ndarray, config: MetricConfig) -> Estimate:
    """Skill of stated probabilities over the success rate itself, with a bootstrap of episodes."""
    value = formulas.world_model(p, y, float(y.mean()))["w"]
    rng = np.random.default_rng(config.seed)
    at = rng.integers(0, len(p), size=(min(config.resamples, 2000), len(p)))
    drawn = y[at]
    brier = ((p[at] - drawn) ** 2).mean(axis=1)
    reference = ((drawn.mean(axis=1, keepdims=True) - drawn) ** 2).mean(axis=1)
    skill = np.clip(1.0 - brier / np.maximum(reference, 1e-6), 0.0, 1.0)
    low, high = percentile_ends(skill, config.level)
    return Estimate(
        value=value, low=low, high=high, level=config.level, n=len(p),
        method="bootstrap", unit=_RATIO,
    )  # fmt: skip


# What was noted beside the episodes --------------------------------------------------------------


def _tools(uses: Sequence[ToolUse], level: float) -> Estimate:
    """Tool categories that succeed under mild drift: by their share, and by its exact interval."""
    used = tallied((use for use in uses if use.drift == _MILD), lambda use: use.category)
    if not used:
        reason = f"tools.csv has no line with drift {_MILD!r}"
        return Estimate.missing(reason=reason, unit="categories")
    bounds = {name: clopper_pearson_interval(*count, level=level) for name, count in used.items()}
    return Estimate(
        value=float(sum(k / n >= _ENOUGH for k, n in used.values())),
        low=float(sum(low >= _ENOUGH for low, _ in bounds.values())),
        high=float(sum(high >= _ENOUGH for _, high in bounds.values())),
        level=level,
        n=sum(n for _, n in used.values()),
        method="clopper_pearson",
        unit="categories",
    )


def _streaks(points: Sequence[Checkpoint], profile: Profile) -> dict[str, Streak]:
    by_family: dict[str, list[Checkpoint]] = defaultdict(list)
    for point in _all_patched(points):
        by_family[point.family].append(point)
    settings = profile.kappa
    return {
        family: streak_of(
            found,
            least=settings.least,
            window_days=settings.window_days,
            resamples=settings.resamples,
        )
        for family, found in sorted(by_family.items())
    }


def _all_patched(points: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints, each with the patches of every family since the one before of its own.

    A person who changes the policy changes it for all its families, whichever line says so.
    """
    found, last = [], dict[str, int]()
    ordered = sorted(points, key=lambda point: point.time_ns)
    patches = [point for point in ordered if point.human_patches]
    for point in ordered:
        since = last.get(point.family, -1)
        count = sum(one.human_patches for one in patches if since < one.time_ns <= point.time_ns)
        found.append(replace(point, human_patches=count))
        last[point.family] = point.time_ns
    return found


def _best(streaks: Mapping[str, Streak]) -> Estimate:
    def rank(one: Streak) -> tuple[int, float]:
        return one.days, -math.inf if one.kappa.value is None else one.kappa.value

    return max(streaks.values(), key=rank).kappa


def _maintenance(points: Sequence[Checkpoint], profile: Profile) -> Estimate:
    found = upkeep_of(points, share=profile.maintenance.share, drifts=profile.maintenance.drifts)
    return _number(float(found.days), "days", found.reason or None, n=len(points))


def _expansion(trials: Sequence[ToolTrial], profile: Profile, config: MetricConfig) -> Estimate:
    """How many new tools close; one is enough."""
    found = expansions_of(
        trials, share_left=profile.expansion.share_left, level=config.level, seed=config.seed
    )
    if all(one.status == "missing" for one in found):
        return Estimate.missing(reason=found[0].reason, unit="tools")
    passed = sum(one.status == "pass" for one in found)
    why = "; ".join(one.reason for one in found if one.status != "pass")
    return _number(float(passed), "tools", why or None, n=sum(trial.episodes for trial in trials))


def _declared(found: Sequence[Declaration]) -> dict[str, Estimate]:
    """What people vouch for; of several declarations of one thing the newest counts."""
    newest = {one.what: one for one in sorted(found, key=lambda one: one.time_ns)}
    return {
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
