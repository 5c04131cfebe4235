"""A policy of Stable-Baselines3 plays a competition as it plays any environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from tests.unit.compete.door.conftest import Served, tiny

sb3 = pytest.importorskip("stable_baselines3", reason='needs pip install "robo-eval-stack[train]"')


def test_the_predict_loop_plays_every_episode(tmp_path: Any) -> None:
    served = Served(tmp_path / "c", tiny(count=1, episodes=3))
    try:
        env = gymnasium.make("RoboEval/Remote-v0", url=served.url, token=served.team("sb3"))
        model = sb3.PPO("MlpPolicy", env, device="cpu")  # an untrained one knows no better
        whole = model.get_env()
        seen, ended = whole.reset(), 0
        while env.unwrapped.left:
            actions, _ = model.predict(seen, deterministic=True)
            seen, _, ends, _ = whole.step(actions)
            ended += int(ends[0])
        whole.close()
        assert ended == 3
        assert [link.row.end_reason.is_scored for link in served.rows()] == [True] * 3
    finally:
        served.stop()
