"""Which valid name was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from robo_eval.core.errors import UnknownNameError

_MAX_LISTED: Final = 20


def unknown_name(kind: str, given: object, valid: Iterable[object]) -> UnknownNameError:
    """The error for a name that is not among the valid ones.

    Args:
        kind: What the name stands for, e.g. `"difficulty"`.
        given: What was given.
        valid: The names that would do.

    Returns:
        The error to raise, with the nearest valid name and the valid names.

    Example:
        >>> print(unknown_name("difficulty", "hrad", ["easy", "medium", "hard"]))
        unknown difficulty 'hrad'; did you mean 'hard'? valid: easy, medium, hard
    """
    names = [str(name) for name in valid]
    # A number one digit off is no likelier than another.
    is_number = isinstance(given, int | float)
    nearest = [] if is_number else difflib.get_close_matches(str(given), names, n=1, cutoff=0.5)
    # '3' is no level although 3 is one: the nearest name would read the same.
    is_helpful = bool(nearest) and nearest[0] != given
    hint = f"; did you mean {nearest[0]!r}?" if is_helpful else ";"
    listed = ", ".join(names[:_MAX_LISTED])
    if len(names) > _MAX_LISTED:
        listed += f", ... ({len(names)} in all)"
    shown = repr(str(given)) if isinstance(given, str | Path) else f"{given!r:.80}"
    return UnknownNameError(f"unknown {kind} {shown}{hint} valid: {listed}")
