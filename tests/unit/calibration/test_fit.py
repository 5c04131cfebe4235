"""Constants found in recordings of a gantry whose constants are known here."""

from dataclasses import replace

import numpy as np
import pytest

from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval_calibration import unit_fit
from robo_eval_calibration.expected import expected
from robo_eval_calibration.fit import fitted
from robo_eval_calibration.innovations import declared_noise, physics_of
from robo_eval_calibration.intervals import Verdict

pytestmark = pytest.mark.usefixtures("found", "hasty")  # what others rest on is found well


def verdicts(found):
    return {name: one.judged.verdict for name, one in found.found.items()}


def test_hidden_constants_are_found(found, hidden):
    for name, truth in hidden.items():
        estimate = found.found[name].estimate
        assert estimate.low <= truth <= estimate.high, name
    assert found.found["cart_mass_kg"].estimate.value == pytest.approx(1.3, rel=0.02)
    assert found.found["delay_s"].estimate.value == pytest.approx(0.028, rel=0.05)
    assert verdicts(found)["cart_mass_kg"] is Verdict.IDENTIFIED
    assert verdicts(found)["slide_friction_n_s_m"] is Verdict.WEAK
    assert found.chi2 == pytest.approx(1.0, abs=0.05)
    assert found.units == (("rec-0",), ("rec-1",), ("rec-2",), ("rec-3",))


def test_what_is_stored_is_not_computed_again(gantry, play, tmp_path, monkeypatch, given):
    recordings = [play(0, ticks=60)]
    seen = []

    def fit():
        return fitted(
            recordings,
            model=gantry,
            given=given,
            jobs_folder=tmp_path,
            progress=lambda done, of: seen.append((done, of)),
            profiles=False,
        )

    first = fit()
    assert seen[-1] == (2, 2)
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(unit_fit, "fit_unit", lambda job: pytest.fail("played again"))
    again = fit()
    assert again.found == first.found
    file = next(tmp_path.iterdir())
    for part in (b"half a fi", file.read_bytes()[:-100]):
        file.write_bytes(part)
        with pytest.raises(pytest.fail.Exception, match="played again"):
            fit()


@pytest.mark.slow
def test_a_known_load_tells_the_gain_from_the_mass(gantry, play, hidden):
    heavy = hidden | {"cart_mass_kg": 1.8}
    recordings = []
    for seed in range(2):
        recordings += [
            play(seed, group=f"g{seed}"),
            play(seed + 50, hidden=heavy, known={"cart_mass_kg": 0.5}, excited=0.3,
                 group=f"g{seed}"),
        ]  # fmt: skip
    found = fitted(recordings, model=gantry, given={"pole_mass_kg": 0.1}, profiles=False)
    assert len(found.units) == 2
    assert found.found["push_gain"].estimate.value == pytest.approx(1.0, abs=0.05)
    assert found.found["cart_mass_kg"].estimate.value == pytest.approx(1.3, abs=0.07)


def test_gain_and_mass_are_confounded_without_a_load(gantry, play):
    found = fitted(
        [play(0, ticks=100)],
        model=gantry,
        given={"pole_mass_kg": 0.1},
        profiles=False,
    )
    said = found.found["push_gain"].judged
    assert said.verdict is Verdict.NOT_IDENTIFIABLE
    assert "cart_mass_kg" in said.partners
    assert found.found["pole_com_height_m"].judged.verdict is not Verdict.NOT_IDENTIFIABLE


def test_measured_efforts_tell_the_delay_by_themselves(gantry, play, given):
    recordings = [play(0, with_efforts=True, ticks=60)]
    found = fitted(recordings, model=gantry, given=given, profiles=False)
    assert "delay_s" not in found.free
    assert found.found["delay_s"].by_unit == pytest.approx((0.028,), abs=1e-9)
    assert verdicts(found)["delay_s"] is Verdict.IDENTIFIED


def test_check_says_that_efforts_tell_the_delay(gantry, play, given):
    recordings = [play(seed, with_efforts=True, ticks=60) for seed in (0, 1)]
    nominal = {name: one.nominal for name, one in physics_of(gantry.task).items()}
    for known, is_told in ((given, True), (given | {"delay_s": 0.028}, False)):
        told = expected(gantry, recordings, nominal, declared_noise(gantry.task), known)
        found = fitted(recordings, model=gantry, given=known, profiles=False)
        assert told.half_widths.keys() == told.judged.keys() == found.found.keys()
        assert ("delay_s" in found.found) is is_told
    assert found.given["delay_s"] == 0.028


@pytest.mark.slow
def test_efforts_of_some_recordings_alone_are_not_used(gantry, play, given):
    some = [play(0, with_efforts=True, ticks=40), play(1, ticks=40)]
    none = [play(0, ticks=40), play(1, ticks=40)]
    one, other = (fitted(r, model=gantry, given=given, profiles=False) for r in (some, none))
    assert one.found == other.found


@pytest.mark.slow
def test_a_constant_in_doubt_is_held_at_its_bounds(gantry, play, hidden, given):
    constants = tuple(
        replace(one, high=0.9) if one.name == "slide_friction_n_s_m" else one
        for one in gantry.task.constants
    )
    narrow = replace(gantry.task, find_constants=lambda: constants)
    model = type(gantry)()
    model.task = narrow
    recordings = [play(0, ticks=60)]
    more = given | {"pole_com_height_m": 0.95, "delay_s": 0.028}
    said = fitted(recordings, model=model, given=more).found["slide_friction_n_s_m"].judged
    assert said.verdict is Verdict.NOT_IDENTIFIABLE


def test_a_constant_that_changes_nothing_is_said_to(gantry, play, given):
    class Deaf(type(gantry)):
        def predict(self, states, forces, constants):
            used = {k: v for k, v in constants.items() if k != "slide_friction_n_s_m"}
            return super().predict(states, forces, used)

    found = fitted([play(0, ticks=80)], model=Deaf(), given=given, profiles=False)
    said = found.found["slide_friction_n_s_m"].judged
    assert said.verdict is Verdict.NOT_IDENTIFIABLE
    assert "no prediction depends on it" in said.reason


def test_a_truth_beyond_the_bounds_presses_against_them(gantry, play, hidden, given):
    recordings = [play(seed, hidden=hidden | {"cart_mass_kg": 6.0}, ticks=80) for seed in (0,)]
    found = fitted(recordings, model=gantry, given=given, profiles=False)
    assert verdicts(found)["cart_mass_kg"] is Verdict.AT_A_BOUND
    assert found.structure.bounds == ("cart_mass_kg",)
    assert found.found["cart_mass_kg"].estimate.value == 5.0


def test_an_interval_that_reaches_a_bound_is_at_it(gantry, play, hidden, given):
    told = given | {"slide_friction_n_s_m": 0.6, "pole_com_height_m": 0.95}
    edge = hidden | {"cart_mass_kg": 5.0, "delay_s": 0.0}
    recordings = [play(seed, hidden=edge, ticks=80) for seed in (0, 1)]
    found = fitted(recordings, model=gantry, given=told, profiles=False)
    assert found.found["cart_mass_kg"].estimate.high == 5.0
    assert verdicts(found)["cart_mass_kg"] is Verdict.AT_A_BOUND
    # No delay is a bound, too, and what is nominal.
    assert found.found["delay_s"].estimate.low == 0.0
    assert verdicts(found)["delay_s"] is not Verdict.AT_A_BOUND
    assert found.structure.reasons == ("cart_mass_kg is at a bound",)


def test_a_search_that_goes_astray_is_no_result(gantry, play, given):
    class Sawtooth(type(gantry)):
        def predict(self, states, forces, constants):
            mass = constants["cart_mass_kg"]
            tooth = round(mass, 2)
            moved = constants | {"cart_mass_kg": tooth - 3.0 * (mass - tooth)}
            return super().predict(states, forces, moved)

    given = dict.fromkeys(("push_gain", "pole_com_height_m"), 1.0) | {"pole_mass_kg": 0.1}
    found = fitted([play(0, ticks=80)], model=Sawtooth(), given=given, profiles=False)
    assert verdicts(found)["cart_mass_kg"] is Verdict.NOT_SETTLED


def test_bad_input_is_one_error(gantry, play):
    with pytest.raises(InputError, match="no recordings"):
        fitted([], model=gantry)
    with pytest.raises(UnknownNameError, match="cart_mass"):
        fitted([play(0, ticks=30)], model=gantry, given={"cart_mas_kg": 1.0})
    states = np.full_like(play(0, ticks=30).states, np.nan)
    with pytest.raises(InputError, match=r"rec-0: 0 of 30 ticks"):
        fitted([replace(play(0, ticks=30), states=states)], model=gantry)
