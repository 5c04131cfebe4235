"""`robo-eval calibrate`, from a small trial of a stand-in to an accepted snapshot."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace

import numpy as np
import pytest
import yaml

from robo_eval.core.errors import InputError
from robo_eval.core.plain import plain
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.snapshot import read_snapshot, write_snapshot
from robo_eval_calibration import motions
from robo_eval_calibration.checkup import checkup, kept
from robo_eval_calibration.recordings import gathered, task_to_calibrate
from robo_eval_sim.tasks.cartpole3d.environment import CartPole3DEnv

HIDDEN = {
    "cart_mass_kg": 1.3, "delay_s": 0.028, "position_noise_m": 0.0005, "velocity_noise_m_s": 0.01,
    "tilt_noise_rad": 0.002, "tilt_rate_noise_rad_s": 0.02,
}  # fmt: skip
PLAN = {
    "name": "stand-in",
    "tasks": [
        {
            "env": "RoboEval/CartPole3D-v0", "levels": [0],
            "kwargs": {"balls": 0, "constants": HIDDEN},
        }
    ],
    "policies": ["random"],
    "episodes": 5,  # with three held out an interval excludes 0, whichever they are
    "traces": "all",
}  # fmt: skip
GIVEN = (
    "--given", "push_gain=1", "--given", "pole_mass_kg=0.1", "--given", "slide_friction_n_s_m=0",
    "--given", "pole_com_height_m=1",
)  # fmt: skip
TASK = ("--task", "RoboEval/CartPole3D-v0")
ALONE = ("--workers", "1")  # starting others takes longer


@pytest.fixture(scope="module")
def lab(tmp_path_factory, calls_in):
    """A folder with a trial and its snapshot; calls the command line there."""
    call = calls_in(folder := tmp_path_factory.mktemp("lab"))

    def play(name, **changes):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(PLAN | {"name": name} | changes))
        call("run", f"{name}.yaml", "--out", name, "--no-report", "--jobs", "1")

    call.play = play
    play("trial")
    call.said = call("calibrate", "check", "trial", *GIVEN, *TASK, "--next", "next.yaml").out
    call.checked = json.loads((folder / "trial/calibration/check.json").read_text())
    call("calibrate", "fit", "trial", "--out", "made.yaml", "--hold-out", "0.6", *GIVEN, *ALONE)
    return call


def test_check_foretells_what_fit_finds(lab):
    said = {one["check"]: one["remedy"] for one in lab.checked["findings"] if one["remedy"]}
    assert list(said) == ["origin"]  # too few to hold some out as well
    assert set(lab.checked["constants"]) == {"cart_mass_kg", "delay_s"}
    # It is no snapshot.
    assert TrialDirectory.open(lab.folder / "trial").calibration_files == []


def test_the_next_step_of_check_says_what_was_said_to_it(lab):
    said = lab.said.splitlines()[-1]
    assert shlex.split(said)[-len((*GIVEN, *TASK)) :] == [*GIVEN, *TASK]


def test_what_was_checked_otherwise_is_checked_again(lab, monkeypatch):
    trial = TrialDirectory.open(lab.folder / "trial")
    there = gathered(trial)
    known = {name: float(x) for name, _, x in (one.partition("=") for one in GIVEN[1::2])}
    assert plain(kept(trial, there, known)) == lab.checked
    assert kept(trial, there, known | {"delay_s": 0.02}) is None
    other = replace(there, recordings=there.recordings[1:])
    assert kept(trial, other, known) is None
    monkeypatch.setattr(CartPole3DEnv, "digest", "of other equations")
    assert kept(trial, there, known) is None


@pytest.mark.slow
def test_a_fit_with_other_flags_checks_again(lab):
    shutil.copytree(lab.folder / "trial", lab.folder / "again")
    other = ("--given", "delay_s=0.02", *GIVEN)
    lab("calibrate", "fit", "again", "--out", "again.yaml", *other)
    checked = json.loads((lab.folder / "again/calibration/check.json").read_text())
    assert set(checked["constants"]) == {"cart_mass_kg"}
    assert checked["digest"] != lab.checked["digest"]


def test_what_to_record_next_is_the_same_robot_with_an_agent_that_commands(lab, monkeypatch):
    plan = yaml.safe_load((lab.folder / "next.yaml").read_text())
    assert f'agent "{plan["policies"][0]}"' in lab.said
    assert plan["tasks"][0]["kwargs"] == {"balls": 0, "constants": HIDDEN}
    monkeypatch.setattr(motions, "agent_names", lambda: ["nothing"])
    there = gathered(TrialDirectory.open(lab.folder / "trial"))
    assert checkup(there, {"push_gain": 1.0, "pole_mass_kg": 0.1}).motion is None


def test_the_snapshot_holds_what_was_hidden(lab):
    made = read_snapshot(lab.folder / "made.yaml")
    for name in ("cart_mass_kg", "delay_s"):
        found = made.constants[name]
        assert abs(found.value - HIDDEN[name]) < 0.05 * HIDDEN[name]
        assert found.low <= found.value <= found.high
    assert made.constants["push_gain"].verdict == "given"
    assert len(made.held_out) == 3
    assert {one.episode for one in made.recordings}.isdisjoint(made.held_out)
    assert not made.accepted.verdict
    assert made.side == "sim"


def test_it_is_validated_on_what_was_held_out_and_exported(lab):
    shutil.copy(lab.folder / "made.yaml", lab.folder / "good.yaml")
    told = json.loads(lab("calibrate", "validate", "good.yaml", "trial", "--json").out)
    made = read_snapshot(lab.folder / "good.yaml")
    assert told["verdict"] is made.accepted.verdict is True
    assert set(told["errors"]) == set(made.held_out)
    as_json = json.loads(lab("calibrate", "export", "good.yaml", "--json").out)
    assert as_json["constants"]["cart_mass_kg"]["played"] == made.constants["cart_mass_kg"].value
    done = lab("calibrate", "export", "good.yaml", "--urdf", "--out", "gantry.urdf")
    lab("calibrate", "export", "good.yaml", "--urdf", "--out", "gantry.urdf")  # its own kind
    for _ in range(2):
        lab("calibrate", "export", "good.yaml", "--json", "--out", "gantry.json")
    mass = made.constants["cart_mass_kg"].value
    assert f'<mass value="{mass!r}"/>' in (lab.folder / "gantry.urdf").read_text()
    # The model has no place for it, which is said.
    assert "delay_s" in done.err
    assert "cart_mass_kg" not in done.err


def test_a_snapshot_that_gains_nothing_is_not_accepted(lab):
    made = read_snapshot(lab.folder / "made.yaml")
    usual = made.constants["cart_mass_kg"].model_copy(update={"kept": 1.0})
    late = made.constants["delay_s"].model_copy(update={"kept": 0.0})
    changed = made.constants | {"cart_mass_kg": usual, "delay_s": late}
    write_snapshot(made.model_copy(update={"constants": changed}), lab.folder / "nothing.yaml")
    done = lab("calibrate", "validate", "nothing.yaml", "trial", code=1)
    assert "not accepted" in done.err
    kept = read_snapshot(lab.folder / "nothing.yaml").accepted
    assert not kept.verdict
    assert "2%" in kept.reason


def refused(lab, *arguments, out=None, code=2):
    """What a command says that was refused; nothing is written."""
    done = lab("calibrate", *arguments, code=code)
    assert done.err.count("\n") == 1, done.err
    assert out is None or not (lab.folder / out).exists()
    return done.err


def test_used_recordings_and_other_robots_are_refused(lab):
    made = read_snapshot(lab.folder / "made.yaml")
    before = (lab.folder / "made.yaml").read_bytes()
    kept = gathered(TrialDirectory.open(lab.folder / "trial")).recordings
    others = tuple(
        made.recordings[0].model_copy(update={"id": f"rec-{n}", "content": one.content})
        for n, one in enumerate(kept)
    )
    all_used = made.model_copy(update={"recordings": others, "constants": {}})
    write_snapshot(all_used, lab.folder / "used.yaml")
    assert "--hold-out" in refused(lab, "validate", "used.yaml", "trial")
    write_snapshot(made.model_copy(update={"robot": "other"}), lab.folder / "other.yaml")
    assert "robot other" in refused(lab, "validate", "other.yaml", "trial")
    assert (lab.folder / "made.yaml").read_bytes() == before


@pytest.mark.slow
def test_what_cannot_be_validated_here_is_to_be_with_another_trial(lab):
    none = lab("calibrate", "fit", "trial", "--out", "none.yaml", "--hold-out", "0", *GIVEN).out
    assert "5 recordings to fit" in none
    assert "validate with another trial" in none
    assert none.endswith("calibrate validate none.yaml OTHER_TRIAL\n")
    assert "never accepted" not in none


def test_one_recording_makes_a_snapshot_that_is_never_accepted(lab):
    how = ("--hold-out", "0.8", *GIVEN, *ALONE)
    one = lab("calibrate", "fit", "trial", "--out", "one.yaml", *how).out
    assert "1 recording to fit, 4 held out" in one
    assert "1 recordings" not in one
    assert "one recording is never accepted" in one
    assert "no hidden force" in one
    assert "force_memory_s" not in one
    assert one.endswith("calibrate validate one.yaml trial\n")


@pytest.mark.parametrize("text", ["dear diary\n", yaml.safe_dump(PLAN), "", "\xff"])
def test_a_file_that_is_no_snapshot_is_not_replaced(lab, text):
    diary = lab.folder / "diary.yaml"
    diary.write_bytes(text.encode("latin-1"))
    told = refused(lab, "fit", "trial", "--out", "diary.yaml", *GIVEN)
    assert "diary.yaml" in told
    assert "no calibration snapshot" in told
    assert "--out" in told
    assert diary.read_bytes() == text.encode("latin-1")


MINE = '<?xml version="1.0"?>\n<robot name="mine"/>\n'


@pytest.mark.parametrize(
    ("arguments", "option", "text"),
    [
        (("check", "trial", *GIVEN), "--next", yaml.safe_dump(PLAN)),
        (("export", "made.yaml", "--json"), "--out", '{"constants": 1}'),
        (("export", "made.yaml", "--urdf"), "--out", MINE),
    ],
)
def test_a_file_of_another_kind_is_not_replaced(lab, arguments, option, text):
    (lab.folder / "mine").write_text(text)
    told = refused(lab, *arguments, option, "mine")
    for word in ("mine: is no", "would be replaced", option):
        assert word in told
    assert (lab.folder / "mine").read_text() == text


def test_bad_words_are_refused(lab):
    fit = ("fit", "trial", "--out", "bad.yaml")
    assert "cart_mass_kg" in refused(lab, *fit, "--given", "cart_mas_kg=1", out="bad.yaml")
    assert "cart_mass_kg" in refused(lab, *fit, "--given", "cart_mass_kg=1e9", out="bad.yaml")
    assert "NAME=VALUE" in refused(lab, *fit, "--given", "cart_mass_kg", out="bad.yaml")
    twice = ("--given", "cart_mass_kg=1", "--given", "cart_mass_kg=2")
    assert "cart_mass_kg is given twice" in refused(lab, *fit, *twice, out="bad.yaml")
    told = refused(lab, "check", "trial", "--given", "tilt_noise_rad=0.01")
    assert "tilt_noise_rad" in told
    assert "--hold-out" in refused(lab, *fit, "--hold-out", "1.5", out="bad.yaml")
    assert "--name" in refused(lab, *fit, "--name", "a/b", out="bad.yaml")
    assert "folder" in refused(lab, "fit", "trial", "--out", "no/where.yaml")
    assert "--urdf" in refused(lab, "export", "made.yaml")
    assert "gone" in refused(lab, "check", "gone")


def test_a_trial_that_cannot_serve_is_refused(lab):
    lab.play("bare", traces="none", episodes=1)
    assert "traces: all" in refused(lab, "check", "bare")
    assert not (lab.folder / "bare/calibration").exists()
    idle = [{"name": "nothing"}]
    lab.play("idle", policies=idle, episodes=2)
    told = refused(lab, "fit", "idle", "--out", "bad.yaml", out="bad.yaml", code=1)
    assert "commands never change" in told
    told = json.loads(lab("calibrate", "check", "idle", "--json", code=1).out)
    assert told == json.loads((lab.folder / "idle/calibration/check.json").read_text())


def test_what_is_left_out_is_named(lab):
    lab.play("mixed", tasks=[PLAN["tasks"][0] | {"levels": [0, 1]}], episodes=2)
    found = gathered(TrialDirectory.open(lab.folder / "mixed"))
    assert len(found.recordings) == 2
    assert len(found.left_out) == 2
    assert all("novelty" in reason for reason in found.left_out.values())
    trace = lab.folder / "mixed/traces" / f"{found.recordings[0].id}.mcap"
    trace.write_bytes(next((lab.folder / "trial/traces").iterdir()).read_bytes())
    found = gathered(TrialDirectory.open(lab.folder / "mixed"))
    assert sorted("changed" in reason for reason in found.left_out.values()) == [False] * 2 + [True]
    trace.unlink()
    found = gathered(TrialDirectory.open(lab.folder / "mixed"))
    assert sorted("missing" in reason for reason in found.left_out.values()) == [False, False, True]
    with pytest.raises(InputError, match="RoboEval/CartPole3D-v0"):
        gathered(TrialDirectory.open(lab.folder / "mixed"), "RoboEval/CartPole3d-v0")


def test_a_trial_of_tasks_without_constants_is_refused(tmp_path):
    plan = parse_plan(
        "{name: x, tasks: [{env: CartPole-v1}], policies: [random], episodes: 1}", source="plan"
    )
    with pytest.raises(InputError, match="none of its tasks can be calibrated"):
        task_to_calibrate(TrialDirectory(tmp_path, plan, ""))


ARM = {
    "tasks": [
        {
            "env": "RoboEval/PickPlace-v0", "levels": [0],
            "kwargs": {
                "obs_mode": "state+wrench",
                "constants": {"gain": 0.9, "delay_s": 0.03, "joint_noise_rad": 0.0005},
            },
        }
    ],
    "policies": ["pick-place"],
}  # fmt: skip
KNOWN = ("--given", "friction=1", "--given", "object_mass_kg=0.05", "--given", "payload_kg=0")


def test_recordings_of_an_arm_are_checked_as_its_sensors_saw_it(lab):
    lab.play("arm", **ARM, episodes=2)
    told = json.loads(lab("calibrate", "check", "arm", "--json", *KNOWN).out)
    assert set(told["constants"]) == {"gain", "delay_s"}
    assert told["constants"]["delay_s"]["verdict"] == "identified"
    assert told["motion"] is None
    one = gathered(TrialDirectory.open(lab.folder / "arm")).recordings[0]
    rough = np.diff(one.states[:, :7], n=3, axis=0)
    assert abs(rough).min(axis=0).max() > 0.0
    assert one.wrench.shape == (one.ticks + 1, 6)
    assert abs(one.wrench[1:, :3]).max() > 5.0


@pytest.mark.slow
def test_an_arm_is_fitted_and_validated(lab):
    lab.play("arms", **ARM, episodes=4)
    call = ("calibrate", "fit", "arms", "--out", "arm-made.yaml", "--hold-out", "0.5", *KNOWN)
    said = lab(*call).out
    assert "no hidden force and no missing one is looked for" in " ".join(said.split())
    made = read_snapshot(lab.folder / "arm-made.yaml")
    assert made.constants["gain"].low <= 0.9 <= made.constants["gain"].high
    assert made.noise.sensors["joint_noise_rad"] == pytest.approx(0.0005, rel=0.3)
    told = json.loads(lab("calibrate", "validate", "arm-made.yaml", "arms", "--json").out)
    assert told["verdict"] is True
