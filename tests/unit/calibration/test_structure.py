"""Whether any constants explain recordings."""

import numpy as np
import pytest

from robo_eval_calibration.fit import fitted
from robo_eval_calibration.innovations import nominal_of
from robo_eval_calibration.structure import structure_of
from robo_eval_calibration.unit_fit import tracks_of


@pytest.fixture
def structure(gantry, play, given):
    def of(**how):
        recordings = [play(seed, **how) for seed in range(4)]
        return fitted(recordings, model=gantry, given=given, profiles=False).structure

    return of


def named(structure):
    return {one.name: one.size for one in structure.missing if one.is_found}


def test_the_true_model_lacks_nothing(found):
    said = found.structure
    assert said.reasons == ()
    assert said.skill > 0.9
    assert said.share < 0.1


@pytest.mark.usefixtures("hasty")
def test_dry_friction_is_named_with_its_size(structure):
    said = structure(extra=lambda state: -0.3 * np.tanh(state[2:4] / 1e-3))
    assert list(named(said)) == ["dry friction"]
    assert named(said)["dry friction"] == pytest.approx(0.3, rel=0.3)
    assert any("dry friction" in reason for reason in said.reasons)


@pytest.mark.slow
def test_a_spring_is_named_with_its_size(structure):
    said = structure(extra=lambda state: -2.0 * state[:2])
    assert named(said)["a spring"] == pytest.approx(2.0, rel=0.2)


def test_a_spring_is_named_where_constants_of_a_recording_gave_way(gantry, play, hidden, noise):
    noise = noise | {"force_noise_n": 0.3, "force_memory_s": 0.4}
    units = [(play(seed, ticks=80, extra=lambda state: -2.0 * state[:2]),) for seed in range(4)]
    constants = [{**nominal_of(gantry.task), **hidden} for _ in units]
    constants[1] |= {"cart_mass_kg": 4.0, "pole_com_height_m": 0.4}
    names = ("cart_mass_kg", "pole_com_height_m", "slide_friction_n_s_m", "delay_s")
    tracks = [tracks_of(gantry, *one, names) for one in zip(units, constants, strict=True)]
    said = structure_of(gantry, units, tracks, constants, noise, names)
    assert named(said)["a spring"] == pytest.approx(2.0, rel=0.2)


@pytest.mark.parametrize(
    "push",
    [
        pytest.param(lambda c: (-c[0], c[1]), id="reversed", marks=pytest.mark.slow),
        pytest.param(lambda c: (c[1], c[0]), id="swapped"),
    ],
)
def test_a_wrong_sign_or_axis_is_no_matter_of_constants(structure, push):
    said = structure(push=push)
    assert said.share > 0.3
    assert any("hidden force" in reason for reason in said.reasons)


@pytest.mark.usefixtures("hasty")
def test_one_recording_names_no_force(gantry, play, given):
    said = fitted([play(0, ticks=40)], model=gantry, given=given, profiles=False).structure
    assert all(one.p is None and not one.is_found for one in said.missing)
    short = fitted([play(0, ticks=12)], model=gantry, given=given, profiles=False).structure
    assert short.skill is None
