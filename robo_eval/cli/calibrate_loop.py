"""How `robo-eval calibrate loop` fits, plays and tells what it found."""

from __future__ import annotations

import json as form
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from robo_eval.cli.aiq_progress import progress
from robo_eval.cli.output import interval, percent, print_table, say
from robo_eval.core.errors import InputError, InterruptedRunError
from robo_eval.core.kinds import Side
from robo_eval.core.plain import plain
from robo_eval.core.wording import counted

if TYPE_CHECKING:
    from robo_eval.core.estimate import Estimate
    from robo_eval.core.plan import TrialPlan
    from robo_eval.core.task import TaskSpec
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.snapshot import Snapshot
    from robo_eval_calibration.loop import Chosen, Compared

RESULT: Final = "loop.json"
PAGE: Final = "loop.html"
SETTINGS: Final = {
    "nominal": "nominal",
    "constants": "constants",
    "noise": "constants, noise",
    "force": "constants, noise, hidden force",
    "randomised": "randomised",
}
"""What people read for each setting."""
_ROBOTS: Final = {
    Side.REAL: "the robot",
    Side.TWIN: "the twin",
    Side.SIM: "the stand-in, which is simulated,",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looped:
    """What a loop came to.

    Attributes:
        plan: What was played.
        name: `S2R` or `S2S`.
        robot: What is compared, in words.
        physical: Success of the episodes that are compared, on the robot or its twin.
        rows: How well simulation told it in each setting.
        snapshots: What was fitted, by the number of recordings.
    """

    plan: TrialPlan
    name: str
    robot: str
    physical: Estimate
    rows: Sequence[Compared]
    snapshots: Mapping[int, Snapshot]

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        keys = {"constants", "noise", "residuals"}
        return {
            "name": self.plan.name,
            "task": self.plan.tasks[0].env,
            "side": self.plan.sides[-1].value,
            "agreement": self.name,
            "robot": self.robot,
            "physical": plain(self.physical),
            "settings": plain(self.rows),
            "fits": {
                str(size): one.model_dump(mode="json", by_alias=True, include=keys)
                for size, one in self.snapshots.items()
            },
        }


def sizes_of(text: str) -> tuple[int, ...]:
    """Numbers of recordings, from `1,2,4,8`.

    Raises:
        InputError: If they are none.
    """
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise InputError(f"--recordings: numbers such as 1,2,4,8 are needed, given {text!r:.80}")
    return tuple(int(part) for part in parts)


def asked_ranges(texts: Sequence[str], task: TaskSpec) -> dict[str, tuple[float, float]]:
    """What is drawn of constants, from `NAME=LOW,HIGH`.

    Raises:
        InputError: If one is none of the task, or its ends are none.
    """
    found = {}
    for text in texts:
        name, _, ends = text.partition("=")
        try:
            low, high = (float(end) for end in ends.split(","))
        except ValueError as err:
            raise InputError(f"--randomised: NAME=LOW,HIGH is needed, given {text!r:.80}") from err
        try:
            task.checked({name: low}), task.checked({name: high})
        except InputError as err:
            raise InputError(f"--randomised: {err}") from err
        if not low < high:
            raise InputError(f"--randomised: {name}: {low:g} must be below {high:g}")
        found[name] = low, high
    return found


def opened_loop(
    trial: TrialDirectory,
    plan: TrialPlan,
    told: Chosen,
    *,
    out: Path,
    given: Mapping[str, float],
    workers: int,
    ray: str | None,
    quiet: bool,
) -> TrialDirectory:
    """The trial in which simulated episodes are played: begun now, or found as it was left.

    Raises:
        InputError: If there is another one.
    """
    from robo_eval.cli.calibrations import keep_snapshots, with_snapshots
    from robo_eval.log.directory import TrialDirectory, is_trial
    from robo_eval.log.snapshot import write_snapshot

    if is_trial(out):
        found = TrialDirectory.open(out)
        if found.plan.description != plan.description:
            raise InputError(f"{out}: holds another loop, or another trial; name another folder")
        return found
    with tempfile.TemporaryDirectory() as folder:
        for size in told.sizes:
            snapshot = _snapshot(trial, told, size, given, workers, ray, quiet=quiet)
            write_snapshot(snapshot, Path(folder) / f"{size}.yaml")
        # What a snapshot says of itself is told with what it came to.
        locked = with_snapshots(plan, Path(folder) / "plan.yaml", warn=lambda _: None)
        made = TrialDirectory.create(out, locked)
    keep_snapshots(locked, out)
    return made


def _snapshot(
    trial: TrialDirectory,
    told: Chosen,
    size: int,
    given: Mapping[str, float],
    workers: int,
    ray: str | None,
    *,
    quiet: bool,
) -> Snapshot:
    """What so many recordings tell; fits of units are kept in their trial."""
    from threadpoolctl import threadpool_limits

    from robo_eval.log.directory import CALIBRATION
    from robo_eval_calibration.fit import fitted, model_of
    from robo_eval_calibration.made import snapshot_of

    recordings = told.fitted[:size]
    title = f"fit {counted(size, 'recording')}"
    with progress(title, quiet=quiet) as bar, threadpool_limits(1):
        found = fitted(
            recordings,
            given=given,
            workers=workers,
            ray=ray,
            jobs_folder=trial.path / CALIBRATION / "fits",
            progress=None if bar is None else lambda done, total: bar(done, total, ""),
        )
    return snapshot_of(
        found, recordings, told.others,
        model=model_of(recordings[0]), name=f"fitted-{size}", plan_digest=trial.plan_digest,
        valid_days=14,
    )  # fmt: skip


def played(
    made: TrialDirectory, told: Chosen, *, workers: int, ray: str | None, quiet: bool
) -> Looped:
    """Play what is missing, and compare."""
    from robo_eval.analysis.trial import analyse_trial
    from robo_eval.cli.progress import episode_progress
    from robo_eval.log.directory import CALIBRATION
    from robo_eval.log.snapshot import read_snapshot
    from robo_eval.log.store import EpisodeStore
    from robo_eval.metrics.agreement import NAMES
    from robo_eval_calibration.loop import compared_of, physical_rows
    from robo_eval_sim.runner import run_simulated

    with made.lock(), EpisodeStore(made.path, durable=True) as store:
        there = store.ids()
        rows = physical_rows(told, made.plan, made.plan_digest)
        store.append([row for row in rows if row.episode_id not in there])
    with episode_progress(made.path.name, quiet=quiet) as on_progress:
        try:
            run_simulated(
                made,
                jobs=workers,
                ray=ray,
                on_progress=on_progress,
                say=lambda line: typer.echo(line, err=True),
            )
        except InterruptedRunError as err:
            done = str(err).partition(";")[0]
            raise InterruptedRunError(f"{done}; the same command goes on") from err
    made.write_manifest(status="complete")
    summary = analyse_trial(made)
    body = next(one for one in summary.bodies if one.side == told.side.value)
    name = next(iter(told.settings))
    return Looped(
        plan=made.plan,
        name=NAMES[told.side.value],
        robot=_ROBOTS[told.compared[0][0].side],
        physical=body.reliability,
        rows=compared_of(body.calibrations),
        snapshots={
            size: read_snapshot(made.path / CALIBRATION / f"{name}-{size}.yaml")
            for size in told.sizes
        },
    )


def write_result(found: Looped, folder: Path) -> None:
    """Write what was found, as JSON and as a page."""
    from robo_eval.log.files import write_atomically
    from robo_eval.report.loop import page

    text = form.dumps(found.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / RESULT, text.encode() + b"\n")
    lines: dict[str, dict[int | None, Estimate]] = {}
    for row in found.rows:
        lines.setdefault(SETTINGS[row.setting], {})[row.recordings] = row.difference
    shown = page(_title(found), lines, _COLUMNS, _cells(found), _notes(found), found.name)
    write_atomically(folder / PAGE, shown.encode())


_COLUMNS: Final = ("simulation", "recordings", "success", "robot less simulation", "agreement")


def _title(found: Looped) -> str:
    return f"{found.plan.name}: {found.robot} succeeds in {interval(found.physical)}"


def _cells(found: Looped) -> list[tuple[str, ...]]:
    return [
        (
            SETTINGS[row.setting],
            "" if row.recordings is None else str(row.recordings),
            "-" if row.success is None else f"{row.success:.2f}",
            interval(row.difference),
            interval(row.agreement),
        )
        for row in found.rows
    ]


def _notes(found: Looped) -> list[str]:
    """What to know of the fits."""
    notes = []
    for size, snapshot in found.snapshots.items():
        of = f"with {counted(size, 'recording')}"
        if snapshot.residuals.verdict == "structure":
            reasons = "; ".join(snapshot.residuals.reasons)
            notes.append(f"{of} no constants explain them, and nominal ones are played: {reasons}")
        elif not snapshot.tells:
            notes.append(f"{of} nothing was found, and nominal constants are played")
    return notes


def print_loop(found: Looped) -> None:
    """The table, for people."""
    level = percent(found.physical.level)
    columns = [*_COLUMNS[:-2], f"{_COLUMNS[-2]} [{level}]", found.name]
    print_table(_title(found), columns, _cells(found), right=(1, 2))
    for note in _notes(found):
        say(note)
