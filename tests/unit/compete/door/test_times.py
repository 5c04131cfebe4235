"""What the rules say of the times of answers."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from robo_eval.compete import house, times
from robo_eval.compete.competition import parse_competition
from robo_eval.compete.draw import Secret, draw
from robo_eval.compete.link import rules_of
from tests.unit.compete.door import test_door
from tests.unit.compete.door.conftest import tiny
from tests.unit.compete.door.test_door import until

raw = test_door.raw


def test_they_are_measured_while_it_is_served_and_told_in_the_rules(
    serve: Callable[..., Any],
) -> None:
    served = serve()

    def told() -> Any:
        (found,) = rules_of(served.url)["answer_times"]
        return found

    until(lambda: "pairs" in told())
    assert (told()["env"], told()["pairs"]) == ("RoboEval/CartPole3D-v0", 1)
    assert told()["low"] <= told()["novel_is_slower"] <= told()["high"]
    assert "1 pair " in told()["sentence"]


def test_on_a_grid_nothing_is_measured(serve: Callable[..., Any]) -> None:
    served = serve(grid=2)
    until(lambda: "grid of 2 ms" in str(rules_of(served.url)["answer_times"]))
    (found,) = rules_of(served.url)["answer_times"]
    assert (found["sentence"], "pairs" in found) == ("Answers leave on a grid of 2 ms.", False)
    assert found["slowest_opening_s"] > 0.0


@pytest.mark.parametrize(
    ("slower", "share"), [((0.0, 1.0), 1.0), ((1.0, 0.0), 0.0), ((1.0, 1.0), 0.0)]
)
def test_the_share_is_that_of_pairs_whose_novel_one_was_slower(
    monkeypatch: pytest.MonkeyPatch, slower: tuple[float, float], share: float
) -> None:
    counted = itertools.count()

    async def took_s(_ask: Any, _space: Any, kind: int) -> tuple[float, float]:
        next(counted)
        return slower[1 - kind], slower[kind]

    monkeypatch.setattr(times, "PAIRS", 20)
    monkeypatch.setattr(times, "_took_s", took_s)
    competition = parse_competition(tiny(), source="tiny.yaml")
    hand, arena, space = MagicMock(), MagicMock(), MagicMock()
    hand.ask = AsyncMock(return_value=MagicMock(broken={}))
    arena.seat = AsyncMock(return_value=hand)
    drawn = draw(competition, Secret.new())
    found = asyncio.run(times.measured(arena, competition, 0, drawn, space, 7))
    assert (found["novel_is_slower"], found["pairs"], next(counted)) == (share, 20, 40)
    assert found["reset_is_slower"] == (1.0 if slower[0] > slower[1] else 0.0)
    arena.seat.assert_awaited_once()


@pytest.mark.parametrize("grid", [0, 2])
def test_the_reset_that_has_worlds_made_is_answered_on_a_grid_of_its_own(
    serve: Callable[..., Any], raw: Any, monkeypatch: pytest.MonkeyPatch, grid: int
) -> None:
    monkeypatch.setattr(house, "LEAST_OPENING_S", 0.75)
    served = serve(grid=grid)
    client = raw(served.url, served.team())
    client.hello()
    begin_s = time.monotonic()
    client.ask("reset", trials=[0])
    assert time.monotonic() - begin_s >= 0.75
    served.serving.house.slowest_s = 3.0
    assert served.serving.house.opening_s(2) == 12.0


def test_a_world_that_breaks_is_told(serve: Callable[..., Any], monkeypatch: Any) -> None:
    async def broken(*_: Any) -> Any:
        raise times.CheckFailedError("it broke")

    monkeypatch.setattr(times, "_took_s", broken)
    served = serve()
    until(lambda: "measured: it broke" in str(rules_of(served.url)["answer_times"]))
