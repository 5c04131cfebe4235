"""What joints and contacts said in the traces of a trial, sampled at even times."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from statistics import median_low
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
from robo_eval.log.joint_trace import JOINTS
from robo_eval.log.messages import after_header, joint_state

Floats = NDArray[np.float64]
MOST_EPISODES: Final = 200
"""Episodes that are read at most."""
MOST_SAMPLES: Final = 1_000_000
"""Samples of an episode."""
_OF_JOINTS: Final = ("position", "velocity")
_ASKED: Final = ("command", "target", "goal", "setpoint")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sampled:
    """Signals of a trial, sampled at even times; episodes follow one another.

    Attributes:
        signals: Values by name, each of shape (T,), of what all the episodes have.
        episodes: How many.
        missing: How many more the log names a trace of that is not there.
        side: On which side they were played.
    """

    signals: dict[str, Floats]
    episodes: int
    missing: int
    side: str


def sampled_signals(trial: Path, period_s: float) -> Sampled:
    """Positions and velocities of joints, contact forces and contacts, over episodes of a trial.

    Joints are of topics of `sensor_msgs/JointState`; a contact is the norm of a force of
    `geometry_msgs/WrenchStamped`, or a truth of `std_msgs/Bool`. At each time the newest value
    counts. A joint that several topics tell of goes by topic and name, and what begins to speak
    much later than most is left out. Of the sides played, the real one comes before a twin, and a
    twin before simulation; its first episodes with a trace are read, in the order they were logged.

    Args:
        trial: A trial directory.
        period_s: Between two samples, seconds.

    Raises:
        InputError: If the period is none that fits, no episode has a trace, or they have nothing in
            common.
        TrialDirectoryError: If the trial or a trace cannot be read.
    """
    if not 1e-3 <= period_s <= 3600.0:
        raise InputError(f"period is {period_s} s; it must be from 0.001 to 3600")
    frame = TrialDirectory.open(trial).frame()
    frame = frame[frame["trace_uri"].notna()]
    for side in (Side.REAL, Side.TWIN, Side.SIM):
        uris = frame.loc[frame["side"] == side.value, "trace_uri"]
        places = [trial / str(uri) for uri in uris][:MOST_EPISODES]
        episodes = [_sampled(one, period_s) for one in places if one.exists()]
        if episodes:
            break
    else:
        raise InputError(f"{trial}: no episode has a trace")
    names = reduce(and_, (one.keys() for one in episodes))
    if not names:
        raise InputError(f"{trial}: its traces have no joint and no contact in common")
    signals = {name: np.concatenate([one[name] for one in episodes]) for name in sorted(names)}
    if all(len(values) == len(episodes) for values in signals.values()):
        raise InputError(f"{trial}: no episode lasts {period_s:g} s; choose a shorter period")
    missing = len(places) - len(episodes)
    return Sampled(signals=signals, episodes=len(episodes), missing=missing, side=side.value)


def _sampled(place: Path, period_s: float) -> dict[str, Floats]:
    files = sorted(place.rglob("*.mcap")) if place.is_dir() else [place]
    said: dict[tuple[str, str], tuple[array[int], array[float]]] = defaultdict(
        lambda: (array("q"), array("d"))
    )
    for file in files:
        with explained(file, "cannot be read"), door.opened(file) as stream:
            try:
                for schema, channel, message in make_reader(stream).iter_messages():
                    kind, topic = schema.name if schema else "", channel.topic
                    if is_asked(topic):
                        continue
                    for name, value in _values(kind, message.data):
                        stamps, values = said[topic, name]
                        stamps.append(message.log_time)
                        values.append(value)
            except DAMAGE as err:
                raise TrialDirectoryError(f"{file}: is damaged: {err}") from err
    if not said:
        return {}
    firsts = {key: min(stamps) for key, (stamps, _) in said.items()}
    end = max(max(stamps) for stamps, _ in said.values())
    # What speaks later than the others would cut them all.
    late = median_low(firsts.values()) + (end - min(firsts.values())) // 10
    kept = {key: series for key, series in said.items() if firsts[key] <= late}
    first = max(firsts[key] for key in kept)
    period_ns = round(1e9 * period_s)
    if (end - first) // period_ns > MOST_SAMPLES:
        raise InputError(
            f"{place}: lasts {(end - first) * 1e-9:,.0f} s, which is more than {MOST_SAMPLES:,}"
            f" samples of {period_s} s; a longer period has fewer"
        )
    times = first + np.arange((end - first) // period_ns + 1) * period_ns
    topics = Counter(name for _, name in kept)
    found = {}
    for (topic, name), (stamps, values) in kept.items():
        order = np.argsort(stamps, kind="stable")
        newest = np.searchsorted(np.asarray(stamps)[order], times, side="right") - 1
        is_clear = name.endswith(_OF_JOINTS) and topics[name] == 1
        found[name if is_clear else f"{topic} {name}".strip()] = np.asarray(values)[order][newest]
    return {name: values for name, values in found.items() if np.isfinite(values).all()}


def _values(kind: str, data: bytes) -> Iterator[tuple[str, float]]:
    """What a message says, by name; the name of a truth is empty."""
    if kind == JOINTS:
        _, names, parts = joint_state(data)
        for what, numbers in zip(_OF_JOINTS, parts, strict=False):
            for name, value in zip(names, numbers, strict=False):
                yield f"{name} {what}", float(value)
    elif kind == "geometry_msgs/msg/WrenchStamped":
        yield "force", float(np.linalg.norm(after_header(data, 3)))
    elif kind == "std_msgs/msg/Bool":
        yield "", float(Cursor(data).uint8())


def is_asked(topic: str) -> bool:
    """Whether a topic says what is asked of a robot, and not what it does, by its name."""
    return any(word in topic.rsplit("/", 1)[-1] for word in _ASKED)
