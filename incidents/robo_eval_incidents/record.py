"""One record of the log, and the text over which its digest is taken."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_type_hints

from pydantic import Field, Strict, TypeAdapter, ValidationError, with_config
from pydantic_core import from_json
from typing_extensions import TypedDict

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.core.yaml_form import Section, first_problem
from robo_eval_incidents.kinds import (
    KINDS,
    Body,
    Ns,
    RecordId,
    Report,
    Sha256,
    plain,
    private_texts,
)
from robo_eval_incidents.text import LATEST_NS
from robo_eval_incidents.words import Via

STATION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a station may be called."""
_NUMBERED: Final = re.compile(r"(?P<station>[^/]+)/(?P<sequence>[0-9]{1,15})")
FORM: Final = 1
"""Canonical form of records."""
MOST_BYTES: Final = 200_000
"""No record is longer, its texts included."""
MOST_AFTER: Final = 100
"""No record names more others as those it comes after."""
CLOCK_SLACK_NS: Final = 2_000_000_000
"""A wall clock may drift so far from the steady one between two records without a remark."""
GONE: Final = "(taken out)"
"""What stands where a text was taken out."""
_SALT_BYTES: Final = 16

# Goes on while the machine sleeps, where there is such a clock.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Instant(NamedTuple):
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


@dataclass(slots=True, kw_only=True)
class Record:
    """One record, which nothing changes; frozen, it would take a fifth longer to read all of a log.

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
        body: What it says; a text that was taken out reads `GONE`.
        after: Ids of the newest records of the same incident that its station knew of.
        salts: What was put before each free text for its digest, by its path in the body.
        gone: Digests of free texts that were taken out, by path.
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
    salts: Mapping[str, str] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Its kind."""
        return self.body.kind

    @property
    def name(self) -> str:
        """What people call it: station and number."""
        return f"{self.station}/{self.sequence}"

    @property
    def subject(self) -> str:
        """What it tells of: an incident, hours or a shift, or else itself."""
        return self.incident_id or self.body.subject or self.record_id

    def forms(self) -> tuple[str, str | None]:
        """The canonical form, and the free texts with their salts that lie beside it, if any.

        The canonical form is JSON of all fields, keys sorted, no spaces, UTF-8; free texts are in
        it as their salted digests.

        Raises:
            InputError: If it is too long, or a text has no bytes.
        """
        body = plain(self.body)
        texts: dict[str, list[str]] = {}
        length = 0
        for holder, key, path in private_texts(self.kind, body):
            text = holder[key]
            if path in self.gone:
                holder[key] = {"sha256": self.gone[path]}
            else:
                holder[key] = {"sha256": text_digest(self.salts[path], text)}
                texts[path] = [self.salts[path], text]
                length += len(text.encode())
        values: dict[str, Any] = {
            "after": list(self.after),
            "body": body,
            "boot_id": self.at.boot_id,
            "by": self.by,
            "clock_step_ns": self.clock_step_ns,
            "form": FORM,
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
        if len(data) + length > MOST_BYTES:
            raise InputError(
                f"the record has {len(data) + length:,} bytes; {MOST_BYTES:,} are the most: keep"
                " long texts and tables in a file of evidence"
            )
        return data.decode(), canonical_json(texts).decode() if texts else None

    def content(self) -> str:
        """The canonical form; see `forms`."""
        return self.forms()[0]

    def as_dict(self) -> dict[str, Any]:
        """What it says as JSON has it, free texts in their place, with its name and digest."""
        content = self.content()
        named = {"name": self.name, "sha256": content_digest(content)}
        return {**named, **json.loads(content), "body": plain(self.body)}


def salted(kind: str, body: Body) -> dict[str, str]:
    """A salt for each free text of a body, by its path."""
    values = plain(body)
    return {path: secrets.token_hex(_SALT_BYTES) for _, _, path in private_texts(kind, values)}


def text_digest(salt: str, text: str) -> str:
    """SHA-256 of a salt's bytes followed by a text in UTF-8, as 64 hexadecimal digits.

    Raises:
        ValueError: If the salt is no hexadecimal digits, or the text has no bytes.
    """
    return hashlib.sha256(bytes.fromhex(salt) + text.encode()).hexdigest()


def content_digest(content: str) -> str:
    """SHA-256 of a canonical form, as 64 hexadecimal digits."""
    return hashlib.sha256(content.encode()).hexdigest()


def line_of(content: str, texts: str | None) -> str:
    """A record as a line of a file: its canonical form, and behind a tab its free texts."""
    return f"{content}\n" if texts is None else f"{content}\t{texts}\n"


def parts_of_line(line: str) -> tuple[str, str | None]:
    """What `line_of` was given; the line comes without its end."""
    content, _, texts = line.partition("\t")
    return content, texts or None


def record_of(
    content: str, texts: str | None = None, *, where: str, is_exact: bool = False
) -> Record:
    """The record of a canonical form.

    Args:
        content: The canonical form.
        texts: The free texts that lie beside it, as `Record.forms` has them.
        where: What holds it, for messages.
        is_exact: Whether to refuse what means the same and is written in another way.

    Raises:
        InputError: If it is no record, or a text is another one; the message names field and place.
    """
    values = _object_of(content, where)
    if values.get("form") != FORM:
        raise InputError(
            f"{where}: is of form {values.get('form')!r:.20}, this program reads {FORM}; install a"
            " newer robo-eval"
        )
    salts, gone = _filled_in(values, texts, where)
    # Of a body without its kind, the frame tells what is wrong.
    model = KINDS.get(values["kind"]) if isinstance(values.get("kind"), str) else None
    said, frame = values.pop("body", None), None
    try:
        frame = _frame(values, model)
        assert model is not None
        body = model.model_validate(said)
    except ValidationError as err:
        whose = Frame if frame is None or model is None else model
        problem = first_problem(err, whose)
        raise InputError(f"{where}: {'' if whose is Frame else 'body.'}{problem}") from err
    except ValueError as err:
        raise InputError(f"{where}: {err}") from err
    instant = Instant(frame["time_ns"], frame["monotonic_ns"], frame["boot_id"])
    record = Record(
        station=frame["station"],
        sequence=frame["sequence"],
        previous_sha256=frame["previous_sha256"],
        record_id=frame["record_id"],
        incident_id=frame["incident_id"],
        at=instant,
        clock_step_ns=frame["clock_step_ns"],
        by=frame["by"],
        via=frame["via"],
        body=body,
        after=frame["after"],
        salts=salts,
        gone=gone,
    )
    if is_exact and record.forms() != (content, texts):
        raise _inexact(where)
    return record


def _inexact(where: str) -> InputError:
    return InputError(f"{where}: is not in its canonical form")


def _object_of(content: str, where: str) -> dict[str, Any]:
    try:
        values = from_json(content)
        if not isinstance(values, dict):
            raise TypeError("holds no JSON object")
    except (ValueError, TypeError, RecursionError) as problem:
        raise InputError(f"{where}: is no record of an incident log: {problem!r:.80}") from problem
    return values


def _filled_in(
    values: dict[str, Any], texts: str | None, where: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Put texts in the place of their digests; returns salts, and digests of texts taken out."""
    salts: dict[str, str] = {}
    gone: dict[str, str] = {}
    beside = {} if texts is None else _object_of(texts, f"{where}: its texts")
    # An escape could be written in another way unseen.
    is_exact = texts is None or canonical_json(beside).decode() == texts
    if not isinstance(values.get("body"), dict) or not isinstance(values.get("kind"), str):
        return salts, gone
    for holder, key, path in private_texts(values["kind"], values["body"]):
        digest = holder[key].get("sha256") if isinstance(holder[key], dict) else None
        if not isinstance(digest, str) or len(holder[key]) != 1:
            raise InputError(f"{where}: body.{path}: must be the salted digest of a text")
        if path not in beside:
            gone[path], holder[key] = digest, GONE
            continue
        try:
            salt, text = beside.pop(path)
            # A salt has one spelling; `bytes.fromhex` would read others too.
            is_salt = len(salt) == 2 * _SALT_BYTES and salt == salt.lower()
            is_same = is_salt and text_digest(salt, text) == digest
        except (ValueError, TypeError, AttributeError):
            is_same = False
        if not is_same:
            raise InputError(f"{where}: body.{path}: was changed: it is not the text of its digest")
        salts[path], holder[key] = salt, text
    if beside:
        raise InputError(f"{where}: has a text {next(iter(beside))!r:.40} that it does not name")
    if not is_exact:
        raise _inexact(f"{where}: its texts")
    return salts, gone


class Frame(Section):
    """What every record has beside its body."""

    after: Annotated[tuple[RecordId, ...], Field(max_length=MOST_AFTER)]
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


# As a dictionary it is read in half the time; as a class it says what is wrong.
_AS_DICT: Final = TypeAdapter(
    with_config(Frame.model_config)(
        TypedDict("_Frame", get_type_hints(Frame, include_extras=True))  # type: ignore[operator]
    )
).validator.validate_python


def _frame(values: dict[str, Any], model: type[Body] | None) -> dict[str, Any]:
    """What a record has beside its body.

    Raises:
        ValueError: If it is none, or fields do not go together; the message names the field.
    """
    try:
        frame: dict[str, Any] = _AS_DICT(values)
    except ValidationError:
        Frame.model_validate(values)
        raise
    if model is None:
        raise ValueError(f"kind: there is no kind {frame['kind']!r:.40}")
    if model is Report and frame["incident_id"] != frame["record_id"]:
        raise ValueError("incident_id: a report is about the incident of its own id")
    if model.about_incident is True and frame["incident_id"] is None:
        raise ValueError(f"incident_id: a record of kind {frame['kind']!r} is about an incident")
    return frame


@contextmanager
def without_collector() -> Iterator[None]:
    """For who reads a whole log: records are in no circles, and looking for some takes long."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


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
