"""What is fitted, what is kept to validate it, and what a snapshot says of the fit."""

from dataclasses import replace

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.snapshot import Errors
from robo_eval.stats.estimate import Estimate
from robo_eval_calibration.fit import Fitted, Found
from robo_eval_calibration.held_out import HeldOut
from robo_eval_calibration.innovations import least_noise
from robo_eval_calibration.intervals import Judged, Verdict
from robo_eval_calibration.made import accepted, snapshot_name, snapshot_of, split, unused
from robo_eval_calibration.recordings import Recording
from robo_eval_calibration.structure import Missing, Structure

TASK = "RoboEval/CartPole3D-v0"


def recording(number, **fields):
    return Recording(
        **{
            "id": f"e{number}", "env": TASK, "side": "twin", "robot": "gantry",
            "begun_ns": 1_790_000_000_000_000_000 + number, "stamp_ns": np.arange(3),
            "states": np.full((3, 8), float(number)), "commands": np.zeros((2, 2)),
        } | fields
    )  # fmt: skip


EIGHT = [recording(number) for number in range(8)]


@pytest.mark.parametrize(("share", "kept"), [(0.0, 0), (0.25, 2), (0.5, 4), (0.99, 7)])
def test_a_share_is_held_out(share, kept):
    fitted, held = split(EIGHT, share)
    assert (len(fitted), len(held)) == (8 - kept, kept)
    assert sorted(one.id for one in [*fitted, *held]) == [one.id for one in EIGHT]


def test_what_is_held_out_depends_on_contents_alone():
    renamed = [replace(one, id=f"other-{one.id}") for one in reversed(EIGHT)]
    kept = {one.content for one in split(EIGHT, 0.25)[1]}
    assert kept == {one.content for one in split(renamed, 0.25)[1]}


def test_a_group_stays_together():
    grouped = [replace(one, group=f"g{number // 2}") for number, one in enumerate(EIGHT)]
    kept = [one.group for one in split(grouped, 0.5)[1]]
    assert len(kept) == 4
    assert all(kept.count(group) == 2 for group in kept)


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match="--hold-out"):
        split(EIGHT, share)


def found(value, half, verdict):
    estimate = Estimate(
        value=value, low=value - half, high=value + half, level=0.95, n=4, method="re_kh",
        unit="kg",
    )  # fmt: skip
    return Found(
        estimate=estimate,
        by_unit=(value, value, value + half),
        sds=(half,) * 3,
        between_sd=0.0,
        judged=Judged(verdict=verdict, partners=("push_gain",), reason="why"),
    )


@pytest.fixture
def fit():
    return Fitted(
        units=(("e0",), ("e1", "e2"), ("e3",)),
        found={
            "cart_mass_kg": found(1.3, 0.01, Verdict.IDENTIFIED),
            "pole_com_height_m": found(1.1, 0.05, Verdict.WEAK),
            "slide_friction_n_s_m": found(0.1, 0.3, Verdict.WEAK),
            "push_gain": found(1.5, 0.01, Verdict.NOT_IDENTIFIABLE),
            "delay_s": found(0.02, 0.001, Verdict.IDENTIFIED),
        },
        given={"pole_mass_kg": 0.12},
        noise={"position_noise_m": 0.001, "force_noise_n": 0.3, "force_memory_s": 1e9},
        free=("cart_mass_kg", "push_gain"),
        correlations=np.array([[1.0, 0.9], [0.9, 1.0]]),
        chi2=1.0,
        structure=Structure(
            missing=(
                Missing(name="dry friction", unit="N", size=0.29, p=0.001),
                Missing(name="a spring", unit="N/m", size=0.1, p=0.7),
            ),
            skill=0.99, share=0.1, bounds=(),
        ),
    )  # fmt: skip


def snapshot(fit, gantry):
    return snapshot_of(
        fit, EIGHT[:4], EIGHT[4:6], model=gantry, name="made", plan_digest="", valid_days=7
    )


@pytest.fixture
def made(fit, gantry):
    return snapshot(fit, gantry)


def test_a_snapshot_says_what_was_found(made):
    assert [(one.id, one.episode) for one in made.recordings][:2] == [
        ("rec-1", "e0"), ("rec-2", "e1"),
    ]  # fmt: skip
    assert made.held_out == ("e4", "e5")
    # Recordings of one group share their estimate.
    assert made.constants["cart_mass_kg"].by_recording == (1.3, 1.3, 1.3, 1.31)
    assert (made.valid.until - made.valid.from_).days == 7
    assert made.residuals.verdict == "structure"
    assert made.residuals.missing == ("dry friction 0.29 N",)
    assert made.residuals.correlations == {"cart_mass_kg push_gain": 0.9}
    assert not made.accepted.verdict


def test_noise_below_what_is_believed_is_no_find(fit, gantry):
    least = least_noise(gantry.task)["position_noise_m"]
    low = replace(fit, noise=fit.noise | {"position_noise_m": least})
    assert snapshot(low, gantry).noise.floored == ("position_noise_m",)
    assert snapshot(fit, gantry).noise.floored == ()


def test_where_no_constants_explain_recordings_all_are_played_as_nominal(made):
    played = made.played(noise=False, force=False)
    assert played == {
        "cart_mass_kg": 1.0, "pole_mass_kg": 0.12, "pole_com_height_m": 1.0,
        "slide_friction_n_s_m": 0.0, "push_gain": 1.0, "delay_s": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("verdict", Verdict)
def test_a_snapshot_can_hold_every_verdict(fit, gantry, verdict):
    mass = found(1.3, 0.01, verdict)
    made = snapshot(replace(fit, found=fit.found | {"cart_mass_kg": mass}), gantry)
    assert made.constants["cart_mass_kg"].verdict == verdict.value


def test_what_could_be_told_is_played_together(fit, gantry):
    made = snapshot(replace(fit, structure=replace(fit.structure, missing=())), gantry)
    assert made.played() == {
        "cart_mass_kg": 1.3,
        "pole_mass_kg": 0.12,  # given
        "pole_com_height_m": 1.1,  # weak
        "slide_friction_n_s_m": 0.1,  # weak, and perhaps nominal
        "push_gain": 1.0,  # not identifiable
        "delay_s": 0.02,
        "position_noise_m": 0.001,
        "force_noise_n": 0.3,
        "force_memory_s": 5.0,  # within its bounds
    }


def test_used_recordings_validate_nothing(made):
    copies = [replace(one, id=f"copy-{one.id}", sha256="") for one in EIGHT]
    assert [one.id for one in unused(made, copies)] == [f"copy-e{n}" for n in range(4, 8)]
    with pytest.raises(InputError, match="used to make calibration made"):
        unused(made, EIGHT[:4])


@pytest.mark.parametrize(
    ("low", "n", "fitted", "after", "word"),
    [
        (0.5, 4, 4, (1.2, 1.3), None), (0.01, 4, 4, (1.0,), "2%"), (None, 1, 4, (1.0,), "one"),
        (0.5, 4, 1, (1.0,), "one recording"), (0.5, 4, 4, (4.6, 3.8), "4.22 standard deviations"),
    ],
)  # fmt: skip
def test_it_is_accepted_only_where_the_error_surely_falls_to_the_noise(
    made, low, n, fitted, after, word
):
    fall = Estimate(
        value=0.6, low=low, high=None if low is None else 0.7, level=0.95, n=n, method="t",
        unit="ratio", reason="one is too few" if low is None else None,
    )  # fmt: skip
    of = made.model_copy(update={"recordings": made.recordings[:fitted]})
    errors = {f"e{at}": Errors(nominal=9.0, calibrated=one) for at, one in enumerate(after)}
    held = HeldOut(fall=fall, errors=errors)
    told = accepted(of, held)
    assert told.errors == errors
    assert told.verdict is (word is None)
    assert told.left == pytest.approx(np.sqrt(np.mean(np.square(after))))
    if word is not None:
        assert word in told.reason


@pytest.mark.parametrize("name", ["a/b", "", ".hidden", "x" * 65, "two words"])
def test_a_name_that_rows_cannot_hold_is_refused(name):
    with pytest.raises(InputError, match="--name"):
        snapshot_name(name)
