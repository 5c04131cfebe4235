"""Whether the parts of a pack tell the same story."""

from __future__ import annotations

import base64
import json
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from robo_eval.core.canonical import text_digest
from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.plan import parse_plan
from robo_eval.core.wording import counted
from robo_eval.log.chain import ChainLink, break_before
from robo_eval.log.files import explained
from robo_eval.log.rows import episode_of
from robo_eval.log.signing import fingerprint, is_signed
from robo_eval.log.verify import Findings, Problem
from robo_eval_incidents.capture import event_id
from robo_eval_incidents.draft import Cause, added_lines, drafted
from robo_eval_incidents.happened import (
    Heard,
    Occurrence,
    Scene,
    ending,
    heard_in,
    physical_events,
    scene_of,
)
from robo_eval_incidents.kinds import section_of
from robo_eval_incidents.pack import (
    EPISODE,
    EVIDENCE,
    FORM,
    KIND,
    MOST_BYTES,
    RECORDS,
    RULES,
    SETTINGS,
    SIGNATURE,
    STATEMENT,
    digest,
    stands_of,
)
from robo_eval_incidents.record import Record, content_digest, parts_of_line, record_of
from robo_eval_incidents.rule import Ignored, Rule, Rules
from robo_eval_incidents.state import Incident, incident_of
from robo_eval_incidents.words import Via

_SAID: Final = ("severity", "category", "quantities", "rule")
"""What rules, trace and row say of a draft, beside its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackReport(Findings):
    """What verification of a pack found.

    Attributes:
        file: The pack.
        signer: Fingerprint of the key that signed it; None if none did.
        checked: What was compared, in words.
    """

    file: str
    signer: str | None
    checked: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """The findings, one line each."""
        yield from Findings.lines(self)
        for one in self.checked:
            yield f"checked: {one}"
        yield f"signed by key {self.signer}" if self.signer else "not signed"

    def as_dict(self) -> dict[str, Any]:
        """The findings, ready for JSON."""
        return {
            "file": self.file,
            **Findings.as_dict(self),
            "signed_by": self.signer,
            "checked": list(self.checked),
        }


def verify_pack(path: Path, *, signed_by: str | None = None) -> PackReport:
    """Compare the parts of a pack with one another.

    Digests and the signature show what was changed after it was packed. Beyond them the parts have
    to mean the same: how the incident stands follows from its records, the evidence is what they
    name, the episode is the one they name, and what rules draft from the trace and the row is what
    was drafted. So a part that was changed with all digests made anew is found as well.

    Args:
        path: The pack.
        signed_by: Fingerprint of the key that has to have signed it.

    Raises:
        InputError: If it is no pack.
    """
    checking = _Checking(path)
    checking.run(signed_by)
    return PackReport(
        file=str(path),
        problems=tuple(Problem(file=where, what=what) for where, what in checking.problems),
        notes=tuple(checking.notes),
        signer=checking.signer,
        checked=tuple(checking.checked),
    )


class _Checking:
    """The parts of one pack, and what was found of them."""

    def __init__(self, path: Path) -> None:
        self.problems: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.checked: list[str] = []
        self.signer: str | None = None
        self._parts = _parts_of(path)
        self._statement = _statement_of(path, self._parts)

    def run(self, signed_by: str | None) -> None:
        self._check_digests()
        self._check_signature(signed_by)
        try:
            records = self._records()
        except InputError as err:
            self._problem(RECORDS, str(err))
            return
        incident = incident_of(records)
        if incident is None:
            self._problem(RECORDS, "holds no report")
            return
        self._check_records(records, incident)
        self._check_evidence(incident)
        self._check_settings(incident)
        self._check_draft(incident)

    def _problem(self, where: str, what: str) -> None:
        self.problems.append((where, what))

    def _check_digests(self) -> None:
        stated = self._statement["files"]
        for name in sorted({*stated, *self._parts} - {STATEMENT, SIGNATURE}):
            if name not in self._parts:
                self._problem(name, "is missing")
            elif name not in stated:
                self._problem(name, "was added: the statement does not name it")
            elif digest(self._parts[name]) != stated[name]:
                self._problem(name, "was changed: its SHA-256 is another one")
        self.checked.append(f"{counted(len(stated), 'file')} by digest")

    def _check_signature(self, signed_by: str | None) -> None:
        try:
            public = base64.b64decode(self._statement["public_key"], validate=True)
            signature = base64.b64decode(self._parts.get(SIGNATURE, b""), validate=True)
        except (ValueError, KeyError, TypeError) as err:
            self._problem(SIGNATURE, f"cannot be read: {err!r:.80}")
        else:
            if is_signed(self._parts[STATEMENT], signature, public):
                self.signer = fingerprint(public)
            else:
                self._problem(SIGNATURE, "is not over this statement")
        if signed_by is not None and self.signer != signed_by:
            self._problem(SIGNATURE, f"is not by key {signed_by:.80}")

    def _records(self) -> list[Record]:
        found = []
        # A text may hold what other programs take for the end of a line.
        lines = self._text(RECORDS).removesuffix("\n").split("\n")
        for number, line in enumerate(lines, start=1):
            where = f"line {number}"
            found.append(record_of(*parts_of_line(line), where=where, is_exact=True))
        return found

    def _text(self, name: str) -> str:
        try:
            return self._parts.get(name, b"").decode()
        except UnicodeDecodeError as err:
            raise InputError(f"is not UTF-8 text: {err}") from err

    def _check_records(self, records: list[Record], incident: Incident) -> None:
        stated = self._statement.get("incident_id")
        last: dict[str, ChainLink] = {}
        for record in records:
            if record.incident_id != stated:
                self._problem(RECORDS, f"{record.name} is of another incident")
            before = last.get(record.station)
            if before is not None and record.sequence <= before.sequence:
                self._problem(RECORDS, f"{record.name} stands after {before.sequence}")
            elif before is not None and record.sequence == before.sequence + 1 and break_before(
                before, record.sequence, record.previous_sha256
            ):  # fmt: skip
                self._problem(RECORDS, f"{record.name} does not follow the record before it")
            last[record.station] = ChainLink(record.sequence, content_digest(record.content()))
            for path in record.gone:
                self.notes.append(f"{record.name}: {path} was taken out of the log")
        stands = stands_of(incident)
        told = self._statement.get("stands")
        if stands != told:
            told = told if isinstance(told, dict) else {}
            names = [one for one in sorted(stands) if told.get(one) != stands[one]]
            self._problem(STATEMENT, f"says another {', '.join(names) or 'state'} than the records")
        self.checked.append(
            f"{counted(len(records), 'record')}, and how the incident stands by them"
        )

    def _check_evidence(self, incident: Incident) -> None:
        left = self._statement.get("left")
        left = left if isinstance(left, dict) else {}
        known = {piece.uri: piece for piece in incident.evidence}
        for uri, piece in known.items():
            data = self._parts.get(EVIDENCE + uri)
            if data is None:
                if uri not in left:
                    self._problem(EVIDENCE + uri, "is missing, and a record names it")
            elif digest(data) != piece.sha256:
                self._problem(EVIDENCE + uri, "is another file than the one that was attached")
        for name in self._parts:
            if name.startswith(EVIDENCE) and name.removeprefix(EVIDENCE) not in known:
                self._problem(name, "is named by no record")
        self.notes += [f"{uri} is not in it: {why}" for uri, why in sorted(left.items())]
        self.checked.append(f"{counted(len(known) - len(left), 'file')} of evidence")

    # Meaning -----------------------------------------------------------------------------------

    @cached_property
    def _row(self) -> Episode | None:
        """The row of the episode; None if there is none, or it cannot be read."""
        if EPISODE not in self._parts:
            return None
        try:
            cells = json.loads(self._text(EPISODE))
            return episode_of(list(cells.values()), where=lambda: EPISODE)
        except (ValueError, AttributeError, InputError) as err:
            self._problem(EPISODE, f"is no row of an episode: {err!s:.200}")
            return None

    def _check_settings(self, incident: Incident) -> None:
        """That the settings are those of the episode, and the episode that of the incident."""
        if SETTINGS not in self._parts and EPISODE not in self._parts:
            self.notes.append("it holds no settings: neither plan nor row of an episode")
            return
        for name, other in ((SETTINGS, EPISODE), (EPISODE, SETTINGS)):
            if name not in self._parts:
                self._problem(name, f"is missing beside {other}")
                return
        row = self._row
        if row is None:
            return
        try:
            text = self._text(SETTINGS)
            plan = parse_plan(text, source=SETTINGS)
        except InputError as err:
            self._problem(SETTINGS, str(err).removeprefix(f"{SETTINGS}: "))
            return
        if text_digest(text) != row.plan_digest:
            self._problem(SETTINGS, "is not the plan that the episode was played by")
        report = incident.report
        scene = scene_of(row, Path(), says_help=plan.says_help)
        for name, said, ours in (
            ("episode", report.episode_id, scene.episode_id),
            ("side", report.side, scene.side),
            ("robot", report.robot, scene.robot),
            ("policy", report.policy or scene.policy, scene.policy),
        ):
            if said != ours:
                self._problem(EPISODE, f"has {name} {ours}, the incident has {said}")
        self.checked.append("plan and episode")

    def _check_draft(self, incident: Incident) -> None:
        """That the rules draft from trace and row what was drafted."""
        if incident.record.via is not Via.RULE:
            self._check_no_draft(incident)
            return
        by_rules = incident_of([one for one in incident.records if one.via is Via.RULE])
        assert by_rules is not None
        try:
            rules = Rules(entries=tuple(_entries(json.loads(self._text(RULES)))))
        except (ValueError, TypeError, AttributeError, InputError) as err:
            self._problem(RULES, f"cannot be read: {err!s:.200}")
            return
        report = by_rules.report
        scene = Scene(
            trial="" if self._row is None else self._row.plan_digest,
            episode_id=report.episode_id or "",
            side=report.side,
            robot=report.robot,
            policy=report.policy,
            task=report.task,
            engagement=report.engagement,
        )
        heard = self._heard(by_rules)
        causes = self._causes(scene, heard, rules, report.happened_ns)
        if not causes:
            is_whole = heard.occurrences or (self._row is not None and not self._statement["left"])
            if is_whole:
                self._problem(RECORDS, "trace and episode show nothing at the time of the draft")
            else:
                why = "it holds neither a trace of the event nor the row of its episode"
                self.notes.append(f"what was drafted cannot be drafted again: {why}")
            return
        again = drafted(scene, causes, injected=heard.injected, evidence_folder=Path())
        for name in _SAID:
            said, found = getattr(report, name), getattr(again, name)
            if said != found:
                texts = " and ".join(_shown(one) for one in (said, found))
                self._problem(RECORDS, f"{name} of the draft and of its sources differ: {texts}")
        new = added_lines(again, report)
        if new:
            self._problem(RECORDS, f"the draft does not say what its sources do: {new[0]:.100}")
        if self._row is not None and event_id(scene, causes[0].occurrence) != incident.incident_id:
            self._problem(RECORDS, "the id of the incident is not that of its event")
        self.checked.append("the draft, made again from rules, trace and row")

    def _check_no_draft(self, incident: Incident) -> None:
        """That what a person filed has nothing of a draft."""
        rule, via = incident.report.rule, incident.record.via
        if RULES in self._parts:
            self._problem(RULES, "is there, and no rule drafted the incident")
        if rule is not None and via is Via.IMPORT:
            self.notes.append(f"it was imported: what rule {rule} drafted cannot be made again")
        elif rule is not None:
            self._problem(RECORDS, f"names rule {rule}, and was filed by {incident.record.by}")

    def _heard(self, incident: Incident) -> Heard:
        """What the cut of the trace says, if it is there."""
        for piece in incident.evidence:
            place = EVIDENCE + piece.uri
            is_cut = PurePosixPath(piece.uri).name.startswith(f"{incident.incident_id}-")
            if is_cut and piece.uri.endswith(".mcap") and place in self._parts:
                with tempfile.TemporaryDirectory() as folder:
                    cut = Path(folder) / "cut.mcap"
                    cut.write_bytes(self._parts[place])
                    return heard_in(cut)
        return Heard()

    def _causes(self, scene: Scene, heard: Heard, rules: Rules, time_ns: int) -> list[Cause]:
        """Causes of the event that began at a time, of the trace or of the row."""

        def taken(found: Iterable[Occurrence]) -> list[Cause]:
            pairs = [
                (one, rules.rule_for(one.on, one.name, one.fields, scene.side)) for one in found
            ]
            return [Cause(occurrence=one, rule=rule) for one, rule in pairs if rule is not None]

        own = [one.occurrence for one in taken(heard.occurrences)]
        for group in physical_events(own, heard.armed_ns):
            if group[0].time_ns == time_ns:
                return taken(group)
        end = [] if self._row is None else [ending(self._row, heard, time_ns)]
        return taken(one for one in end if one.time_ns == time_ns)


def _entries(values: Iterable[Mapping[str, Any]]) -> Iterator[Rule | Ignored]:
    for one in values:
        ((kind, body),) = one.items()
        yield section_of(Rule, body) if kind == "rule" else section_of(Ignored, body)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "; ".join(map(str, value)) or "none"
    return str(value)


# Reading ---------------------------------------------------------------------------------------


def _parts_of(path: Path) -> dict[str, bytes]:
    """The files of a pack, by name."""
    try:
        with explained(path, "cannot be read"), zipfile.ZipFile(path) as file:
            entries = file.infolist()
            if sum(one.file_size for one in entries) > MOST_BYTES:
                raise InputError(f"{path}: is too large for a pack of an incident")
            if len({one.filename for one in entries}) != len(entries):
                raise InputError(f"{path}: holds a file twice")
            return {one.filename: file.read(one) for one in entries}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as err:
        raise InputError(f"{path}: is not a zip file that can be read: {err}") from err


def _statement_of(path: Path, parts: Mapping[str, bytes]) -> dict[str, Any]:
    try:
        found = json.loads(parts[STATEMENT])
        is_one = found["kind"] == KIND and isinstance(found["files"], dict)
    except (KeyError, ValueError, TypeError, RecursionError):
        is_one = False
    if not is_one:
        raise InputError(
            f"{path}: is not a pack of an incident, as `robo-eval incidents pack` writes it"
        )
    if found.get("form") != FORM:
        raise InputError(
            f"{path}: is of form {found.get('form')!r:.20}, this program reads {FORM}; install a"
            " newer robo-eval"
        )
    statement: dict[str, Any] = found
    return statement
