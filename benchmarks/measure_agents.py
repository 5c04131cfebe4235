"""How well the baseline agents do, and where adapting pays: the tables of docs/agents.md.

Run: .venv/bin/python benchmarks/measure_agents.py runs/agents

The folder holds two trials; called again, an interrupted run goes on. About 20 minutes on two
cores. The agents were tuned on seeds below 10,000; the seeds here start at 100,000.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from robo_eval.agents import agent_names
from robo_eval.core.plan import TrialPlan
from robo_eval.log.directory import TrialDirectory
from robo_eval.stats.proportions import wilson_interval
from robo_eval.stats.resampling import mean_interval, stratified_mean_interval
from robo_eval_sim.runner import run_simulated

DIFFICULTIES = ["easy", "medium", "hard"]
SEEDS = {"first": 100_000}
LEVEL_0 = {
    "name": "Baseline agents at level 0",
    # The difficulties of level 0 are the same episodes.
    "tasks": [{"levels": [0], "difficulties": ["easy"]}],
    "policies": agent_names(),
    "episodes": 1000,
    "seeds": SEEDS,
    "traces": "none",
}
CHANGED = LEVEL_0 | {
    "name": "Baseline agents at changed levels",
    "tasks": [{"levels": list(range(1, 17)), "difficulties": DIFFICULTIES}],
    "episodes": 100,
}


def main(folder: Path) -> None:
    survival(played(folder / "level_0", LEVEL_0))
    episodes = played(folder / "changed", CHANGED)
    means(episodes)
    for better in ("adaptive", "lookahead"):
        differences(episodes, better, "balancer")


def played(folder: Path, plan: dict[str, object]) -> pd.DataFrame:
    known = TrialDirectory.open(folder) if folder.exists() else None
    trial = known or TrialDirectory.create(folder, TrialPlan.model_validate(plan))
    run_simulated(trial)
    return trial.frame()


def survival(episodes: pd.DataFrame) -> None:
    print("\nFull episodes at level 0, with 95 % Wilson intervals:\n")
    print("| agent | survived | share | interval | mean performance |\n|---|---|---|---|---|")
    for name, own in episodes.groupby("policy"):
        k, n = int(own["success"].sum()), len(own)
        low, high = wilson_interval(k, n)
        mean = own["quality"].mean()
        print(f"| {name} | {k} of {n} | {k / n:.3f} | {low:.3f} to {high:.3f} | {mean:.3f} |")


def means(episodes: pd.DataFrame) -> None:
    print("\nMean performance, easy / medium / hard:\n")
    names = agent_names()
    print("| level | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    table = episodes.groupby(["level", "policy", "difficulty"])["quality"].mean()
    for level in sorted(episodes["level"].unique()):
        cells = [" / ".join(f"{table[level, name, d]:.2f}" for d in DIFFICULTIES) for name in names]
        print(f"| {level} | " + " | ".join(cells) + " |")


def differences(episodes: pd.DataFrame, better: str, worse: str) -> None:
    """Paired by seed; the interval of a level resamples the pairs of each difficulty."""
    print(f"\n{better} - {worse}, paired by seed, 95 % bootstrap intervals:\n")
    print("| level | easy | medium | hard | whole level |\n|---|---|---|---|---|")
    keys = ["level", "difficulty", "seed"]
    wide = episodes.pivot_table(index=keys, columns="policy", values="quality")
    pairs = wide[better] - wide[worse]
    for level in sorted(episodes["level"].unique()):
        strata = [pairs[level, d].to_numpy() for d in DIFFICULTIES]
        cells = [text(mean_interval(values)) for values in strata]
        whole = text(stratified_mean_interval(strata, over="these"))
        print(f"| {level} | " + " | ".join([*cells, whole]) + " |")


def text(interval: object) -> str:
    value, low, high = (getattr(interval, name) for name in ("value", "low", "high"))
    if low is None:
        return f"{value:+.3f}"
    shown = f"{value:+.3f} ({low:+.3f} to {high:+.3f})"
    return f"**{shown}**" if np.sign(low) * np.sign(high) > 0 else shown


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
