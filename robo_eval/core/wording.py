"""How counts and numbers are written in messages and tables."""

from __future__ import annotations

from typing import Final

NOT_RECORDED: Final = "not recorded"
"""Stands for what a log does not know; a 0 would be a measurement."""


def counted(number: int, noun: str, plural: str = "", *, gap: str = "") -> str:
    """A number of things, with the plural where it belongs.

    Args:
        number: How many.
        noun: What one of them is called.
        plural: What several are called, if not the noun with an s.
        gap: What stands between thousands.

    Example:
        >>> counted(1, "item"), counted(2, "policy", "policies"), counted(1020, "pair", gap=" ")
        ('1 item', '2 policies', '1 020 pairs')
    """
    return f"{number:,}".replace(",", gap) + f" {noun_for(number, noun, plural)}"


def noun_for(number: int, noun: str, plural: str = "") -> str:
    """The noun as it follows a number.

    Example:
        >>> noun_for(1, "policy", "policies"), noun_for(2, "policy", "policies")
        ('policy', 'policies')
    """
    return noun if number == 1 else plural or f"{noun}s"


def p_text(value: float) -> str:
    """A p value with three decimals, or that it is smaller.

    Example:
        >>> p_text(0.0312), p_text(1e-5)
        ('0.031', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def shown(number: float) -> str:
    """A number with four digits, or its thousands apart.

    Example:
        >>> shown(0.123456), shown(12), shown(16534.2)
        ('0.1235', '12', '16,534')
    """
    return f"{number:,.0f}" if abs(number) >= 1000.0 else f"{number:.4g}"


def in_short(number: float) -> str:
    """A number in as few characters as say it exactly.

    Example:
        >>> in_short(2.0), in_short(0.25)
        ('2', '0.25')
    """
    return str(int(number)) if float(number).is_integer() else repr(float(number))
