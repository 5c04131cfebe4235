"""How each policy did on a body: reliability, safety, agreement with simulation, and the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.names import unknown_name
from robo_eval.formulas import SEVERITIES
from robo_eval.log.evidence import Evidence, Fault
from robo_eval.metrics.agreement import Agreement, compare_rows
from robo_eval.metrics.attribution import (
    Attributed,
    Body,
    Exposure,
    attribute,
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
from robo_eval.metrics.control import ControlResult, control_by_task
from robo_eval.metrics.pairs import (
    ConditionRates,
    Sharpened,
    by_condition,
    embodiment_of,
    paired_outcomes,
    sharpened_rate,
)
from robo_eval.metrics.recovery import recovery_autonomy, recovery_by_fault
from robo_eval.metrics.reliability import (
    NAMES,
    reliability_of_families,
    reliability_of_rows,
    reliability_of_tasks,
    time_between_failures,
)
from robo_eval.metrics.safety import Safety, safety_of
from robo_eval.metrics.tables import Rows, matched_pairs
from robo_eval.metrics.throughput import Throughput, throughput_of

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan

_FAILURES = (EndReason.FAULT.value, EndReason.LOST.value)
"""Ends that are failures of the robot or of what drives it."""
PHYSICAL = (Side.REAL.value, Side.TWIN.value)
_COLUMNS = (
    "side", "policy", "arm", "task", "family", "end_reason", "quality", "success", "exposure_s",
    "control_quality", "robot",
)  # fmt: skip
_FAULT_COLUMNS = ("fault", "recovered", "recovered_by", "recoverable")


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotResult:
    """One policy on one physical side.

    Attributes:
        policy: Name.
        side: `real`, or `twin` for a stand-in behind ROS.
        name: What its reliability is called: `AR` for a robot, `AR_twin` for a twin.
        reliability: Share of strict successes, with the interval that suits its tasks.
        reliability_exact: The same with the exact interval, for gates.
        tasks: The same by task, with Wilson's interval.
        families: The same by task family with the exact interval, for gates.
        agreement: How simulation compares; None if the policy has no simulated episode, or several
            calibrations of which none was chosen.
        calibrations: The same under each calibration; empty with one.
        conditions: Success on both sides in each condition both met; empty without one, or with
            several calibrations of which none was chosen.
        sharpened: The rate with the help of simulated episodes without a partner; None without.
        safety: Score and incident rates.
        embodiment: The embodiment score.
        times: `mtbf`, `mttr`, `mtbsi` and `mtbsi_without_near_misses`, hours; the last two only
            with a record of incidents.
        recovery: Share of recoverable faults the robot recovered from by itself.
        faults: The same by fault.
        control: Quality of control by task; empty without tolerances.
        throughput: What an hour brings and costs; None without a price card.
        bodies: Ids of the robots its episodes were played on; the numbers are of all of them.
    """

    policy: str
    side: str
    name: str
    reliability: Estimate
    reliability_exact: Estimate
    tasks: dict[str, Estimate]
    families: dict[str, Estimate] = field(default_factory=dict)
    agreement: Agreement | None
    calibrations: tuple[Calibrated, ...] = ()
    conditions: tuple[ConditionRates, ...] = ()
    sharpened: Sharpened | None = None
    safety: Safety
    embodiment: Estimate
    times: Mapping[str, Estimate] = field(default_factory=dict)
    recovery: Estimate
    faults: Mapping[str, Estimate] = field(default_factory=dict)
    control: tuple[ControlResult, ...] = ()
    throughput: Throughput | None = None
    bodies: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        """What the name of every number ends in: results of a twin are never those of a robot."""
        return "" if self.side == Side.REAL.value else f"_{self.side}"

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON would have it."""
        return {
            "policy": self.policy,
            "side": self.side,
            "name": self.name,
            "bodies": list(self.bodies),
            "reliability": self.reliability.as_dict(),
            "reliability_exact": self.reliability_exact.as_dict(),
            "tasks": {task: found.as_dict() for task, found in self.tasks.items()},
            "families": {family: found.as_dict() for family, found in self.families.items()},
            "agreement": None if self.agreement is None else self.agreement.as_dict(),
            "calibrations": [found.as_dict() for found in self.calibrations],
            "conditions": [found.as_dict() for found in self.conditions],
            "prediction_powered": None if self.sharpened is None else self.sharpened.as_dict(),
            f"safety{self.suffix}": self.safety.as_dict(),
            f"embodiment{self.suffix}": self.embodiment.as_dict(),
            f"times{self.suffix}": {name: time.as_dict() for name, time in self.times.items()},
            f"recovery{self.suffix}": self.recovery.as_dict(),
            f"faults{self.suffix}": {name: one.as_dict() for name, one in self.faults.items()},
            f"control{self.suffix}": [found.as_dict() for found in self.control],
            f"throughput{self.suffix}": None
            if self.throughput is None
            else self.throughput.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    """What is needed of one policy on one physical side."""

    policy: str
    side: str
    rows: Rows
    exposure: Exposure
    frame: pd.DataFrame


def robots_of(
    table: pd.DataFrame,
    rows: Rows,
    config: MetricConfig,
    evidence: Evidence | None = None,
    plan: TrialPlan | None = None,
) -> tuple[tuple[RobotResult, ...], Attributed]:
    """Each policy on each physical side it was played on; none for a trial in simulation only.

    Args:
        table: A table from `episodes_frame`.
        rows: Rows of `main_rows` of it.
        config: Settings.
        evidence: What was noted beside the episodes.
        plan: The plan, if there is one.

    Returns:
        The results, and whose each note is.

    Raises:
        InputError: If the episodes of a pair differ in what they must share, or a measured value is
            negative or not finite.
    """
    attributed = attribute(evidence or Evidence(), table, plan)
    physical = table.loc[table["side"] != Side.SIM.value, list(_COLUMNS)]
    if physical.empty:
        return (), attributed
    calibration = table.loc[table["arm"] == Arm.MAIN.value, "calibration"].to_numpy(dtype=object)
    rows = rows.having(calibration=calibration)
    _check_pairs(rows)
    _check_settings(rows, physical, config, plan)
    exposures = exposures_of(table)
    found = []
    for side in PHYSICAL:
        for policy in dict.fromkeys(rows["policy"][rows["side"] == side]):
            own = physical[(physical["side"] == side) & (physical["policy"] == policy)]
            body = _Body(
                policy=str(policy),
                side=side,
                rows=rows.take(rows["policy"] == policy),
                exposure=exposures[side, str(policy)],
                frame=own,
            )
            found.append(_result(body, attributed, config))
    return tuple(found), attributed


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


def _result(body: _Body, attributed: Attributed, config: MetricConfig) -> RobotResult:
    key: Body = (body.side, body.policy)
    physical = body.rows.take(body.rows["side"] == body.side)
    reliability = reliability_of_rows(physical, config)
    compared, calibrations = _compared(body, config)
    agreement = None if compared is None else compare_rows(compared, body.side, config)
    chosen = _chosen(calibrations, config)
    has_recordings = chosen is not None and len(chosen.recordings) > 1
    if agreement is not None and chosen is not None and has_recordings:
        agreement = over_recordings(agreement, chosen)
    incidents = attributed.incidents_of(key)
    counts = None if incidents is None else counts_by_severity(incidents)
    safety = safety_of(counts, body.exposure, config)
    # Pairs of one recording would leave out how much recordings differ.
    is_joint = compared is not None and not has_recordings
    paired = paired_outcomes(compared, body.side) if compared is not None and is_joint else None
    faults = None if attributed.faults is None else attributed.faults.get(key, ())
    return RobotResult(
        policy=body.policy,
        side=body.side,
        name=NAMES[body.side],
        reliability=reliability,
        reliability_exact=reliability_of_rows(physical, config, "exact"),
        tasks=reliability_of_tasks(physical, config),
        families=reliability_of_families(physical, config),
        agreement=agreement,
        calibrations=calibrations,
        conditions=by_condition(compared, body.side, config)
        if compared is not None and is_joint
        else (),
        sharpened=None if paired is None else sharpened_rate(paired, config),
        safety=safety,
        embodiment=embodiment_of(
            paired,
            reliability,
            safety.score,
            _agreed(agreement, calibrations),
            config,
        ),
        bodies=tuple(sorted({str(robot) for robot in body.frame["robot"].dropna()})),
        times=_times(body, attributed, counts, config),
        recovery=_recovery(faults, config),
        faults={} if not faults else recovery_by_fault(_fault_table(faults), level=config.level),
        control=_control(body, config),
        throughput=throughput_of(body.frame, config),
    )


def _agreed(agreement: Agreement | None, calibrations: Sequence[Calibrated]) -> Estimate | None:
    if agreement is not None:
        return agreement.agreement
    several = "several calibrations, of which the settings choose none"
    return Estimate.missing(reason=several, unit="ratio") if calibrations else None


def _compared(body: _Body, config: MetricConfig) -> tuple[Rows | None, tuple[Calibrated, ...]]:
    """The rows simulation is compared in, and the comparison under each calibration."""
    rows = body.rows
    is_sim = rows["side"] == Side.SIM.value
    if not is_sim.any():
        return None, ()
    snapshots = snapshots_of(rows)
    kinds = sorted(set(snapshots[is_sim]))
    if len(kinds) < 2:
        return rows, ()
    calibrations = by_calibration(rows, body.side, config)
    chosen = [kind for kind in kinds if config.calibration in (kind, name_of(kind))]
    if not chosen:
        return None, calibrations
    # Of several recordings one stands for what all of them share: the physical side.
    return rows.take(~is_sim | np.isin(snapshots, chosen[:1])), calibrations


def _chosen(calibrations: Sequence[Calibrated], config: MetricConfig) -> Calibrated | None:
    """The calibration whose simulation is compared, where there are several snapshots."""
    return next((one for one in calibrations if one.calibration == config.calibration), None)


def _times(
    body: _Body, attributed: Attributed, counts: Mapping[str, int] | None, config: MetricConfig
) -> dict[str, Estimate]:
    """Mean times; those between incidents only where a record of incidents was kept."""
    failures = int(body.frame["end_reason"].isin(_FAILURES).sum())
    repairs = (attributed.repairs or {}).get((body.side, body.policy), ())
    found = time_between_failures(
        body.exposure.hours,
        failures,
        [repair.hours for repair in repairs] or None,
        {name: (counts or {}).get(name, 0) for name in SEVERITIES},
        level=config.level,
    )
    known = ("mtbf", "mttr") if counts is None else tuple(found)
    return {name: found[name] for name in known}


def _fault_table(faults: Sequence[Fault]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {name: [getattr(fault, name) for fault in faults] for name in _FAULT_COLUMNS}
    )


def _recovery(faults: Sequence[Fault] | None, config: MetricConfig) -> Estimate:
    if faults is None:
        return Estimate.missing(
            reason="no record of faults", unit="ratio", method="clopper_pearson"
        )
    return recovery_autonomy(_fault_table(faults), level=config.level)


def _control(body: _Body, config: MetricConfig) -> tuple[ControlResult, ...]:
    if not config.tolerances:
        return ()
    frame = body.frame[(body.frame["arm"] == Arm.MAIN.value) & body.frame["quality"].notna()]
    families = [
        str(family or task) for family, task in zip(frame["family"], frame["task"], strict=True)
    ]
    samples = [
        cell if isinstance(cell, Mapping) else {} for cell in frame["control_quality"].tolist()
    ]
    return control_by_task(families, samples, config)
