"""Whether constants foretell recordings better that were not used to find them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from robo_eval.core.task import TaskSpec
from robo_eval.log.snapshot import Accepted, Errors, Traced, Traces
from robo_eval.stats.estimate import Estimate
from robo_eval_calibration.innovations import Model
from robo_eval_calibration.intervals import random_effects
from robo_eval_calibration.recordings import Array, Recording
from robo_eval_calibration.structure import HORIZON, replayed
from robo_eval_calibration.whole import JOBS, WholeJob

MARGIN: Final = 0.02
"""Share by which the error has to fall: what falls by less is no gain for who plays it."""
_ROWS: Final = 150
_CHANNELS: Final = 4
"""Times and channels that a snapshot keeps for people to look at."""
MOST_LEFT: Final = 1.5
"""Standard deviations of the noise that may be left. A true model leaves 1, or less of sensors that
are better than is believed: fitted to two recordings of a gantry of 30 ticks it left 0.97 to 1.15
of two others, in 20 trials, and of 100 ticks 1.07 at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Errors of recordings that were not used.

    Attributes:
        fall: Share by which the error falls, mean over recordings by its logarithm.
        errors: Of each recording, by its id, in standard deviations of the noise.
        traces: Of the one whose error falls by the median.
    """

    fall: Estimate
    errors: Mapping[str, Errors]
    traces: Traces | None = None

    @property
    def left(self) -> float:
        """Error with what was found, root mean square over recordings."""
        return math.sqrt(float(np.mean([one.calibrated**2 for one in self.errors.values()])))

    @property
    def reason(self) -> str | None:
        """Why the constants are not accepted; None if they are."""
        if self.fall.low is None:
            return self.fall.reason
        if self.fall.low <= MARGIN:
            return (
                f"the error of recordings that were not used falls by {self.fall.value:.1%}, its"
                f" interval begins at {self.fall.low:.1%}, and more than {MARGIN:.0%} is needed"
            )
        if self.left > MOST_LEFT:
            return (
                f"an error of {self.left:.2f} standard deviations of the noise is left;"
                f" {Accepted.LEAVES}, and {MOST_LEFT} is accepted"
            )
        return None


def held_out(
    model: Model,
    recordings: Sequence[Recording],
    found: Mapping[str, float],
    nominal: Mapping[str, float],
    noise: Mapping[str, float],
) -> HeldOut:
    """Compare what is foretold with constants that were found and with nominal ones.

    Args:
        model: The simulator.
        recordings: None of them used for `found`.
        found: All constants of the physics.
        nominal: The same, nominal.
        noise: Of sensors and hidden force, by constant, for both.
    """
    job = JOBS[model.task.replay]
    before, after = (
        [
            job(model=model, unit=(one,), start=constants, names=(), noise=noise).missed()
            for one in recordings
        ]
        for constants in (nominal, found)
    )
    n = len(recordings)
    # Errors within the noise say nothing of each other.
    ratios = np.log(np.maximum(after, 1.0) / np.maximum(before, 1.0)).tolist()
    # Of recordings that tell no error of their own this is the t interval of their mean.
    mean, _ = random_effects(ratios, [0.0] * n, unit="")
    shown = recordings[np.argsort(ratios)[n // 2]]
    told = [foretold(model, shown, constants) for constants in (nominal, found)]
    low, high = (
        None if n < 2 or end is None else -math.expm1(end) for end in (mean.high, mean.low)
    )
    return HeldOut(
        fall=Estimate(
            value=-math.expm1(mean.value or 0.0),
            low=low,
            high=high,
            level=mean.level,
            n=n,
            method="t" if n > 1 else "none",
            unit="ratio",
            reason=None if n > 1 else "one recording was held out; two at least have an interval",
        ),
        errors={
            one.id: Errors(nominal=was, calibrated=left)
            for one, was, left in zip(recordings, before, after, strict=True)
        },
        traces=traces_of(
            model.task, shown, *told, ticks=0 if model.task.replay == "whole" else HORIZON
        ),
    )


def foretold(model: Model, recording: Recording, constants: Mapping[str, float]) -> Array:
    """States as a replay tells them, shape (T + 1, C).

    One that is no whole one starts anew every so many ticks; states are NaN where none can start.
    """
    if model.task.replay == "whole":
        job = WholeJob(model=model, unit=(recording,), start=constants, names=(), noise={})
        return job.played(constants)[0][:, : len(model.task.channels)]
    starts, told = replayed(model, recording, recording.with_known(constants), HORIZON)
    found = np.full_like(recording.states, np.nan)
    found[starts[:, None] + np.arange(HORIZON)] = told[:, :HORIZON]
    return found


def traces_of(
    task: TaskSpec, recording: Recording, before: Array, after: Array, *, ticks: int = 0
) -> Traces:
    """A recording and what is foretold of it, as a snapshot keeps it.

    Of at most so many channels, those with the largest error. Where replays start anew the first
    of them are kept; else times are left out evenly.

    Args:
        task: What was played.
        recording: What was measured.
        before: What is foretold with nominal constants, shape (T + 1, C).
        after: With those that were found.
        ticks: Between two starts; 0 for one replay of all.
    """
    states = recording.states
    rows = np.arange(0, len(states), 1 if ticks else -(-len(states) // _ROWS))[:_ROWS]
    errors = np.nansum((before - states)[rows] ** 2, axis=0) / (np.nanvar(states, axis=0) + 1e-300)
    places = [at for at, one in enumerate(task.channels) if not one.rate_of]
    largest = sorted(places, key=lambda at: -errors[at])[:_CHANNELS]

    def kept(values: Array, at: int) -> tuple[float | None, ...]:
        return tuple(float(f"{x:.5g}") if math.isfinite(x) else None for x in values[rows, at])

    return Traces(
        episode=recording.id,
        ticks=ticks,
        time_s=tuple((rows * task.tick_s).round(4).tolist()),
        channels={
            task.channels[at].name: Traced(
                unit=task.channels[at].unit,
                recorded=kept(states, at), nominal=kept(before, at), calibrated=kept(after, at),
            )
            for at in sorted(largest)
        },
    )  # fmt: skip
