"""The doors of a competition: what is answered over HTTP, and over a WebSocket to who plays."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

import robo_eval
from robo_eval.compete import shown
from robo_eval.compete.arena import at_once
from robo_eval.compete.budget import Budget
from robo_eval.compete.direct import DIRECT, Direct
from robo_eval.compete.house import House
from robo_eval.compete.ledger import Team
from robo_eval.compete.link import REPLACED, REPLACED_TEXT, TOO_LARGE
from robo_eval.compete.messages import Hello, Message, RefusedError, Step, message_of
from robo_eval.compete.pages.routes import furnish_with_pages
from robo_eval.compete.room import Room
from robo_eval.web.deps import origin_of
from robo_eval.web.security import Guarded

_LOG: Final = logging.getLogger(__name__)
_HELLO_S: Final = 10.0
"""A connection that has not introduced itself by then is closed."""
TOO_MANY: Final = "too many requests from this address; ask less often"
_REFUSED: Final = 4000
"""Code by which a connection is closed whose message was no message; the reason says why."""


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
        from robo_eval.compete.openenv import OpenEnvCaller

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
    token = _token(request.headers.getlist("authorization"))
    team = await house.team_of(token)
    if team is None:
        raise HTTPException(401, _nobody(token), {"www-authenticate": "Bearer"})
    return team


def _nobody(token: str) -> str:
    """Why a token is refused."""
    if token:
        return "no team has this token; copy it again, or ask the organiser for another"
    return "a team's token is wanted, as one header `Authorization: Bearer TOKEN`"


async def _refused(_request: Request, err: Exception) -> JSONResponse:
    assert isinstance(err, RefusedError)
    return JSONResponse({"detail": str(err), "code": err.code}, status_code=409)


def _token(shown: Iterable[str]) -> str:
    """The bearer token in the headers; empty if there is none, or more than one."""
    found = list(shown)
    kind, _, token = found[0].partition(" ") if len(found) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


class Caller:
    """One connection that plays.

    Args:
        house: The server.
        socket: The connection.
    """

    def __init__(self, house: House, socket: WebSocket) -> None:
        self._house = house
        self._socket = socket
        self._number = next(house.numbers)
        self._grid_s = house.competition.answer_grid_ms / 1000.0
        self._closing: asyncio.Task[None] | None = None
        self._line: Direct | None = None

    async def serve(self) -> None:
        """Answer until one of the two leaves."""
        house = self._house
        team = await self._admitted()
        if team is None:
            return
        house.open[team.name] += 1
        house.evict[self._number] = self.evict
        room: Room | None = None
        try:
            await self._socket.accept()
            room = await self._introduced(team)
            while True:
                await self._send(await self._reply(room, team))
        except RefusedError as err:
            await self._refuse(team, err)
        except (WebSocketDisconnect, RuntimeError):  # Starlette's, of a connection that has gone
            pass
        finally:
            if self._line is not None:
                self._line.taker = None
            if self._closing is not None:
                await asyncio.gather(self._closing, return_exceptions=True)
            del house.evict[self._number]
            house.open[team.name] -= 1
            if room is not None:
                async with room.alone:  # what is under way is kept first
                    await house.leave(room, self._number)

    def evict(self) -> None:
        """Close it because another one has come."""
        self._closing = asyncio.ensure_future(self._socket.close(REPLACED, REPLACED_TEXT))

    async def _admitted(self) -> Team | None:
        """Whose connection it is; without a right to be here it is refused."""
        house, headers = self._house, self._socket.headers
        token = _token(headers.getlist("authorization"))
        team = await house.team_of(token)
        is_due = await house.may_connect(team, origin_of(self._socket))
        problem = None
        if "origin" in headers:
            problem = JSONResponse({"detail": "web pages may not play"}, 403)
        elif team is None:
            problem = JSONResponse({"detail": _nobody(token)}, 401)
        elif not is_due:
            problem = JSONResponse({"detail": "too many connections; open fewer"}, 429)
        elif house.open[team.name] >= house.limits.connections:
            most = house.limits.connections
            problem = JSONResponse({"detail": f"a team may have {most} connections"}, 429)
        if problem is None:
            return team
        await house.note(team, "refused", f"a connection: {bytes(problem.body).decode()}")
        await self._socket.send_denial_response(problem)
        return None

    async def _introduced(self, team: Team) -> Room:
        try:
            message = await asyncio.wait_for(self._received(team), _HELLO_S)
        except TimeoutError as err:
            raise RefusedError("late", f"no hello within {_HELLO_S:g} s", ends=True) from err
        try:
            if not isinstance(message, Hello):
                raise RefusedError("order", "hello comes first")
            if message.rehearsal and not await self._house.may_rehearse(team):
                raise RefusedError("busy", "too many rehearsals; wait a minute")
            room = await self._house.enter(team, message, self._number)
        except RefusedError as err:
            err.ends, err.number = True, message.id
            raise
        await self._send(await room.welcome(message))
        self._line = self._socket.scope["extensions"].get(DIRECT)
        if self._line is not None and not self._grid_s and self._house.steps.per_s is None:
            self._line.taker = partial(self._taken, room, team, self._line)
        return room

    def _taken(self, room: Room, team: Team, line: Direct, frame: str | bytes) -> bool:
        """Answer a step at once; all else, and what comes too early, `serve` has its turn with."""
        if room.is_busy or room.connection != self._number:
            return False
        try:
            message = message_of(frame)
        except RefusedError:
            return False
        if isinstance(message, Step):
            at_once(self._step(room, team, line, message))
            return True
        return False

    async def _step(self, room: Room, team: Team, line: Direct, message: Step) -> None:
        try:
            line.say(await self._reply(room, team, message))
        except Exception:  # noqa: BLE001 - whatever it is ends the connection, as elsewhere
            _LOG.exception("a step of team %s", team.name)
            line.transport.close()

    async def _received(self, team: Team) -> Message:
        """The next message."""
        return message_of(await self._frame(team))

    async def _frame(self, team: Team) -> str | bytes:
        received = await self._socket.receive()
        if received["type"] == "websocket.disconnect":
            if received.get("code") == TOO_LARGE:
                most = self._house.limits.message_bytes
                await self._house.note(team, "too_large", f"a message of more than {most:,} bytes")
            raise WebSocketDisconnect(received.get("code") or 1005)
        frame = received.get("text")
        return received["bytes"] if frame is None else str(frame)

    async def _reply(self, room: Room, team: Team, message: Message | None = None) -> str | bytes:
        """What a message is answered; without one, the next."""
        try:
            return await self._answer(room, message or await self._received(team))
        except RefusedError as err:
            if err.ends:
                raise
            await self._house.note(team, err.code, str(err))
            return err.frame

    async def _answer(self, room: Room, message: Message) -> str | bytes:
        house, begin_s, is_new = self._house, time.monotonic(), room.is_new(message)
        room.is_held = house.steps.per_s is not None or bool(self._grid_s)
        try:
            await house.steps.turn(room.team.name, len(getattr(message, "trials", ())))
            if room.connection != self._number:
                raise WebSocketDisconnect(REPLACED)
            frame = await room.answer(message)
            if room.pace is not None and not room.pace.done():
                room.is_held = True
                await asyncio.wait([room.pace])
            if grid_s := self._grid_s:
                late_s = math.ceil((time.monotonic() - begin_s) / grid_s) * grid_s
                await asyncio.sleep(begin_s + late_s - time.monotonic())
        finally:
            room.is_held = False
        if is_new:
            room.hear(message)
        return frame

    async def _refuse(self, team: Team, err: RefusedError) -> None:
        """Say why the connection ends."""
        await self._house.note(team, err.code, str(err))
        try:
            await self._send(err.frame)
            await self._socket.close(_REFUSED, err.code)
        except (WebSocketDisconnect, RuntimeError):
            pass

    async def _send(self, frame: str | bytes) -> None:
        if isinstance(frame, str):
            await self._socket.send_text(frame)
        else:
            await self._socket.send_bytes(frame)
