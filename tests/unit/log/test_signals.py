"""Joint and contact signals of a trial, at even times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import Writer
from rosbags.typesys import Stores, get_typestore

from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import Side
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.signals import sampled_signals
from robo_eval.log.store import EpisodeStore

STORE = get_typestore(Stores.ROS2_JAZZY)
S = 1_000_000_000
Said = list[tuple[str, str, int, Any]]
"""Topic, kind, time (ns) and what is said, joint names first."""


def message(kind: str, said: Any) -> bytes:
    types = STORE.types
    stamp = types["builtin_interfaces/msg/Time"](sec=0, nanosec=0)
    header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="")
    if kind == "std_msgs/msg/Bool":
        made = types[kind](data=said)
    elif kind == "sensor_msgs/msg/JointState":
        names, values = said
        made = types[kind](
            header=header, name=names, position=np.array(values), velocity=np.array(values) * 2.0,
            effort=np.array([]),
        )  # fmt: skip
    else:
        vector = types["geometry_msgs/msg/Vector3"]
        wrench = types["geometry_msgs/msg/Wrench"](
            force=vector(x=said[0], y=said[1], z=0.0), torque=vector(x=0.0, y=0.0, z=0.0)
        )
        made = types[kind](header=header, wrench=wrench)
    return bytes(STORE.serialize_cdr(made, kind))


def write(file: Path, said: Said) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        writer = Writer(out)
        writer.start(profile="ros2", library="test")
        channels: dict[str, int] = {}
        for topic, kind, time_ns, what in said:
            if topic not in channels:
                schema = writer.register_schema(kind, "ros2msg", b"")
                channels[topic] = writer.register_channel(topic, "cdr", schema)
            writer.add_message(channels[topic], time_ns, message(kind, what), time_ns)
        writer.finish()


JOINTS, BOOL, WRENCH = (
    "sensor_msgs/msg/JointState", "std_msgs/msg/Bool", "geometry_msgs/msg/WrenchStamped"
)  # fmt: skip


@pytest.fixture
def logged(
    trial: TrialDirectory, make_episode: Callable[..., Episode]
) -> Callable[[list[tuple[Side, Said]]], Path]:
    """A trial with a trace for each episode: a file in simulation, a folder on a robot."""

    def call(episodes: list[tuple[Side, Said]]) -> Path:
        rows = []
        for number, (side, said) in enumerate(episodes):
            uri = f"traces/e{number}.mcap" if side is Side.SIM else f"traces/e{number}"
            file = trial.path / uri
            write(file if side is Side.SIM else file / "part_0.mcap", said)
            rows.append(make_episode(number, side=side, trace_uri=uri, trace_sha256="0" * 64))
        with EpisodeStore(trial.path, durable=False) as store:
            store.append(rows)
        return trial.path

    return call


def moving(first: float, joint: str = "hinge") -> Said:
    return [
        ("/joint_states", JOINTS, 5 * S + step * S // 20, ([joint], [first + step]))
        for step in range(5)
    ]


def test_the_newest_value_counts_at_even_times(logged: Callable[..., Path]) -> None:
    said = [
        *moving(1.0),
        ("/arm/joint_command", JOINTS, 5 * S, (["hinge"], [99.0])),
        ("/hand/touch", BOOL, 5 * S, False),
        ("/hand/touch", BOOL, 5 * S + S // 10, True),
        ("/hand/ft", WRENCH, 5 * S - S, (3.0, 4.0)),
    ]
    found = sampled_signals(logged([(Side.SIM, sorted(said, key=lambda one: one[2]))]), 0.1)
    assert (found.episodes, found.side) == (1, "sim")
    shown = {name: values.tolist() for name, values in found.signals.items()}
    assert shown == {
        "/hand/ft force": [5.0, 5.0, 5.0],
        "/hand/touch": [0.0, 1.0, 1.0],
        "hinge position": [1.0, 3.0, 5.0],
        "hinge velocity": [2.0, 6.0, 10.0],
    }


def test_episodes_follow_one_another_and_the_real_side_comes_first(
    logged: Callable[..., Path],
) -> None:
    trial = logged([
        (Side.SIM, moving(100.0)), (Side.REAL, moving(1.0)), (Side.TWIN, moving(50.0)),
        (Side.REAL, [*moving(7.0), ("/hand/touch", BOOL, 5 * S, True)]),
    ])  # fmt: skip
    found = sampled_signals(trial, 0.1)
    assert (found.episodes, found.side) == (2, "real")
    assert list(found.signals) == ["hinge position", "hinge velocity"], "what both of them have"
    assert found.signals["hinge position"].tolist() == [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]


def test_parts_are_put_in_order_and_topics_kept_apart(logged: Callable[..., Path]) -> None:
    trial = logged([(Side.REAL, moving(1.0))])
    folder = trial / "traces" / "e0"
    (folder / "part_0.mcap").unlink()
    for part in range(12):
        time_ns = 5 * S + part * S // 10
        write(
            folder / f"part_{part}.mcap",
            [
                ("/left/joint_states", JOINTS, time_ns, (["a"], [float(part)])),
                ("/right/joint_states", JOINTS, time_ns, (["a", "b"], [-1.0, -2.0])),
            ],
        )
    found = sampled_signals(trial, 0.1).signals
    assert found["/left/joint_states a position"].tolist() == [float(part) for part in range(12)]
    assert set(found["/right/joint_states a position"]) == {-1.0}
    assert set(found["b position"]) == {-2.0}


def test_messages_of_others_and_what_speaks_late_are_left_out(logged: Callable[..., Path]) -> None:
    trial = logged([(Side.SIM, [])])
    with (trial / "traces" / "e0.mcap").open("wb") as out:
        writer = Writer(out)
        writer.start(profile="ros2", library="test")
        log = writer.register_channel("/log", "json", 0)
        schema = writer.register_schema(JOINTS, "ros2msg", b"")
        joints = writer.register_channel("/joint_states", "cdr", schema)
        schema = writer.register_schema(BOOL, "ros2msg", b"")
        touch = writer.register_channel("/touch", "cdr", schema)
        writer.add_message(log, 5 * S, b"{}", 5 * S)
        for step in range(11):
            data = message(JOINTS, (["hinge"], [float(step)]))
            writer.add_message(joints, 5 * S + step * S // 10, data, 0)
        writer.add_message(touch, 6 * S, message(BOOL, True), 0)
        writer.finish()
    found = sampled_signals(trial, 0.1).signals
    assert found["hinge position"].tolist() == [float(step) for step in range(11)]
    assert "/touch" not in found


def test_what_would_fill_the_memory_is_refused(logged: Callable[..., Path]) -> None:
    said = [("/joint_states", JOINTS, at, (["hinge"], [1.0])) for at in (0, 1_700_000_000 * S)]
    with pytest.raises(InputError, match=r"e0\.mcap: lasts 1,700,000,000 s, which is more than"):
        sampled_signals(logged([(Side.SIM, said)]), 0.001)


def test_a_period_longer_than_every_episode_is_refused(logged: Callable[..., Path]) -> None:
    trial = logged([(Side.REAL, moving(1.0)), (Side.REAL, moving(7.0))])
    with pytest.raises(InputError, match="no episode lasts 10 s; choose a shorter period"):
        sampled_signals(trial, 10.0)


@pytest.mark.parametrize("period_s", [0.0, float("nan"), float("inf"), 1e12])
def test_a_period_that_does_not_fit_is_refused(
    logged: Callable[..., Path], period_s: float
) -> None:
    with pytest.raises(InputError, match="it must be from 0"):
        sampled_signals(logged([]), period_s)


@pytest.mark.parametrize(
    ("episodes", "problem"),
    [
        ([], "no episode has a trace"),
        ([(Side.SIM, [])], "no joint and no contact in common"),
        ([(Side.SIM, moving(1.0)), (Side.SIM, moving(1.0, "elbow"))], "in common"),
    ],
)
def test_what_cannot_be_used_is_said(
    logged: Callable[..., Path], episodes: Any, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        sampled_signals(logged(episodes), 0.1)


def test_a_trace_that_is_gone_is_counted(logged: Callable[..., Path]) -> None:
    trial = logged([(Side.SIM, moving(1.0)), (Side.SIM, moving(2.0))])
    (trial / "traces" / "e0.mcap").unlink()
    found = sampled_signals(trial, 0.1)
    assert (found.episodes, found.missing) == (1, 1)


def test_a_damaged_trace_is_named(logged: Callable[..., Path]) -> None:
    trial = logged([(Side.SIM, moving(1.0))])
    file = trial / "traces" / "e0.mcap"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(TrialDirectoryError, match=r"e0\.mcap: is damaged"):
        sampled_signals(trial, 0.1)
