"""Environments that hold the built wheel and what it asks for, and nothing else."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def once(place: Path, make: Callable[[], object]) -> None:
    """Make what is slow to make once for all workers of a run; others wait for it."""
    with place.with_name(f"{place.name}.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not lock.read():
            place.mkdir()
            make()
            lock.write("made")


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def wheel(workshop: Path) -> Path:
    """The wheel, built from the checkout with the pinned build tools."""
    folder = workshop / "wheel"
    command = [
        sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation",
        "--wheel-dir", str(folder), str(REPOSITORY),
    ]  # fmt: skip
    once(folder, lambda: subprocess.run(command, check=True, timeout=800))
    (path,) = folder.glob("robo_eval_stack-*.whl")
    return path


class Installed:
    """A virtual environment with the wheel in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv/bin/python"
        self.command = folder / "venv/bin/robo-eval"

    def ended(
        self, *command: str | Path, folder: Path | None = None, limit_s: int = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        clean = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        return subprocess.run(
            [str(part) for part in command],
            cwd=folder or self.folder,
            env=clean,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
        )

    def run(self, *command: str | Path, code: int = 0) -> str:
        """What a command says that ends with this exit code."""
        done = self.ended(*command)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def install(to: Installed, wheel: Path, extra: str, python: str) -> None:
    """Make a fresh environment with the wheel and what it asks for, at the locked versions.

    The lock is a constraint here and not the list of what to install: what the wheel's own
    metadata forgets to ask for must be missing.
    """
    venv = [python, "-m", "venv", str(to.folder / "venv")]
    subprocess.run(venv, check=True, timeout=800)
    pinned = [
        line.split(" \\")[0]
        for line in (REPOSITORY / "requirements/demo.txt").read_text().splitlines()
        if "==" in line and not line.lstrip().startswith(("#", "--"))
    ]
    (to.folder / "constraints.txt").write_text("\n".join(pinned) + "\n")
    to.run(
        to.python, "-m", "pip", "install", "-qq", "--no-compile",
        "--constraint", "constraints.txt", f"robo-eval-stack{extra} @ {wheel.as_uri()}",
    )  # fmt: skip


@pytest.fixture(scope="session")
def installed(wheel: Path, workshop: Path) -> Callable[..., Installed]:
    """The environment with an extra, such as `sim`, or with none; made once for each Python."""

    def get(extra: str, python: str = sys.executable) -> Installed:
        of = "" if python == sys.executable else f"-{python.strip('/').replace('/', '-')}"
        made = Installed(workshop / f"installed-{extra or 'base'}{of}")
        once(made.folder, lambda: install(made, wheel, f"[{extra}]" if extra else "", python))
        return made

    return get
