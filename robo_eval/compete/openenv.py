"""The same trials in the framing of OpenEnv's `/ws`, for clients that speak it already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from robo_eval.compete.door import Caller
from robo_eval.compete.house import Team
from robo_eval.compete.messages import PROTOCOL, Hello, Message, Reset, Step
from robo_eval.compete.room import Room

_CODES: Final[Mapping[str, str]] = {
    "bad_action": "VALIDATION_ERROR",
    "not_reset": "EXECUTION_ERROR",
}


class OpenEnvCaller(Caller):
    """A connection in that framing: one trial at a time, and no declarations.

    An action is `{"value": ...}`, an observation `{"value", "truncated", "info", "left"}`: `done`
    alone would not say which end it was.
    """

    _count = 0
    _ticks = 0

    async def _introduced(self, team: Team) -> Room:
        hello = Hello(type="hello", id=0, protocol=PROTOCOL, text=True)
        room = await self._house.enter(team, hello, self._number)
        room.welcome(hello)
        return room

    async def _message_of(self, frame: str | bytes) -> Message | None:
        said = json_of(frame)
        kind, data = said["type"], said.get("data", {})
        if kind == "close":
            await self._socket.close()
            return None
        if kind == "state":
            state = {"episode_id": None, "step_count": self._ticks}
            await self._socket.send_text(json.dumps({"type": "state", "data": state}))
            return None
        if kind == "step" and set(data) != {"value"}:
            raise _Said("VALIDATION_ERROR", 'the data of step is {"value": action}')
        self._count += 1
        if kind == "reset":
            self._ticks = 0
            return Reset(type="reset", id=self._count, trials=[0])
        self._ticks += 1
        return Step(type="step", id=self._count, trials=[0], actions=[data["value"]])

    async def _send(self, frame: str | bytes) -> None:
        said = json.loads(frame)
        if said["type"] == "error":
            code = _CODES.get(
                said["code"], said["code"] if said["code"].isupper() else "SESSION_ERROR"
            )
            answer = {"type": "error", "data": {"message": said["message"], "code": code}}
        else:
            first = {name: said[name][0] for name in ("observation", "truncated", "info", "reward")}
            terminated = said["terminated"][0]
            observation = {
                "value": first["observation"],
                "truncated": first["truncated"],
                "info": first["info"],
                "left": said["left"],
            }
            answer = {
                "type": "observation",
                "data": {
                    "observation": observation,
                    "reward": first["reward"],
                    "done": terminated or first["truncated"],
                },
            }
        await self._socket.send_text(json.dumps(answer))
