"""Files of evidence as they are kept beside a log: under the first digits of what they hold."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import IO, Final

from robo_eval.log.files import appearing, explained

_PIECE: Final = 1 << 20
_MOST_NAME: Final = 80
"""Bytes of a name; file systems take some more."""


def digest_of(file: IO[bytes]) -> str:
    """SHA-256 of a file, from its beginning, as 64 hexadecimal digits."""
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def keep(file: IO[bytes], name: str, folder: Path) -> tuple[Path, str, bool]:
    """Put a copy of a file where evidence is, under a name that no other file has.

    Args:
        file: The file, open to be read.
        name: What it was called.
        folder: Where to.

    Returns:
        The copy, its SHA-256, and whether it is new.

    Raises:
        TrialDirectoryError: If it cannot be written.
    """
    digest = digest_of(file)
    cleaned = re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).name)
    cleaned = cleaned.encode()[-_MOST_NAME:].decode(errors="ignore")
    place = folder / f"{digest[:16]}-{cleaned}"
    if place.exists():
        return place, digest, False
    with explained(place, "cannot be written"):
        folder.mkdir(exist_ok=True)
        file.seek(0)
        with appearing(place) as part:
            part.touch(mode=0o600)  # as the log itself
            with part.open("wb") as copy:
                shutil.copyfileobj(file, copy)
    return place, digest, True
