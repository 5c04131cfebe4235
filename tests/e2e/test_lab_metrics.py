"""A metric of a lab's own package: in tables, JSON and report, and read by a profile's gate."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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


# From a file ------------------------------------------------------------------------------------


@pytest.fixture
def plain(lab: Path, tmp_path: Path) -> Path:
    """The trial where no package is installed, and the file of the metric."""
    shutil.copytree(lab / "trial", tmp_path / "trial", ignore=shutil.ignore_patterns("report"))
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "our_lab.py").write_text(METRIC, encoding="utf-8")
    for name in ("profile.toml", "lab.csv", "map.yaml"):
        shutil.copy(lab / name, tmp_path)
    return tmp_path


SHA256 = hashlib.sha256(METRIC.encode()).hexdigest()
FILE = ("--metrics", "ours/our_lab.py")


def test_a_file_is_enough(commands: Any, plain: Path) -> None:
    done = commands("metrics", "trial", *FILE, folder=plain)
    assert "long episodes" in done.out, done.err
    assert f"metrics of our_lab.py: SHA-256 {SHA256}" in done.out
    found = json.loads(commands("metrics", "trial", *FILE, "--json", folder=plain).out)
    assert found["metric_files"] == {"our_lab.py": SHA256}
    own = {one["name"]: one["value"] for one in found["numbers"] if one["group"] == "Of this lab"}
    assert own["long_episodes"] == 8.0
    table = commands("metrics", "lab.csv", "--map", "map.yaml", *FILE, folder=plain)
    assert "long episodes" in table.out, table.err
    assert "long episodes" not in commands("metrics", "trial", folder=plain).out
    listed = json.loads(commands("metrics", "--list", *FILE, "--json", folder=plain).out)
    assert listed["metrics"][-1]["source"] == f"our_lab.py, SHA-256 {SHA256}"


def test_what_it_prints_is_not_among_the_numbers(commands: Any, plain: Path) -> None:
    talking = METRIC.replace("    lengths = body", '    print("computing")\n    lengths = body')
    (plain / "talking.py").write_text(talking + '\nprint("loaded")\n')
    done = commands("metrics", "trial", "--metrics", "talking.py", "--json", folder=plain)
    assert json.loads(done.out)["metric_files"].keys() == {"talking.py"}
    assert "computing" in done.err


def test_the_report_says_from_which_file_it_is(commands: Any, plain: Path) -> None:
    done = commands("report", "trial", *FILE, folder=plain)
    assert done.code == 0, done.err
    page = (plain / "trial" / "report" / "index.html").read_text(encoding="utf-8")
    assert f"It is from our_lab.py, SHA-256 {SHA256}." in page
    assert "give --metrics our_lab.py again" in page


def test_a_gate_reads_what_settings_name_relative_to_themselves(commands: Any, plain: Path) -> None:
    (plain / "ours" / "settings.yaml").write_text("modules: [our_lab.py]\n")
    arguments = ("--profile", "profile.toml", "--no-write", "--json")
    done = commands("assess", "trial", *arguments, "--config", "ours/settings.yaml", folder=plain)
    found = json.loads(done.out)
    assert found["metric_files"] == {"our_lab.py": SHA256}
    gates = {gate["id"]: gate for gate in found["assessments"][0]["gates"]}
    assert gates["endurance"]["found"]["value"] == 8.0
    without = commands("assess", "trial", *arguments, folder=plain)
    assert without.code == 2
    assert "long_episodes" in without.err


def test_a_plan_names_files_relative_to_itself_and_the_trial_keeps_them(
    commands: Any, plain: Path
) -> None:
    (plain / "plans").mkdir()
    plan = plain / "plans" / "plan.yaml"
    plan.write_text(
        "name: own\ntasks: [{levels: [0]}]\npolicies: [nothing]\nepisodes: 1\ntraces: none\n"
        "metrics: {modules: [../ours/our_lab.py]}\n"
    )
    done = commands("run", "plans/plan.yaml", "--out", "played", "--jobs", 1, folder=plain)
    assert done.code == 0, done.err
    assert (plain / "played" / "our_lab.py").read_text() == METRIC
    assert "It is from our_lab.py" in (plain / "played/report/index.html").read_text()
    (plain / "ours" / "our_lab.py").write_text(METRIC.replace("60.0", "0.0"))
    told = commands("metrics", "played", folder=plain)
    assert f"metrics of our_lab.py: SHA-256 {SHA256}" in told.out
    assert "our_lab.py" in commands("metrics", "played", *FILE, folder=plain).out
    assert SHA256 not in commands("metrics", "played", *FILE, folder=plain).out
    assert not list((plain / "played").rglob("__pycache__"))
    (plain / "played" / "our_lab.py").unlink()
    lost = commands("metrics", "played", folder=plain)
    assert lost.code == 2
    assert "played/plan.yaml: metrics.modules:" in lost.err
    assert "put it there" in lost.err


WRONG: dict[str, tuple[str | None, str]] = {
    "missing": (None, "No such file"),
    "broken": ("x = 1 / 0\n", "ZeroDivisionError"),
    "no Python": ("def f(:\n", "SyntaxError"),
    "without a metric": ("x = 1\n", "registers no metric"),
    "a name of ours": (METRIC.replace('"long_episodes"', '"AR"'), "has a metric of that name"),
    "an unknown need": (
        METRIC.replace('unit="count", al', 'unit="count", needs=("no",), al'),
        "no",
    ),
    "ending the program": ("raise SystemExit(0)\n", "SystemExit"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_cannot_be_used_is_one_line(commands: Any, plain: Path, case: str) -> None:
    text, reason = WRONG[case]
    file = plain / "ours" / "our_lab.py"
    file.unlink()
    if text is not None:
        file.write_text(text)
    done = commands("metrics", "trial", *FILE, folder=plain)
    assert (done.code, done.out) == (2, "")
    assert "our_lab.py" in done.err
    assert reason in done.err
    assert done.err.count("\n") == 1


def test_a_plan_whose_file_cannot_be_used_plays_nothing(commands: Any, plain: Path) -> None:
    (plain / "ours" / "our_lab.py").write_text(str(WRONG["broken"][0]))
    plan = plain / "plan.yaml"
    plan.write_text(
        "name: own\ntasks: [{levels: [0]}]\npolicies: [nothing]\nepisodes: 1\n"
        "metrics: {modules: [ours/our_lab.py]}\n"
    )
    done = commands("run", "plan.yaml", "--out", "played", folder=plain)
    assert done.code == 2
    assert "plan.yaml: metrics.modules:" in done.err
    assert not (plain / "played").exists()


def test_a_name_stands_for_one_python_file(commands: Any, plain: Path) -> None:
    (plain / "our_lab.py").write_text(METRIC.replace("60.0", "0.0"))
    for file, reason in (("our_lab.py", "another our_lab.py"), ("lab.csv", "is no Python file")):
        done = commands("metrics", "trial", *FILE, "--metrics", file, folder=plain)
        assert done.code == 2
        assert f"metrics of {file}" in done.err
        assert reason in done.err
    assert commands("report", ".", *FILE, folder=plain).code == 2
