"""Train the agent of the AIQ paper: deep Q-learning, 2 layers of 512 units, no look at the balls.

Needs `pip install "robo-eval-stack[sim,train]"`. Ten minutes of one core; with OMP_NUM_THREADS=1
the same seed gives the same network on the same machine. Writes the weights to runs/dqn and, beside
them, where they come from; what is shipped in examples/dqn was made so. A plan plays it without
torch: `policies: [{name: dqn, factory: "robo_eval.study.played:network", kwargs:
{path: examples/dqn/level_0.npz, observed: 11}}]`.
"""

import argparse
import json
import platform
import time
from dataclasses import asdict
from pathlib import Path

import gymnasium
import numpy as np

from robo_eval.core.canonical import file_digest
from robo_eval.core.installed import PYBULLETS, versions_of
from robo_eval.stats.resampling import mean_interval
from robo_eval.study.domain import Task
from robo_eval.study.dqn import Learning, train_dqn
from robo_eval.study.network import Architecture
from robo_eval.study.played import network, read_network
from robo_eval_sim.tasks.cartpole3d.layout import BALL_COUNT, PUSHES

ENV = "RoboEval/CartPole3D-v0"
OBSERVED = BALL_COUNT  # cart and pole; what comes after them are the balls
# A tick survived is worth 1 while training, so values are up to 1 / (1 - 0.99) = 100.
LEARNING = Learning(
    rate=3e-4, reward=200.0, temperature=(1.0, 0.1), checks=30, check_episodes=30
)  # fmt: skip
JUDGED = 100
JUDGED_SEED = 1_000_000  # no episode of training or of its checks


def train(path: Path, level: int, steps: int, seed: int) -> None:
    """Train, write the weights, and measure what was written."""
    task = {"env": ENV, "kwargs": {"level": level}}
    built = Architecture(inputs=BALL_COUNT, hidden=(512, 512), outputs=len(PUSHES))
    begun = time.perf_counter()
    trained = train_dqn(
        built,
        lambda: gymnasium.make(ENV, level=level),
        steps=steps,
        seed=seed,
        exploration="boltzmann",
        observed=OBSERVED,
        learning=LEARNING,
    )
    took = time.perf_counter() - begun
    path.parent.mkdir(parents=True, exist_ok=True)
    # Half precision halves the file; what is measured below are these numbers.
    np.savez_compressed(
        path, **{name: one.astype(np.float16) for name, one in trained.arrays().items()}
    )
    judged = Task(
        name=f"level {level}", expert=network(path, observed=OBSERVED), observed=OBSERVED, **task
    ).performances(read_network(path), JUDGED, seed=JUDGED_SEED)
    found = mean_interval(judged, seed=0)
    # Episodes that all end alike have no interval.
    low, high = (None if end is None else round(end, 4) for end in (found.low, found.high))
    provenance = {
        "what": "deep Q-learning with Boltzmann exploration, examples/train_dqn.py",
        "file": path.name,
        "sha256": file_digest(path),
        "task": task,
        "observed": OBSERVED,
        "hidden": built.hidden,
        "parameters": built.size,
        "steps": steps,
        "seed": seed,
        "learning": asdict(LEARNING),
        "minutes": round(took / 60.0, 1),
        "versions": {
            "python": platform.python_version(),
            **versions_of(("robo-eval-stack", "numpy", "gymnasium", *PYBULLETS,
                           "stable-baselines3", "torch")),
        },
        "performance": {
            "mean": round(found.value, 4),
            "low": low,
            "high": high,
            "level": 0.95,
            "method": found.method,
            "n": JUDGED,
            "seed": JUDGED_SEED,
        },
    }  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps(provenance, indent=2) + "\n")
    print(
        f"{path}: performance {found.value:.3f}, 95 % interval {low} to {high},"
        f" n={JUDGED}, trained in {took / 60.0:.1f} minutes"
    )


def main() -> None:
    """Train the agent that is shipped, or another one."""
    parser = argparse.ArgumentParser(description="Train the DQN agent of the AIQ paper.")
    parser.add_argument("--out", type=Path, default=Path("runs/dqn/level_0.npz"))
    parser.add_argument("--level", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    train(given.out, given.level, given.steps, given.seed)


if __name__ == "__main__":
    main()
