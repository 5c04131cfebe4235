"""Worlds that environments no longer use, for those that need one: connecting takes 20 to 50 ms."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, Protocol, TypeVar


class World(Protocol):
    """What holds an engine, and plays the same whatever was played in it before."""

    def close(self) -> None:
        """Free the engine."""


Kind = TypeVar("Kind", bound=World)

_MOST: Final = 4
"""Worlds of a kind that are kept; each takes some 28 MB."""
_spare: dict[type[Any], list[Any]] = defaultdict(list)


def take(kind: type[Kind]) -> Kind:
    """A world, new or given back earlier."""
    kept = _spare[kind]
    world: Kind = kept.pop() if kept else kind()
    return world


def give_back(world: World) -> None:
    """Keep a world that is no longer used, or close it if enough are kept."""
    kept = _spare[type(world)]
    if len(kept) < _MOST:
        kept.append(world)
    else:
        world.close()
