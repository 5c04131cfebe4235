"""How a person sets a scene up, and is asked again when it is not the right one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from robo_eval.core.errors import CheckFailedError
from robo_eval.core.kinds import Side
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import schedule

pytest.importorskip("rclpy", reason="ROS 2 is not installed: pip install .[ros]")

from robo_eval_robot import episode
from robo_eval_robot.stagehand import OperatorStagehand, Scene

PLANNED = schedule(
    TrialPlan(name="x", tasks=[{"levels": [0]}], policies=["random"], sides=["real"]), Side.REAL
)[0]


class Env:
    """An environment whose scene is set up by a person, further off or nearer each time."""

    def __init__(self, stagehand: OperatorStagehand, *starts: float) -> None:
        self.stagehand = stagehand
        self.starts = list(starts)

    def prepare(self, *, seed: int, episode_id: str, options: Any) -> dict[str, float]:
        scene = Scene(
            task="T", keywords={"level": 0}, seed=seed, episode_id=episode_id, state=options,
            within_s=1.0,
        )  # fmt: skip
        self.stagehand.arrange(scene)
        return {"x": self.starts.pop(0)}

    def deviation_problem(self, state: dict[str, float], planned: dict[str, float]) -> str | None:
        far = abs(state["x"] - planned["x"])
        return f"x is {far:g} from the planned start, 0.1 is allowed" if far > 0.1 else None


def hand(*answers: bool, scene: Any = None) -> tuple[OperatorStagehand, list[str]]:
    asked: list[str] = []
    left = list(answers)

    def ask(text: str) -> bool:
        asked.append(text)
        return left.pop(0)

    link: Any = SimpleNamespace(wait=lambda _is_so, _s: False, latest=SimpleNamespace(stamp_ns=7))
    return OperatorStagehand(link, ask, itself=scene, shown=lambda name: f"<{name}>"), asked


def test_a_scene_in_the_wrong_place_is_set_up_again():
    stagehand, asked = hand(True, True)
    env: Any = Env(stagehand, 1.0, 0.05)
    episode._set_up(env, PLANNED, {"x": 0.0}, stagehand)
    assert [text.startswith("The start is not the planned one: x is 1 ") for text in asked] == [
        False,
        True,
    ]
    assert all(f"<{PLANNED.episode_id}>" in text for text in asked)


def test_who_gives_up_is_not_asked_again():
    stagehand, asked = hand(True, False)
    env: Any = Env(stagehand, 1.0)
    with pytest.raises(CheckFailedError, match="was not set up"):
        episode._set_up(env, PLANNED, {"x": 0.0}, stagehand)
    assert len(asked) == 2
    stagehand, _ = hand(False)
    with pytest.raises(CheckFailedError, match="stays stopped: estop"):
        stagehand.may_reset("estop")
    assert not stagehand.again("the guard stays stopped")


def test_a_scene_that_sets_itself_up_is_not_asked_for_twice():
    class Itself:
        calls = 0

        def arrange(self, _scene: Scene) -> int:
            self.calls += 1
            return 9

    scene: Any = Itself()
    stagehand, asked = hand(True, scene=scene)
    env: Any = Env(stagehand, 1.0)
    with pytest.raises(CheckFailedError, match="not the planned one"):
        episode._set_up(env, PLANNED, {"x": 0.0}, stagehand)
    assert (scene.calls, len(asked)) == (1, 1)
