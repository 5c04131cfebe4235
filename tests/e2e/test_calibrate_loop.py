"""`robo-eval calibrate loop`, on a tiny trial of a stand-in."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from robo_eval.log.directory import TrialDirectory
from robo_eval.log.snapshot import read_snapshot
from robo_eval.log.verify import verify_trial

HIDDEN = {
    "cart_mass_kg": 1.3, "delay_s": 0.028, "position_noise_m": 0.0005, "velocity_noise_m_s": 0.01,
    "tilt_noise_rad": 0.002, "tilt_rate_noise_rad_s": 0.02,
}  # fmt: skip
PLAN = {
    "name": "stand-in",
    "tasks": [{"levels": [0], "kwargs": {"balls": 0, "constants": HIDDEN}}],
    "policies": ["random"],
    "episodes": 4,
    "traces": "all",
    "metrics": {"resamples": 200},
}
GIVEN = (
    "--given", "push_gain=1", "--given", "pole_mass_kg=0.1", "--given", "slide_friction_n_s_m=0",
    "--given", "pole_com_height_m=1", "--given", "delay_s=0.028",
)  # fmt: skip
LOOP = (
    "calibrate",
    "loop",
    "trial",
    "--out",
    "loop",
    "--recordings",
    "1,2",
    *GIVEN,
    "--json",
    "--no-report",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory, calls_in):
    """A folder with a trial and its loop; calls the command line there."""
    call = calls_in(folder := tmp_path_factory.mktemp("lab"))
    (folder / "plan.yaml").write_text(yaml.safe_dump(PLAN))
    call("run", "plan.yaml", "--out", "trial", "--no-report", "--jobs", "2")
    call.found = json.loads(call(*LOOP, "--jobs", "1").out)
    return call


def test_each_setting_is_compared_for_each_number_of_recordings(lab):
    found = lab.found
    assert (found["agreement"], found["is_stand_in"]) == ("S2S", True)
    parts = ("constants", "constants, noise", "constants, noise, disturbance")
    assert [(row["played"], row["recordings"]) for row in found["settings"]] == [
        ("nominal", None), *((part, size) for part in parts for size in (1, 2)),
        ("randomised", None),
    ]  # fmt: skip
    assert {row["difference"]["n"] for row in found["settings"]} == {2}
    folder = lab.folder / "loop"
    made = read_snapshot(folder / "calibration/constants-2.yaml")
    assert made.constants["cart_mass_kg"].value == pytest.approx(1.3, rel=0.1)
    assert len(made.held_out) == 2
    assert json.loads((folder / "loop.json").read_text()) == found


def test_its_report_shows_the_picture(lab):
    lab("report", "loop")
    page = (lab.folder / "loop/report/index.html").read_text()
    assert page.count('data-figure="loop"') == 1


def test_what_it_played_is_a_sound_trial(lab):
    folder = lab.folder / "loop"
    assert verify_trial(folder).problems == ()
    frame = TrialDirectory.open(folder).frame()
    ways = frame[frame["side"] == "sim"]["calibration"].value_counts()
    assert ways.to_dict() == dict.fromkeys(
        [
            *(f"{name}-{size}/rec-{one}" for name in ("constants", "noise", "force")
              for size in (1, 2) for one in range(1, size + 1)),
            "nominal", "randomised",
        ],
        2,
    )  # fmt: skip


def test_the_same_command_goes_on_and_fits_nothing_again(lab):
    shutil.rmtree(lab.folder / "trial/calibration")
    again = json.loads(lab(*LOOP, "--jobs", "2").out)
    assert again == lab.found
    assert not (lab.folder / "trial/calibration").exists()
    said = lab(*LOOP, "--randomised", "delay_s=0,0.01", code=2).err
    assert "loop: holds another loop" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--recordings", "1,2,4"), "trial: 4 recordings"),
        (("--recordings", "1,2,4"), "needs 6 at least"),
        (("--recordings", "1,x"), "--recordings"),
        (("--recordings", "0"), "--recordings"),
        (("--recordings", "1,2,01"), "1 is there twice"),
        (("--randomised", "delay=0,1"), "--randomised"),
        (("--randomised", "delay_s=0,9"), "--randomised"),
        (("--randomised", "delay_s=0.01"), "--randomised"),
        (("--randomised", "delay_s=0.02,0.01"), "must be below"),
        (("--policy", "balancer"), "policy"),
    ],
)
def test_bad_words_are_refused_before_anything_is_made(lab, options, said):
    err = lab("calibrate", "loop", "trial", "--out", "other", *options, code=2).err
    assert said in err
    assert err.count("\n") == 1
    assert not (lab.folder / "other").exists()
