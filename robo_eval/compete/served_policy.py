"""Policies that teams serve, which the organiser calls: ours, and those in openpi's framing."""

from __future__ import annotations

import contextlib
import math
import resource
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np

from robo_eval.agents.wire import MAX_CHUNK
from robo_eval.compete.client import play
from robo_eval.compete.link import SaidNoError, rules_of
from robo_eval.compete.players import add_missing
from robo_eval.core.confined import Confined
from robo_eval.core.errors import InputError, MissingExtraError, RoboEvalError, pip_install, said
from robo_eval.core.trials import call_if_there

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from robo_eval.compete.serving import Serving

OPENPI: Final = "openpi+"
"""What the url of a policy in openpi's framing begins with."""
_KINDS: Final = "biufSU"
_TIMEOUT_S: Final = 60.0
_PAUSE_S: Final = 5.0
"""After so long a policy that failed, or may not play yet, is called again."""
_MOST_BYTES: Final = 16 * 2**20
"""A longer answer is not taken."""
_MEMORY_BYTES: Final = 4 * 2**30
"""What the process that calls a policy may have; small parts of an answer need much."""
_ENDED: Final = ("closed", "no_attempts", "withdrawn", "finished", "revealed")
"""Codes and states of a team that plays no more."""


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
        """Call each of them from a process of its own, as soon as the server answers.

        Raises:
            InputError: If one cannot be the name of a team.
        """
        add_missing(serving.house.ledger, self.urls)
        for name, url in self.urls.items():
            arguments = (serving, name, url, announce)
            threading.Thread(target=_called, args=arguments, daemon=True).start()


def _called(serving: Serving, name: str, url: str, announce: Callable[[str], None]) -> None:
    """Have a policy called until it has played all; tell what its process says, each thing once."""
    token, told = secrets.token_urlsafe(24), ""
    (team,) = [team for team in serving.house.ledger.teams() if team.name == name]
    serving.house.passes[token] = team
    with contextlib.suppress(RoboEvalError):  # of a server that does not start, which says so
        serving.wait()
        tasks = list(dict.fromkeys(task.env for task in serving.house.competition.tasks))
        while True:
            given = (serving.url, token, url, tasks, _PAUSE_S)
            process = Confined(_go_on, *given, forks=False)
            serving.at_end(process.end)
            with contextlib.suppress(EOFError, OSError):
                while (line := process.pipe.recv()) is not None:
                    if line != told:
                        announce(f"{name}: {line}")
                    told = line
                return
            if serving.is_stopping:
                return
            announce(f"{name}: {url}: the process that calls it has ended; it is begun again")
            time.sleep(_PAUSE_S)


def _go_on(
    _hears: Connection, speaks: Connection, url: str, token: str, policy: str, tasks: list[str],
    pause_s: float,
) -> None:  # fmt: skip
    """Let a policy play as a client of the server, again after each failure; then say None."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    while tasks:
        try:
            standing = rules_of(url, path="/v1/me", token=token)
            if standing["state"] in ("ready", "playing", "late"):
                count = _played(url, token, policy, tasks[0])
                speaks.send(f"{count} episodes of {tasks.pop(0)} played")
                continue
            line = standing["sentence"]
            if standing["state"] in _ENDED:
                tasks = []
        except Exception as err:  # noqa: BLE001 - of whatever answers there; it may mend itself
            code = err.code if isinstance(err, SaidNoError) else ""
            if code in _ENDED:
                tasks = []
            elif code == "unfinished":  # an episode of another task is under way
                tasks.append(tasks.pop(0))
            line = str(err) if isinstance(err, RoboEvalError) else f"{policy}: {said(err)}"
        speaks.send(f"{line.rstrip('.')}; it is called again" if tasks else line)
        time.sleep(pause_s if tasks else 0.0)
    speaks.send(None)


def _played(url: str, token: str, policy: str, task: str) -> int:
    """Let a policy play what is left of a task, if it answers; how many episodes that was.

    The first answer is to an observation of an episode that does not count, so that no attempt
    begins with a policy that is not there.
    """

    def entered(*, rehearsal: bool) -> Any:
        made = gymnasium.make(
            "RoboEval/Remote-v0", url=url, token=token, task=task, rehearsal=rehearsal
        )
        return contextlib.closing(made)

    with contextlib.ExitStack() as opened:
        with entered(rehearsal=True) as env:
            agent = policy_at(policy, env.action_space)
            opened.callback(call_if_there, agent, "close")
            observation, _ = env.reset()
            agent.reset()
            env.step(agent.act(observation))
        return play(opened.enter_context(entered(rehearsal=False)), agent)


def policy_at(url: str, actions: gymnasium.Space[Any]) -> Any:
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
                connect(url, compression=None, max_size=_MOST_BYTES, ping_timeout=None, proxy=None)
            )
            self._received()  # what it says of itself comes first
        except (OSError, EOFError) as err:
            raise InputError(f"{url}: no policy is served there: {said(err)}") from err

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the rest of the last chunk; the framing has no message for it."""
        del seed
        self._chunk.clear()

    def act(self, observation: Any) -> Any:
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
            found: Any = answer.get("actions") if isinstance(answer, dict) else None
            is_array = isinstance(found, np.ndarray) and found.ndim == 2
            if not is_array or not found.size or len(found) > MAX_CHUNK:
                raise InputError(
                    f"{self._url}: its answer has no array `actions` of two axes with 1 to"
                    f" {MAX_CHUNK} rows"
                )
            self._chunk.extend(found)
        return self._action(self._chunk.popleft())

    def close(self) -> None:
        """Hang up."""
        self._opened.close()

    def _action(self, row: Any) -> Any:
        if not isinstance(self._actions, gymnasium.spaces.Discrete):
            return np.asarray(row, self._actions.dtype).reshape(self._actions.shape)
        if row.size == self._actions.n and row.size > 1:  # how much it is for each
            return int(np.argmax(row)) + int(self._actions.start)
        return round(float(row[0]))

    def _received(self) -> Any:
        answer = self._socket.recv(timeout=_TIMEOUT_S)
        if isinstance(answer, str):
            raise InputError(f"{self._url}: the policy failed: {' '.join(answer.split())[-200:]}")
        try:
            return self._msgpack.unpackb(answer, object_hook=unpack_array)
        except ValueError as err:
            raise InputError(f"{self._url}: answered with garbage: {said(err)}") from err


def pack_array(value: Any) -> Any:
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


def unpack_array(form: dict[Any, Any]) -> Any:
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
    size = dtype.itemsize * math.prod(shape)  # of Python's numbers, which do not overflow
    if min(shape, default=0) < 0 or len(form[b"data"]) != size:
        raise ValueError(f"{len(form[b'data'])} bytes are no array of {dtype} and shape {shape}")
    return np.frombuffer(form[b"data"], dtype).reshape(shape).copy()
