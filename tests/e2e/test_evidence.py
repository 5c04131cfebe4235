"""A lab's own episodes and its evidence, from CSV files to every number of a robot."""

import csv
import json

import pytest

from tests.e2e.conftest import PAIRED_MAP

INCIDENTS = """incident_id,severity,time,episode_id
i1,near_miss,2026-03-01T05:10:00+00:00,
i2,near_miss,,real-7
i3,minor,2026-03-02T05:30:00+00:00,
"""
FAULTS = "fault,recovered,episode_id,injected\n" + "".join(
    f"grasp_slip,{'true' if i < 18 else 'false'},real-{i},true\n" for i in range(20)
)
SETTINGS = """
tolerances: {"*": {jerk_rms_m_s3: 5.0}}
price_card: {energy: 0.5, operator: 2.5, currency: EUR}
resamples: 999
"""


@pytest.fixture
def lab(tmp_path, paired_lab):
    """An imported trial of 60 pairs with its evidence; the robot failed in 6, simulation in 3."""
    with_jerk = PAIRED_MAP.replace("columns:", "columns:\n  control_quality.jerk_rms_m_s3: jerk")
    won = {"real": 54, "sim": 57}
    folder = paired_lab(60, fails=lambda side, number: number >= won[side], map_text=with_jerk)
    (folder / "incidents.csv").write_text(INCIDENTS)
    (folder / "faults.csv").write_text(FAULTS)
    (tmp_path / "settings.yaml").write_text(SETTINGS)
    return folder


@pytest.fixture
def cli(quick_cli):
    """The quick one: `test_flow` and `test_incident_evidence` start these verbs from nothing."""
    return quick_cli


def whole(found):
    """Numbers of the one policy on its robot, over all families and cases."""
    return {
        one["name"]: one
        for one in found["numbers"]
        if not (one["family"] or one["case"] or one["at"])
    }


def test_every_number_of_a_robot_comes_with_interval_and_n(lab, cli):
    done = cli("metrics", lab, "--config", "settings.yaml", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    robot = whole(found)
    assert robot["AR"]["value"] == pytest.approx(0.9)
    assert robot["S2R"]["value"] == pytest.approx(0.95)
    assert robot["exposure_hours"]["value"] == pytest.approx(60.0)
    severities = ("near_misses", "minor_incidents", "major_incidents", "critical_incidents")
    assert [robot[name]["value"] for name in severities] == [2, 1, 0, 0]
    assert robot["SS"]["value"] == pytest.approx(1 - 0.02 / 0.6 - 0.1 / 0.6)
    assert robot["E"]["method"] == "joint_bootstrap"
    assert robot["E"]["low"] < robot["E"]["value"] < robot["E"]["high"]
    assert robot["RA"]["n"] == 20
    tasks = {one["family"] for one in found["numbers"] if one["name"] == "QC"}
    assert tasks == {"pick", "place"}
    assert robot["tasks_per_hour"]["value"] == pytest.approx(0.9)
    assert robot["cost_per_hour"]["note"] == "EUR"
    assert set(found["evidence"]) == {"incidents.csv", "faults.csv"}
    assert found["configuration"]["resamples"] == 999
    assert found["audit"] == []


def test_the_table_names_every_number(lab, cli):
    done = cli("metrics", lab, "--config", "settings.yaml")
    assert done.code == 0, done.err
    for name in ("AR", "AR_sim", "S2R", "SS", "E", "MTBF", "RA", "QC, pick", "tasks per cost"):
        assert any(line.strip().startswith(name) for line in done.out.splitlines()), name
    assert "ours on the robot" in done.out
    assert "twin" not in done.out


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        ("incidents.csv", "i4,minor,2027-01-01T00:00:00+00:00,", "lies in no exposure"),
        ("incidents.csv", "i4,minor,,sim-3", "'sim-3' is no physical episode"),
        ("faults.csv", "occlusion,true,nowhere,false", "'nowhere' is no physical episode"),
    ],
)
def test_evidence_that_does_not_fit_fails_the_audit(lab, cli, file, line, message):
    path = lab / file
    path.write_text(path.read_text() + line + "\n")
    done = cli("metrics", lab)
    assert done.code == 1
    assert message in done.err
    assert "ours on the robot" in done.out  # the numbers are shown all the same
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("incidents.csv", "incident_id,severity\ni1,severe\n", "line 2, column 'severity'"),
        ("faults.csv", "fault,recoverd\n", "did you mean 'recovered'"),
        ("settings.yaml", "severity_weights: {near_miss: -1}", "severity_weights.near_miss"),
        (
            "settings.yaml",
            "severity_weights: {near_miss: 0, minor: 0, major: 0, critical: 0}",
            "all weights are 0",
        ),
        ("settings.yaml", "resample: 999", "did you mean 'resamples'"),
        ("settings.yaml", "price_card: {enrgy: 1}", "did you mean 'energy'"),
        ("settings.yaml", "- a", "settings are a mapping"),
        ("settings.yaml", "tolerances: {pick: {jerk: 0}}", "tolerances.pick.jerk"),
    ],
)
def test_evidence_and_settings_that_cannot_be_read_are_refused(
    lab, cli, tmp_path, file, text, message
):
    path = (tmp_path if file == "settings.yaml" else lab) / file
    path.write_text(text)
    done = cli("metrics", lab, "--config", "settings.yaml")
    assert done.code == 2
    assert message in done.err
    assert file in done.err
    assert done.out == ""
    assert len(done.err.strip().splitlines()) == 1


def test_files_can_be_named(lab, cli, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("incident_id,severity,policy\nx,critical,ours\n")
    found = json.loads(cli("metrics", lab, "--incidents", other, "--json").out)
    robot = whole(found)
    assert (robot["SS"]["value"], robot["critical_incidents"]["value"]) == (0.0, 1.0)
    missing = cli("metrics", lab, "--faults", "nowhere.csv")
    assert (missing.code, "nowhere.csv: no such file of faults" in missing.err) == (2, True)


@pytest.mark.slow
def test_a_table_needs_no_trial_directory(lab, cli, tmp_path):
    """The same numbers from the trial, from its export, and from the lab's own CSV file."""
    (lab / "incidents.csv").rename(tmp_path / "incidents.csv")
    (lab / "faults.csv").unlink()
    named = ["--incidents", tmp_path / "incidents.csv", "--config", "settings.yaml", "--json"]
    assert cli("export", lab, "--out", "lab.parquet").code == 0
    numbers = []
    for what in ([lab], ["lab.parquet"], ["lab.csv", "--map", "map.yaml"]):
        done = cli("metrics", *what, *named)
        assert done.code == 0, done.err
        numbers.append(json.loads(done.out)["numbers"])
    assert numbers[0] == numbers[1] == numbers[2]
    refused = cli("metrics", lab, "--map", "map.yaml")
    assert (refused.code, "--map is for a CSV file" in refused.err) == (2, True)
    other = cli("metrics", "map.yaml")
    assert (other.code, "must end in .parquet or .csv" in other.err) == (2, True)


@pytest.mark.slow
def test_a_wrong_row_of_a_table_is_named_with_file_row_and_column(lab, cli, tmp_path):
    assert cli("export", lab, "--out", "episodes.csv").code == 0
    with (tmp_path / "episodes.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for column, value, said in (
        ("quality", "nan", "row 3, column 'quality': nan"),
        ("duration_s", "-1", "column 'duration_s' is -1.0; it must be a number of at least 0"),
        ("episode_id", rows[0]["episode_id"], "column 'episode_id' appears twice"),
        ("side", "moon", "row 3, column 'side': unknown side 'moon'"),
    ):
        wrong = [dict(row) for row in rows]
        wrong[2][column] = value
        with (tmp_path / "wrong.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, wrong[0].keys())
            writer.writeheader()
            writer.writerows(wrong)
        done = cli("metrics", "wrong.csv")
        assert done.code == 2
        assert "wrong.csv: row 3" in done.err
        assert said in done.err
        assert done.err.count("\n") == 1
