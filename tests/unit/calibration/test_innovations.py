"""Errors of one-tick predictions and the filter that whitens them."""

from dataclasses import replace

import numpy as np
import pytest

from robo_eval.core.errors import InputError
from robo_eval_calibration import innovations
from robo_eval_calibration.innovations import (
    declared_noise,
    delay_from_efforts,
    delayed,
    likely_noise,
    track_of,
    whitened,
)

FORCE = {"force_noise_n": 0.3, "force_memory_s": 0.4}


def track(model, recording, hidden, names=()):
    nominal = {one.name: one.nominal for one in model.task.constants}
    return track_of(model, recording, nominal | hidden, names)


def test_innovations_of_the_true_model_are_white(gantry, play, hidden, noise):
    rows = []
    for seed in range(6):
        own = track(gantry, play(seed), hidden)
        rows.append(whitened(gantry.task, [own], noise | FORCE)[0].values[20:, :, 0])
    every = np.concatenate(rows)
    assert every.std(axis=0) == pytest.approx(np.ones(8), abs=0.12)
    for row in rows:
        after = (row[1:] * row[:-1]).mean(axis=0)
        assert np.abs(after).max() < 0.35  # of 180 products
    # Without memory of the force they hang together.
    lone = whitened(gantry.task, [track(gantry, play(0), hidden)], noise | FORCE | {
        "force_memory_s": 0.0})[0].values[20:, 2:4, 0]  # fmt: skip
    assert (lone[1:] * lone[:-1]).mean() > (rows[0][1:, 2:4] * rows[0][:-1, 2:4]).mean()


def test_a_missing_state_drops_its_two_steps_and_no_other(gantry, play, hidden):
    recording = play(3)
    states = recording.states.copy()
    states[50] = np.nan
    whole, gap = (
        track(gantry, one, hidden) for one in (recording, replace(recording, states=states))
    )
    assert np.flatnonzero(~gap.is_there).tolist() == [49, 50]
    kept = gap.is_there
    assert gap.errors[kept] == pytest.approx(whole.errors[kept])
    assert (gap.errors[~kept] == 0.0).all()


def test_recordings_of_different_lengths_share_a_filter(gantry, play, hidden, noise):
    tracks = [track(gantry, play(seed, ticks=t), hidden) for seed, t in ((0, 60), (1, 40))]
    together = whitened(gantry.task, tracks, noise | FORCE)
    for one, own in zip(together, tracks, strict=True):
        alone = whitened(gantry.task, [replace(own, turn=tracks[0].turn, reach=tracks[0].reach)],
                         noise | FORCE)[0]  # fmt: skip
        assert one.values == pytest.approx(alone.values)
        assert one.log_det == pytest.approx(alone.log_det)


def test_a_filter_is_steady_where_no_formula_says_so(gantry, play, hidden, noise, monkeypatch):
    own = track(gantry, play(0, ticks=60), hidden)
    usual = whitened(gantry.task, [own], noise | FORCE)[0]

    def fails(*_, **__):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(innovations, "solve_discrete_are", fails)
    other = whitened(gantry.task, [own], noise | FORCE)[0]
    assert other.values == pytest.approx(usual.values, abs=1e-3)
    assert other.log_det == pytest.approx(usual.log_det, rel=1e-6)


def test_noise_is_found_and_stays_above_its_floor(gantry, play, hidden, noise):
    quiet = noise | {"tilt_noise_rad": 0.0}
    units = [[track(gantry, play(seed, noise=quiet, ticks=80), hidden)] for seed in range(4)]
    declared = declared_noise(gantry.task)
    found, _ = likely_noise(gantry.task, units, declared)
    assert found["velocity_noise_m_s"] == pytest.approx(0.01, rel=0.15)
    assert found["force_noise_n"] == pytest.approx(0.3, rel=0.4)
    assert 0.05 <= found["tilt_noise_rad"] / declared["tilt_noise_rad"] < 0.2


def test_delay_is_told_by_efforts_whatever_the_gain(play):
    recording = play(1, with_efforts=True, push=lambda command: 0.7 * np.asarray(command))
    ticks, sd = delay_from_efforts(recording, 5.0)
    assert ticks == pytest.approx(1.4, abs=1e-9)
    assert sd < 1e-6


def test_commands_that_never_change_tell_no_delay(play):
    recording = play(1, with_efforts=True)
    with pytest.raises(InputError, match=r"rec-1.*whose commands change"):
        delay_from_efforts(replace(recording, commands=0.0 * recording.commands), 5.0)


def test_a_delay_of_whole_ticks_shifts():
    commands = np.arange(10.0).reshape(5, 2)
    assert delayed(commands, 0.0) == pytest.approx(commands)
    assert delayed(commands, 2.0)[2:] == pytest.approx(commands[:3])
    assert (delayed(commands, 2.0)[:2] == 0.0).all()


def test_what_cannot_be_foretold_is_named(gantry, play, hidden):
    class Broken(type(gantry)):
        def predict(self, states, forces, constants):
            return np.full_like(states, np.nan)

    with pytest.raises(InputError, match=r"rec-2.*no finite number"):
        track(Broken(), play(2), hidden)
    with pytest.raises(InputError, match=r"rec-2: 5 of 5 ticks.*10 are needed"):
        track(gantry, play(2, ticks=5), hidden)
