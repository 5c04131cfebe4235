"""A trial as a directory anyone can copy: what is in it, who writes in it, how far it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from robo_eval.core import door
from robo_eval.core.canonical import file_digest, text_digest
from robo_eval.core.errors import PlanError, TrialDirectoryError
from robo_eval.core.names import unknown_name
from robo_eval.log import incident_log
from robo_eval.log.files import PART_SUFFIX, explained, write_atomically
from robo_eval.log.lock import LOCK, RunLock, is_locked
from robo_eval.log.manifest import MANIFEST, STATUSES, Manifest, read_manifest, write_manifest
from robo_eval.log.place import (
    PLAN,
    check_vacant,
    check_writable,
    nearest_existing,
    staging_for,
)

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.core.plan import TrialPlan
    from robo_eval.log.store import EpisodeStore

StrPath = str | os.PathLike[str]

CALIBRATION: Final = "calibration"
CHECK: Final = "check.json"
"""What lies beside the snapshots, and is none: what their recordings can tell."""
TRACES: Final = "traces"
ROBOT_FILE: Final = "robot.yaml"
"""Copy of the robot file, where a robot or twin was driven."""
PREFLIGHT: Final = "preflight.json"
"""What the last preflight of a robot found."""
REPORT: Final = "report"


NO_TRIAL: Final = f"is not a trial directory: no locked {PLAN} with {MANIFEST} or episodes.db"
"""What to say of a folder for which `is_trial` is false."""

_LOCKED: Final = b"# Locked plan:"
"""How a locked plan begins; one that somebody wrote to play it does not."""


def is_trial(path: StrPath) -> bool:
    """Whether a folder is a trial directory, be it a damaged one.

    Of a locked `plan.yaml`, `manifest.json` and `episodes.db` at least two are there. One file
    alone proves nothing: others use these names as well, and a locked plan may have been copied
    to play it again.
    """
    folder = Path(path)
    has_rest = [(folder / name).is_file() for name in (MANIFEST, "episodes.db")]
    return all(has_rest) or (any(has_rest) and _is_locked_plan(folder / PLAN))


def _is_locked_plan(file: Path) -> bool:
    try:
        with door.opened(file) as plan:
            return plan.read(len(_LOCKED)) == _LOCKED
    except OSError:
        return False


def changed_snapshots(folder: Path, plan: TrialPlan) -> Iterator[tuple[str, str]]:
    """Snapshots in a trial directory that are not those its plan was locked with.

    Yields:
        The file, relative to the directory, and what is wrong with it.
    """
    for entry in plan.calibrations:
        if entry.file is None:
            continue
        try:
            is_same = file_digest(folder / entry.file) == entry.sha256
            problem = "" if is_same else "was changed since the trial was locked"
        except FileNotFoundError:
            problem = "is missing"
        except OSError as err:
            problem = f"cannot be read: {err.strerror}"
        if problem:
            yield entry.file, f"{problem}; restore it from a copy"


class TrialDirectory:
    """One trial on disk: `plan.yaml`, `manifest.json`, `episodes.db`, `traces/`, `report/`.

    Made by `create` or `open`.

    Attributes:
        path: The directory.
        plan: The locked plan.
        plan_digest: SHA-256 of plan.yaml.
    """

    def __init__(self, path: Path, plan: TrialPlan, plan_digest: str) -> None:
        self.path: Final = path
        self.plan: Final = plan
        self.plan_digest: Final = plan_digest

    def __repr__(self) -> str:
        return f"TrialDirectory({str(self.path)!r})"

    @classmethod
    def check_new(cls, path: StrPath, *, needed_bytes: int = 0) -> None:
        """Refuse a place where no trial can be created, before anything runs.

        Args:
            path: Directory to be created; it may exist if it is empty.
            needed_bytes: Estimate of the disk space the trial will take.

        Raises:
            TrialDirectoryError: If there is something already, or the place cannot be written,
                or the disk has not enough room.
        """
        folder = Path(path)
        with explained(folder, "cannot be used"):
            check_vacant(folder)
            base = nearest_existing(folder)
            check_writable(folder, base)
            free = shutil.disk_usage(base).free
        if free < needed_bytes:
            raise TrialDirectoryError(
                f"{folder}: the disk has {free / 1e6:.0f} MB free, this trial may need"
                f" {needed_bytes / 1e6:.0f} MB; free some space or choose another place"
            )

    @classmethod
    def create(
        cls,
        path: StrPath,
        plan: TrialPlan,
        *,
        planned: int | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Self:
        """Lock a plan in a new trial directory; it appears complete or not at all.

        Args:
            path: Directory to create; it may exist if it is empty.
            plan: What the trial is going to do.
            planned: How many episodes that is; counted from the plan if not given.
            files: What else belongs to it, by name.

        Raises:
            TrialDirectoryError: If there is something already or it cannot be written.
        """
        from robo_eval.core.plan import locked_text

        folder = Path(path)
        cls.check_new(folder)
        text = locked_text(plan)
        plan_digest = text_digest(text)
        manifest = _new_manifest(plan_digest, _planned(plan) if planned is None else planned)
        with explained(folder, "cannot be created"), staging_for(folder) as staging:
            from robo_eval.log.database import DATABASE, create_database

            (staging / TRACES).mkdir()
            create_database(staging / DATABASE)
            write_manifest(staging / MANIFEST, manifest)
            for name, content in (files or {}).items():
                (staging / name).parent.mkdir(exist_ok=True)
                write_atomically(staging / name, content)
            # Last: a folder without a plan is no trial yet.
            write_atomically(staging / PLAN, text.encode())
        return cls(folder, plan, plan_digest)

    @classmethod
    def open(cls, path: StrPath) -> Self:
        """Open an existing trial directory.

        Raises:
            TrialDirectoryError: If it is none, or plan or manifest are missing or damaged; the
                message names the file.
        """
        folder = Path(path)
        if not folder.exists():
            raise TrialDirectoryError(f"{folder}: no such trial directory")
        if not folder.is_dir():
            raise TrialDirectoryError(f"{folder}: is a file, not a trial directory")
        if not is_trial(folder):
            raise TrialDirectoryError(f"{folder}: {NO_TRIAL}")
        file = folder / PLAN
        if not file.exists():
            raise TrialDirectoryError(f"{file}: is missing; restore it from a copy")
        from robo_eval.core.plan import parse_plan

        with explained(file, "cannot be read"):
            data = door.bytes_of(file)
        try:
            text = data.decode()
            plan = parse_plan(text, source=str(file))
        except (UnicodeDecodeError, PlanError) as err:
            reason = str(err).removeprefix(f"{file}: ")
            raise TrialDirectoryError(
                f"{file}: is damaged ({reason}); restore it from a copy"
            ) from err
        trial = cls(folder, plan, text_digest(text))
        manifest = trial.manifest
        if manifest is not None and manifest.plan_digest != trial.plan_digest:
            raise TrialDirectoryError(
                f"{file}: was changed: its SHA-256 is {trial.plan_digest[:12]}..., the trial was"
                f" locked with {manifest.plan_digest[:12]}...; restore it from a copy"
            )
        return trial

    @property
    def traces_dir(self) -> Path:
        """Where traces are."""
        return self.path / TRACES

    @property
    def calibration_files(self) -> list[Path]:
        """Calibration snapshots, in order of name; hidden files and `check.json` are none."""
        folder = self.path / CALIBRATION
        found = folder.iterdir() if folder.is_dir() else ()
        files = (path for path in found if path.is_file() and path.name != CHECK)
        return sorted(path for path in files if path.name[0] != ".")

    @property
    def report_dir(self) -> Path:
        """Where the report is."""
        return self.path / REPORT

    @property
    def manifest(self) -> Manifest | None:
        """What manifest.json says now; None if there is none.

        Raises:
            TrialDirectoryError: If it is damaged.
        """
        return read_manifest(self.path / MANIFEST)

    def write_manifest(self, *, status: str, store: EpisodeStore | None = None) -> None:
        """Record the state of the run and, if a store is given, how many rows it ended with.

        Args:
            status: One of `log.manifest.STATUSES`.
            store: The rows; their number and chain head are recorded.

        Raises:
            TrialDirectoryError: If it cannot be written.
        """
        if status not in STATUSES:
            raise TrialDirectoryError(str(unknown_name("status", status, STATUSES)))
        manifest = self.manifest or _new_manifest(self.plan_digest, _planned(self.plan))
        if store is not None:
            # What was there once stays named: who takes it away does not change that.
            beside = {**manifest.beside, **self.evidence_files()}
            manifest = replace(manifest, rows=len(store), head=store.head(), beside=beside)
            known = incident_log.identity_of(self.path, manifest.incidents)
            manifest = replace(manifest, incidents=known)
        write_manifest(self.path / MANIFEST, replace(manifest, status=status, updated_utc=_now()))

    def evidence_files(self) -> dict[str, str]:
        """SHA-256 of each file of evidence by its name; empty of the incident log."""
        from robo_eval.log.evidence import NAMES
        from robo_eval.log.incident_log import DATABASE

        tables = [self.path / f"{kind}.csv" for kind in NAMES]
        found = {one.name: file_digest(one) for one in tables if one.is_file()}
        return found | ({DATABASE: ""} if (self.path / DATABASE).is_file() else {})

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the trial for writing; it is released when the process ends, however it ends.

        The manifest says `running` from here on, until `write_manifest` says something else.

        Raises:
            TrialDirectoryError: If another process holds it (the message names it), or the
                episode database cannot be used.
        """
        with RunLock(self.path):
            from robo_eval.log.store import EpisodeStore

            # Opened once before anything is changed: a damaged trial stays as it is.
            with EpisodeStore(self.path, durable=False):
                pass
            for leftover in self.traces_dir.glob(f".*{PART_SUFFIX}"):
                leftover.unlink(missing_ok=True)
            with explained(self.traces_dir, "cannot be created"):
                self.traces_dir.mkdir(exist_ok=True)
            self.write_manifest(status="running")
            yield

    def frame(self) -> pd.DataFrame:
        """All episodes as a table; see `EpisodeStore.frame`."""
        from robo_eval.log.store import EpisodeStore

        with EpisodeStore(self.path, durable=False, read_only=True) as store:
            return store.frame()

    def status(self, planned: int | None = None) -> str:
        """How far the trial is: `complete`, `running at 12/40`, or `interrupted at 12/40`.

        Args:
            planned: How many episodes there should be; as planned if not given.
        """
        manifest = self.manifest
        held = is_locked(self.path)
        if manifest is not None and manifest.status == "complete" and not held:
            return "complete"
        from robo_eval.log.store import EpisodeStore

        with EpisodeStore(self.path, durable=False, read_only=True) as store:
            done = len(store)
        if planned is None:
            planned = _planned(self.plan) if manifest is None else manifest.planned
        if held:
            return f"running at {done}/{planned}"
        return f"interrupted at {done}/{planned}"


def _planned(plan: TrialPlan) -> int:
    from robo_eval.core.schedule import schedule

    if plan.imported is not None:
        return plan.imported.rows
    return sum(len(schedule(plan, side)) for side in plan.sides)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _new_manifest(plan_digest: str, planned: int) -> Manifest:
    from robo_eval.log import provenance
    from robo_eval.log.chain import GENESIS

    return Manifest(
        status="created",
        plan_digest=plan_digest,
        planned=planned,
        rows=0,
        head=GENESIS,
        created_utc=_now(),
        updated_utc=_now(),
        software=provenance.software(),
        versions=provenance.versions(),
        git_revision=provenance.git_revision(),
        machine=provenance.machine(),
    )


__all__ = ["LOCK", "MANIFEST", "NO_TRIAL", "PLAN", "REPORT", "TRACES", "TrialDirectory", "is_trial"]
