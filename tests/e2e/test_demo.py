"""The demo plays its twin beside the simulators, and leaves it a core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from robo_eval.cli import demo
from robo_eval.core.errors import CheckFailedError
from robo_eval.core.plan import parse_plan
from robo_eval.log import provenance

PLANS = Path(demo.__file__).parent
POPEN = subprocess.Popen


class Stage:
    """What the demo plays here, and the process beside it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_ros: bool, cores: int) -> None:
        self.played: list[tuple[str, int | None]] = []
        self.words: list[str] = []
        self.beside: subprocess.Popen[bytes] | None = None
        self.program = "import sys; sys.stderr.write('twin: 2/2\\n')"
        self.problem: Exception | None = None
        monkeypatch.setattr(demo, "has_ros", lambda: has_ros)
        monkeypatch.setattr(provenance, "cores", lambda: cores)
        monkeypatch.setattr(os, "nice", lambda _: 19)  # it would stay
        monkeypatch.setattr(subprocess, "Popen", self._start)
        monkeypatch.setattr(demo, "_play", self._play)
        self.calibrated: list[Path] = []
        monkeypatch.setattr(demo, "_calibrate", lambda path, _: self.calibrated.append(path))
        for name in ("ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_DOMAIN_ID"):
            monkeypatch.setenv(name, "")

    def _start(self, command: list[str], **named: Any) -> subprocess.Popen[bytes]:
        self.words = command[3:]
        self.beside = POPEN([sys.executable, "-c", self.program], **named)
        return self.beside

    def _play(self, plan: str, path: Path, how: Any) -> None:
        if self.problem:
            raise self.problem
        sys.stderr.write(f"{plan} is played\n")
        self.played.append((plan, how.jobs))


@pytest.mark.parametrize(("jobs", "cores", "others"), [(None, 2, 1), (None, 8, 7), (3, 8, 3)])
def test_the_twin_has_a_core_and_is_told_of_last(
    jobs, cores, others, tmp_path: Path, monkeypatch, capsys
) -> None:
    stage = Stage(monkeypatch, has_ros=True, cores=cores)
    demo.demo(out=tmp_path, jobs=jobs)
    assert stage.played == [
        ("demo_plan.yaml", others),
        ("dose_plan.yaml", others),
        ("matched_plan.yaml", jobs),
    ]
    assert stage.calibrated == [tmp_path / "matched"]
    assert stage.words[:2] == ["run", str(PLANS / "matched_plan.yaml")]
    assert stage.words[2:4] == ["--out", f"{tmp_path}/matched"]
    assert stage.words[4:6] == ["--robot", f"{tmp_path}/demo_twin.yaml"]
    said = capsys.readouterr().err
    assert said.index("dose_plan.yaml") < said.index("twin: 2/2") < said.index("matched_plan.yaml")


def test_a_matched_trial_that_was_begun_goes_on(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "matched").mkdir()
    (tmp_path / "matched/plan.yaml").touch()
    stage = Stage(monkeypatch, has_ros=True, cores=2)
    demo.demo(out=tmp_path)
    assert stage.words == ["resume", f"{tmp_path}/matched", "--no-report"]


def test_the_twin_is_stopped_where_the_simulators_fail(tmp_path: Path, monkeypatch) -> None:
    stage = Stage(monkeypatch, has_ros=True, cores=2)
    stage.program = "import time; time.sleep(600)"
    stage.problem = CheckFailedError("too few")
    with pytest.raises(CheckFailedError, match="too few"):
        demo.demo(out=tmp_path)
    assert stage.beside is not None
    assert stage.beside.returncode is not None


@pytest.mark.parametrize(("has_ros", "cores"), [(False, 8), (True, 1)])
def test_nothing_is_played_beside_where_there_is_no_twin_or_no_core(
    has_ros, cores, tmp_path: Path, monkeypatch, capsys
) -> None:
    stage = Stage(monkeypatch, has_ros=has_ros, cores=cores)
    demo.demo(out=tmp_path)
    plans = ["demo_plan.yaml", "dose_plan.yaml"] + ["matched_plan.yaml"] * has_ros
    assert stage.played == [(plan, None) for plan in plans]
    assert stage.beside is None
    assert len(stage.calibrated) == has_ros
    assert ("left out" in capsys.readouterr().err) == (not has_ros)


@pytest.mark.parametrize("name", ["demo_plan.yaml", "dose_plan.yaml", "matched_plan.yaml"])
def test_its_plans_are_plans(name: str) -> None:
    plan = parse_plan((PLANS / name).read_text(encoding="utf-8"), source=name)
    assert plan.episodes >= 10  # with fewer the reports do not show what they show now
