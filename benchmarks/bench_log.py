"""What a logged row and a traced message cost, next to the simulated episode they come from.

Goals: rows at most 5 % of an episode's time, traces at most 15 microseconds per message.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mcap.reader import make_reader

from robo_eval.core.canonical import canonical_json
from robo_eval.core.episode import Episode
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.trajectory import Trajectory
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.provenance import machine
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace import read_trace, write_trace
from robo_eval.log.verify import verify_trial

PLAN = "name: bench\ntasks: [{levels: [0]}]\npolicies: [nothing]\n"
ROWS = 2000
BATCH = 8
REPEATS = 7
TICKS = 200


def simulated() -> tuple[float, dict[str, Any], Trajectory] | None:
    """Seconds of one full episode, its initial state and its motion; none without simulator."""
    try:
        import gymnasium

        env = gymnasium.make("RoboEval/CartPole3D-v0")
        env.unwrapped.records_motion = True
    except Exception as err:  # noqa: BLE001 - any reason will do: the rest needs no simulator
        print(f"no simulator here ({err}); made-up numbers instead")
        return None
    times, longest, trajectory = [], 0, made_up()
    state: dict[str, Any] = {}
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        state = env.unwrapped.physical_state()
        observations, actions, rewards = [observation], [], []
        started = time.perf_counter()
        done = False
        while not done:
            action = seed % 5
            observation, reward, terminated, truncated, _ = env.step(action)
            observations.append(observation)
            actions.append(action)
            rewards.append(reward)
            done = terminated or truncated
        times.append((time.perf_counter() - started) / len(rewards))
        if len(rewards) > longest:
            longest = len(rewards)
            trajectory = env.unwrapped.trajectory(
                np.asarray(observations, dtype=np.float64),
                np.asarray(actions, dtype=np.float64)[:, None],
                np.asarray(rewards, dtype=np.float64),
            )
    return statistics.median(times) * TICKS, state, trajectory


def made_up(n: int = TICKS + 1) -> Trajectory:
    rng = np.random.default_rng(0)
    observations = np.zeros((n, 276))
    observations[:, :72] = rng.normal(size=(n, 72))
    return Trajectory(
        stamp_ns=np.arange(n, dtype=np.int64) * 20_000_000,
        joint_names=("x", "y", "roll", "pitch"),
        joint_position=rng.normal(size=(n, 4)),
        joint_velocity=rng.normal(size=(n, 4)),
        frames=("cart", "pole", *(f"ball_{i}" for i in range(10))),
        pose_world_frame=rng.normal(size=(n, 12, 7)),
        actions=rng.normal(size=(n - 1, 1)),
        rewards=rng.normal(size=n - 1),
        observations=observations,
        robot_description="<robot/>",
    )


def made_up_state() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    ball = {"position": rng.normal(size=3).tolist(), "velocity": rng.normal(size=3).tolist()}
    return {"cart_position": [0.1, 0.2], "tick": 0, "balls": [ball] * 6}


def episode(i: int, state: dict[str, Any]) -> Episode:
    return Episode(
        episode_id=f"t0-l00-easy-nothing-s{i}-sim",
        plan_digest="0" * 64,
        side=Side.SIM,
        task="RoboEval/CartPole3D-v0",
        level=0,
        difficulty="easy",
        profile="paper",
        seed=i,
        policy="nothing",
        policy_digest="1" * 64,
        start_ns=time.time_ns(),
        duration_s=4.0,
        ticks=TICKS,
        episode_return=1.0,
        quality=1.0,
        success=True,
        end_reason=EndReason.SUCCESS,
        initial_state=state,
        software="robo-eval",
    )


def per_row(folder: Path, state: dict[str, Any], *, durable: bool, rows: int) -> float:
    episodes = [episode(i, state) for i in range(rows)]
    trial = TrialDirectory.create(folder, parse_plan(PLAN, source="plan"))
    with trial.lock(), EpisodeStore(trial.path, durable=durable) as store:
        started = time.perf_counter()
        for first in range(0, rows, BATCH):
            store.append(episodes[first : first + BATCH])
        return (time.perf_counter() - started) / rows


def best(call: Callable[[], object]) -> float:
    """Median seconds of a call."""
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def bench_rows(folder: Path, state: dict[str, Any], episode_s: float | None) -> None:
    text = len(canonical_json(state))
    taken = [per_row(folder / f"r{i}", state, durable=False, rows=ROWS) for i in range(3)]
    row_s = statistics.median(taken)
    plain = {"state": state, "numbers": list(range(40))}
    bare_s = best(lambda: hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).digest())
    durable_s = per_row(folder / "durable", state, durable=True, rows=200)
    print(f"\nrows in batches of {BATCH}, initial state of {text} bytes (us per row)")
    print(f"  synchronous NORMAL {row_s * 1e6:10.0f}   {row_s / bare_s:.1f} x JSON and SHA-256")
    print(f"  synchronous FULL   {durable_s * 1e6:10.0f}   {durable_s / row_s:.1f} x NORMAL")
    if episode_s is not None:
        share = row_s / (row_s + episode_s)
        print(
            f"  share of a {TICKS}-tick episode of {episode_s * 1e3:.1f} ms: {share:.1%} (goal 5 %)"
        )
    verify_s = best(lambda: verify_trial(folder / "r0")) / ROWS
    with EpisodeStore(folder / "r0", durable=False) as store:
        frame_s = best(store.frame) / ROWS
    print(f"  verify {verify_s * 1e6:.0f}, read as a table {frame_s * 1e6:.0f}")


def bench_traces(folder: Path, trajectory: Trajectory, episode_s: float | None) -> None:
    # A new name each time, as in a run: file systems flush a file that replaces another.
    names = (folder / f"{len(trajectory.frames)}-{i}.mcap" for i in itertools.count())
    write_s = best(lambda: write_trace(next(names), trajectory))
    path = folder / f"{len(trajectory.frames)}-0.mcap"
    read_s = best(lambda: read_trace(path))
    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
    messages = summary.statistics.message_count
    ticks = len(trajectory.rewards)
    raw = sum(index.uncompressed_size for index in summary.chunk_indexes)
    print(f"\ntrace of {ticks} ticks: {messages} messages, {len(trajectory.frames)} frames")
    print(f"  written in {write_s / messages * 1e6:.1f} us per message (goal 15)")
    print(f"  read in {read_s / messages * 1e6:.1f} us per message")
    print(
        f"  {path.stat().st_size / 1e3:.0f} kB, {raw / path.stat().st_size:.1f} x smaller than raw"
    )
    if episode_s is not None:
        print(f"  {write_s / (episode_s * ticks / TICKS):.2f} of the episode's time")


def main() -> None:
    where = machine()
    print(f"{where['cpu']}, {where['cores']} cores, {where['system']}")
    print(f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    found = simulated()
    episode_s, state, trajectory = found or (None, made_up_state(), made_up())
    with tempfile.TemporaryDirectory() as name:
        bench_rows(Path(name), state, episode_s)
        bench_traces(Path(name), trajectory, episode_s)
        if found is not None:
            print("\nthe same with ten balls and random numbers, which do not compress")
            bench_traces(Path(name), made_up(), None)


if __name__ == "__main__":
    main()
