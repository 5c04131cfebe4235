"""Train Stable-Baselines3's PPO on a task of the arm, as it is: no wrapper, no glue.

Needs `pip install "robo-eval-stack[sim,train]"`. A few thousand steps show that it runs, and learn
nothing that lasts; grasping takes some hundred thousand. From training to a comparison:

    python examples/train_ppo.py --task RoboEval/Drawer-v0 --steps 3000 --save ppo.zip
    robo-eval run ppo.yaml --out runs/ppo
    robo-eval compare runs/ppo
"""

import argparse
import shlex
from pathlib import Path

import gymnasium
import yaml
from stable_baselines3 import PPO

from robo_eval.stats.proportions import wilson_interval
from robo_eval.stats.resampling import mean_interval


def entry(path: Path, name: str, **more: str) -> dict[str, object]:
    """The policy of a plan that plays what was saved there."""
    return {
        "name": name,
        "factory": "robo_eval.agents.foreign:stable_baselines3",
        "kwargs": {"path": str(path), "algorithm": "PPO"},
        **more,
    }


def main() -> None:
    """Train, play, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="RoboEval/PickPlace-v0")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--action-mode", default="joint_position", help="that of the baselines")
    parser.add_argument("--save", type=Path, help="ends in .zip; a plan is written beside it")
    parser.add_argument("--baseline", default="arm-random", help="whom the plan compares it with")
    given = parser.parse_args()
    if given.save is not None and given.save.suffix != ".zip":
        parser.error(f"--save {given.save}: name a file that ends in .zip")
    env = gymnasium.make(given.task, action_mode=given.action_mode)
    model = PPO("MlpPolicy", env, seed=given.seed, n_steps=min(512, given.steps))
    model.learn(given.steps)
    placed, returns = 0, []
    for seed in range(given.episodes):
        observation, info = env.reset(seed=seed)
        earned, is_over = 0.0, False
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, info = env.step(action)
            earned, is_over = earned + float(reward), terminated or truncated
        placed += info["is_success"]
        returns.append(earned)
    low, high = wilson_interval(placed, given.episodes)
    print(
        f"{given.task}, {given.steps} steps: {placed} of {given.episodes} episodes succeed", end=""
    )
    mean = mean_interval(returns)
    spread = "no interval" if mean.low is None else f"{mean.low:.2f}, {mean.high:.2f}"
    print(f" [{low:.2f}, {high:.2f}], mean return {mean.value:.2f} [{spread}]")
    if given.save is not None:
        given.save.parent.mkdir(parents=True, exist_ok=True)
        model.save(given.save)
        plan = given.save.with_suffix(".yaml")
        learnt = entry(given.save, "ppo", action_mode=given.action_mode)
        content = {
            "name": f"PPO after {given.steps} steps",
            "tasks": [{"env": given.task}],
            "policies": [given.baseline, learnt],
            "episodes": given.episodes,
        }
        plan.write_text(yaml.safe_dump(content, sort_keys=False))
        command = shlex.join(
            ["robo-eval", "run", str(plan), "--out", str(given.save.with_suffix(""))]
        )
        print(f"written: {given.save}, {plan}; next: {command}")


if __name__ == "__main__":
    main()
