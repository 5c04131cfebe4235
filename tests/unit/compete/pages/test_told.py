"""What pages say of novelties once they may."""

from __future__ import annotations

from robo_eval.compete.competition import parse_competition
from robo_eval.compete.pages.told import cells

TWO = """
name: two
tasks:
  - {env: RoboEval/PickPlace-v0, axes: {payload: [9, 11.5]}}
  - {env: CartPole-v1, quality_range: [0, 500]}
trials: {count: 1, episodes: 2, onset: 1}
closes: 2099-01-01T00:00:00Z
"""


def test_cells_are_told_by_task_novelty_and_magnitude() -> None:
    assert cells(parse_competition(TWO, source="two.yaml")) == {
        "t0": "PickPlace, no novelty",
        "t1": "CartPole-v1, no novelty",
        "t0-payload_9": "PickPlace, payload 9",
        "t0-payload_11.5": "PickPlace, payload 11.5",
    }
