"""Episodes to compute metrics from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import pandas as pd
import pytest

from robo_eval.core.episode import COLUMNS, Episode
from robo_eval.core.kinds import EndReason, Side

ENV = "RoboEval/CartPole3D-v0"


def make_episode(name: str, quality: float | None = 1.0, **fields: Any) -> Episode:
    """A row as the runner writes it; success and end reason follow from the quality."""
    if quality is None:
        scores: dict[str, Any] = {"end_reason": EndReason.FAULT, "success": None}
    else:
        success = quality == 1.0
        scores = {
            "end_reason": EndReason.SUCCESS if success else EndReason.FAILURE,
            "success": success,
        }
    row: dict[str, Any] = {
        "episode_id": name,
        "plan_digest": "d",
        "side": Side.SIM,
        "task": ENV,
        "family": "balancing",
        "level": 0,
        "difficulty": "easy",
        "profile": "paper",
        "seed": crc32(name.encode()),
        "policy": "balancer",
        "policy_digest": "p",
        "start_ns": 0,
        "duration_s": 1.0,
        "ticks": 200,
        "episode_return": quality,
        "quality": quality,
        "software": "test",
        **scores,
        **fields,
    }
    return Episode(**row)


@pytest.fixture
def frame() -> Callable[..., pd.DataFrame]:
    """Turns episodes into the table the log gives."""

    def build(*episodes: Episode) -> pd.DataFrame:
        rows = [{column: getattr(e, column) for column in COLUMNS} for e in episodes]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    return build


@pytest.fixture
def episode() -> Callable[..., Episode]:
    return make_episode
