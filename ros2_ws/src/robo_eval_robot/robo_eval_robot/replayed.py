"""What a robot did in a recorded episode, tick by tick, as the simulator can be asked about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.log.joint_trace import JointTrace, read_joint_trace
from robo_eval_robot.adapter import Adapter
from robo_eval_robot.config import RobotConfig
from robo_eval_robot.snapshot import ImuReading, JointReading, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """States of an episode and what was applied between them.

    Attributes:
        states: State at the end of each tick, from the start on; None where none was recorded.
        applied: Force of each tick, as the adapter gives it.
    """

    states: list[dict[str, Any] | None]
    applied: list[tuple[float, ...]]


def motion_of(
    bag: Path,
    config: RobotConfig,
    adapter: Adapter,
    start: Mapping[str, Any],
    *,
    ticks: int,
) -> Motion:
    """Read a motion from a bag.

    Each state belongs to the tick its stamp says. What was applied is known up to the first tick
    whose state was not recorded.

    Args:
        bag: Folder of the bag.
        config: The robot.
        adapter: Of the task.
        start: State the episode started from, as its row has it.
        ticks: Most ticks to read.

    Raises:
        InputError: If the bag has no such start, or the robot does not measure what it applies.
    """
    snapshots = _snapshots(bag, config)
    # While a twin is held it shows the same state again and again; the last is where it began.
    begins = [i for i, s in enumerate(snapshots) if adapter.state(s, 0) == dict(start)]
    if not begins:
        raise InputError(f"{bag}: no state in it is the one the episode's row says it started in")
    first = snapshots[begins[-1]]
    by_tick: dict[int, Snapshot] = {}
    for snapshot in snapshots[begins[-1] :]:
        tick = round((snapshot.stamp_ns - first.stamp_ns) / 1e9 / adapter.tick_s)
        if 0 <= tick <= ticks:
            by_tick[tick] = snapshot
    applied = []
    for tick in range(1, max(by_tick) + 1):
        if tick not in by_tick:
            break
        force = adapter.applied(by_tick[tick])
        if force is None:
            raise InputError(f"{bag}: the robot measures no effort; nothing can be replayed")
        applied.append(force)
    states = [
        adapter.state(by_tick[tick], tick) if tick in by_tick else None
        for tick in range(len(applied) + 1)
    ]
    return Motion(states=states, applied=applied)


def _snapshots(bag: Path, config: RobotConfig) -> list[Snapshot]:
    imu_topic = None if config.state.imu is None else config.topic(config.state.imu.topic)
    trace = read_joint_trace(bag, config.topic(config.state.joint_states), imu_topic)
    found = []
    for row, stamp in enumerate(trace.stamp_ns):
        imu = _imu_at(trace, int(stamp))
        if imu_topic is not None and imu is None:
            continue
        found.append(
            Snapshot(
                stamp_ns=int(stamp),
                received_s=0.0,
                joints={
                    name: JointReading(
                        position=float(trace.position[row, column]),
                        velocity=_known(trace.velocity[row, column]),
                        effort=_known(trace.effort[row, column]),
                    )
                    for column, name in enumerate(trace.names)
                },
                imu=imu,
            )
        )
    return found


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _imu_at(trace: JointTrace, stamp_ns: int) -> ImuReading | None:
    """What the IMU had said last at a time."""
    place = int(np.searchsorted(trace.imu_stamp_ns, stamp_ns, side="right")) - 1
    if place < 0:
        return None
    x, y, z, w, a, b, c = (float(number) for number in trace.imu[place])
    return ImuReading(quat_xyzw=(x, y, z, w), angular_velocity=(a, b, c))
