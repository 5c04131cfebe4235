"""One connection that plays in a competition, over a WebSocket."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterable
from functools import partial
from typing import Final

from starlette.responses import JSONResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from robo_eval.compete.arena import at_once
from robo_eval.compete.direct import DIRECT, Direct
from robo_eval.compete.house import House
from robo_eval.compete.ledger import Team
from robo_eval.compete.link import REPLACED, REPLACED_TEXT, TOO_LARGE
from robo_eval.compete.messages import Hello, Message, RefusedError, Step, message_of
from robo_eval.compete.room import Room
from robo_eval.web.deps import origin_of

_LOG: Final = logging.getLogger(__name__)
_HELLO_S: Final = 10.0
"""A connection that has not introduced itself by then is closed."""
_REFUSED: Final = 4000
"""Code by which a connection is closed whose message was no message; the reason says why."""


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
        token = token_in(headers.getlist("authorization"))
        team = await house.team_of(token)
        is_due = await house.may_connect(team, origin_of(self._socket))
        problem = None
        if "origin" in headers:
            problem = JSONResponse({"detail": "web pages may not play"}, 403)
        elif team is None:
            problem = JSONResponse({"detail": nobody(token)}, 401)
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


def token_in(shown: Iterable[str]) -> str:
    """The bearer token in the headers; empty if there is none, or more than one."""
    found = list(shown)
    kind, _, token = found[0].partition(" ") if len(found) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


def nobody(token: str) -> str:
    """Why a token is refused."""
    if token:
        return "no team has this token; copy it again, or ask the organiser for another"
    return "a team's token is wanted, as one header `Authorization: Bearer TOKEN`"
