"""Whether recordings can be calibrated with at all: clocks, units, order, gaps, excitation."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from robo_eval.core.task import TaskSpec
from robo_eval.core.wording import counted
from robo_eval_calibration.recordings import Array, Recording

Verdict = Literal["ok", "warn", "refuse"]

_SPAN: Final = 5
"""Ticks over which a rate is compared with the change of its position: noise counts less then."""
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

    check: str
    verdict: Verdict
    recording: str = ""
    text: str
    remedy: str = ""


Problem = tuple[Verdict, str, str, str]
"""Verdict, recording, text and remedy."""


def checked(recordings: Sequence[Recording], task: TaskSpec) -> list[Finding]:
    """What every check says of recordings, at least one finding each.

    Args:
        recordings: At least one.
        task: What they should be of.
    """
    found = []
    for check, (look, good) in _CHECKS.items():
        problems = list(look(recordings, task))
        found += [
            Finding(check=check, verdict=verdict, recording=which, text=text, remedy=remedy)
            for verdict, which, text, remedy in problems
        ]
        if not problems:
            found.append(Finding(check=check, verdict="ok", text=good(recordings, task)))
        if check in _BASIC and any(one.verdict == "refuse" for one in found):
            break  # what follows would count with numbers that are none
    return found


def refusals(findings: Sequence[Finding]) -> list[Finding]:
    """Those for which nothing should be fitted."""
    return [one for one in findings if one.verdict == "refuse"]


def _origin(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Problem]:
    for one in recordings:
        if one.env != task.env:
            yield "refuse", one.id, f"is of task {one.env}", f"use recordings of {task.env} only"
    for what, kinds in (
        ("robots", Counter(one.robot for one in recordings)),
        ("sides", Counter(one.side for one in recordings)),
    ):
        if len(kinds) > 1:
            several = ", ".join(f"{name} ({number})" for name, number in kinds.items())
            yield "refuse", "", f"they are of several {what}: {several}", "calibrate each by itself"
    same: dict[str, list[str]] = defaultdict(list)
    for one in recordings:
        same[one.content].append(one.id)
    copies = [ids for ids in same.values() if len(ids) > 1]
    if copies and len(same) == 1:
        yield (
            "refuse", "", f"all {len(recordings)} recordings are alike, number by number",
            "record other starts: other seeds",
        )  # fmt: skip
    for ids in copies if len(same) > 1 else []:
        yield "refuse", ids[1], f"is a copy of {ids[0]}", "leave one of them out"
    if len(recordings) == 1:
        yield (
            "warn", "", "one recording only: its interval holds nothing of how recordings differ",
            "record at least 4",
        )  # fmt: skip


def _numbers(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Problem]:
    for one in recordings:
        states = np.isnan(one.states)
        broken = (states.any(axis=1) & ~states.all(axis=1)) | np.isinf(one.states).any(axis=1)
        if broken.any():
            tick = int(np.argmax(broken))
            column = int(np.argmax(~np.isfinite(one.states[tick])))
            name = task.channels[column].name if column < len(task.channels) else str(column)
            yield (
                "refuse", one.id, f"{name} is no number in tick {tick}",
                "look at what publishes it, or leave the recording out",
            )  # fmt: skip
        if one.commands.size == 0:
            yield "refuse", one.id, "has no commands", "record the topic of the policy's commands"
        elif not np.isfinite(one.commands).all():
            tick = int(np.argmax(~np.isfinite(one.commands).all(axis=1)))
            yield "refuse", one.id, f"a command is no number in tick {tick}", "leave it out"
        if len(one.states) != one.ticks + 1 or one.states.shape[1] != len(task.channels):
            text = f"{one.states.shape[0]} states of {one.states.shape[1]} numbers"
            wanted = f"{one.ticks + 1} of {len(task.channels)} belong to {one.ticks} commands"
            yield "refuse", one.id, f"has {text}; {wanted}", "record it again"


def _clocks(recordings: Sequence[Recording], _task: TaskSpec) -> Iterator[Problem]:
    remedy = "let one clock stamp states, and set no clock while recording"
    for one in recordings:
        step = np.diff(one.stamp_ns) / 1e9
        back = np.flatnonzero(step <= 0.0)
        far = np.flatnonzero(step > _JUMP_S)
        if back.size:
            tick = int(back[0])
            text = f"stamps go back {counted(back.size, 'time')}, first by {-step[tick]:.3f} s"
            yield "refuse", one.id, f"{text} after tick {tick}", remedy
        elif far.size:
            tick = int(far[0])
            yield "refuse", one.id, f"stamps jump by {step[tick]:.3f} s after tick {tick}", remedy
        if one.cut:
            yield "warn", one.id, f"{one.cut}: what follows is left out", remedy


def _rates(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Problem]:
    for one in recordings:
        step = np.diff(one.stamp_ns) / 1e9
        step = step[(step > 0.0) & (step <= _JUMP_S)]
        usual = float(step.mean()) if step.size else math.nan
        if abs(usual / task.tick_s - 1.0) > _RATE_OFF:
            yield (
                "refuse", one.id, f"a tick takes {usual:.4g} s; the task has {task.tick_s:g} s",
                "play it at the task's rate",
            )  # fmt: skip
        elif (off := float(np.mean(np.abs(step - usual) > _JITTER * usual))) > _FEW:
            yield (
                "warn", one.id, f"{off:.0%} of the ticks are off by more than a quarter",
                "look at the load of the machine that records",
            )  # fmt: skip


def _gaps(recordings: Sequence[Recording], _task: TaskSpec) -> Iterator[Problem]:
    for one in recordings:
        share = float(np.isnan(one.states).all(axis=1).mean())
        if share > 0.0:
            verdict: Verdict = "refuse" if share > _MANY_GAPS else "warn"
            text = f"{share:.1%} of its states were lost"
            yield verdict, one.id, text, "look at the network between driver and recorder"


def _units(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Problem]:
    """Rates against the changes of positions, over all recordings: sign, scale, order."""
    names = [channel.name for channel in task.channels]
    rates = [place for place, channel in enumerate(task.channels) if channel.rate_of]
    own = {place: names.index(task.channels[place].rate_of) for place in rates}
    spans = [_spans(one, task.tick_s) for one in recordings]
    moved = np.concatenate([one for one, _ in spans])
    summed = np.concatenate([one for _, one in spans])
    noise = np.sqrt(np.mean([_roughness(one) for one in recordings], axis=0))
    for rate in rates:
        position = own[rate]
        change, told = moved[:, position], summed[:, rate]
        if len(change) < _SPAN or change.std() <= _TELLS * noise[position]:
            continue
        unit = f"{names[rate]} against the change of {names[position]}"
        if told.std() == 0.0:
            yield (
                "refuse",
                "",
                f"{names[rate]} stays the same while {names[position]} moves",
                ("look at what publishes it"),
            )
            continue
        like = [abs(float(np.corrcoef(moved[:, place], told)[0, 1])) for place in own.values()]
        best = list(own.values())[int(np.nanargmax(like))]
        if best != position and max(like) > _LIKE > like[list(own.values()).index(position)]:
            yield (
                "refuse",
                "",
                f"{names[rate]} is the rate of {names[best]}",
                (f"name the joints in the order {', '.join(names)}"),
            )
            continue
        scale = float(change @ told / (told @ told))
        if scale < 0.0:
            yield "refuse", "", f"{unit}: its sign is reversed", "mend the sign in the driver"
        elif not 1.0 / _SCALE < scale < _SCALE:
            times = 1.0 / scale
            alike = [word for factor, word in _FACTORS.items() if 0.8 < times / factor < 1.25]
            text = f"{unit}: it is {times:.3g} times as large as it should be"
            guess = f", as if in {alike[0]} of its unit" if alike else ""
            yield "refuse", "", text + guess, f"give {names[rate]} in {task.channels[rate].unit}"


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


def _saturation(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Problem]:
    for one in recordings:
        for column, channel in enumerate(task.channels):
            values = one.states[:, column]
            stuck = _longest_run(values)
            if stuck > _STUCK_TICKS and np.nanstd(values) > 0.0:
                yield (
                    "warn", one.id, f"{channel.name} shows the same number for {stuck} ticks",
                    "look whether its sensor is at its end, or was lost",
                )  # fmt: skip
        if one.efforts is None:
            continue
        size, asked = np.abs(one.efforts), np.abs(one.commands)
        if size.shape == asked.shape:
            most = np.nanmax(size, axis=0)
            at_end = (size >= 0.99 * most) & (asked > 1.05 * most) & (most > 0.0)
            if (share := float(at_end.any(axis=1).mean())) > _FEW:
                text = f"in {share:.0%} of the ticks the drives gave less than was asked for"
                yield "warn", one.id, text, f"ask for at most {most.max():.3g}"


def _longest_run(values: Array) -> int:
    """Most ticks in a row in which a number stays exactly the same."""
    changes = np.flatnonzero(np.diff(values) != 0.0)
    return int(np.diff(np.concatenate([[-1], changes, [len(values) - 1]])).max())


def _excitation(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Problem]:
    remedy = "let a policy or a programme move every joint in both directions"
    every = np.concatenate([one.commands for one in recordings])
    idle = np.flatnonzero(np.ptp(every, axis=0) == 0.0)
    if idle.size == every.shape[1]:
        yield "refuse", "", "the commands never change", remedy
    elif idle.size:
        places = ", ".join(str(place + 1) for place in idle)
        yield "warn", "", f"command {places} never changes", remedy
    still = [
        channel.name
        for place, channel in enumerate(task.channels)
        if all(np.nanstd(one.states[:, place]) == 0.0 for one in recordings)
    ]
    if len(still) == len(task.channels):
        yield "refuse", "", "nothing moves", remedy
    elif still:
        yield "warn", "", f"{', '.join(still)} never changes", remedy
    first = recordings[0]
    is_same = len(recordings) > 1 and all(
        np.array_equal(one.commands, first.commands) for one in recordings
    )
    if is_same and idle.size < every.shape[1]:
        yield "warn", "", "all recordings have the same commands", "record other motions as well"


def _response(recordings: Sequence[Recording], task: TaskSpec) -> Iterator[Problem]:
    """Commands against what the rates do next: whether each acts on its own axis, and which way.

    A warning only: a fit says whether any constants explain it.
    """
    rates = [place for place, channel in enumerate(task.channels) if channel.rate_of]
    asked = np.concatenate([one.commands for one in recordings])
    if task.replay != "steps" or np.ptp(asked, axis=0).min() == 0.0:
        return
    # At the lag at which they agree best: commands act late.
    best = max(
        (_alike(recordings, rates[: asked.shape[1]], lag) for lag in range(5)),
        key=lambda found: float(np.abs(found).max(axis=1).sum()),
    )
    for axis, row in enumerate(best):
        name = task.channels[rates[axis]].name
        acting = int(np.argmax(np.abs(row)))
        if acting != axis and abs(row[acting]) > 2.0 * abs(row[axis]):
            yield (
                "warn",
                "",
                f"{name} follows command {acting + 1}, and not {axis + 1}",
                ("look whether axes are swapped"),
            )
        elif row[axis] < -0.2:
            yield (
                "warn",
                "",
                f"{name} falls where command {axis + 1} pushes it up",
                ("look whether a sign is reversed"),
            )


def _alike(recordings: Sequence[Recording], rates: Sequence[int], lag: int) -> Array:
    """Correlation of the change of each rate with each command some ticks before."""
    changes = [np.diff(one.states[:, list(rates)], axis=0)[lag:] for one in recordings]
    asked = [one.commands[: one.ticks - lag] for one in recordings]
    change, command = np.concatenate(changes), np.concatenate(asked)
    is_known = np.isfinite(change).all(axis=1)
    change, command = change[is_known], command[is_known]
    if len(change) < _SPAN or (change.std(axis=0) == 0.0).any() or (command.std(axis=0) == 0).any():
        return np.zeros((len(rates), command.shape[1]))
    both: Array = np.corrcoef(change.T, command.T)[: len(rates), len(rates) :]
    return both


def _ticks(recordings: Sequence[Recording], task: TaskSpec) -> str:
    ticks = sum(one.ticks for one in recordings)
    return f"{counted(len(recordings), 'recording')}, {ticks} ticks of {task.tick_s:g} s"


def _fitting(_recordings: Sequence[Recording], task: TaskSpec) -> str:
    has_rates = any(channel.rate_of for channel in task.channels)
    return "rates fit the changes of positions" if has_rates else "no rates are recorded"


def _pushing(_recordings: Sequence[Recording], task: TaskSpec) -> str:
    is_push = task.replay == "steps"
    return "no command pushes another way" if is_push else "not looked at: commands are no pushes"


def _says(text: str) -> Callable[[Sequence[Recording], TaskSpec], str]:
    return lambda _recordings, _task: text


_Look = Callable[[Sequence[Recording], TaskSpec], Iterator[Problem]]
_Good = Callable[[Sequence[Recording], TaskSpec], str]
_CHECKS: Final[dict[str, tuple[_Look, _Good]]] = {
    "origin": (_origin, _says("one task, one robot, no copies")),
    "numbers": (_numbers, _says("states and commands are numbers")),
    "clocks": (_clocks, _says("stamps go forward")),
    "rates": (_rates, _ticks),
    "gaps": (_gaps, _says("no state was lost")),
    "units": (_units, _fitting),
    "saturation": (_saturation, _says("no sensor and no drive at its end")),
    "excitation": (_excitation, _says("commands change, and states with them")),
    "response": (_response, _pushing),
}
"""Checks in their order, and what is said where one finds nothing."""
_BASIC: Final = ("numbers",)
