"""One incident: everything recorded about it, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from robo_eval.core.errors import InputError
from robo_eval.web.errors import ForbiddenError, NotFoundError
from robo_eval.web.security import UPLOAD
from robo_eval.web.templating import go_to, render
from robo_eval_incidents.facts import history, of_incident
from robo_eval_incidents.kinds import (
    KINDS,
    Action,
    Attachment,
    Body,
    Closure,
    Correction,
    Effectiveness,
    Evidence,
    Reclassification,
    Review,
    View,
)
from robo_eval_incidents.state import Incident, RefusedError, check
from robo_eval_incidents.web import forms
from robo_eval_incidents.web.deps import (
    Person,
    Posted,
    Session,
    Site,
    ThisForm,
    ThisSite,
    ThisUpload,
)
from robo_eval_incidents.web.files import (
    KINDS as KINDS_OF_FILES,
)
from robo_eval_incidents.web.files import (
    PICTURES,
    find_evidence,
    kept_evidence,
    open_evidence,
    pieces_of,
    recorded_evidence,
    thumbnail,
)
from robo_eval_incidents.web.permissions import check_record, may_record
from robo_eval_incidents.web.plot import event_plot

router: Final = APIRouter(include_in_schema=False)
_PLOTTED: Final = ".mcap"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A piece of evidence on the page of an incident.

    Attributes:
        evidence: What was recorded of it.
        number: Its place among the evidence of the incident.
        problem: Why it cannot be had here; empty if it can.
    """

    evidence: Evidence
    number: int
    problem: str = ""

    @property
    def is_picture(self) -> bool:
        """Whether it has a thumbnail."""
        return not self.problem and Path(self.evidence.uri).suffix.lower() in PICTURES


@router.get("/incidents/{incident_id}")
def show_incident(
    request: Request, site: ThisSite, session: Person, incident_id: str, recorded: str = ""
) -> HTMLResponse:
    """The page of an incident."""
    incident = site.incident(incident_id)
    site.note_view(session, incident)
    done = recorded if recorded in KINDS else ""
    return _page(request, site, session, incident, recorded=done)


_ANY: Final = ({"uri": "any"},)
"""Evidence of a form whose other fields are looked at first."""


@router.post(f"/incidents/{{incident_id}}{UPLOAD}")
def upload(request: Request, site: ThisSite, form: ThisUpload, incident_id: str) -> Response:
    """Keep files that somebody sent, and record them as evidence."""
    incident = site.incident(incident_id)
    check_record(form.user, Attachment, incident)
    try:
        forms.record_id_of(form.fields)  # before a file is kept for nothing
        if not form.files:
            raise InputError("files: choose a file")
        forms.body_of(Attachment, form.fields, evidence=_ANY)  # before a file is kept for it
        pieces = [kept_evidence(site.evidence, *one) for one in form.files]
        evidence = [one.model_dump(exclude_none=True) for one in pieces]
        body = forms.body_of(Attachment, form.fields, evidence=evidence)
        forms.file(site, form, body, incident)
    except InputError as err:
        return _again(request, site, form, incident, "upload", err)
    return go_to(request, f"/incidents/{incident.incident_id}?recorded={Attachment.kind}")


@router.get("/incidents/{incident_id}/evidence/{number}/small")
def small(site: ThisSite, session: Person, incident_id: str, number: int) -> Response:
    """A thumbnail of a picture."""
    evidence = _evidence(site, session, incident_id, number)
    file, _ = open_evidence(site.evidence, evidence)
    file.close()
    found = thumbnail(find_evidence(site.evidence, evidence.uri), evidence.sha256 or "")
    if found is None:
        raise NotFoundError(f"{evidence.uri}: has no thumbnail")
    return Response(found, media_type="image/jpeg")


def _evidence(site: Site, session: Session, incident_id: str, number: int) -> Evidence:
    """One piece of evidence, whose incident is looked at by this."""
    incident = site.incident(incident_id)
    if not 0 <= number < len(incident.evidence):
        raise NotFoundError(f"incident {incident.name} has no evidence {number}")
    site.note_view(session, incident)
    return incident.evidence[number]


@router.post("/incidents/{incident_id}/{what}")
def change_incident(
    request: Request, site: ThisSite, form: ThisForm, incident_id: str, what: str
) -> Response:
    """Record something about an incident."""
    if what not in _FORMS:
        raise NotFoundError(f"there is no form {what:.40}")
    kind = _FORMS[what]
    incident = site.incident(incident_id)
    check_record(form.user, kind, incident)
    try:
        _file(site, form, incident, kind)
    except ForbiddenError:
        raise
    except InputError as err:
        return _again(request, site, form, incident, what, err)
    return go_to(request, f"/incidents/{incident.incident_id}?recorded={kind.kind}")


def _again(
    request: Request, site: Site, form: Posted, incident: Incident, what: str, err: InputError
) -> Response:
    """The page with a form as it was sent, and what was wrong with it."""
    site.note_view(form.session, incident)
    return _page(
        request,
        site,
        form.session,
        incident,
        problem=str(err),
        failed=what,
        typed=form.fields,
        status=err.http_status,
    )


@router.get("/incidents/{incident_id}/evidence/{number}")
def download(site: ThisSite, session: Person, incident_id: str, number: int) -> Response:
    """A file of evidence."""
    evidence = _evidence(site, session, incident_id, number)
    file, length = open_evidence(site.evidence, evidence)
    name = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_"
        for letter in evidence.uri.rsplit("/", 1)[-1]
    )
    headers = {
        "content-length": str(length),
        "content-disposition": f'attachment; filename="{name}"',
    }
    return StreamingResponse(
        pieces_of(file), media_type="application/octet-stream", headers=headers
    )


# Forms -----------------------------------------------------------------------------------------

_FORMS: Final[dict[str, type[Body]]] = {
    "review": Review,
    "reclassify": Reclassification,
    "correct": Correction,
    "attach": Attachment,
    "act": Action,
    "check": Effectiveness,
    "close": Closure,
}
"""Every form about an incident by the end of its path, and what it records."""


def _file(site: Site, form: Posted, incident: Incident, kind: type[Body]) -> None:
    if _is_corrected(form, incident, forms.record_id_of(form.fields)):
        return
    body: Body
    if kind is Correction:
        body = forms.correction_of(form.fields, incident)
    elif kind is Attachment:
        evidence = recorded_evidence(site.evidence, form.fields.get("uri", ""))
        body = forms.body_of(kind, form.fields, evidence=[evidence.model_dump(exclude_none=True)])
    else:
        body = forms.body_of(kind, form.fields | _doubled(site, form.fields))
    forms.file(site, form, body, incident)


def _doubled(site: Site, fields: dict[str, str]) -> dict[str, str]:
    """The id of the incident that another one doubles, which people call by station and number."""
    name = fields.get("duplicate_of", "").strip()
    if not name:
        return {}
    try:
        return {"duplicate_of": site.log.incident(name).incident_id}
    except InputError as err:
        raise InputError(f"duplicate_of: {err}") from err


def _is_corrected(form: Posted, incident: Incident, record_id: str) -> bool:
    """Whether a correction was sent twice: what it differs in is no longer to be seen."""
    reason = form.fields.get("reason", "").replace("\r\n", "\n").strip()
    return any(
        record.record_id == record_id
        and record.by == form.user.name
        and isinstance(record.body, Correction)
        and record.body.reason == reason
        for record in incident.records
    )


# The page --------------------------------------------------------------------------------------


def _page(
    request: Request,
    site: Site,
    session: Session,
    incident: Incident,
    *,
    problem: str = "",
    failed: str = "",
    typed: dict[str, str] | None = None,
    recorded: str = "",
    status: int = 200,
) -> HTMLResponse:
    user = session.user
    may = {what: may_record(user, kind, incident) for what, kind in _FORMS.items()}
    open_points = [] if incident.is_closed else incident.open_points
    return render(
        request,
        "incident.html.j2",
        session,
        status=status,
        incident=incident,
        report=incident.report,
        steps=tuple(history(incident)),
        facts=tuple(of_incident(incident)),
        views=sum(isinstance(record.body, View) for record in incident.records),
        open_points=open_points,
        may=may,
        review_refused=_review_refused(incident, user.name),
        files=_files(site, incident),
        accepted=",".join(sorted(KINDS_OF_FILES)),
        folder=None if site.evidence is None else site.evidence.name,
        plot=_plot(site, incident),
        # A form that was sent has all of these fields, unless somebody made one up.
        current=forms.correction_fields(incident)
        | (forms.again(typed or {}) if failed == "correct" else {}),
        problem=problem,
        failed=failed,
        typed=typed or {},
        recorded=recorded,
    )


def _review_refused(incident: Incident, name: str) -> str:
    """Why somebody cannot review an incident, whatever they find; empty if they can."""
    refusals: list[str] = []
    verdicts: tuple[Any, ...] = ("confirmed", "dismissed")
    for verdict in verdicts:
        try:
            check(incident, Review(verdict=verdict, note="-"), name)
        except RefusedError as err:
            refusals.append(str(err))
    return refusals[0] if len(refusals) == len(verdicts) else ""


def _files(site: Site, incident: Incident) -> tuple[File, ...]:
    files = []
    for number, evidence in enumerate(incident.evidence):
        problem = ""
        try:
            find_evidence(site.evidence, evidence.uri)
        except NotFoundError as err:
            problem = str(err).removeprefix(f"{evidence.uri}: ")
        files.append(File(evidence=evidence, number=number, problem=problem))
    return tuple(files)


def _plot(site: Site, incident: Incident) -> str | None:
    """The recording around the event, drawn; None if there is none here."""
    if incident.report.until_ns is not None:
        return None  # nobody knows where in a recording it was
    for evidence in incident.evidence:
        if not evidence.uri.lower().endswith(_PLOTTED):
            continue
        try:
            file, _ = open_evidence(site.evidence, evidence)
        except InputError:
            continue
        file.close()
        path = find_evidence(site.evidence, evidence.uri)
        return event_plot(path, incident.report.happened_ns, quantities=incident.report.quantities)
    return None
