"""A served competition of tiny trials, and what tests of its door need."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robo_eval.compete import house, times
from robo_eval.compete.competition import parse_competition
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.serving import Serving

TINY = """
name: tiny
tasks: [{{env: RoboEval/CartPole3D-v0, levels: [{level}], max_ticks: {ticks}}}]
trials: {{count: {count}, episodes: {episodes}, onset: 1, condition: {condition}}}
attempts: {attempts}
closes: 2099-01-01T00:00:00Z
answer_grid_ms: {grid}
hints: {hints}
feedback: {feedback}
limits: {{{limits}}}
"""
USUAL = {
    "level": 1, "ticks": 8, "count": 2, "episodes": 2, "condition": "system", "attempts": 1,
    "grid": 0, "limits": "connections: 4", "hints": -1, "feedback": 0,
}  # fmt: skip


def tiny(**changes: Any) -> str:
    return TINY.format(**{**USUAL, **changes})


class Served:
    """A server in this process, with its ledger."""

    def __init__(self, folder: Path, text: str, **options: Any) -> None:
        competition = parse_competition(text, source="tiny.yaml")
        self.folder = folder
        self.ledger = Ledger.create(folder, competition)
        self.serving = Serving(Ledger.open(folder), port=0, **{"workers": 1, **options})
        self.url = self.serving.url
        self.serving.start()
        self._count = 0

    def team(self, name: str | None = None) -> str:
        self._count += 1
        return self.ledger.add_team(name or f"team{self._count}")

    def rows(self, attempt: int = 1) -> list[Any]:
        return [link for link in self.ledger.links(attempt) if link.kind == "episode"]

    def notes(self) -> list[Any]:
        return list(self.ledger.notes())

    def secrets(self) -> set[str]:
        """What nobody may be told before the seeds are revealed."""
        secret = json.loads((self.folder / "secret.json").read_text())
        found = {str(value) for value in secret.values() if isinstance(value, str)}
        for trial in self.ledger.trials():
            found |= {trial.cell, *(str(episode.seed) for episode in trial.episodes)}
        for number in range(1, 1 + len(self.ledger.attempts())):
            for link in self.rows(number):
                novelty = link.row.novelty
                found |= {str(novelty.get("name"))} - {"None", "none"}
                told = novelty.get("parameters", {}).items()
                found |= {name for name, _ in told}
                # A short number stands somewhere by chance, as in the width of a bar.
                found |= {repr(value) for _, value in told if len(repr(value)) > 5}
        return found

    def stop(self) -> None:
        self.serving.stop()
        self.ledger.close_connection()


@pytest.fixture(scope="session", autouse=True)
def _hurried() -> Iterator[None]:
    """Little is measured of the times of answers, and requests need not wait for their turn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house, "ASKED", (1e6, 1e6))
        patch.setattr(times, "PAIRS", 1)
        yield


@pytest.fixture(scope="session")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("competitions")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def make(**changes: Any) -> Served:
        options = {
            name: changes.pop(name)
            for name in ("workers", "world_limit_s", "ray")
            if name in changes
        }
        started.append(Served(tmp_path / f"c{len(started)}", tiny(**changes), **options))
        return started[-1]

    yield make
    for one in started:
        one.stop()


@pytest.fixture(scope="session")
def shared(_folder: Path) -> Iterator[Served]:
    """One server for all tests that leave it as it is."""
    served = Served(_folder / "shared", tiny(count=4, attempts=50))
    yield served
    served.stop()


__all__ = ["Served", "threading"]
