"""Control measures give the numbers that calculus gives for signals one can write down."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robo_eval.core.errors import InputError, ShapeError
from robo_eval.metrics.control_measures import (
    jerk_rms,
    peak_force,
    settling_time,
    tracking_rmse,
)

RATE = 200.0
OMEGA = 2.0 * math.pi * 0.5


def even(seconds: float, rate: float = RATE) -> np.ndarray:
    return np.arange(0.0, seconds, 1.0 / rate)


def uneven(seconds: float, rate: float = RATE, seed: int = 0) -> np.ndarray:
    """As many samples, with periods between a fifth and almost twice the usual one."""
    steps = np.random.default_rng(seed).uniform(0.2, 1.8, round(seconds * rate)) / rate
    return np.cumsum(steps)


@pytest.mark.parametrize("times", [even, uneven])
def test_jerk_of_a_sine_is_its_amplitude_times_the_cube_of_its_frequency(times):
    t = times(40.0)
    amplitude = np.array([0.5, 0.1])
    position = amplitude * np.sin(OMEGA * t)[:, None]
    # RMS over time and joints of A w^3 cos(w t).
    expected = math.sqrt(np.mean(amplitude**2) / 2.0) * OMEGA**3
    assert jerk_rms(t, position, window_s=0.1) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("times", [even, uneven])
def test_jerk_of_a_cubic_is_exact(times):
    t = times(3.0)
    position = np.stack([0.7 * t**3 - t**2 + 5.0, 2.0 * t**3], axis=1)
    expected = math.sqrt(np.mean([4.2**2, 12.0**2]))
    assert jerk_rms(t, position) == pytest.approx(expected, rel=1e-6)


def test_the_window_damps_a_sine_as_documented():
    t = even(60.0)
    window = 0.4
    kept = jerk_rms(t, np.sin(OMEGA * t)[:, None], window_s=window) / (OMEGA**3 / math.sqrt(2.0))
    assert 1.0 - kept == pytest.approx((OMEGA * window) ** 2 / 72.0, rel=0.15)


def test_noise_adds_as_documented():
    t = even(60.0, 500.0)
    noise = np.random.default_rng(1).normal(0.0, 1e-4, len(t))[:, None]
    expected = 317.0 * 1e-4 * math.sqrt((1 / 500.0) / 0.2) / 0.2**3
    assert jerk_rms(t, noise, window_s=0.2) == pytest.approx(expected, rel=0.1)


def test_jerk_does_not_reach_across_a_gap():
    t = np.concatenate([even(5.0), 60.0 + even(5.0)])
    position = t[:, None] ** 2
    position[t > 50.0] = 3.0  # moved by hand meanwhile
    assert jerk_rms(t, position) == pytest.approx(0.0, abs=1e-6)


def test_a_far_offset_and_epoch_times_cost_no_digits():
    t = even(10.0)
    near = jerk_rms(t, np.sin(OMEGA * t)[:, None])
    assert jerk_rms(t, 1e3 + np.sin(OMEGA * t)[:, None]) == pytest.approx(near, rel=1e-6)


@pytest.mark.parametrize("times", [even, uneven])
def test_tracking_a_sine_with_a_lag_has_the_error_of_the_lag(times):
    t = times(40.0, 500.0) if times is even else times(40.0, 500.0, 3)
    lag = 0.1
    command = np.sin(OMEGA * t)[:, None]
    measured = np.sin(OMEGA * (t - lag))[:, None]
    # The difference is a sine of amplitude 2 sin(w lag / 2).
    expected = math.sqrt(2.0) * math.sin(OMEGA * lag / 2.0)
    assert tracking_rmse(t, measured, t, command) == pytest.approx(expected, rel=0.005)


def test_a_command_holds_until_the_next_one():
    t = even(4.0)
    measured = np.zeros((len(t), 1))
    # 1 until 1 s, then 3: the mean square over 4 s is (1 + 3 * 9) / 4.
    found = tracking_rmse(t, measured, [0.0, 1.0], [[1.0], [3.0]])
    assert found == pytest.approx(math.sqrt(7.0), rel=0.005)


def test_positions_before_the_first_command_do_not_count():
    assert tracking_rmse([0.0, 1.0, 2.0], [[9.0], [1.0], [1.0]], [0.5], [[1.0]]) == 0.0
    with pytest.raises(InputError, match="no joint position follows a command"):
        tracking_rmse([0.0], [[9.0]], [0.5], [[1.0]])


def test_a_burst_of_messages_counts_no_more_than_its_duration():
    calm = even(2.0)
    burst = np.linspace(1.0, 1.01, 5000)
    t = np.sort(np.concatenate([calm, burst]))
    error = np.where((t >= 1.0) & (t <= 1.01), 10.0, 1.0)[:, None]
    found = tracking_rmse(t, error, [0.0], [[0.0]])
    # With half a period before and after it.
    expected = math.sqrt((1.985 + 0.015 * 100.0) / 2.0)
    assert found == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize("tau", [0.05, 0.2])
def test_settling_of_a_first_order_response(tau):
    t = even(4.0, 1000.0)
    position = np.where(t < 0.5, 0.0, 1.0 - np.exp(-(t - 0.5) / tau))[:, None]
    found = settling_time(t, position, [0.0, 0.5], [[0.0], [1.0]], band=0.02)
    assert found == pytest.approx(tau * math.log(50.0), abs=0.002)


def test_settling_counts_from_the_last_time_the_band_was_left():
    t = even(5.0, 100.0)
    position = np.where((t > 3.0) & (t < 3.5), 1.2, 1.0)[:, None]
    found = settling_time(t, position, [1.0], [[1.0]], band=0.05)
    assert found == pytest.approx(2.5, abs=0.011)


def test_what_has_not_settled_has_no_settling_time():
    t = even(2.0)
    with pytest.raises(InputError, match="had not settled"):
        settling_time(t, 0.3 * np.sin(9.0 * t)[:, None] + 1.0, [0.0], [[1.0]], band=0.01)
    with pytest.raises(InputError, match="band is 0"):
        settling_time(t, t[:, None], [0.0], [[1.0]], band=0.0)


def test_the_peak_of_a_force_is_the_longest_vector():
    t = even(2.0)
    force = np.stack([3.0 * np.cos(OMEGA * t), 3.0 * np.sin(OMEGA * t), np.full(len(t), 4.0)], 1)
    assert peak_force(force) == pytest.approx(5.0)
    assert peak_force([1.0, -7.0, 2.0]) == 7.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: jerk_rms([0, 1, 2, 1.5, 3], np.zeros((5, 1))),
            InputError,
            "backwards at sample 3",
        ),
        (lambda: jerk_rms([0, 1], np.zeros((2, 1))), InputError, "at least 5 samples, there are 2"),
        (lambda: jerk_rms(even(0.1), np.zeros((20, 1)), window_s=1.0), InputError, "shorter than"),
        (lambda: jerk_rms(even(1.0), np.zeros((20, 1))), ShapeError, r"\(200,\).*\(20, 1\)"),
        (
            lambda: jerk_rms(even(1.0), np.zeros((200, 1)), window_s=0.0),
            InputError,
            "window_s is 0",
        ),
        (lambda: jerk_rms([], np.zeros((0, 1))), InputError, "no joint positions"),
        (
            lambda: jerk_rms(even(0.1), np.array([[0.0]] * 19 + [[math.nan]])),
            ShapeError,
            "sample 19, column 0 is nan",
        ),
        (
            lambda: jerk_rms(even(0.1), np.array([[0.0]] * 19 + [[1e300]])),
            ShapeError,
            r"sample 19, column 0 is 1e\+300",
        ),
        (
            lambda: tracking_rmse([0.0], [[0.0]], [0.0], [[0.0, 1.0]]),
            ShapeError,
            "commands are of 2 joints, positions of 1",
        ),
        (lambda: tracking_rmse([0.0], [[0.0]], [], np.zeros((0, 1))), InputError, "no commands"),
        (lambda: peak_force(np.zeros((0, 3))), InputError, "no force"),
        (lambda: peak_force([[1.0, 2.0]]), ShapeError, r"\(1, 2\)"),
        (lambda: peak_force([math.inf]), ShapeError, "is inf"),
    ],
)
def test_what_cannot_be_measured_says_why(call, error, message):
    with pytest.raises(error, match=message):
        call()


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.floats(0.01, 100.0),
    shift=st.floats(-1000.0, 1000.0),
    doubled=st.integers(0, 59),
)
def test_measures_scale_with_the_signal_and_ignore_its_origin(seed, scale, shift, doubled):
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.005, 0.02, 60))
    position, command = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    jerk, error = jerk_rms(t, position), tracking_rmse(t, position, t, command)
    assert jerk_rms(t + shift, scale * position) == pytest.approx(scale * jerk, rel=1e-4)
    found = tracking_rmse(t + shift, scale * position + 1.0, t + shift, scale * command + 1.0)
    assert found == pytest.approx(scale * error, rel=1e-6)
    # A message that came twice changes nothing.
    twice = np.insert(np.arange(60), doubled, doubled)
    assert jerk_rms(t[twice], position[twice]) == jerk
    assert tracking_rmse(t[twice], position[twice], t, command) == error
