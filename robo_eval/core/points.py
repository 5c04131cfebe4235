"""What installed packages offer under a name: their entry points."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def points(group: str) -> list[EntryPoint]:
    """Entry points of a group, in an order that does not depend on what was installed first."""
    found: list[EntryPoint] = list(_installed().select(group=group))
    return sorted(found, key=lambda point: (point.value, point.name))


@cache
def _installed() -> Any:
    """Those of every group: all packages that are installed are looked through for one."""
    from importlib.metadata import entry_points

    return entry_points()
