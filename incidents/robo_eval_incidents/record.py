"""One record of the log, and the text over which its digest is taken."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, Strict, ValidationError, create_model, model_validator

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.core.yaml_form import Section, first_problem
from robo_eval_incidents.bodies import BODIES, LATEST_NS, Body, Ns, RecordId, Report, Sha256, plain
from robo_eval_incidents.taxonomy import Via

STATION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a station may be called."""
_NUMBERED: Final = re.compile(r"(?P<station>[^/]+)/(?P<sequence>[0-9]{1,15})")
_KIND: Final = re.compile(r'"kind"\s*:\s*"([a-z]+)"')
GENESIS: Final = "0" * 64
"""What the first record of a station names as the digest of the one before it."""
FORM: Final = 1
"""Canonical form new records are written in; older ones keep theirs."""
MOST_BYTES: Final = 200_000
"""No record is longer."""
MOST_AFTER: Final = 100
"""No record names more others as those it comes after."""
CLOCK_SLACK_NS: Final = 2_000_000_000
"""A wall clock may drift so far from the steady one between two records without a remark."""

# Goes on while the machine sleeps, where there is such a clock.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What somebody wants to have recorded.

    Attributes:
        body: What it says.
        by: Who says it: a person's name, or that of a program.
        via: By which door it comes in.
        incident_id: Incident it is about; None for a record of its own.
        record_id: Its id. Appending an entry twice, because nobody answered the first time, adds
            one record.
    """

    body: Body
    by: str
    via: Via
    incident_id: str | None = None
    record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A moment by both clocks of a machine.

    Attributes:
        time_ns: Wall clock, UTC, ns since 1970.
        monotonic_ns: Steady clock, ns since the machine was started.
        boot_id: Which start of the machine that was.
    """

    time_ns: int
    monotonic_ns: int
    boot_id: str

    def step_since(self, before: Instant) -> int:
        """By how much the wall clock was set since an earlier moment, ns; 0 if it went on.

        After a restart only a clock that is behind is noticed.
        """
        ahead = self.time_ns - before.time_ns
        if self.boot_id == before.boot_id:
            ahead -= self.monotonic_ns - before.monotonic_ns
        elif ahead > 0:
            return 0
        return ahead if abs(ahead) > CLOCK_SLACK_NS else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record.

    Attributes:
        station: Whose chain it is in.
        sequence: Its place there, from 1 on.
        previous_sha256: Digest of the record before it.
        record_id: Its id.
        incident_id: Incident it is about: its own id for a report, None if it is about none.
        at: When it was written.
        clock_step_ns: By how much the wall clock was set since the station's record before.
        by: Who wrote it.
        via: By which door.
        body: What it says.
        after: Ids of the newest records of the same incident that its station knew of.
        form: Canonical form.
    """

    station: str
    sequence: int
    previous_sha256: str
    record_id: str
    incident_id: str | None
    at: Instant
    clock_step_ns: int
    by: str
    via: Via
    body: Body
    after: tuple[str, ...] = ()
    form: int = FORM

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.body.kind

    def content(self) -> str:
        """The canonical form: JSON of all fields, keys sorted, no spaces, UTF-8.

        Raises:
            InputError: If it is too long, or a text has no bytes.
        """
        values: dict[str, Any] = {
            "after": list(self.after),
            "body": plain(self.body),
            "boot_id": self.at.boot_id,
            "by": self.by,
            "clock_step_ns": self.clock_step_ns,
            "form": self.form,
            "incident_id": self.incident_id,
            "kind": self.kind,
            "monotonic_ns": self.at.monotonic_ns,
            "previous_sha256": self.previous_sha256,
            "record_id": self.record_id,
            "sequence": self.sequence,
            "station": self.station,
            "time_ns": self.at.time_ns,
            "via": self.via.value,
        }
        data = canonical_json(values)
        if len(data) > MOST_BYTES:
            raise InputError(
                f"the record has {len(data):,} bytes; {MOST_BYTES:,} are the most: keep long texts"
                " and tables in a file of evidence"
            )
        return data.decode()


def content_digest(content: str) -> str:
    """SHA-256 of a canonical form, as 64 hexadecimal digits."""
    return hashlib.sha256(content.encode()).hexdigest()


def record_of(content: str, *, where: str) -> Record:
    """The record of a canonical form.

    Args:
        content: The text.
        where: What holds it, for messages.

    Raises:
        InputError: If it is no record; the message names field and place.
    """
    frame, said = parsed(content, where=where)
    return Record(
        station=frame.station,
        sequence=frame.sequence,
        previous_sha256=frame.previous_sha256,
        record_id=frame.record_id,
        incident_id=frame.incident_id,
        at=Instant(time_ns=frame.time_ns, monotonic_ns=frame.monotonic_ns, boot_id=frame.boot_id),
        clock_step_ns=frame.clock_step_ns,
        by=frame.by,
        via=Via(frame.via),
        body=said,
        after=frame.after,
    )


def parsed(content: str, *, where: str) -> tuple[Frame, Body]:
    """What a canonical form says, checked; see `record_of`."""
    # Within texts a quotation mark is escaped: nothing but the kind itself is written so.
    kind = _KIND.search(content)
    form = Frame if kind is None or kind[1] not in BODIES else _form_of(kind[1])
    try:
        frame = form.model_validate_json(content)
    except ValidationError as err:
        raise _no_record(content, where, err, form) from err
    return frame, frame.body


@cache
def _form_of(kind: str) -> type[Frame]:
    """What a record of a kind has."""
    return create_model(f"{kind}_record", __base__=Frame, body=(BODIES[kind], ...))


def _no_record(content: str, where: str, err: ValidationError, model: type[Frame]) -> InputError:
    """Why a text is none: no JSON object, one of a newer program, or with a wrong field."""
    try:
        form = json.loads(content)["form"]
    except (ValueError, TypeError, KeyError, RecursionError) as problem:
        return InputError(f"{where}: is no record of an incident log: {problem!r:.80}")
    if form != FORM:
        return InputError(
            f"{where}: is of form {form!r:.20}, this program reads {FORM}; install a newer"
            " robo-eval"
        )
    return InputError(f"{where}: {first_problem(err, model)}")


class Frame(Section):
    """What every record has, whatever it says."""

    after: Annotated[tuple[RecordId, ...], Field(max_length=MOST_AFTER)]
    body: Body
    boot_id: Annotated[str, Field(max_length=100)]
    by: Annotated[str, Field(min_length=1, max_length=200)]
    clock_step_ns: Annotated[int, Strict()]
    form: Literal[1]
    incident_id: RecordId | None
    kind: str
    monotonic_ns: Ns
    previous_sha256: Sha256
    record_id: RecordId
    sequence: Annotated[int, Strict(), Field(ge=1, le=LATEST_NS)]
    station: Annotated[str, Field(pattern=f"^{STATION.pattern}$")]
    time_ns: Ns
    via: Via

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind not in BODIES:
            raise ValueError(f"kind: there is no kind {self.kind!r:.40}")
        if self.kind == Report.kind and self.incident_id != self.record_id:
            raise ValueError("incident_id: a report is about the incident of its own id")
        if BODIES[self.kind].about_incident and self.incident_id is None:
            raise ValueError(f"incident_id: a record of kind {self.kind!r} is about an incident")
        return self


def new_id() -> str:
    """An id for a record: a UUID of version 7, whose beginning is the time.

    References:
        RFC 9562, section 5.7.
    """
    value = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10))
    value &= ~(0xF << 76 | 0x3 << 62)
    text = f"{value | 0x7 << 76 | 0x2 << 62:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def place_of(name: str) -> tuple[str, int] | None:
    """Station and number of a record that is named by them, such as `lab/2`; None if by its id."""
    found = _NUMBERED.fullmatch(name)
    return None if found is None else (found["station"], int(found["sequence"]))


def now() -> Instant:
    """This moment."""
    return Instant(
        time_ns=time.time_ns(),
        monotonic_ns=time.clock_gettime_ns(_STEADY),
        boot_id=_boot_id(os.getpid()),
    )


@cache
def _boot_id(pid: int) -> str:
    """What names this start of the machine; of the process where the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"process-{pid}-{time.time_ns()}"
