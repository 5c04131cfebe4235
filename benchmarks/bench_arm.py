"""How fast the tasks of the arm are, as ratios of bare PyBullet and of their own steps.

python benchmarks/bench_arm.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium

from robo_eval.agents.registry import make_agent
from robo_eval_sim.arm import world as of_the_arm
from robo_eval_sim.engine import BY_VELOCITY, contacts, drive, joint_states, link_state, step

PLAYERS = {"RoboEval/PickPlace-v0": "pick-place", "RoboEval/Drawer-v0": "drawer"}
Episodes = list[tuple[int, list[Any], list[Any]]]
"""Seed, actions, and speeds of the motors in the steps of the engine in each tick."""
SEEDS = range(40)
BLOCKS = 5
TEXTS = {
    "step": "bare loop / step() (goal 0.92 and more)",
    "reset": "seeded reset / step (goal 0.2 and less)",
    "expert": "expert's episode, reset included / its steps (goal 1.5 and less)",
    "image": "picture of 84 x 84 / step (goal 2 and less)",
}


def seconds(work: Callable[[], object]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def recorded(env: Any, agent: Any) -> Episodes:
    """Seed, actions, and speeds of the motors of each episode."""
    found = []
    for seed in SEEDS:
        observation, _ = env.reset(seed=seed)
        agent.reset(seed=seed)
        actions, is_over = [], False
        while not is_over:
            actions.append(agent.act(observation))
            observation, _, terminated, truncated, _ = env.step(actions[-1])
            is_over = terminated or truncated
        found.append((seed, actions, []))
    return found


def driven(env: Any, episodes: Episodes) -> Episodes:
    """The episodes with the speeds that the motors were given in them."""
    ramp, found = of_the_arm.ramp, []
    for seed, actions, _ in episodes:
        speeds: list[Any] = []

        def heard(*given: Any, speeds: list[Any] = speeds) -> Any:
            speeds.append(ramp(*given))
            return speeds[-1]

        of_the_arm.ramp = heard
        env.reset(seed=seed)
        for action in actions:
            env.step(action)
        found.append((seed, actions, speeds))
    of_the_arm.ramp = ramp
    return found


def bare(env: Any, episodes: Episodes) -> float:
    """Time of the same speeds of motors, steps and raw reads without the environment."""
    world, total = env._world, 0.0
    robot, client, watched = world.robot, world.client, (*world.driven, world.hand)
    for seed, _, ticks in episodes:
        env.reset(seed=seed)
        start = time.process_time()
        for rows in ticks:
            for speeds in rows:
                drive(
                    robot,
                    world.driven,
                    BY_VELOCITY,
                    targetVelocities=speeds,
                    forces=world._forces,
                    physicsClientId=client,
                )
                step(client)
                joint_states(robot, watched, physicsClientId=client)
                contacts(robot, physicsClientId=client)
            link_state(robot, world.tip, 0, 1, physicsClientId=client)
            world.rest()
        total += time.process_time() - start
    return total


def stepped(env: Any, episodes: Episodes) -> float:
    """Time of the steps of the environment under the same actions."""
    total = 0.0
    for seed, actions, _ in episodes:
        env.reset(seed=seed)
        start = time.process_time()
        for action in actions:
            env.step(action)
        total += time.process_time() - start
    return total


def ratios(task: str, player: str) -> tuple[int, dict[str, list[float]]]:
    """Steps that were timed, and each ratio in each block."""
    env: Any = gymnasium.make(task).unwrapped
    agent: Any = make_agent(player)
    episodes = driven(env, recorded(env, agent))
    ticks = sum(len(actions) for _, actions, _ in episodes)
    rows: dict[str, list[float]] = {name: [] for name in TEXTS}
    seeing: Any = gymnasium.make(task, obs_mode="rgbd").unwrapped
    seeing.reset(seed=0)
    for _ in range(BLOCKS):
        raw, own = bare(env, episodes), stepped(env, episodes)
        step = own / ticks
        rows["step"].append(raw / own)
        resets = seconds(lambda: [env.reset(seed=seed) for seed in SEEDS])
        rows["reset"].append(resets / len(SEEDS) / step)
        rows["expert"].append(seconds(lambda: recorded(env, agent)) / own)
        images = seconds(lambda: [seeing._observe() for _ in range(20)])
        rows["image"].append(images / 20 / step)
    return ticks, rows


def main() -> None:
    """Print the ratios of each task: the median over blocks, and the least and greatest."""
    for task, player in PLAYERS.items():
        ticks, rows = ratios(task, player)
        print(f"{task}: {ticks} steps of {len(SEEDS)} episodes, {BLOCKS} blocks")
        for name, text in TEXTS.items():
            found = rows[name]
            print(f"  {text}: {statistics.median(found):.3f} [{min(found):.3f}, {max(found):.3f}]")


if __name__ == "__main__":
    main()
