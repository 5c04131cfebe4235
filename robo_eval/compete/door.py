"""The doors of a competition: its application, with what is answered over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

import robo_eval
from robo_eval.compete import shown
from robo_eval.compete.budget import Budget
from robo_eval.compete.caller import Caller, nobody, token_in
from robo_eval.compete.house import House
from robo_eval.compete.ledger import Team
from robo_eval.compete.messages import RefusedError
from robo_eval.compete.openenv import OpenEnvCaller
from robo_eval.compete.pages.routes import furnish_with_pages
from robo_eval.web.deps import origin_of
from robo_eval.web.security import Guarded

TOO_MANY: Final = "too many requests from this address; ask less often"


def make_app(house: House, names: Iterable[str]) -> FastAPI:
    """The application of a competition; `house` is started and closed with it.

    Args:
        house: The server without its wires.
        names: Names it is reached by, beside any address.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await house.start()
        yield
        site.close()
        await house.close()

    app = FastAPI(
        title=house.competition.name,
        version=robo_eval.__version__,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses={429: {"description": TOO_MANY, "content": {"text/plain": {}}}},
    )
    app.state.house = house
    app.add_middleware(_Paced, budget=house.asked)
    app.add_middleware(Guarded, names=names, most_message=house.limits.message_bytes)

    @app.get("/v1/competition")
    async def competition() -> dict[str, Any]:
        """What everybody may know: rules, spaces, dates and the commitment."""
        return house.rules

    @app.get("/v1/me", responses={401: {"model": _Said}})
    async def me(team: Annotated[Team, Depends(_team_in)]) -> dict[str, Any]:
        """How a team stands: what it waits for, who has to act, until when, and its receipt."""
        standing = await house.store(house.ledger.standing, team)
        receipt = await house.store(house.ledger.newest_receipt, team)
        return {"team": team.name, **asdict(standing), "receipt": receipt}

    @app.get(shown.PATH, response_class=StreamingResponse, responses={409: {"model": _Said}})
    async def record() -> StreamingResponse:
        """All that was played and drawn, as lines of JSON, once the competition has ended."""
        told = await house.store(shown.lines, house.ledger)
        return StreamingResponse(told, media_type="application/x-ndjson")

    @app.websocket("/v1/play")
    async def play(socket: WebSocket) -> None:
        await Caller(house, socket).serve()

    @app.websocket("/ws")
    async def play_openenv(socket: WebSocket) -> None:
        await OpenEnvCaller(house, socket).serve()

    app.add_exception_handler(RefusedError, _refused)
    site = furnish_with_pages(app, house)
    return app


class _Paced:
    """Has requests over HTTP wait for their turn, so that who asks too much slows nobody down."""

    def __init__(self, app: ASGIApp, budget: Budget) -> None:
        self._app = app
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http" and not await self._budget.turn(
            origin_of(HTTPConnection(scope))
        ):
            app = PlainTextResponse(f"{TOO_MANY}\n", 429)
        await app(scope, receive, send)


class _Said(BaseModel):
    detail: str


async def _team_in(request: Request) -> Team:
    house: House = request.app.state.house
    token = token_in(request.headers.getlist("authorization"))
    team = await house.team_of(token)
    if team is None:
        raise HTTPException(401, nobody(token), {"www-authenticate": "Bearer"})
    return team


async def _refused(_request: Request, err: Exception) -> JSONResponse:
    assert isinstance(err, RefusedError)
    return JSONResponse({"detail": str(err), "code": err.code}, status_code=409)
