"""Which software and which machine made a log."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

import robo_eval
from robo_eval.core.installed import PYBULLETS, versions_of

_PACKAGES: Final = ("numpy", "gymnasium", *PYBULLETS, "sqlalchemy", "mcap")
"""Packages that can change what is logged, by their names in a package index."""
_GIT_TIMEOUT_S: Final = 10.0


@functools.cache
def software() -> str:
    """Version and, in a checkout, git revision: `robo-eval 0.1.0+g4c1e587a21b0`.

    Uncommitted changes add `.dirty`.
    """
    revision = git_revision()
    return f"robo-eval {robo_eval.__version__}" + (f"+g{revision}" if revision else "")


@functools.cache
def git_revision() -> str | None:
    """Revision of the checkout this package runs from; none for an installed package."""
    root = Path(robo_eval.__file__).resolve().parents[1]
    # Only a checkout of ours has this file beside the package: site-packages may lie inside
    # somebody else's repository.
    if not (root / ".git").exists() or not (root / "pyproject.toml").is_file():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [*command, "--dirty=.dirty"],
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def versions() -> dict[str, str]:
    """Versions of this package, of Python and of what it rests on; nothing is imported."""
    ours = {"robo_eval": robo_eval.__version__, "python": platform.python_version()}
    return ours | versions_of(_PACKAGES)


@functools.cache
def numerics() -> str:
    """Name and version of the library of numbers: `numpy 2.4.6`."""
    return f"numpy {version('numpy')}"


def machine() -> dict[str, str | int]:
    """What the log was made on: processor, cores this process may use, operating system."""
    return {
        "cpu": _cpu_model(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
