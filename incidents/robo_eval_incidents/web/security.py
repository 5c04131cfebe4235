"""What every answer carries, and how much a request may bring."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 256 * 1024
"""No request is longer; a record has at most 200,000 bytes."""
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
    ours (DNS rebinding); an address can lead nowhere else.

    Args:
        app: The application.
        names: Names of this site.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower().rstrip(".") for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
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
        body = await _whole(receive) if _has_body(scope) else b""
        if body is None:
            refusal = PlainTextResponse(
                f"the request is longer than {MOST_BYTES:,} bytes; nothing was changed\n", 413
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


def _has_body(scope: Scope) -> bool:
    return bool(scope["method"] not in {"GET", "HEAD"})


async def _whole(receive: Receive) -> bytes | None:
    """All of a body; None if it is too long."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
