"""What pages say of novelties once they may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robo_eval.compete.competition import parse_competition
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.pages.told import cells, notes

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


def test_notes_that_are_alike_stand_together(tmp_path: Path, contest: Any) -> None:
    ledger = Ledger.create(tmp_path / "c", contest.parse())
    team = contest.team(ledger, "alice")
    for turn in ledger.claim(team, "s"):
        ledger.forfeit(turn.attempt, turn.trial.number, "it went")
    for _ in range(18):
        ledger.note(team, "refused", "no feedback")
    ledger.note(team, "refused", "later")
    for whose in (None, team):
        found = notes(ledger, whose, ledger.attempts())
        assert [(one["kind"], one["detail"]) for one in found] == [
            ("forfeited", "5 trials of attempt 1: it went"),
            ("refused", "later"),
            ("refused", "no feedback (18 times)"),
        ]
    assert {one["team"] for one in notes(ledger, None, ledger.attempts())} == {"alice"}
    ledger.close_connection()
