"""What every task has to keep; run as a program, it goes over all that are installed.

It prints a line for each task, level and difficulty: a digest of what its episodes were.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from robo_eval.core.errors import RoboEvalError
from robo_eval.core.kinds import Difficulty
from robo_eval.core.task import TaskSpec, tasks

HOSTILE: tuple[dict[str, Any], ...] = (
    {"level": 9999},
    {"level": -1},
    {"level": True},
    {"level": "1"},
    {"difficulty": "harder"},
    {"profile": "none"},
    {"render_mode": "human!"},
    {"onset": 0},
    {"onset": 1.5},
    {"onset": True},
    {"onset": [5]},
    {"onset": [5, 5]},
    {"onset": [0, 5]},
    {"onset": [2, 5, 7]},
    {"onset": [2, 100_000]},
    {"onset": [1.5, 5]},
    {"novelty": {}},
    {"novelty": {"no such axis": 1.0}},
    {"novelty": 3.0},
)
"""Keywords that no task with levels takes."""
STATE_AFTER = 10
"""Ticks after which the state is taken."""
MAGNITUDES = (0.0, -1.0, float("nan"), float("inf"), 1e9, "much", None, True)


def conditions(spec: TaskSpec, *, is_quick: bool) -> Iterator[dict[str, Any]]:
    """Keywords of every level at every difficulty; one empty set for a task without levels.

    Quickly, levels take turns in their difficulty.
    """
    if not spec.levels():
        yield {}
    for level in spec.levels():
        for index, difficulty in enumerate(Difficulty):
            if not is_quick or index == level % 3:
                yield {"level": level, "difficulty": str(difficulty)}


def actions_of(env: gymnasium.Env, seed: int, ticks: int) -> list[Any]:
    """Actions that heed no observation."""
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(ticks)]


def played(env: gymnasium.Env, actions: list[Any], **start: Any) -> tuple[list[bytes], Any]:
    """What is seen and paid, and the state on the way if the task tells it."""
    observation, info = env.reset(**start)
    seen = [np.asarray(observation).tobytes()]
    hidden = [info]
    halfway = None
    for tick, action in enumerate(actions):
        observation, reward, terminated, truncated, info = env.step(action)
        seen.append(np.asarray(observation).tobytes() + np.float64(reward).tobytes())
        hidden.append(info)
        if terminated or truncated:
            break
        if tick + 1 == STATE_AFTER and hasattr(env.unwrapped, "get_state"):
            halfway = json.loads(json.dumps(env.unwrapped.get_state()))
    said = json.dumps(hidden, default=str)
    spec = getattr(env.unwrapped, "task", None)
    levels = {} if spec is None else spec.levels()
    names = [level.name for level in levels.values() if level.number]
    told = [word for word in ("novelty", *names) if word in said]
    assert not told, f"{told} is shown to who did not ask"
    return seen, halfway


def check(spec: TaskSpec, keywords: dict[str, Any]) -> str:
    """Whether one condition keeps the contract; a digest of its episode."""
    env = gymnasium.make(spec.env, **keywords)
    with warnings.catch_warnings():
        # Gymnasium's own CartPole has bounds that its checker warns of.
        warnings.simplefilter("error" if spec.levels() else "ignore")
        # An action of the arm is in radians and metres.
        warnings.filterwarnings("ignore", message=".*we recommend using a symmetric")
        check_env(env.unwrapped, skip_render_check=True, skip_close_check=True)
    actions = actions_of(env, 7, min(spec.max_ticks, 60))
    first, halfway = played(env, actions, seed=11)
    again, _ = played(env, actions, seed=11)
    assert again == first, "the same seed gives another episode"
    copy = pickle.loads(pickle.dumps(env.unwrapped))
    assert played(copy, actions, seed=11)[0] == first, "a pickled copy plays another episode"
    if halfway is not None:
        other = gymnasium.make(spec.env, **keywords)
        rest, _ = played(other, actions[STATE_AFTER:], options={"state": halfway})
        assert first[STATE_AFTER].startswith(rest[0]), "a state is not restored"
        assert rest[1:] == first[STATE_AFTER + 1 :], "a restored state goes on otherwise"
        other.close()
    for made in (env, copy):
        made.close()
        made.close()
    return hashlib.sha256(b"".join(first)).hexdigest()[:16]


def check_hostile(spec: TaskSpec) -> None:
    """Whether keywords that cannot be are refused in one line."""
    axes = [level.name for level in spec.levels().values() if level.number]
    wrong = [{"novelty": {axis: magnitude}} for axis in axes[:1] for magnitude in MAGNITUDES]
    for keywords in (*HOSTILE, *wrong) if axes else ():
        check_refused(spec, keywords)


def check_refused(spec: TaskSpec, keywords: dict[str, Any]) -> None:
    """Whether keywords are refused in one line."""
    said = ""
    try:
        gymnasium.make(spec.env, **keywords).close()
    except RoboEvalError as err:
        said = str(err)
    assert said, f"{spec.env} takes {keywords}"
    assert "\n" not in said, said


def check_novelty(spec: TaskSpec) -> None:
    """Whether each axis is played by its magnitude, from the start and from an onset on."""
    for level in spec.levels().values():
        table = level.tables["paper"]["hard"]
        if not table:
            continue
        entry = next(iter(table.values()))
        asked = {level.name: getattr(entry, "value", None) or entry.high}
        check(spec, {"novelty": asked})
        if level.no_onset:
            check_refused(spec, {"novelty": asked, "onset": STATE_AFTER})
            continue
        ends = [STATE_AFTER // 2, STATE_AFTER + 2]
        check(spec, {"novelty": asked, "onset": ends})
        later = gymnasium.make(spec.env, novelty=asked, onset=ends)
        drawn = set()
        for seed in range(60):
            later.reset(seed=seed)
            drawn.add(later.unwrapped.novelty["onset"])
        assert (min(drawn), max(drawn)) == tuple(ends), "ticks between the ends are drawn, both in"
        plain = gymnasium.make(spec.env)
        actions = actions_of(plain, 7, STATE_AFTER // 2 - 1)  # what is seen at the onset may differ
        same = [played(env, actions, seed=11)[0] for env in (later, plain)]
        assert same[0] == same[1], f"{asked} acts before its onset"
        later.close()
        plain.close()


def main(only: str, *how: str) -> None:
    """Go over every task whose id holds a text; `quick` leaves conditions out."""
    for spec in tasks().values():
        if only not in spec.env:
            continue
        check_hostile(spec)
        is_quick = "quick" in how
        if not is_quick:
            check_novelty(spec)
        for keywords in conditions(spec, is_quick=is_quick):
            try:
                said = f"{spec.env} {json.dumps(keywords)} {check(spec, keywords)}"
            except AssertionError as err:
                raise SystemExit(f"{spec.env} {keywords}: {err}") from err
            sys.stdout.write(f"{said}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
