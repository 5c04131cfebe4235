"""Writes a folder of small bags, as an arm that inserts pegs might have recorded them.

python make_bags.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

JOINTS = ["shoulder", "elbow", "wrist"]
PERIOD_S = 0.01
LENGTH_S = 2.0
START_NS = 1_772_361_000_000_000_000

store = get_typestore(Stores.ROS2_HUMBLE)
store.register(get_types_from_msg("bool success\nfloat64 depth\n", "lab_msgs/msg/Result"))
types = store.types
Time = types["builtin_interfaces/msg/Time"]
Header = types["std_msgs/msg/Header"]
Vector3 = types["geometry_msgs/msg/Vector3"]


def header(stamp_ns: int) -> object:
    return Header(stamp=Time(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9), frame_id="base_link")


def joint_state(stamp_ns: int, position: np.ndarray) -> object:
    empty = np.array([])
    return types["sensor_msgs/msg/JointState"](
        header=header(stamp_ns), name=JOINTS, position=position, velocity=empty, effort=empty
    )


def command(position: np.ndarray) -> object:
    layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    return types["std_msgs/msg/Float64MultiArray"](layout=layout, data=position)


def wrench(stamp_ns: int, force: float) -> object:
    content = types["geometry_msgs/msg/Wrench"](
        force=Vector3(x=0.0, y=0.0, z=force), torque=Vector3(x=0.0, y=0.0, z=0.0)
    )
    return types["geometry_msgs/msg/WrenchStamped"](header=header(stamp_ns), wrench=content)


def write_bag(
    path: Path, start_ns: int, *, lag_s: float, success: bool, depth: float, stopped: bool
) -> None:
    """One attempt: three joints follow a sine, late by `lag_s`."""
    topics = {
        "/joint_states": "sensor_msgs/msg/JointState",
        "/position_controller/commands": "std_msgs/msg/Float64MultiArray",
        "/ft_sensor/wrench": "geometry_msgs/msg/WrenchStamped",
        "/safety/estop": "std_msgs/msg/Bool",
        "/teleop/engaged": "std_msgs/msg/Bool",
        "/attempt/result": "lab_msgs/msg/Result",
    }
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        connections = {
            topic: bag.add_connection(topic, kind, typestore=store)
            for topic, kind in topics.items()
        }

        def put(topic: str, stamp_ns: int, message: object) -> None:
            bag.write(connections[topic], stamp_ns, store.serialize_cdr(message, topics[topic]))

        truth = types["std_msgs/msg/Bool"]
        put("/safety/estop", start_ns, truth(data=False))
        put("/teleop/engaged", start_ns, truth(data=False))
        amplitude = np.array([0.4, 0.3, 0.2])
        ticks = round(LENGTH_S / PERIOD_S)
        for tick in range(ticks):
            t = tick * PERIOD_S
            now = start_ns + round(t * 1e9)
            wanted = amplitude * np.sin(np.pi * t)
            reached = amplitude * np.sin(np.pi * (t - lag_s))
            put("/position_controller/commands", now, command(wanted))
            put("/joint_states", now, joint_state(now, reached))
            put("/ft_sensor/wrench", now, wrench(now, 4.0 + 100.0 * lag_s * abs(np.sin(np.pi * t))))
        end_ns = start_ns + round(LENGTH_S * 1e9)
        if stopped:
            put("/safety/estop", end_ns - 1, truth(data=True))
        result = types["lab_msgs/msg/Result"](success=success, depth=depth)
        put("/attempt/result", end_ns, result)


def main(folder: Path) -> None:
    rng = np.random.default_rng(7)
    number = 0
    for policy, lag_s, rate in (("act", 0.08, 0.5), ("pi0", 0.03, 0.8)):
        for layout in range(1, 9):
            success = bool(rng.random() < rate)
            depth = 1.0 if success else float(rng.uniform(0.2, 0.9))
            stopped = not success and layout % 3 == 0
            late_s = lag_s * (1.0 + 0.05 * (layout - 1))
            start_ns = START_NS + number * 60 * 10**9
            path = folder / f"{policy}_layout{layout:02d}"
            write_bag(path, start_ns, lag_s=late_s, success=success, depth=depth, stopped=stopped)
            number += 1
    print(f"{number} bags written to {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
