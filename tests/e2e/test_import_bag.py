"""A folder of bags becomes a trial with metrics and a report, by commands alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robo_eval.log.export import read_episodes

EXAMPLE = Path(__file__).parents[2] / "examples" / "lab_bags"
MAP = EXAMPLE / "topics.yaml"


@pytest.fixture(scope="module")
def bags(tmp_path_factory) -> Path:
    """The bags of the example: sixteen attempts of two policies."""
    folder = tmp_path_factory.mktemp("lab") / "bags"
    subprocess.run([sys.executable, EXAMPLE / "make_bags.py", folder], check=True, timeout=800)
    return folder


def check_measures(row: pd.Series) -> None:
    """Sines of amplitudes 0.4, 0.3 and 0.2 rad at 0.5 Hz, followed 0.08 s late, for 2 s."""
    amplitude = np.sqrt(np.mean(np.square([0.4, 0.3, 0.2])) / 2.0)
    late = 2.0 * np.sin(np.pi * 0.08 / 2.0) * amplitude
    measures = row["control_quality"]
    assert measures["tracking_rmse_rad"] == pytest.approx(late, rel=0.01)
    # Jerk is greatest at both ends, where there is no room for the fit.
    assert measures["jerk_rms_rad_s3"] == pytest.approx(amplitude * np.pi**3, rel=0.07)
    assert measures["peak_force_N"] == pytest.approx(12.0)
    assert (row["ticks"], row["duration_s"], row["exposure_s"]) == (200, 2.0, 2.0)


@pytest.mark.slow
def test_bags_become_metrics_and_a_report(cli, tmp_path, bags):
    done = cli("import", "bag", bags, "--map", MAP, "--out", "trial", "--json")
    assert (done.code, done.err) == (0, "")
    said = json.loads(done.out)
    (remark,) = said.pop("remarks")
    assert "elbow, shoulder, wrist are taken to turn (rad)" in remark["what"]
    assert said == {
        "trial": "trial", "rows": 16, "bags": 16, "recovered": [], "lost": {}, "left_out": [],
        "outside": {},
    }  # fmt: skip

    done = cli("verify", "trial")
    assert done.code == 0
    assert "16 rows and 16 traces checked" in done.out

    assert cli("export", "trial", "--out", "rows.parquet").code == 0
    rows = read_episodes(tmp_path / "rows.parquet")
    assert rows["success"].tolist() == [
        row["end_reason"] == "success" for _, row in rows.iterrows()
    ]
    check_measures(rows.iloc[0])

    done = cli("metrics", "trial", "--json")
    assert done.code == 0, done.err
    metrics = json.loads(done.out)
    assert {row["policy"] for row in metrics["policies"]} == {"act", "pi0"}
    assert "NaN" not in done.out

    done = cli("report", "trial")
    assert (done.code, "left out" in done.err) == (0, False), done.err
    assert (tmp_path / "trial" / "report" / "index.html").stat().st_size > 10_000


def test_a_bag_cut_short_is_recovered_and_said_so(quick_cli, tmp_path, bags):
    # Cut within the second of two chunks, as when the recorder was killed.
    source = tmp_path / "act_layout01"
    shutil.copytree(bags / "act_layout01", source)
    path = source / "act_layout01.mcap"
    path.write_bytes(path.read_bytes()[:-500])
    done = quick_cli("import", "bag", source, "--map", MAP, "--out", "trial")
    assert done.code == 0, done.err
    assert "1 episode of 1 bag imported into trial" in done.out
    assert "act_layout01: its bag was cut short" in done.out
    assert quick_cli("verify", "trial").code == 0


def test_what_the_rows_do_not_show_is_said(quick_cli, tmp_path, bags):
    # From the outcome on, which comes last; no end is ever said.
    text = MAP.read_text().replace("/safety/estop", "{field: /safety/estop, holds: false}")
    marks = "episodes: {field: /attempt/result.success, start: ['true', 'false'], end: over}\n"
    (tmp_path / "topics.yaml").write_text(text + marks)
    done = quick_cli("import", "bag", bags, "--map", "topics.yaml", "--out", "trial")
    assert done.code == 0, done.err
    assert "/safety/estop: 16 messages in no episode" in done.out
    assert "16 episodes, such as act_layout01-001: no end was said" in done.out
    said = json.loads(
        quick_cli("import", "bag", bags, "--map", "topics.yaml", "--out", "again", "--json").out
    )
    assert said["outside"] == {
        "/safety/estop": 16,
        **dict.fromkeys(
            ("/joint_states", "/position_controller/commands", "/ft_sensor/wrench"), 3200
        ),
    }
    assert [remark["episode_id"] for remark in said["remarks"]][:2] == [
        "act_layout01-001", "act_layout02-001",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("/attempt/result.success", "/attempt/result.sucess"), "did you mean 'success'"),
        (("joint_state:", "joint_sate:"), "unknown key 'joint_sate'; did you mean 'joint_state'"),
    ],
)
def test_a_wrong_map_is_refused_in_one_line(quick_cli, tmp_path, bags, change, message):
    (tmp_path / "topics.yaml").write_text(MAP.read_text().replace(*change))
    done = quick_cli("import", "bag", bags, "--map", "topics.yaml", "--out", "trial")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["topics.yaml"]


def test_without_the_library_the_command_that_adds_it_is_named(cli, tmp_path, bags):
    (tmp_path / "rosbags.py").write_text("raise ImportError('not installed')")
    done = cli("import", "bag", bags, "--map", MAP, "--out", "trial")
    assert done.code == 2
    assert 'pip install "robo-eval-stack[bags]"' in done.err
    assert not (tmp_path / "trial").exists()


def test_an_output_that_exists_is_kept(quick_cli, tmp_path, bags):
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "notes.txt").write_text("mine")
    done = quick_cli("import", "bag", bags, "--map", MAP, "--out", "trial")
    assert done.code == 2
    assert "trial: exists already and is not empty; choose another --out" in done.err
    assert (tmp_path / "trial" / "notes.txt").read_text() == "mine"
