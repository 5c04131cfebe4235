"""How well each calibration of a simulator tells what a robot does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.metrics.agreement import ROUNDING, Agreement, compare_rows, folded
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.frame import is_missing
from robo_eval.metrics.tables import Rows

CALIBRATION: Final = "calibration"
"""Column that tells simulators apart, where rows have it."""
NOT_CALIBRATED: Final = "not calibrated"
"""What simulation without a snapshot is called."""
_SEPARATOR: Final = "/"
_LEAST: Final = 3
_METHOD: Final = "bootstrap_over_recordings_and_pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Agreement under one calibration.

    Attributes:
        calibration: Its name; `not calibrated` for simulation without a snapshot.
        recordings: Recordings it was made from, each with a snapshot of its own.
        by_recording: Agreement under each of them.
        agreement: Over all of them; the interval holds their spread, too.
        difference: Physical less simulated success.
    """

    calibration: str
    recordings: tuple[str, ...]
    by_recording: Mapping[str, Agreement]
    agreement: Estimate
    difference: Estimate


def is_calibrated(rows: Rows) -> bool:
    """Whether rows say how the simulator was calibrated."""
    try:
        rows.codes(CALIBRATION)
    except KeyError:
        return False
    return True


def snapshots_of(rows: Rows) -> NDArray[np.object_]:
    """Snapshot of each row; `not calibrated` where there is none."""
    cells = rows[CALIBRATION]
    kinds, first, number = np.unique(
        rows.codes(CALIBRATION).code, return_index=True, return_inverse=True
    )
    names = [
        NOT_CALIBRATED if kind == 0 else str(cells[row])
        for kind, row in zip(kinds, first, strict=True)
    ]
    return np.array(names, dtype=object)[number]


def name_of(snapshot: str) -> str:
    """Calibration a snapshot belongs to: `identified` of `identified/recording-2`."""
    return snapshot.split(_SEPARATOR, 1)[0]


def by_calibration(rows: Rows, side: str, config: MetricConfig) -> tuple[Calibrated, ...]:
    """Compare one policy on a physical side with simulation under each calibration.

    A snapshot is called `NAME`, or `NAME/RECORDING` where a calibration was made from several
    recordings. The physical episodes are the same for all of them; so the bootstrap draws
    recordings and pairs, each by itself, and the interval holds what both leave open.

    Args:
        rows: Rows of `main_rows` of one policy, with their calibration.
        side: `real` or `twin`.
        config: Settings.

    Raises:
        InputError: If the episodes of a pair differ in what they must share.

    References:
        Owen (2007), Annals of Applied Statistics 1:386-411: resampling both factors of a table
        errs on the wide side.
    """
    snapshots = snapshots_of(rows)
    is_sim = rows["side"] == Side.SIM.value
    names: dict[str, list[str]] = {}
    for snapshot in sorted(set(snapshots[is_sim])):
        names.setdefault(name_of(snapshot), []).append(snapshot)
    found = []
    for name, members in names.items():
        compared = {
            member: compare_rows(rows.take(~is_sim | (snapshots == member)), side, config)
            for member in members
        }
        first = compared[members[0]]
        difference, agreement = (
            (first.difference, first.agreement)
            if len(members) == 1
            else _crossed(rows, side, is_sim, snapshots, members, compared, config)
        )
        found.append(
            Calibrated(
                calibration=name,
                recordings=tuple(member.removeprefix(name + _SEPARATOR) for member in members),
                by_recording=compared,
                agreement=agreement,
                difference=difference,
            )
        )
    return tuple(found)


def _crossed(
    rows: Rows,
    side: str,
    is_sim: NDArray[np.bool_],
    snapshots: NDArray[np.object_],
    members: list[str],
    compared: Mapping[str, Agreement],
    config: MetricConfig,
) -> tuple[Estimate, Estimate]:
    """Difference and agreement over recordings and pairs, both resampled."""
    is_physical = (rows["side"] == side) & rows.scored
    physical = _outcomes(rows.take(is_physical & ~rows.left_out))
    simulated = [
        _outcomes(rows.take(is_sim & (snapshots == member) & rows.scored)) for member in members
    ]
    shared = sorted(set(physical).intersection(*simulated))
    n, alone = len(shared), int(is_physical.sum()) - len(shared)
    if not n:
        none = Estimate.missing(
            reason="no pair was simulated under every recording of the calibration", unit="ratio"
        )
        return none, none
    real = np.array([physical[pair] for pair in shared], dtype=np.float64)
    table = np.array([[sim[pair] for pair in shared] for sim in simulated], dtype=np.float64)
    # Resampling cannot draw outcomes that were not seen, which the interval of one recording
    # allows for: never be narrower than such a one is on average.
    widths = [
        found.difference.high - found.difference.low
        for found in compared.values()
        if found.difference.low is not None and found.difference.high is not None
    ]
    half = 0.5 * float(np.mean(widths)) if widths else 0.0
    difference = _over_recordings(real - table, half, config)
    agreement = folded(difference)
    if alone > config.max_unmatched * (n + alone) + ROUNDING:
        agreement = Estimate.missing(
            reason=f"unmatched: {alone / (n + alone):.0%} of the scored physical episodes have no"
            " scored partner under every recording",
            unit="ratio",
            n=n,
        )
    elif alone:
        # They count as disagreement, in the direction that costs more.
        worst = [
            np.hstack([real - table, np.full((len(members), alone), way)]) for way in (1.0, -1.0)
        ]
        found = [folded(_over_recordings(one, half, config)) for one in worst]
        agreement = min(found, key=lambda one: one.low or 0.0)
    return difference, agreement


def _over_recordings(
    differences: NDArray[np.float64], half: float, config: MetricConfig
) -> Estimate:
    """Mean over recordings and pairs, shape (recordings, pairs), at least `half` to each side."""
    n_recordings, n = differences.shape
    value = float(differences.mean())
    rng = np.random.default_rng(config.seed)
    drawn_pairs = rng.multinomial(n, np.full(n, 1.0 / n), config.resamples) / n
    drawn_recordings = (
        rng.multinomial(n_recordings, np.full(n_recordings, 1.0 / n_recordings), config.resamples)
        / n_recordings
    )
    draws = ((drawn_recordings @ differences) * drawn_pairs).sum(axis=1)
    tail = (1.0 - config.level) / 2.0
    low, high = (float(end) for end in np.quantile(draws, [tail, 1.0 - tail]))
    few = f"{n_recordings} recordings: their spread is hardly known"
    return Estimate(
        value=value,
        low=max(-1.0, min(low, value - half)),
        high=min(1.0, max(high, value + half)),
        level=config.level,
        n=n,
        method=_METHOD,
        unit="ratio",
        reason=few if n_recordings < _LEAST else None,
    )


def _outcomes(rows: Rows) -> dict[str, bool]:
    """Success by pair."""
    return {
        str(pair): success is True
        for pair, success in zip(rows["pair_id"], rows["success"], strict=True)
        if not is_missing(pair)
    }


def over_recordings(first: Agreement, found: Calibrated) -> Agreement:
    """The agreement of a calibration made from several recordings.

    Args:
        first: Under one of them.
        found: Under all of them.
    """
    rates = [one.ar_sim for one in found.by_recording.values() if one.ar_sim.value is not None]
    ar_sim = first.ar_sim
    if rates:
        ar_sim = replace(
            first.ar_sim,
            value=float(np.mean([rate.value for rate in rates])),
            low=min((rate.low for rate in rates if rate.low is not None), default=None),
            high=max((rate.high for rate in rates if rate.high is not None), default=None),
            method="ends_over_recordings",
            n=sum(rate.n for rate in rates),
        )
    new_task, agreement = first.new_task, found.agreement
    if new_task.value is not None:
        # That of tasks like these is no surer than that of these tasks.
        lows = [one.low for one in (new_task, agreement) if one.low is not None]
        highs = [one.high for one in (new_task, agreement) if one.high is not None]
        new_task = replace(new_task, low=min(lows), high=max(highs))
    return replace(
        first,
        agreement=agreement,
        new_task=new_task,
        difference=found.difference,
        ar_sim=ar_sim,
        p_value=None,
        families={},
        worst_family=None,
    )
