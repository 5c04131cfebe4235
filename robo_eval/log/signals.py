"""What joints and contacts said in the traces of a trial, sampled at even times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Final

import numpy as np
from mcap.reader import make_reader
from numpy.typing import NDArray

from robo_eval.core import door
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import Side
from robo_eval.log.bag_recover import DAMAGE
from robo_eval.log.cdr import Cursor
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import explained

Floats = NDArray[np.float64]
MOST_EPISODES: Final = 200
"""Episodes that are read at most."""
ASKED: Final = ("command", "target", "goal", "setpoint")
"""Words in the name of a topic that says what is asked of a robot, and not what it does."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sampled:
    """Signals of a trial, sampled at even times; episodes follow one another.

    Attributes:
        signals: Values by name, each of shape (T,), of what all the episodes have.
        episodes: How many.
        side: On which side they were played.
    """

    signals: dict[str, Floats]
    episodes: int
    side: str


def sampled_signals(trial: Path, period_s: float) -> Sampled:
    """Positions and velocities of joints, contact forces and contacts, over episodes of a trial.

    Joints are of topics of `sensor_msgs/JointState`; a contact is the norm of a force of
    `geometry_msgs/WrenchStamped`, or a truth of `std_msgs/Bool`. At each time the newest value
    counts. Of the sides played, the real one comes before a twin, and a twin before simulation;
    its first episodes with a trace are read, in the order they were logged.

    Args:
        trial: A trial directory.
        period_s: Between two samples, seconds.

    Raises:
        InputError: If no episode has a trace, or they have nothing in common.
        TrialDirectoryError: If the trial or a trace cannot be read.
    """
    frame = TrialDirectory.open(trial).frame()
    frame = frame[frame["trace_uri"].notna()]
    for side in (Side.REAL, Side.TWIN, Side.SIM):
        places = [trial / str(uri) for uri in frame.loc[frame["side"] == side.value, "trace_uri"]]
        episodes = [_sampled(one, period_s) for one in places[:MOST_EPISODES] if one.exists()]
        if episodes:
            break
    else:
        raise InputError(f"{trial}: no episode has a trace")
    names = reduce(and_, (one.keys() for one in episodes))
    if not names:
        raise InputError(f"{trial}: its traces have no joint and no contact in common")
    signals = {name: np.concatenate([one[name] for one in episodes]) for name in sorted(names)}
    return Sampled(signals=signals, episodes=len(episodes), side=side.value)


def _sampled(place: Path, period_s: float) -> dict[str, Floats]:
    files = sorted(place.rglob("*.mcap")) if place.is_dir() else [place]
    said: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for file in files:
        with explained(file, "cannot be read"), door.opened(file) as stream:
            try:
                for schema, channel, message in make_reader(stream).iter_messages():
                    kind, topic = schema.name if schema else "", channel.topic
                    if any(word in topic.rsplit("/", 1)[-1] for word in ASKED):
                        continue
                    for name, value in _values(kind, topic, message.data):
                        said[name].append((message.log_time, value))
            except DAMAGE as err:
                raise TrialDirectoryError(f"{file}: is damaged: {err}") from err
    if not said:
        return {}
    first = max(series[0][0] for series in said.values())
    last = max(series[-1][0] for series in said.values())
    period_ns = round(1e9 * period_s)
    times = first + np.arange((last - first) // period_ns + 1) * period_ns
    found = {}
    for name, series in said.items():
        stamps, values = np.array([one for one, _ in series]), np.array([one for _, one in series])
        found[name] = values[np.searchsorted(stamps, times, side="right") - 1]
    return {name: values for name, values in found.items() if np.isfinite(values).all()}


def _values(kind: str, topic: str, data: bytes) -> Iterator[tuple[str, float]]:
    cursor = Cursor(data)
    if kind == "std_msgs/msg/Bool":
        yield topic, float(cursor.uint8())
    if kind not in ("sensor_msgs/msg/JointState", "geometry_msgs/msg/WrenchStamped"):
        return
    cursor.stamp_ns()
    cursor.string()
    if kind == "geometry_msgs/msg/WrenchStamped":
        yield f"{topic} force", float(np.linalg.norm(cursor.numbers(3)))
        return
    names = [cursor.string() for _ in range(cursor.uint32())]
    for what in ("position", "velocity"):
        for name, value in zip(names, cursor.number_list(), strict=False):
            yield f"{name} {what}", float(value)
