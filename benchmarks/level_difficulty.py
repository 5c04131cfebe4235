"""How a balancing policy's mean performance falls from easy to hard, for each novelty level.

Prints the table of docs/environments/cartpole3d.md; `--write` puts it there. Every difficulty of
a level plays the same seeds, so that the fall is a paired difference.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import gymnasium
import numpy as np

from robo_eval.agents import make_agent
from robo_eval.core.kinds import Difficulty, Profile
from robo_eval.stats.resampling import mean_interval, paired_difference_interval
from robo_eval_sim.novelty import levels

PAGE = Path(__file__).parents[1] / "docs/environments/cartpole3d.md"
BEGIN, END = "<!-- level_difficulty: begin -->", "<!-- level_difficulty: end -->"
FIRST_SEED = 50_000

Cell = tuple[int, str, str]


def performance(env: gymnasium.Env, seed: int) -> float:
    """Share of the 200 ticks that the balancer's pole stands."""
    observation, _ = env.reset(seed=seed)
    policy = make_agent("balancer")
    policy.reset(seed=seed)
    earned, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        earned += reward
        done = terminated or truncated
    return earned


def play(cell: Cell, episodes: int) -> tuple[Cell, list[float]]:
    level, difficulty, profile = cell
    env = gymnasium.make(
        "RoboEval/CartPole3D-v0", level=level, difficulty=difficulty, profile=profile
    )
    scores = [performance(env, FIRST_SEED + index) for index in range(episodes)]
    env.close()
    return cell, scores


def play_all(episodes: int) -> dict[Cell, list[float]]:
    cells = [
        (level, difficulty.value, profile.value)
        for level in levels()
        for profile in Profile
        for difficulty in (Difficulty if level else [Difficulty.EASY])
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(play, cells, [episodes] * len(cells)))


def mean(scores: list[float]) -> str:
    found = mean_interval(np.array(scores), seed=0)
    if found.low is None or found.high is None:
        return f"{found.value:.2f}"
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def fall(easy: list[float], hard: list[float]) -> str:
    found = paired_difference_interval(np.array(easy), np.array(hard), seed=0)
    if found.low is None or found.high is None:
        return f"{found.value:+.2f}: none seen"
    text = f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f})"
    if found.low > 0:
        return text
    return f"{text}: {'rises' if found.high < 0 else 'not shown'}"


def table(scores: dict[Cell, list[float]], profile: str) -> list[str]:
    lines = [
        "| level | easy | medium | hard | fall, easy to hard |",
        "|---|---|---|---|---|",
        f"| 0 none | {mean(scores[0, 'easy', profile])} | | | |",
    ]
    for number, level in levels().items():
        if number == 0:
            continue
        easy, medium, hard = (scores[number, d.value, profile] for d in Difficulty)
        lines.append(
            f"| {number} {level.name} | {mean(easy)} | {mean(medium)} | {mean(hard)}"
            f" | {fall(easy, hard)} |"
        )
    return lines


def write(text: str) -> None:
    """Put the tables between the marks on the page."""
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    PAGE.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--write", action="store_true", help="put the tables on the page")
    arguments = parser.parse_args()
    scores = play_all(arguments.episodes)
    parts = []
    for profile in Profile:
        parts.append(f"Profile `{profile.value}`, {arguments.episodes} episodes a cell:")
        parts.append("\n".join(table(scores, profile.value)))
    text = "\n\n".join(parts)
    print(text)
    if arguments.write:
        write(text)


if __name__ == "__main__":
    main()
