"""Environments that hold the built wheel and what it asks for, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout with the pinned build tools."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation",
        "--wheel-dir", str(folder), str(REPOSITORY),
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=800)
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


def install(folder: Path, wheel: Path, extra: str) -> Installed:
    """A fresh environment with the wheel and what it asks for, at the locked versions.

    The lock is a constraint here and not the list of what to install: what the wheel's own
    metadata forgets to ask for must be missing.
    """
    installed = Installed(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=800)
    pinned = [
        line.split(" \\")[0]
        for line in (REPOSITORY / "requirements/demo.txt").read_text().splitlines()
        if "==" in line and not line.lstrip().startswith(("#", "--"))
    ]
    (folder / "constraints.txt").write_text("\n".join(pinned) + "\n")
    installed.run(
        installed.python, "-m", "pip", "install", "-qq", "--no-compile",
        "--constraint", "constraints.txt", f"robo-eval-stack{extra} @ {wheel.as_uri()}",
    )  # fmt: skip
    return installed


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Installed]:
    """The environment with an extra, such as `sim`, or with none; made once."""
    made: dict[str, Installed] = {}

    def get(extra: str) -> Installed:
        if extra not in made:
            folder = tmp_path_factory.mktemp(extra or "base")
            made[extra] = install(folder, wheel, f"[{extra}]" if extra else "")
        return made[extra]

    return get
