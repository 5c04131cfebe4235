"""How fast CartPole3D is, as a share of what bare PyBullet reaches; and how fast each task is."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pybullet

from robo_eval.core.task import tasks
from robo_eval_sim.tasks.cartpole3d.description import engine_urdf
from robo_eval_sim.tasks.cartpole3d.physics import LEVEL_0

ENVIRONMENT = "RoboEval/CartPole3D-v0"
BALLS = 3  # the mean number of balls of level 0
EPISODE = 25  # about how long a pole stands under random actions
TICKS = 100
BLOCKS = 8


class Bare:
    """A PyBullet loop with the same bodies: push, step, read everything, and nothing else.

    Args:
        lean: Without a force on each ball that cancels gravity: the robot alone is weighed, as
            the environment does it.
    """

    def __init__(self, *, lean: bool) -> None:
        self.lean = lean
        self.client = client = pybullet.connect(pybullet.DIRECT)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=0.02,
            numSubSteps=0,
            numSolverIterations=50,
            contactERP=0.08,
            contactSlop=1e-5,
            physicsClientId=client,
        )
        pybullet.setGravity(0, 0, 0 if lean else -9.8, physicsClientId=client)
        for axis in range(3):
            for side in (-1, 1):
                half = [5.05] * 3
                half[axis] = 0.05
                centre = [0.0, 0.0, 5.0]
                centre[axis] = (5.0 if axis < 2 else (10.0 if side > 0 else -0.1)) * (
                    side if axis < 2 else 1
                )
                self._body(0.0, pybullet.GEOM_BOX, centre, halfExtents=half)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.urdf"
            path.write_text(engine_urdf(LEVEL_0), encoding="utf-8")
            self.robot = pybullet.loadURDF(
                str(path),
                useFixedBase=True,
                flags=pybullet.URDF_USE_INERTIA_FROM_FILE,
                physicsClientId=client,
            )
        for joint in (0, 1):
            pybullet.setJointMotorControl2(
                self.robot, joint, pybullet.VELOCITY_CONTROL, force=0, physicsClientId=client
            )
        pybullet.setJointMotorControlMultiDof(
            self.robot,
            2,
            pybullet.POSITION_CONTROL,
            targetPosition=(0, 0, 0, 1),
            positionGain=0,
            velocityGain=0,
            force=(0, 0, 0),
            physicsClientId=client,
        )
        self.balls = [
            self._body(1.0, pybullet.GEOM_SPHERE, (2.5 * index - 3, 2, 5), radius=0.5)
            for index in range(BALLS)
        ]

    def _body(self, mass: float, kind: int, centre: object, **size: object) -> int:
        shape = pybullet.createCollisionShape(kind, physicsClientId=self.client, **size)
        body = pybullet.createMultiBody(mass, shape, -1, centre, physicsClientId=self.client)
        pybullet.changeDynamics(
            body, -1, lateralFriction=0, restitution=1, physicsClientId=self.client
        )
        return int(body)

    def restart(self) -> None:
        rng = np.random.default_rng(0)
        for index, ball in enumerate(self.balls):
            pybullet.resetBasePositionAndOrientation(
                ball, (2.5 * index - 3, 2, 5), (0, 0, 0, 1), self.client
            )
            speed = rng.uniform(6, 10, 3).tolist()
            pybullet.resetBaseVelocity(ball, speed, (0, 0, 0), self.client)
        for joint in (0, 1):
            pybullet.resetJointState(self.robot, joint, 0, 0, self.client)

    def play(self, actions: list[int]) -> None:
        client, robot, balls = self.client, self.robot, self.balls
        world = pybullet.WORLD_FRAME
        pushes = ((0, 0, 0), (10, 0, 0), (-10, 0, 0), (0, 10, 0), (0, -10, 0))
        cart, pole = pybullet.getLinkStates(robot, (1, 2), 1, 1, client)
        where = [pybullet.getBasePositionAndOrientation(ball, client)[0] for ball in balls]
        for tick, action in enumerate(actions):
            if tick % EPISODE == 0:  # keep the pole up, as an environment's resets would
                pybullet.resetJointStateMultiDof(robot, 2, (0, 0, 0, 1), (0, 0, 0), client)
            pybullet.applyExternalForce(robot, 1, pushes[action], cart[0], world, client)
            if self.lean:
                pybullet.applyExternalForce(robot, 2, (0, 0, -0.98), pole[0], world, client)
            else:
                for ball, at in zip(balls, where, strict=True):
                    pybullet.applyExternalForce(ball, -1, (0, 0, 9.8), at, world, client)
            pybullet.stepSimulation(client)
            cart, pole = pybullet.getLinkStates(robot, (1, 2), 1, 1, client)
            where = []
            for ball in balls:
                where.append(pybullet.getBasePositionAndOrientation(ball, client)[0])
                pybullet.getBaseVelocity(ball, client)


def play_environment(env: gymnasium.Env, actions: list[int]) -> None:
    """Random actions with a reset whenever an episode ends."""
    step = env.step
    for action in actions:
        _, _, terminated, truncated, _ = step(action)
        if terminated or truncated:
            env.reset()


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(repeats: int) -> dict[str, float]:
    """Least seconds of each kind, taken in turns so that all meet the same disturbances.

    Short blocks that are the same in every repeat: on a busy machine the least time of a block
    is that of an undisturbed one, and it is not chosen for having had little to do.
    """
    env = gymnasium.make(ENVIRONMENT, balls=BALLS)
    bare, lean = Bare(lean=False), Bare(lean=True)
    rng = np.random.default_rng(0)
    blocks = rng.integers(5, size=(BLOCKS, TICKS)).tolist()
    best: dict[tuple[str, int], float] = {}

    def keep(name: str, block: int, seconds: float) -> None:
        best[name, block] = min(best.get((name, block), 1e9), seconds)

    for _ in range(repeats):
        for block, actions in enumerate(blocks):
            bare.restart()
            keep("bare", block, seconds_of(partial(bare.play, actions)) / TICKS)
            env.reset(seed=block)
            keep("environment", block, seconds_of(partial(play_environment, env, actions)) / TICKS)
            lean.restart()
            keep("lean", block, seconds_of(partial(lean.play, actions)) / TICKS)
            keep("make", block, seconds_of(lambda: gymnasium.make(ENVIRONMENT)))
    names = dict.fromkeys(name for name, _ in best)
    return {
        name: float(np.mean([value for (kind, _), value in best.items() if kind == name]))
        for name in names
    }


def reset_in_ticks(ticks: int, *, seeded: bool) -> tuple[float, float, float]:
    """Median and mean time of a reset as a share of that of a step, and the median in seconds.

    Timed one by one while random actions are played, as in use: what a reset finds in the
    processor's caches is what steps left there.
    """
    env = gymnasium.make(ENVIRONMENT)
    env.reset(seed=0)
    steps, resets = [], []
    for index, action in enumerate(np.random.default_rng(0).integers(5, size=ticks).tolist()):
        started = time.perf_counter()
        _, _, terminated, truncated, _ = env.step(action)
        steps.append(time.perf_counter() - started)
        if terminated or truncated:
            seed = index if seeded else None
            resets.append(seconds_of(partial(env.reset, seed=seed)))
    median = float(np.median(resets))
    return median / float(np.median(steps)), float(np.mean(resets) / np.mean(steps)), median


def _worker(ticks: int, results: multiprocessing.Queue, go: multiprocessing.Event) -> None:
    env = gymnasium.make(ENVIRONMENT)
    env.reset(seed=os.getpid())
    actions = np.random.default_rng(0).integers(5, size=ticks).tolist()
    play_environment(env, actions[:200])
    results.put(0.0)
    go.wait()
    results.put(seconds_of(partial(play_environment, env, actions)))


def throughput(processes: int, ticks: int = 20_000) -> float:
    """Ticks per second of several processes together."""
    context = multiprocessing.get_context("spawn")
    results, go = context.Queue(), context.Event()
    workers = [context.Process(target=_worker, args=(ticks, results, go)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for _ in workers:
        results.get()
    go.set()
    slowest = max(results.get() for _ in workers)
    for worker in workers:
        worker.join()
    return processes * ticks / slowest


def tick_of(env: gymnasium.Env, ticks: int = 1000) -> float:
    """Seconds a tick of random actions takes, resets included."""
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(ticks)]
    env.reset(seed=0)

    def play() -> None:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return min(seconds_of(play) for _ in range(3)) / ticks


def each_task() -> None:
    """A line for every level of every task that is installed."""
    print("task, level                     us a tick    to the first")
    for spec in tasks().values():
        first = None
        for level in spec.levels() or (None,):
            keywords = {} if level is None else {"level": level, "difficulty": "hard"}
            env = gymnasium.make(spec.env, **keywords)
            took = tick_of(env)
            env.close()
            first = first or took
            name = spec.title if level is None else f"{spec.title}, {level}"
            print(f"{name:32} {1e6 * took:8.1f} {took / first:15.2f}")


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text(encoding="utf-8").splitlines() if cpus.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--single", action="store_true", help="leave out several processes")
    arguments = parser.parse_args()
    print(machine())
    best = measure(arguments.repeats)
    micro = {name: 1e6 * seconds for name, seconds in best.items()}
    tick = best["environment"]
    print(f"bare PyBullet, {BALLS} balls      {micro['bare']:7.1f} us a tick")
    print(f"bare, the robot alone weighed {micro['lean']:6.1f} us a tick")
    print(f"environment, with resets     {micro['environment']:7.1f} us a tick")
    print(f"environment / bare            {best['bare'] / tick:.2f} (goal: at least 0.80)")
    print(f"environment / lean bare       {best['lean'] / tick:.2f}")
    for seeded in (False, True):
        runs = [reset_in_ticks(60_000, seeded=seeded) for _ in range(3)]
        median, mean, seconds = (min(run[part] for run in runs) for part in range(3))
        name = "seeded reset" if seeded else "reset, hidden tick included"
        goal = "" if seeded else " (goal: at most 2)"
        print(f"{name:28} {1e6 * seconds:7.1f} us, median")
        print(f"  in ticks                    {median:.2f} by medians, {mean:.2f} by means{goal}")
    print(f"gymnasium.make              {micro['make'] / 1e3:8.2f} ms (goal: under 20)")
    if arguments.single:
        return
    pairs = [(throughput(1), throughput(2)) for _ in range(3)]
    one, two = max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
    print(f"two processes / one           {two / one:.2f} (goal: at least 1.8)")
    each_task()


if __name__ == "__main__":
    main()
