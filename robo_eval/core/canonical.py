"""The one byte form of a value over which digests are taken."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from robo_eval.core import door
from robo_eval.core.errors import InputError

# Made once: every logged row is encoded, and making an encoder costs as much as a small value.
# What holds itself ends in a RecursionError without being looked for.
_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    allow_nan=False,
    ensure_ascii=False,
    check_circular=False,
)


def canonical_json(value: object) -> bytes:
    """Serialise to JSON with sorted keys, no spaces, UTF-8, shortest round-trip floats.

    Raises:
        InputError: If the value holds NaN, infinity or something that is not JSON.
    """
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as err:
        raise InputError(f"value has no canonical JSON form: {err}") from err


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON form, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 of a text in UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with door.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
