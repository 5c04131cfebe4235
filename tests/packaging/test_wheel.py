"""The built wheel works where only the wheel and what it asks for is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(installed: Callable[[str], Any]) -> Any:
    return installed("")


def test_every_data_file_is_in_the_wheel(wheel: Path) -> None:
    packaged = set(zipfile.ZipFile(wheel).namelist())
    rooms = ("robo_eval", "sim/robo_eval_sim", "incidents/robo_eval_incidents")
    command = ["git", "ls-files", "-z", *rooms]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    tracked = [name for name in listed.stdout.split("\0") if name and (REPOSITORY / name).is_file()]
    missing = {name[name.index("robo_eval") :] for name in tracked} - packaged
    assert not missing
    assert any(name.endswith("demo_plan.yaml") for name in packaged)
    assert any("/page/templates/" in name for name in packaged)
    for name in ("static/base.css", "static/vendor/htmx.min.js", "templates/base.html.j2"):
        assert f"robo_eval/web/{name}" in packaged
    assert not [name for name in packaged if "/tests/" in name or name.startswith("tests/")]


def test_base_install_scores_and_reports_but_does_not_play(base: Any) -> None:
    assert "resume" in base.run(base.command, "--help")
    assert base.run(base.command, "--version").startswith("robo-eval ")
    assert "gravity" in base.run(base.command, "levels").lower()
    base.run(base.python, "-c", "import robo_eval.report.build, robo_eval.analysis.acc")
    listed = base.run(base.python, "-m", "pip", "list", "--format", "freeze").lower()
    for absent in ("pybullet", "torch", "pytest", "ruff"):
        assert f"{absent}=" not in listed
    base.run(base.python, "-m", "pip", "check")


def test_without_pybullet_the_message_names_the_extra(base: Any) -> None:
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
    assert "robo-eval-stack[sim]" in message
    plan = base.folder / "plan.yaml"
    plan.write_text("name: x\ntasks: [{levels: [0]}]\npolicies: [random]\nepisodes: 1\n")
    refused = base.run(base.command, "run", "plan.yaml", "--out", "trial", code=2)
    assert "robo-eval-stack[sim]" in refused
    assert "Traceback" not in refused
    assert not (base.folder / "trial").exists()


def test_a_log_played_elsewhere_is_scored_by_the_base_install(base: Any, tmp_path: Path) -> None:
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


def python_of(version: str) -> str:
    """An interpreter of this version that can make environments; this one, if it is of it."""
    if sys.version.startswith(f"{version}."):
        return sys.executable
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for found in (shutil.which(f"python{version}"), *kept.glob(f"{version}.*/bin/python")):
        works = [str(found), "-c", "import venv, ensurepip"]
        if found and not subprocess.run(works, capture_output=True, check=False).returncode:
            return str(found)
    pytest.skip(f"no Python {version} with venv and ensurepip is here, so it was not tried")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_with_the_sim_extra_a_plan_is_played(version: str, installed: Callable[..., Any]) -> None:
    sim = installed("sim", python_of(version))
    said = sim.run(sim.python, REPOSITORY / "tests/golden/played.py")
    recorded = json.loads((REPOSITORY / "tests/golden/played.json").read_text(encoding="utf-8"))
    assert json.loads(said) == recorded
    sim.run(sim.python, "-m", "pip", "check")
    program = (
        "import gymnasium\n"
        "env = gymnasium.make('RoboEval/CartPole3D-v0', level=3)\n"
        "env.reset(seed=1)\n"
        "print(len(env.step(0)))\n"
    )
    assert sim.run(sim.python, "-c", program).split()[-1] == "5"
    plan = sim.folder / "plan.yaml"
    plan.write_text("name: x\ntasks: [{levels: [0, 16]}]\npolicies: [balancer]\nepisodes: 8\n")
    assert "report:" in sim.run(sim.command, "run", "plan.yaml", "--out", "trial")
    assert (sim.folder / "trial/report/index.html").exists()
