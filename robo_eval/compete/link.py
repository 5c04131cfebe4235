"""The connection of a participant to a competition: one answer to each message, whatever breaks."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import robo_eval
from robo_eval.agents.wire import MAX_FRAME_BYTES, check_token, decode, encode
from robo_eval.compete.messages import PROTOCOL
from robo_eval.core.errors import InputError, MissingExtraError, RoboEvalError, pip_install

TOKEN: Final = "ROBO_EVAL_COMPETE_TOKEN"  # noqa: S105 - where it is, not what it is
"""Environment variable that holds a team's token."""
_READ: Final = 2**18
_OPENING_S: Final = 10.0
"""How much longer an answer may take for each further trial, whose worlds may have to be made."""
_PAUSES_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
_SCHEMES: Final = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


class CompetitionError(RoboEvalError):
    """A competition cannot be reached, or does not answer as it should."""


class SaidNoError(InputError):
    """A competition refused a message.

    Args:
        url: Which.
        code: One word for programs.
        text: Why, and what would do.
        trials: Of which trials of the message; empty for all.
    """

    def __init__(self, url: str, code: str, text: str, trials: Sequence[int] = ()) -> None:
        super().__init__(f"{url}: {text}")
        self.code = code
        self.trials = trials


class _LostError(Exception):
    """The connection broke."""


class Link:
    """A connection to a competition that is opened again when it breaks.

    Nothing is lost and nothing is played twice by that: messages have numbers, and the server
    answers one that comes again with what it answered before.

    Args:
        url: Where the competition is: `http://host:port`, or with https, ws or wss.
        token: The team's token; None for the one in `ROBO_EVAL_COMPETE_TOKEN`.
        hello: Fields of the first message beside type, number and protocol.
        timeout_s: How long an answer may take where one trial is played, seconds.
        patience_s: How long a broken connection is tried to be opened again.

    Attributes:
        url: Where it is.
        welcome: What the hello was answered.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        hello: Mapping[str, Any],
        *,
        timeout_s: float = 120.0,
        patience_s: float = 60.0,
    ) -> None:
        self.url = checked_url(url)
        self._token = token_of(self.url, token)
        self._hello = dict(hello)
        self._timeout_s = timeout_s + _OPENING_S * (hello.get("trials", 1) - 1)
        self._patience_s = patience_s
        self._number = 0
        self._is_open = False
        self.welcome: dict[str, Any] = {}
        self._connect()

    def ask(self, kind: str, value: object = None, **fields: Any) -> dict[str, Any] | None:
        """Send a message and wait for its answer.

        Args:
            kind: Its type.
            value: Arrays that go with it as bytes; None if there are none.
            **fields: Its other fields.

        Returns:
            The answer; None if the server has begun anew meanwhile, so that it knows nothing of
            what the message is about.

        Raises:
            SaidNoError: If it is refused.
            CompetitionError: If no answer comes.
        """
        message = {"type": kind, "id": self._number + 1, **fields}
        frame = encode(message) if value is None else encode(message, value)
        self._number += 1  # what has no form is not sent, and uses no number
        begin_s = time.monotonic()
        while True:
            try:
                return self._checked(self._exchange(frame), self._number)
            except _LostError as err:
                self._hang_up()
                if time.monotonic() - begin_s > self._patience_s:
                    raise CompetitionError(f"{self.url}: the connection is lost: {err}") from err
                session = self.welcome.get("session")
                self._reconnect(begin_s)
                if self.welcome.get("session") != session:
                    return None

    def close(self) -> None:
        """Say good-bye; may be called again."""
        if self._is_open:
            with contextlib.suppress(OSError):
                self._protocol.send_close(1000)
                self._flush()
            self._hang_up()

    def _reconnect(self, begin_s: float) -> None:
        for pause_s in itertools.chain(_PAUSES_S, itertools.repeat(_PAUSES_S[-1])):
            try:
                self._connect()
            except (CompetitionError, _LostError, SaidNoError) as err:
                # Another server takes the trials over once the one that played them was silent.
                if isinstance(err, SaidNoError) and err.code != "elsewhere":
                    raise
                if time.monotonic() - begin_s > self._patience_s:
                    raise CompetitionError(str(err)) from err
                time.sleep(pause_s)
            else:
                return

    def _connect(self) -> None:
        try:
            self._open()
        except (OSError, _LostError) as err:
            raise _nothing(self.url, _line(err)) from err
        hello = {
            "type": "hello",
            "id": self._number if self.welcome else 0,
            "protocol": PROTOCOL,
            "session": self.welcome.get("session"),
            **self._hello,
        }
        try:
            self.welcome = self._checked(self._exchange(encode(hello)), hello["id"])
        except _LostError as err:
            self._hang_up()
            raise CompetitionError(f"{self.url}: hung up at the first message: {err}") from err

    def _open(self) -> None:
        try:
            from websockets.client import ClientProtocol
            from websockets.uri import parse_uri
        except ImportError as err:
            raise MissingExtraError(
                f"competitions need the websockets library; run: {pip_install('remote')}"
            ) from err
        scheme, _, where = self.url.partition(":")
        logger = logging.getLogger(f"{__name__}.websockets")
        logger.setLevel(logging.CRITICAL + 1)  # what goes wrong is raised
        uri = parse_uri(f"{_SCHEMES[scheme]}:{where}/v1/play")
        self._protocol: Any = ClientProtocol(uri, max_size=MAX_FRAME_BYTES, logger=logger)
        self._socket = socket.create_connection((uri.host, uri.port), timeout=self._timeout_s)
        self._is_open = True
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if uri.secure:
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=uri.host)
            request = self._protocol.connect()
            request.headers["Authorization"] = f"Bearer {self._token}"
            request.headers["User-Agent"] = f"robo-eval/{robo_eval.__version__}"
            self._protocol.send_request(request)
            self._flush()
            while not (self._events() or self._protocol.handshake_exc):
                pass
            failed = self._protocol.handshake_exc
            status = getattr(getattr(failed, "response", None), "status_code", 0)
            if status == 401:
                raise _no_team(self.url)
            if failed is not None:
                raise _LostError(f"it answers {status or failed}")
        except BaseException:
            self._hang_up()
            raise

    def _checked(self, answer: dict[str, Any], number: object) -> dict[str, Any]:
        if answer["type"] == "error":
            text = " ".join(str(answer.get("message")).split())[:300]
            raise SaidNoError(
                self.url, str(answer.get("code"))[:40], text, answer.get("trials") or ()
            )
        if answer.get("id") != number:
            raise CompetitionError(
                f"{self.url}: answered message {number} with {str(answer.get('id'))[:20]}"
            )
        return answer

    # Bytes: without a thread, which would cost as much time as all the rest ---------------------

    def _exchange(self, frame: str | bytes) -> dict[str, Any]:
        if not self._is_open:
            raise _LostError("it was closed")
        try:
            if isinstance(frame, str):
                self._protocol.send_text(frame.encode())
            else:
                self._protocol.send_binary(frame)
            self._flush()
            return decode(self._received())
        except TimeoutError as err:
            self._hang_up()
            raise CompetitionError(
                f"{self.url}: no answer within {self._timeout_s:g} s; it may be overloaded"
            ) from err
        except SaidNoError:
            raise
        except InputError as err:
            raise CompetitionError(f"{self.url}: answered with garbage: {err}") from err
        except OSError as err:
            raise _LostError(err.strerror or str(err)) from err

    def _flush(self) -> None:
        self._socket.sendall(b"".join(self._protocol.data_to_send()))

    def _events(self) -> list[Any]:
        """What the server says next: parts of messages, or how it answers the handshake."""
        data = self._socket.recv(_READ)
        self._protocol.receive_data(data) if data else self._protocol.receive_eof()
        found: list[Any] = self._protocol.events_received()
        if not data and not found:
            raise _LostError("the server hung up")
        self._flush()  # what is owed to a ping
        return found

    def _received(self) -> str | bytes:
        from websockets.frames import DATA_OPCODES, Opcode

        parts: list[Any] = []
        while True:
            for event in self._events():
                if event.opcode is Opcode.CLOSE:
                    raise self._ended()
                parts += [event] if event.opcode in DATA_OPCODES else []
                if parts and parts[-1].fin:
                    whole = b"".join(part.data for part in parts)
                    return whole.decode() if parts[0].opcode is Opcode.TEXT else whole
            if self._protocol.parser_exc is not None:
                raise _LostError(str(self._protocol.parser_exc))

    def _ended(self) -> Exception:
        closed = self._protocol.close_rcvd
        self._hang_up()
        if closed.code == REPLACED:
            return SaidNoError(self.url, "replaced", REPLACED_TEXT)
        if closed.code == TOO_LARGE:
            return SaidNoError(self.url, "too_large", "it is larger than `message_bytes` allows")
        return _LostError(closed.reason or f"closed with code {closed.code}")

    def _hang_up(self) -> None:
        self._is_open = False
        self._socket.close()


REPLACED: Final = 4001
"""Code by which a connection is closed when another of the same team came."""
REPLACED_TEXT: Final = (
    "another client plays with this token; stop one of the two: a team has one client, with"
    " num_envs for trials at once"
)
TOO_LARGE: Final = 1009
"""Code by which a connection is closed that brought too large a message."""


def checked_url(url: object) -> str:
    """The url of a competition, without a path.

    Raises:
        InputError: If it is none.

    Example:
        >>> checked_url("http://127.0.0.1:8600/")
        'http://127.0.0.1:8600'
    """
    try:
        parts = urlsplit(str(url))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.username or parts.query:
        raise InputError(
            f"url must look like http://host:port, as `robo-eval compete serve` prints it, given"
            f" {str(url)[:100]!r}"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"


def token_of(url: str, token: str | None) -> str:
    """The token that was given, or the one in the environment.

    Raises:
        InputError: If there is none, or it cannot be one.
    """
    found = token or os.environ.get(TOKEN, "")
    if not found:
        raise InputError(
            f"{url}: a token is needed: give `token` (--token on a command line), or set {TOKEN};"
            " the organiser makes one by `robo-eval compete team DIR NAME`"
        )
    try:
        check_token(found)
    except InputError:  # which names the variable of another token
        raise _no_team(url) from None
    return found


def told_rules(url: str) -> dict[str, Any]:
    """The rules of a competition that this client can take part in.

    Raises:
        CompetitionError: If there is none at this url, or it speaks another protocol.
    """
    rules = rules_of(url)
    if rules.get("protocol") != PROTOCOL:
        raise CompetitionError(
            f"{url}: speaks protocol {str(rules.get('protocol'))[:20]} (robo-eval"
            f" {str(rules.get('version'))[:20]}), and this client speaks {PROTOCOL}; install that"
            " version"
        )
    return rules


def rules_of(url: str, *, timeout_s: float = 10.0, path: str = "/v1/competition",
             token: str | None = None) -> dict[str, Any]:  # fmt: skip
    """What a competition says of itself.

    Raises:
        CompetitionError: If there is none at this url.
        SaidNoError: If the token is not one of its teams'.
    """
    url = checked_url(url)
    with answered(url, path, timeout_s=timeout_s, token=token) as answer:
        try:
            found = json.loads(answer.read(_READ * 16))
        except (OSError, ValueError) as err:
            raise _nothing(url, _line(err)) from err
    if not isinstance(found, dict):
        raise _nothing(url, "it answers something else")
    return found


def answered(url: str, path: str, *, timeout_s: float, token: str | None = None) -> Any:
    """The answer to a GET, to be read and closed.

    Raises:
        CompetitionError: If there is no competition at this url.
        SaidNoError: If it is refused, or the token is not one of its teams'.
    """
    import urllib.error
    import urllib.request

    where = url.replace("ws", "http", 1) if url.startswith("ws") else url
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(where + path, headers=headers)  # noqa: S310 - http or https
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(request, timeout=timeout_s)
    except urllib.error.HTTPError as err:
        if err.code == 401:
            raise _no_team(url) from None
        told: dict[str, Any] = {}
        with contextlib.suppress(ValueError, TypeError, OSError):
            told = dict(json.loads(err.read(_READ)))
        if "code" in told:
            text = " ".join(str(told.get("detail")).split())[:300]
            raise SaidNoError(url, str(told["code"])[:40], text) from err
        raise _nothing(url, f"it answers {err.code}") from err
    except OSError as err:
        raise _nothing(url, _line(err)) from err


def _no_team(url: str) -> SaidNoError:
    why = f"no team has this token; copy it again, into `token` or {TOKEN}, or ask the organiser"
    return SaidNoError(url, "token", why)


def _nothing(url: str, why: str) -> CompetitionError:
    return CompetitionError(
        f"{url}: no competition is served there: {why}; look at the url that `robo-eval compete"
        " serve` printed"
    )


def _line(err: BaseException) -> str:
    reason = getattr(err, "reason", err)
    text = getattr(reason, "strerror", None) or str(reason) or type(err).__name__
    return " ".join(str(text).split())[:200]
