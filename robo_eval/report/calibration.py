"""What calibration snapshots that lie with a trial found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.log.directory import CALIBRATION, CHECK, TrialDirectory
from robo_eval.log.snapshot import Snapshot, read_snapshot
from robo_eval.metrics.body import Body
from robo_eval.report.loop import LoopSetting, settings_of


class CheckFinding(BaseModel):
    """What one check found."""

    check: str
    verdict: str
    recording: str = ""
    text: str
    remedy: str = ""


class Foreseen(BaseModel):
    """What a fit was to tell of a constant."""

    verdict: str
    half_width: float | None
    wanted: float
    partners: list[str]


class Check(BaseModel):
    """What is shown of a check."""

    recordings: int
    findings: list[CheckFinding]
    constants: dict[str, Foreseen]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrations:
    """What there is to say of calibration.

    Attributes:
        snapshots: Each once, under however many names it was played.
        problems: Why others in the folder are not shown, by file.
        check: What `robo-eval calibrate check` kept; None if it was not called.
        settings: What simulation was played with for the first policy, and how well it told.
    """

    snapshots: Sequence[Snapshot] = field(default_factory=list)
    problems: Mapping[str, str] = field(default_factory=dict)
    check: Check | None = None
    settings: Sequence[LoopSetting] = field(default_factory=list)


def calibrations_of(trial: TrialDirectory, bodies: Sequence[Body] = ()) -> Calibrations:
    """What lies in the folder of calibrations of a trial, and how well simulation told with it.

    Args:
        trial: The trial.
        bodies: Metrics of policies on a robot or its twin.
    """
    snapshots: list[Snapshot] = []
    problems = {}
    for path in trial.calibration_files:
        try:
            found = read_snapshot(path)
            snapshots += [found] * (found not in snapshots)
        except InputError as err:
            problems[path.name] = str(err).removeprefix(f"{path}: ")
    settings = settings_of(bodies[0], trial.plan) if bodies else []
    return Calibrations(
        snapshots=snapshots, problems=problems, check=_check(trial), settings=settings
    )


def _check(trial: TrialDirectory) -> Check | None:
    """What was kept of a check; None if nothing that can be read was."""
    try:
        return Check.model_validate(door.json_of(door.written(trial.path / CALIBRATION / CHECK)))
    except (OSError, ValueError):
        return None
