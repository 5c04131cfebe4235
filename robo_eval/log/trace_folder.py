"""The digest of a trace that is a folder of files, and how such a trace is put in place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from robo_eval.core import door
from robo_eval.core.canonical import digest, file_digest

HELD: Final = ("ticks", "uninterrupted_actions", "episode_return", "duration_s", "exposure_s")
"""Columns of a row that its trace can deny."""
_BLOCK: Final = 1 << 20


def trace_digest(path: Path) -> str:
    """SHA-256 of a trace, as 64 hexadecimal digits.

    Of a file it is that of its bytes; of a folder, that of the canonical JSON of one object: the
    SHA-256 of each file in it by its path from there.

    Raises:
        OSError: If it is missing or cannot be read.
    """
    if not path.is_dir():
        return file_digest(path)
    files = (file for file in path.rglob("*") if not file.is_dir())
    return digest({file.relative_to(path).as_posix(): file_digest(file) for file in files})


def copy_files(files: Iterable[Path], target: Path) -> str:
    """Copy files into a new folder; returns its digest, taken of the bytes that were copied.

    Raises:
        OSError: If one cannot be read or written.
    """
    target.mkdir(parents=True)
    return digest({file.name: _copy(file, target / file.name) for file in files})


def _copy(source: Path, target: Path) -> str:
    sha256 = hashlib.sha256()
    with door.opened(source) as read, target.open("xb") as write:
        while block := read.read(_BLOCK):
            sha256.update(block)
            write.write(block)
        write.flush()
        os.fsync(write.fileno())
    return sha256.hexdigest()
