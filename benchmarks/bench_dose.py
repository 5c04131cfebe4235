"""How long a dose curve takes, and what a second process brings.

python benchmarks/bench_dose.py [--seeds 100]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval_sim.runner import run_simulated

PLAN = """
name: bench
tasks: [{{env: RoboEval/PickPlace-v0, axes: {{friction: [{magnitudes}]}}}}]
policies:
  - pick-place
  - name: without-retry
    factory: robo_eval.agents.arm.pick_place:PickPlace
    kwargs: {{recovers: false}}
episodes: {seeds}
"""
MAGNITUDES = (0.2, 0.15, 0.12, 0.1, 0.08, 0.07, 0.06)
BLOCKS = 3


def seconds(folder: Path, magnitudes: tuple[float, ...], seeds: int, jobs: int) -> float:
    """Wall time of playing a curve."""
    text = PLAN.format(magnitudes=", ".join(map(str, magnitudes)), seeds=seeds)
    trial = TrialDirectory.create(folder, parse_plan(text, source="plan"))
    return run_simulated(trial, jobs=jobs).seconds


def main() -> None:
    """Print the ratio of one process to two, and the time of a whole curve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gains = []
        for block in range(BLOCKS):
            one, two = (
                seconds(folder / f"{block}-{jobs}", MAGNITUDES[::3], 40, jobs) for jobs in (1, 2)
            )
            gains.append(one / two)
        print(
            "one process / two, 320 episodes (goal 1.8 and more):"
            f" {statistics.median(gains):.2f} [{min(gains):.2f}, {max(gains):.2f}]"
        )
        took = seconds(folder / "whole", MAGNITUDES, given.seeds, 2)
        count = (len(MAGNITUDES) + 1) * given.seeds * 2
        print(
            f"{len(MAGNITUDES)} magnitudes x {given.seeds} seeds x 2 policies: {took:.0f} s", end=""
        )
        print(f" on two processes, {count} episodes with those without novelty")


if __name__ == "__main__":
    main()
