"""How the files of a report bundle are written: all at once or not at all, each with a digest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from robo_eval.core.errors import TrialDirectoryError
from robo_eval.core.plain import plain


def json_bytes(value: object) -> bytes:
    """Readable JSON without NaN, with a line break at its end."""
    text = json.dumps(plain(value), indent=1, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode()


def fingerprint(data: bytes) -> dict[str, object]:
    """Size and SHA-256 of a file, as the manifest lists them."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def write_bundle(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder; each is complete under its name or not there at all.

    All are written beside their places first, so that a full disk leaves an older bundle whole.

    Raises:
        TrialDirectoryError: If the folder cannot be written.
    """
    waiting: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            draft = folder / f".{name}.{os.getpid()}.part"
            waiting.append((draft, folder / name))
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        for draft, final in waiting:
            draft.replace(final)
    except OSError as err:
        raise TrialDirectoryError(
            f"{folder}: the report cannot be written: {err.strerror or err}; nothing else was"
            " changed"
        ) from err
    finally:
        for draft, _ in waiting:
            draft.unlink(missing_ok=True)
