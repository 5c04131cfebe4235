"""Running a site, on this machine alone unless told otherwise."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError, MissingExtraError, pip_install

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

_LOG: Final = logging.getLogger(__name__)
_STOP_S: Final = 5
"""How long answers on their way are waited for."""
_BACKLOG: Final = 1024
"""Connections that may wait: many agents come at once."""


def serve(
    make: Callable[[Sequence[str]], FastAPI],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    cert: Path | None = None,
    key: Path | None = None,
    allow_plain: bool = False,
    names: Sequence[str] = (),
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Run a site until the program is told to stop.

    Args:
        make: Makes its application, by `make_app`, of the names it is reached by. It imports what
            needs the extra `server`.
        host: Address to listen on.
        port: Port to listen on; 0 for any that is free.
        cert: Certificate for TLS, PEM.
        key: Its private key, PEM.
        allow_plain: Listen on other addresses than this machine's own without TLS.
        names: Names it is reached by, beside that of this machine and any address.
        on_ready: Told the address of the page as soon as it can be opened.

    Raises:
        InputError: If it would be reached from elsewhere without TLS, or the port or a file
            cannot be used.
        MissingExtraError: If the web page's packages are not installed.
    """
    check_address(host, is_tls=cert is not None, allow_plain=allow_plain)
    _check_tls(cert, key)
    try:
        import uvicorn  # noqa: F401 - it is missed here where it is not installed

        app = make((host, socket.gethostname(), *names))
    except MissingExtraError:
        raise
    except ImportError as err:
        raise MissingExtraError(f"the web page needs {err.name}: {pip_install('server')}") from err
    with closing(listening(host, port)) as listener:
        server = server_of(app, ssl_certfile=cert, ssl_keyfile=key, log_level="warning")
        url = address(host, listener.getsockname()[1], is_tls=cert is not None)
        _LOG.info("the %s is at %s", app.state.site.name, url)
        if on_ready is not None:
            on_ready(url)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def server_of(app: FastAPI, **settings: Any) -> uvicorn.Server:
    """What serves an application, by settings of uvicorn beside those that all sites share."""
    import uvicorn

    from robo_eval.web.heads import Headed

    logging.getLogger("uvicorn.error").addFilter(_is_no_end)
    config = uvicorn.Config(
        app,
        http=Headed,
        server_header=False,
        # A proxy on this machine says how and from where a client came.
        proxy_headers=True,
        forwarded_allow_ips="127.0.0.1,::1",
        timeout_graceful_shutdown=_STOP_S,
        **settings,
    )
    return uvicorn.Server(config)


def _is_no_end(record: logging.LogRecord) -> bool:
    """Whether it tells of something else than an answer that was cut short because we stop."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def address(host: str, port: int, *, is_tls: bool) -> str:
    """What a browser is given to open the page.

    Example:
        >>> address("::1", 8500, is_tls=True)
        'https://[::1]:8500/'
    """
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if is_tls else 'http'}://{name}:{port}/"


def check_address(
    host: str, *, is_tls: bool, allow_plain: bool, remedy: str = "--cert and --key for TLS, or "
) -> None:
    """Refuse to be reached from elsewhere without TLS.

    Args:
        host: Address to listen on.
        is_tls: Whether it is encrypted here.
        allow_plain: Whether something else encrypts it.
        remedy: Options that would encrypt it here.

    Raises:
        InputError: If passwords or tokens would cross a network that others can read.
    """
    if is_tls or allow_plain or _is_this_machine(host):
        return
    raise InputError(
        f"host {host}: secrets such as tokens would cross the network in the clear; give {remedy}"
        "--allow-plain-http if something else encrypts the way"
    )


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """A socket that can be connected to from now on.

    Raises:
        InputError: If the address cannot be listened on.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, where = found[0]
        return socket.create_server(where[:2], family=family, backlog=_BACKLOG)
    except (OSError, OverflowError, UnicodeError) as err:
        reason = getattr(err, "strerror", None) or err
        raise InputError(f"--host {host}, --port {port}: cannot be listened on: {reason}") from err


def _check_tls(cert: Path | None, key: Path | None) -> None:
    if (cert is None) != (key is None):
        raise InputError("--cert and --key are both given or both left out")
    if cert is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (OSError, ValueError) as err:
        raise InputError(f"{cert}: certificate and key cannot be used: {err}") from err
