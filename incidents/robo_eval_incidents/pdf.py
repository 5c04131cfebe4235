"""The incident log of a period as a document to print, sign and file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import Side
from robo_eval.log.files import write_atomically
from robo_eval_incidents.checkpoint import checkpoints_of
from robo_eval_incidents.draft import cleaned
from robo_eval_incidents.hours import TITLES, Finding, Hours, Shift, check_period, hours, shifts
from robo_eval_incidents.kinds import Evidence, Quantity
from robo_eval_incidents.lists import Filter, Listed, list_incidents
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.narrative import history
from robo_eval_incidents.pdf_sheet import Sheet
from robo_eval_incidents.record import now
from robo_eval_incidents.standing import SideStanding, standing
from robo_eval_incidents.state import Incident
from robo_eval_incidents.words import Severity, spoken

MOST_INCIDENTS: Final = 2_000
"""A document has no more: each takes about a hundredth of a second, and half a page."""
_MOST_LISTED: Final = 20
"""Gaps, overlaps and the like that are written out; of more the document says how many."""
_MOST_LETTERS: Final = 60
"""Characters of what happened in the list of incidents; all of them are where it is described."""
_SIDES: Final = {Side.REAL: "Real robots", Side.TWIN: "Stand-ins (twin)", Side.SIM: "Simulation"}


def write_pdf(
    log: IncidentLog,
    out: Path | BinaryIO,
    since_ns: int | None = None,
    until_ns: int | None = None,
    *,
    made_ns: int | None = None,
) -> None:
    """Write what a log says about a period as PDF.

    Args:
        log: The log.
        out: File to write, which appears complete or not at all; or an open one.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        made_ns: When it is made, UTC; None for now. It is on the first page.

    Raises:
        InputError: If the period ends before it begins, or holds more than `MOST_INCIDENTS`.
        MissingExtraError: If the library that writes PDF is not installed.
        TrialDirectoryError: If the file cannot be written.
    """
    check_period(since_ns, until_ns)
    document = _Document(log, since_ns, until_ns, now().time_ns if made_ns is None else made_ns)
    data = document.written()
    if isinstance(out, Path):
        write_atomically(out, data)
    else:
        out.write(data)


class _Document:
    """What is written about a period.

    Args:
        log: The log.
        since_ns: Begin of the period, UTC; None for all before.
        until_ns: End of the period, UTC; None for all after.
        made_ns: When it is made, UTC.
    """

    def __init__(
        self, log: IncidentLog, since_ns: int | None, until_ns: int | None, made_ns: int
    ) -> None:
        self._log = log
        self._since, self._until, self._made = since_ns, until_ns, made_ns
        self._log_id = log.meta.get("log_id", "unknown")
        self._sheet = Sheet("Incident log", f"Incident log {self._log_id}", made_ns)

    def written(self) -> bytes:
        """The whole document."""
        rows = self._rows()
        self._sheet.title(
            "Incident log",
            f"Period: {self._period()}",
            f"Written {_time(self._made)}. All times are UTC.",
            "Checkpoint and digests of the log that it rests on are at its end.",
        )
        self._standing()
        found = hours(self._log, self._since, self._until)
        self._hours(found)
        self._table_of(rows)
        self._nils(shifts(self._log, self._since, self._until), found.of("contradicted"))
        for row in rows:
            self._incident(self._log.incident(row.incident_id))
        self._origin()
        self._missing()
        return self._sheet.bytes()

    def _period(self) -> str:
        if self._since is None and self._until is None:
            return "everything that was recorded"
        begin = "the beginning" if self._since is None else _time(self._since)
        end = "the end" if self._until is None else _time(self._until)
        return f"{begin} to {end} (not included)"

    # What the document rests on ----------------------------------------------------------------

    def _origin(self) -> None:
        sheet = self._sheet
        sheet.heading("The log")
        stations = [
            (f"Station {name}", f"{head.sequence:,} records; head of the chain\n{head.sha256}")
            for name, head in sorted(self._log.heads().items())
        ]
        sheet.pairs([("Log", self._log_id), *self._checkpoint(), *stations])

    def _checkpoint(self) -> Iterator[tuple[str, str]]:
        """How far signed statements reach."""
        found = checkpoints_of(self._log)
        if not found:
            yield "Checkpoint", "none: nothing outside this log vouches for its records"
            return
        newest = found[-1]
        problems = newest.problems()
        if problems:
            yield "Checkpoint", f"the newest {problems[0]}"
            return
        covered = sum(sequence for sequence, _ in newest.heads.values())
        total = sum(head.sequence for head in self._log.heads().values())
        when = _time(int(newest.values.get("time_ns", 0)))
        since = "no record" if covered == total else f"{total - covered:,} records"
        yield "Checkpoint", f"number {len(found)}, {when}, {since} since"
        yield "SHA-256", newest.sha256
        yield "Signed by", newest.signer
        stamp = "none" if newest.stamp is None else "there is one; `robo-eval verify` checks it"
        yield "Time stamp", stamp

    def _standing(self) -> None:
        found = standing(self._log, self._since, self._until)
        for side, title in _SIDES.items():
            if side in found.sides:
                self._sheet.heading(f"{title}: rates and safety score")
                self._side(found.sides[side])

    def _side(self, one: SideStanding) -> None:
        sheet = self._sheet
        logged = "none logged" if one.hours is None else _logged(one.hours, one.nil_hours)
        pairs = [("Exposure", logged), ("Safety score (SS)", _estimate(one.score))]
        if one.unreviewed:
            pairs.append(("Not reviewed", f"{one.unreviewed}; they count all the same"))
        if not one.is_valid:
            pairs.append(("Valid", "no: a critical incident ends the period"))
        sheet.pairs(pairs)
        sheet.table(
            ("Severity", "Incidents", "Per 1,000 h, with its exact interval"),
            [
                (
                    Severity(name).label,
                    "no record" if one.counts is None else str(one.counts[name]),
                    _estimate(rate),
                )
                for name, rate in one.rates.items()
                if name in set(Severity)
            ],
            widths=(20, 15, 65),
        )

    def _hours(self, found: Hours) -> None:
        sheet = self._sheet
        sheet.heading("Exposure")
        if not found.rows:
            sheet.paragraph("No hours were logged; there are no rates.")
        else:
            sheet.table(
                ("Robot", "Side", "Mode", "Task", "Hours", "Times"),
                [
                    (
                        row.robot, row.side.value, spoken(row.mode), row.task or "not known",
                        f"{row.hours:,.3f}", f"{row.times:,}",
                    )
                    for row in found.rows
                ],
                widths=(22, 10, 18, 26, 13, 11),
            )  # fmt: skip
        for kind, title in TITLES.items():
            self._listed(title.capitalize(), [str(one) for one in found.of(kind)])

    def _listed(self, title: str, lines: list[str]) -> None:
        if not lines:
            return
        more = len(lines) - _MOST_LISTED
        shown = lines[:_MOST_LISTED] + ([f"and {more} more"] if more > 0 else [])
        self._sheet.paragraph(f"{title}:\n" + "\n".join(f"\N{BULLET} {line}" for line in shown))

    # Incidents ---------------------------------------------------------------------------------

    def _rows(self) -> Sequence[Listed]:
        """Incidents of the period, oldest first."""
        wanted = Filter(since_ns=self._since, until_ns=self._until)
        page = list_incidents(self._log, wanted, limit=MOST_INCIDENTS)
        if page.next is not None:
            raise InputError(
                f"the period holds more than {MOST_INCIDENTS:,} incidents, which is the most for a"
                " document; choose a shorter one, or export it as CSV"
            )
        return page.rows[::-1]

    def _table_of(self, rows: Sequence[Listed]) -> None:
        sheet = self._sheet
        sheet.heading("Incidents")
        if not rows:
            sheet.paragraph("No incident was recorded for this period.")
            return
        sheet.paragraph(
            "Robot, side and time are those that count: a correction of a major or critical"
            " incident counts once it is reviewed.",
            is_quiet=True,
        )
        sheet.table(
            ("Number", "Happened", "Robot", "Severity", "What happened", "Status"),
            [
                (
                    row.name, _time(row.happened_ns), f"{row.robot} ({row.side.value})",
                    _severity(row.severity, row.counted_severity),
                    f"{spoken(row.category)}: {cleaned(row.description, _MOST_LETTERS)}",
                    row.status.value,
                )
                for row in rows
            ],
            widths=(12, 19, 14, 12, 32, 11),
        )  # fmt: skip

    def _incident(self, incident: Incident) -> None:
        sheet = self._sheet
        counted = _severity(incident.severity, incident.counted_severity)
        sheet.heading(f"{incident.name}: {counted}, {spoken(incident.category)}", level=1)
        sheet.paragraph(incident.report.description)
        sheet.pairs(list(_pairs(incident)))
        sheet.table(
            ("When", "Who", "What"),
            [
                (
                    _time(step.record.at.time_ns),
                    f"{step.record.by} ({step.record.via.value})",
                    "\n".join(step.lines("→")),
                )
                for step in history(incident)
            ],
            widths=(20, 22, 58),
        )

    # Shifts ------------------------------------------------------------------------------------

    def _nils(self, found: Sequence[Shift], contradicted: Iterable[Finding]) -> None:
        self._sheet.heading("Shifts without incidents")
        if not found:
            self._sheet.paragraph("None was reported.")
            return
        denied = {one.name: one for one in contradicted}
        self._sheet.table(
            ("Number", "From", "To", "Robot", "By", "Note"),
            [
                (
                    one.name, _time(one.start_ns), _time(one.end_ns),
                    f"{one.robot or 'all robots'} ({one.side.value})", one.by,
                    _shift_note(one.note, denied.get(one.name)),
                )
                for one in found
            ],
            widths=(16, 20, 20, 16, 13, 15),
        )  # fmt: skip

    def _missing(self) -> None:
        missing = sorted(self._sheet.missing)
        if missing:
            names = ", ".join(f"U+{ord(letter):04X}" for letter in missing[:40])
            more = "" if len(missing) <= 40 else f" and {len(missing) - 40} more"
            self._sheet.paragraph(
                f"□ stands for a character that the font of this document has not ({names}{more})."
                " The log itself holds every character.",
                is_quiet=True,
            )


def _logged(hours: float, nil_hours: float) -> str:
    return f"{hours:,.2f} h, {nil_hours:,.2f} h of them in shifts reported without incidents"


def _shift_note(note: str, contradicted: Finding | None) -> str:
    """What was said with a nil report, and what speaks against it."""
    against = "" if contradicted is None else f"but there is {contradicted.names}"
    return "\n".join(filter(None, (note, against)))


def _pairs(incident: Incident) -> Iterator[tuple[str, str]]:
    """What is known of an incident, by name."""
    report = incident.report
    yield "Happened", _time(report.happened_ns)
    control = f"in control: {spoken(report.engagement)}"
    yield "Robot", f"{report.robot} ({report.side.value}), {control}"
    if incident.counts_elsewhere:
        counted = incident.counted
        where = f"{counted.robot} ({counted.side.value}), {_time(counted.happened_ns)}"
        yield "Counts as", f"{where} until reviewed"
    of = {"Episode": report.episode_id, "Policy": report.policy, "Task": report.task}
    yield from ((name, text) for name, text in of.items() if text)
    if report.quantities:
        yield "Measured", "\n".join(map(_quantity, report.quantities))
    if report.answers:
        said = (f"{spoken(name)}: {answer.value}" for name, answer in report.answers.items())
        yield "Recordability", "; ".join(said)
    if incident.evidence:
        yield "Evidence", "\n".join(map(_evidence, incident.evidence))
    yield "Status", incident.status.value
    if incident.reviewers and incident.verdict is not None:
        behind = ", ".join(incident.reviewers)
        yield "Behind it", f"{incident.verdict} by {behind} ({incident.people_needed} needed)"
    for measure in incident.measures.values():
        word = {None: "not checked", True: "effective", False: "not effective"}
        due = f", due {measure.action.due}" if measure.action.due is not None else ""
        whose = f"{measure.action.owner}{due}"
        yield "Action", f"{measure.action.what} ({whose}): {word[measure.is_effective]}"
    if not incident.is_closed and (lacking := incident.open_points):
        yield "Open", "\n".join(lacking)


def _quantity(one: Quantity) -> str:
    limit = "" if one.limit is None else f" (limit {one.limit:g} {one.unit})".replace(" )", ")")
    return f"{one.name} {one.value:g} {one.unit}".rstrip() + limit


def _evidence(one: Evidence) -> str:
    span = ""
    if one.start_ns is not None and one.end_ns is not None:
        span = f", {_span(one.start_ns, one.end_ns)}"
    digest = "" if one.sha256 is None else f"\nSHA-256 {one.sha256}"
    return f"{one.uri}{span}{digest}"


def _severity(severity: Severity, counted: Severity) -> str:
    text = severity.label
    return text if counted is severity else f"{text} (counts as {counted.label})"


def _estimate(one: Estimate) -> str:
    """A number with its interval, or why there is none."""
    if one.value is None:
        return f"none: {one.reason}"
    interval = "no interval"
    if one.low is not None and one.high is not None:
        interval = f"{one.level:.0%} interval {one.low:.4g} to {one.high:.4g}"
    reason = f"; {one.reason}" if one.reason is not None else ""
    return f"{one.value:.4g}, {interval}{reason}"


def _time(time_ns: int) -> str:
    """A time for people, in UTC: the document does not depend on where it is made."""
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=time_ns // 10**9)
    return f"{when:%Y-%m-%d %H:%M:%S}"


def _span(start_ns: int, end_ns: int) -> str:
    return f"{_time(start_ns)} to {_time(end_ns)}"
