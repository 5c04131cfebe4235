"""Whether a trial directory still is what was logged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from robo_eval.core import door
from robo_eval.core.canonical import text_digest
from robo_eval.core.episode import is_below
from robo_eval.core.errors import InputError, MissingExtraError, PlanError, TrialDirectoryError
from robo_eval.core.kinds import SYNTHETIC, UNPLAYED, Side
from robo_eval.core.wording import counted
from robo_eval.log import database, incident_log
from robo_eval.log.chain import GENESIS, START, ChainLink, break_text, numbers_text
from robo_eval.log.database import DATABASE, SchemaVersionError, UnreadableError
from robo_eval.log.directory import NO_TRIAL, PLAN, TRACES, changed_snapshots, is_trial
from robo_eval.log.files import PART_SUFFIX
from robo_eval.log.lock import is_locked
from robo_eval.log.manifest import MANIFEST, Manifest, read_manifest
from robo_eval.log.rows import ROW_FORM, episode_of, stored_digest
from robo_eval.log.trace_folder import HELD, trace_digest

_MOST_PAGES: Final = 5
_HELD: Final = ("side", "robot", "end_reason", *HELD)
"""What of a row is held against its recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is not as it was logged.

    Attributes:
        file: File, relative to the trial directory.
        row: Sequence number of the row, if it is one.
        what: What is wrong with it.
    """

    file: str
    what: str
    row: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The finding, ready for JSON."""
        return {"file": self.file, "row": self.row, "what": self.what}

    def __str__(self) -> str:
        place = self.file if self.row is None else f"{self.file}: row {self.row}"
        return f"{place}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What any verification found.

    Attributes:
        problems: Everything that is not as it was recorded.
        notes: What is fine but worth knowing, or could not be checked.
    """

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def first(self) -> str:
        """The first problem, and how many more there are; empty if nothing is wrong."""
        more = f" (and {counted(len(self.problems) - 1, 'more problem')})"
        return "".join(map(str, self.problems[:1])) + more * (len(self.problems) > 1)

    def lines(self) -> Iterator[str]:
        """The findings, one line each."""
        for problem in self.problems:
            yield f"PROBLEM {problem}"
        for note in self.notes:
            yield f"note: {note}"

    def as_dict(self) -> dict[str, Any]:
        """The findings, ready for JSON."""
        return {
            "ok": self.ok,
            "problems": [problem.as_dict() for problem in self.problems],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport(Findings):
    """What verification of a trial found.

    Attributes:
        trial: The trial directory.
        rows: Rows that were checked.
        traces: Traces that were checked.
        head: SHA-256 of the newest row. Kept elsewhere, it also proves that nothing was
            replaced as a whole.
        unreadable: Why nothing is known of the rows; None if they could be read.
    """

    trial: Path
    rows: int
    traces: int
    head: str
    unreadable: str | None = None

    def lines(self) -> Iterator[str]:
        """The findings, one line each."""
        yield from Findings.lines(self)
        yield f"{self.rows} rows and {self.traces} traces checked; chain head {self.head}"

    def as_dict(self) -> dict[str, Any]:
        """The findings, ready for JSON."""
        return {
            "trial": str(self.trial),
            **Findings.as_dict(self),
            "rows": self.rows,
            "traces": self.traces,
            "chain_head": self.head,
        }


def verify_trial(
    path: Path | str | os.PathLike[str], *, signed_by: str | None = None
) -> VerificationReport:
    """Compare plan, rows and traces of a trial with the digests it carries, and its signatures.

    Finds any changed byte of the plan, of a trace, or of the canonical form of a row; rows that
    were removed, inserted, reordered or doubled; missing and foreign traces. What it cannot
    find, and why, is in docs/log.md.

    Args:
        path: The trial directory.
        signed_by: Fingerprint of the key that has to have signed each bundle; None for any.

    Raises:
        TrialDirectoryError: If there is no trial directory, or its database is of another
            schema version.
    """
    folder = Path(path)
    if not folder.is_dir():
        found = "is a file, not a trial directory" if folder.exists() else "no such trial directory"
        raise TrialDirectoryError(f"{folder}: {found}")
    if not is_trial(folder):
        raise TrialDirectoryError(f"{folder}: {NO_TRIAL}")
    check = _Check(folder, signed_by)
    check.run()
    return VerificationReport(
        trial=folder,
        problems=tuple(check.problems),
        notes=tuple(check.notes),
        rows=len(check.digests),
        traces=check.traces,
        head=check.digests[max(check.digests)] if check.digests else GENESIS,
        unreadable=check.unreadable,
    )


class _Check:
    """One pass over a trial directory."""

    def __init__(self, folder: Path, signed_by: str | None = None) -> None:
        self.folder = folder
        self._signed_by = signed_by
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.digests: dict[int, str] = {}
        self.traces = 0
        self.unreadable: str | None = None
        self._ids: dict[str, int] = {}
        self._trace_of: dict[str, tuple[int, str | None, dict[str, Any]]] = {}
        self._played: list[list[Any]] = []
        self._is_imported = False
        self._plan_digest: str | None = None
        # Asked first: a run that ends meanwhile may leave more than was there when we looked.
        self._running = is_locked(folder)
        self._manifest: Manifest | None = None

    def run(self) -> None:
        self._manifest = self._read_manifest()
        self._plan_digest = self._check_plan()
        if self._running:
            self.notes.append("a run is under way; its newest episodes may be missing here")
        try:
            self._check_rows()
        except SchemaVersionError:  # no damage
            raise
        except InputError as err:
            self._problem(DATABASE, self._short(err))
            self.unreadable = str(err) if isinstance(err, UnreadableError) else None
            return
        self._check_manifest()
        self._check_beside()
        self._check_evidence()
        self._check_traces()
        self._check_bundles()

    def _problem(self, file: str, what: str, row: int | None = None) -> None:
        self.problems.append(Problem(file=file, what=what, row=row))

    def _short(self, err: Exception) -> str:
        """An error's message without the path that a problem names anyway."""
        text = str(err).removeprefix(f"{self.folder}{os.sep}")
        return text.split(": ", 1)[1] if text.startswith((DATABASE, PLAN, MANIFEST)) else text

    @property
    def _is_complete(self) -> bool:
        manifest = self._manifest
        return manifest is not None and manifest.status == "complete" and not self._running

    # Plan and manifest -------------------------------------------------------------------------

    def _read_manifest(self) -> Manifest | None:
        try:
            manifest = read_manifest(self.folder / MANIFEST)
        except TrialDirectoryError as err:
            self._problem(MANIFEST, self._short(err))
            return None
        if manifest is None:
            self._problem(MANIFEST, "is missing; whether rows are missing cannot be checked")
        return manifest

    def _check_plan(self) -> str | None:
        file = self.folder / PLAN
        try:
            text = door.bytes_of(file).decode()
        except FileNotFoundError:
            self._problem(PLAN, "is missing")
            return None
        except (OSError, UnicodeDecodeError) as err:
            self._problem(PLAN, f"cannot be read as UTF-8 text: {err}")
            return None
        self._is_imported = re.search(r"^imported:(?! *null)", text, re.MULTILINE) is not None
        found = text_digest(text)
        locked = self._manifest.plan_digest if self._manifest is not None else None
        if locked is not None and found != locked:
            self._problem(
                PLAN,
                f"was changed: its SHA-256 is {found}, the trial was locked with {locked}",
            )
            return locked
        # What was locked had been checked; models of plans take longer to load than all the rest.
        if locked is None or re.search(r"^calibrations:(?! *\[\])", text, re.MULTILINE):
            from robo_eval.core.plan import parse_plan

            try:
                plan = parse_plan(text, source=PLAN)
            except PlanError as err:
                self._problem(PLAN, self._short(err))
            else:
                for name, what in changed_snapshots(self.folder, plan):
                    self._problem(name, what)
        return found

    # Rows --------------------------------------------------------------------------------------

    def _check_rows(self) -> None:
        with database.reading(self.folder / DATABASE) as connection:
            for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_PAGES})"):
                if line != "ok":
                    self._problem(DATABASE, f"SQLite finds damage: {line}")
            last = START
            for chain, cells in database.stored_rows(connection):
                last = self._check_row(chain, cells, last)

    def _check_row(
        self, chain: dict[str, Any], cells: dict[str, Any], last: ChainLink
    ) -> ChainLink:
        sequence, row_sha256 = chain["sequence"], chain["row_sha256"]
        if broken := break_text(last, sequence, chain["previous_sha256"]):
            self._problem(DATABASE, broken, sequence)
        self._check_digest(chain, cells)
        self.digests[sequence] = str(row_sha256)
        name = cells["episode_id"]
        if name in self._ids:
            self._problem(DATABASE, f"doubles episode {name!r} of row {self._ids[name]}", sequence)
        self._ids.setdefault(name, sequence)
        if self._plan_digest is not None and cells["plan_digest"] != self._plan_digest:
            given = f"{cells['plan_digest']!r:.20}"
            self._problem(DATABASE, f"belongs to another plan (plan_digest {given}...)", sequence)
        if cells["trace_uri"] is not None:
            held = {name: cells[name] for name in _HELD}
            self._trace_of[str(cells["trace_uri"])] = (sequence, cells["trace_sha256"], held)
        if cells["side"] != Side.SIM.value and isinstance(cells["start_ns"], int):
            self._played.append([cells[name] for name in incident_log.PLAYED])
        try:
            episode_of(list(cells.values()), where=lambda: "")
        except InputError as err:
            self._problem(DATABASE, str(err).removeprefix(", ").removeprefix(": "), sequence)
        return ChainLink(sequence, str(row_sha256))

    def _check_digest(self, chain: dict[str, Any], cells: dict[str, Any]) -> None:
        sequence, form = chain["sequence"], chain["row_form"]
        if form != ROW_FORM:
            self._problem(DATABASE, f"has an unknown row_form {form!r:.40}", sequence)
        elif stored_digest(cells, chain) != chain["row_sha256"]:
            self._problem(
                DATABASE,
                f"was changed ({cells['episode_id']!r:.80}): its cells do not match row_sha256",
                sequence,
            )

    # Manifest against rows ---------------------------------------------------------------------

    def _check_manifest(self) -> None:
        manifest = self._manifest
        if manifest is None:
            return
        last = max(self.digests, default=0)
        rows = manifest.rows
        if last < rows:
            self._problem(
                DATABASE, f"{numbers_text(last + 1, rows)}, which {MANIFEST} counts, missing"
            )
        elif rows and self.digests.get(rows) != manifest.head:
            self._problem(DATABASE, f"is not the row whose digest {MANIFEST} holds", rows)
        elif self._is_complete and last > rows:
            self._problem(
                DATABASE, f"{numbers_text(rows + 1, last)} came after the trial was complete"
            )
        if not self._is_complete:
            counts = f"{numbers_text(1, rows)} and" if rows else "no rows and"
            found = f"{numbers_text(rows + 1, last)} after that; all" if last > rows else "these"
            # A process that was killed could not write that it is gone.
            ended = manifest.status == "running" and not self._running
            status = "interrupted" if ended else manifest.status
            self.notes.append(
                f"the trial is not complete ({status}): {MANIFEST} counts {counts}"
                f" {found} are chained, but nothing says whether later ones are missing"
            )

    # Evidence beside the rows ------------------------------------------------------------------

    def _check_beside(self) -> None:
        for name in self._manifest.beside if self._manifest is not None else ():
            # A table of incidents may have been brought into a log.
            one_of = {name, incident_log.DATABASE} if name == incident_log.TABLE else {name}
            if not any((self.folder / one).exists() for one in one_of):
                self._problem(name, f"is missing; {MANIFEST} knows that it was there")
        path = None
        try:
            path = incident_log.incidents_of(self.folder)
            is_log = path is not None and incident_log.is_incident_log(path)
            known = self._manifest.incidents if self._manifest is not None else ()
            if is_log and not incident_log.goes_on(self.folder, known):
                what = "is another log than the run had, or lost records of it; put that one back"
                self._problem(incident_log.DATABASE, what)
            if path is not None and self._played:
                self._check_incidents(path)
        except MissingExtraError as err:
            self.notes.append(str(err).removeprefix(f"{self.folder}{os.sep}"))
        except InputError as err:
            if path is not None and incident_log.is_incident_log(path):
                return  # what verifies the log says more
            file, _, what = str(err).removeprefix(f"{self.folder}{os.sep}").partition(": ")
            self._problem(file, what)

    def _check_evidence(self) -> None:
        """Whether what people noted can be read; of incidents that was found already."""
        tables = sorted(path for path in self.folder.glob("*.csv") if path.stem != "incidents")
        if not tables:
            return  # what reads them takes longer to load than a small trial to check
        from robo_eval.log.evidence import NAMES
        from robo_eval.log.evidence_read import read_evidence

        for path in tables:
            try:
                read_evidence(None, {path.stem: path} if path.stem in NAMES else {})
            except InputError as err:
                self.notes.append(f"{self._short(err)}; `metrics` and `assess` refuse the file")

    def _check_incidents(self, path: Path) -> None:
        """Whether incidents happened while the policies played that they name."""
        from robo_eval.log.evidence_read import read_evidence

        incidents = read_evidence(None, {"incidents": path}).incidents or ()
        if not any((one.time_ns, one.episode_id) != (None, None) for one in incidents):
            return
        import pandas as pd

        from robo_eval.log.spans import Windows, other_policy

        windows = Windows.by_side(pd.DataFrame(self._played, columns=incident_log.PLAYED))
        for incident in incidents:
            if problem := other_policy(incident, windows.get(incident.side)):
                self._problem(path.name, f"{incident.place}: {problem}")

    # Traces ------------------------------------------------------------------------------------

    def _check_traces(self) -> None:
        for uri, (row, sha256, cells) in self._trace_of.items():
            file = self.folder / uri
            if not is_below(uri):  # which the row was said to be wrong for
                continue
            try:
                found = trace_digest(file)
            except FileNotFoundError:
                self._problem(uri, f"is missing; row {row} of {DATABASE} names it")
                continue
            except OSError as err:
                what = f"cannot be read: {err.strerror or err}; row {row} of {DATABASE} names it"
                self._problem(f"{uri:.200}", what)
                continue
            self.traces += 1
            if found != sha256:
                what = "files" if file.is_dir() else f"{file.stat().st_size} bytes"
                self._problem(
                    uri,
                    f"was changed: its {what} have SHA-256 {found}, row {row} says {sha256}",
                )
            elif cells["end_reason"] not in UNPLAYED and cells["robot"] != SYNTHETIC:
                self._check_recorded(uri, row, cells)
        for file in sorted((self.folder / TRACES).rglob("*")):
            if file.is_file():
                self._check_extra(file)

    def _check_recorded(self, uri: str, row: int, cells: dict[str, Any]) -> None:
        """Whether a recording bears out the row of its episode."""
        from robo_eval.log.recorded import read_recorded

        try:
            found = read_recorded(self.folder / uri)
        except (InputError, TrialDirectoryError) as err:
            self.notes.append(f"was not held against row {row}: {self._short(err)}")
            return
        is_physical = cells["side"] != Side.SIM.value
        for what in found.denies(cells, is_physical=is_physical):
            self._problem(uri, f"{what} in row {row} of {DATABASE}")
        for what in found.lacks(cells) if is_physical else ():
            if self._is_imported:  # whatever others recorded, it is what was imported
                self.notes.append(f"{uri}: {what}; an assessment asks for more")
            else:
                self._problem(uri, f"{what} in row {row} of {DATABASE}")

    # Signed bundles ----------------------------------------------------------------------------

    def _check_bundles(self) -> None:
        from robo_eval.log import signing

        for name in signing.BUNDLES:
            folder = self.folder / name
            if not folder.exists():
                if self._signed_by is not None:
                    self._problem(f"{name}/", "is missing: nothing here is signed")
                continue
            found = list(signing.check_bundle(folder, self.digests))
            who = signing.signer_of(folder)
            if self._signed_by not in (None, who):
                what = f"is signed by key {who}, not {self._signed_by!r:.40}"
                found.append((f"{name}/{signing.STATEMENT}", what))
            for file, what in found:
                self._problem(file, what)
            if not found:
                self.notes.append(f"{name}/: signed by key {who}, and made of what is here")

    def _check_extra(self, file: Path) -> None:
        path = file.relative_to(self.folder)
        uri = path.as_posix()
        # A file below a folder that is a trace is in its digest.
        if any(parent.as_posix() in self._trace_of for parent in (path, *path.parents)):
            return
        names = (file.stem, *(parent.name for parent in path.parents))  # a bag is a folder
        if file.name.startswith(".") and file.name.endswith(PART_SUFFIX):
            self.notes.append(f"{uri}: left by a process that died while writing; can be deleted")
        elif not self._is_complete:
            self.notes.append(f"{uri}: no row names it; left by an episode that was interrupted")
        elif row := next((self._ids[name] for name in names if name in self._ids), None):
            self.notes.append(f"{uri}: row {row} has no trace; left by a lost try")
        else:
            self._problem(uri, "is not named by any row")
