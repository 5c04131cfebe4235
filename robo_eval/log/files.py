"""How a file of a trial is written: complete under its name, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from robo_eval.core.errors import InputError, TrialDirectoryError

PART_SUFFIX: Final = ".part"
"""Ending of files that are being written; one that was left behind can be deleted."""


def part_of(path: Path) -> Path:
    """Where a file is written before it takes its name; hidden, and other per process."""
    return path.with_name(f".{path.name}.{os.getpid()}{PART_SUFFIX}")


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file so that a kill or a full disk leaves the old one, or the new one, whole.

    Args:
        path: File to write or replace.
        data: Its bytes.
        durable: Whether it must also survive a power cut (fsync of file and folder).

    Raises:
        TrialDirectoryError: If it cannot be written; nothing was changed then.
    """
    with appearing(path, durable=durable) as part:
        part.write_bytes(data)


@contextmanager
def appearing(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Where to write a file that takes its name when the body has ended, and not if it fails.

    Args:
        path: File to write or replace.
        durable: Whether it must also survive a power cut (fsync of file and folder).

    Raises:
        TrialDirectoryError: If it cannot be written; nothing was changed then.
    """
    part = part_of(path)
    with explained(path, "cannot be written"):
        try:
            yield part
            if durable:
                with part.open("rb+") as file:
                    os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames and new files in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def home_folder(variable: str) -> Path:
    """The home folder of whoever runs this.

    Args:
        variable: Environment variable that would name the place that is looked for.

    Raises:
        InputError: If there is none, as for a user that only a container knows.
    """
    try:
        return Path.home()
    except RuntimeError as err:
        raise InputError(f"there is no home folder; name the place by {variable}") from err


def may_others(path: Path, rights: int) -> bool:
    """Whether somebody else than the owner of a file has one of some rights to it.

    Args:
        path: The file; of one that is missing nobody has any.
        rights: Bits of its mode, such as `stat.S_IWOTH`.
    """
    try:
        return bool(path.stat().st_mode & rights)
    except OSError:
        return False


@contextmanager
def explained(path: Path, what: str) -> Iterator[None]:
    """Turn an error of the operating system into one line that names the file.

    Raises:
        TrialDirectoryError: In place of any OSError of the body.
    """
    try:
        yield
    except OSError as err:
        raise TrialDirectoryError(f"{path}: {what}: {_reason(path, err)}") from err


def _reason(path: Path, err: OSError) -> str:
    """What is wrong: the first folder above that is none, if that is it, or else the error."""
    if isinstance(err, FileNotFoundError | NotADirectoryError | FileExistsError):
        for above in reversed(path.absolute().parents):
            if not above.exists():
                return f"there is no folder {above}"
            if not above.is_dir():
                return f"{above} is not a folder"
    return err.strerror or str(err)


def write_new(path: Path, text: str, remedy: str) -> None:
    """Write a file that people go on with; one that is there is refused.

    Args:
        path: The file.
        text: What it holds.
        remedy: What to do if it is there.

    Raises:
        InputError: If it is there already.
        TrialDirectoryError: If it cannot be written.
    """
    with explained(path, "cannot be written"):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError as err:
            raise InputError(f"{path}: is there already; {remedy}") from err
