"""Axes, index, progress, frontier and checklist of a trial, from its files to what is printed."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from robo_eval.gates.profile import FOLDER

AXES = ["A", "G", "P", "M", "T", "R", "S", "E", "W", "$"]


@pytest.fixture
def cli(quick_cli: Any) -> Any:
    """The quick one: `test_flow` and `test_incident_evidence` start these verbs from nothing."""
    return quick_cli


@pytest.fixture(scope="module")
def made(archetypes: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The synthetic robot that improves itself."""
    folder = tmp_path_factory.mktemp("archetypes") / "trial"
    archetypes.make(archetypes.ARCHETYPES[2], folder)
    return folder


@pytest.fixture
def trial(made: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    shutil.copytree(made, tmp_path / "trial")
    return tmp_path / "trial"


def findings(cli: Any, *arguments: Any) -> dict[str, Any]:
    done = cli("assess", *arguments, "--no-write", "--json")
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


def axes(cli: Any, trial: Path) -> dict[str, Any]:
    (one,) = findings(cli, trial)["assessments"]
    return {axis["axis"]: axis for axis in one["axes"]}


def change(trial: Path, name: str, old: str, new: str) -> None:
    path = trial / f"{name}.csv"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_every_axis_has_a_raw_value_anchors_an_interval_and_a_sample(cli, trial):
    found = axes(cli, trial)
    assert list(found) == AXES
    for axis in found.values():
        assert axis["raw"]["value"] is not None
        assert axis["anchors"] is not None
        value = axis["value"]
        assert 0.0 <= value["low"] <= value["value"] <= value["high"] <= 1.0
        assert value["n"] > 0
    assert found["$"]["anchors"]["source"] == "made-up price study"
    # ln(theta / 0.01) / ln(100), with theta of 459 tasks in 4000 h at 3 an hour.
    assert found["$"]["raw"]["value"] == pytest.approx(459 / 4000 / 3)
    assert found["$"]["value"]["value"] == pytest.approx(0.2913, abs=1e-4)
    # 110 - 80 of 200 over the shortfall of 120, less 0.05 for 10 loops in 200.
    assert found["S"]["value"]["value"] == pytest.approx(30 / 120 - 0.05 * 10 / 200)
    # sqrt(14 / (14 + 7) * 0.8), of whole numbers of recalled items.
    assert found["M"]["value"]["value"] == pytest.approx((2 / 3 * 0.8) ** 0.5, abs=2e-3)
    # Two changes of 0.04 over a frozen copy, which gained 0.001; autonomy (1 + 1 + 0.8) / 3.
    assert found["R"]["value"]["value"] == pytest.approx(2 * 0.039 * 2.8 / 3 / 0.1)


def test_the_index_is_the_weighted_mean_of_the_axes_and_lies_in_its_interval(cli, trial):
    (one,) = findings(cli, trial)["assessments"]
    index = one["index"]
    value, product = index["index"], 1.0
    for axis in one["axes"]:
        product *= axis["value"]["value"] ** index["weights"][axis["axis"]]
    assert value["value"] == pytest.approx(product)
    assert value["low"] < value["value"] < value["high"]
    assert index["adjusted"]["value"] < value["value"]
    assert set(index["alternatives"]) >= {"general", "software", "robotics", "equal"}
    assert index["weights"]["E"] == pytest.approx(0.2)


@pytest.mark.slow
def test_without_a_file_the_axis_is_missing_and_so_is_the_index(cli, trial):
    for name, axis, said in (
        ("retention", "M", "retention.csv"),
        ("revisions", "R", "revisions.csv"),
        ("teams", "S", "teams.csv"),
        ("anchors", "$", "anchors.csv"),
    ):
        path = trial / f"{name}.csv"
        text = path.read_text()
        path.unlink()
        (one,) = findings(cli, trial)["assessments"]
        found = {axis["axis"]: axis["value"] for axis in one["axes"]}
        assert found[axis]["value"] is None
        assert said in found[axis]["reason"]
        assert one["index"]["index"]["value"] is None
        assert one["index"]["missing"] == [axis]
        assert one["level_conservative"] == 2, name  # the robotics gates do not read it
        path.write_text(text)


def test_no_revision_in_the_window_is_a_measurement(cli, trial):
    path = trial / "revisions.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    found = axes(cli, trial)["R"]
    assert (found["value"]["value"], found["raw"]["value"]) == (0.0, 0.0)


def test_a_gain_that_stays_when_the_change_is_taken_back_does_not_count(cli, trial):
    change(trial, "revisions", "2800,2804,2805", "2800,2804,2950")
    (one,) = findings(cli, trial)["assessments"]
    assert [event["counts"] for event in one["revisions"]] == [False, False]
    assert {axis["axis"]: axis["value"]["value"] for axis in one["axes"]}["R"] == 0.0


def test_equal_anchors_are_one_line_with_file_and_remedy(cli, trial):
    change(trial, "anchors", "$,0.01,1,", "$,1,1,")
    done = cli("assess", trial)
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1)
    assert "anchors.csv: line 2, column 'expert': '1' equals the baseline" in done.err
    assert not (trial / "assessment").exists()


def test_checkpoints_of_another_window_fail_an_audit_that_names_the_file(cli, trial):
    change(trial, "checkpoints", "2026-03-", "2025-03-")
    (one,) = findings(cli, trial)["assessments"]
    assert one["level_conservative"] == 0
    (window,) = [audit for audit in one["audits"] if audit["id"] == "window"]
    assert window["status"] == "fail"
    assert window["reason"].startswith("checkpoints.csv: line 2 is of 2025-03-02, 36")


def test_progress_of_a_family_is_told_with_its_bends_and_steps(cli, trial):
    (one,) = findings(cli, trial)["assessments"]
    found = one["progress"]["PickPlace"]
    assert found["kappa"]["value"] == pytest.approx(0.015 / 2)
    assert found["spend_rate"]["value"] == pytest.approx(2.0)
    assert found["kappa_time"]["value"] == pytest.approx(0.015)
    # From 0.70 to 0.91: the shortfall falls from 0.30 to 0.09.
    assert found["steps"] == pytest.approx(1.7370, abs=1e-4)
    assert found["escape"]["resources"] > 0
    assert found["escape"]["to_all"] > found["escape"]["resources"]
    assert len(one["capability_by_day"]) == 15


@pytest.mark.slow
def test_the_bundle_holds_a_checklist_that_says_what_is_open(cli, trial):
    assert cli("assess", trial).code == 0
    text = (trial / "assessment" / "checklist.md").read_text()
    assert "incomplete" in text
    assert "- [ ] Who computed the numbers again, independently: open" in text
    questions = ("human_references", "battery_items", "promotion", "ablation_tools",
                 "ablation_memory", "held_out_drifts", "recomputation")  # fmt: skip
    lines = [f"{name},answered,the lab,notebook" for name in questions]
    (trial / "checklist.csv").write_text("\n".join(["item,answer,by,document", *lines]) + "\n")
    assert cli("verify", trial).code == 1  # what was signed did not rest on this file
    done = cli("assess", trial)
    assert done.code == 0
    assert "reproducibility checklist: 23 of 23 answered" in done.out
    assert cli("verify", trial).code == 0
    assert "complete." in (trial / "assessment" / "checklist.md").read_text()


@pytest.mark.slow
def test_the_frontier_is_compared_with_an_earlier_trial(cli, trial, made):
    same = findings(cli, trial, "--since", made)
    assert same["shift"]["auf"]["value"] == 0.0
    assert same["shift"]["progress"] is True
    assert same["frontier"]["auf"]["value"] == pytest.approx(459 / 500)
    assert findings(cli, trial)["shift"] is None
    done = cli("assess", trial, "--no-write", "--since", trial.parent / "none")
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1)


@pytest.mark.slow
def test_an_earlier_trial_that_does_not_verify_or_is_no_like_is_refused(
    cli, trial, made, tmp_path, small_plan
):
    changed = tmp_path / "changed"
    shutil.copytree(made, changed)
    with closing(sqlite3.connect(changed / "episodes.db")) as database:
        database.execute("UPDATE episodes SET quality = 0.5 WHERE sequence = 3")
        database.commit()
    done = cli("assess", trial, "--no-write", "--since", changed)
    assert (done.code, len(done.err.strip().splitlines())) == (1, 1)
    assert "the log does not verify" in done.err
    assert cli("run", small_plan, "--out", "sim").code == 0
    done = cli("assess", trial, "--no-write", "--since", "sim")
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1)
    assert "its episodes are of side sim and those of this trial of side real" in done.err


@pytest.mark.slow
def test_other_settings_than_those_agreed_before_fail_an_audit(cli, trial, tmp_path):
    """With a confidence of 1 % nearly every gate passes."""
    (tmp_path / "easy.yaml").write_text(
        "level: 0.01\nresamples: 1000\ntolerances: {'*': {jerk_rms: 1.0}}\n"
        "price_card: {energy: 0.2, wear: 0.8, operator: 2.0, currency: EUR}\n"
    )
    found = findings(cli, trial, "--config", tmp_path / "easy.yaml")
    (one,) = found["assessments"]
    assert one["level_conservative"] == 0
    (audit,) = [audit for audit in one["audits"] if audit["status"] != "pass"]
    assert audit["id"] == "settings"
    assert "leave out --config" in audit["reason"]
    assert found["settings"]["level"] == 0.01
    assert findings(cli, trial)["settings"]["level"] == 0.95


def test_the_bundle_rests_on_calibration_snapshots(cli, trial):
    (trial / "calibration").mkdir()
    (trial / "calibration" / ".DS_Store").write_text("x")
    (trial / "calibration" / "2026-03-01.yaml").write_text("mass: 1.0\n")
    assert cli("assess", trial).code == 0
    statement = json.loads((trial / "assessment" / "statement.json").read_text())
    assert [name for name in statement["files"] if name.startswith("calibration/")] == [
        "calibration/2026-03-01.yaml"
    ]
    assert cli("verify", trial).code == 0
    (trial / "calibration" / "2026-03-01.yaml").unlink()
    assert cli("verify", trial).code == 1


def test_steps_of_milestones_have_the_length_of_the_profile(cli, trial, tmp_path):
    (trial / "declarations.csv").write_text(
        "what,value,low,high,n,by,time,document\n"
        "milestone_2,0.5,0.5,0.5,300,the lab,2026-03-10T12:00:00+00:00,report.pdf\n"
    )

    def steps(*arguments: Any) -> float:
        (one,) = findings(cli, trial, *arguments)["assessments"]
        (gate,) = [g for g in one["gates"] if (g["id"], g["level"]) == ("steps", 3)]
        return float(gate["found"]["value"])

    own = (
        (FOLDER / "robotics.toml").read_text().replace("delta = 0.6931471805599453", "delta = 1.0")
    )
    (tmp_path / "lab.toml").write_text(own)
    assert steps("--profile", tmp_path / "lab.toml") == pytest.approx(steps() * math.log(2.0))


@pytest.mark.slow
def test_all_prints_axes_and_progress_in_words(cli, trial):
    out = cli("assess", trial, "--no-write", "--all").out
    expected = (
        "axes", "A, autonomy", "$, throughput", "progress", "PickPlace", "index 0.", "(reported)",
        "delegability:", "open: Who computed the numbers again",
    )  # fmt: skip
    for said in expected:
        assert said in out
    short = cli("assess", trial, "--no-write").out
    assert "A, autonomy" not in short
    assert "index 0." in short
