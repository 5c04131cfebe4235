"""What is foreseen before a fit, and how constants do on recordings that were not used."""

from dataclasses import replace

import numpy as np
import pytest

from robo_eval_calibration.expected import expected
from robo_eval_calibration.held_out import MOST_LEFT, foretold, held_out, traces_of
from robo_eval_calibration.innovations import physics_of
from robo_eval_calibration.intervals import Verdict, half_width
from robo_eval_calibration.structure import HORIZON

FORCE = {"force_noise_n": 0.3, "force_memory_s": 0.4}


@pytest.fixture(scope="module")
def nominal(gantry):
    return {name: one.nominal for name, one in physics_of(gantry.task).items()}


def test_expected_half_widths_are_those_of_the_fit(gantry, play, nominal, noise, given, found):
    recordings = [play(seed) for seed in range(4)]
    foreseen = expected(gantry, recordings, nominal, noise | FORCE, given)
    for name, half in foreseen.half_widths.items():
        assert 0.3 < half / half_width(found.found[name].estimate) < 3.0, name
    assert foreseen.judged["cart_mass_kg"].verdict is Verdict.IDENTIFIED
    assert foreseen.judged["slide_friction_n_s_m"].verdict is Verdict.WEAK


def test_a_load_tells_the_gain_and_excitation_does_not(gantry, play, nominal, hidden, noise):
    heavy = {"hidden": hidden | {"cart_mass_kg": 1.8}, "known": {"cart_mass_kg": 0.5}}

    def told(**how):
        pairs = [
            (play(seed, group=f"g{seed}"), play(seed + 9, group=f"g{seed}", **how))
            for seed in (0, 1)
        ]
        recordings = [one for pair in pairs for one in pair]
        return expected(gantry, recordings, nominal, noise | FORCE, {"pole_mass_kg": 0.1})

    loaded, excited, plain = told(**heavy), told(excited=0.3), told()
    assert loaded.singular_value > excited.singular_value > plain.singular_value
    assert loaded.half_widths["push_gain"] < 0.2 * plain.half_widths["push_gain"]


def test_constants_are_accepted_where_errors_fall_on_other_recordings(
    gantry, play, nominal, hidden, noise
):
    others = [play(seed) for seed in (20, 21, 22)]
    better = held_out(gantry, others, nominal | hidden, nominal, noise | FORCE)
    assert better.reason is None
    assert better.fall.low > 0.5
    assert better.left == pytest.approx(1.0, abs=0.1)
    assert list(better.errors) == [one.id for one in others]
    # What people look at is of one of them, and tells the same.
    assert better.traces.episode in better.errors
    assert better.traces.ticks == HORIZON
    assert set(better.traces.channels) == {"cart_x", "cart_y", "pole_roll", "pole_pitch"}
    for one in better.traces.channels.values():
        before, after = (
            np.std(np.subtract(one.recorded, told)) for told in (one.nominal, one.calibrated)
        )
        assert after < 0.5 * before
        assert one.nominal[HORIZON] == one.calibrated[HORIZON] == one.recorded[HORIZON]
    slightly = nominal | {"cart_mass_kg": 1.005}
    usual = [play(seed, hidden={}) for seed in (20, 21, 22)]
    same = held_out(gantry, usual, slightly, nominal, noise | FORCE)
    assert "more than 2% is needed" in same.reason
    alone = held_out(gantry, others[:1], nominal | hidden, nominal, noise | FORCE)
    assert alone.fall.low is None
    assert "one recording" in alone.reason


def test_a_true_model_keeps_what_may_be_left_in_the_shortest_recordings(
    gantry, play, nominal, hidden, noise
):
    for seed in range(0, 40, 5):
        two = [play(seed + more, ticks=10) for more in (0, 1)]
        assert held_out(gantry, two, nominal | hidden, nominal, noise | FORCE).left < MOST_LEFT


def test_traces_leave_out_what_is_not_known_and_what_is_too_much(gantry, play, nominal):
    one = play(3, ticks=400)
    states = one.states.copy()
    states[20] = np.nan
    told = foretold(gantry, replace(one, states=states), nominal)
    assert np.isfinite(told[:30]).all()
    assert np.isfinite(foretold(gantry, replace(one, states=states[5:]), nominal)[:15]).all()
    assert np.isnan(foretold(gantry, replace(one, states=states[5:]), nominal)[15:30]).all()
    whole = traces_of(gantry.task, replace(one, states=states), one.states, one.states)
    assert whole.ticks == 0
    assert len(whole.time_s) <= 150
    assert whole.time_s[-1] > 0.98 * 400 * gantry.task.tick_s
    some = traces_of(gantry.task, replace(one, states=states), told, told, ticks=HORIZON)
    assert some.channels["cart_x"].recorded[20] is None
    assert some.time_s[1] == pytest.approx(gantry.task.tick_s)
