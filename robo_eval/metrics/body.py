"""A body: one policy on one side, and what its metrics are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from robo_eval.core.errors import InputError, foreign
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.names import unknown_name
from robo_eval.core.number import Number, Numbers
from robo_eval.core.policy import aside
from robo_eval.log.evidence import Evidence, Fault
from robo_eval.metrics import registry
from robo_eval.metrics.agreement import Agreement, compare_rows
from robo_eval.metrics.attribution import (
    Attributed,
    BodyKey,
    Exposure,
    attribute,
    bursts_by_severity,
    counts_by_severity,
    exposures_of,
)
from robo_eval.metrics.calibrated import (
    Calibrated,
    by_calibration,
    name_of,
    over_recordings,
    snapshots_of,
)
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.control import Measured, measured_by_task
from robo_eval.metrics.left_out import LeftOut, as_failures, left_out_of
from robo_eval.metrics.pairs import (
    ConditionRates,
    Paired,
    by_condition,
    paired_outcomes,
)
from robo_eval.metrics.performance import success_of_rows
from robo_eval.metrics.reliability import NAMES
from robo_eval.metrics.tables import Rows, matched_pairs
from robo_eval.metrics.trials import Trials, trials_of

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

_FAILURES = (EndReason.FAULT.value, EndReason.LOST.value)
"""Ends that are failures of the robot or of what drives it."""
_COLUMNS = (
    "side", "policy", "arm", "task", "family", "control_quality",
)  # fmt: skip
_NOT_EXPOSED: Final = Exposure(hours=0.0, episodes=0, unknown=0)
_FAULT_COLUMNS = ("fault", "recovered", "recovered_by", "recoverable")


class Body:
    """One policy on one side: what its metrics are made of, each worked out once, in any order.

    What others may write into, tables and counts, is handed out anew each time.

    Attributes:
        policy: Name.
        side: `real`; `twin` for a stand-in behind ROS; or `sim`.
        level: Coverage intervals aim at.
        config: Settings.
        plan: The plan, if there is one.
        exposure: How long it was exposed.
    """

    def __init__(
        self,
        policy: str,
        side: str,
        *,
        table: pd.DataFrame,
        rows: Rows,
        exposure: Exposure,
        attributed: Attributed,
        config: MetricConfig,
        plan: TrialPlan | None = None,
        everybody: Rows | None = None,
        earn_nothing: Collection[str] = (),
    ) -> None:
        self.policy = policy
        self.side = side
        self.level = config.level
        self.config = config
        self.exposure = exposure
        self._table = table
        self._every_side = rows
        self._attributed = attributed
        self.plan = plan
        self._everybody = everybody
        self._earn_nothing = earn_nothing
        self._numbers: dict[str, Numbers] = {}

    @property
    def key(self) -> BodyKey:
        """Side and policy."""
        return self.side, self.policy

    def of(self, name: str) -> Estimate:
        """The estimate of a metric over all task families, worked out when first asked for.

        Args:
            name: Name of a registered metric, without a side.

        Raises:
            InputError: If there is no such metric, or it needs itself.
        """
        owner = registry.owner_of(name)
        found = self.numbers_of(owner).of(owner.name_on(self.side, name))
        return found or Estimate.missing(reason="it has no value over all families", unit="")

    def numbers_of(self, one: registry.Metric) -> Numbers:
        """The numbers of a metric."""
        if one.name not in self._numbers:
            if one.name in self._running:
                circle = " -> ".join([*self._running, one.name])
                raise InputError(f"metric {one.name!r} needs itself: {circle}")
            self._running.append(one.name)
            try:
                found = self._computed(one)
                told = registry.named(one, found, policy=self.policy, side=self.side)
                self._numbers[one.name] = Numbers(told)
            finally:
                self._running.pop()
        return self._numbers[one.name]

    @cached_property
    def _running(self) -> list[str]:
        return []

    def _computed(self, one: registry.Metric) -> list[Number]:
        """What a metric yields; where something it needs is not there, what is missing."""
        if self.side not in one.sides:
            return [one.missing(f"there is none on side {self.side}", "")]
        lacking = [(why, remedy) for why, remedy in map(self._lacks, one.needs) if why]
        if lacking:
            return [one.missing(*map(registry.told_once, zip(*lacking, strict=True)))]
        # Of our own metrics an error is a defect, which its traceback finds.
        is_ours = one.compute.__module__.startswith(f"{registry.FOLDER}.")
        with nullcontext() if is_ours else foreign(one.place, "computing it"), aside():
            return list(one.compute(self))

    def _lacks(self, need: str) -> tuple[str, str]:
        """Why it does not have what a metric needs, if it does not, and what would supply it."""
        if need in registry.NEEDS:
            own = registry.NEEDS[need]
            return own.lacks(self), own.remedy
        found = self.of(need)
        why = "" if found.value is not None else f"{need}: {found.reason}"
        return why, registry.remedy_of(need)

    @cached_property
    def numbers(self) -> Numbers:
        """Every number there is of it, in the order shown."""
        return Numbers(
            number
            for one in registry.registered().values()
            if self.side in one.sides
            for number in self.numbers_of(one)
        )

    @property
    def frame(self) -> pd.DataFrame:
        """Every attempt of the policy on the side, of both arms, as `episodes_frame` has them."""
        table = self._table
        return table[(table["side"] == self.side) & (table["policy"] == self.policy)]

    @property
    def is_imported(self) -> bool:
        """Whether its episodes were imported, so that nothing of them can be played."""
        return self.plan is not None and self.plan.imported is not None

    @property
    def episodes(self) -> pd.DataFrame:
        """The scored episodes of the main arm, with the columns of `core.episode.COLUMNS`.

        Of `strict` with those that were left out, which earn nothing.
        """
        own = self.frame[self.frame["arm"] == Arm.MAIN.value]
        out = own["base_id"].isin(self._earn_nothing)
        if not out.any():
            return own[own["quality"].notna()]
        import pandas as pd

        # One row of each: that with a score, else the last.
        worst = own[out].sort_values("quality", kind="stable", na_position="first")
        worst = worst.drop_duplicates("base_id", keep="last").assign(quality=0.0, success=False)
        if own["uninterrupted_actions"].notna().any():
            worst["uninterrupted_actions"] = 0
        return pd.concat([own[~out & own["quality"].notna()], worst])

    @cached_property
    def rows(self) -> Rows:
        """Its rows of the main arm, scored or not."""
        return self._every_side.take(self._every_side["side"] == self.side)

    @cached_property
    def robots(self) -> tuple[str, ...]:
        """Ids of the robots its episodes were played on; the numbers are of all of them."""
        return tuple(sorted({str(robot) for robot in self.frame["robot"].dropna()}))

    @property
    def name(self) -> str:
        """What its reliability is called: `AR` for a robot, `AR_twin` for a twin."""
        return NAMES[self.side]

    # Success and simulation ----------------------------------------------------------------------

    @cached_property
    def reliability(self) -> Estimate:
        """Share of strict successes in these tasks, with the exact interval."""
        return success_of_rows(self.rows, self.config, exact=True)

    @cached_property
    def _compared(self) -> Rows | None:
        """The rows simulation is compared in; None without, or if no calibration is chosen."""
        rows = self._every_side
        is_sim = rows["side"] == Side.SIM.value
        if not is_sim.any():
            return None
        snapshots = snapshots_of(rows)
        kinds = sorted(set(snapshots[is_sim]))
        if len(kinds) < 2:
            return rows
        chosen = [kind for kind in kinds if self._calibration in (kind, name_of(kind))]
        if not chosen:
            return None
        # Of several recordings one stands for what all of them share: the physical side.
        return rows.take(~is_sim | np.isin(snapshots, chosen[:1]))

    @property
    def _calibration(self) -> str | None:
        """The calibration that is compared: the chosen one, or the only one."""
        rows = self._every_side
        names = {name_of(kind) for kind in snapshots_of(rows)[rows["side"] == Side.SIM.value]}
        return self.config.calibration or (names.pop() if len(names) == 1 else None)

    @cached_property
    def calibrations(self) -> tuple[Calibrated, ...]:
        """How simulation under each calibration compares; empty with one."""
        rows = self._every_side
        is_sim = rows["side"] == Side.SIM.value
        if len(set(snapshots_of(rows)[is_sim])) < 2:
            return ()
        return by_calibration(rows, self.side, self.config)

    @cached_property
    def _recordings(self) -> Calibrated | None:
        """The chosen calibration where it was made from several recordings."""
        return next(
            (
                one
                for one in self.calibrations
                if one.calibration == self._calibration and len(one.recordings) > 1
            ),
            None,
        )

    @cached_property
    def agreement(self) -> Agreement | None:
        """How simulation compares; None without a simulated episode, or a chosen calibration."""
        if self._compared is None:
            return None
        found = compare_rows(self._compared, self.side, self.config)
        return found if self._recordings is None else over_recordings(found, self._recordings)

    @property
    def _jointly(self) -> Rows | None:
        """The compared rows; pairs of one recording would leave out how much recordings differ."""
        return self._compared if self._recordings is None else None

    @cached_property
    def paired(self) -> Paired | None:
        """Pairs that are resampled together; None where there is nothing to pair."""
        return None if self._jointly is None else paired_outcomes(self._jointly, self.side)

    @cached_property
    def conditions(self) -> tuple[ConditionRates, ...]:
        """Success on both sides in each condition both met."""
        if self._jointly is None:
            return ()
        return by_condition(self._jointly, self.side, self.config)

    @cached_property
    def trials(self) -> Trials:
        """Its trials with an onset, beside those of the policies they are compared with."""
        own = self._table[self._table["side"] == self.side]
        return trials_of(own, self.policy, self.plan)

    # Conduct -------------------------------------------------------------------------------------

    @property
    def attempts(self) -> int:
        """Attempts at episodes of the main arm."""
        return len(self.rows)

    @cached_property
    def voids(self) -> dict[str, int]:
        """Those that were declared void, by reason."""
        frame = self.frame
        is_void = frame["end_reason"] == EndReason.VOID.value
        details = frame.loc[is_void & (frame["arm"] == Arm.MAIN.value), "end_detail"]
        # What follows a colon is a note of whoever declared it void.
        reasons = [
            detail.partition(": ")[0] for detail in details.fillna("no reason given").astype(str)
        ]
        return {reason: reasons.count(reason) for reason in sorted(set(reasons))}

    @property
    def has_many_voids(self) -> bool:
        """Whether there are more than the settings allow."""
        return sum(self.voids.values()) > self.config.max_voids * self.attempts

    @cached_property
    def left_out(self) -> LeftOut:
        """Attempts that no score tells of, and other names of the same policy."""
        return left_out_of(self.frame, self.plan, self.config.max_voids, self._namesakes)

    @cached_property
    def _namesakes(self) -> tuple[str, ...]:
        """Other names of the same policy on this side; an import makes a digest of each name."""
        if self._everybody is None or self.side == Side.SIM.value:
            return ()
        rows = self._everybody
        own = self.rows.codes("policy_digest").code
        is_same = np.isin(rows.codes("policy_digest").code, own[own > 0])
        names = rows["policy"][is_same & np.asarray(rows["side"] == self.side, dtype=np.bool_)]
        return tuple(sorted(set(names.tolist()) - {self.policy}))

    @cached_property
    def strict(self) -> Body:
        """The same with what was left out as failures, which levels read; itself without."""
        found = self.left_out
        if self._everybody is None or not (found.episodes or found.namesakes):
            return self
        rows = self._everybody
        # On every side: the simulated halves of their pairs belong to them.
        own = rows.take(np.isin(rows["policy"].astype(str), (self.policy, *found.namesakes)))
        return Body(
            self.policy,
            self.side,
            table=self._table,
            rows=as_failures(own, self.side, found),
            exposure=self.exposure,
            attributed=self._attributed,
            config=self.config,
            plan=self.plan,
            earn_nothing=found.episodes,
        )

    # Evidence ------------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, int] | None:
        """Incidents by severity; None if nobody kept a record of them."""
        incidents = self._attributed.incidents_of(self.key)
        return None if incidents is None else counts_by_severity(incidents)

    @property
    def critical(self) -> int:
        """Critical incidents, of which one ends the window: nothing in it counts."""
        return (self.counts or {}).get("critical", 0)

    @cached_property
    def bursts(self) -> dict[str, list[int]]:
        """How many incidents came together each time, by severity."""
        return bursts_by_severity(self._attributed.incidents_of(self.key) or ())

    @cached_property
    def failures(self) -> int:
        """Attempts that ended by a failure of the robot or of what drives it."""
        return int(self.frame["end_reason"].isin(_FAILURES).sum())

    @property
    def repair_hours(self) -> list[float]:
        """Hours of each repair that was noted."""
        repairs = (self._attributed.repairs or {}).get(self.key, ())
        return [repair.hours for repair in repairs]

    @cached_property
    def noted_faults(self) -> pd.DataFrame | None:
        """Its faults, as `recovery_autonomy` takes them; None without a file of them."""
        import pandas as pd

        if self._attributed.faults is None:
            return None
        faults: Sequence[Fault] = self._attributed.faults.get(self.key, ())
        return pd.DataFrame(
            {name: [getattr(fault, name) for fault in faults] for name in _FAULT_COLUMNS}
        )

    @cached_property
    def measured(self) -> dict[str, Measured]:
        """What was measured of control by task; empty without tolerances."""
        if not self.config.tolerances:
            return {}
        episodes = self.episodes
        earns = (~episodes["base_id"].isin(self._earn_nothing)).tolist()
        return measured_by_task(episodes, earns, self.config)


def bodies_of(
    table: pd.DataFrame,
    rows: Rows,
    config: MetricConfig,
    evidence: Evidence | None = None,
    plan: TrialPlan | None = None,
) -> tuple[tuple[Body, ...], Attributed]:
    """Each policy on each side it was played on, robots first, then twins, then simulation.

    Args:
        table: A table from `episodes_frame`.
        rows: Rows of `main_rows` of it.
        config: Settings.
        evidence: What was noted beside the episodes.
        plan: The plan, if there is one.

    Returns:
        The bodies, and whose each note is.

    Raises:
        InputError: If the episodes of a pair differ in what they must share, or settings name what
            the trial does not have.
    """
    attributed = attribute(evidence or Evidence(), table, plan)
    physical = table.loc[table["side"] != Side.SIM.value, list(_COLUMNS)]
    if not physical.empty:
        calibration = table.loc[table["arm"] == Arm.MAIN.value, "calibration"]
        rows = rows.having(calibration=calibration.to_numpy(dtype=object))
        _check_pairs(rows)
        _check_settings(rows, physical, config, plan)
    exposures = exposures_of(table)
    return tuple(
        Body(
            str(policy),
            side,
            table=table,
            rows=rows.take(rows["policy"] == policy),
            exposure=exposures.get((side, str(policy)), _NOT_EXPOSED),
            attributed=attributed,
            config=config,
            plan=plan,
            everybody=rows,
        )
        for side in (*registry.PHYSICAL, Side.SIM.value)
        for policy in _in_order(set(rows["policy"][rows["side"] == side]), plan)
    ), attributed


def _in_order(policies: set[str], plan: TrialPlan | None) -> list[str]:
    """Policies as the plan names them, others by name: never by the order of the rows."""
    named = [] if plan is None or plan.imported is not None else [p.name for p in plan.policies]
    return [*(name for name in named if name in policies), *sorted(policies.difference(named))]


def _check_pairs(rows: Rows) -> None:
    """Refuse a pair whose two sides were played by different policies."""
    scored = rows.take(rows.scored)
    is_sim = scored["side"] == Side.SIM.value
    physical, simulated = scored.take(~is_sim), scored.take(is_sim)
    mine, partners = matched_pairs(physical, simulated)
    first, second = physical["policy"][mine], simulated["policy"][partners]
    clash = np.flatnonzero(np.asarray(first != second, dtype=np.bool_))
    if len(clash):
        row = int(clash[0])
        pair, side = physical["pair_id"][mine[row]], physical["side"][mine[row]]
        raise InputError(
            f"pair {pair!r}: policy is {first[row]!r} on side {side} and {second[row]!r} on side"
            " sim; a pair shares it"
        )


def _check_settings(
    rows: Rows, physical: pd.DataFrame, config: MetricConfig, plan: TrialPlan | None
) -> None:
    """Refuse settings that name what the trial does not have: they would do nothing."""
    if config.calibration is not None:
        snapshots = set(snapshots_of(rows.take(rows["side"] == Side.SIM.value)))
        known = sorted({name for kind in snapshots for name in (kind, name_of(kind))})
        if config.calibration not in known:
            raise InputError(
                f"metrics.{unknown_name('calibration', config.calibration, known or ['none'])}"
            )
    families = {str(family) for family in rows["family"]} if config.tolerances else set()
    if plan is not None:
        families |= {task.family or task.env for task in plan.tasks}
    measured = {
        str(name)
        for cell in (physical["control_quality"].tolist() if config.tolerances else ())
        if isinstance(cell, Mapping)
        for name in cell
    }
    for family, tolerances in config.tolerances.items():
        if family != "*" and family not in families:
            known = sorted(families)
            raise InputError(f"metrics.tolerances: {unknown_name('task family', family, known)}")
        for measure in tolerances:
            if measured and measure not in measured:
                raise InputError(
                    f"metrics.tolerances.{family}:"
                    f" {unknown_name('measure', measure, sorted(measured))}"
                )
