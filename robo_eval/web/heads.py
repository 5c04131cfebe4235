"""A connection over HTTP that does not wait for ever for somebody to say what he wants."""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 20.0
"""A connection whose first request has no whole head by then is closed."""


class Headed(H11Protocol):
    """A connection of uvicorn, which would wait for ever once a first byte is there."""

    def connection_made(self, transport: Any) -> None:
        """Wait for a request, for a while; uvicorn ends that where a whole head has come."""
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(HEAD_S, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        """Hear a part of a request, which is no reason yet to wait longer."""
        self.conn.receive_data(data)
        self.handle_events()
