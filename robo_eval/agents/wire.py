"""How observations and actions travel to a policy on another machine, as bytes.

A message is a JSON object with a `type`. Without observation or actions it is a text frame. With
them it is a binary frame: 4 bytes with the length of the JSON (unsigned, little-endian), the JSON,
then the bytes of all arrays in the order in which its `value` names them. Nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.errors import InputError

PROTOCOL: Final = 1
MAX_FRAME_BYTES: Final = 64 * 2**20
"""Larger frames are neither sent nor taken."""
MAX_CHUNK: Final = 1000
"""Most actions in one answer."""
TOKEN_VARIABLE: Final = "ROBO_EVAL_POLICY_TOKEN"  # noqa: S105 - where it is, not what it is
"""Environment variable that holds the shared secret on both sides."""

_LENGTH: Final = struct.Struct("<I")
_MAX_DEPTH: Final = 32
_MAX_DIMENSIONS: Final = 16
_DTYPE: Final = re.compile(r"\|[biu]1|[<>](?:[iu][248]|f[248]|c(?:8|16))")
_TOKEN: Final = re.compile(r"[!-~]{16,256}")
_ODD_FLOATS: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_NO_VALUE: Final = object()


def encode(message: Mapping[str, Any], value: object = _NO_VALUE) -> str | bytes:
    """The frame of a message.

    Args:
        message: Its plain fields, `type` among them.
        value: Observation or actions: NumPy arrays and numbers, Python numbers, strings and None,
            in lists, tuples and dicts, however nested.

    Raises:
        InputError: If the value holds something else, or the frame would be too large.

    Example:
        >>> encode({"type": "reset", "id": 1, "seed": 7})
        '{"type":"reset","id":1,"seed":7}'
    """
    if value is _NO_VALUE:
        return json_text(message)
    arrays: list[bytes] = []
    head = json_text({**message, "value": _packed(value, arrays, 0)}).encode()
    size = _LENGTH.size + len(head) + sum(map(len, arrays))
    if size > MAX_FRAME_BYTES:
        raise InputError(
            f"a message of {size / 2**20:.0f} MiB is too large; the limit is"
            f" {MAX_FRAME_BYTES // 2**20} MiB: send smaller or fewer images"
        )
    return b"".join((_LENGTH.pack(len(head)), head, *arrays))


def decode(frame: str | bytes) -> dict[str, Any]:
    """The message in a frame, its `value` turned back into what was given to `encode`.

    Raises:
        InputError: If the frame does not hold a message of this protocol.

    Example:
        >>> decode(encode({"type": "act", "id": 2}, (1, 0.5)))
        {'type': 'act', 'id': 2, 'value': (1, 0.5)}
    """
    if isinstance(frame, str):
        return _object(frame)
    if len(frame) < _LENGTH.size:
        raise InputError(f"a binary message of {len(frame)} bytes has no length at its start")
    (length,) = _LENGTH.unpack_from(frame)
    start = _LENGTH.size + length
    if start > len(frame):
        raise InputError(f"a binary message of {len(frame)} bytes says its JSON has {length} bytes")
    try:
        text = frame[_LENGTH.size : start].decode()
    except UnicodeDecodeError as err:
        raise InputError("the JSON of a binary message is not UTF-8") from err
    message = _object(text)
    if "value" not in message:
        raise InputError("a binary message has no value")
    blob = _Blob(frame, start)
    message["value"] = _unpacked(message["value"], blob, 0)
    if blob.left:
        raise InputError(f"a binary message has {blob.left} bytes that belong to no array")
    return message


def is_finite(value: object) -> bool:
    """Whether no number in a decoded value is NaN or infinite.

    Example:
        >>> is_finite([1, {"a": math.nan}])
        False
    """
    if isinstance(value, np.ndarray | np.generic):
        return bool(np.isfinite(value).all())
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_finite, value))
    return True


def check_token(token: str | None) -> str | None:
    """The shared secret, if there is one and it can be sent.

    Raises:
        InputError: If it is too short or holds spaces or other than ASCII; it is not shown.
    """
    if not token:
        return None
    if not _TOKEN.fullmatch(token):
        raise InputError(
            f"{TOKEN_VARIABLE}: the token must be 16 to 256 ASCII characters without spaces, such"
            " as `openssl rand -hex 16` prints"
        )
    return token


def json_text(value: object) -> str:
    """The JSON of a message, or of a part of one.

    Raises:
        InputError: If it has none.
    """
    try:
        return _WRITE(value)
    except (TypeError, ValueError) as err:
        raise InputError(f"a message has no JSON form: {err}") from err


def _object(text: str) -> dict[str, Any]:
    try:
        message = _READ(text)
    except (ValueError, RecursionError) as err:
        raise InputError(f"a message is not JSON: {str(err)[:120]}") from err
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise InputError(f"a message is not a JSON object with a type: {text[:80]!r}")
    return message


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


# Made once: `json.loads` and `json.dumps` make one each time where anything is asked of them.
_READ: Final = json.JSONDecoder(parse_constant=_refuse_constant).decode
_WRITE: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


# What is in a value -----------------------------------------------------------------------------


def _packed(value: object, arrays: list[bytes], depth: int) -> object:
    """JSON form of a value; the bytes of its arrays are appended to `arrays`."""
    if isinstance(value, np.ndarray):
        return {"array": _packed_array(value, arrays)}
    if isinstance(value, np.generic) and not isinstance(value, np.str_):
        return {"number": _packed_array(np.asarray(value), arrays)}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)  # an enum's member goes as its number
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    return _packed_container(value, arrays, depth + 1)


def _packed_container(value: object, arrays: list[bytes], depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise InputError(f"a value is nested more than {_MAX_DEPTH} deep")
    if isinstance(value, list):
        return [_packed(entry, arrays, depth) for entry in value]
    if isinstance(value, tuple):
        return {"tuple": [_packed(entry, arrays, depth) for entry in value]}
    if not isinstance(value, Mapping):
        raise InputError(
            f"a {type(value).__module__}.{type(value).__qualname__} cannot be sent; turn it into"
            " a NumPy array"
        )
    if not all(isinstance(key, str) for key in value):
        raise InputError("a dict with keys that are not text cannot be sent")
    return {"dict": {key: _packed(entry, arrays, depth) for key, entry in value.items()}}


def _packed_array(array: NDArray[Any], arrays: list[bytes]) -> list[object]:
    if not _DTYPE.fullmatch(array.dtype.str):
        raise InputError(f"an array of {array.dtype} cannot be sent; numbers and bool can")
    arrays.append(array.tobytes())
    return [array.dtype.str, list(array.shape)]


class _Blob:
    """The array bytes of a frame, taken one after the other.

    Each byte belongs to one array, so a small message cannot ask for much memory.
    """

    def __init__(self, frame: bytes, start: int) -> None:
        self._frame = frame
        self._at = start

    @property
    def left(self) -> int:
        """Bytes not taken yet."""
        return len(self._frame) - self._at

    def take(self, given: object) -> NDArray[Any]:
        """The next array, of this dtype and shape."""
        if not (isinstance(given, list) and len(given) == 2):
            raise InputError(f"an array is not given as [dtype, shape]: {str(given)[:80]}")
        name, shape = given
        if not (isinstance(name, str) and _DTYPE.fullmatch(name)):
            raise InputError(f"an array has an unknown dtype: {str(name)[:40]!r}")
        is_shape = isinstance(shape, list) and len(shape) <= _MAX_DIMENSIONS
        if not (is_shape and all(type(n) is int and 0 <= n < 2**31 for n in shape)):
            raise InputError(f"an array has an impossible shape: {str(shape)[:80]}")
        dtype = np.dtype(name)
        size = math.prod(shape) * dtype.itemsize
        if size > self.left:
            raise InputError(
                f"an array of {name} and shape {shape} needs {size} bytes; {self.left} are there"
            )
        try:
            # A copy: an array over received bytes could not be written to, as a local one can.
            array = np.ndarray(shape, dtype, self._frame, self._at).copy()
        except ValueError as err:
            raise InputError(f"an array has an impossible shape: {shape}") from err
        self._at += size
        return array


def _unpacked(form: object, blob: _Blob, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise InputError(f"a value is nested more than {_MAX_DEPTH} deep")
    if isinstance(form, list):
        return [_unpacked(entry, blob, depth + 1) for entry in form]
    if not isinstance(form, dict):
        if isinstance(form, float) and not math.isfinite(form):
            raise InputError("a number is too large")
        return form
    if len(form) != 1:
        raise InputError(f"a value has an unknown form: {str(form)[:80]}")
    ((kind, inner),) = form.items()
    return _unpacked_form(str(kind), inner, blob, depth + 1)


def _unpacked_form(kind: str, inner: object, blob: _Blob, depth: int) -> Any:
    if kind == "array":
        return blob.take(inner)
    if kind == "number":
        array = blob.take(inner)
        if array.shape:
            raise InputError(f"a number has shape {list(array.shape)}")
        return array[()]
    if kind == "float" and isinstance(inner, str) and inner in _ODD_FLOATS:
        return _ODD_FLOATS[inner]
    if kind == "tuple" and isinstance(inner, list):
        return tuple(_unpacked(entry, blob, depth) for entry in inner)
    if kind == "dict" and isinstance(inner, dict):
        return {key: _unpacked(entry, blob, depth) for key, entry in inner.items()}
    raise InputError(f"a value has an unknown form: {kind[:40]!r}")
