"""What a hint tells of a novelty, by the level of hint."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from robo_eval.compete.worlds import Start, TrialSetting, World
from robo_eval.core.plan import TaskPlan


class Labelled(gymnasium.Env[Any, Any]):
    """Declares what is new in it."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, level: int = 0) -> None:
        words = {"entity": "cart", "attribute": "mass", "change": "increase"}
        self.novelty = {
            "level": level,
            "parameters": {"mass_kg": 5},
            **({"truth": words} if level else {}),
        }

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), 1.0, False, False, {"parameters": 5}


@pytest.fixture(scope="module", autouse=True)
def registered() -> Any:
    gymnasium.register("test/Labelled-v0", entry_point=Labelled)
    yield
    del gymnasium.registry["test/Labelled-v0"]


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        (0, None),
        (1, {"level": 3}),
        (2, {"level": 3, "entity": "cart"}),
        (3, {"level": 3, "entity": "cart", "attribute": "mass"}),
        (4, {"level": 3, "entity": "cart", "attribute": "mass", "change": "increase"}),
    ],
)
def test_each_level_of_hint_tells_one_word_more(hints: int, expected: Any) -> None:
    task = TaskPlan(env="test/Labelled-v0")
    world = World(TrialSetting(task=task, keywords=({}, {"level": 3})))
    assert len(list(world.make())) == 4
    told = {"episode_index": 4, "novel": True}
    # A normal episode after the onset has the same hint: no hint is to tell which ones are novel.
    for kind in (0, 1):
        *_, info = world.reset(Start(seed=1, kind=kind, told=told, hints=hints))
        assert info == {**told, **({"hint": expected} if expected else {})}
        *_, again = world.step(0, 0)[0]
        assert again == info
    world.close()
