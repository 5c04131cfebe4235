"""How counts are written."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things, with the plural where it belongs.

    Example:
        >>> counted(1, "item"), counted(2, "policy", "policies")
        ('1 item', '2 policies')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
