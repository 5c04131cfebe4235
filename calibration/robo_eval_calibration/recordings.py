"""What a robot did in an episode, as a simulator can be asked about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One episode, tick by tick.

    Attributes:
        id: Of the episode.
        env: Gymnasium id of the task.
        keywords: Keywords of the environment it was played with, without `constants`.
        side: Where it was played: `sim`, `twin` or `real`.
        robot: Name of the robot; of a simulated episode that of its constants.
        policy: Who acted.
        begun_ns: Start, UTC nanoseconds.
        stamp_ns: Of each state since the start, shape (T + 1,), nanoseconds.
        states: `TaskSpec.channels` at the end of each tick, from the start on, shape (T + 1, C);
            a row of NaN where none was recorded.
        commands: What was asked of the motors in each tick, shape (T, A).
        efforts: What the drives applied in each tick, shape (T, A); None where nobody measured it.
        wrench: Force (N) and torque (N m) at the wrist, shape (T + 1, 6), if it was measured.
        things: Poses of things, position and quaternion xyzw, shape (T + 1, K, 7), if seen.
        start: State the episode began in, as `reset(options={"state": ...})` takes it.
        known: Constants that are known of this recording, such as a load that was hung on.
        group: Recordings of one group are fitted together; alone if it is empty.
        sha256: Digest of its trace.
    """

    id: str
    env: str
    keywords: Mapping[str, Any] = field(default_factory=dict)
    side: str
    robot: str = ""
    policy: str = ""
    begun_ns: int = 0
    stamp_ns: NDArray[np.int64]
    states: Array
    commands: Array
    efforts: Array | None = None
    wrench: Array | None = None
    things: Array | None = None
    start: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, float] = field(default_factory=dict)
    group: str = ""
    sha256: str = ""
