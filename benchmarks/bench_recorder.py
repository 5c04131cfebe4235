"""What the recorder costs at 4 topics x 1 kHz from another process, and what it loses.

Goal: nothing lost. The share of a core depends on the machine; beside it stands that of the process
that publishes the same messages.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROBOT = ROOT / "ros2_ws/src/robo_eval_bringup/config/gantry_twin.yaml"
RIG = ROOT / "tests/ros/rig_publisher.py"
TOPICS = (
    "joint_states",
    "policy/joint_command",
    "forward_effort_controller/commands",
    "imu_sensor_broadcaster/imu",
)
CAMERAS = ("camera/image/compressed", "side/image/compressed")
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor time of a process so far, s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Rig:
    """The publishing process."""

    def __init__(self, env: dict[str, str], namespace: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(RIG), namespace],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def do(self, name: str, **arguments: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def measure(
    env: dict[str, str], root: Path, robot: Path, hz: dict[str, float], seconds: float
) -> None:
    """One episode; prints one line."""
    recorder = subprocess.Popen(
        [sys.executable, "-m", "robo_eval_robot.recorder", str(robot), "--root", str(root)], env=env
    )
    rig = Rig(env, "/twin0")
    try:
        rig.do("offer", names=list(hz))
        assert rig.do("match", timeout_s=20.0)
        before = cpu_s(recorder.pid)
        time.sleep(3.0)
        idle = (cpu_s(recorder.pid) - before) / 3.0
        rig.do("event", event="start", episode_id="bench", uri="bench")
        assert rig.do("status", states=["recording"], timeout_s=10.0)
        before, other, start = cpu_s(recorder.pid), cpu_s(rig.process.pid), time.monotonic()
        sent = rig.do("flood", hz=hz, seconds=seconds)
        wall = time.monotonic() - start
        share = (cpu_s(recorder.pid) - before) / wall
        publisher = (cpu_s(rig.process.pid) - other) / wall
        time.sleep(0.5)
        rig.do("event", event="end", episode_id="bench")
        status = rig.do("status", states=["closed", "error"], timeout_s=10.0)
        lost = {name: n - status["counts"][f"/twin0/{name}"] for name, n in sent.items()}
        size = sum(file.stat().st_size for file in (root / "bench").iterdir())
        print(
            f"{sum(sent.values()) / wall:7.0f} messages/s of {len(hz)} topics: recorder {share:.0%}"
            f" of a core (idle {idle:.0%}), publisher {publisher:.0%}; lost {sum(lost.values())} of"
            f" {sum(sent.values())}, dropped says {status['dropped']}; {size / 1e6:.1f} MB"
        )
    finally:
        rig.process.stdin.close()
        rig.process.wait(10)
        recorder.send_signal(signal.SIGTERM)
        recorder.wait(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    if importlib.util.find_spec("rclpy") is None:
        print("no ROS 2 here, nothing was measured")
        return
    env = {
        **os.environ,
        "ROS_DOMAIN_ID": str(1 + os.getpid() % 100),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    text = ROBOT.read_text() + "record:\n  topics:\n"
    text += "".join(f"    {name}: sensor_msgs/msg/CompressedImage\n" for name in CAMERAS)
    for hz in (
        dict.fromkeys(TOPICS, 100.0),
        dict.fromkeys(TOPICS, 1000.0),
        {**dict.fromkeys(TOPICS, 1000.0), **dict.fromkeys(CAMERAS, 30.0)},
    ):
        with tempfile.TemporaryDirectory() as folder:
            robot = Path(folder) / "robot.yaml"
            robot.write_text(text)
            env["ROS_LOG_DIR"] = folder
            measure(env, Path(folder), robot, hz, seconds)


if __name__ == "__main__":
    main()
