"""Where a new trial can be put, and how it gets there all at once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from robo_eval.core.errors import TrialDirectoryError
from robo_eval.log.files import PART_SUFFIX, sync_folder
from robo_eval.log.manifest import MANIFEST

PLAN: Final = "plan.yaml"
_STAGING: Final = ".creating"


def check_vacant(folder: Path) -> None:
    """Refuse a folder that holds anything, a file, or a link that leads nowhere."""
    if not folder.exists():
        if folder.is_symlink():
            raise TrialDirectoryError(f"{folder}: is a link that leads nowhere")
        return
    if not folder.is_dir():
        raise TrialDirectoryError(f"{folder}: is a file; name a new directory")
    if (folder / PLAN).exists() and (folder / MANIFEST).exists():
        raise TrialDirectoryError(
            f"{folder}: holds a trial already; go on with it by: robo-eval resume {folder}"
        )
    names = [entry.name for entry in folder.iterdir()]
    if names == [_STAGING]:
        raise TrialDirectoryError(
            f"{folder}: another process is creating a trial here; if none is, delete"
            f" {folder / _STAGING}"
        )
    if names:
        raise TrialDirectoryError(
            f"{folder}: holds something else; name a new or an empty directory"
        )


def nearest_existing(folder: Path) -> Path:
    """The nearest folder that is there already."""
    for parent in (folder, *folder.absolute().parents):
        if parent.exists():
            if not parent.is_dir():
                raise TrialDirectoryError(f"{folder}: {parent} is a file, not a directory")
            return parent
    raise TrialDirectoryError(f"{folder}: no such place")


def check_writable(folder: Path, base: Path) -> None:
    """Refuse a place in which nothing can be created."""
    # Tried and not asked: permissions say nothing about read-only media, quotas or /proc.
    probe = base / f".robo-eval-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError as err:
        raise TrialDirectoryError(
            f"{folder}: cannot be created in {base}: {err.strerror or err}"
        ) from err
    probe.rmdir()


@contextmanager
def staging_for(folder: Path) -> Iterator[Path]:
    """A folder to prepare a trial in, which then takes the place of `folder`."""
    is_new = not folder.exists()
    if is_new:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = folder.with_name(f".{folder.name}.{os.getpid()}{PART_SUFFIX}")
    else:
        # Inside, because an existing folder may be a mount point, which nothing can replace.
        staging = folder / _STAGING
    try:
        staging.mkdir()
    except FileExistsError as err:
        raise TrialDirectoryError(
            f"{folder}: another process is creating a trial here; if none is, delete {staging}"
        ) from err
    try:
        if not is_new and any(part != staging for part in folder.iterdir()):
            raise TrialDirectoryError(f"{folder}: was created by somebody else meanwhile")
        yield staging
        if is_new:
            _take_place(staging, folder)
        else:
            for part in sorted(staging.iterdir(), key=lambda part: part.name == PLAN):
                part.rename(folder / part.name)
    finally:
        with suppress(OSError):
            shutil.rmtree(staging)
    sync_folder(folder)
    sync_folder(folder.parent)


def _take_place(staging: Path, folder: Path) -> None:
    try:
        # Fails if somebody else has put something there meanwhile.
        staging.rename(folder)
    except OSError as err:
        raise TrialDirectoryError(
            f"{folder}: was created by somebody else meanwhile ({err.strerror})"
        ) from err
