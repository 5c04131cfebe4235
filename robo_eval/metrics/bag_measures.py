"""Which control measures the signals of a recorded episode allow, and why not the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

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
_TURN: Final = 2.0 * math.pi

Floats = NDArray[np.float64]
_T = TypeVar("_T")


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

    for unit in sorted(set(signals.units.values()), reverse=True):
        names = [name for name, its in signals.units.items() if its == unit]
        add(
            f"tracking_rmse_{unit}",
            ("joints", "command"),
            lambda names=names: _tracking(signals, names),  # type: ignore[misc]
        )
        add(f"jerk_rms_{unit}_s3", ("joints",), lambda names=names: _jerk(signals, names))  # type: ignore[misc]
    add(PEAK_FORCE, ("force",), lambda: peak_force(_there(signals.force).values))
    if signals.settling_band:
        add(SETTLING, ("joints", "command"), lambda: _settling(signals))
    return values, left_out


def _there(signal: _T | None) -> _T:
    assert signal is not None
    return signal


def _tracking(signals: ControlSignals, names: Sequence[str]) -> float:
    """Each joint at its own times, then the mean over joints."""
    joints, command = _there(signals.joints), _there(signals.command)
    errors = []
    for name in names:
        one, other = joints[name], command[name]
        turn = _TURN if name in signals.continuous else None
        error = tracking_rmse(
            one.stamp_s,
            one.values,
            other.stamp_s,
            other.values,
            turn=turn,
            pauses=signals.pauses_s,
        )
        errors.append(error)
    return math.sqrt(math.fsum(error**2 for error in errors) / len(errors))


def _jerk(signals: ControlSignals, names: Sequence[str]) -> float:
    """Joints of the same messages share their fits."""
    blocks: dict[bytes, list[Signal]] = {}
    for name in names:
        one = _there(signals.joints)[name]
        blocks.setdefault(one.stamp_s.tobytes(), []).append(one)
    squares = []
    for block in blocks.values():
        values = np.hstack([one.values for one in block])
        window_s = signals.jerk_window_s or JERK_WINDOW_S
        jerk = jerk_rms(block[0].stamp_s, values, window_s=window_s, pauses=signals.pauses_s)
        squares.append(len(block) * jerk**2)
    return math.sqrt(math.fsum(squares) / len(names))


def _settling(signals: ControlSignals) -> float:
    """Distances from the last command, in bands of each joint."""
    joints, command = _there(signals.joints), _there(signals.command)
    band = signals.settling_band
    units = set(signals.units.values())
    missing = sorted(units - set(band)) if "" not in band or len(units) > 1 else []
    if missing:
        raise InputError(
            f"measures.settling_band is not given for joints in {', '.join(missing)}; write it as"
            " {rad: ..., m: ...}"
        )
    near: dict[str, tuple[Floats, Floats]] = {}
    wanted: dict[str, tuple[Floats, Floats]] = {}
    for name, unit in signals.units.items():
        target = command[name].values[-1, 0]
        for found, source in ((near, joints[name]), (wanted, command[name])):
            away = source.values[:, 0] - target
            if name in signals.continuous:
                away = np.remainder(away + math.pi, _TURN) - math.pi
            found[name] = (source.stamp_s, away / band.get(unit, band.get("", 1.0)))
    return settling_time(*_merged(near), *_merged(wanted), band=1.0, pauses=signals.pauses_s)


def _merged(series: Mapping[str, tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Series in one table, with the newest of each, from when all are known."""
    times = np.unique(np.concatenate([stamps for stamps, _ in series.values()]))
    times = times[times >= max(stamps[0] for stamps, _ in series.values())]
    columns = [
        values[np.searchsorted(stamps, times, side="right") - 1]
        for stamps, values in series.values()
    ]
    return times, np.stack(columns, axis=1)
