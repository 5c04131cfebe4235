"""Trying a competition out: whether a client gets through, and what an agent would get."""

from __future__ import annotations

import contextlib
import statistics
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gymnasium

from robo_eval.compete.client import play
from robo_eval.compete.link import rules_of, token_of, told_rules
from robo_eval.compete.players import enter_baselines, play_baselines, played
from robo_eval.compete.serving import Serving
from robo_eval.core.errors import InputError, foreign
from robo_eval.metrics.trials import has_not_begun

if TYPE_CHECKING:
    from robo_eval.compete.ledger import Ledger
    from robo_eval.compete.players import Announce


def tried(url: str, token: str | None) -> dict[str, Any]:
    """Ask a competition what it is and how the team stands, and play an episode that is none.

    Raises:
        CompetitionError: If there is none at the url, or it speaks another protocol.
        InputError: If the token is refused.
    """
    rules, token = told_rules(url), token_of(url, token)
    standing = rules_of(url, path="/v1/me", token=token)
    tasks = [_rehearsed(url, token, str(task["env"])) for task in rules["tasks"]]
    return {"name": rules["name"], **standing, "tasks": tasks}


def _rehearsed(url: str, token: str, task: str) -> dict[str, Any]:
    env = gymnasium.make("RoboEval/Remote-v0", url=url, token=token, task=task, rehearsal=True)
    acted_s: list[float] = []

    def act(_observation: object) -> Any:
        acted_s.append(time.perf_counter())
        return env.action_space.sample()

    with contextlib.closing(env):
        play(env, SimpleNamespace(act=act))
    took_s = [after - before for before, after in pairwise([*acted_s, time.perf_counter()])]
    return {"env": task, "ticks": len(took_s), "step_ms": 1e3 * statistics.median(took_s)}


def practised(
    ledger: Ledger, name: str, factory: str | None, announce: Announce | None = None
) -> dict[str, Any]:
    """Let an agent play everything through a server of this process.

    Args:
        ledger: Of the competition.
        name: Of a registered agent.
        factory: What makes the agent in its place, `MODULE:CALLABLE`.
        announce: Is told how the baselines played; None leaves them out.

    Raises:
        InputError: If the agent cannot be made or does not play this.
    """
    from robo_eval.agents import make_agent

    agent: Any = make_agent(name) if factory is None else agent_made_by(factory)
    ledger.add_team("you")
    (team,) = ledger.teams()
    if announce is not None:
        enter_baselines(ledger)
    serving = Serving(type(ledger).open(ledger.folder), port=0)
    serving.start()
    try:
        played(serving, team, lambda _space: agent)
        if announce is not None:
            play_baselines(serving, announce)
    finally:
        serving.stop()
    mine = [one.number for one in ledger.attempts() if one.team == team.number]
    links = [link for number in mine for link in ledger.links(number) if link.kind == "episode"]
    drawn, parts = ledger.trials(), {False: list[float](), True: list[float]()}
    quality: list[float] = []
    for link in links:
        quality.append(link.row.quality or 0.0)
        if not has_not_begun(link.row.novelty):
            parts[drawn[link.trial].episodes[link.episode].is_novel].append(quality[-1])
    return {
        "episodes": len(links),
        "trials": len({link.trial for link in links}),
        "mean_quality": _mean(quality),
        "normal_quality": _mean(parts[False]),
        "novel_quality": _mean(parts[True]),
    }


def agent_made_by(factory: str) -> Any:
    """What `MODULE:CALLABLE` returns.

    Raises:
        InputError: If it cannot be called, or what it returns does not act.
    """
    from robo_eval.agents.registry import callable_at

    where = f"factory {factory!r}"
    with foreign(where, "calling it"):
        made = callable_at(factory, where)()
    if not callable(getattr(made, "act", None)):
        raise InputError(f"{where}: returned a {type(made).__name__} without act(observation)")
    return made


def _mean(values: list[float]) -> float | None:
    return statistics.fmean(values) if values else None
