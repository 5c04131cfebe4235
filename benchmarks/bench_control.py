"""How regular the control loop over ROS 2 is: periods, missed ticks and lost requests.

Twin and guard run as processes of their own; this process asks for no motion at every control tick
(50 Hz) through the guard and waits for the next state, as the conductor does. Once while the
machine is left alone, once with a busy process on every core. `--seconds 600` is a soak.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from robo_eval_robot.children import children
from robo_eval_robot.config import read_robot
from robo_eval_robot.link import RUNNING, RobotLink

ROBOT = Path(__file__).parents[1] / "ros2_ws/src/robo_eval_twin/robo_eval_twin/gantry_twin.yaml"


def busy() -> None:
    """Keep a core busy."""
    while True:
        pass


def measure(link: RobotLink, seconds: float) -> str:
    """One line of figures."""
    link.reset()
    link.event(event="prepare", keywords={"level": 0, "balls": 0}, seed=0)
    link.wait(lambda: False, 1.0)
    link.event(event="go")
    link.enable()
    before = int(link.guard.values["requests"])
    tick_ns = round(1e9 / link.config.control_rate_hz)
    assert link.latest is not None
    last, periods, missed, sent = link.latest, [], 0, 0
    end = time.monotonic() + seconds
    stopped = ""
    while time.monotonic() < end:
        link.request([0.0] * len(link.config.commanded))
        sent += 1
        snapshot = link.next_snapshot(last.stamp_ns + tick_ns // 2, 1.0)
        if snapshot is None or link.guard.state != RUNNING:
            stopped = f", stopped by the guard after {sent} ticks: {link.guard.cause}"
            break
        periods.append(snapshot.received_s - last.received_s)
        missed += round((snapshot.stamp_ns - last.stamp_ns) / tick_ns) - 1
        last = snapshot
    link.wait(lambda: False, 0.3)
    heard = int(link.guard.values["requests"]) - before
    link.disable()
    return (
        f"{len(periods)} ticks: period p1 {1e3 * np.quantile(periods, 0.01):.1f}, p50"
        f" {1e3 * np.quantile(periods, 0.5):.1f}, p99 {1e3 * np.quantile(periods, 0.99):.1f}, max"
        f" {1e3 * max(periods):.1f} ms; {missed} ticks missed; {sent - heard} of {sent} requests"
        f" did not reach the guard{stopped}"
    )


def main() -> None:
    """Measure with the machine left alone, and under load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROS_LOG_DIR"] = folder
        with children(Path(folder)) as own:
            own.start("twin", "robo_eval_twin.twin_node", [str(ROBOT)])
            own.start("guard", "robo_eval_robot.guard_node", [str(ROBOT)])
            link = RobotLink(read_robot(ROBOT), "bench")
            link.connect()
            print("left alone:", measure(link, given.seconds), flush=True)
            load = [multiprocessing.Process(target=busy) for _ in range(os.cpu_count() or 1)]
            for process in load:
                process.start()
            try:
                print("under load:", measure(link, min(given.seconds, 30.0)), flush=True)
            finally:
                for process in load:
                    process.kill()
            link.close()


if __name__ == "__main__":
    main()
