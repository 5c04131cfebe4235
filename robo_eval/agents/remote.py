"""How a policy on another machine takes part, and how long it takes to answer."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import struct
import time
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from robo_eval.agents.wire import (
    MAX_CHUNK,
    MAX_FRAME_BYTES,
    PROTOCOL,
    TOKEN_VARIABLE,
    check_token,
    decode,
    encode,
    is_finite,
)
from robo_eval.core.errors import InputError, MissingExtraError, RoboEvalError, pip_install

_CLOSE_S: Final = 0.2
"""How long a connection that is given up may take to say good-bye."""


class RemotePolicyError(RoboEvalError):
    """A remote policy did not answer as it should; the episode is a fault."""


class LinkLostError(RemotePolicyError):
    """The connection to a remote policy broke."""


class NotServedError(LinkLostError, InputError):
    """Nobody listens any more where a remote policy was, or another policy is served there."""


class RemotePolicy:
    """A policy that `robo-eval serve-policy` serves on another machine.

    It connects at once, so that a plan is refused if nobody listens. A connection that broke is
    opened again at the next `reset`, once; until then `act` raises.

    Args:
        url: Where it is served: `ws://host:port`.
        timeout_s: How long an answer may take, seconds.
        start_timeout_s: How long connecting, and the first answer of each kind on a connection, may
            take: the server loads the policy then, and a network is slow the first time.

    Attributes:
        name: The policy's name as the server says it; a plan's name replaces it.
        digest: The digest of the policy behind the server, the same as if it played here.
        latency: How long the requests of the episode took.
        is_tried: Whether it is only tried: the server keeps it then for who plays next, so that it
            need not be loaded twice.

    Raises:
        InputError: If the url or a time cannot be used, nobody listens there, the token is refused,
            or what listens does not speak this protocol; the message names the url.
        MissingExtraError: If the websockets package is not installed.
    """

    def __init__(self, url: str, *, timeout_s: float = 2.0, start_timeout_s: float = 30.0) -> None:
        _check_seconds("timeout_s", timeout_s)
        _check_seconds("start_timeout_s", start_timeout_s)
        _check_url(url)
        self.url = url
        self.latency = Latency()
        self.is_tried = False
        self._in_trial = False
        self._timeout_s = float(timeout_s)
        self._start_timeout_s = float(start_timeout_s)
        self._chunk: deque[Any] = deque()
        self._link = self._open()
        self.name = self._link.name
        self.digest = self._link.digest

    def reset(self, *, seed: int | None = None) -> None:
        """Forget the last episode here and there; open a broken connection again, once.

        Raises:
            RemotePolicyError: If the policy does not answer or cannot be reset.
            NotServedError: If nobody listens any more, or another policy is served there now.
        """
        self._chunk.clear()
        self.latency = Latency()
        number = None if seed is None else int(seed)
        if self._link.is_open:
            try:
                self._link.ask("reset", "ready", seed=number, tried=self.is_tried)
            except LinkLostError:
                if self._in_trial:
                    raise
                # It broke since the last episode.
            else:
                return
        self._check_memory()
        self._reopen()
        self._link.ask("reset", "ready", seed=number, tried=self.is_tried)

    def act(self, observation: Any) -> Any:
        """The next action of the chunk; when it is used up, the policy is asked for another.

        Raises:
            RemotePolicyError: If the policy does not answer in time, or answers what is no action.
            InputError: If the observation cannot be sent.
        """
        if not self._chunk:
            self._chunk.extend(self._ask(observation))
        return self._chunk.popleft()

    def begin_trial(self) -> None:
        """Have the policy made anew there, and told; from now on its memory must last.

        A server of an earlier version makes one for each connection, and is told nothing.

        Raises:
            RemotePolicyError: If that fails, or takes too long.
        """
        self._in_trial = True
        if self._link.knows_trials:
            self._link.ask("begin_trial", "ready")

    def begin_episode(self, info: Mapping[str, Any]) -> None:
        """Tell the policy what it may know of the episode that begins.

        Raises:
            RemotePolicyError: If that fails, or takes too long.
        """
        self._check_memory()
        if self._link.knows_trials:
            self._link.ask("begin_episode", "ready", info=dict(info))

    def declare(self) -> object:
        """What the policy declares after the episode that has ended; None if nothing.

        Raises:
            RemotePolicyError: If it fails, or takes too long.
        """
        if not self._link.knows_trials:
            return None
        return self._link.ask("declare", "declared").get("said")

    def _check_memory(self) -> None:
        if self._in_trial and not self._link.is_open:
            if self._link.spoilt:
                raise RemotePolicyError(f"{self.url}: its trial ended: {self._link.spoilt}")
            raise LinkLostError(
                f"{self.url}: the connection broke, and what the policy remembered of its trial is"
                " gone"
            )

    def measures(self) -> dict[str, float]:
        """How long the requests since the last `reset` took, unit in the name."""
        return self.latency.as_measures()

    def _ask(self, observation: Any) -> list[Any]:
        begin_s = time.monotonic()
        answer = self._link.ask("act", "actions", value=observation)
        round_trip_s = time.monotonic() - begin_s
        problem = _problem_of(answer, self._link.chunk)
        if problem:
            raise self._link.spoil(f"the policy answered with {problem}")
        actions: list[Any] = answer["value"]
        self.latency.add(round_trip_s, float(answer["inference_s"]), len(actions))
        return actions

    def _open(self) -> _Link:
        link = _Link(self.url, self._timeout_s, self._start_timeout_s)
        # So that the server forgets a policy that was only looked at, as plans are before a run.
        self._at_end = weakref.finalize(self, link.hang_up)
        return link

    def _reopen(self) -> None:
        self._link.close()
        self._at_end.detach()
        try:
            link = self._open()
        except InputError as err:
            raise NotServedError(str(err)) from err
        if link.digest != self.digest:
            link.close()
            raise NotServedError(
                f"{self.url}: another policy is served now: its digest is {link.digest}, and"
                f" {self.digest} began; serve that one again, or start a new trial"
            )
        self._link = link


class Latency:
    """How long the requests of one episode took."""

    def __init__(self) -> None:
        self._round_trip_s: list[float] = []
        self._inference_s: list[float] = []
        self._longest = 0

    def add(self, round_trip_s: float, inference_s: float, n_actions: int) -> None:
        """One request: as seen here, as measured by the server, and what it brought."""
        self._round_trip_s.append(round_trip_s)
        self._inference_s.append(inference_s)
        self._longest = max(self._longest, n_actions)

    def as_measures(self) -> dict[str, float]:
        """Figures for a row; nothing without a request.

        Example:
            >>> latency = Latency()
            >>> latency.add(0.03, 0.02, 4)
            >>> latency.as_measures()["remote_round_trip_max_s"]
            0.03
        """
        found: dict[str, float] = {}
        if not self._round_trip_s:
            return found
        for name, values in (
            ("remote_round_trip", self._round_trip_s),
            ("remote_inference", self._inference_s),
        ):
            found[f"{name}_p50_s"] = float(np.quantile(values, 0.5))
            found[f"{name}_p99_s"] = float(np.quantile(values, 0.99))
            found[f"{name}_max_s"] = max(values)
        found["remote_requests"] = float(len(self._round_trip_s))
        found["remote_chunk_actions"] = float(self._longest)
        return found


class _Link:
    """One connection to a server; closed for good by whatever goes wrong with it.

    An answer that the server marks as an error leaves it open: the next episode may go well.

    Attributes:
        is_open: Whether anything can be asked.
        spoilt: What the policy did that closed it; empty if that was not the policy.
    """

    def __init__(self, url: str, timeout_s: float, start_timeout_s: float) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._start_timeout_s = start_timeout_s
        self._answered: set[str] = set()
        self._number = 0
        self._closed = _closed_error()
        self._opened = contextlib.ExitStack()
        self._connection = _connect(self._opened, url, timeout_s, start_timeout_s)
        self.is_open = True
        self.spoilt = ""
        try:
            hello = self.ask("hello", "hello", protocol=PROTOCOL)
            self.name, self.digest, self.chunk = _checked_hello(url, hello)
            self.knows_trials = hello.get("trials") is True
        except RemotePolicyError as err:
            self.close()
            raise InputError(str(err)) from err
        except InputError:
            self.close()
            raise

    def ask(self, kind: str, expected: str, **fields: Any) -> dict[str, Any]:
        """Send a message and wait for its answer; `value` among the fields goes as bytes."""
        if not self.is_open:
            raise LinkLostError(
                f"{self._url}: the connection is lost; the next episode's reset opens it again"
            )
        self._number += 1
        value = {"value": fields.pop("value")} if "value" in fields else {}
        frame = encode({"type": kind, "id": self._number, **fields}, **value)
        timeout_s = self._timeout_s if kind in self._answered else self._start_timeout_s
        answer = self._exchange(frame, timeout_s)
        if answer["type"] == "error":
            said = " ".join(str(answer.get("message")).split())[:300]
            raise RemotePolicyError(f"{self._url}: {said}")
        if answer["type"] != expected or answer.get("id") != self._number:
            raise self.spoil(
                f"answered {kind} {self._number} with {answer['type'][:40]!r}"
                f" {str(answer.get('id'))[:20]!r}"
            )
        self._answered.add(kind)
        return answer

    def _exchange(self, frame: str | bytes, timeout_s: float) -> dict[str, Any]:
        # Whatever ends this early, Ctrl-C too, leaves an answer on its way that nobody awaits:
        # then the connection is of no more use.
        is_done = False
        try:
            deadline_s = time.monotonic() + timeout_s
            self._connection.send(frame)
            answer = self._connection.recv(timeout=max(0.0, deadline_s - time.monotonic()))
            found = decode(answer)
            is_done = True
        except TimeoutError as err:
            raise self.spoil(f"no answer within {timeout_s:g} s") from err
        except InputError as err:
            raise self.spoil(f"answered with garbage: {err}") from err
        except (self._closed, OSError) as err:
            raise LinkLostError(f"{self._url}: the connection is lost: {_line(err)}") from err
        finally:
            if not is_done:
                self.close()
        return found

    def spoil(self, problem: str) -> RemotePolicyError:
        """Close it for what the policy answered, or did not; returns the error to raise."""
        self.spoilt = problem
        self.close()
        return RemotePolicyError(f"{self._url}: {problem}")

    def close(self) -> None:
        """Say good-bye; may be called again."""
        self.is_open = False
        self._opened.close()

    def hang_up(self) -> None:
        """End without a word and without waiting: garbage is collected in any thread."""
        self.is_open = False
        with contextlib.suppress(OSError):
            self._connection.socket.shutdown(socket.SHUT_RDWR)


def _connect(
    opened: contextlib.ExitStack, url: str, timeout_s: float, start_timeout_s: float
) -> Any:
    """A connection that `opened` closes."""
    from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException
    from websockets.sync.client import connect

    token = check_token(os.environ.get(TOKEN_VARIABLE))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    logger = logging.getLogger(f"{__name__}.websockets")
    logger.setLevel(logging.CRITICAL + 1)  # what goes wrong is raised
    try:
        connection: Any = opened.enter_context(
            connect(
                url,
                additional_headers=headers,
                compression=None,  # costs more time than it saves
                proxy=None,
                open_timeout=start_timeout_s,
                close_timeout=_CLOSE_S,
                max_size=MAX_FRAME_BYTES,
                logger=logger,
            )
        )
    except InvalidStatus as err:
        if err.response.status_code == 401:
            raise InputError(
                f"{url}: the server wants another token; set {TOKEN_VARIABLE} to the one it has"
            ) from err
        raise InputError(f"{url}: no policy is served there: {_line(err)}") from err
    except InvalidURI as err:
        raise InputError(f"url must look like ws://host:port, given {url!r}") from err
    except TimeoutError as err:
        raise InputError(f"{url}: no answer within {start_timeout_s:g} s") from err
    except (OSError, WebSocketException, EOFError, ValueError) as err:
        raise InputError(
            f"{url}: no policy is served there: {_line(err)}; start one with"
            " `robo-eval serve-policy`"
        ) from err
    # Sending has no time limit of its own, and a host that hangs takes no bytes.
    whole = int(timeout_s)
    limit = struct.pack("ll", whole, int((timeout_s - whole) * 1e6) or 1)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    return connection


def _problem_of(answer: dict[str, Any], chunk: int) -> str | None:
    """What is wrong with an answer to `act`."""
    actions, inference_s = answer.get("value"), answer.get("inference_s")
    if not (isinstance(actions, list) and 1 <= len(actions) <= chunk):
        return f"no list of 1 to {chunk} actions"
    if not is_finite(actions):
        return "an action that is not finite"
    if not (_is_number(inference_s) and float(inference_s or 0.0) >= 0.0):
        return f"inference_s {str(inference_s)[:40]}"
    return None


def _checked_hello(url: str, hello: dict[str, Any]) -> tuple[str, str, int]:
    """Name, digest and chunk length."""
    protocol = hello.get("protocol")
    if protocol != PROTOCOL:
        raise InputError(
            f"{url}: speaks protocol {str(protocol)[:20]}, and this robo-eval speaks {PROTOCOL};"
            " install the same version on both machines"
        )
    name, digest, chunk = hello.get("name"), hello.get("digest"), hello.get("chunk")
    for field, value in (("name", name), ("digest", digest)):
        if not (isinstance(value, str) and 0 < len(value) <= 200):
            raise InputError(f"{url}: its hello has {field} {str(value)[:40]!r}")
    if type(chunk) is not int or not 1 <= chunk <= MAX_CHUNK:
        raise InputError(f"{url}: its hello has chunk {str(chunk)[:40]!r}, not 1 to {MAX_CHUNK}")
    return str(name), str(digest), chunk


def _closed_error() -> type[Exception]:
    """What the library raises on a broken connection."""
    try:
        from websockets.exceptions import ConnectionClosed
    except ImportError as err:
        raise MissingExtraError(
            f"remote policies need the websockets library; run: {pip_install('remote')}"
        ) from err
    return ConnectionClosed


def _check_url(value: object) -> None:
    if not (isinstance(value, str) and value.startswith("ws://")):
        raise InputError(f"url must look like ws://host:port, given {value!r}")


def _check_seconds(field: str, value: Any) -> None:
    if not (_is_number(value) and 0.0 < value <= 3600.0):
        raise InputError(f"{field} must be a number of seconds, up to 3600, given {value!r}")


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _line(err: BaseException) -> str:
    text = " ".join((getattr(err, "strerror", None) or str(err) or type(err).__name__).split())
    return text[:200]
