"""What an incident log says of a trial: its incidents as evidence, and what names its records.

Found by the scoring side under the entry point `robo_eval.incident_reader`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.wording import counted
from robo_eval.log import evidence as noted
from robo_eval.log.incident_log import LoggedIncidents
from robo_eval_incidents.hours import shifts
from robo_eval_incidents.kinds import (
    Correction,
    Exposure,
    Nil,
    Reclassification,
    Report,
    Review,
    Withdrawal,
)
from robo_eval_incidents.log import open_log
from robo_eval_incidents.record import Record, content_digest, record_of
from robo_eval_incidents.schema import RECORDS
from robo_eval_incidents.state import Incident, incidents_of
from robo_eval_incidents.verify import verify_log

_TELLING: Final = tuple(one.kind for one in (Report, Correction, Reclassification, Review, Nil))
"""Kinds of records that decide which incidents there are, and how bad they count."""


def read_incidents(path: Path) -> LoggedIncidents:
    """The incidents of a log as evidence of a trial.

    All incidents of physical sides count, drafts included, at the severity `counted_severity` has;
    those that were dismissed do not. Hours are those of the episodes of the trial: exposure in the
    log is not added to them.

    Args:
        path: The file.

    Raises:
        IncidentLogError: If it cannot be read.
    """
    told = _told(path)
    records = [one.record(path) for one in told]
    known = incidents_of(records)
    sides = {incident.counted.side for incident in known}
    with open_log(path, read_only=True) as log:
        sides |= {shift.side for shift in shifts(log)}
    silent = tuple(side for side in noted.PHYSICAL if Side(side) not in sides)
    return LoggedIncidents(
        incidents=None if len(silent) == len(noted.PHYSICAL) else _noted(known),
        silent=silent,
        sha256=_digest(told) if told else None,
        problems=tuple(str(problem.what) for problem in verify_log(path).problems),
    )


def listed(path: Path) -> tuple[Sequence[Incident], int]:
    """All incidents of a log as they stand now, and how many nil reports it holds."""
    with open_log(path, read_only=True) as log:
        return log.incidents(), len(shifts(log))


def state_of(path: Path) -> dict[str, Any] | None:
    """What names the records that evidence rests on; see `robo_eval.log.incident_log.state_of`."""
    told = _told(path)
    if not told:
        return None
    newest: dict[str, int] = {}
    for one in told:
        newest[one.station] = max(newest.get(one.station, 0), one.sequence)
    return {"records": len(told), "sha256": _digest(told), "newest": newest}


def changes_since(path: Path, stated: Mapping[str, Any] | None) -> Iterator[str]:
    """How a log differs from what was stated of it.

    Records that say nothing of which incidents there are, such as exposure, actions and views,
    make no difference.

    Args:
        path: The file.
        stated: What `state_of` returned then; None if there was nothing to state.

    Yields:
        What is different, in words.

    Raises:
        IncidentLogError: If it cannot be read.
    """
    told = _told(path)
    newest, digest = _stated(path, stated)
    before = [one for one in told if one.sequence <= newest.get(one.station, 0)]
    if (_digest(before) if before else None) != digest:
        yield (
            "was changed since it was signed: records of incidents are not those that were there"
        )
    after = len(told) - len(before)
    if after:
        yield (
            f"{counted(after, 'record')} of incidents came after it was signed, which does"
            " not know of them"
        )


def identity_of(path: Path) -> list[str]:
    """What names a log: its id, and number and digest of the newest record of each station."""
    with open_log(path, read_only=True) as log:
        heads = log.heads().items()
        return [
            log.meta.get("log_id", ""),
            *(f"{name}/{at} {digest}" for name, (at, digest) in heads),
        ]


def goes_on(path: Path, stated: Iterable[str]) -> bool:
    """Whether a log is still that which `identity_of` named, and holds these records."""
    query = select(RECORDS.c.station, RECORDS.c.sequence, RECORDS.c.sha256)
    with open_log(path, read_only=True) as log, log.database.reading() as connection:
        held = {f"{name}/{at} {digest}" for name, at, digest in connection.execute(query)}
        return held.union([log.meta.get("log_id", "")]).issuperset(stated)


@dataclass(frozen=True, slots=True)
class _Told:
    """A stored record that says something about incidents."""

    station: str
    sequence: int
    content: str
    texts: str | None

    def record(self, path: Path) -> Record:
        where = f"{path}: record {self.station}/{self.sequence}"
        return record_of(self.content, self.texts, where=where)


def _told(path: Path) -> list[_Told]:
    """Such records, by station and number."""
    columns = tuple(RECORDS.c[name] for name in ("station", "sequence", "content", "texts"))
    # Hours are no evidence, and what takes them back is none either.
    hours = select(RECORDS.c.record_id).where(RECORDS.c.kind == Exposure.kind)
    of_shift = (RECORDS.c.kind == Withdrawal.kind) & RECORDS.c.subject.not_in(hours)
    query = select(*columns).where(RECORDS.c.kind.in_(_TELLING) | of_shift).order_by(*columns[:2])
    with open_log(path, read_only=True) as log, log.database.reading() as connection:
        return [_Told(*row) for row in connection.execute(query)]


def _digest(told: Iterable[_Told]) -> str:
    """SHA-256 over a line for each record: station, number and digest of its canonical form."""
    digest = hashlib.sha256()
    for one in told:
        line = f"{one.station}/{one.sequence} {content_digest(one.content)}\n"
        digest.update(line.encode())
    return digest.hexdigest()


def _stated(path: Path, stated: Mapping[str, Any] | None) -> tuple[dict[str, int], str | None]:
    if stated is None:
        return {}, None
    try:
        newest = {str(name): int(number) for name, number in stated["newest"].items()}
        return newest, str(stated["sha256"])
    except (AttributeError, KeyError, TypeError, ValueError) as err:
        raise InputError(f"{path}: what was stated of it cannot be read: {err!r:.80}") from err


def _noted(known: Iterable[Incident]) -> tuple[noted.Incident, ...]:
    return tuple(
        noted.Incident(
            line=incident.record.sequence,
            record=incident.name,
            side=incident.counted.side.value,
            episode_id=incident.counted.episode_id or None,
            policy=incident.counted.policy or None,
            incident_id=incident.incident_id,
            severity=incident.counted_severity.value,
            time_ns=None if incident.counted.until_ns else incident.counted.happened_ns,
            description=incident.report.description,
        )
        for incident in known
        if incident.counts and incident.counted.side.value in noted.PHYSICAL
    )
