"""Agents that play on the organiser's machine: the baselines, and whoever else is called there."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import gymnasium

from robo_eval.agents import load_policy
from robo_eval.compete.client import play
from robo_eval.compete.ledger import Ledger
from robo_eval.compete.serving import Serving
from robo_eval.core.confined import Confined
from robo_eval.core.errors import said
from robo_eval.core.trials import call_if_there
from robo_eval.log.planned_row import novelty_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from robo_eval.compete.ledger import Team, Turn
    from robo_eval.core.plan import PolicyPlan

_LOOK_S: Final = 30.0
_LEAST_PRIORITY: Final = 19
Announce = Callable[[str], None]


def played(
    serving: Serving,
    team: Team,
    agent_for: Callable[[gymnasium.Space[Any]], Any],
    announce: Announce = lambda _line: None,
    who: str = "",
) -> None:
    """Let an agent play all that a team has left, by the server of this process.

    Args:
        serving: The server.
        team: Whose agent it is; nobody needs its token.
        agent_for: Gives the agent for an action space; see `client.play`.
        announce: Is told of each task that was played.
        who: The agent, in words.
    """
    token = secrets.token_urlsafe(24)
    serving.house.passes[token] = team
    serving.wait()
    own = [one for one in serving.house.ledger.attempts() if one.team == team.number]
    before = ", the others before this start" if own and not own[-1].ended_ns else ""
    for task in dict.fromkeys(task.env for task in serving.house.competition.tasks):
        env = gymnasium.make("RoboEval/Remote-v0", url=serving.url, token=token, task=task)
        with contextlib.closing(env):
            count = play(env, agent_for(env.action_space))
        announce(f"{who}: {count} episodes of {task} played{before}")


# Baselines ---------------------------------------------------------------------------------------


def enter_baselines(ledger: Ledger) -> None:
    """Add the teams of the baselines that are not there yet."""
    names = [policy.name for policy in ledger.competition.baselines]
    add_missing(ledger, names, is_baseline=True)


def add_missing(ledger: Ledger, names: Iterable[str], *, is_baseline: bool = False) -> None:
    """Add the teams that are not there yet; nobody gets their tokens."""
    known = {team.name for team in ledger.teams()}
    for name in names:
        if not is_baseline:
            ledger.competition.check_free(name)
        if name not in known:
            ledger.add_team(name)


def play_in_background(serving: Serving) -> None:
    """Have the baselines played for as long as a server runs.

    They play in a process of their own, with a server and a world of its own, to which the system
    gives what time others leave. It dies with this one; what was not played then is played when the
    server starts again.
    """
    folder = serving.house.ledger.folder
    if serving.house.competition.baselines:
        serving.at_end(Confined(_go_on, folder, forks=False).end)


def _go_on(_hears: Connection, _speaks: Connection, folder: Path) -> None:
    os.nice(_LEAST_PRIORITY)
    given_up: set[str] = set()
    while True:
        with Ledger.open(folder) as ledger:
            is_due = any(True for _ in _due(ledger, given_up))
        if is_due:
            serving = Serving(Ledger.open(folder), port=0, workers=1)
            serving.start()
            try:
                given_up |= play_baselines(serving, partial(print, file=sys.stderr), given_up)
            finally:
                serving.stop()
        time.sleep(_LOOK_S)


def play_baselines(
    serving: Serving, announce: Announce, given_up: set[str] | None = None
) -> set[str]:
    """Let each baseline play what it may, one after the other.

    Args:
        serving: A server of this process.
        announce: Is told how it went.
        given_up: Names of those that do not play.

    Returns:
        Names of those that failed.
    """
    failed = set()
    for team, policy in _due(serving.house.ledger, given_up or set()):
        who, agent = f"baseline {team.name}", partial(_baseline, serving, team, policy)
        try:
            played(serving, team, agent, announce, who)
        except Exception as err:  # noqa: BLE001 - of any agent; others go on
            if getattr(err, "code", "") != "elsewhere":  # another server plays it, or did
                failed.add(team.name)
                announce(f"{who}: plays no more: {said(err)}")
    return failed


def _due(ledger: Ledger, given_up: set[str]) -> Iterator[tuple[Team, PolicyPlan]]:
    """Baselines that have an attempt to play: the first, and each that a team has begun."""
    policies = {policy.name: policy for policy in ledger.competition.baselines}
    teams, attempts = ledger.teams(), ledger.attempts()
    own = {team.number for team in teams if team.name in policies}
    most = max([1, *(one.attempt for one in attempts if one.team not in own)])
    for team in teams:
        ended = sum(one.team == team.number and one.ended_ns is not None for one in attempts)
        is_asked = team.number in own and team.name not in given_up and ended < most
        if is_asked and ledger.standing(team).state in ("ready", "playing", "late"):
            yield team, policies[team.name]


def _baseline(serving: Serving, team: Team, policy: PolicyPlan, _space: object) -> Any:
    made = load_policy(policy.name, policy.factory, policy.kwargs)
    is_informed = policy.name == serving.house.competition.trials.informed
    return _Told(made, partial(serving.house.turn_of, team)) if is_informed else made


class _Told:
    """An agent that is told the novelty of each episode, as the informed one of a plan is."""

    def __init__(self, agent: Any, turn: Callable[[], Turn]) -> None:
        self._agent = agent
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def reset(self) -> None:
        """Tell it, and begin the episode that the server has begun."""
        turn = self._turn()
        trial, drawn = turn.trial, turn.trial.episodes[turn.episode]
        env = gymnasium.make(trial.env, **trial.keywords_of(turn.episode))
        try:
            env.reset(seed=drawn.seed)
            novelty = novelty_of(env)
        finally:
            env.close()
        told = {"novelty_indicator": trial.place(turn.episode).indicator, "novelty": novelty}
        call_if_there(self._agent, "begin_episode", told)
        call_if_there(self._agent, "reset")
