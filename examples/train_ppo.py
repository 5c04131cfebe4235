"""Train Stable-Baselines3's PPO on a task of the arm, as it is: no wrapper, no glue.

Needs `pip install "robo-eval-stack[sim,train]"`. A few thousand steps show that it runs, and learn
nothing that lasts; grasping takes some hundred thousand.

    python examples/train_ppo.py --task RoboEval/Drawer-v0 --steps 3000
"""

import argparse

import gymnasium
from stable_baselines3 import PPO

from robo_eval.stats.proportions import wilson_interval
from robo_eval.stats.resampling import mean_interval

EPISODES = 10


def main() -> None:
    """Train, play, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="RoboEval/PickPlace-v0")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    env = gymnasium.make(given.task, action_mode="ee_delta")
    model = PPO("MlpPolicy", env, seed=given.seed, n_steps=min(512, given.steps))
    model.learn(given.steps)
    placed, returns = 0, []
    for seed in range(EPISODES):
        observation, info = env.reset(seed=seed)
        earned, is_over = 0.0, False
        while not is_over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, info = env.step(action)
            earned, is_over = earned + float(reward), terminated or truncated
        placed += info["is_success"]
        returns.append(earned)
    low, high = wilson_interval(placed, EPISODES)
    print(f"{given.task}, {given.steps} steps: {placed} of {EPISODES} episodes succeed", end="")
    mean = mean_interval(returns)
    spread = "no interval" if mean.low is None else f"{mean.low:.2f}, {mean.high:.2f}"
    print(f" [{low:.2f}, {high:.2f}], mean return {mean.value:.2f} [{spread}]")


if __name__ == "__main__":
    main()
