"""A served competition whose pages are looked at, and who looks at them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import httpx
import pytest

from robo_eval.compete.client import play
from robo_eval.compete.ledger import KEY
from tests.unit.compete.door.conftest import Served, tiny

PUSH = 1
BROWSER = {"accept": "text/html,*/*"}


class Visitor:
    """A browser without a screen."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, headers=BROWSER, timeout=60.0, verify=False)

    def log_in(self, token: str, next_: str = "/own") -> httpx.Response:
        form = self.http.get("/login").text
        csrf = re.search(r'name="csrf" value="([^"]+)"', form)
        assert csrf is not None
        fields = {"csrf": csrf[1], "next": next_, "name": "", "password": token}
        return self.http.post("/login", data=fields)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.http.get(path, **more)


class Pushing:
    """An agent that pushes until the pole falls, and takes the world for changed."""

    def act(self, observation: Any) -> int:
        return PUSH

    def declare(self) -> dict[str, float]:
        return {"probability": 1.0}


def played(served: Served, name: str, episodes: int | None = None) -> str:
    """A team that has played everything, or so many episodes; its token."""
    token = served.team(name)
    env = gymnasium.make("RoboEval/Remote-v0", url=served.url, token=token)
    if episodes is None:
        play(env, Pushing())
    for number in range(episodes or 0):
        env.reset()
        while not any(env.step(PUSH if number else 0)[2:4]):  # the first one goes better
            pass
    env.close()
    return token


@pytest.fixture(scope="module")
def cup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A competition in which `alice` has played and `bob` is under way; tests do not change it.

    Some of their novel episodes end before the novelty begins.
    """
    folder: Path = tmp_path_factory.mktemp("pages") / "cup"
    text = tiny(level=6, ticks=60).replace("onset: 1,", "onset: 1, onset_tick: 59,")
    served = Served(folder, text)
    served.tokens = {"alice": played(served, "alice"), "bob": played(served, "bob", 3)}  # type: ignore[attr-defined]
    served.tokens["organiser"] = (folder / KEY).read_text().strip()  # type: ignore[attr-defined]
    yield served
    served.stop()


@pytest.fixture
def come(cup: Any) -> Iterator[Callable[..., Visitor]]:
    """Brings somebody, logged in if a name is given."""
    here: list[Visitor] = []

    def one(name: str = "", served: Any = None) -> Visitor:
        visitor = Visitor((served or cup).url)
        here.append(visitor)
        if name:
            answer = visitor.log_in((served or cup).tokens[name])
            assert answer.status_code == 303, answer.text
        return visitor

    yield one
    for visitor in here:
        visitor.http.close()
