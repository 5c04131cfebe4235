"""A metric of a lab's own package: in tables, JSON and report, and read by a profile's gate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from robo_eval.gates.profile import FOLDER

METRIC = '''
from robo_eval.metrics import Estimate, Number, metric


@metric("long_episodes", group="Of this lab", unit="count", also={"longest": "s"})
def long_episodes(body):
    """Episodes that took more than a minute.

    `longest` is the longest of all.
    """
    lengths = body.episodes["duration_s"]
    n = int((lengths > 60.0).sum())
    found = Estimate.exact(n, unit="count", n=len(lengths))
    yield Number(estimate=found, rests_on=f"{len(lengths)} episodes")
    longest = float(lengths.max())
    yield Number(
        name="longest",
        estimate=Estimate(value=longest, n=len(lengths), method="counted", unit="s"),
    )
'''
GATE = """
[gates.endurance]
title = "Long episodes"
reads = "long_episodes"
test = "at_least"
thresholds = { 1 = 3 }
"""
COLUMNS = """
columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who, task: kind,
          exposure_s: seconds, duration_s: seconds}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with an entry point, as pip would install it, and a trial."""
    folder = tmp_path_factory.mktemp("a lab")
    site = folder / "site"
    installed = site / "our_lab-1.0.dist-info"
    installed.mkdir(parents=True)
    (site / "our_lab.py").write_text(METRIC, encoding="utf-8")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: our-lab\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[robo_eval.metrics]\nours = our_lab\n")
    lines = ["trial,where,ok,pair,who,kind,seconds"]
    for i in range(12):
        lines.append(f"r{i},real,{int(i % 3 > 0)},p{i},ours,pick,{30 + 10 * i}")
        lines.append(f"s{i},sim,{int(i % 4 > 0)},p{i},ours,pick,{20 + i}")
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(COLUMNS, encoding="utf-8")
    profile = (FOLDER / "robotics.toml").read_text(encoding="utf-8")
    (folder / "profile.toml").write_text(profile + GATE, encoding="utf-8")
    told(folder, "import", "csv", "lab.csv", "--map", "map.yaml", "--out", "trial")
    return folder


def told(folder: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "robo_eval", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "site"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_its_numbers_stand_beside_the_others(lab: Path) -> None:
    table = told(lab, "metrics", "trial")
    assert "long episodes" in table
    assert "12 episodes" in table
    found = json.loads(told(lab, "metrics", "trial", "--json"))["numbers"]
    own = {one["name"]: one["value"] for one in found if one["group"] == "Of this lab"}
    # 30, 40, ... 140 s on the robot, none above a minute in simulation.
    assert own == {
        "long_episodes": 8.0,
        "longest": 140.0,
        "long_episodes_sim": 0.0,
        "longest_sim": 31.0,
    }
    listed = json.loads(told(lab, "metrics", "--list", "--json"))["metrics"]
    assert listed[-1]["meaning"] == "Episodes that took more than a minute."
    assert told(lab, "metrics", "trial", "--list", code=2) == ""


def test_the_report_shows_it_on_the_robot_and_in_simulation(lab: Path) -> None:
    told(lab, "report", "trial")
    page = (lab / "trial" / "report" / "index.html").read_text(encoding="utf-8")
    on_robot = page.split('id="robots"')[1].split("</section>")[0]
    simulated = page.split('id="simulated"')[1].split("</section>")[0]
    assert "Of this lab" in on_robot
    assert "long episodes sim" in simulated
    assert "Episodes that took more than a minute." in page


def test_a_gate_of_a_profile_reads_it(lab: Path) -> None:
    found = json.loads(told(lab, "assess", "trial", "--profile", "profile.toml", "--json", code=1))
    gates = {gate["id"]: gate for gate in found["assessments"][0]["gates"]}
    assert (gates["endurance"]["status"], gates["endurance"]["found"]["value"]) == ("pass", 8.0)


def test_a_package_that_cannot_be_imported_is_named(lab: Path) -> None:
    broken = lab / "site" / "broken-1.0.dist-info"
    broken.mkdir()
    try:
        (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
        (broken / "entry_points.txt").write_text("[robo_eval.metrics]\nours = no_such_module\n")
        done = subprocess.run(
            [sys.executable, "-m", "robo_eval", "metrics", "trial"],
            cwd=lab,
            env={**os.environ, "PYTHONPATH": str(lab / "site")},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for file in broken.iterdir():
            file.unlink()
        broken.rmdir()
    assert done.returncode == 2
    assert "no_such_module" in done.stderr
    assert "Traceback" not in done.stderr
