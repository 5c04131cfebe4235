"""What times of answers tell of novelty: measured by the server itself, and told in its rules."""

from __future__ import annotations

import asyncio
import secrets
import statistics
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import gymnasium

from robo_eval.compete.arena import Arena
from robo_eval.compete.competition import Competition
from robo_eval.compete.draw import TrialDraw
from robo_eval.compete.worlds import Job, JobResult, Start, TrialSetting
from robo_eval.core.errors import CheckFailedError
from robo_eval.core.wording import counted
from robo_eval.stats.proportions import wilson_interval

PAIRS = 60
"""Pairs of episodes of each task, as many as there are novelties at least."""
_TICKS: Final = 40
_Ask = Callable[[str, Any], Awaitable[JobResult]]


def untold(competition: Competition, why: str) -> list[dict[str, Any]]:
    """What the rules say of each task where nothing was measured."""
    return [
        {"env": task.env, "sentence": f"{why[:1].upper()}{why[1:]}."} for task in competition.tasks
    ]


async def measured(
    arena: Arena,
    competition: Competition,
    place: int,
    drawn: Iterable[TrialDraw],
    space: gymnasium.Space[Any],
    room: int,
) -> dict[str, Any]:
    """In how many pairs of a normal and a novel episode the novel one had the slower answers.

    It looks how long the worlds of each novelty take to be made. Without a grid it plays such pairs
    of other seeds than those of the competition, by the way that a team's messages go, and compares
    the times of their resets and the median times of their first steps. Each pair is of its own
    episodes, so that the interval is that of a share.

    Args:
        arena: Where the worlds are.
        competition: Whose.
        place: Which of its tasks.
        drawn: Trials of it by another secret.
        space: Space of its actions.
        room: A number that no team has.

    Raises:
        CheckFailedError: If a world breaks.
        WorldLostError: If its process is lost.
    """
    task, hand = competition.tasks[place], await arena.seat()

    async def ask(kind: str, given: Any) -> JobResult:
        answer = await hand.ask(Job(next(arena.numbers), room, kind, [0], [given]))
        for why in answer.broken.values():
            raise CheckFailedError(f"{task.env}: broke while it was measured: {why}")
        return answer

    novelties = {one.cell: one for one in drawn if one.task == place and one.onset is not None}
    n, n_slower, slower_resets, slowest_s = 0, 0, 0, 0.0
    grid_ms, loop = competition.answer_grid_ms, asyncio.get_running_loop()
    try:
        for trial in novelties.values():
            begin_s = loop.time()
            await ask("open", TrialSetting(task, (trial.nominal_keywords, trial.keywords)))
            slowest_s = max(slowest_s, loop.time() - begin_s)
            for _ in range(0 if grid_ms else -(-PAIRS // len(novelties))):
                took_s = [(0.0, 0.0), (0.0, 0.0)]
                for kind in ((0, 1), (1, 0))[n % 2]:  # a machine may become slower meanwhile
                    took_s[kind] = await _took_s(ask, space, kind)
                n += 1
                slower_resets += took_s[1][0] > took_s[0][0]
                n_slower += took_s[1][1] > took_s[0][1]
        await ask("close", None)
    finally:
        hand.rooms -= 1
    told: dict[str, Any] = {"env": task.env, "slowest_opening_s": slowest_s}
    if grid_ms and novelties:
        return {**told, "sentence": f"Answers leave on a grid of {grid_ms:g} ms."}
    if not n:
        return {"env": task.env, "sentence": "It has no novelty that times could tell."}
    low, high = wilson_interval(n_slower, n)
    reset_low, reset_high = wilson_interval(slower_resets, n)
    share, resets = n_slower / n, slower_resets / n
    sentence = (
        f"Of {counted(n, 'pair')} of a normal and a novel episode, the novel one had the slower"
        f" steps in {share:.0%} [{low:.0%}, {high:.0%}], and the slower reset in {resets:.0%}"
        f" [{reset_low:.0%}, {reset_high:.0%}]; 50% tells nothing."
    )
    told |= {"pairs": n, "novel_is_slower": share, "low": low, "high": high}
    told |= {"reset_is_slower": resets, "reset_low": reset_low, "reset_high": reset_high}
    return {**told, "sentence": sentence}


async def _took_s(ask: _Ask, space: gymnasium.Space[Any], kind: int) -> tuple[float, float]:
    """Time of the reset and median of the first steps of an episode, played at random, seconds."""
    loop, took_s = asyncio.get_running_loop(), []
    begin_s = loop.time()
    await ask("reset", Start(seed=secrets.randbelow(2**31), kind=kind, told={}))
    reset_s = loop.time() - begin_s
    for _ in range(_TICKS):
        action = space.sample()
        begin_s = loop.time()
        answer = await ask("step", action)
        took_s.append(loop.time() - begin_s)
        if answer.ended:
            break
    return reset_s, statistics.median(took_s)
