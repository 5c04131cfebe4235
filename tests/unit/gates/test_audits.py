"""Whether the evidence in a trial directory is whole, and was fairly got."""

from __future__ import annotations

import functools
import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from robo_eval.core.errors import InputError, TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.core.trajectory import Trajectory
from robo_eval.gates.trial import assess_trial
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace import write_trace

PLAN = """
name: lab
tasks: [{levels: [0], env: RoboEval/CartPole3D-v0}]
policies: [balancer]
episodes: 6
sides: [sim, real]
metrics: {resamples: 200}
"""


@functools.cache
def recording() -> bytes:
    """The trace of an episode of 200 actions in 4 s, with rewards of 1."""
    stamps = np.arange(201, dtype=np.int64) * 20_000_000
    nothing = {"joint_position": (201, 0), "joint_velocity": (201, 0), "observations": (201, 1)}
    moves = Trajectory(
        stamp_ns=stamps, joint_names=(), frames=(), pose_world_frame=np.zeros((201, 0, 7)),
        actions=np.zeros((200, 1)), rewards=np.full(200, 1 / 200), robot_description="",
        **{name: np.zeros(shape) for name, shape in nothing.items()},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write_trace(Path(folder) / "one.mcap", moves)
        return (Path(folder) / "one.mcap").read_bytes()


def make(
    folder: Path, status: str = "complete", plan: str = PLAN, **changed: object
) -> TrialDirectory:
    """A trial on a robot with all that the audits ask for; `changed` goes into its real rows."""
    trial = TrialDirectory.create(folder, parse_plan(plan, source="plan"))
    rows = []
    for side in (Side.SIM, Side.REAL):
        for i, planned in enumerate(schedule(trial.plan, side)):
            seconds = 3600.0 if side is Side.REAL else 0.0
            fields: dict[str, object] = {
                "policy_digest": "1" * 64, "start_ns": (i + 1) * 3600 * 10**9, "duration_s": 4.0,
                "exposure_s": min(seconds, 4.0), "ticks": 200, "episode_return": 1.0,
                "uninterrupted_actions": 200,
                "quality": 1.0, "success": True, "end_reason": EndReason.SUCCESS,
                "software": "robo-eval 1",
            }  # fmt: skip
            if side is Side.REAL:
                fields |= {
                    "trace_uri": f"traces/{planned.episode_id}.mcap",
                    "robot": "gantry",
                    **changed,
                }
                (folder / f"traces/{planned.episode_id}.mcap").write_bytes(recording())
            rows.append(row_for(planned, trial.plan, trial.plan_digest, **fields))
    with EpisodeStore(trial.path, durable=False) as store:
        store.append(rows)
        trial.write_manifest(status=status, store=store)
    (folder / "incidents.csv").write_text("incident_id,severity\n")
    (folder / "preflight.json").write_text('{"passed": true, "problem": ""}')
    (folder / "calibration").mkdir()
    (folder / "calibration" / "2026-03-01.yaml").write_text("mass: 1.0\n")
    return trial


def audits(trial: TrialDirectory) -> dict[str, tuple[str, str]]:
    (found,) = assess_trial(trial)
    return {audit.id: (audit.status, audit.reason) for _, audit in found.audits}


def test_a_whole_trial_passes_every_audit(tmp_path: Path):
    found = audits(make(tmp_path / "lab"))
    assert {name for name, (status, _) in found.items() if status != "pass"} == set()
    assert found["real_logs"][1] == "6 episodes, each with its recording"
    assert found["calibration_snapshots"][1] == "2026-03-01.yaml"


def edit_a_row(trial: TrialDirectory) -> None:
    with closing(sqlite3.connect(trial.path / "episodes.db")) as database:
        database.execute("UPDATE episodes SET quality = 0.5 WHERE sequence = 3")
        database.commit()


@pytest.mark.parametrize(
    ("spoil", "audit", "status", "reason"),
    [
        (edit_a_row, "log", "fail", "row 3"),
        (lambda t: (t.path / "incidents.csv").unlink(), "incident_reports", "missing", "incidents"),
        (
            lambda t: (t.path / "incidents.csv").write_text(
                "incident_id,severity,episode_id\ni,minor,nowhere\n"
            ),
            "evidence", "fail", "incidents.csv: line 2",
        ),
        (lambda t: (t.path / "preflight.json").unlink(), "limits_in_force", "missing", "preflight"),
        (
            lambda t: (t.path / "preflight.json").write_text('{"passed": false, "problem": "ran"}'),
            "limits_in_force", "fail", "ran",
        ),
        (
            lambda t: (t.path / "preflight.json").write_text("{"),
            "limits_in_force", "fail", "preflight.json",
        ),
        (
            lambda t: (t.path / "preflight.json").write_text('{"passed": "yes"}'),
            "limits_in_force", "fail", "does not say that it passed",
        ),
        (
            lambda t: (t.path / "calibration" / "2026-03-01.yaml").unlink(),
            "calibration_snapshots", "missing", "calibration/ holds none",
        ),
        (lambda t: (t.path / "manifest.json").unlink(), "run_manifest", "missing", "manifest.json"),
    ],
)  # fmt: skip
def test_what_is_missing_or_changed_fails_its_audit(
    tmp_path: Path, spoil: Callable[[TrialDirectory], object], audit: str, status: str, reason: str
):
    trial = make(tmp_path / "lab")
    spoil(trial)
    found = audits(TrialDirectory.open(trial.path))
    assert found[audit][0] == status
    assert reason in found[audit][1]


def test_episodes_without_recording_or_with_help_fail(tmp_path: Path):
    found = audits(make(tmp_path / "bare", trace_uri=None))
    assert found["real_logs"] == ("fail", "6 of 6 episodes have no recording")
    failed = {"quality": 0.5, "success": False, "end_reason": EndReason.FAILURE}
    status, reason = audits(make(tmp_path / "helped", interventions=1, **failed))["no_help"]
    assert status == "fail"
    assert reason.startswith("6 of 6 scored episodes, the first t0-l00-easy-balancer-s100")
    void = {"quality": None, "success": None, "end_reason": EndReason.VOID}
    assert audits(make(tmp_path / "void", interventions=1, **void))["no_help"][0] == "pass"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"ticks": 252_000, "duration_s": 25_200.0}, "holds 200 actions"),
        ({"duration_s": 25_200.0}, "is shorter than its episode"),
        ({"uninterrupted_actions": 400}, "'uninterrupted_actions' is 400"),
        ({"episode_return": 95.0}, "'episode_return' is 95"),
        ({"trace_uri": "traces/none.mcap"}, "traces/none.mcap"),
    ],
)
def test_rows_that_their_recordings_do_not_bear_out_fail(
    tmp_path: Path, changed: dict[str, object], told: str
):
    status, reason = audits(make(tmp_path / "lab", **changed))["own_log"]
    assert status == "fail"
    assert reason.startswith("6 recordings do not bear out their rows")
    assert told in reason


def test_an_unfinished_trial_and_another_policy_fail(tmp_path: Path):
    found = audits(make(tmp_path / "lab", status="interrupted", policy_digest="2" * 64))
    assert found["run_manifest"] == ("fail", "the trial is interrupted")
    status, reason = found["one_policy"]
    assert status == "fail"
    assert reason.startswith("2 versions of the policy in episodes.db, from t0-l00-easy-balancer")


def test_a_manifest_that_was_edited_is_refused(tmp_path: Path):
    trial = make(tmp_path / "lab", status="interrupted")
    manifest = json.loads((trial.path / "manifest.json").read_text())
    (trial.path / "manifest.json").write_text(json.dumps({**manifest, "status": "complete"}))
    with pytest.raises(TrialDirectoryError, match=r"manifest\.json: was changed"):
        audits(TrialDirectory.open(trial.path))


def test_an_unknown_policy_is_refused_by_name(tmp_path: Path):
    trial = make(tmp_path / "lab")
    with pytest.raises(InputError, match="unknown policy 'balancr'; did you mean 'balancer'"):
        assess_trial(trial, policy="balancr")


# Calibration snapshots ---------------------------------------------------------------------------

PLAYED = """
calibrations:
- {name: identified, file: calibration/identified.yaml, recordings: {rec-1: {}, rec-2: {}}}
- nominal
"""


def test_what_check_found_is_no_snapshot(tmp_path: Path):
    trial = make(tmp_path / "lab")
    (trial.path / "calibration" / "2026-03-01.yaml").rename(trial.path / "calibration/check.json")
    assert trial.calibration_files == []
    assert audits(trial)["calibration_snapshots"][0] == "missing"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, ""),
        ({"valid": {"from": "1969-01-01", "until": "1969-12-31"}}, "1970-01-01 is not"),
        ({"valid": {"from": "1971-01-01", "until": "1971-12-31"}}, ""),  # made of these episodes
        ({"robot": "another"}, "of robot another, and not of gantry"),
        ({"task": "Lab/Other-v0"}, "of task Lab/Other-v0"),
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_a_snapshot_has_to_fit_its_episodes(
    tmp_path: Path,
    write_snapshot: Callable[..., Path],
    changed: dict[str, object],
    reason: str,
    is_named: bool,
):
    trial = make(tmp_path / "lab", plan=PLAN + PLAYED if is_named else PLAN)
    (trial.path / "calibration" / "2026-03-01.yaml").unlink()
    write_snapshot(trial.path / "calibration" / "identified.yaml", **changed)
    status, said = audits(trial)["calibration_snapshots"]
    assert status == ("fail" if reason else "pass")
    good = "identified/rec-1, identified/rec-2" if is_named else "identified.yaml"
    assert said.startswith("identified.yaml: it is ") if reason else said == good
    assert reason in said


def test_of_several_snapshots_that_no_episode_names_one_has_to_fit(
    tmp_path: Path, write_snapshot: Callable[..., Path]
):
    trial = make(tmp_path / "lab")
    (trial.path / "calibration" / "2026-03-01.yaml").unlink()
    write_snapshot(trial.path / "calibration" / "other.yaml", robot="another")
    assert audits(trial)["calibration_snapshots"][0] == "fail"
    write_snapshot(trial.path / "calibration" / "this.yaml")
    assert audits(trial)["calibration_snapshots"][0] == "pass"


def test_the_simulator_as_it_is_is_no_snapshot(tmp_path: Path):
    plan = PLAN + "calibrations: [nominal, {name: broad, randomised: {cart_mass_kg: [0.8, 1.2]}}]"
    trial = make(tmp_path / "lab", plan=plan)
    (trial.path / "calibration" / "2026-03-01.yaml").unlink()
    assert audits(trial)["calibration_snapshots"][0] == "missing"
