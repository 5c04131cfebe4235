"""How often `calibrate watch` finds a change of a constant that is there, and one that is not.

Days have values from a normal distribution, of which neighbours may be correlated; a constant jumps
once, or drifts from the first day to the last. Tables: share of series in which a change is found,
in how many the likeliest day is within one of the true one, how often the named dates hold it, how
many they are, and how often the interval of the correlation holds the truth.
The last table asks how often today's value is found to differ from the snapshot in use, when each
day's value and interval come from four recordings. Run by hand, two minutes:
`python benchmarks/watch_power.py`, or with the number of series.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from robo_eval.core.estimate import Estimate
from robo_eval_calibration.watch import Day, Watched, watched

Array = NDArray[np.float64]
SERIES = int(sys.argv[1]) if len(sys.argv) > 1 else 400
DRAWS = 999
RNG = np.random.default_rng(1)
FIRST = date(2026, 3, 1)
RECORDINGS = 4


def noise(days: int, constants: int, correlation: float) -> Array:
    """Values of days around 0, of sd 1, shape (days, constants)."""
    found = RNG.standard_normal((days, constants))
    for one, before in zip(found[1:], found, strict=False):
        one *= np.sqrt(1.0 - correlation**2)
        one += correlation * before
    return found


def as_days(values: Array, low: Array | None = None, high: Array | None = None) -> list[Day]:
    """Rows as days, columns as constants."""
    ends = (values if end is None else end for end in (low, high))
    return [
        Day(
            day=FIRST + timedelta(days=number),
            source=f"{number}.yaml",
            constants={
                f"c{i}": Estimate(
                    value=float(x), low=float(a), high=float(b), n=RECORDINGS, method="t", unit=""
                )
                for i, (x, a, b) in enumerate(zip(*cells, strict=True))
            },
        )
        for number, cells in enumerate(zip(values, *ends, strict=True))
    ]


def first_constants(
    days: int, constants: int, correlation: float, added: Array
) -> Iterator[tuple[Watched, bool]]:
    """The constant to which something was added, in each series, and whether others changed."""
    for _ in range(SERIES):
        values = noise(days, constants, correlation)
        values[:, 0] += added
        found = watched(as_days(values), draws=DRAWS).constants
        yield found[0], any(one.verdict == "changed" for one in found)


def held(one: Estimate, truth: float) -> bool:
    """Whether the interval holds the truth."""
    assert one.low is not None
    assert one.high is not None
    return one.low <= truth <= one.high


def print_changes() -> None:
    """What is found of jumps and drifts."""
    print(
        "| days | constants | correlation | change | any found | found | within a day"
        " | dates hold it | dates | correlation, mean | held |"
    )
    print("|" + "---|" * 11)
    cases = [
        *((days, constants, 0.0, "none", 0.0) for days in (8, 12, 20) for constants in (1, 5)),
        *((12, 1, correlation, "none", 0.0) for correlation in (0.3, 0.5)),
        *((12, 1, 0.0, "jump", size) for size in (2.0, 3.0)),
        *((days, 5, 0.0, "jump", 3.0) for days in (12, 20)),
        (12, 1, 0.0, "late jump", 3.0),
        (12, 1, 0.3, "jump", 3.0),
        (12, 1, 0.0, "drift", 4.0),
    ]
    for days, constants, correlation, kind, size in cases:
        at = days - 2 if kind == "late jump" else days // 2
        added = size * np.linspace(0.0, 1.0, days) if kind == "drift" else size * (
            np.arange(days) >= at
        )  # fmt: skip
        series = list(first_constants(days, constants, correlation, added))
        ours = [one for one, _ in series if one.verdict == "changed"]
        cells = [f"{np.mean([some for _, some in series]):.2f}", *["-"] * 4]
        if size:
            cells[1] = f"{len(ours) / SERIES:.2f}"
        if "jump" in kind:
            true = FIRST + timedelta(days=at)
            spans = [(one.since_low, one.since, one.since_high) for one in ours]
            close = [abs((best - true).days) <= 1 for _, best, _ in spans if best]
            holds = [low <= true <= high for low, _, high in spans if low and high]
            width = [(high - low).days + 1 for low, _, high in spans if low and high]
            cells[2:] = [f"{np.mean(one):.2f}" for one in (close, holds, width)]
        known = [one.correlation for one, _ in series if one.correlation.value is not None]
        cells.append(f"{np.mean([one.value for one in known if one.value is not None]):.2f}")
        cells.append(f"{np.mean([held(one, correlation) for one in known]):.2f}")
        told = kind if not size else f"{kind} of {size:g}"
        print(
            f"| {days} | {constants} | {correlation:g} | {told} | {' | '.join(cells)} |", flush=True
        )


def print_moves() -> None:
    """How often today's value differs from the snapshot in use, by moves in sd of a recording."""
    print("\n| constants | move | any found | today's interval leaves out the value in use |")
    print("|---|---|---|---|")
    quantile = stats.t.ppf(0.975, RECORDINGS - 1) / RECORDINGS**0.5
    for constants in (1, 5):
        for move in (0.0, 3.0, 6.0):
            found, naive = [], []
            for _ in range(SERIES * 5):
                recordings = RNG.standard_normal((2, constants, RECORDINGS))
                recordings[1, 0] += move
                mean, half = recordings.mean(-1), quantile * recordings.std(-1, ddof=1)
                found.append(watched(as_days(mean, mean - half, mean + half)).is_due)
                naive.append((abs(mean[1] - mean[0]) > half[1]).any())
            cells = (f"{constants}", f"{move:g}", f"{np.mean(found):.2f}", f"{np.mean(naive):.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    print_changes()
    print_moves()
