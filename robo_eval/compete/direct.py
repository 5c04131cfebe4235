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

DIRECT: Final = "robo_eval.direct"
"""Name of the extension by which an application finds it in the scope of a connection."""


class Direct(WebSocketsSansIOProtocol):
    """A connection of uvicorn.

    Attributes:
        taker: Takes a message at once, or says that it does not.
    """

    taker: Callable[[str | bytes], bool] | None = None

    def handle_connect(self, event: Any) -> None:  # noqa: ANN401 - of websockets
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
