"""Files of evidence: found below their folder only, and compared with what was recorded of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final

from robo_eval.core import door
from robo_eval.core.errors import InputError
from robo_eval.web.errors import NotFoundError
from robo_eval_incidents.evidence import digest_of, keep
from robo_eval_incidents.kinds import Evidence, section_of
from robo_eval_incidents.log import EVIDENCE, IncidentLog

KINDS: Final = frozenset({
    ".mcap", ".bag", ".csv", ".json", ".txt", ".log", ".pdf", ".png", ".jpg", ".jpeg", ".webp",
    ".heic", ".mp4", ".mov", ".webm", ".mkv", ".wav", ".zip",
})  # fmt: skip
"""Endings of files that can be evidence: no database or key that lies in the same folder."""
PICTURES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp"})
"""Endings of files that have a thumbnail."""
_PIECE: Final = 1 << 20
_SMALL: Final = 320
_MOST_PIXELS: Final = 100_000_000


class ChangedFileError(InputError):
    """A file of evidence is not the one that was recorded."""

    http_status = 409


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Where files of evidence are.

    Attributes:
        base: What their paths are relative to.
        root: What they lie below, links followed.
        name: What people call it.
    """

    base: Path
    root: Path
    name: str

    @classmethod
    def of(cls, log: IncidentLog, given: Path | None) -> Folder | None:
        """The folder somebody gave, or `incidents/` beside a log; None if this machine has none.

        What else lies beside a log is not evidence: keys and settings, for instance.
        """
        if given is not None:
            return cls(base=given, root=given, name="the folder of evidence")
        beside = log.evidence_folder
        if beside is None:
            return None
        return cls(base=beside, root=beside / EVIDENCE, name=f"{EVIDENCE}/ beside the log")


def find_evidence(folder: Folder | None, uri: str) -> Path:
    """The file of a piece of evidence.

    Args:
        folder: Where evidence is; None if this machine has none.
        uri: Its path, relative to `base` of the folder.

    Raises:
        NotFoundError: If it is not there, or lies elsewhere.
    """
    if folder is None:
        raise NotFoundError("the evidence of this log is not kept on this machine")
    if Path(uri).suffix.lower() not in KINDS:
        raise NotFoundError(f"{uri:.200}: evidence ends in {', '.join(sorted(KINDS))}")
    try:
        path = (folder.base / uri).resolve()
        # A link may lead out of the folder whatever its name is.
        inside = path.is_relative_to(folder.root.resolve()) and path.suffix.lower() in KINDS
        if not inside or not path.is_file():
            raise NotFoundError(f"{uri}: is no file below {folder.name}")
    except (OSError, ValueError, RuntimeError) as err:
        raise NotFoundError(f"{uri}: cannot be found below {folder.name}") from err
    return path


def open_evidence(folder: Folder | None, evidence: Evidence) -> tuple[BinaryIO, int]:
    """Open a file of evidence that is the one recorded.

    Returns:
        The open file and its length in bytes.

    Raises:
        NotFoundError: If it is not there.
        ChangedFileError: If it has another digest.
    """
    path = find_evidence(folder, evidence.uri)
    try:
        file = door.opened(path)
    except OSError as err:
        raise NotFoundError(f"{evidence.uri}: cannot be read") from err
    found = digest_of(file) if evidence.sha256 is not None else None
    if found != evidence.sha256:
        file.close()
        raise ChangedFileError(
            f"{evidence.uri}: was changed since it was recorded: its SHA-256 is {found}, recorded"
            f" was {evidence.sha256}"
        )
    length = file.seek(0, 2)
    file.seek(0)
    return file, length


def recorded_evidence(folder: Folder | None, uri: str) -> Evidence:
    """A file that is there, with its digest, as evidence.

    Raises:
        InputError: If it is not there, or the path is none; the message names it.
    """
    named = section_of(Evidence, {"uri": uri})
    path = find_evidence(folder, named.uri)
    try:
        with door.opened(path) as file:
            digest = digest_of(file)
    except OSError as err:
        raise NotFoundError(f"{named.uri}: cannot be read") from err
    return named.model_copy(update={"sha256": digest})


def kept_evidence(folder: Folder | None, name: str, file: BinaryIO) -> Evidence:
    """A file that somebody sent, kept where evidence is.

    Raises:
        InputError: If it is empty, or no evidence by its name.
        NotFoundError: If this machine keeps no evidence.
        TrialDirectoryError: If it cannot be written.
    """
    if folder is None:
        raise NotFoundError(
            "the evidence of this log is not kept on this machine: serve --evidence"
        )
    if Path(name).suffix.lower() not in KINDS:
        raise InputError(f"files: {name!r:.100}: evidence ends in {', '.join(sorted(KINDS))}")
    if not file.read(1):
        raise InputError(f"files: {name!r:.100} is empty")
    place, digest, _ = keep(file, name, folder.root)
    return section_of(
        Evidence, {"uri": place.relative_to(folder.base).as_posix(), "sha256": digest}
    )


@lru_cache(maxsize=256)
def thumbnail(path: Path, _sha256: str) -> bytes | None:
    """A small JPEG of a picture, as it is held upright; None if it cannot be made.

    Args:
        path: The picture, compared with its digest before.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(path, formats=("JPEG", "PNG", "WEBP")) as picture:
            if picture.width * picture.height > _MOST_PIXELS:
                return None
            picture.draft("RGB", (_SMALL, _SMALL))
            small = ImageOps.exif_transpose(picture)
            small.thumbnail((_SMALL, _SMALL))
            made = io.BytesIO()
            # Anew: what a camera says of place and owner is not in it.
            small.convert("RGB").save(made, "JPEG", quality=80, comment=b"")
            return made.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file, which is closed after it."""
    with file:
        while piece := file.read(_PIECE):
            yield piece
