"""Whether this machine can run a trial: clock, disk, lock, ROS settings."""

from __future__ import annotations

import fcntl
import getpass
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from rclpy.utilities import get_rmw_implementation_identifier

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check, bad, good, note
from robo_eval_robot.lock import holder, lock_file

MIB: Final = 1 << 20
_LEAST_FREE_MIB: Final = 1024
_LEAST_WRITE_MIB_S: Final = 5.0
_TRIAL_MIB: Final = 16
"""What is written to see how fast the disk is."""
_LEAST_CORES: Final = 2
_COARSE_CLOCK_S: Final = 1e-3


def machine_checks(config: RobotConfig, out: Path) -> list[Check]:
    """Every check that needs no robot.

    Args:
        config: The robot.
        out: Folder trials will be written to.
    """
    return [
        lock(config.name),
        disk_space(out),
        disk_speed(out),
        cores(),
        precedence(config.guard.realtime_priority),
        clock(),
        ros_settings(os.environ),
        installations(os.environ),
    ]


def lock(robot: str) -> Check:
    """Whether another run holds the robot."""
    name, path = "robot is free", lock_file(robot)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return good(name, "no run holds it")
    except OSError as err:
        return bad(name, f"{path}: {err.strerror}", f"ask whoever owns {path} to remove it")
    try:
        # Shared, so that two doctors do not take each other for a run.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        remedy = "wait for that run to end; a run that is over holds nothing"
        return bad(name, f"{holder(path)} holds it", remedy)
    finally:
        os.close(descriptor)
    return good(name, "no run holds it")


def disk_space(out: Path) -> Check:
    """Whether recordings fit."""
    name, folder = "disk space", _existing(out)
    free = shutil.disk_usage(folder).free / MIB
    found = f"{free / 1024:.1f} GiB free at {folder}"
    if free >= _LEAST_FREE_MIB:
        return good(name, found)
    return bad(
        name, found, f"free some: {_LEAST_FREE_MIB / 1024:g} GiB at least; cameras need more"
    )


def disk_speed(out: Path) -> Check:
    """Whether the recorder can write as fast as topics come."""
    folder, name = _existing(out), "disk speed"
    block = os.urandom(MIB)  # nothing a file system could compress
    started = time.monotonic()
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".robo-eval-doctor-") as file:
            for _ in range(_TRIAL_MIB):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            speed = _TRIAL_MIB / (time.monotonic() - started)
    except OSError as err:
        remedy = "give a folder that can be written to by --out DIR"
        return bad(name, f"{folder}: {err.strerror}", remedy)
    found = f"{speed:.0f} MiB/s with fsync"
    if speed >= _LEAST_WRITE_MIB_S:
        return good(name, found)
    return bad(name, found, f"record to a disk of {_LEAST_WRITE_MIB_S:g} MiB/s at least (--out)")


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest one above that is there."""
    path = path.absolute()
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path("/"))


def cores() -> Check:
    """Whether guard, recorder and policy have room beside each other."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    count, load = count or 1, os.getloadavg()[0]
    name, found, remedies = "processor", f"{count} cores, load {load:.1f}", []
    if count < _LEAST_CORES:
        remedies.append(f"use a machine with {_LEAST_CORES} cores at least")
    if load > count:
        remedies.append("end what else runs here: late control ticks would be the robot's")
    return note(name, found, "; ".join(remedies)) if remedies else good(name, found)


def precedence(priority: int) -> Check:
    """Whether the guard may run before ordinary processes."""
    name = "real-time priority"
    if priority == 0:
        return good(name, "guard.realtime_priority: 0 asks for none")
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as err:
        return note(
            name,
            f"{priority} is refused: {err.strerror}",
            f"add '{getpass.getuser()} - rtprio {priority}' to /etc/security/limits.conf and"
            " log in again: else the guard waits for its turn like any other process",
        )
    os.sched_setscheduler(0, *before)
    return good(name, f"the guard gets {priority}")


def clock() -> Check:
    """Whether short times can be measured."""
    resolution = time.get_clock_info("monotonic").resolution
    name, found = "clock resolution", f"{resolution * 1e6:.3g} us"
    if resolution <= _COARSE_CLOCK_S:
        return good(name, found)
    return bad(name, found, "use a machine whose clock is finer than a millisecond")


def ros_settings(environment: Mapping[str, str]) -> Check:
    """By which settings robots are found: they have to be the same everywhere."""
    domain = environment.get("ROS_DOMAIN_ID", "0 (not set)")
    reach = environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET (not set)")
    local = environment.get("ROS_LOCALHOST_ONLY") == "1"
    rmw = get_rmw_implementation_identifier()
    only = ", ROS_LOCALHOST_ONLY=1" if local else ""
    return good("ROS settings", f"ROS_DOMAIN_ID {domain}, discovery {reach}{only}, {rmw}")


def installations(environment: Mapping[str, str]) -> Check:
    """Whether wheels of ROS and a sourced ROS installation are mixed."""
    prefixes = [part for part in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if part]
    name, own = "ROS installation", Path(sys.prefix).resolve()
    sourced = [prefix for prefix in prefixes if Path(prefix).resolve() != own]
    try:
        wheel = f"wheels (rclpy {version('ros-rclpy')})"
    except PackageNotFoundError:
        wheel = ""
    if wheel and sourced:
        return bad(
            name,
            f"{wheel} and a sourced ROS: AMENT_PREFIX_PATH {sourced[0]}",
            "use one of them: a shell without the sourced ROS, or an environment made with"
            " --system-site-packages and without the [ros] extra",
        )
    shown = f"AMENT_PREFIX_PATH {os.pathsep.join(prefixes)}" if prefixes else ""
    found = ", ".join(part for part in (wheel, shown) if part)
    return good(name, found or "rclpy without AMENT_PREFIX_PATH")
