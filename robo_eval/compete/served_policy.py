"""Policies that teams serve, which the organiser calls: ours, and those in openpi's framing."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np

from robo_eval.compete.players import add_missing, played
from robo_eval.core.errors import InputError, MissingExtraError, RoboEvalError, pip_install, said

if TYPE_CHECKING:
    from robo_eval.compete.serving import Serving

OPENPI: Final = "openpi+"
"""What the url of a policy in openpi's framing begins with."""
_KINDS: Final = "biufSU"
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Calls:
    """Which policies are called, by the name of their team."""

    urls: dict[str, str]

    @classmethod
    def of(cls, given: Sequence[str]) -> Calls:
        """What `--policy NAME=URL` says.

        Raises:
            InputError: If one has another form.
        """
        urls: dict[str, str] = {}
        for one in given:
            name, _, url = one.partition("=")
            if not name or not url.removeprefix(OPENPI).startswith(("ws://", "wss://")):
                raise InputError(
                    f"--policy {one}: must look like NAME=ws://host:port, or"
                    " NAME=openpi+ws://host:port"
                )
            urls[name] = url
        return cls(urls)

    def begin(self, serving: Serving, announce: Callable[[str], None]) -> None:
        """Call each of them in a thread of its own, as soon as the server answers.

        Raises:
            InputError: If one cannot be the name of a team.
        """
        add_missing(serving.house.ledger, self.urls)
        for name, url in self.urls.items():
            arguments = (serving, name, url, announce)
            threading.Thread(target=_called, args=arguments, daemon=True).start()


def _called(serving: Serving, name: str, url: str, announce: Callable[[str], None]) -> None:
    try:
        (team,) = [team for team in serving.house.ledger.teams() if team.name == name]
        played(serving, team, partial(policy_at, url), announce, name)
    except Exception as err:  # noqa: BLE001 - of whatever answers there; others go on
        why = err if isinstance(err, RoboEvalError) else f"{url}: {said(err)}"
        announce(f"{name}: {why}")


def policy_at(url: str, actions: gymnasium.Space[Any]) -> Any:  # noqa: ANN401 - a policy
    """The policy that is served at a url.

    Raises:
        InputError: If nothing can be reached there.
    """
    from robo_eval.agents.remote import RemotePolicy

    if url.startswith(OPENPI):
        return OpenPiPolicy(url.removeprefix(OPENPI), actions)
    return RemotePolicy(url, timeout_s=_TIMEOUT_S)


class OpenPiPolicy:
    """A policy in openpi's framing: it answers observations with chunks of actions.

    Observations that are no mapping travel as `state`; those that are, as they stand.

    Args:
        url: `ws://host:port`.
        actions: The action space that its answers are turned into.
        prompt: What it is to do, if it wants to be told.

    Raises:
        InputError: If nothing can be reached there.
    """

    def __init__(self, url: str, actions: gymnasium.Space[Any], prompt: str | None = None) -> None:
        try:
            import msgpack
            from websockets.sync.client import connect
        except ImportError as err:
            raise MissingExtraError(
                f"policies of openpi need {err.name}: {pip_install('remote')}"
            ) from err
        self._msgpack: Any = msgpack
        self._url = url
        self._actions = actions
        self._prompt = prompt
        self._chunk: deque[Any] = deque()
        self._opened = contextlib.ExitStack()
        try:
            # Its server answers nothing while it computes, pings neither.
            self._socket = self._opened.enter_context(
                connect(url, compression=None, max_size=None, ping_timeout=None, proxy=None)
            )
            self._received()  # what it says of itself comes first
        except (OSError, EOFError) as err:
            raise InputError(f"{url}: no policy is served there: {said(err)}") from err

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the rest of the last chunk; the framing has no message for it."""
        del seed
        self._chunk.clear()

    def act(self, observation: Any) -> Any:  # noqa: ANN401 - of any space
        """The next action of the chunk; when it is used up, the policy is asked for another.

        Raises:
            InputError: If its answer holds no actions.
        """
        if not self._chunk:
            asked = dict(observation) if isinstance(observation, dict) else {"state": observation}
            if self._prompt is not None:
                asked["prompt"] = self._prompt
            self._socket.send(self._msgpack.packb(asked, default=pack_array))
            answer = self._received()
            found = answer.get("actions") if isinstance(answer, dict) else None
            if not isinstance(found, np.ndarray) or found.ndim != 2 or not len(found):
                raise InputError(f"{self._url}: its answer has no array `actions` of two axes")
            self._chunk.extend(found)
        return self._action(self._chunk.popleft())

    def close(self) -> None:
        """Hang up."""
        self._opened.close()

    def _action(self, row: Any) -> Any:  # noqa: ANN401 - a row of numbers
        if not isinstance(self._actions, gymnasium.spaces.Discrete):
            return np.asarray(row, self._actions.dtype).reshape(self._actions.shape)
        if row.size == self._actions.n and row.size > 1:  # how much it is for each
            return int(np.argmax(row)) + int(self._actions.start)
        return round(float(row[0]))

    def _received(self) -> Any:  # noqa: ANN401 - whatever it says
        answer = self._socket.recv(timeout=_TIMEOUT_S)
        if isinstance(answer, str):
            raise InputError(f"{self._url}: the policy failed: {' '.join(answer.split())[-200:]}")
        try:
            return self._msgpack.unpackb(answer, object_hook=unpack_array)
        except ValueError as err:
            raise InputError(f"{self._url}: answered with garbage: {said(err)}") from err


def pack_array(value: Any) -> Any:  # noqa: ANN401 - what msgpack does not know
    """An array or NumPy number as openpi's framing has it; for `msgpack.packb(default=)`."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in _KINDS:
        raise InputError(f"an array of {value.dtype} cannot be sent")
    if isinstance(value, np.ndarray):
        return {
            b"__ndarray__": True,
            b"data": value.tobytes(),
            b"dtype": value.dtype.str,
            b"shape": value.shape,
        }
    if isinstance(value, np.generic):
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise InputError(f"a {type(value).__name__} cannot be sent")


def unpack_array(form: dict[Any, Any]) -> Any:  # noqa: ANN401 - what was packed
    """What `pack_array` packed; for `msgpack.unpackb(object_hook=)`.

    Raises:
        ValueError: If type, shape and bytes do not fit each other, or Python objects are asked for.
    """
    if b"__ndarray__" not in form and b"__npgeneric__" not in form:
        return form
    dtype = np.dtype(str(form[b"dtype"]))
    if dtype.kind not in _KINDS:
        raise ValueError(f"an array of {dtype} is not taken")
    if b"__npgeneric__" in form:
        return dtype.type(form[b"data"])
    shape = [int(size) for size in form[b"shape"]]
    if min(shape, default=0) < 0 or len(form[b"data"]) != dtype.itemsize * int(np.prod(shape)):
        raise ValueError(f"{len(form[b'data'])} bytes are no array of {dtype} and shape {shape}")
    return np.frombuffer(form[b"data"], dtype).reshape(shape).copy()
