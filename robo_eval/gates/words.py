"""Numbers in the sentences of an assessment."""

from __future__ import annotations


def shown(number: float) -> str:
    """A number with four digits, or its thousands apart.

    Example:
        >>> shown(0.123456), shown(12), shown(16534.2)
        ('0.1235', '12', '16,534')
    """
    return f"{number:,.0f}" if abs(number) >= 1000.0 else f"{number:.4g}"
