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
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from train_ppo import entry

from robo_eval.core.errors import InputError
from robo_eval.core.plan import CalibrationPlan, Way, read_plan
from robo_eval.core.spread import done
from robo_eval.core.task import task_named
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.snapshot import read_snapshot
from robo_eval.stats.clustered import new_cluster_difference, new_cluster_rate

# As the `calibrations` of a plan take them: what one would say who never recorded this gantry.
RANDOMISED = {
    "cart_mass_kg": (0.5, 3.0), "pole_com_height_m": (0.8, 1.2),
    "slide_friction_n_s_m": (0.0, 2.0), "delay_s": (0.0, 0.1),
    "position_noise_m": (0.0, 0.002), "velocity_noise_m_s": (0.0, 0.04),
    "tilt_noise_rad": (0.0, 0.008), "tilt_rate_noise_rad_s": (0.0, 0.08),
    "force_noise_n": (0.0, 1.0), "force_memory_s": (0.0, 1.0),
}  # fmt: skip
SIMULATORS = ("calibrated", "randomised", "nominal")
ENVS, ROLLOUT = 8, 256
TICKS_PER_S = 2000  # of one core, in training


class Training(NamedTuple):
    """One network: where it goes, and what it learns in."""

    path: Path
    task: str
    keywords: dict[str, Any]
    way: Way
    seed: int
    steps: int


class Simulator(gymnasium.Wrapper):  # type: ignore[type-arg]
    """Made anew for every episode, with the constants of that episode."""

    def __init__(self, job: Training) -> None:
        self._job = job
        self._rng = np.random.default_rng(job.seed)
        super().__init__(self._made(0))

    def _made(self, seed: int) -> gymnasium.Env[Any, Any]:
        constants = dict(self._job.way.constants) | self._job.way.drawn(seed)
        return gymnasium.make(self._job.task, **self._job.keywords, constants=constants)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the seed, if there is one, is of this and all that follow."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        own = int(self._rng.integers(2**31))
        self.env.close()
        self.env = self._made(own)
        return self.env.reset(seed=own, options=options)


def train(job: Training) -> None:
    """Learn, and save the network."""
    torch.set_num_threads(1)  # threads of small networks only wait for each other
    envs = make_vec_env(lambda: Simulator(job), ENVS, seed=job.seed)
    rollout = min(ROLLOUT, max(32, job.steps // ENVS))
    model = PPO("MlpPolicy", envs, seed=job.seed, device="cpu", learning_rate=1e-3,
                n_steps=rollout, batch_size=256)  # fmt: skip
    model.learn(job.steps).save(job.path)


def tell(trial: TrialDirectory) -> None:
    """Success of each simulator's trainings, and how far they are apart."""
    rows = trial.frame()
    if rows["success"].isna().any():
        sys.exit(f"some episodes have no score; see why: robo-eval metrics {trial.path}")
    rows[["simulator", "training"]] = rows["policy"].str.rsplit("-", n=1, expand=True)
    rows["success"] = rows["success"].astype(float)
    won = rows.pivot_table("success", ["training", "seed"], "simulator")
    starts = len(won.index.unique("seed"))
    print(f"success on {trial.plan.name} by simulator learnt in [95 % interval], n: trainings")
    for name in SIMULATORS:
        print(f" {name}: {new_cluster_rate(won[name].groupby('training').sum(), starts)}")
    print("differences on the same starts, from the same first weights; these hold together:")
    for one, other in combinations(SIMULATORS, 2):
        apart = won[one] - won[other]
        sums = [(sign * apart).clip(0).groupby("training").sum() for sign in (1, -1)]
        found = new_cluster_difference(*sums, starts, level=1 - 0.05 / 3)
        better = one if (found.low or 0) > 0 else other if (found.high or 0) < 0 else None
        verdict = "no difference shown" if better is None else f"{better} transfers better"
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
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    given = parser.parse_args()
    try:
        snapshot, plan = read_snapshot(given.snapshot), read_plan(given.plan)
        for problem in [p for task in plan.tasks for p in snapshot.problems(task=task.env)]:
            raise InputError(f"{given.snapshot} does not fit {given.plan}: {problem}")
        TrialDirectory.check_new(given.out)
    except InputError as err:
        parser.error(str(err))
    spec = task_named(snapshot.task)
    logarithmic = tuple(one.name for one in spec.constants if one.is_log)
    drawn = CalibrationPlan(name="randomised", randomised=RANDOMISED, logarithmic=logarithmic)
    ways = {
        "calibrated": Way(constants=tuple(snapshot.played().items())),
        "randomised": drawn.ways()[0],
        "nominal": Way(),
    }
    jobs = [
        Training(given.out / f"{name}-{seed}.zip", snapshot.task, snapshot.keywords, ways[name],
                 seed, given.steps)
        for seed in range(given.trainings) for name in SIMULATORS
    ]  # fmt: skip
    ticks = len(jobs) * (given.steps + given.episodes * spec.max_ticks)
    print(
        f"{len(jobs)} trainings of {given.steps} ticks, {len(jobs) * given.episodes} episodes:"
        f" up to {ticks / TICKS_PER_S / given.jobs / 60:.1f} minutes on {given.jobs} cores",
        flush=True,
    )
    given.out.mkdir(parents=True, exist_ok=True)
    for count, (job, _) in enumerate(done(jobs, train, workers=given.jobs), 1):
        print(f"{job.path} is written, {count} of {len(jobs)}", file=sys.stderr)
    played = plan.model_dump(mode="json", exclude_unset=True) | {
        "policies": [entry(job.path, job.path.stem) for job in jobs],
        "episodes": given.episodes, "traces": "none", "seeds": {"first": 5000},
    }  # fmt: skip
    (given.out / "plan.yaml").write_text(yaml.safe_dump(played, sort_keys=False))
    command = ["run", given.out / "plan.yaml", "--out", given.out / "trial", "--no-report"]
    command = [sys.executable, "-m", "robo_eval", *map(str, command), "--jobs", str(given.jobs)]
    if code := subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        sys.exit(code)
    tell(TrialDirectory.open(given.out / "trial"))


if __name__ == "__main__":
    main()
