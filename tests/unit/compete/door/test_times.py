"""What the rules say of the times of answers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest

from robo_eval.compete import times
from robo_eval.compete.competition import parse_competition
from robo_eval.compete.link import rules_of
from tests.unit.compete.door.conftest import tiny
from tests.unit.compete.door.test_door import until


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
    (found,) = rules_of(served.url)["answer_times"]
    assert found["sentence"] == "Answers leave on a grid of 2 ms."


@pytest.mark.parametrize(
    ("slower", "share"), [((0.0, 1.0), 1.0), ((1.0, 0.0), 0.0), ((1.0, 1.0), 0.0)]
)
def test_the_share_is_that_of_pairs_whose_novel_one_was_slower(
    monkeypatch: pytest.MonkeyPatch, slower: tuple[float, float], share: float
) -> None:
    counted = itertools.count()

    async def step_s(_ask: Any, _space: Any, kind: int) -> float:
        next(counted)
        return slower[kind]

    monkeypatch.setattr(times, "PAIRS", 20)
    monkeypatch.setattr(times, "_step_s", step_s)
    competition = parse_competition(tiny(), source="tiny.yaml")
    hand, arena, space = MagicMock(), MagicMock(), MagicMock()
    hand.ask = AsyncMock(return_value=MagicMock(broken={}))
    arena.seat = AsyncMock(return_value=hand)
    found = asyncio.run(times.measured(arena, competition, 0, space, 7))
    assert (found["novel_is_slower"], found["pairs"], next(counted)) == (share, 20, 40)
    arena.seat.assert_awaited_once()


def test_a_world_that_breaks_is_told(serve: Callable[..., Any], monkeypatch: Any) -> None:
    async def broken(*_: Any) -> Any:
        raise times.CheckFailedError("it broke")

    monkeypatch.setattr(times, "_step_s", broken)
    served = serve()
    until(lambda: "measured: it broke" in str(rules_of(served.url)["answer_times"]))
