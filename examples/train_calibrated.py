"""Which simulator to train in: as it is, calibrated, or with constants drawn anew each episode?

Needs `pip install "robo-eval-stack[sim,train]"`. Stable-Baselines3's PPO learns several times in
each of the three. All that was learnt plays a plan, here of a stand-in with hidden constants, and a
training counts once, however many episodes it plays:

    robo-eval run examples/plans/gantry.yaml --out runs/gantry
    robo-eval calibrate fit runs/gantry --out runs/gantry.yaml \\
        --given push_gain=1 --given pole_mass_kg=0.1
    python examples/train_calibrated.py runs/gantry.yaml examples/plans/gantry.yaml
    robo-eval metrics runs/learners/trial
"""

import argparse
import subprocess
import sys
from functools import partial
from itertools import combinations
from operator import call
from pathlib import Path
from typing import Any

import gymnasium
import torch
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from train_ppo import entry

from robo_eval.core.errors import InputError
from robo_eval.core.plan import Way, read_plan
from robo_eval.core.spread import done
from robo_eval.core.task import task_named
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.snapshot import read_snapshot
from robo_eval.stats.clustered import new_cluster_difference, new_cluster_rate

# What one would say who never recorded this gantry; a plan's `calibrations` take the same ranges.
RANGES = (
    ("cart_mass_kg", 0.5, 3.0), ("pole_com_height_m", 0.8, 1.2),
    ("slide_friction_n_s_m", 0.0, 2.0), ("delay_s", 0.0, 0.1),
    ("position_noise_m", 0.0, 0.002), ("velocity_noise_m_s", 0.0, 0.04),
    ("tilt_noise_rad", 0.0, 0.008), ("tilt_rate_noise_rad_s", 0.0, 0.08),
    ("force_noise_n", 0.0, 1.0), ("force_memory_s", 0.0, 1.0),
)  # fmt: skip
ENVS = 8  # each with a seed of its own, and so trainings are as many seeds apart
TICKS_PER_S = 2000  # of one core, in training


class Simulator(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Made anew for every episode, with the constants of that episode."""

    def __init__(self, make: partial[Any], way: Way) -> None:
        super().__init__(make())
        self._make, self._way = make, way

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; without a seed it follows from the episode before."""
        own = int(self.np_random.integers(2**31)) if seed is None else seed
        self.env.close()
        self.env = self._make(constants=dict(self._way.constants) | self._way.drawn(own))
        return self.env.reset(seed=own, options=options)


def train(path: Path, make: partial[Any], way: Way, seed: int, steps: int) -> None:
    """Learn in a simulator, and save the network."""
    torch.set_num_threads(1)  # threads of small networks only wait for each other
    envs = make_vec_env(lambda: Simulator(make, way), ENVS, seed=seed)
    rollout = min(256, max(32, steps // ENVS))
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", learning_rate=1e-3,
                n_steps=rollout, batch_size=256)  # fmt: skip
    model.learn(steps).save(path)


def tell(trial: TrialDirectory) -> None:
    """Success of each simulator's trainings, and how far they are apart."""
    rows = trial.frame()
    if rows["success"].isna().any():
        sys.exit(f"some episodes have no score; see why: robo-eval metrics {trial.path}")
    rows[["simulator", "training"]] = rows["policy"].str.rsplit("-", n=1, expand=True)
    won = rows.astype({"success": float}).pivot_table("success", ["training", "seed"], "simulator")
    starts = len(won.index.unique("seed"))
    ranked = won.mean().sort_values(ascending=False).index
    print(f"success on {trial.plan.name} by simulator learnt in [95 % interval], n: trainings")
    for name in ranked:
        print(f" {name}: {new_cluster_rate(won[name].groupby('training').sum(), starts)}")
    print("differences on the same starts, from the same first weights; these hold together:")
    for one, other in combinations(ranked, 2):
        apart = won[one] - won[other]
        sums = [(sign * apart).clip(0).groupby("training").sum() for sign in (1, -1)]
        found = new_cluster_difference(*sums, starts, level=1 - 0.05 / 3)
        verdict = f"{one} transfers better" if (found.low or 0) > 0 else "no difference shown"
        print(f" {one} - {other}: {found}, {verdict}")


def main() -> None:
    """Train in each simulator, play, and say which transfers best."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("snapshot", type=Path, help="made by `robo-eval calibrate fit`")
    parser.add_argument("plan", type=Path, help="its tasks are played")
    parser.add_argument("--out", type=Path, default=Path("runs/learners"))
    parser.add_argument("--steps", type=int, default=50_000, help="ticks of each training")
    parser.add_argument("--trainings", type=int, default=8, help="in each simulator; 3 at least")
    parser.add_argument("--episodes", type=int, default=20, help="of each network")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    given = parser.parse_args()
    try:
        if min(given.steps, given.trainings, given.episodes, given.jobs) < 1:
            raise InputError("--steps, --trainings, --episodes and --jobs: each must be 1 or more")
        snapshot, plan = read_snapshot(given.snapshot), read_plan(given.plan)
        for problem in [p for task in plan.tasks for p in snapshot.problems(task=task.env)]:
            raise InputError(f"{given.snapshot} does not fit {given.plan}: {problem}")
        TrialDirectory.check_new(given.out)
    except InputError as err:
        parser.error(str(err))
    spec = task_named(snapshot.task)
    logarithmic = tuple(constant.name for constant in spec.constants if constant.is_log)
    ways = {
        "nominal": Way(),
        "calibrated": Way(constants=tuple(snapshot.played().items())),
        "randomised": Way(ranges=RANGES, logarithmic=logarithmic),
    }
    make = partial(gymnasium.make, snapshot.task, **snapshot.keywords)
    jobs = {
        f"{name}-{index}": partial(
            train, given.out / f"{name}-{index}.zip", make, way, index * ENVS, given.steps
        )
        for index in range(given.trainings)
        for name, way in ways.items()
    }
    ticks = len(jobs) * (given.steps + given.episodes * spec.max_ticks)
    print(
        f"{len(jobs)} trainings of {given.steps} ticks, {len(jobs) * given.episodes} episodes:"
        f" about {ticks / TICKS_PER_S / given.jobs / 60:.1f} minutes on {given.jobs} cores",
        flush=True,
    )
    given.out.mkdir(parents=True, exist_ok=True)
    for count, _ in enumerate(done([*jobs.values()], call, workers=given.jobs), 1):
        print(f"{count} of {len(jobs)} trained", file=sys.stderr)
    played = plan.model_dump(mode="json", exclude_unset=True) | {
        "policies": [entry(job.args[0], name) for name, job in jobs.items()],
        "episodes": given.episodes, "traces": "none", "seeds": {"first": 5000},
    }  # fmt: skip
    (given.out / "plan.yaml").write_text(yaml.safe_dump(played, sort_keys=False))
    command = [sys.executable, "-m", "robo_eval", "run", given.out / "plan.yaml", "--no-report",
               "--out", given.out / "trial", "--jobs", str(given.jobs)]  # fmt: skip
    if code := subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        sys.exit(code)
    tell(TrialDirectory.open(given.out / "trial"))


if __name__ == "__main__":
    main()
