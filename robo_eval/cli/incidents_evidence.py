"""Files of evidence that are named on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robo_eval.core.canonical import file_digest
from robo_eval.core.errors import InputError
from robo_eval.log.files import explained
from robo_eval_incidents.evidence import keep

if TYPE_CHECKING:
    from robo_eval_incidents.log import IncidentLog

CopyOption = Annotated[
    bool,
    typer.Option("--copy", help="Put copies into incidents/ beside the log, which merging takes."),
]


@contextmanager
def evidence_given(
    log: IncidentLog,
    files: Sequence[Path],
    *,
    copy: bool,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> Iterator[list[dict[str, Any]]]:
    """Evidence as a record has it; copies are taken away again if the body fails.

    Args:
        log: The log it is for.
        files: Files; of a log on a server, relative to the current folder.
        copy: Copy files into the folder beside the log that goes along when it is merged.
        start_ns: First instant of them that matters.
        end_ns: Last instant.

    Raises:
        InputError: If a file is missing, or does not lie where evidence does.
    """
    with ExitStack() as on_failure:
        pieces = [_piece(log.database.path, file, on_failure, copy=copy) for file in files]
        if start_ns is not None:
            pieces = [{**piece, "start_ns": start_ns, "end_ns": end_ns} for piece in pieces]
        yield pieces
        on_failure.pop_all()


def check_evidence(target: str | Path, files: Sequence[Path], *, copy: bool) -> None:
    """Refuse files that cannot be evidence of a log, which need not be there yet.

    Args:
        target: Path of the log, or its URL.
        files: Files; see `evidence_given`.
        copy: Whether they may lie elsewhere.

    Raises:
        InputError: If one is missing, is of the log itself, or does not lie where evidence does.
    """
    log = target if isinstance(target, Path) else None
    for file in files:
        _check_file(log, file, copy=copy)


def _check_file(log: Path | None, file: Path, *, copy: bool) -> None:

    if not file.exists():
        raise InputError(f"{file}: no such file of evidence")
    if not (file.is_file() or file.is_dir()):
        # Reading a device or a pipe may never end.
        raise InputError(f"{file}: is neither a file nor a folder")
    place, folder = file.resolve(), _root_of(log)
    if log is not None and place in _own_files(log):
        # Reading the file of an open database also takes its locks away.
        raise InputError(f"{file}: is the log itself; evidence is another file")
    if copy and place.is_dir():
        raise InputError(f"{file}: is a folder; --copy takes files, name them")
    can_copy = log is not None and not place.is_dir()
    if not place.is_relative_to(folder) and not (copy and can_copy):
        raise InputError(
            f"{file}: does not lie below {folder}, where evidence of this log is; put it there"
            + (", or add --copy" if can_copy else "")
        )


def _folder_of(log: Path | None) -> Path:
    """What evidence is relative to; the current folder for a log on a server."""
    return (Path() if log is None else log.parent).resolve()


def _root_of(log: Path | None) -> Path:
    """What evidence lies below: what else is beside a log, such as keys, is not for its readers."""
    from robo_eval_incidents.log import EVIDENCE

    return _folder_of(log) if log is None else _folder_of(log) / EVIDENCE


def _own_files(log: Path) -> set[Path]:
    """The file of a log, and those that SQLite keeps beside it."""
    file = log.resolve()
    return {file, *(file.with_name(f"{file.name}{end}") for end in ("-wal", "-shm", "-journal"))}


def _piece(log: Path | None, file: Path, on_failure: ExitStack, *, copy: bool) -> dict[str, Any]:
    from robo_eval_incidents.log import EVIDENCE

    _check_file(log, file, copy=copy)
    place, folder = file.resolve(), _folder_of(log)
    with explained(file, "cannot be read"):
        digest = None if place.is_dir() else file_digest(place)
        if digest is not None and not place.is_relative_to(_root_of(log)):
            with place.open("rb") as stream:
                place, digest, is_new = keep(stream, file.name, folder / EVIDENCE)
            if is_new:
                on_failure.callback(place.unlink, missing_ok=True)
    uri = place.relative_to(folder).as_posix()
    return {"uri": uri, "sha256": digest} if digest else {"uri": uri}
