"""Telling people what is critical, overdue or to be reported, by webhook and e-mail."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import smtplib
import ssl
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from email.message import EmailMessage
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import AfterValidator, Field, field_validator, model_validator
from sqlalchemy import select

from robo_eval.core.errors import InputError
from robo_eval.core.yaml_form import Section, read_toml
from robo_eval_incidents.clocks import Deadline, due
from robo_eval_incidents.kinds import Notice
from robo_eval_incidents.lists import Filter, list_incidents, todo, utc_today
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.record import now
from robo_eval_incidents.rows import Listed
from robo_eval_incidents.schema import RECORDS
from robo_eval_incidents.state import OPEN
from robo_eval_incidents.words import Severity, Via

SIGNATURE: Final = "X-Robo-Eval-Signature"
"""Header of a webhook: `sha256=` and the HMAC of the body, where a secret is set."""
_PATIENCE_S: Final = 20.0
_MOST: Final = 200
"""Events that one message tells of; the next one tells of more."""
# Made once for this use, so that one event is told once by each way.
_NOTICES: Final = uuid.UUID("3d1b9f0e-0f3c-5b0a-9a30-2b7b8f6a54c1")
_BY: Final = "robo-eval"


class NotSentError(InputError):
    """A message could not be sent; what it tells of is told the next time."""


# Settings --------------------------------------------------------------------------------------


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"must be a URL like https://host/path, given {text!r:.100}")
    return text


Url = Annotated[str, AfterValidator(_url)]


class Webhook(Section):
    """Where a program is told."""

    url: Url
    secret_env: str = ""
    """Environment variable with the secret that signs what is sent."""

    @property
    def name(self) -> str:
        """What the record of a notice calls it: a URL may hold a secret, so its digest tells it."""
        mark = hashlib.sha256(self.url.encode()).hexdigest()[:8]
        return f"webhook {urlsplit(self.url).hostname} ({mark})"


class Mail(Section):
    """Who gets an e-mail."""

    server: str
    """Host and port, such as `smtp.example:587`."""
    sender: str
    to: Annotated[tuple[str, ...], Field(min_length=1)]
    user: str = ""
    password_env: str = ""
    """Environment variable with the password."""
    starttls: bool = True

    @property
    def name(self) -> str:
        """What the record of a notice calls it."""
        return f"mail to {', '.join(self.to)}"[:200]


class Settings(Section):
    """Who is told, and where people find the page."""

    webhook: tuple[Webhook, ...] = ()
    mail: Mail | None = None
    page: Url | None = None
    """Address of the page, for links."""

    @field_validator("webhook", mode="before")
    @classmethod
    def _several(cls, given: object) -> object:
        if isinstance(given, dict):
            raise ValueError("may be there several times, so it is written [[webhook]]")
        return given

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read such a file, TOML.

        Raises:
            InputError: If it is missing or broken; the message names file and field.
        """
        return read_toml(path, cls, "settings")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.webhook and self.mail is None:
            raise ValueError("names nobody to tell: add [[webhook]] or [mail]")
        return self


# What there is to tell -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to tell.

    Attributes:
        what: `critical` for a new critical incident, `overdue` for a corrective action, `clock` for
            somebody outside who has to be told, and `late` once the time for that is over.
        incident: The incident.
        about: Id of what is told of: of the incident, and for an action of its record.
        text: A line for people; without what happened, which may name persons.
    """

    what: Literal["critical", "overdue", "clock", "late"]
    incident: Listed
    about: str
    text: str

    def record_id(self, way: str) -> str:
        """Id of the record that it was told by a way."""
        return str(uuid.uuid5(_NOTICES, f"{self.about} {self.what} {way}"))

    def as_dict(self, page: str | None) -> dict[str, Any]:
        """What a program is told."""
        one = self.incident
        link = None if page is None else f"{page.rstrip('/')}/incidents/{one.incident_id}"
        return {
            "what": self.what, "incident": one.name, "incident_id": one.incident_id,
            "robot": one.robot, "side": one.side.value, "severity": one.counted_severity.value,
            "category": one.category.value, "time": one.time, "text": self.text, "link": link,
        }  # fmt: skip


def events(
    log: IncidentLog, today: date | None = None, clocks: Sequence[Deadline] = ()
) -> Iterator[Event]:
    """Critical incidents that are open, overdue corrective actions, and clocks that run.

    Args:
        log: The log.
        today: The present day, UTC, if not the one it is.
        clocks: By when somebody outside has to be told.
    """
    today = today or utc_today()
    after: str | None = None
    while True:
        page = list_incidents(log, Filter(counted=Severity.CRITICAL), after=after, limit=_MOST)
        for row in page.rows:
            if row.counts and row.status in OPEN:
                text = f"critical: {row.name}, {row.category.label} of {row.robot} ({row.side})"
                yield Event(what="critical", incident=row, about=row.incident_id, text=text)
        after = page.next
        if after is None:
            break
    for row in todo(log, overdue=True, today=today).rows:
        for step in row.steps:
            if step.due is not None and step.due < today:
                whose = f"{step.owner}, due {step.due}"
                text = f"overdue: action of {whose}, on {row.name}"
                about = f"{row.incident_id} {step.action_id}"
                yield Event(what="overdue", incident=row, about=about, text=text)
    for one in clocks:
        if one.told is None:
            row, now_ns = one.incident, now().time_ns
            text = f"{row.name}, {row.category.label} of {row.robot}: {one.text(now_ns)}"
            about = f"{row.incident_id} {one.kind} {one.clock.to}"
            what: Literal["clock", "late"] = "late" if one.is_late(now_ns) else "clock"
            yield Event(what=what, incident=row, about=about, text=text)


def untold(
    log: IncidentLog, way: str, today: date | None = None, clocks: Sequence[Deadline] = ()
) -> list[Event]:
    """What was not told by a way yet, as much as one message takes."""
    query = select(RECORDS.c.record_id).where(RECORDS.c.kind == Notice.kind)
    told = {record_id for (record_id,) in log.database.rows(query)}
    return [one for one in events(log, today, clocks) if one.record_id(way) not in told][:_MOST]


def notify(
    log: IncidentLog, settings: Settings, *, today: date | None = None, dry_run: bool = False
) -> dict[str, list[Event]]:
    """Tell everybody what they were not told yet, in one message each.

    What was sent is a record afterwards, so that it is told once; where the program ends in
    between, it is told twice rather than never.

    Args:
        log: The log.
        settings: Who is told.
        today: The present day, UTC, if not the one it is.
        dry_run: Send and record nothing.

    Returns:
        What was told, by way.

    Raises:
        NotSentError: If a message could not be sent; others were.
    """
    ways: list[Webhook | Mail] = [*settings.webhook, *([settings.mail] if settings.mail else [])]
    found: dict[str, list[Event]] = {}
    problems = []
    clocks: list[Deadline] = []
    try:
        clocks = due(log)
    except InputError as err:  # keeps nobody from what is critical
        problems.append(str(err))
    for way in ways:
        new = untold(log, way.name, today, clocks)
        try:
            secret = _secret(way)
        except ValueError as err:
            problems.append(f"{way.name}: cannot be told: {err}")
            continue
        if new and not dry_run:
            try:
                _send(way, secret, new, settings.page)
            except (OSError, smtplib.SMTPException, HTTPException, ValueError) as err:
                reason = getattr(err, "reason", None) or err
                problems.append(f"{way.name}: cannot be told: {reason!s:.200}")
                continue
            for one in new:
                log.file(
                    Notice(what=one.what, to=way.name, text=one.text),
                    by=_BY, via=Via.RULE, incident_id=one.incident.incident_id,
                    record_id=one.record_id(way.name),
                )  # fmt: skip
        found[way.name] = new
    if problems:
        raise NotSentError("; ".join(problems))
    return found


# Ways ------------------------------------------------------------------------------------------


class _NoRedirect(HTTPRedirectHandler):
    """What is sent goes to the address that was named, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        """No request in its place."""
        return


def _send(way: Webhook | Mail, secret: str, new: Sequence[Event], page: str | None) -> None:
    if isinstance(way, Mail):
        _mail(way, secret, new, page)
        return
    body = json.dumps({"events": [one.as_dict(page) for one in new]}).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "robo-eval"}
    if secret:
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers[SIGNATURE] = f"sha256={digest}"
    request = Request(way.url, data=body, headers=headers)  # noqa: S310 - of two schemes only
    try:
        with build_opener(_NoRedirect).open(request, timeout=_PATIENCE_S):
            pass
    except URLError as err:
        raise OSError(str(getattr(err, "code", None) or err.reason)) from err


def _mail(way: Mail, secret: str, new: Sequence[Event], page: str | None) -> None:
    message = EmailMessage()
    message["From"], message["To"] = way.sender, ", ".join(way.to)
    critical = sum(one.what == "critical" for one in new)
    late = sum(one.what in ("overdue", "late") for one in new)
    rest = len(new) - critical - late
    running = f", {rest} to be reported" if rest else ""
    message["Subject"] = f"Incident log: {critical} critical, {late} overdue{running}"
    lines = []
    for one in new:
        link = one.as_dict(page)["link"]
        lines.append(one.text + (f"\n  {link}" if link else ""))
    message.set_content("\n".join(lines) + "\n")
    host, _, port = way.server.partition(":")
    with smtplib.SMTP(host, int(port or 25), timeout=_PATIENCE_S) as server:
        if way.starttls:
            server.starttls(context=ssl.create_default_context())
        if way.user:
            server.login(way.user, secret)
        server.send_message(message)


def _secret(way: Webhook | Mail) -> str:
    """What signs a message, or logs in; empty if neither is asked for."""
    if isinstance(way, Webhook):
        variable = way.secret_env
        is_needed = bool(variable)
    else:
        variable, is_needed = way.password_env, bool(way.user)
    found = os.environ.get(variable, "")
    if is_needed and not found:
        raise ValueError(f"the environment variable {variable!r} is not set")
    return found
