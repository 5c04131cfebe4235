"""The built wheel works where only the wheel and what it asks for is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout with the pinned build tools."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation",
        "--wheel-dir", str(folder), str(REPOSITORY),
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=800)
    (path,) = folder.glob("robo_eval-*.whl")
    return path


class Installed:
    """A virtual environment with the wheel in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv/bin/python"
        self.command = folder / "venv/bin/robo-eval"

    def run(self, *command: str | Path, code: int = 0) -> str:
        clean = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == code, done.stdout
        return done.stdout


def install(folder: Path, wheel: Path, extra: str = "") -> Installed:
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
        "--constraint", "constraints.txt", f"robo-eval{extra} @ {wheel.as_uri()}",
    )  # fmt: skip
    return installed


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("base"), wheel)


def test_every_data_file_is_in_the_wheel(wheel: Path) -> None:
    packaged = set(zipfile.ZipFile(wheel).namelist())
    command = ["git", "ls-files", "-z", "robo_eval", "sim/robo_eval_sim"]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    tracked = [name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]
    missing = {name.removeprefix("sim/") for name in tracked} - packaged
    assert not missing
    assert any(name.endswith("demo_plan.yaml") for name in packaged)
    assert any("/report/templates/" in name for name in packaged)
    assert not [name for name in packaged if "/tests/" in name or name.startswith("tests/")]


def test_base_install_scores_and_reports_but_does_not_play(base: Installed) -> None:
    assert "resume" in base.run(base.command, "--help")
    assert base.run(base.command, "--version").startswith("robo-eval ")
    assert "gravity" in base.run(base.command, "levels").lower()
    base.run(base.python, "-c", "import robo_eval.report.build, robo_eval.analysis.acc")
    listed = base.run(base.python, "-m", "pip", "list", "--format", "freeze").lower()
    for absent in ("pybullet", "torch", "pytest", "ruff"):
        assert f"{absent}=" not in listed
    base.run(base.python, "-m", "pip", "check")


def test_without_pybullet_the_message_names_the_extra(base: Installed) -> None:
    program = (
        "import gymnasium\n"
        "from robo_eval.core.errors import MissingExtraError\n"
        "try:\n"
        "    gymnasium.make('RoboEval/CartPole3D-v0')\n"
        "except MissingExtraError as err:\n"
        "    print(err)\n"
    )
    message = base.run(base.python, "-c", program)
    assert "pip install" in message
    assert "robo-eval[sim]" in message
    plan = base.folder / "plan.yaml"
    plan.write_text("name: x\ntasks: [{levels: [0]}]\npolicies: [random]\nepisodes: 1\n")
    refused = base.run(base.command, "run", "plan.yaml", "--out", "trial", code=2)
    assert "robo-eval[sim]" in refused
    assert "Traceback" not in refused
    assert not (base.folder / "trial").exists()


def test_a_log_played_elsewhere_is_scored_by_the_base_install(
    base: Installed, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("name: x\ntasks: [{levels: [0]}]\npolicies: [random, balancer]\nepisodes: 4\n")
    subprocess.run(
        [sys.executable, "-m", "robo_eval", "run", "plan.yaml", "--out", "trial", "--no-report"],
        cwd=tmp_path,
        check=True,
        timeout=800,
    )
    base.run(base.command, "metrics", tmp_path / "trial")
    base.run(base.command, "verify", tmp_path / "trial")
    base.run(base.command, "report", tmp_path / "trial")
    assert (tmp_path / "trial/report/index.html").stat().st_size > 10_000


def test_with_the_sim_extra_a_plan_is_played(wheel: Path, tmp_path: Path) -> None:
    installed = install(tmp_path, wheel, "[sim]")
    program = (
        "import gymnasium\n"
        "env = gymnasium.make('RoboEval/CartPole3D-v0', level=3)\n"
        "env.reset(seed=1)\n"
        "print(len(env.step(0)))\n"
    )
    assert installed.run(installed.python, "-c", program).split()[-1] == "5"
    plan = tmp_path / "plan.yaml"
    plan.write_text("name: x\ntasks: [{levels: [0, 16]}]\npolicies: [balancer]\nepisodes: 8\n")
    assert "report:" in installed.run(installed.command, "run", "plan.yaml", "--out", "trial")
    assert (tmp_path / "trial/report/index.html").exists()
