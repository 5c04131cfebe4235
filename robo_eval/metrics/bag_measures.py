"""Which control measures the signals of a recorded episode allow, and why not the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from robo_eval.core.errors import InputError
from robo_eval.log.bag_signals import ControlSignals, Signal
from robo_eval.metrics.control_measures import (
    JERK_WINDOW_S,
    jerk_rms,
    peak_force,
    settling_time,
    tracking_rmse,
)

SETTLING: Final = "settling_time_s"
PEAK_FORCE: Final = "peak_force_N"


def measure(signals: ControlSignals) -> tuple[dict[str, float], dict[str, str]]:
    """The control measures of one episode.

    Args:
        signals: What was recorded of it.

    Returns:
        Values by name, unit in the name; and by name why a measure is left out although the map
        names its signals.
    """
    values: dict[str, float] = {}
    left_out: dict[str, str] = {}

    def add(name: str, needed: tuple[str, ...], compute: Callable[[], float]) -> None:
        is_named = all(
            signal in signals.reasons or getattr(signals, signal) is not None for signal in needed
        )
        reasons = [signals.reasons[signal] for signal in needed if signal in signals.reasons]
        if is_named and reasons:
            left_out[name] = reasons[0]
        elif is_named:
            try:
                values[name] = compute()
            except InputError as err:
                left_out[name] = str(err)

    unit = signals.joint_unit
    add(f"tracking_rmse_{unit}", ("joints", "command"), lambda: _tracking(signals))
    add(f"jerk_rms_{unit}_s3", ("joints",), lambda: _jerk(signals))
    add(PEAK_FORCE, ("force",), lambda: peak_force(_there(signals.force).values))
    if signals.settling_band is not None:
        add(SETTLING, ("joints", "command"), lambda: _settling(signals))
    return values, left_out


def _there(signal: Signal | None) -> Signal:
    assert signal is not None
    return signal


def _tracking(signals: ControlSignals) -> float:
    joints, command = _there(signals.joints), _there(signals.command)
    return tracking_rmse(joints.stamp_s, joints.values, command.stamp_s, command.values)


def _jerk(signals: ControlSignals) -> float:
    joints = _there(signals.joints)
    return jerk_rms(joints.stamp_s, joints.values, window_s=signals.jerk_window_s or JERK_WINDOW_S)


def _settling(signals: ControlSignals) -> float:
    joints, command = _there(signals.joints), _there(signals.command)
    assert signals.settling_band is not None
    return settling_time(
        joints.stamp_s, joints.values, command.stamp_s, command.values, band=signals.settling_band
    )
