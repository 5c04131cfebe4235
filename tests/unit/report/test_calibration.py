"""The section of a report on calibration."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.report import calibration_figures as figures
from robo_eval.report.calibration import calibrations_of
from robo_eval.report.loop import LoopSetting, differences
from robo_eval.report.model import Report
from robo_eval.report.page import render

PLAN = "{name: x, tasks: [{env: RoboEval/CartPole3D-v0}], policies: [random], episodes: 1}"
TRACES = {
    "episode": "e3", "ticks": 2, "time_s": [0.0, 0.1, 0.2, 0.3],
    "channels": {"cart_x": {"unit": "m", "recorded": [0.0, 1.0, None, 3.0],
                            "nominal": [0.0, 2.0, 2.0, 4.0], "calibrated": [0.0, 1.0, 2.0, 3.5]}},
}  # fmt: skip
CONSTANTS = {
    "cart_mass_kg": {"value": 1.3, "low": 1.29, "high": 1.31, "unit": "kg", "nominal": 1.0,
                     "n": 2, "by_recording": [1.2, None], "verdict": "identified"},
    "push_gain": {"kept": 1.0, "nominal": 1.0, "verdict": "given", "reason": "not looked for"},
}  # fmt: skip
ACCEPTED = {
    "verdict": True, "fall": 0.91, "low": 0.84, "high": 0.95, "left": 1.02, "n": 2, "reason": None,
    "errors": {"e3": {"nominal": 11.8, "calibrated": 1.02}}, "traces": TRACES,
}  # fmt: skip
CHECK = {
    "recordings": 8,
    "findings": [
        {"check": "gaps", "verdict": "ok", "recording": "", "text": "none", "remedy": ""},
        {"check": "rates", "verdict": "warning", "recording": "e7", "text": "uneven <ticks>",
         "remedy": "look at the driver"},
    ],
    "constants": {"cart_mass_kg": {"verdict": "weak", "half_width": 0.2, "wanted": 0.05,
                                   "partners": ["push_gain"]}},
}  # fmt: skip


@pytest.fixture
def trial(tmp_path: Path) -> TrialDirectory:
    (tmp_path / "calibration").mkdir()
    return TrialDirectory(tmp_path, parse_plan(PLAN, source="plan"), "")


@pytest.fixture
def full(trial: TrialDirectory, write_snapshot: Callable[..., Path]) -> TrialDirectory:
    """With a snapshot that was accepted, twice, one that was changed, and a check."""
    folder = trial.path / "calibration"
    left = {"correlations": {"cart_mass_kg push_gain": -0.5, "delay_s cart_mass_kg": 0.25}}
    first = write_snapshot(
        folder / "a.yaml", constants=CONSTANTS, accepted=ACCEPTED, residuals=left
    )
    shutil.copy(first, folder / "b.yaml")
    write_snapshot(folder / "c.yaml", accepted={"verdict": True, "sha256": "0" * 64})
    (folder / "check.json").write_text(json.dumps(CHECK))
    return trial


def page_of(trial: TrialDirectory, make_report: Callable[..., Report]) -> str:
    return render(replace(make_report(), calibrations=calibrations_of(trial)), [])


def test_what_lies_with_a_trial_is_shown(full: TrialDirectory, make_report: Any) -> None:
    found = calibrations_of(full)
    assert len(found.snapshots) == 1  # played under two names
    assert list(found.problems) == ["c.yaml"]
    page = page_of(full, make_report)
    section = page[page.index('<section id="calibration"') :]
    section = section[: section.index("</section>")].replace("\N{NO-BREAK SPACE}", " ")
    for text in (
        "falls by 91 % (95 %: 84 % to 95 %) to 1.02 standard deviations",
        "1.3 kg", "1.29 to 1.31", "not looked for", "11.80", "Recording e3", "every 2 ticks",
        "c.yaml is not shown.", "was changed since it was accepted",
        "2 checks of 8 recordings", "uneven &lt;ticks&gt;", "look at the driver", "weak",
    ):  # fmt: skip
        assert text in section, text
    shown = set(re.findall(r'data-figure="([^"]+)"', section))
    assert shown == {"constants-0", "traces-0"}
    table = section[section.index("<caption>Correlation") :]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", table[: table.index("</table>")])
    assert cells == ["−0.50", "", "0.25", ""]  # each two once
    assert '<a href="#calibration">Calibration</a>' in page
    assert "What moved the agreement" not in page


@pytest.mark.parametrize(
    "check",
    [
        None, "[]", "{", '{"recordings": 2, "findings": [{}], "constants": {}}',
        '{"recordings": "many", "findings": [], "constants": {}}',
        '{"recordings": 2, "findings": ["verdict"], "constants": {}}',
        '{"recordings": 2, "findings": [], "constants": {"a": "verdict"}}',
    ],
)  # fmt: skip
def test_nothing_is_shown_of_nothing(trial, make_report, check) -> None:
    if check is not None:
        (trial.path / "calibration" / "check.json").write_text(check)
    assert 'id="calibration"' not in page_of(trial, make_report)


def test_a_snapshot_says_why_it_is_not_accepted(trial, write_snapshot, make_report) -> None:
    left = {"verdict": "structure", "reasons": ["dry friction of 0.3 N is missing"]}
    write_snapshot(trial.path / "calibration" / "a.yaml", residuals=left)
    page = page_of(trial, make_report)
    assert "Not accepted: not validated yet." in page
    assert "No constants explain these recordings: dry friction" in page


def test_settings_of_a_loop_are_told_apart_by_hue() -> None:
    same = Estimate(value=0.1, low=0.0, high=0.2, level=0.95, n=9, method="t", unit="")
    settings = [
        LoopSetting(calibration=name, played=name, recordings=1, success=0.5, difference=same,
                agreement=same)
        for name in ("nominal", "constants", "noise", "force", "randomised")
    ]  # fmt: skip
    colours = [one["line"]["color"] for one in differences(settings).data]
    parts = np.array([[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in colours])
    hues = parts - parts.mean(axis=1, keepdims=True)  # what is left without its lightness
    apart = [np.linalg.norm(a - b) for a, b in combinations(hues, 2)]
    assert min(apart) > 60.0  # two browns: 40


@pytest.mark.parametrize("narrow", [False, True])
def test_pictures_show_what_was_found(full: TrialDirectory, narrow: bool) -> None:
    (made,) = calibrations_of(full).snapshots
    forest = figures.constants(made, narrow=narrow)
    (series,) = forest.data
    assert series["x"] == [1.3, 1.2]
    assert series["error_x"]["array"] == pytest.approx([0.01, 0.0])
    assert forest.layout["shapes"][0]["x0"] == 1.0  # nominal

    assert made.accepted.traces is not None
    traces = figures.traces(made.accepted.traces, narrow=narrow)
    recorded, zero, nominal, wrong, calibrated, _ = traces.data
    assert recorded["y"] == [0.0, 1.0, None, 3.0, None]
    assert zero["y"] == [0.0, 0.0, None, 0.0, None]
    assert nominal["y"] == [0.0, 2.0, None, 2.0, 4.0, None]  # a line for each replay
    assert calibrated["x"] == [0.0, 0.1, None, 0.2, 0.3, None]
    assert wrong["y"] == [0.0, -1.0, None, None, -1.0, None]  # recorded less foretold
