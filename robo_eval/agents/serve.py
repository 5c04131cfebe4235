"""How a policy is served to robots and simulators on other machines."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from robo_eval.agents.session import Session, chunk_length
from robo_eval.agents.wire import MAX_FRAME_BYTES, TOKEN_VARIABLE
from robo_eval.core.errors import InputError, MissingExtraError, pip_install
from robo_eval.core.policy import Policy

_HELLO_S: Final = 10.0
"""A connection that has not introduced itself by then is closed."""
_SEND_S: Final = 30
"""A client that takes no bytes for so long is given up."""
_CLOSE_S: Final = 0.2
_STOP_S: Final = 1.0
_GOING_AWAY: Final = 1001
_BAD_MESSAGE: Final = 1002


class PolicyServer:
    """Serves one policy; each connection has one of its own, since policies remember.

    Args:
        make: Makes the policy; called now, and for each further connection that plays.
        host: Address to listen at.
        port: Port; 0 takes a free one.
        token: Shared secret that clients must show; without one only loopback addresses will do.
        announce: Told in one line who comes and goes.

    Attributes:
        url: Where it listens.
        name: Name of the policy.
        digest: Its digest.
        chunk: Most actions in an answer.

    Raises:
        InputError: If the policy cannot be made, its chunks cannot be used, or the address cannot
            be listened at.
        MissingExtraError: If the websockets package is not installed.
    """

    def __init__(
        self,
        make: Callable[[], Policy],
        *,
        host: str = "127.0.0.1",
        port: int = 8765,
        token: str | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        serve = _library()
        self._make = make
        self._token = token
        self._announce = announce or _say_nothing
        # One call at a time: policies seldom expect threads. Loading is another matter, since it
        # may take longer than an answer that somebody else waits for.
        self._alone = threading.Lock()
        self._loading = threading.Lock()
        self._connections: set[Any] = set()
        listening = _listen(host, port, has_token=token is not None)
        try:
            self._spare: Policy | None = make()
            self.name, self.digest = self._spare.name, self._spare.digest
            self.chunk = chunk_length(self._spare)
        except BaseException:
            listening.close()
            raise
        address = listening.getsockname()
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        self.url = f"ws://{shown}:{address[1]}"
        logger = logging.getLogger(f"{__name__}.websockets")
        logger.setLevel(logging.CRITICAL + 1)  # what strangers send is not our error
        self._server = serve(
            self._handle,
            sock=listening,
            origins=[None],  # web pages, which name an origin, have no business here
            process_request=self._admit,
            compression=None,
            close_timeout=_CLOSE_S,
            max_size=MAX_FRAME_BYTES,
            max_queue=2,
            logger=logger,
        )

    def start(self) -> None:
        """Begin to answer; returns at once."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> bool:
        """Close all connections.

        Returns:
            Whether all ended; a policy that is still busy cannot be made to.
        """
        # Aside: it may wait for the connections, or not, by the version of the library.
        threading.Thread(target=self._server.shutdown, daemon=True).start()
        deadline_s = time.monotonic() + _STOP_S
        while self._connections and time.monotonic() < deadline_s:
            for connection in tuple(self._connections):
                connection.close(_GOING_AWAY)
            time.sleep(0.02)
        return not self._connections

    def _admit(self, connection: Any, request: Any) -> Any:
        """Refuse a request that does not show the token, before anything else is read."""
        if self._token is None:
            return None
        shown = request.headers.get_all("Authorization")
        given = shown[0].encode("utf-8", "replace") if len(shown) == 1 else b""
        if hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            return None
        return connection.respond(HTTPStatus.UNAUTHORIZED, "another token is wanted\n")

    def _handle(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        self._connections.add(connection)
        host, port, *_ = connection.remote_address
        self._announce(f"{host}:{port} connected")
        hello = {"name": self.name, "digest": self.digest, "chunk": self.chunk, "trials": True}
        anew = partial(self._policy, is_new=True)
        session = Session(hello, self._policy, self._alone, anew)
        try:
            limit = struct.pack("ll", _SEND_S, 0)
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            connection.send(session.answer(connection.recv(timeout=_HELLO_S)))
            while not session.is_over:
                connection.send(session.answer(connection.recv()))
        except (ConnectionClosed, TimeoutError, OSError):
            pass
        finally:
            connection.close(_BAD_MESSAGE if session.is_over else 1000)
            problem = f": {session.problem}" if session.is_over else ""
            self._announce(f"{host}:{port} left after {session.answered} answers{problem}")
            with self._loading:
                self._spare = self._spare or session.given_back
            self._connections.discard(connection)

    def _policy(self, *, is_new: bool = False) -> Policy:
        """A policy for one connection; the one made at the start goes to the first.

        Args:
            is_new: Whether nobody may have tried it, as a trial wants.
        """
        with self._loading:
            if is_new or self._spare is None:
                made = self._make()
            else:
                made, self._spare = self._spare, None
        if made.digest != self.digest:
            raise InputError(
                f"the policy has changed where it is served: its digest is {made.digest}, and"
                f" {self.digest} was announced; start the server again"
            )
        return made


def _say_nothing(line: str) -> None:
    del line


def _library() -> Any:
    try:
        from websockets.sync.server import serve
    except ImportError as err:
        raise MissingExtraError(
            f"serving a policy needs the websockets library; run: {pip_install('remote')}"
        ) from err
    return serve


def _listen(host: str, port: int, *, has_token: bool) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        is_loopback = ipaddress.ip_address(address[0]).is_loopback
        if not (is_loopback or has_token):
            raise InputError(
                f"host {host}: lets other machines in, so a token is needed: set {TOKEN_VARIABLE}"
                " on both machines, or listen at 127.0.0.1 and use a tunnel"
            )
        return socket.create_server((str(address[0]), port), family=family)
    except (OSError, OverflowError) as err:
        reason = getattr(err, "strerror", None) or err
        raise InputError(f"cannot listen at {host}, port {port}: {reason}") from err
