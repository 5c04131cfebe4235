"""How recordings become a snapshot: which are fitted, what is kept, what validates it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.task import Constant
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import NAME_PATTERN
from robo_eval.log.provenance import software
from robo_eval.log.snapshot import (
    DISTURBANCE,
    NOISE,
    Accepted,
    Digests,
    Identified,
    Noise,
    Residuals,
    Snapshot,
    Used,
    Validity,
)
from robo_eval_calibration.fit import Fitted, Found
from robo_eval_calibration.held_out import HeldOut, held_out
from robo_eval_calibration.innovations import Model, least_noise, nominal_of, physics_of
from robo_eval_calibration.intervals import Verdict
from robo_eval_calibration.recordings import Recording
from robo_eval_calibration.structure import Structure

LEAST: Final = 2
"""Recordings it has to be made from, and as many others that validate it."""
_FOUND: Final = 1.001
"""Times the least that is believed from which on noise was found."""


def snapshot_name(text: str) -> str:
    """A text as the name of a snapshot.

    Raises:
        InputError: If it cannot be one.
    """
    if not re.fullmatch(NAME_PATTERN, text):
        raise InputError(
            f"--name: {text!r} is no name: letters, digits, '.', '_', '+' and '-' only, 64 at most"
        )
    return text


def split(
    recordings: Sequence[Recording], hold_out: float
) -> tuple[list[Recording], list[Recording]]:
    """Recordings to fit, and those kept to validate, chosen by their digests.

    Groups stay together. One recording at least is fitted.

    Args:
        recordings: All of them.
        hold_out: Share that is kept, from 0 to less than 1.

    Raises:
        InputError: If the share is none.
    """
    if not 0.0 <= hold_out < 1.0:
        raise InputError(f"--hold-out: must be from 0 to less than 1, given {hold_out:g}")
    count = min(round(hold_out * len(recordings)), len(recordings) - 1)
    groups: dict[str, list[Recording]] = {}
    for one in sorted(recordings, key=lambda one: one.content):
        groups.setdefault(one.group or one.id, []).append(one)
    kept: list[Recording] = []
    for group in groups.values():
        if len(kept) + len(group) <= count:
            kept += group
    ids = {one.id for one in kept}
    return [one for one in recordings if one.id not in ids], kept


def snapshot_of(
    fitted: Fitted,
    recordings: Sequence[Recording],
    kept: Sequence[Recording],
    *,
    model: Model,
    name: str,
    plan_digest: str,
    valid_days: int,
) -> Snapshot:
    """What a fit found, as it is kept.

    Args:
        fitted: What was found.
        recordings: Of which.
        kept: Those that are to validate it.
        model: The simulator.
        name: What rows call it.
        plan_digest: Of the trial the recordings are from.
        valid_days: For how many days after the newest recording it may be played.
    """
    task = model.task
    unit_of = {one: place for place, unit in enumerate(fitted.units) for one in unit}
    newest, least = max(one.begun_ns for one in recordings), least_noise(task)
    first = date.fromisoformat(max(one.day for one in recordings)) if newest else _now().date()
    own = {
        stage: {one.name: min(max(fitted.noise[one.name], one.low), one.high)
                for one in task.constants if one.stage == stage and one.name in fitted.noise}
        for stage in (NOISE, DISTURBANCE)
    }  # fmt: skip
    return Snapshot(
        name=name,
        task=task.env,
        robot=recordings[0].robot,
        side=Side(recordings[0].side),
        made=_now(),
        valid=Validity(
            from_=first,
            until=first + timedelta(days=valid_days),
            by=f"{valid_days} days after the newest recording",
        ),
        recordings=tuple(
            Used(
                id=f"rec-{number}",
                episode=one.id,
                sha256=one.sha256,
                content=one.content,
                group=one.group,
            )
            for number, one in enumerate(recordings, 1)
        ),
        keywords=dict(recordings[0].keywords),
        held_out=tuple(one.id for one in kept),
        constants={
            one.name: _identified(one, fitted, [unit_of[other.id] for other in recordings])
            for one in physics_of(task).values()
        },
        noise=Noise(
            sensors=own[NOISE],
            force=own[DISTURBANCE],
            floored=tuple(
                name for name, size in own[NOISE].items() if size <= _FOUND * least[name]
            ),
        ),
        residuals=_residuals(fitted, {one.name: one.stage for one in task.constants}),
        digests=Digests(
            environment=getattr(model, "digest", ""),
            engine=getattr(model, "engine", ""),
            code=software(),
            plan=plan_digest,
        ),
    )


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _identified(constant: Constant, fitted: Fitted, units: Sequence[int]) -> Identified:
    """What is known of a constant; units are those of the recordings in their order."""
    found = fitted.found.get(constant.name)
    common: dict[str, Any] = {"unit": constant.unit, "nominal": constant.nominal}
    if found is None:
        return Identified(
            **common,
            verdict="given",
            kept=fitted.given.get(constant.name, constant.nominal),
            reason="it was not looked for",
        )
    estimate = found.estimate
    return Identified(
        **common,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        n=estimate.n,
        by_recording=tuple(found.by_unit[unit] for unit in units),
        between_sd=found.between_sd,
        method=estimate.method or "",
        verdict=found.judged.verdict.value,
        with_=found.judged.partners,
        reason=found.judged.reason,
        kept=_kept(constant, found, fitted.structure),
    )


def _kept(constant: Constant, found: Found, structure: Structure) -> float | None:
    """What is played in place of an estimate; None if the estimate is.

    Estimates were found together and explain recordings together, weak ones too: one of them played
    as nominal makes the others wrong. What could not be told is played as nominal, and so is all
    where no constants explain the recordings.
    """
    is_told = found.judged.verdict in (Verdict.IDENTIFIED, Verdict.WEAK)
    return None if is_told and not structure.reasons else constant.nominal


def _residuals(fitted: Fitted, stages: Mapping[str, str]) -> Residuals:
    """What is left. Constants of two stages, found one after the other, have no correlation."""
    found, free = fitted.structure, list(enumerate(fitted.free))
    return Residuals(
        verdict="structure" if found.reasons else "explained",
        chi2=fitted.chi2,
        skill=found.skill,
        share=found.share,
        missing=tuple(f"{one.name} {one.size:.3g} {one.unit}" for one in found.missing
                      if one.is_found),
        reasons=found.reasons,
        correlations={f"{one} {other}": float(fitted.correlations[row, column])
                      for row, one in free for column, other in free[row + 1 :]
                      if stages[one] == stages[other]},
    )  # fmt: skip


def unused(snapshot: Snapshot, recordings: Sequence[Recording]) -> list[Recording]:
    """The recordings that a snapshot was not made from.

    Raises:
        InputError: If there is none.
    """
    used = {digest for one in snapshot.recordings for digest in (one.content, one.sha256)} - {""}
    found = [one for one in recordings if not {one.content, one.sha256} & used]
    if not found:
        raise InputError(
            f"all {counted(len(recordings), 'recording')} were used to make calibration"
            f" {snapshot.name}; keep some by `calibrate fit --hold-out`, or name another trial"
        )
    return found


def validated(snapshot: Snapshot, recordings: Sequence[Recording], model: Model) -> HeldOut:
    """How much better a snapshot foretells recordings that it was not made from.

    Raises:
        InputError: If one cannot be foretold.
    """
    nominal = nominal_of(model.task)
    played = snapshot.played()
    found = {name: played.get(name, value) for name, value in nominal.items()}
    noise = {**snapshot.noise.sensors, **snapshot.noise.force}
    return held_out(model, recordings, found, nominal, noise)


def accepted(snapshot: Snapshot, found: HeldOut) -> Accepted:
    """What the snapshot says of that."""
    reason = found.reason
    if reason is None and len(snapshot.used) < LEAST:
        reason = "it was made from one recording, whose interval nobody knows"
    fall = found.fall
    return Accepted(
        verdict=reason is None, fall=fall.value, low=fall.low, high=fall.high, left=found.left,
        n=fall.n, reason=reason, errors=dict(found.errors), traces=found.traces,
    )  # fmt: skip
