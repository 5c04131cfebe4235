"""Which name was probably meant, and by what names are compared."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from robo_eval.core.errors import UnknownNameError

_MAX_LISTED: Final = 20


def nearest_name(given: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant; None if none is alike."""
    return next(iter(difflib.get_close_matches(given, names, n=1, cutoff=0.5)), None)


def listing(names: Sequence[str]) -> str:
    """Names in one line; of many the first ones, and how many there are."""
    listed = ", ".join(names[:_MAX_LISTED])
    return f"{listed}, ... ({len(names)} in all)" if len(names) > _MAX_LISTED else listed


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
    nearest = None if isinstance(given, int | float) else nearest_name(str(given), names)
    # '3' is no level although 3 is one: the nearest name would read the same.
    is_helpful = nearest not in (None, given)
    hint = f"; did you mean {nearest!r}?" if is_helpful else ";"
    shown = f"{str(given)!r:.200}" if isinstance(given, str | Path) else f"{given!r:.80}"
    return UnknownNameError(f"unknown {kind} {shown}{hint} valid: {listing(names)}")


@lru_cache(maxsize=1_024)
def person_key(name: str) -> str:
    """What a person's name is compared by: case, accents' encoding and spaces do not matter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
