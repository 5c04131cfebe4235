"""Whether this machine can run a trial: clock, disk, lock, ROS settings, packages in the way."""

from __future__ import annotations

import fcntl
import getpass
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from rclpy.utilities import get_rmw_implementation_identifier

from robo_eval_robot.config import RobotConfig
from robo_eval_robot.doctor_check import Check
from robo_eval_robot.lock import holder, lock_file

MIB: Final = 1 << 20
_LEAST_FREE_MIB: Final = 1024
_LEAST_WRITE_MIB_S: Final = 5.0
_TRIAL_MIB: Final = 16
"""What is written to see how fast the disk is."""
_LEAST_SHM_MIB: Final = 64
_LEAST_CORES: Final = 2
_COARSE_CLOCK_S: Final = 1e-3
_OURS: Final = ("robo_eval", "robo_eval_robot", "robo_eval_sim", "robo_eval_twin")
_PACKAGES: Final = (*_OURS, "rclpy", "rpyutils", "launch", "sensor_msgs", "std_msgs", "std_srvs")
"""Packages of which there must be one: two rclpy load each other's libraries."""


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
        shared_memory(),
        ros_settings(os.environ),
        packages(sys.path),
        installations(os.environ),
    ]


def lock(robot: str) -> Check:
    """Whether another run holds the robot."""
    name, path = "robot is free", lock_file(robot)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return Check(name, passed=True, found="no run holds it")
    except OSError as err:
        remedy = f"ask whoever owns {path} to remove it"
        return Check(name, passed=False, found=f"{path}: {err.strerror}", remedy=remedy)
    try:
        # Shared, so that two doctors do not take each other for a run.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Check(
            name,
            passed=False,
            found=f"{holder(path)} holds it",
            remedy="wait for that run to end; a run that is over holds nothing",
        )
    finally:
        os.close(descriptor)
    return Check(name, passed=True, found="no run holds it")


def disk_space(out: Path) -> Check:
    """Whether recordings fit."""
    folder = _existing(out)
    free = shutil.disk_usage(folder).free / MIB
    return Check(
        "disk space",
        passed=free >= _LEAST_FREE_MIB,
        found=f"{free / 1024:.1f} GiB free at {folder}",
        remedy=""
        if free >= _LEAST_FREE_MIB
        else f"free some: {_LEAST_FREE_MIB / 1024:g} GiB at least; cameras need more",
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
        return Check(
            name,
            passed=False,
            found=f"{folder}: {err.strerror}",
            remedy="give a folder that can be written to by --out DIR",
        )
    is_fast = speed >= _LEAST_WRITE_MIB_S
    remedy = "" if is_fast else f"record to a disk of {_LEAST_WRITE_MIB_S:g} MiB/s at least (--out)"
    return Check(name, passed=is_fast, found=f"{speed:.0f} MiB/s with fsync", remedy=remedy)


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest one above that is there."""
    path = path.absolute()
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path("/"))


def cores() -> Check:
    """Whether guard, recorder and policy have room beside each other."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    count, load = count or 1, os.getloadavg()[0]
    remedies = []
    if count < _LEAST_CORES:
        remedies.append(f"use a machine with {_LEAST_CORES} cores at least")
    if load > count:
        remedies.append("end what else runs here: late control ticks would be the robot's")
    return Check(
        "processor",
        passed=None if remedies else True,
        found=f"{count} cores, load {load:.1f}",
        remedy="; ".join(remedies),
    )


def precedence(priority: int) -> Check:
    """Whether the guard may run before ordinary processes."""
    name = "real-time priority"
    if priority == 0:
        return Check(name, passed=True, found="guard.realtime_priority: 0 asks for none")
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as err:
        return Check(
            name,
            passed=None,
            found=f"{priority} is refused: {err.strerror}",
            remedy=f"add '{getpass.getuser()} - rtprio {priority}' to /etc/security/limits.conf and"
            " log in again: else the guard waits for its turn like any other process",
        )
    os.sched_setscheduler(0, *before)
    return Check(name, passed=True, found=f"the guard gets {priority}")


def clock() -> Check:
    """Whether short times can be measured."""
    resolution = time.get_clock_info("monotonic").resolution
    is_fine = resolution <= _COARSE_CLOCK_S
    return Check(
        "clock resolution",
        passed=is_fine,
        found=f"{resolution * 1e6:.3g} us",
        remedy="" if is_fine else "use a machine whose clock is finer than a millisecond",
    )


def shared_memory(folder: Path = Path("/dev/shm")) -> Check:  # noqa: S108 - looked at, not used
    """Whether messages fit into the memory that processes share."""
    name = "shared memory"
    if not folder.is_dir():
        return Check(name, passed=None, found=f"no {folder}; messages go through the network stack")
    size = shutil.disk_usage(folder).total / MIB
    is_enough = size >= _LEAST_SHM_MIB
    return Check(
        name,
        passed=True if is_enough else None,
        found=f"{size:.0f} MiB",
        remedy=""
        if is_enough
        else f"give the container {_LEAST_SHM_MIB} MiB (--shm-size), or set"
        " FASTDDS_BUILTIN_TRANSPORTS=UDPv4 for all processes; else topics are seen without data",
    )


def ros_settings(environment: Mapping[str, str]) -> Check:
    """By which settings robots are found: they have to be the same everywhere."""
    domain = environment.get("ROS_DOMAIN_ID", "0 (not set)")
    reach = environment.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET (not set)")
    local = environment.get("ROS_LOCALHOST_ONLY") == "1"
    rmw = get_rmw_implementation_identifier()
    return Check(
        "ROS settings",
        passed=True,
        found=f"ROS_DOMAIN_ID {domain}, discovery {reach}"
        + (", ROS_LOCALHOST_ONLY=1" if local else "")
        + f", {rmw}",
    )


def packages(path: Iterable[str]) -> Check:
    """Whether a package is there twice, or one of ours or of ROS is hidden by a folder."""
    name, entries = "packages", list(dict.fromkeys(Path(entry or ".").resolve() for entry in path))
    found = {package: _places(package, entries) for package in _PACKAGES}
    twice = {package: places for package, places in found.items() if len(places) > 1}
    if twice:
        package, places = next(iter(twice.items()))
        return Check(
            name,
            passed=False,
            found=f"{', '.join(twice)}: there {len(places)} times: {', '.join(map(str, places))}",
            remedy=f"keep one {package}: rename your own folder of that name, unset PYTHONPATH, or"
            " use an environment without the [ros] extra beside a ROS installation",
        )
    launch = found["launch"]
    if launch and not (launch[0].parent / "launch_ros").is_dir():
        return Check(
            name,
            passed=None,
            found=f"{launch[0]} is not the launch of ROS",
            remedy="rename or uninstall it: launch files would import it",
        )
    where = found["rclpy"][0].parent if found["rclpy"] else "an import hook"
    return Check(name, passed=True, found=f"one rclpy, from {where}")


def _places(package: str, entries: Iterable[Path]) -> list[Path]:
    """Where a package or module of a name lies; folders without `__init__.py` hide nothing."""
    places = []
    for entry in entries:
        if (entry / package / "__init__.py").is_file():
            places.append((entry / package).resolve())
        elif (entry / f"{package}.py").is_file():
            places.append((entry / f"{package}.py").resolve())
    return list(dict.fromkeys(places))


def installations(environment: Mapping[str, str]) -> Check:
    """Whether wheels of ROS and a sourced ROS installation are mixed."""
    prefixes = [part for part in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if part]
    own = Path(sys.prefix).resolve()
    sourced = [prefix for prefix in prefixes if Path(prefix).resolve() != own]
    try:
        wheel = f"wheels (rclpy {version('ros-rclpy')})"
    except PackageNotFoundError:
        wheel = ""
    if wheel and sourced:
        return Check(
            "ROS installation",
            passed=False,
            found=f"{wheel} and a sourced ROS: AMENT_PREFIX_PATH {sourced[0]}",
            remedy="use one of them: a shell without the sourced ROS, or an environment made with"
            " --system-site-packages and without the [ros] extra",
        )
    shown = f"AMENT_PREFIX_PATH {os.pathsep.join(prefixes)}" if prefixes else ""
    found = ", ".join(part for part in (wheel, shown) if part)
    return Check("ROS installation", passed=True, found=found or "rclpy without AMENT_PREFIX_PATH")
