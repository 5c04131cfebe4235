"""How agreement of simulator and twin falls as the hidden physics departs from the simulator.

Plays matched episodes of CartPole3D (no balls) on the twin's physics and in the simulator, for
growing friction, and prints success on both sides and S2S with its interval; `--plot FILE` draws
them. The twin is driven tick by tick without ROS in between, so that hundreds of episodes take a
minute; topics and real time are what the tests and `robo-eval demo` add.

Run: `python benchmarks/twin_perturbation.py [--pairs 60] [--plot s2s.html]`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from robo_eval.agents import make_agent
from robo_eval.metrics.agreement import compare_sides
from robo_eval_robot.adapter import load_adapter
from robo_eval_robot.config import Perturbation, RobotConfig, read_robot
from robo_eval_robot.snapshot import ImuReading, JointReading, Snapshot
from robo_eval_sim.tasks.cartpole3d.environment import CartPole3DEnv
from robo_eval_sim.tasks.cartpole3d.layout import ENV, PUSHES
from robo_eval_twin.body import Reading
from robo_eval_twin.gantry import Gantry

ROBOT = Path(__file__).parents[1] / "ros2_ws/src/robo_eval_twin/robo_eval_twin/gantry_twin.yaml"
LEVELS = (0, 1, 9, 14)
FIRST_SEED = 1000


def snapshot_of(reading: Reading) -> Snapshot:
    """What the link would make of the twin's messages."""
    return Snapshot(
        stamp_ns=0,
        received_s=0.0,
        joints={
            name: JointReading(position=float(p), velocity=float(v), effort=float(e))
            for name, p, v, e in zip(
                Gantry.joints, reading.position, reading.velocity, reading.effort, strict=True
            )
        },
        imu=ImuReading(
            quat_xyzw=tuple(map(float, reading.quat_xyzw)),  # type: ignore[arg-type]
            angular_velocity=tuple(map(float, reading.angular_velocity)),  # type: ignore[arg-type]
        ),
    )


def play_twin(
    config: RobotConfig, hidden: Perturbation, level: int, seed: int, agent: str
) -> tuple[int, dict[str, Any]]:
    """Ticks survived on the twin, and the state it measured at the start."""
    keywords = {"level": level, "balls": 0}
    adapter = load_adapter(config, ENV, keywords)
    gantry = Gantry(hidden, None)
    gantry.arrange(keywords, seed=seed)
    policy = make_agent(agent)
    policy.reset(seed=seed)
    reading = gantry.tick()
    assert reading is not None
    start = state = adapter.state(snapshot_of(reading), 0)
    gantry.arm()
    tick, over = 0, False
    while not over:
        gantry.hear(PUSHES[int(policy.act(adapter.observation(state)))])
        tick += 1
        reading = gantry.tick()
        if reading is not None:
            state = adapter.state(snapshot_of(reading), tick)
        over = any(adapter.is_over(state, tick))
    gantry.close()
    return tick, start


def play_sim(start: dict[str, Any], level: int, seed: int, agent: str) -> int:
    """Ticks survived in the simulator from the same state."""
    env = CartPole3DEnv(level=level, balls=0)
    observation, _ = env.reset(seed=seed, options={"state": start})
    policy = make_agent(agent)
    policy.reset(seed=seed)
    tick, over = 0, False
    while not over:
        observation, _, terminated, truncated, _ = env.step(policy.act(observation))
        tick += 1
        over = terminated or truncated
    env.close()
    return tick


def table(hidden: Perturbation, pairs: int, agent: str) -> pd.DataFrame:
    """Rows of both sides."""
    config = read_robot(ROBOT)
    rows = []
    for number in range(pairs):
        level, seed = LEVELS[number % len(LEVELS)], FIRST_SEED + number
        survived, start = play_twin(config, hidden, level, seed, agent)
        both = {"twin": survived, "sim": play_sim(start, level, seed, agent)}
        for side, ticks in both.items():
            rows.append(
                {
                    "episode_id": f"{number}-{side}", "pair_id": str(number), "side": side,
                    "task": ENV, "policy": agent, "level": level, "seed": seed,
                    "quality": ticks / 200.0, "success": ticks == 200,
                    "end_reason": "success" if ticks == 200 else "failure",
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def main() -> None:
    """Print the table, and draw it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--agent", default="balancer")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    print(f"{given.agent}, {given.pairs} pairs each")
    found = []
    for delay in (0, 1, 2, 3, 4):
        hidden = Perturbation(mass_scale=1.0 + 0.1 * delay, delay_ticks=delay)
        agreement = compare_sides(table(hidden, given.pairs, given.agent), side="twin")
        s2s = agreement.agreement
        found.append((delay, s2s.value, s2s.low, s2s.high))
        print(
            f"delay {delay} ticks, masses x {hidden.mass_scale:.1f}: AR_sim"
            f" {agreement.ar_sim.value:.2f}, AR_twin {agreement.ar_physical.value:.2f},"
            f" S2S {s2s.value:.2f} [{s2s.low:.2f}, {s2s.high:.2f}]",
            flush=True,
        )
    if given.plot is not None:
        import plotly.graph_objects as go

        delay, value, low, high = (np.array(column) for column in zip(*found, strict=True))
        figure = go.Figure(
            go.Scatter(
                x=delay,
                y=value,
                error_y={"array": high - value, "arrayminus": value - low},
                mode="lines+markers",
            )
        )
        figure.update_layout(
            xaxis_title="hidden delay, control ticks (masses grow by 10 % each)",
            yaxis_title="S2S, 95 % interval",
            yaxis_range=[0, 1.02],
        )
        figure.write_html(given.plot, include_plotlyjs=True)


if __name__ == "__main__":
    main()
