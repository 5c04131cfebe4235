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
from robo_eval_robot.config import POLICY_COMMAND, RobotConfig
from robo_eval_robot.snapshot import ImuReading, JointReading, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """States of an episode and what was applied between them.

    Attributes:
        states: State at the end of each tick, from the start on; None where none was recorded.
        applied: Force of each tick, as the adapter gives it; None where none was recorded.
        asked: Force the policy asked for in each tick: the last it asked for until then; None
            before the first.
        stamp_ns: Of each state since the first, nanoseconds; where none was recorded, as planned.
        set_back: How many stamps are earlier than that of the message recorded before.
    """

    states: list[dict[str, Any] | None]
    applied: list[tuple[float, ...] | None]
    asked: list[tuple[float, ...] | None]
    stamp_ns: list[int]
    set_back: int


def motion_of(
    bag: Path,
    config: RobotConfig,
    adapter: Adapter,
    start: Mapping[str, Any],
    *,
    ticks: int,
) -> Motion:
    """Read a motion from a bag.

    Each state belongs to the tick its stamp says.

    Args:
        bag: Folder of the bag.
        config: The robot.
        adapter: Of the task.
        start: State the episode started from, as its row has it.
        ticks: Most ticks to read.

    Raises:
        InputError: If the bag has no such start.
    """
    imu_topic = None if config.state.imu is None else config.topic(config.state.imu.topic)
    trace = read_joint_trace(bag, config.topic(config.state.joint_states), imu_topic)
    snapshots = _snapshots(trace, has_imu=imu_topic is not None)
    # While a twin is held it shows the same state again and again; the last is where it began.
    begins = [i for i, s in enumerate(snapshots) if adapter.state(s, 0) == dict(start)]
    if not begins:
        raise InputError(f"{bag}: no state in it is the one the episode's row says it started in")
    first = snapshots[begins[-1]]
    tick_ns = round(1e9 * adapter.tick_s)
    by_tick: dict[int, Snapshot] = {}
    for snapshot in snapshots[begins[-1] :]:
        tick = round((snapshot.stamp_ns - first.stamp_ns) / tick_ns)
        if 0 <= tick <= ticks:
            by_tick[tick] = snapshot
    seen = [by_tick.get(tick) for tick in range(max(by_tick) + 1)]
    stamps = [
        tick * tick_ns if each is None else each.stamp_ns - first.stamp_ns
        for tick, each in enumerate(seen)
    ]
    ends_s = [
        first.received_s + stamp / 1e9 if each is None else each.received_s
        for each, stamp in zip(seen, stamps, strict=True)
    ]
    return Motion(
        states=[adapter.state(each, tick) if each else None for tick, each in enumerate(seen)],
        applied=[adapter.applied(each) if each else None for each in seen[1:]],
        asked=_asked(bag, config, adapter, ends_s[1:]),
        stamp_ns=stamps,
        set_back=trace.set_back,
    )


def _asked(
    bag: Path, config: RobotConfig, adapter: Adapter, ends_s: list[float]
) -> list[tuple[float, ...] | None]:
    """What the policy had asked for last when the end of each tick was received.

    By the recorder's clock: policy and driver stamp their messages by two others.
    """
    try:
        trace = read_joint_trace(bag, config.topic(POLICY_COMMAND))
    except InputError:
        return [None] * len(ends_s)
    forces = [adapter.applied(snapshot) for snapshot in _snapshots(trace, has_imu=False)]
    places = np.searchsorted(trace.received_ns, np.multiply(ends_s, 1e9), side="left") - 1
    return [forces[place] if place >= 0 else None for place in places]


def _snapshots(trace: JointTrace, *, has_imu: bool) -> list[Snapshot]:
    found = []
    for row, stamp in enumerate(trace.stamp_ns):
        imu = _imu_at(trace, int(stamp)) if has_imu else None
        if has_imu and imu is None:
            continue
        found.append(
            Snapshot(
                stamp_ns=int(stamp),
                received_s=trace.received_ns[row] / 1e9,
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
