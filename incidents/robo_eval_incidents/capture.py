"""How what a trial recorded becomes drafts of incidents, with the trace around each of them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import ValidationError

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.yaml_form import first_problem
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents.cut import cut_out
from robo_eval_incidents.draft import Cause, added_lines, additions, cleaned, drafted, window_of
from robo_eval_incidents.happened import (
    WINDOW_NS,
    Heard,
    Occurrence,
    Scene,
    ending,
    heard_in,
    in_order,
    physical_events,
    scene_of,
)
from robo_eval_incidents.kinds import (
    Attachment,
    Body,
    Correction,
    Evidence,
    Reclassification,
    Redaction,
    Report,
    Review,
)
from robo_eval_incidents.log import DATABASE, EVIDENCE, IncidentLog, open_log
from robo_eval_incidents.redaction import gone_of
from robo_eval_incidents.rule import Rules, read_rules
from robo_eval_incidents.state import Incident
from robo_eval_incidents.words import Via

BY: Final = "robo-eval"
"""Who files what a rule found."""
_IDS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "robo-eval:incidents:capture")
_MOST_PROBLEM: Final = 300
_JUDGED: Final = (Report, Correction, Reclassification, Review, Redaction)
"""Kinds of records by which a person makes a draft their own."""

_Place: TypeAlias = tuple[str, str, Side]
"""Episode, robot and side: two trials in one log may use the same names of episodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What capturing found.

    Attributes:
        drafted: Ids of incidents that were drafted now.
        known: How many more there are that were in the log already.
    """

    drafted: tuple[str, ...] = ()
    known: int = 0

    def __add__(self, other: Captured) -> Captured:
        return Captured(drafted=self.drafted + other.drafted, known=self.known + other.known)


def capture(
    trial: Path | str, log: IncidentLog | None = None, *, rules: Path | None = None
) -> Captured:
    """Draft an incident for each event of a trial that a rule takes for one.

    What is in the log already is not drafted again, and what is missing of it is added; so it may
    be called at any time, as often as you like.

    Args:
        trial: The trial directory.
        log: Log to file in; None for the trial's own `incidents.db`, which is made if need be.
        rules: Folder of rules that go before those of robo-eval.

    Raises:
        TrialDirectoryError: If the trial cannot be read.
        InputError: If a rule or an episode cannot be used.
        IncidentLogError: If the log cannot be written.
    """
    opened, found = TrialDirectory.open(trial), read_rules(rules)
    if log is not None:
        return Capturing(opened, log, found).trial()
    with open_log(opened.path / DATABASE, make=True) as own:
        return Capturing(opened, own, found).trial()


class Capturing:
    """Files drafts of one trial.

    Args:
        trial: The trial.
        log: Log to file in.
        rules: What is an incident.
    """

    def __init__(self, trial: TrialDirectory, log: IncidentLog, rules: Rules) -> None:
        self._trial = trial
        self._log = log
        self._rules = rules
        self._folder = log.evidence_folder or trial.path
        self._known: dict[_Place, list[tuple[int, str]]] | None = None

    def trial(self) -> Captured:
        """Draft what all logged episodes recorded."""
        found = Captured()
        scenes: dict[str, Scene] = {}
        late: defaultdict[str, list[Occurrence]] = defaultdict(list)
        with EpisodeStore(self._trial.path, durable=False, read_only=True) as store:
            for episode in store.episodes():
                scene = self._scene(episode)
                heard = _heard(scene)
                scenes[scene.episode_id] = scene
                for each in heard.occurrences:
                    owner = _owner(each, scene)
                    if owner != scene.episode_id:
                        late[owner].append(each)
                found += self._episode(episode, scene, heard)
        for episode_id in late.keys() & scenes.keys():
            # What was known of it has been counted.
            found += Captured(drafted=self.scene(scenes[episode_id], late[episode_id]).drafted)
        return found

    def episode(self, episode: Episode) -> Captured:
        """Draft what one logged episode recorded.

        Args:
            episode: Its row.
        """
        scene = self._scene(episode)
        return self._episode(episode, scene, _heard(scene))

    def scene(self, scene: Scene, occurrences: Iterable[Occurrence]) -> Captured:
        """Draft what was just heard of an episode that need not be logged yet.

        Args:
            scene: The episode.
            occurrences: What was heard; what its trace holds is added.
        """
        heard = _heard(scene)
        both = in_order([*heard.occurrences, *occurrences])
        return self._file(scene, replace(heard, occurrences=both))

    def _scene(self, episode: Episode) -> Scene:
        return scene_of(episode, self._trial.path, says_help=self._trial.plan.says_help)

    def _episode(self, episode: Episode, scene: Scene, heard: Heard) -> Captured:
        found = self._file(scene, heard)
        if found.drafted or found.known:
            return found
        # Nothing says why it ended so, but for the row itself.
        end = ending(episode, heard, self._created_ns())
        slack_ns = end.time_ns - (episode.start_ns or 0)
        return self._file(scene, Heard(occurrences=(end,)), slack_ns=slack_ns)

    def _created_ns(self) -> int:
        manifest = self._trial.manifest
        if manifest is None:
            return 0
        return int(datetime.fromisoformat(manifest.created_utc).timestamp()) * 10**9

    # One event ---------------------------------------------------------------------------------

    def _file(self, scene: Scene, heard: Heard, *, slack_ns: int = 0) -> Captured:
        """File the events of an episode; `slack_ns`: how much earlier one of them may have been."""
        events = [
            [self._cause(scene, each) for each in group]
            for group in physical_events(self._incidents_in(scene, heard), heard.armed_ns)
        ]
        ids = [event_id(scene, causes[0].occurrence) for causes in events]
        drafted_ids, known = [], 0
        for incident_id, causes in zip(ids, events, strict=True):
            report = self._report(scene, causes, heard)
            same = self._same_event(report, incident_id, ids, slack_ns)
            if same is None:
                self._say(report, incident_id)
                self._remember(report, incident_id)
                drafted_ids.append(incident_id)
            else:
                known += 1
            incident = self._log.incident(same or incident_id)
            self._grow(incident, report)
            self._attach(incident, scene, causes)
        return Captured(drafted=tuple(drafted_ids), known=known)

    def _incidents_in(self, scene: Scene, heard: Heard) -> list[Occurrence]:
        return [
            each
            for each in heard.occurrences
            if _owner(each, scene) == scene.episode_id
            and self._rules.rule_for(each.on, each.name, each.fields, scene.side)
        ]

    def _cause(self, scene: Scene, occurrence: Occurrence) -> Cause:
        rule = self._rules.rule_for(occurrence.on, occurrence.name, occurrence.fields, scene.side)
        assert rule is not None
        return Cause(occurrence=occurrence, rule=rule)

    def _report(self, scene: Scene, causes: Sequence[Cause], heard: Heard) -> Report:
        try:
            return drafted(scene, causes, injected=heard.injected, evidence_folder=self._folder)
        except ValidationError as err:
            problem = first_problem(err, Report)
            raise InputError(
                f"{self._trial.path}: episode {scene.episode_id!r:.80}: {problem}"
            ) from err

    def _same_event(
        self, report: Report, incident_id: str, ids: Sequence[str], slack_ns: int
    ) -> str | None:
        """The incident that was drafted of an event; None if none was.

        Where the trace lost its beginning, the event was drafted under the time of another cause.
        """
        if self._log.find(incident_id) is not None:
            return incident_id
        place = _place(report)
        for happened_ns, other in [] if place is None else self._drafts()[place]:
            is_near = abs(happened_ns - report.happened_ns) <= WINDOW_NS + slack_ns
            if is_near and other not in ids:
                return other
        return None

    def _drafts(self) -> dict[_Place, list[tuple[int, str]]]:
        """Drafts that are in the log, by where they were; of each, when it happened and its id."""
        if self._known is None:
            self._known = defaultdict(list)
            for incident in self._log.incidents():
                # As it was drafted: a person may have corrected where and when it was.
                report = incident.record.body
                if isinstance(report, Report) and report.rule is not None:
                    self._remember(report, incident.incident_id)
        return self._known

    def _remember(self, report: Report, incident_id: str) -> None:
        place = _place(report)
        if place is not None:
            self._drafts()[place].append((report.happened_ns, incident_id))

    def _say(self, body: Body, record_id: str, incident: Incident | None = None) -> None:
        about = None if incident is None else incident.incident_id
        try:
            self._log.file(body, by=BY, via=Via.RULE, incident_id=about, record_id=record_id)
        except InputError:
            # Another process, that captures at the same time, has just said it in other words.
            if self._log.find(record_id) is None:
                raise

    # What is added to it -----------------------------------------------------------------------

    def _grow(self, incident: Incident, report: Report) -> None:
        """Add causes that became known later.

        A worse one raises the severity, whoever has looked at the draft: it reopens the incident.
        The words of a draft are left alone once a person has judged it.
        """
        if report.severity.rank > incident.highest_severity.rank:
            self._raise(incident, report)
        more = additions(report, incident.report)
        if more is None or not _is_untouched(incident):
            return
        if more["description"] == incident.report.description:
            return  # it is full
        reason = "Further causes of the same event were recorded."
        record_id = _own_id(incident, f"causes {more['description']}")
        self._say(Correction(fields=more, reason=reason), record_id, incident)

    def _raise(self, incident: Incident, report: Report) -> None:
        lines = ["A worse cause of the same event was recorded."]
        if not gone_of(incident.records):
            lines += added_lines(report, incident.report)
        body = Reclassification(
            severity=report.severity, category=report.category, reason="\n".join(lines)
        )
        self._say(body, _own_id(incident, f"severity {report.severity}"), incident)

    def _attach(self, incident: Incident, scene: Scene, causes: Sequence[Cause]) -> None:
        """Cut out the trace around an event; if that fails, the draft says why."""
        if scene.trace is None or piece_of(incident) is not None:
            return
        start_ns, end_ns = window_of(causes)
        out = self._folder / EVIDENCE / f"{incident.incident_id}.mcap"
        try:
            cut = cut_out(
                scene.trace, start_ns, end_ns, out, shift_ns=scene.shift_ns, is_named_by_digest=True
            )
        except InputError as err:
            self._note(incident, str(err).replace(f"{self._trial.path}/", ""))
            return
        evidence = Evidence(
            uri=f"{EVIDENCE}/{cut.path.name}",
            start_ns=cut.start_ns,
            end_ns=cut.end_ns,
            sha256=cut.sha256,
        )
        body = Attachment(evidence=(evidence,), note="The trace around the event.")
        self._say(body, _own_id(incident, f"cut {cut.sha256}"), incident)

    def _note(self, incident: Incident, problem: str) -> None:
        """Say in a draft why it has no trace."""
        record_id = _own_id(incident, "no trace")
        if not _is_untouched(incident) or self._log.find(record_id) is not None:
            return
        text = self._log.incident(incident.incident_id).report.description
        line = f"The trace around it could not be cut out: {cleaned(problem, _MOST_PROBLEM)}"
        body = Correction(
            fields={"description": f"{text}\n{line}"}, reason="Its trace cannot be used."
        )
        self._say(body, record_id, incident)


def _heard(scene: Scene) -> Heard:
    # A simulator has no guard.
    if scene.trace is None or scene.side is Side.SIM:
        return Heard()
    return heard_in(scene.trace)


def _owner(occurrence: Occurrence, scene: Scene) -> str:
    """Id of the episode something is of: a guard may speak of the one before."""
    return str(occurrence.fields.get("episode_id") or scene.episode_id)


def _place(report: Report) -> _Place | None:
    """Where the event of a draft was; None for one between two episodes."""
    if report.episode_id is None:
        return None
    return report.episode_id, report.robot, report.side


def _is_untouched(incident: Incident) -> bool:
    """Whether no person has judged an incident, before it was reopened either."""
    return not any(
        isinstance(record.body, _JUDGED) and record.via is not Via.RULE
        for record in incident.records
    )


def piece_of(incident: Incident) -> Evidence | None:
    """The trace around an incident that was cut out, here or at another station; None if none was.

    Args:
        incident: The incident.
    """
    own = f"{EVIDENCE}/{incident.incident_id}-"
    pieces = (e for e in incident.evidence if e.uri.startswith(own) and e.uri.endswith(".mcap"))
    return next(pieces, None)


def event_id(scene: Scene, first: Occurrence) -> str:
    """Id of an incident: the same whenever, and wherever, its event is drafted."""
    where = scene.episode_id or scene.robot
    when = first.time_ns if first.known_ns is None else first.known_ns
    return str(uuid.uuid5(_IDS, f"{scene.trial} {where} {first.on} {when}"))


def _own_id(incident: Incident, what: str) -> str:
    """Id of what is added to an incident."""
    return str(uuid.uuid5(_IDS, f"{incident.incident_id} {what}"))
