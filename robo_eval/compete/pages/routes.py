"""The pages of a competition by their addresses."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response

from robo_eval.compete.house import House
from robo_eval.compete.ledger import REVEAL, Attempt, Team
from robo_eval.compete.pages import told
from robo_eval.compete.pages.site import (
    CompetitionSite,
    Organiser,
    Person,
    Session,
    ThisSite,
    ThisTeam,
    Visitor,
)
from robo_eval.core.task import task_of
from robo_eval.web.app import furnish
from robo_eval.web.errors import ForbiddenError, NotFoundError
from robo_eval.web.templating import go_to, is_part, render

router: Final = APIRouter(include_in_schema=False)
_MOST: Final = 100
"""Rows of a page; there is a link to more."""
_MOST_MAPPED: Final = 50
"""Teams on the map of levels."""


def furnish_with_pages(app: FastAPI, house: House) -> CompetitionSite:
    """Give the application of a door its pages.

    Raises:
        InputError: If the ledger or the organiser's key cannot be read.
    """
    site = CompetitionSite.of(house)
    furnish(app, site, [router])
    return site


@router.get("/")
def leaderboard(request: Request, site: ThisSite, session: Visitor) -> Response:
    """What everybody may see: rules in short, leaderboard, and at the end what was hidden."""
    if not is_part(request) and "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(
            f"{site.name}: a competition of agents. Its rules: /v1/competition. An"
            ' agent plays by gymnasium.make("RoboEval/Remote-v0", url=..., token=...), which pip'
            ' install "robo-eval-stack[remote]" brings; `robo-eval compete try URL` tries it out.\n'
        )
    if session is not None:
        return _leaderboard(request, site, session)
    made = site.once(str(request.base_url), lambda: bytes(_leaderboard(request, site, None).body))
    return HTMLResponse(made)


def _leaderboard(request: Request, site: CompetitionSite, session: Session | None) -> HTMLResponse:
    its = site.house.competition
    found = site.board()
    is_revealed = site.is_revealed
    mapped = [one for one in found.entries if one.levels][:_MOST_MAPPED] if found else []
    return render(
        request,
        "leaderboard.html.j2",
        session,
        rules=site.house.rules,
        address=str(request.base_url),
        competition=its,
        phase=site.ledger.phase(),
        specs=[(task.env, task_of(task.env)) for task in its.tasks],
        board=found,
        is_revealed=is_revealed,
        hidden="" if is_revealed else told.hidden_text(site.ledger),
        cells=told.cells(its) if is_revealed else {},
        mapped=mapped,
        tables=found.tables if found else (),
    )


@router.get("/reveal.json")
def reveal(site: ThisSite) -> FileResponse:
    """What was revealed.

    Raises:
        NotFoundError: If nothing was yet.
    """
    if not site.is_revealed:
        raise NotFoundError(told.hidden_text(site.ledger).rstrip("."))
    return FileResponse(site.ledger.folder / REVEAL, media_type="application/json")


@router.get("/own")
def own(request: Request, session: Person) -> Response:
    """The page of whoever is logged in."""
    return go_to(request, "/organiser" if session.user.team is None else "/team")


@router.get("/team")
def team(
    request: Request, site: ThisSite, session: Person, its: ThisTeam, start: int = 0
) -> HTMLResponse:
    """A team's own page: how it stands, how far it is, and where it failed."""
    attempts, is_revealed = _attempts(site, its), site.is_revealed
    failed = (
        [one for attempt in attempts for one in told.failed(site.ledger, attempt)]
        if is_revealed
        else []
    )
    found = site.board()
    entries = [] if found is None else [one for one in found.entries if one.team == its.name]
    return render(
        request,
        "team.html.j2",
        session,
        standing=site.ledger.standing(its),
        attempts=attempts,
        progress=site.ledger.progress(),
        episodes=site.house.competition.trials.episodes,
        entry=entries[0] if entries else None,
        notes=told.notes(site.ledger, its, attempts),
        hidden="" if is_revealed else told.hidden_text(site.ledger),
        **_part(failed, start),
    )


@router.get("/team/{attempt}/{trial}/{episode}")
def film(
    request: Request,
    site: ThisSite,
    session: Person,
    its: ThisTeam,
    attempt: int,
    trial: int,
    episode: int,
) -> HTMLResponse:
    """An episode of a team's own that failed, drawn.

    Raises:
        ForbiddenError: If it would tell what is hidden.
        NotFoundError: If there is none.
    """
    if not site.is_revealed:
        raise ForbiddenError(told.hidden_text(site.ledger).rstrip("."))
    own = [one for one in _attempts(site, its) if one.attempt == attempt]
    failed = [one for each in own for one in told.failed(site.ledger, each)]
    found = next((one for one in failed if one.place[1:] == (trial, episode)), None)
    if found is None:
        raise NotFoundError("no such episode of this team failed")
    shown = site.desk.film(its.name, found.place) if found.row.ticks else None
    spec = task_of(found.row.task)
    return render(
        request,
        "film.html.j2",
        session,
        failed=found,
        film=shown,
        attempt=attempt,
        tilts=spec is not None and spec.tilt is not None,
    )


@router.get("/organiser")
def organiser(request: Request, site: ThisSite, session: Organiser, start: int = 0) -> HTMLResponse:
    """The organiser's page: teams, their progress, what went wrong, and who serves."""
    ledger, house = site.ledger, site.house
    last = {one.team: one for one in ledger.attempts()}
    hands = house.arena.hands
    return render(
        request,
        "organiser.html.j2",
        session,
        phase=ledger.phase(),
        standing=ledger.standing,
        last=last,
        progress=ledger.progress(),
        open=house.open,
        episodes=house.competition.trials.episodes,
        notes=told.notes(ledger, None, ledger.attempts()),
        alive=sum(hand.is_alive for hand in hands),
        workers=len(hands),
        lost=house.arena.lost,
        connections=house.open.total(),
        servers=ledger.servers(),
        now_ns=ledger.now(),
        **_part(ledger.teams(), start),
    )


def _attempts(site: CompetitionSite, its: Team) -> list[Attempt]:
    return [one for one in site.ledger.attempts() if one.team == its.number]


def _part(whole: list[Any], start: int) -> dict[str, Any]:
    """Some of what a page lists, and where the next part begins."""
    first = min(max(start, 0), len(whole))
    end = first + _MOST
    return {
        "shown": whole[first:end],
        "start": first,
        "total": len(whole),
        "following": end if end < len(whole) else None,
    }
