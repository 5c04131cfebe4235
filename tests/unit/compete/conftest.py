"""A ledger in a temporary folder, whose clock stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robo_eval.compete.ledger import Ledger


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        return self.now

    def pass_s(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, contest: Any, clock: Clock) -> Iterator[Callable[..., Ledger]]:
    """Makes a ledger of the small competition with some keys changed."""
    made: list[Ledger] = []

    def build(**changed: Any) -> Ledger:
        folder = tmp_path / f"c{len(made)}"
        Ledger.create(folder, contest.parse(**changed)).close_connection()
        made.append(Ledger(folder, clock))
        return made[-1]

    yield build
    for ledger in made:
        ledger.close_connection()


@pytest.fixture
def ledger(make: Callable[..., Ledger]) -> Ledger:
    return make()
