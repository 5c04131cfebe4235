"""From the numbers of a trial to what gates read, for each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import strongest_side
from robo_eval.core.number import Numbers
from robo_eval.gates.axes.anchors import Axis, axes_of
from robo_eval.gates.axes.cognition import (
    ProbeResult,
    Retrieved,
    probe_results,
    retrieved_of,
)
from robo_eval.gates.axes.experts import Margins, margins_of
from robo_eval.gates.axes.improvement import (
    Streak,
    Upkeep,
    patched_by_family,
    streak_of,
    upkeep_of,
)
from robo_eval.gates.axes.index import Index, index_of
from robo_eval.gates.axes.progress import Progress, index_over_time, progress_by_family
from robo_eval.gates.axes.revision import RevisionAxis, revisions_measured
from robo_eval.gates.battery import battery_of
from robo_eval.gates.closures import Expansion, expansions_of
from robo_eval.gates.quantity import REGISTERED
from robo_eval.gates.readings import Readings
from robo_eval.log.evidence import ABOUT_POLICIES, Evidence
from robo_eval.metrics import registry
from robo_eval.metrics.registered.recovery import recovery_of_all
from robo_eval.metrics.registered.safety import harm_of
from robo_eval.metrics.trials import once_in_trials

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.gates.audits import Audit
    from robo_eval.gates.profile import Profile
    from robo_eval.log.evidence import Checkpoint
    from robo_eval.metrics.body import Body
    from robo_eval.metrics.config import MetricConfig
    from robo_eval.metrics.summary import TrialSummary

_INVALID: Final = "a critical incident: the window does not count"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One policy on the side it is judged on: what is read of it, each worked out once.

    Attributes:
        policy: Its name.
        side: The side.
        body: Its numbers there; None without an episode.
        episodes: Its scored episodes there.
        noted: What was noted on it, and nothing on other policies.
        config: Settings of the metrics.
        profile: Settings of axes, slopes and closures.
    """

    policy: str
    side: str
    body: Body | None
    episodes: pd.DataFrame
    noted: Evidence
    config: MetricConfig
    profile: Profile

    @property
    def level(self) -> float:
        """Coverage of intervals."""
        return self.config.level

    @property
    def robot(self) -> Body | None:
        """The body, if it is a robot or a twin of one."""
        return self.body if self.side in registry.PHYSICAL else None

    @property
    def played(self) -> tuple[str, ...]:
        """Task families that were played, in order of name."""
        return tuple(sorted(map(str, self.episodes["family"].unique())))

    # Axes ----------------------------------------------------------------------------------------

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The ten axes."""
        return axes_of(
            self.episodes, self.robot, self.noted, self.profile.axes,
            revision=self.changes.measured, level=self.level,
            resamples=self.profile.index.resamples, seed=self.config.seed,
        )  # fmt: skip

    def axis(self, name: str) -> Axis:
        """One of them."""
        return next(axis for axis in self.axes if axis.name == name)

    @cached_property
    def index(self) -> Index:
        """What they add up to."""
        return index_of(self.axes, self.profile.index, level=self.level, seed=self.config.seed)

    @cached_property
    def changes(self) -> RevisionAxis:
        """Its changes to itself."""
        return revisions_measured(
            self.noted.revisions, self.profile.axes,
            share_left=self.profile.expansion.share_left, level=self.level,
            resamples=self.profile.index.resamples, seed=self.config.seed,
        )  # fmt: skip

    # Over time -----------------------------------------------------------------------------------

    @property
    def checkpoints(self) -> Sequence[Checkpoint]:
        """What it could do over time."""
        return self.noted.checkpoints or ()

    @cached_property
    def progress(self) -> dict[str, Progress]:
        """How each task family went on."""
        return progress_by_family(self.checkpoints, self.profile.progress, level=self.level)

    @cached_property
    def streaks(self) -> dict[str, Streak]:
        """Days in a row on which each family improved itself."""
        settings = self.profile.kappa
        return {
            family: streak_of(
                found,
                least=settings.least,
                window_days=settings.window_days,
                resamples=settings.resamples,
            )
            for family, found in patched_by_family(self.checkpoints).items()
        }

    @cached_property
    def upkeep(self) -> Upkeep:
        """For how long it kept what it could do."""
        kept = self.profile.maintenance
        return upkeep_of(self.checkpoints, share=kept.share, drifts=kept.drifts)

    @cached_property
    def expansions(self) -> tuple[Expansion, ...]:
        """What new tools brought."""
        return expansions_of(
            self.noted.expansion or (), share_left=self.profile.expansion.share_left,
            level=self.level, seed=self.config.seed,
        )  # fmt: skip

    # Beside people -------------------------------------------------------------------------------

    @cached_property
    def retrieved(self) -> Retrieved:
        """What it returned on request."""
        return retrieved_of(
            self.noted.retrieval or (), k=self.profile.axes.recall_k, level=self.level
        )

    @cached_property
    def probes(self) -> tuple[ProbeResult, ...]:
        """Cognitive probes."""
        return probe_results(self.noted.probes or (), level=self.level)

    @cached_property
    def margins(self) -> Margins | None:
        """How it did beside human professionals; None if that was not noted."""
        if self.noted.experts is None:
            return None
        return margins_of(self.episodes, self.noted.experts, level=self.level)

    @cached_property
    def declared(self) -> dict[str, Estimate]:
        """What people vouch for; of several declarations of one thing the newest counts."""
        ordered = sorted(self.noted.declarations or (), key=lambda one: one.time_ns)
        return {
            one.what: Estimate(
                value=one.value,
                low=one.value if one.low is None else one.low,
                high=one.value if one.high is None else one.high,
                n=one.n,
                method="declared",
                unit="",
                reason=f"declared by {one.by}: {one.document}",
            )
            for one in ordered
        }


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
    found = []
    for policy in map(str, dict.fromkeys(table["policy"])):
        told = {one.side: one for one in summary.bodies if one.policy == policy}
        side = strongest_side(told).value
        body = told[side].strict if side in told else None
        own = Judged(
            policy=policy,
            side=side,
            body=body,
            episodes=once_in_trials(table.iloc[:0] if body is None else body.episodes),
            noted=_of_policy(evidence or Evidence(), policy, side),
            config=summary.config,
            profile=profile,
        )
        out = told[side].left_out if side in told else None
        readings = replace(
            _readings(own),
            origin=summary.origin,
            audits=tuple((audits or {}).get(policy, ())),
            grounds=(grounds or {}).get(policy, ()),
            battery=() if plan is None else _battery(own, plan, table),
            left_out="" if out is None else out.problem,
            left_out_allowed="" if out is None else out.allowed,
        )
        found.append(readings)
    return tuple(found)


def _battery(own: Judged, plan: TrialPlan, table: pd.DataFrame) -> tuple[Audit, ...]:
    return battery_of(
        plan, table, own.profile.battery, policy=own.policy, side=own.side,
        tools=own.noted.tools or (), checkpoints=own.checkpoints,
        declarations=own.noted.declarations or (),
    )  # fmt: skip


def _readings(own: Judged) -> Readings:
    computed = {
        name: one.compute(own)
        for name, one in REGISTERED.items()
        if one.compute and (not one.needs or getattr(own.noted, one.needs))
    }
    values = {name: one for name, one in computed.items() if isinstance(one, Estimate)}
    families = {name: one for name, one in computed.items() if isinstance(one, Mapping)}
    return Readings(
        policy=own.policy,
        side=own.side,
        values=values | _read_otherwise(own),
        numbers=Numbers() if own.body is None else own.body.numbers,
        played=own.played,
        families=families | _families(own.robot),
        streaks=own.streaks,
        events=None if own.robot is None else own.robot.counts,
        axes=own.axes,
        index=own.index,
        progress=own.progress,
        days=index_over_time(own.checkpoints),
        upkeep=own.upkeep if own.checkpoints else None,
        revisions=own.changes.revisions,
        margins=own.margins,
        probes=own.probes,
        invalid=_invalid(own.robot),
        unusual=own.config.unusual,
        confidence=own.level,
    )


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
    return _INVALID if body is not None and body.critical else None


def _read_otherwise(own: Judged) -> dict[str, Estimate]:
    """Numbers of metrics of which gates read something else than is shown."""
    if own.robot is None:
        return {"E": own.axis("E").raw}  # which says what would give it a value
    # Marks that came after the fault leave nothing out.
    return {**harm_of(own.robot), "RA": recovery_of_all(own.robot)}


def _families(body: Body | None) -> dict[str, Mapping[str, Estimate]]:
    """Of a trial of one family its agreement, which it has in the whole."""
    found = None if body is None else body.agreement
    return {} if found is None or found.families else {"S2R": {"all": found.agreement}}
