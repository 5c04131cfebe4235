"""Baselines: they play by themselves what teams may play, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from robo_eval.cli.compete_serve import serve
from robo_eval.compete.competition import parse_competition
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.players import enter_baselines, play_baselines
from robo_eval.compete.practice import practised
from robo_eval.core.errors import InputError
from tests.unit.compete.door.conftest import Served, tiny

HERE = "tests.unit.compete.door.test_players"


class Listener:
    """An agent that keeps what it is told."""

    name, digest = "told", "listener"
    heard: ClassVar[list[Any]] = []

    def reset(self, *, seed: int | None = None) -> None:
        self.heard.append("reset")

    def begin_episode(self, info: Any) -> None:
        self.heard.append(info)

    def begin_trial(self) -> None:
        self.heard.append("trial")

    def act(self, observation: Any) -> int:
        return 0


class Broken(Listener):
    """An agent that cannot act."""

    def act(self, observation: Any) -> int:
        raise RuntimeError("no idea")


def test_in_practice_a_novelty_that_never_began_makes_no_novel_episode(tmp_path: Path) -> None:
    text = tiny(condition="system, onset_tick: 199", ticks=200)
    with Ledger.create(tmp_path / "cup", parse_competition(text, source="tiny.yaml")) as ledger:
        found = practised(ledger, "", f"{HERE}:Listener")
    assert found["episodes"] == 2 * found["trials"]
    assert found["novel_quality"] is None
    assert found["normal_quality"] > 0.0


def with_baselines(*names: str, **changes: Any) -> str:
    entries = [
        name if name == "nothing" else f"{{name: {name}, factory: '{HERE}:{name.title()}'}}"
        for name in names
    ]
    return f"{tiny(**changes)}\nbaselines: [{', '.join(entries)}]\n"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Any]:
    started: list[Served] = []

    def start(text: str) -> Served:
        started.append(Served(tmp_path / "cup", text))
        enter_baselines(started[0].ledger)
        return started[0]

    yield start
    started[0].stop()


def ended(served: Served, name: str) -> list[int]:
    (number,) = [team.number for team in served.ledger.teams() if team.name == name]
    own = [one for one in served.ledger.attempts() if one.team == number]
    return [one.attempt for one in own if one.ended_ns is not None]


def test_baselines_play_the_first_attempt_and_each_that_a_team_has_begun(served: Any) -> None:
    here = served(with_baselines("nothing", count=1, attempts=3))
    said: list[str] = []
    for _ in range(2):  # what was played is not played again
        assert play_baselines(here.serving, said.append) == set()
    assert ended(here, "nothing") == [1]
    assert said == ["baseline nothing: 2 episodes of RoboEval/CartPole3D-v0 played"]
    token = here.team("alice")
    team = here.ledger.team_of(token)
    here.ledger.forfeit(here.ledger.claim(team, "s")[0].attempt, 0, "not of interest")
    here.ledger.claim(team, "s")
    play_baselines(here.serving, said.append)
    assert ended(here, "nothing") == [1, 2]


def test_the_informed_baseline_is_told_each_novelty(served: Any) -> None:
    Listener.heard.clear()
    text = with_baselines("listener", count=1, condition="given, informed: listener")
    here = served(text)
    play_baselines(here.serving, lambda _line: None)
    first, second = (one for one in Listener.heard if isinstance(one, dict))
    assert [one for one in Listener.heard if isinstance(one, str)] == ["trial", "reset", "reset"]
    assert (first["novelty_indicator"], second["novelty_indicator"]) == (False, True)
    row = here.rows()[1].row
    assert second["novelty"]["name"] == row.novelty["name"] == "cart_mass"
    assert second["novelty"]["parameters"] == row.novelty["parameters"]
    assert first["novelty"].get("name") != "cart_mass"


def test_a_baseline_that_breaks_is_given_up_and_others_go_on(served: Any) -> None:
    here = served(with_baselines("broken", "nothing", count=1))
    said: list[str] = []
    assert play_baselines(here.serving, said.append) == {"broken"}
    assert play_baselines(here.serving, said.append, {"broken"}) == set()
    assert (ended(here, "broken"), ended(here, "nothing")) == ([], [1])
    assert len(said) == 2
    assert "broken" in said[0]
    assert "no idea" in said[0]


def test_an_agent_that_there_is_not_is_refused_before_anything_begins(tmp_path: Path) -> None:
    (tmp_path / "cup.yaml").write_text(f"{tiny()}\nbaselines: [balancr]\n")
    with pytest.raises(InputError, match="balancer"):
        serve(tmp_path / "cup.yaml", out=tmp_path / "cup", port=0)
    assert list(tmp_path.iterdir()) == [tmp_path / "cup.yaml"]
