"""Whether recordings can be calibrated with at all: clocks, units, order, gaps, excitation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.defaults import HOLD_OUT
from robo_eval.core.task import TaskSpec
from robo_eval.core.wording import counted
from robo_eval_calibration.made import LEAST, split
from robo_eval_calibration.recordings import Array, Recording

Verdict = Literal["ok", "warn", "refuse"]

_SPAN: Final = 5
"""Ticks over which a rate is compared with the change of its position: noise counts less then."""
_LEAST_TICKS: Final = 40
"""Of all recordings: fewer tell hardly more than there are constants and noise to be found."""
_MANY_TICKS: Final = 100
"""Of fewer, motions look alike by chance, so that units and order are not compared."""
_TO_ACCEPT: Final = next(
    count for count in range(99) if min(round(HOLD_OUT * count), count - LEAST) >= LEAST
)
"""Recordings of which enough are fitted and enough held out."""
_JUMP_S: Final = 1.0
"""No control loop waits so long for a state; a clock was set."""
_RATE_OFF: Final = 0.02
_JITTER: Final = 0.25
_MANY_GAPS: Final = 0.2
_LIKE: Final = 0.9
_SCALE: Final = 1.25
_TELLS: Final = 3.0
"""How many times the noise of its position a channel has to move to be compared."""
_FEW: Final = 0.05
_FACTORS: Final = {180.0 / math.pi: "degrees", 1000.0: "thousandths", 1.0 / 1000.0: "thousands"}
"""What numbers are in that are so many times what they should be."""
_STUCK_TICKS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found.

    Attributes:
        check: Its name.
        verdict: `refuse` where nothing should be fitted.
        recording: Which one; empty if it is of all.
        text: What was found.
        remedy: What would do; empty where all is well.
    """

    check: str = ""
    verdict: Verdict
    recording: str = ""
    text: str
    remedy: str = ""


def checked(recordings: Sequence[Recording], task: TaskSpec) -> list[Finding]:
    """What every check says of recordings, at least one finding each.

    Args:
        recordings: At least one.
        task: What they should be of.
    """
    found: list[Finding] = []
    for check, (look, good) in _CHECKS.items():
        problems = list(look(recordings, task)) or [Finding(verdict="ok", text=good)]
        found += [replace(one, check=check) for one in problems]
        if check in _BASIC and refusals(found):
            break  # what follows would count with numbers that are none
    return found


def refusals(findings: Sequence[Finding]) -> list[Finding]:
    """Those for which nothing should be fitted."""
    return [one for one in findings if one.verdict == "refuse"]


def _refuse(text: str, remedy: str, one: Recording | None = None) -> Finding:
    return Finding(verdict="refuse", recording=one.id if one else "", text=text, remedy=remedy)


def _warn(text: str, remedy: str, one: Recording | None = None) -> Finding:
    return replace(_refuse(text, remedy, one), verdict="warn")


def _origin(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Finding]:
    for one in recordings:
        if one.env != task.env:
            yield _refuse(f"is of task {one.env}", f"use recordings of {task.env} only", one)
        elif one.keywords != (first_one := recordings[0]).keywords:
            text = f"was played with {dict(one.keywords)}, {first_one.id} with"
            remedy = "record each in a trial of its own"
            yield _refuse(f"{text} {dict(first_one.keywords)}", remedy, one)
    for what in ("robot", "side"):
        kinds = Counter(getattr(one, what) for one in recordings)
        if len(kinds) > 1:
            several = ", ".join(f"{name} ({number})" for name, number in kinds.items())
            yield _refuse(f"they are of several {what}s: {several}", "calibrate each by itself")
    yield from _copies(recordings)


def _copies(recordings: Sequence[Recording]) -> Iterator[Finding]:
    if len(recordings) == 1:
        text = "one recording only: its interval holds nothing of how recordings differ"
        yield _warn(text, f"record {_TO_ACCEPT} at least")
    elif (kept := len(split(recordings, HOLD_OUT)[1])) < LEAST:
        text = f"{kept} of {len(recordings)} recordings would be held out; `validate` needs {LEAST}"
        remedy = f"record {_TO_ACCEPT} at least, or say --hold-out, or validate with another trial"
        yield _warn(text, remedy)
    if len({one.content for one in recordings}) == 1 < len(recordings):
        text = f"all {len(recordings)} recordings are alike, number by number"
        yield _refuse(text, "record other starts: other seeds")
    else:
        first: dict[str, str] = {}
        for one in recordings:
            if (other := first.setdefault(one.content, one.id)) != one.id:
                yield _refuse(f"is a copy of {other}", "leave one of them out", one)


def _numbers(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Finding]:
    for one in recordings:
        shape = (one.ticks + 1, len(task.channels))
        is_lost = np.isnan(one.states).all(axis=1, keepdims=True)
        broken = np.argwhere(~np.isfinite(one.states) & ~is_lost)
        silent = np.argwhere(~np.isfinite(one.commands))
        if one.states.shape != shape:
            text = f"has states of shape {one.states.shape}; {shape} belongs to its commands"
            yield _refuse(text, "record it again", one)
        elif broken.size:
            tick, column = broken[0]
            text = f"{task.channels[column].name} is no number in tick {tick}"
            yield _refuse(text, "look at what publishes it, or leave the recording out", one)
        if one.commands.size == 0:
            yield _refuse("has no commands", "record the topic of the policy's commands", one)
        elif silent.size:
            yield _refuse(f"a command is no number in tick {silent[0, 0]}", "leave it out", one)
        for what, values in (("force or torque", one.wrench), ("place of a thing", one.things)):
            if values is not None and not np.isfinite(values).all():
                tick = int(np.argwhere(~np.isfinite(values))[0, 0])
                text = f"a {what} is no number in tick {tick}"
                yield _refuse(text, "look at what publishes it, or leave the recording out", one)


def _length(recordings: Sequence[Recording], _task: TaskSpec) -> Iterator[Finding]:
    ticks = sum(one.ticks for one in recordings)
    if ticks < _MANY_TICKS:
        say = _refuse if ticks < _LEAST_TICKS else _warn
        text = f"too few: {ticks} ticks in {counted(len(recordings), 'recording')}"
        yield say(text, f"record {_MANY_TICKS} ticks and more")


def _clocks(recordings: Sequence[Recording], _task: TaskSpec) -> Iterator[Finding]:
    remedy = "let one clock stamp states, and set no clock while recording"
    for one in recordings:
        step = np.diff(one.stamp_ns) / 1e9
        back = np.flatnonzero(step <= 0.0)
        far = np.flatnonzero(step > _JUMP_S)
        if back.size:
            tick = int(back[0])
            text = f"stamps go back {counted(back.size, 'time')}, first by {-step[tick]:.3f} s"
            yield _refuse(f"{text} after tick {tick}", remedy, one)
        elif far.size:
            tick = int(far[0])
            yield _refuse(f"stamps jump by {step[tick]:.3f} s after tick {tick}", remedy, one)
        if one.cut:
            yield _warn(f"{one.cut}: what follows is left out", remedy, one)


def _rates(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Finding]:
    for one in recordings:
        step = np.diff(one.stamp_ns) / 1e9
        step = step[(step > 0.0) & (step <= _JUMP_S)]
        usual = float(step.mean()) if step.size else math.nan
        if abs(usual / task.tick_s - 1.0) > _RATE_OFF:
            text = f"a tick takes {usual:.4g} s; the task has {task.tick_s:g} s"
            yield _refuse(text, "play it at the task's rate", one)
        elif (off := float(np.mean(np.abs(step - usual) > _JITTER * usual))) > _FEW:
            text = f"{off:.0%} of the ticks are off by more than a quarter"
            yield _warn(text, "look at the load of the machine that records", one)


def _gaps(recordings: Sequence[Recording], _task: TaskSpec) -> Iterator[Finding]:
    for one in recordings:
        share = float(np.isnan(one.states).all(axis=1).mean())
        if share > 0.0:
            say = _refuse if share > _MANY_GAPS else _warn
            remedy = "look at the network between driver and recorder"
            yield say(f"{share:.1%} of its states were lost", remedy, one)


def _units(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Finding]:
    """Rates against the changes of positions, over all recordings: sign, scale, order."""
    names = [channel.name for channel in task.channels]
    own = {
        place: names.index(channel.rate_of)
        for place, channel in enumerate(task.channels)
        if channel.rate_of
    }
    spans = [_spans(one, task.tick_s) for one in recordings]
    moved, summed = (np.concatenate(part) for part in zip(*spans, strict=True))
    noise = np.sqrt(np.mean([_roughness(one) for one in recordings], axis=0))
    for rate, position in own.items():
        change, told = moved[:, position], summed[:, rate]
        if _SPAN * len(change) < _MANY_TICKS or change.std() <= _TELLS * noise[position]:
            continue
        if told.std() == 0.0:
            text = f"{names[rate]} stays the same while {names[position]} moves"
            yield _refuse(text, "look at what publishes it")
            continue
        like = np.abs(np.corrcoef(told, moved[:, list(own.values())].T)[0, 1:])
        best = list(own.values())[int(np.nanargmax(like))]
        scale = float(change @ told / (told @ told))
        unit = f"{names[rate]} against the change of {names[position]}"
        if np.nanmax(like) > _LIKE > like[list(own).index(rate)]:
            text = f"{names[rate]} is the rate of {names[best]}"
            yield _refuse(text, f"name the joints in the order {', '.join(names)}")
        elif scale < 0.0:
            yield _refuse(f"{unit}: its sign is reversed", "mend the sign in the driver")
        elif not 1.0 / _SCALE < scale < _SCALE:
            alike = [word for factor, word in _FACTORS.items() if 0.8 < 1 / scale / factor < 1.25]
            text = f"{unit}: it is {1.0 / scale:.3g} times as large as it should be"
            guess = f", as if in {alike[0]} of its unit" if alike else ""
            yield _refuse(text + guess, f"give {names[rate]} in {task.channels[rate].unit}")


def _spans(one: Recording, tick_s: float) -> tuple[Array, Array]:
    """Changes of every channel over spans of ticks, and the sums of every channel over them."""
    states = one.states
    middle = 0.5 * (states[1:] + states[:-1]) * tick_s
    count = (len(middle) // _SPAN) * _SPAN
    change = states[_SPAN : count + 1 : _SPAN] - states[0:count:_SPAN]
    total = middle[:count].reshape(-1, _SPAN, states.shape[1]).sum(axis=1)
    is_known = np.isfinite(change).all(axis=1) & np.isfinite(total).all(axis=1)
    return change[is_known], total[is_known]


def _roughness(one: Recording) -> NDArray[np.float64]:
    """Variance of the noise of each channel, from what third differences leave of motion."""
    third = np.diff(one.states, n=3, axis=0)
    found: NDArray[np.float64] = np.nanmean(third**2, axis=0) / 20.0
    return found


def _saturation(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Finding]:
    for one in recordings:
        for column, channel in enumerate(task.channels):
            values = one.states[:, column]
            stuck = _longest_run(values)
            if stuck > _STUCK_TICKS and np.nanstd(values) > 0.0:
                text = f"{channel.name} shows the same number for {stuck} ticks"
                yield _warn(text, "look whether its sensor is at its end, or was lost", one)
        if one.efforts is None:
            continue
        size, asked = np.abs(one.efforts), np.abs(one.commands)
        if size.shape == asked.shape:
            most = np.nanmax(size, axis=0)
            at_end = (size >= 0.99 * most) & (asked > 1.05 * most) & (most > 0.0)
            if (share := float(at_end.any(axis=1).mean())) > _FEW:
                text = f"in {share:.0%} of the ticks the drives gave less than was asked for"
                yield _warn(text, f"ask for at most {most.max():.3g}", one)


def _longest_run(values: Array) -> int:
    """Most ticks in a row in which a number stays exactly the same."""
    changes = np.flatnonzero(np.diff(values) != 0.0)
    return int(np.diff(np.concatenate([[-1], changes, [len(values) - 1]])).max())


def _excitation(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Finding]:
    remedy = "let a policy or a programme move every joint in both directions"
    every = np.concatenate([one.commands for one in recordings])
    is_idle = np.ptp(every, axis=0) == 0.0
    # What a channel moves by within recordings: other starts are no motion.
    is_still = np.max([np.nanstd(one.states, axis=0) for one in recordings], axis=0) == 0.0
    idle = [f"command {place + 1}" for place in np.flatnonzero(is_idle)]
    still = [task.channels[place].name for place in np.flatnonzero(is_still)]
    if is_idle.all():
        yield _refuse("the commands never change", remedy)
    elif is_still.all():
        yield _refuse("nothing moves", remedy)
    elif idle or still:
        yield _warn(f"{', '.join(idle + still)} never changes", remedy)
    same = [np.array_equal(one.commands, recordings[0].commands) for one in recordings]
    if len(same) > 1 and all(same) and not is_idle.all():
        yield _warn("all recordings have the same commands", "record other motions as well")


_CHECKS: Final[
    dict[str, tuple[Callable[[Sequence[Recording], TaskSpec], Iterator[Finding]], str]]
] = {
    "origin": (_origin, "one task, one robot, no copies"),
    "numbers": (_numbers, "states and commands are numbers"),
    "length": (_length, f"{_MANY_TICKS} ticks and more"),
    "clocks": (_clocks, "stamps go forward"),
    "rates": (_rates, "ticks take as long as those of the task"),
    "gaps": (_gaps, "no state was lost"),
    "units": (_units, "no rate contradicts the change of its position"),
    "saturation": (_saturation, "no sensor and no drive at its end"),
    "excitation": (_excitation, "commands change, and states with them"),
}
"""Checks in their order, and what is said where one finds nothing."""
_BASIC: Final = ("numbers",)
