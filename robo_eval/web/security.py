"""What every answer carries, and how much a request may bring."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.status import WS_1009_MESSAGE_TOO_BIG
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 256 * 1024
"""No request is longer but for files; a record has at most 200,000 bytes."""
BODY_S: Final = 30.0
"""A request but for files that has not come whole by then is refused, and its connection closed."""
MOST_UPLOAD: Final = 64 * 1024 * 1024
"""Bytes of files that one request may bring."""
UPLOAD: Final = "/upload"
"""How the path ends to which files are sent."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_HOST: Final = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])\.?(:[0-9]{1,5})?", re.ASCII)
_NOT_KEPT: Final = "no-store"


class Guarded:
    """Adds headers to every answer, and refuses requests that are too long or meant for others.

    A page of somebody else whose name leads here for a moment could otherwise read as if it were
    ours (DNS rebinding); an address can lead nowhere else. Of WebSockets it refuses as well those
    that a page of another site opens, and ends those by which too long a message comes.

    Args:
        app: The application.
        names: Names of this site.
        most_message: Bytes of one message of a WebSocket at most.
    """

    def __init__(
        self, app: ASGIApp, names: Iterable[str], *, most_message: int = MOST_BYTES
    ) -> None:
        self._app = app
        self._names = frozenset(name.lower().rstrip(".") for name in names)
        self._most_message = most_message

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"].endswith("http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", _NOT_KEPT)
            await send(message)

        if (host := _host_of(scope)) not in self._names and not _is_address(host):
            refusal = PlainTextResponse(
                f"this page is not at {host[:80]!r}; whoever serves it can say that it is, by"
                " --name\n",
                421,
            )
            await refusal(scope, receive, send_guarded)
            return
        if scope["type"] == "websocket" and _is_foreign(scope):
            refusal = PlainTextResponse("a page of another site asks, which it may not\n", 403)
            await refusal(scope, receive, send_guarded)
            return
        if scope["type"] == "websocket":
            await self._app(scope, *_bounded(receive, send_guarded, self._most_message))
            return
        is_upload = scope["path"].endswith(UPLOAD) and scope["method"] == "POST"
        most = MOST_UPLOAD if is_upload else MOST_BYTES
        if is_upload and 0 < _length_of(scope) <= MOST_UPLOAD:
            # Files go to the disk as they come; the server gives no more than was announced.
            await self._app(scope, receive, send_guarded)
            return
        body = await _whole(receive) if _has_body(scope) and not is_upload else b""
        if body is None or is_upload:
            refusal = PlainTextResponse(
                f"the request is longer than {most:,} bytes or {BODY_S:g} s; nothing was changed\n",
                413,
            )
            await refusal(scope, receive, send_guarded)
            return
        await self._app(scope, _replay(body, receive), send_guarded)


def _host_of(scope: Scope) -> str:
    """Name or address that a request is for, without its port."""
    text = Headers(scope=scope).get("host", "")
    if not _HOST.fullmatch(text):
        return text
    return (urlsplit(f"//{text}").hostname or "").rstrip(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_foreign(scope: Scope) -> bool:
    """Whether a page of another site asks; programs that are no browser name no site."""
    headers = Headers(scope=scope)
    own = {f"{scheme}://{headers['host']}".lower() for scheme in ("http", "https")}
    return "origin" in headers and headers["origin"].lower() not in own


def _bounded(receive: Receive, send: Send, most: int) -> tuple[Receive, Send]:
    """The two ends of a WebSocket that is over as soon as too long a message comes."""
    is_over = False

    async def receive_bounded() -> Message:
        nonlocal is_over
        message = await receive()
        text, data = message.get("text") or "", message.get("bytes") or b""
        if max(len(data), len(text.encode("utf-8", "surrogatepass"))) <= most:
            return message
        is_over = True
        await send({"type": "websocket.close", "code": WS_1009_MESSAGE_TOO_BIG})
        return {"type": "websocket.disconnect", "code": WS_1009_MESSAGE_TOO_BIG}

    async def send_bounded(message: Message) -> None:
        if not is_over:
            await send(message)

    return receive_bounded, send_bounded


def _length_of(scope: Scope) -> int:
    """How many bytes a body is announced to have; 0 if that is not said."""
    text = Headers(scope=scope).get("content-length", "")
    return int(text) if text.isdecimal() and len(text) < 12 else 0


def _has_body(scope: Scope) -> bool:
    return bool(scope["method"] not in {"GET", "HEAD"})


async def _whole(receive: Receive) -> bytes | None:
    """All of a body; None if it is too long, or does not come in time."""
    body = bytearray()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BODY_S):
            while len(body) <= MOST_BYTES:
                message = await receive()
                if message["type"] != "http.request":
                    break
                body += message.get("body", b"")
                if not message.get("more_body", False) and len(body) <= MOST_BYTES:
                    return bytes(body)
    return None


def _replay(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
