"""An empty file of evidence, with what its columns hold."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Final, get_args, get_type_hints

from robo_eval.core.errors import InputError
from robo_eval.core.names import unknown_name
from robo_eval.log.evidence import FORMS, Noted
from robo_eval.log.evidence_cells import CellMark
from robo_eval.log.evidence_read import COLUMN_OF, columns_of
from robo_eval.log.files import write_new
from robo_eval.log.notes import csv_line

_ATTRIBUTE: Final = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def new_evidence(name: str, out: Path) -> Path:
    """Write such a file: remarks, which readers leave out, and the header.

    Args:
        name: What is noted, one of `NAMES`.
        out: The file, or the folder in which it is `NAME.csv`.

    Returns:
        The file.

    Raises:
        InputError: If there is no such evidence, or the file is there already.
        TrialDirectoryError: If it cannot be written.
    """
    if name not in FORMS:
        raise InputError(str(unknown_name("evidence", name, FORMS)))
    path = out / f"{name}.csv" if out.is_dir() else out
    form = FORMS[name]
    needed, others = columns_of(form)
    lines = [
        f"# {inspect.cleandoc(form.__doc__ or '').splitlines()[0]} A line each.",
        f"# As long as it has no lines it says {form.EMPTY}.",
        *(f"# {column} (needed): {_needed(_said(form, column))}" for column in needed),
        *(f"# {column}: {_said(form, column)}" for column in others),
    ]
    text = "\n".join(lines) + "\n" + csv_line([*needed, *others])
    write_new(path, text, "add your lines to it")
    return path


def _needed(text: str) -> str:
    """The same of a column that has to be there."""
    text = text.replace(", if that is known", "")
    return text.replace("; empty if", "; its cell is empty if")


def _said(form: type[Noted], column: str) -> str:
    """What a column holds, in the words of the class of its file, and how it is written."""
    docs = [dict(_ATTRIBUTE.findall(inspect.cleandoc(one.__doc__ or ""))) for one in form.__mro__]
    field = next(one.name for one in fields(form) if COLUMN_OF.get(one.name, one.name) == column)
    text = next((" ".join(doc[field].split()) for doc in docs if field in doc), "")
    hint = get_type_hints(form, include_extras=True)[field]
    parts = [mark for one in (hint, *get_args(hint)) for mark in getattr(one, "__metadata__", ())]
    text = re.sub(r"One of `[A-Z]+`\.", "One of these.", text).replace("None if", "empty if")
    return " ".join([text, *(f"({cell.what})" for cell in parts if isinstance(cell, CellMark))])
