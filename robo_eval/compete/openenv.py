"""The same trials in the framing of OpenEnv's `/ws`, for clients that speak it already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.websockets import WebSocketDisconnect

from robo_eval.compete.caller import Caller
from robo_eval.compete.ledger import Team
from robo_eval.compete.messages import PROTOCOL, Hello, Message, RefusedError, Reset, Step
from robo_eval.compete.room import Room
from robo_eval.core.door import json_of

_CODES: Final[Mapping[str, str]] = {
    "bad_action": "VALIDATION_ERROR",
    "not_reset": "EXECUTION_ERROR",
    "over": "EXECUTION_ERROR",
    "given_back": "EXECUTION_ERROR",
    "forfeited": "EXECUTION_ERROR",
}
"""Codes of that framing, by ours; of all others the connection is closed."""


class OpenEnvCaller(Caller):
    """A connection in that framing: one trial at a time, and no declarations.

    An action is `{"value": ...}`, an observation `{"value", "truncated", "info", "left"}`, since
    `done` alone would not say which end it was. A seed that a client names changes nothing.
    """

    _count = 0
    _ticks = 0

    async def _introduced(self, team: Team) -> Room:
        hello = Hello(type="hello", id=0, protocol=PROTOCOL, text=True)
        room = await self._house.enter(team, hello, self._number)
        await room.welcome(hello)
        return room

    async def _received(self, team: Team) -> Message:
        while True:
            message = await self._next(team)
            if message is not None:
                return message
            state = {"episode_id": None, "step_count": self._ticks}
            await self._socket.send_text(json.dumps({"type": "state", "data": state}))

    async def _next(self, team: Team) -> Message | None:
        """The next message; None if it asks for the state."""
        kind, data = _parts(await self._frame(team))
        if kind == "close":
            await self._socket.close()
            raise WebSocketDisconnect(1000)
        if kind == "state":
            return None
        if kind == "step" and set(data) != {"value"}:
            raise RefusedError("VALIDATION_ERROR", 'the data of step is {"value": action}')
        if kind not in ("reset", "step"):
            raise RefusedError("UNKNOWN_TYPE", "valid types: reset, step, state, close")
        self._count += 1
        self._ticks = 0 if kind == "reset" else self._ticks + 1
        if kind == "reset":
            return Reset(type="reset", id=self._count, trials=[0])
        return Step(type="step", id=self._count, trials=[0], actions=[data["value"]])

    async def _send(self, frame: str | bytes) -> None:
        said = json.loads(frame)
        if said["type"] == "error":
            code = said["code"]  # in capitals it is of that framing already
            code = code if code.isupper() else _CODES.get(code, "SESSION_ERROR")
            answer = {"type": "error", "data": {"message": said["message"], "code": code}}
        else:
            names = ("observation", "reward", "terminated", "truncated", "info")
            value, reward, terminated, truncated, info = (said[name][0] for name in names)
            observation = {
                "value": value, "truncated": truncated, "info": info, "left": said["left"]
            }  # fmt: skip
            data = {"observation": observation, "reward": reward, "done": terminated or truncated}
            answer = {"type": "observation", "data": data}
        await self._socket.send_text(json.dumps(answer))


def _parts(frame: str | bytes) -> tuple[str, dict[str, Any]]:
    """Type and data of a message.

    Raises:
        RefusedError: If it has another form.
    """
    try:
        said = json_of(frame)
    except ValueError as err:
        raise RefusedError("INVALID_JSON", f"the message is not JSON: {err}") from err
    if not isinstance(said, dict) or set(said) - {"type", "data"}:
        raise RefusedError("VALIDATION_ERROR", "a message is an object of `type` and `data`")
    kind, data = said.get("type"), said.get("data", {})
    if not isinstance(kind, str) or not isinstance(data, dict):
        raise RefusedError("VALIDATION_ERROR", "`type` is a text and `data` an object")
    return kind, data
