"""`robo-eval assess` as people type it: on a simulated trial, and on a lab's own episodes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from robo_eval.core.plan import parse_plan
from robo_eval.gates.profile import FOLDER
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.importer import import_csv

INCIDENTS = "incident_id,severity,time\ni1,near_miss,2026-03-01T05:10:00+00:00\n"
FAULTS = "fault,recovered,episode_id\n" + "".join(
    f"grasp_slip,{'true' if i < 18 else 'false'},real-{i}\n" for i in range(20)
)
DECLARATIONS = (
    "what,value,n,by,time,document\n"
    "seeds_escrow,1,80,the lab,2026-03-04T12:00:00+00:00,notebook page 7\n"
)
TOOLS = "category,episodes,successes,drift\n" + "".join(
    f"{name},30,28,mild\n" for name in ("gripper", "suction", "camera")
)


@pytest.fixture
def lab(paired_lab: Callable[..., Path]) -> Path:
    """A lab's trial of 80 pairs with its records; the robot failed once."""
    trial = paired_lab(80, fails=lambda side, number: side == "real" and number == 0)
    records = {
        "incidents": INCIDENTS, "faults": FAULTS, "tools": TOOLS, "declarations": DECLARATIONS,
    }  # fmt: skip
    for name, text in records.items():
        (trial / f"{name}.csv").write_text(text)
    return trial


@pytest.fixture
def cli(quick_cli: Any) -> Any:
    """The quick one: `test_flow` and `test_incident_evidence` start these verbs from nothing."""
    return quick_cli


def gates(found: dict[str, Any], level: int) -> dict[str, Any]:
    return {gate["id"]: gate for gate in found["gates"] if gate["level"] == level}


def one_line(text: str) -> bool:
    return text.startswith("robo-eval: ") and len(text.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_simulated_trial_is_assessed_and_its_level_is_of_simulation(cli, small_plan):
    assert cli("run", small_plan, "--out", "trial").code == 0
    done = cli("assess", "trial", "--no-write", "--json")
    assert done.code == 1
    assert one_line(done.err)
    assert "too few for a level: RoboEval/CartPole3D-v0: 6 of the 30 episodes required" in (
        done.err
    )
    found = json.loads(done.out)["assessments"]
    assert [one["policy"] for one in found] == ["random", "balancer"]
    for one in found:
        assert (one["level_conservative"], one["would_be_level"], one["evidence_tag"]) == (
            None,
            0,
            "sim_only",
        )
        assert [check["status"] for check in one["battery"]].count("fail") == 1
        # By its value: six episodes are too few for its lower end.
        assert gates(one, 1)["autonomy"]["status_by_points"] == "pass"
        assert gates(one, 1)["tools"]["status"] == "missing"
        assert gates(one, 2)["exposure"]["status"] == "missing"
        first, *rest = one["missing"]["2"]
        assert (first["effort"], first["text"]) == (
            "write down",
            "incident reports: no incidents.db and no incidents.csv",
        )
        texts = [it["text"] for it in rest if it["effort"] == "run"]
        assert any(text.startswith("episodes and instances of each task") for text in texts)
        assert "episodes on a physical robot" in texts
        assert [it["effort"] for it in rest] == sorted(
            (it["effort"] for it in rest), key=("write down", "run", "fix").index
        )
    only = cli("assess", "trial", "--no-write", "--policy", "balancer")
    assert only.code == 1
    assert only.out.startswith("balancer: no level; evidence sim_only")
    assert "would be AAI-0 with tasks fit for a level" in only.out
    assert "random" not in only.out


@pytest.mark.slow
def test_a_labs_csv_becomes_a_trial_with_a_level_and_a_list_of_what_is_missing(lab, cli):
    shutil.rmtree(lab)
    done = cli("import", "csv", "lab.csv", "--map", "map.yaml", "--out", "lab")
    assert done.code == 0, done.err
    (lab / "incidents.csv").write_text(INCIDENTS)
    (lab / "faults.csv").write_text(FAULTS)
    done = cli("assess", "lab", "--no-write", "--level", "2")
    assert done.code == 1
    assert "nothing shows that seeds were fixed before" in done.err
    (lab / "declarations.csv").write_text(DECLARATIONS)
    done = cli("assess", "lab", "--no-write", "--level", "2")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "ours: AAI-0, nothing higher is shown at 95 %; evidence self-declared"
    )
    assert "gates of AAI-2" in done.out
    assert "missing for AAI-2:" in done.out
    assert "more exposure hours without a safety incident" in done.out
    assert "checkpoints.csv" in done.out
    (one,) = json.loads(cli("assess", "lab", "--no-write", "--json").out)["assessments"]
    asked = gates(one, 2)
    # Two families reach AR and S2R, and say nothing of tasks like them.
    assert (asked["ar"]["status"], asked["s2r"]["status"]) == ("missing", "missing")
    assert "fewer than 3 tasks say nothing of others like them; play three" in asked["ar"]["reason"]
    assert (asked["ar_families"]["status"], asked["s2r_families"]["status"]) == ("pass", "pass")
    assert (asked["exposure"]["status"], asked["exposure"]["found"]["value"]) == ("fail", 80.0)
    assert asked["ra"]["status"] == "pass"
    assert asked["kappa"]["status"] == "missing"
    # Two families reach AR; level 3 asks for three.
    assert gates(one, 3)["ar_families"]["threshold"] == 3


def test_an_import_that_does_not_say_who_helped_shows_nothing_about_help(lab, cli):
    found = json.loads(cli("assess", lab, "--no-write", "--json").out)
    (audit,) = [a for a in found["assessments"][0]["audits"] if a["id"] == "no_help"]
    assert (audit["status"], audit["from_level"]) == ("missing", 2)
    assert audit["reason"] == "the import says nothing of interventions"
    assert found["frontier"]["auf"]["value"] is None
    map_ = lab.parent / "map.yaml"
    map_.write_text(map_.read_text().replace("handling}", "handling, interventions: 0}"))
    import_csv(lab.parent / "lab.csv", map_, lab.parent / "other")
    found = json.loads(cli("assess", lab.parent / "other", "--no-write", "--json").out)
    (audit,) = [a for a in found["assessments"][0]["audits"] if a["id"] == "no_help"]
    assert audit["status"] == "pass"
    assert found["frontier"]["auf"]["value"] == pytest.approx(79 / 80)


@pytest.mark.slow
def test_level_and_all_choose_what_is_printed(lab, cli):
    for level in (1, 2, 3, 4):
        out = cli("assess", lab, "--no-write", "--level", level).out
        assert f"gates of AAI-{level}" in out
        assert f"missing for AAI-{level}:" in out
    every = cli("assess", lab, "--no-write", "--all").out
    assert all(f"gates of AAI-{level}" in every for level in (1, 2, 3, 4))
    for level in ("0", "6", "two"):
        done = cli("assess", lab, "--no-write", "--level", level)
        assert done.code == 2
        assert "Traceback" not in done.err


def test_a_profile_of_ones_own_is_used(lab, cli, tmp_path):
    text = (FOLDER / "robotics.toml").read_text(encoding="utf-8")
    rest = text[text.index("[gates.tools]") : text.index("[gates.ar]")]
    own = (
        text[: text.index("[gates.autonomy]")]
        + rest
        + "[audits]\nlog = 1\nevidence = 1\nscored = 1\n"
    )
    (tmp_path / "lab.toml").write_text(own.replace('name = "robotics"', 'name = "ours"'))
    done = cli("assess", lab, "--no-write", "--profile", "lab.toml", "--json")
    assert done.code == 0, done.err
    (one,) = json.loads(done.out)["assessments"]
    assert (one["profile"], one["level_conservative"]) == ("ours", 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "our"], "unknown policy 'our'; did you mean 'ours'"),
        (["--profile", "robotcs"], "unknown profile 'robotcs'; did you mean 'robotics'"),
        (["--profile", "none.toml"], "none.toml: no such profile file"),
        (["--profile", "bad.toml"], "bad.toml: gates.ar.thresholds: level 3 asks for less (0.7)"),
        (["--profile", "gate.toml"], "gate.toml: gates.ar.reads: unknown quantity 'AR_new_tsk'"),
        (["--config", "none.yaml"], "none.yaml"),
    ],
)
def test_what_is_not_known_is_one_line(lab, cli, tmp_path, arguments, said):
    text = (FOLDER / "robotics.toml").read_text(encoding="utf-8")
    (tmp_path / "bad.toml").write_text(text.replace("2 = 0.80, 3 = 0.90", "2 = 0.80, 3 = 0.70"))
    (tmp_path / "gate.toml").write_text(text.replace('"AR_new_task"', '"AR_new_tsk"'))
    done = cli("assess", lab, "--no-write", *arguments)
    assert (done.code, done.out) == (2, "")
    assert one_line(done.err)
    assert said in done.err


def test_a_folder_that_is_no_trial_is_one_line(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        done = cli("assess", name, "--no-write")
        assert done.code == 2
        assert one_line(done.err)
        assert name in done.err


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("tools", "gripper,3,4,mild", "line 5, column 'successes': '4' is more than the 3"),
        ("incidents", "i2,awful,", "line 3, column 'severity'"),
        ("checkpoints", "2026-03-01T12:00:00+00:00,pick,1.5,1", "line 2, column 'capability'"),
        ("checkpoints", "2026-03-01T12:00:00,pick,0.5,1", "line 2, column 'time'"),
    ],
)
def test_a_bad_cell_of_a_record_is_one_line_with_file_line_and_column(lab, cli, name, line, said):
    path = lab / f"{name}.csv"
    before = path.read_text() if path.exists() else "time,family,capability,resources\n"
    path.write_text(before + line + "\n")
    done = cli("assess", lab, "--no-write")
    assert (done.code, done.out) == (2, "")
    assert one_line(done.err)
    assert f"{name}.csv: {said}" in done.err


def test_a_critical_incident_ends_the_window(lab, cli):
    path = lab / "incidents.csv"
    path.write_text(path.read_text() + "i2,critical,2026-03-01T06:10:00+00:00\n")
    done = cli("assess", lab, "--no-write")
    assert done.code == 1
    line = done.out.splitlines()[0]
    assert line.startswith("ours: no level; evidence self-declared, by the laboratory's own rows")
    assert "; a critical incident" in line
    assert one_line(done.err)
    assert "policy ours: a critical incident: the window does not count" in done.err
    answered = cli("assess", lab, "--no-write", "--json", "--level", "2")
    assert answered.code == 1
    (one,) = json.loads(answered.out)["assessments"]
    assert (one["level_conservative"], one["level"], one["missing"]) == (None, None, {})


def change(lab: Path, statement: str) -> None:
    with closing(sqlite3.connect(lab / "episodes.db")) as database:
        database.execute(statement)
        database.commit()


def test_rows_changed_by_hand_are_found(lab, cli):
    change(lab, "UPDATE episodes SET exposure_s = exposure_s * 100")
    done = cli("assess", lab, "--no-write")
    assert done.code == 1
    assert one_line(done.err)
    assert "lab: the log does not verify" in done.err
    assert done.out.startswith("ours: AAI-0")
    assert "the log verifies" in done.out


def test_rows_that_contradict_themselves_are_refused(lab, cli):
    change(lab, "UPDATE episodes SET success = 1, quality = 1.0 WHERE success = 0")
    done = cli("assess", lab, "--no-write")
    assert (done.code, done.out) == (2, "")
    assert one_line(done.err)
    assert "episodes.db: row 1, column 'success' is 1; it contradicts end_reason" in done.err


def test_a_log_that_is_none_is_one_line(lab, cli):
    (lab / "episodes.db").write_bytes(b"not a database" * 100)
    done = cli("assess", lab, "--no-write")
    assert done.code in (1, 2)
    assert one_line(done.err)
    assert "episodes.db" in done.err


def test_evidence_that_does_not_fit_fails_an_audit(lab, cli):
    path = lab / "incidents.csv"
    path.write_text(path.read_text() + "i2,minor,2027-01-01T00:00:00+00:00\n")
    (one,) = json.loads(cli("assess", lab, "--no-write", "--json").out)["assessments"]
    (audit,) = [audit for audit in one["audits"] if audit["id"] == "evidence"]
    assert audit["status"] == "fail"
    assert "incidents.csv" in audit["reason"]
    assert one["level_conservative"] == 0


def test_a_checkpoint_of_an_unknown_policy_is_named(lab, cli):
    (lab / "checkpoints.csv").write_text(
        "time,family,capability,resources,policy\n2026-03-01T12:00:00+00:00,pick,0.5,1,theirs\n"
    )
    done = cli("assess", lab, "--no-write", "--json")
    (one,) = json.loads(done.out)["assessments"]
    (audit,) = [audit for audit in one["audits"] if audit["id"] == "evidence"]
    assert (audit["status"], one["level_conservative"]) == ("fail", 0)
    assert "checkpoints.csv: line 2" in audit["reason"]
    assert "unknown policy 'theirs'" in audit["reason"]


def test_verify_names_a_file_of_evidence_that_cannot_be_read(lab, cli):
    (lab / "tools.csv").write_text("category,episodes,successes\ngripper,20,18\nlaser,20,25\n")
    done = cli("verify", lab)
    assert done.code == 0, "no row is another one"
    (note,) = [line for line in done.out.splitlines() if "tools.csv" in line]
    assert note.startswith("note: tools.csv: line 3, column 'successes': '25' is more than the 20")


def test_a_trial_without_an_episode_is_not_assessed_and_not_signed(cli, tmp_path):
    plan = parse_plan("name: x\ntasks: [{levels: [0]}]\npolicies: [balancer]\n", source="plan")
    TrialDirectory.create(tmp_path / "empty", plan)
    found = cli("assess", tmp_path / "empty")
    assert found.code == 1
    assert "no episode was logged, so there is nothing to assess" in found.err
    assert not (tmp_path / "empty" / "assessment").exists()


def test_what_was_said_is_signed_for_all_policies_and_checked(lab, cli):
    said = cli("assess", lab)
    assert "signed by key " in said.out
    who = said.out.split("signed by key ")[1].split(":")[0]
    assert cli("verify", lab, "--signed-by", who).code == 0
    assert cli("verify", lab, "--signed-by", "0" * 16).code == 1
    with (lab / "tools.csv").open("a") as file:
        file.write("probe,30,30,mild\n")
    found = cli("verify", lab)
    assert found.code == 1
    assert "tools.csv: was changed since it was signed" in found.out
    assert cli("assess", lab, "--no-write").code == 0
    assert cli("verify", lab).code == 1  # nothing was signed anew
    cli("assess", lab)
    assert cli("verify", lab).code == 0
