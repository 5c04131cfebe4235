"""What is made beside a server: one film of a team at a time, boards where something is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robo_eval.compete.pages import desk as room
from robo_eval.compete.pages.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A desk at which each piece of work waits until it is let go."""
    monkeypatch.setattr(room, "_PATIENCE_S", 0.05)
    made = Desk(tmp_path)
    asked: list[Any] = []
    go = threading.Semaphore(0)

    def ask(*what: object) -> object:
        go.acquire()
        asked.append(what)
        return "it broke" if what[0] == "film" and what[1] == 13 else ("made", what)

    monkeypatch.setattr(made, "_ask", ask)
    made.asked, made.go = asked, go  # type: ignore[attr-defined]
    yield made
    go.release(100)
    made.close()


def until(holds: Callable[[], Any]) -> Any:
    for _ in range(500):
        if found := holds():
            return found
        threading.Event().wait(0.01)
    raise AssertionError


def test_a_team_has_one_film_made_at_a_time(desk: Any) -> None:
    for number in range(5):
        assert desk.film("greedy", (1, 0, number)) is None
    assert desk.film("other", (2, 0, 0)) is None
    desk.go.release(100)
    assert until(lambda: desk.film("other", (2, 0, 0))) == ("made", ("film", 2, 0, 0))
    assert desk.asked == [("film", 1, 0, 0), ("film", 2, 0, 0)], "the other waited for one"
    assert until(lambda: desk.film("greedy", (1, 0, 1)))
    assert len(desk.asked) == 3, "what was made is kept"
    assert until(lambda: desk.film("greedy", (13, 0, 0))) == "it broke"


def test_a_board_is_made_again_where_something_is_new(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_REST_S", (0.0, 0.0))
    assert desk.board("a") is None, "a page does not wait for long"
    desk.go.release(1)
    assert until(lambda: desk.board("a")) == ("made", ("board",))
    for _ in range(3):
        desk.board("a")
    assert len(desk.asked) == 1
    desk.board("b")
    desk.go.release(1)
    until(lambda: len(desk.asked) == 2)
    assert desk.board("b")


def test_a_process_that_dies_is_told_and_another_comes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)  # no competition is there
    try:
        assert "is no competition" in desk._ask("board")
        desk._hand.end()  # type: ignore[union-attr]
        assert "is no competition" in desk._ask("film", 1, 0, 0)
    finally:
        desk.close()
