"""A WebSocket whose messages can be answered past the layers of a web application.

Those cost more time than all the rest of a step. What is heard here and not taken goes through
them, as it would anywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from robo_eval.compete.budget import CONTROLLED, Budget

DIRECT: Final = "robo_eval.direct"
"""Name of the extension by which an application finds it in the scope of a connection."""
_SMALL: Final = 1024


class Direct(WebSocketsSansIOProtocol):
    """A connection of uvicorn.

    Attributes:
        taker: Takes a message at once, or says that it does not.
    """

    taker: Callable[[str | bytes], bool] | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._controlled = Budget(*CONTROLLED)

    def _count(self) -> None:
        """Hang up on who sends too many frames that are no messages, or does not read answers."""
        if self._controlled.take("") or not self.writable.is_set():
            self.transport.abort()

    def handle_ping(self) -> None:
        """Answer, for a while."""
        self._count()
        super().handle_ping()

    def handle_pong(self, event: Any) -> None:
        """Hear an answer to a ping."""
        self._count()
        super().handle_pong(event)

    def handle_cont(self, event: Any) -> None:
        """A further part of a message; nobody needs many small ones."""
        if len(event.data) < _SMALL:
            self._count()
        super().handle_cont(event)

    def handle_connect(self, event: Any) -> None:
        """Tell the application where it is."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions: Any = self.scope["extensions"]
            extensions[DIRECT] = self

    def send_receive_event_to_app(self) -> None:
        """A message is complete."""
        is_free = self.queue.empty() and self.writable.is_set() and not self.close_sent
        if self.taker is not None and is_free:
            frame = b"".join(self.frames)
            with contextlib.suppress(UnicodeDecodeError):  # who refuses it says so
                if self.taker(frame.decode() if self.curr_msg_data_type == "text" else frame):
                    return
        super().send_receive_event_to_app()

    def say(self, frame: str | bytes) -> None:
        """Send a message, if there is anybody left."""
        if self.conn.state is not State.OPEN or self.transport.is_closing():
            return
        if isinstance(frame, str):
            self.conn.send_text(frame.encode())
        else:
            self.conn.send_binary(frame)
        self.transport.write(b"".join(self.conn.data_to_send()))
