"""What calibration snapshots that lie with a trial found, and what each made of simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.core.plan import NOMINAL, CalibrationPlan, TrialPlan
from robo_eval.log.directory import CALIBRATION, CHECK, TrialDirectory
from robo_eval.log.snapshot import Snapshot, read_snapshot
from robo_eval.metrics.body import Body
from robo_eval.metrics.calibrated import NOT_CALIBRATED
from robo_eval.page.table import Group, Row
from robo_eval.page.words import DASH, count, interval_text, number, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrations:
    """What there is to say of calibration.

    Attributes:
        snapshots: Each once, whatever of it was played under which name.
        problems: Why others in the folder are not shown, by file.
        check: What `robo-eval calibrate check` kept; empty if it was not called.
        moved: Agreement with each body under what simulation was played with.
    """

    snapshots: Sequence[Snapshot]
    problems: Mapping[str, str]
    check: Mapping[str, Any]
    moved: Sequence[Group]

    @property
    def is_shown(self) -> bool:
        """Whether there is anything."""
        return bool(self.snapshots or self.problems or self.check or self.moved)

    @property
    def warned(self) -> list[Mapping[str, Any]]:
        """What the check refused, or warned of."""
        return [one for one in self.check.get("findings", ()) if one["verdict"] != "ok"]


def calibrations_of(trial: TrialDirectory, bodies: Sequence[Body]) -> Calibrations:
    """What lies in the folder of calibrations of a trial, and what its episodes say of it.

    Args:
        trial: The trial.
        bodies: Metrics of policies on a robot or its twin.
    """
    snapshots: dict[str, Snapshot] = {}
    problems = {}
    for path in trial.calibration_files:
        try:
            found = read_snapshot(path)
            snapshots.setdefault(found.model_dump_json(), found)
        except InputError as err:
            problems[path.name] = str(err).removeprefix(f"{path}: ")
    return Calibrations(
        snapshots=list(snapshots.values()),
        problems=problems,
        check=_check(trial),
        moved=[Group(title=f"{one.policy} ({one.side})", rows=_moved(one, trial.plan))
               for one in bodies if one.calibrations],
    )  # fmt: skip


def _check(trial: TrialDirectory) -> Mapping[str, Any]:
    """What was kept of a check; empty if nothing that can be read was."""
    try:
        found: Any = door.json_of(door.written(trial.path / CALIBRATION / CHECK))
        rows = [*found["findings"], *found["constants"].values()]
        return found if all("verdict" in row for row in rows) else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _moved(body: Body, plan: TrialPlan) -> list[Row]:
    """Agreement under each calibration, in the order of the plan."""
    played = {entry.name: _played(entry) for entry in plan.calibrations}
    order = [*played, *(one.calibration for one in body.calibrations)]
    return [
        Row(
            name=one.calibration,
            family=played.get(one.calibration, ""),
            estimate=one.agreement,
            rests_on=count(len(one.recordings), "recording") if len(one.recordings) > 1 else "",
            note=f"success there less success simulated: {interval_text(one.difference)}",
            symbol="diamond",
            is_hollow=one.calibration in (NOMINAL, NOT_CALIBRATED),
        )
        for one in sorted(body.calibrations, key=lambda one: order.index(one.calibration))
    ]


def _played(entry: CalibrationPlan) -> str:
    """What is played of a snapshot, or how else constants are chosen; empty for nominal ones."""
    if entry.file is None:
        return "drawn" if entry.randomised else ""
    is_all = entry.play == CalibrationPlan.model_fields["play"].default
    return "all of it" if is_all else ", ".join(entry.play)


def headline(snapshot: Snapshot) -> str:
    """Whether it was accepted, why not, and how much better it foretells."""
    found = snapshot.accepted
    text = "Accepted." if found.verdict else f"Not accepted: {found.reason or 'nobody says why'}."
    if found.fall is None:
        return text
    surely = "" if found.low is None else f" (95 %: {percent(found.low)} to {percent(found.high)})"
    left = "" if found.left is None else (
        f" to {number(found.left)} standard deviations of the noise, where noise alone leaves 1"
    )  # fmt: skip
    return (
        f"{text} The error of {count(found.n, 'recording')} that it was not made from falls by"
        f" {percent(found.fall)}{surely}{left}."
    )


def sentences(snapshot: Snapshot) -> list[str]:
    """What it was made of, and whether any constants explain that."""
    left, valid = snapshot.residuals, snapshot.valid
    if left.verdict == "structure":
        told = f"No constants explain these recordings: {'; '.join(left.reasons)}."
    else:
        skill = "" if left.skill is None else f": skill {number(left.skill)}, where 1 is perfect"
        told = f"The constants explain these recordings{skill}."
    made = (
        f"Of {snapshot.robot} ({snapshot.side}), task {snapshot.task}, made from"
        f" {count(len(snapshot.used), 'recording')}; valid from {valid.from_} to {valid.until}."
    )
    return [made, told]


def traces_note(snapshot: Snapshot) -> str:
    """Which recording is shown, and how replays of it go."""
    found = snapshot.accepted.traces
    if found is None:
        return ""
    anew = (
        f"replays start anew from what was recorded every {count(found.ticks, 'tick')}"
        if found.ticks
        else "it is replayed from its start"
    )
    return (
        f"Recording {found.episode}, which the snapshot was not made from; {anew}. Errors: recorded"
        " less foretold."
    )


def fine(value: float | None) -> str:
    """A number with the digits that intervals of constants need."""
    return DASH if value is None else f"{value:.5g}".replace("-", "−")
