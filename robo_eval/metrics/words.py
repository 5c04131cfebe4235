"""How counts are written."""

from __future__ import annotations

from typing import Final

NOT_RECORDED: Final = "not recorded"
"""Stands for what a log does not know; a 0 would be a measurement."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number of things, with the plural where it belongs.

    Example:
        >>> counted(1, "item"), counted(2, "policy", "policies")
        ('1 item', '2 policies')
    """
    return f"{number} {noun_for(number, noun, plural)}"


def noun_for(number: int, noun: str, plural: str = "") -> str:
    """The noun as it follows a number.

    Example:
        >>> noun_for(1, "policy", "policies"), noun_for(2, "policy", "policies")
        ('policy', 'policies')
    """
    return noun if number == 1 else plural or f"{noun}s"
