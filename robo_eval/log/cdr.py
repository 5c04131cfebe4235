"""How ROS messages become bytes (CDR, little endian), many messages of one shape at once."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_ENCAPSULATION: Final = b"\x00\x01\x00\x00"
"""Plain CDR, little endian; alignment counts from behind these four bytes."""
_NS_PER_S: Final = 1_000_000_000


@dataclass(slots=True)
class Template:
    """The bytes that all messages of one shape share, and where the others go.

    Attributes:
        data: One message with zeros where numbers and stamps go.
        stamps: Offsets of the time stamps; all of a message are equal.
        numbers: Offset and count of each run of float64.
    """

    data: bytearray = field(default_factory=lambda: bytearray(_ENCAPSULATION))
    stamps: list[int] = field(default_factory=list)
    numbers: list[tuple[int, int]] = field(default_factory=list)

    def _align(self, size: int) -> None:
        self.data += bytes(-(len(self.data) - len(_ENCAPSULATION)) % size)

    def add_uint32(self, value: int) -> Template:
        """Append a fixed uint32."""
        self._align(4)
        self.data += struct.pack("<I", value)
        return self

    def add_string(self, text: str) -> Template:
        """Append a fixed string."""
        raw = text.encode() + b"\x00"
        self.add_uint32(len(raw))
        self.data += raw
        return self

    def add_stamp(self) -> Template:
        """Append room for a builtin_interfaces/Time."""
        self._align(4)
        self.stamps.append(len(self.data))
        self.data += bytes(8)
        return self

    def add_numbers(self, count: int) -> Template:
        """Append room for `count` float64."""
        if count:
            self._align(8)
            self.numbers.append((len(self.data), count))
            self.data += bytes(8 * count)
        return self

    def add_number_list(self, count: int) -> Template:
        """Append room for a float64[] of this length."""
        return self.add_uint32(count).add_numbers(count)

    def fill(self, out: Bytes, stamp_ns: NDArray[np.int64], numbers: NDArray[np.float64]) -> None:
        """Write one message per row.

        Args:
            out: Shape (N, len(data)), overwritten.
            stamp_ns: Shape (N,).
            numbers: Shape (N, K), the numbers of each message in the order they were added.
        """
        out[:] = np.frombuffer(bytes(self.data), dtype=np.uint8)
        if self.stamps:
            stamps = stamp_bytes(stamp_ns)
            for start in self.stamps:
                out[:, start : start + 8] = stamps
        raw = np.ascontiguousarray(numbers, dtype="<f8").view(np.uint8).reshape(len(out), -1)
        first = 0
        for start, count in self.numbers:
            out[:, start : start + 8 * count] = raw[:, first : first + 8 * count]
            first += 8 * count


def stamp_bytes(stamp_ns: NDArray[np.int64]) -> Bytes:
    """Times as builtin_interfaces/Time, shape (N, 8)."""
    seconds, nanoseconds = np.divmod(stamp_ns, _NS_PER_S)
    parts = np.empty((len(stamp_ns), 2), dtype="<u4")
    parts[:, 0] = seconds
    parts[:, 1] = nanoseconds
    return parts.view(np.uint8)


class Cursor:
    """Reads one message field by field.

    Raises:
        ValueError: From any method, if the message ends too early or holds nonsense.
    """

    def __init__(self, data: bytes) -> None:
        if data[:4] != _ENCAPSULATION:
            raise ValueError("message is not in little-endian CDR")
        self._data = data
        self._at = 4

    def _take(self, size: int, align: int) -> int:
        start = self._at + (-(self._at - 4) % align)
        if start + size > len(self._data):
            raise ValueError("message ends too early")
        self._at = start + size
        return start

    def uint8(self) -> int:
        """The next uint8, byte or bool."""
        return self._data[self._take(1, 1)]

    def uint32(self) -> int:
        """The next uint32."""
        return int.from_bytes(self._data[self._take(4, 4) : self._at], "little")

    def string(self) -> str:
        """The next string."""
        length = self.uint32()
        start = self._take(length, 1)
        return self._data[start : self._at].removesuffix(b"\x00").decode()

    def stamp_ns(self) -> int:
        """The next builtin_interfaces/Time, in nanoseconds."""
        return self.uint32() * _NS_PER_S + self.uint32()

    def header(self) -> int:
        """The stamp of the next std_msgs/Header, in nanoseconds."""
        stamp_ns = self.stamp_ns()
        self.string()
        return stamp_ns

    def numbers(self, count: int) -> NDArray[np.float64]:
        """The next `count` float64."""
        if count == 0:
            return np.empty(0)
        start = self._take(8 * count, 8)
        return np.frombuffer(self._data, dtype="<f8", count=count, offset=start)

    def number_list(self) -> NDArray[np.float64]:
        """The next float64[]."""
        return self.numbers(self.uint32())
