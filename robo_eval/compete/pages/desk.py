"""Leaderboards and films of episodes, made beside a server so that no player waits for them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from robo_eval.compete.ledger import Ledger
from robo_eval.core.confined import Confined
from robo_eval.core.errors import InputError, said

if TYPE_CHECKING:
    from robo_eval.compete.scores import Board
    from robo_eval.report.animation import Clip

_LOG: Final = logging.getLogger(__name__)
_NICE: Final = 10
_LIMIT_S: Final = 120.0
"""How long one piece of work may take before its process is ended."""
_PATIENCE_S: Final = 3.0
"""How long a page waits for its first leaderboard."""
_REST_S: Final = (3.0, 60.0)
"""How long no leaderboard follows another: five times as long as that one took, within these."""
_MOST_FILMS: Final = 200
"""Films that are kept in memory; each has some ten kilobytes."""

Place: TypeAlias = tuple[int, int, int]
"""Number of the attempt in the ledger, number of the trial, index of the episode."""


class Desk:
    """Makes leaderboards and films, one after the other, in one process of low priority.

    Of each team one film is made at a time, so that none has another wait for more than one.

    Args:
        folder: Folder of the competition.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "desk")
        self._hand: Confined | None = None
        self._board: Board | None = None
        self._scoring: Future[None] | None = None
        self._scored: Hashable = None
        self._next_s = 0.0
        self._films: OrderedDict[Place, Clip | str] = OrderedDict()
        self._making: set[str] = set()

    def board(self, state: Hashable) -> Board | None:
        """The leaderboard as it was some seconds ago; None while the first one is made.

        Args:
            state: What it follows from: while that stays, it stays.
        """
        with self._lock:
            is_free = self._scoring is None or self._scoring.done()
            if is_free and state != self._scored and time.monotonic() >= self._next_s:
                self._scoring = self._pool.submit(self._score, state)
        if self._board is None and self._scoring is not None:
            with suppress(TimeoutError):
                self._scoring.result(_PATIENCE_S)
        return self._board

    def film(self, team: str, place: Place) -> Clip | str | None:
        """The film of an episode of a team, or why there is none.

        None while it, or another of the team, is made.
        """
        with self._lock:
            if place in self._films:
                self._films.move_to_end(place)
                return self._films[place]
            if team not in self._making:
                self._making.add(team)
                self._pool.submit(self._shoot, team, place)
        return None

    def close(self) -> None:
        """End what is being made."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._hand is not None:
            self._hand.end()

    def _score(self, state: Hashable) -> None:
        start_s = time.monotonic()
        found = self._ask("board")
        if isinstance(found, str):
            _LOG.error("the leaderboard cannot be made: %s", found)
        else:
            self._board = found
        self._scored = state
        now_s = time.monotonic()
        least_s, most_s = _REST_S
        self._next_s = now_s + min(most_s, max(least_s, 5 * (now_s - start_s)))

    def _shoot(self, team: str, place: Place) -> None:
        found = self._ask("film", *place)
        with self._lock:
            self._films[place] = found
            while len(self._films) > _MOST_FILMS:
                self._films.popitem(last=False)
            self._making.discard(team)

    def _ask(self, *what: object) -> Any:
        if self._hand is None or not self._hand.is_alive:
            self._hand = Confined(_work, self._folder, forks=False)
        hand = self._hand
        hand.tell(what)
        with suppress(EOFError, OSError):
            if hand.pipe.poll(_LIMIT_S):
                return hand.pipe.recv()
        hand.end()
        return f"it was not made within {_LIMIT_S:g} s, or its process died"


# In the process ----------------------------------------------------------------------------------


def _work(hears: Connection, speaks: Connection, folder: Path) -> None:
    os.nice(_NICE)
    with suppress(EOFError):
        while True:
            kind, *given = hears.recv()
            try:
                speaks.send(_JOBS[kind](folder, *given))
            except Exception as err:  # noqa: BLE001 - of an environment, or of the ledger: it is told
                speaks.send(said(err, named=not isinstance(err, InputError)))


def _board(folder: Path) -> Board:
    from robo_eval.compete.scores import board

    with Ledger.open(folder) as ledger:
        found = board(ledger)
    return replace(found, entries=tuple(replace(one, quality=()) for one in found.entries))


def _film(folder: Path, attempt: int, trial: int, episode: int) -> Clip:
    """Play an episode again and pack what moved.

    Raises:
        InputError: If it is not what was recorded, or nothing can be drawn of it.
    """
    from robo_eval.compete.replay import played_again, unpacked
    from robo_eval.report.animation import pack
    from robo_eval.report.clips import described

    with Ledger.open(folder, read_only=True) as ledger:
        (ordinal,) = [one.attempt for one in ledger.attempts() if one.number == attempt]
        drawn = ledger.trials(ordinal)[trial]
        run, _ = ledger.ended_runs(attempt)[trial]
        place = ("episode", trial, run, episode)
        links = ledger.links(attempt)
        link = next(one for one in links if (one.kind, one.trial, one.run, one.episode) == place)
    if link.problem:
        raise InputError(f"the episode {link.problem}")
    if not link.actions:
        raise InputError("nothing was played of this episode")
    again = played_again(drawn, episode, unpacked(link.actions), keeps_motion=True)
    assert again.motion is not None
    if not again.motion.frames:
        raise InputError("its environment does not say what moves")
    shown = described(asdict(link.row), folder)
    return pack(
        again.motion, key=shown.episode_id, label=shown.label, caption=shown.caption,
        task=shown.task, outcome=shown.outcome,
    )  # fmt: skip


_JOBS: Final[Mapping[str, Callable[..., Any]]] = {"board": _board, "film": _film}
