"""The simulated half of a trial played with calibration snapshots, from plan to report."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import yaml

from robo_eval.agents.confined import digest_of
from robo_eval.analysis.trial import analyse_trial
from robo_eval.cli.calibrations import snapshot_texts
from robo_eval.cli.run import plan_to_play
from robo_eval.core import door
from robo_eval.core.errors import PlanError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.schedule import schedule
from robo_eval.gates.trial import assess_trial
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval.report.build import build_report
from robo_eval_sim.runner import run_simulated

PLAN: dict[str, Any] = {
    "name": "calibrated",
    "tasks": [{"env": "RoboEval/CartPole3D-v0", "levels": [0], "kwargs": {"balls": 0}}],
    "policies": ["random"],
    "episodes": 6,
    "traces": "none",
    "metrics": {"resamples": 200},
    "calibrations": [
        "identified.yaml",
        "nominal",
        {"name": "broad", "randomised": {"cart_mass_kg": [0.5, 2.0], "delay_s": [0.0, 0.04]}},
    ],
}
PLAYED_S = 1_772_000_000
"""When the twin was played: on 25 February 2026."""
NAMES = ["identified/rec-1", "identified/rec-2", "nominal", "broad"]


@pytest.fixture
def plan(tmp_path: Path, write_snapshot: Callable[..., Path]) -> Callable[..., Path]:
    """Write a plan and the snapshot it names."""

    def write(snapshot: dict[str, Any] | None = None, **changed: Any) -> Path:
        write_snapshot(tmp_path / "identified.yaml", **(snapshot or {}))
        path = tmp_path / "plan.yaml"
        path.write_text(yaml.safe_dump(PLAN | changed))
        return path

    return write


def rows(trial: Path) -> list[Any]:
    with EpisodeStore(trial, durable=False) as store:
        return list(store.episodes())


def played(trial: Path) -> dict[str, Any]:
    """What the rows say, apart from when they were played."""
    return {row.episode_id: replace(row, start_ns=0) for row in rows(trial)}


def test_a_snapshot_that_is_not_accepted_is_named_when_it_is_played(plan, capsys):
    plan_to_play(plan())
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith(
        "identified.yaml: is played though it was not accepted: not validated yet\n"
    )
    plan_to_play(plan({"accepted": {"verdict": True, "reason": None}}))
    assert capsys.readouterr().err == ""
    plan_to_play(plan({"residuals": {"verdict": "structure"}}))
    assert "all but given ones are nominal" in capsys.readouterr().err


def test_a_snapshot_is_read_once(plan, monkeypatch):
    read, written = [], door.written
    monkeypatch.setattr(door, "written", lambda path: read.append(path.name) or written(path))
    plan_to_play(plan())
    assert read.count("identified.yaml") == 1


def test_a_killed_run_is_resumed_and_an_edited_snapshot_is_seen(
    quick_cli, killed_run, plan, tmp_path
):
    whole, trial = tmp_path / "whole", tmp_path / "trial"
    locked = plan_to_play(plan())
    run_simulated(TrialDirectory.create(whole, locked), jobs=1)
    assert Counter(row.calibration for row in rows(whole)) == dict.fromkeys(NAMES, 6)

    killed_run(tmp_path / "plan.yaml", trial)
    (tmp_path / "identified.yaml").unlink()  # the trial has what it needs
    for left in (24 - len(rows(trial)), 0):
        done = quick_cli("resume", trial, "--json", "--no-report", "-j", "1")
        assert done.code == 0, done.err
        assert json.loads(done.out)["played"] == left
    assert played(trial) == played(whole)
    assert verify_trial(trial).ok

    by_name: dict[str, dict[int, Any]] = {name: {} for name in NAMES}
    for row in rows(trial):
        by_name[row.calibration][row.seed] = row
        drawn = row.novelty.get("constants", {})
        assert set(drawn) == ({"cart_mass_kg", "delay_s"} if row.calibration == "broad" else set())
        assert (row.level, row.novelty["level"], row.novelty["name"]) == (0, 0, "none")
    assert any(by_name["broad"][s].ticks != by_name["nominal"][s].ticks for s in by_name["nominal"])
    assert len({row.behaviour for row in rows(trial)}) == 1

    file = trial / "calibration" / "identified.yaml"
    file.write_text(file.read_text().replace("1.4", "1.5"))
    for verb in ("verify", "resume"):
        done = quick_cli(verb, trial)
        assert done.code == 1
        assert "calibration/identified.yaml" in done.out + done.err
        assert "was changed" in done.out + done.err
    file.unlink()
    assert [problem.file for problem in verify_trial(trial).problems] == [
        "calibration/identified.yaml"
    ]


def matched(path: Path, plan: Path, successes: list[bool]) -> TrialDirectory:
    """A trial of which the twin's half was played."""
    locked = plan_to_play(plan)
    trial = TrialDirectory.create(path, locked, files=snapshot_texts(locked))
    found = []
    for planned, success in zip(schedule(locked, Side.TWIN), successes, strict=True):
        env: Any = gymnasium.make("RoboEval/CartPole3D-v0", balls=0)
        env.reset(seed=planned.seed)
        state = env.unwrapped.physical_state()
        env.close()
        found.append(row_for(
            replace(planned, pair_id=planned.base_id.removesuffix("-twin")), locked,
            trial.plan_digest, policy_digest=digest_of(locked.policies[0], 60.0), robot="gantry",
            start_ns=(PLAYED_S + 10 * planned.index) * 10**9, duration_s=4.0, exposure_s=4.0,
            ticks=200, episode_return=1.0, quality=float(success), success=success,
            end_reason=EndReason.SUCCESS if success else EndReason.FAILURE,
            software="robo-eval 1", initial_state=state, initial_state_source="measured",
        ))  # fmt: skip
    with EpisodeStore(trial.path, durable=True) as store:
        store.append(found)
        trial.write_manifest(status="interrupted", store=store)
    return trial


def test_pairs_are_compared_under_every_recording(quick_cli, plan, tmp_path):
    # With a tenth of a second of delay the balancer fails, so the two recordings differ.
    delay = {"value": 0.05, "by_recording": [0.0, 0.1], "unit": "s", "verdict": "identified"}
    noise = {"sensors": {}, "force": {}}
    path = plan(
        {"constants": {"delay_s": delay}, "noise": noise},
        policies=["balancer"],
        sides=["sim", "twin"],
        calibrations=["identified.yaml", "nominal"],
        metrics={"resamples": 200, "calibration": "identified"},
    )
    trial = matched(tmp_path / "trial", path, [True] * 6)
    for left in (18, 0):
        done = quick_cli("partner", trial.path, "--json", "--no-report")
        assert done.code == 0, done.err
        assert json.loads(done.out)["played"] == left
    own = {}
    for row in rows(trial.path):
        if row.side is Side.SIM:
            own.setdefault(row.calibration, []).append(row.success)
    assert own == {
        "identified/rec-1": [True] * 6, "identified/rec-2": [False] * 6, "nominal": [True] * 6
    }  # fmt: skip
    summary = analyse_trial(trial)
    found = {
        number.case: number.estimate
        for body in summary.bodies
        for number in body.numbers
        if number.name == "S2S"
    }
    assert found[""].value == pytest.approx(0.5)
    assert found[""].low == pytest.approx(0.0, abs=0.05)
    assert found[""].method == "folded_bootstrap_over_recordings_and_pairs"
    assert found["nominal"].value == 1.0
    page = build_report(trial, summary=summary).read_text()
    assert "changes of the calibration" not in page
    section = page[page.index("What moved the agreement") :]
    told = re.findall(r'rowheader">(\w+)</th>.*?"whole">([^<]+)<', section)
    assert told[:2] == [("identified", "0.50"), ("nominal", "1.00")]
    assert "(1 policy × 1 level × 6 seeds × 3 simulators)" in page
    assert "identified (constants, noise, disturbance of 2 recordings); nominal" in page


def test_a_snapshot_past_its_end_fails_the_audit_and_is_said_in_the_report(plan, tmp_path):
    ended = {"valid": {"from": "2026-01-01", "until": "2026-02-24"}}
    path = plan(ended, sides=["sim", "twin"], calibrations=["identified.yaml"], episodes=2)
    trial = matched(tmp_path / "trial", path, [True, False])
    run_simulated(trial, jobs=1)
    (found,) = assess_trial(trial)
    audits = {audit.id: audit for _, audit in found.audits}
    assert audits["calibration_snapshots"].status == "fail"
    reason = "identified.yaml: it is valid from 2026-01-01 to 2026-02-24, and 20"
    assert audits["calibration_snapshots"].reason.startswith(reason)
    assert reason in build_report(trial).read_text()


@pytest.mark.parametrize(
    ("snapshot", "changed", "message"),
    [
        ({}, {"calibrations": ["none.yaml"]}, r"calibrations\.0\.file: .*none\.yaml: no such"),
        ({"task": "Lab/Other-v0"}, {}, r"calibrations\.0\.file: .*tasks\.0: it is of task"),
        (
            {"constants": {"cart_mass": {"value": 1.0, "verdict": "weak"}}},
            {},
            r"calibrations\.0\.file: .*constants\.cart_mass\.value: unknown constant .*did you",
        ),
        (
            {"constants": {"cart_mass_kg": {"value": 99.0, "verdict": "weak"}}},
            {},
            r"calibrations\.0\.file: .*constants\.cart_mass_kg\.value: .* given 99",
        ),
        (
            {},
            {"calibrations": [{"name": "b", "randomised": {"cart_mass": [1, 2]}}]},
            r"calibrations\.0\.randomised: unknown constant",
        ),
        (
            {},
            {"calibrations": [{"name": "b", "randomised": {"cart_mass_kg": [1, 99]}}]},
            r"calibrations\.0\.randomised: constants\.cart_mass_kg: .* given 99",
        ),
        (
            {"noise": {}},
            {"calibrations": [{"file": "identified.yaml", "play": ["noise"]}]},
            r"calibrations\.0\.play: .*holds nothing of noise",
        ),
        (
            {},
            {"calibrations": ["identified.yaml", "./identified.yaml"]},
            r"calibrations: two calibrations share a name, 'identified'",
        ),
        (
            {},
            {"metrics": {"calibration": "identifed"}},
            r"metrics\.unknown calibration 'identifed'; did you mean 'identified'",
        ),
        (
            {},
            {"tasks": [{"env": "CartPole-v1", "quality_range": [0, 500]}]},
            r"tasks\.0: it is of task RoboEval/CartPole3D-v0, and CartPole-v1 is played",
        ),
        (
            {},
            {"tasks": [*PLAN["tasks"], {"env": "CartPole-v1", "quality_range": [0, 500]}]},
            r"tasks\.1: .*CartPole-v1 is played; .*give each other task a plan of its own",
        ),
        (
            {},
            {
                "tasks": [{"env": "CartPole-v1", "quality_range": [0, 500]}],
                "calibrations": [{"name": "b", "randomised": {"cart_mass_kg": [1, 2]}}],
            },
            r"randomised: CartPole-v1 \(tasks\.0\) declares no constants",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(plan, snapshot, changed, message):
    with pytest.raises(PlanError, match=message) as err:
        plan_to_play(plan(snapshot, **changed))
    assert str(err.value).count("plan.yaml: ") == 1


def test_parts_of_a_snapshot_are_played_by_themselves(plan):
    parts = ["constants", "noise", "disturbance"]
    entries = [{"file": "identified.yaml", "name": part, "play": [part]} for part in parts]
    locked = plan_to_play(plan(calibrations=entries))
    assert [entry.recordings["rec-2"] for entry in locked.calibrations] == [
        {"cart_mass_kg": 1.4},
        {"tilt_noise_rad": 0.002},
        {"force_noise_n": 0.3, "force_memory_s": 0.4},
    ]
    assert [entry.file for entry in locked.calibrations] == [
        f"calibration/{part}.yaml" for part in parts
    ]


def test_a_locked_plan_is_played_again_with_the_same_snapshots_alone(plan, tmp_path):
    locked = plan_to_play(plan())
    trial = TrialDirectory.create(tmp_path / "trial", locked, files=snapshot_texts(locked))
    assert plan_to_play(trial.path / "plan.yaml").calibrations == locked.calibrations
    file = trial.path / "calibration" / "identified.yaml"
    file.write_text(file.read_text() + "\n")
    with pytest.raises(PlanError, match=r"calibrations\.0\.sha256: .*another file"):
        plan_to_play(trial.path / "plan.yaml")
