"""How far zeros of joints and clocks of machines are apart, from tables of readings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from robo_eval.core.defaults import LEVEL
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.names import listing
from robo_eval.core.wording import counted
from robo_eval.log.cells import CellError, Reading
from robo_eval.log.csv_records import records
from robo_eval.log.evidence_read import bytes_of, check_columns
from robo_eval.stats.multiple import holm
from robo_eval.stats.resampling import mean_interval

Array = NDArray[np.float64]

ANGLES: Final = ("rad", "deg")
LENGTHS: Final = ("m", "cm", "mm")
TIMES: Final = ("ns", "us", "ms", "s")
LEAST: Final = 3
"""Readings without which nothing is said."""
_FARTHEST: Final = {"rad": 12.6, "m": 100.0}
"""Readings beyond two turns, or the length of a hall, are in another unit than is said."""
_LOOSE: Final = {"rad": 0.1, "m": 0.01}
"""No shift of a zero describes differences that scatter by more: gauges read far better."""
_FITS: Final = 0.25
"""Nor if that is more than this share of how far the joint was moved."""
_ROUNDING: Final = 1e-9
_GOALS: Final = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
"""Least and largest offset, then drift."""
_USELESS: Final = ("too few", "does not fit", "grows", "parallel", "not steady")
_SLACK: Final = 1e-6
"""How exactly the solver keeps to bounds, as a share of a round trip."""


class Table:
    """A CSV file whose columns of numbers end in their unit, such as `reference_deg`.

    Args:
        path: The file; columns that nobody asks for are left alone.

    Attributes:
        path: The file.
        header: Names of its columns.
        lines: Line each record is in.

    Raises:
        InputError: If it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        found = records(path, bytes_of(path, "readings"))
        rows = list(found)
        self.path = path
        self.header = found.header
        self.lines = [line for line, _ in rows]
        self._rows = [cells for _, cells in rows]

    def texts(self, name: str) -> list[str]:
        """The cells of a column.

        Raises:
            InputError: If there is none of this name, or several.
        """
        what = f"numbers have their unit at the end of its name; there are {listing(self.header)}"
        check_columns(self.path, self.header, self.header, (name,), what)
        place = self.header.index(name)
        return [cells[place].strip() for cells in self._rows]

    def unit(self, name: str, units: Sequence[str]) -> str:
        """The first unit in which a quantity is there; the first of all if it is in none."""
        return next((one for one in units if f"{name}_{one}" in self.header), units[0])

    def numbers(self, name: str, units: Sequence[str] = ()) -> list[Decimal]:
        """A quantity in its SI unit, exactly.

        Args:
            name: Of the quantity; the column is called so if it has no unit.
            units: Those it may have.

        Raises:
            InputError: If there is no such column, or a cell is no number, or beyond two turns in
                rad or 100 m in m.
        """
        unit = self.unit(name, units) if units else None
        column = f"{name}_{unit}" if unit else name
        found = []
        for line, text in zip(self.lines, self.texts(column), strict=True):
            try:
                found.append(Reading().number(text, unit))
                if abs(found[-1]) > _FARTHEST.get(unit or "", np.inf):
                    raise CellError(
                        f"{text} {unit} is farther from 0 than {_FARTHEST[str(unit)]:g} {unit}; end"
                        f" the name of the column in '_{'deg' if unit == 'rad' else 'mm'}' if that"
                        " is its unit"
                    )
            except CellError as err:
                raise InputError(f"{self.path}: line {line}, column {column!r}: {err}") from err
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """What is between two things that should be one: zeros, clocks, a camera and a hand.

    Attributes:
        of: Between what.
        verdict: In a word or two.
        numbers: What was found, by name, each with its interval.
        residuals: What that leaves unexplained, by names that end in their unit.
        lines: Lines of the file that fit worst.
        reason: What to mind; None if nothing.
    """

    of: str
    verdict: str
    numbers: Mapping[str, Estimate]
    residuals: Mapping[str, float] = field(default_factory=dict)
    lines: tuple[int, ...] = ()
    reason: str | None = None

    @property
    def is_usable(self) -> bool:
        """Whether there are numbers, and they mean what they should."""
        return self.verdict not in _USELESS

    def says(self, name: str) -> str:
        """The verdict on one of its numbers: a drift has its own, as its interval has."""
        low, high = self.numbers[name].low, self.numbers[name].high
        if name != "drift" or low is None or high is None:
            return self.verdict
        return "gains" if low > 0.0 else "loses" if high < 0.0 else "none shown"


def unknown(of: str, verdict: str, reason: str, n: int, **units: str) -> Offset:
    """One of which nothing can be said, with the units its numbers would have."""
    numbers = {
        name: Estimate.missing(reason=reason, unit=unit, n=n) for name, unit in units.items()
    }
    return Offset(of=of, verdict=verdict, numbers=numbers, reason=reason)


# Joints ------------------------------------------------------------------------------------------


def joint_offsets(path: Path, *, level: float = LEVEL) -> tuple[Offset, ...]:
    """Zero offsets of joints, from a CSV file with `joint`, `reference_deg` and `measured_deg`.

    Both in any unit of angle, or both of length. Angles differ by the short way round. Verdicts:
    `offset`, `none shown`, `too few`, or `grows` where measured less reference depends on the
    reference, which no shift of a zero mends; `does not fit` where it scatters far too much.

    Raises:
        InputError: As `Table.numbers`; if one column holds angles and the other lengths.
    """
    table, units = Table(path), (*ANGLES, *LENGTHS)
    names = np.array(table.texts("joint"))
    x, y = (np.array(table.numbers(one, units), dtype=float) for one in ("reference", "measured"))
    known = [table.unit(one, units) for one in ("reference", "measured")]
    if (known[0] in ANGLES) != (known[1] in ANGLES):
        raise InputError(
            f"{path}: column 'measured_{known[1]}': the reference is in {known[0]}; both must be"
            " angles, or both lengths"
        )
    if not len(names):
        raise InputError(f"{path}: holds no reading; write a line for each")
    unit, lines = "rad" if known[0] in ANGLES else "m", np.array(table.lines)
    parts = {joint: names == joint for joint in dict.fromkeys(names.tolist())}
    apart = {joint: _apart((y - x)[own], unit) for joint, own in parts.items()}
    slopes = {joint: _slope_p(x[own], apart[joint]) for joint, own in parts.items()}
    tested = {joint: p for joint, p in slopes.items() if p is not None}
    slopes |= dict(zip(tested, holm(list(tested.values())).tolist(), strict=True))
    return tuple(
        _joint(joint, x[own], apart[joint], lines[own], unit, level, slopes[joint])
        for joint, own in parts.items()
    )


def _apart(difference: Array, unit: str) -> Array:
    """Differences; of angles the short way round from their mean direction, which cuts none."""
    if unit != "rad":
        return difference
    middle = float(np.angle(np.exp(1j * difference).mean()))
    return middle + np.remainder(difference - middle + np.pi, 2.0 * np.pi) - np.pi


def _slope_p(reference: Array, difference: Array) -> float | None:
    """Chance of such a slope if there is none; None where no slope can be seen."""
    if len(reference) <= LEAST or np.ptp(reference) <= _ROUNDING:
        return None
    is_flat = np.ptp(difference) <= _ROUNDING
    return 1.0 if is_flat else float(stats.linregress(reference, difference).pvalue)


def _joint(
    joint: str,
    reference: Array,
    difference: Array,
    lines: NDArray[np.int_],
    unit: str,
    level: float,
    slope_p: float | None,
) -> Offset:
    n = len(difference)
    if n < LEAST:
        few = f"{counted(n, 'reading')}; take at least {LEAST}"
        return unknown(joint, "too few", few, n, offset=unit)
    offset = mean_interval(difference, level=level, unit=unit, method="student_t")
    low, high = (offset.value if end is None else end for end in (offset.low, offset.high))
    rest, left = np.abs(difference - difference.mean()), float(difference.std())
    verdict = "none shown" if (low or 0.0) <= 0.0 <= (high or 0.0) else "offset"
    reason = offset.reason
    if slope_p is not None and slope_p <= 1.0 - level:
        verdict, reason = "grows", "it grows with the reference: look at scale, gear and units"
    elif left > max(_LOOSE[unit], _FITS * float(reference.std())):
        reason = (
            f"differences scatter by {left:.2g} {unit}: check units, and the line that is named"
        )
        offset = unknown(joint, "", reason, n, offset=unit).numbers["offset"]
        verdict = "does not fit"
    elif slope_p is None:
        reason = "readings at one position, or three, cannot tell an offset from a wrong scale"
    return Offset(
        of=joint,
        verdict=verdict,
        numbers={"offset": offset},
        residuals={f"root_mean_square_{unit}": left},
        lines=(int(lines[rest.argmax()]),),
        reason=reason,
    )


# Clocks ------------------------------------------------------------------------------------------


def clock_offset(path: Path) -> Offset:
    """Offset and drift between two clocks, from a CSV file of round trips.

    Columns are `a_send_UNIT`, `b_receive_UNIT`, `b_send_UNIT`, `a_receive_UNIT`: a asks, b
    receives and answers, a receives; each by the clock of its machine. Every message bounds the
    offset from one side, as it cannot arrive before it was sent. Slow ones bound it loosely, so
    that none of them moves the result; bounds that contradict each other mean that a clock was set,
    or a stamp is wrong.

    Returns:
        `offset` of b less a in the middle of the record (s), and `drift`, by how much it grows
        (s/s). Their intervals are these bounds: they hold however the way there and back differ.
        Verdicts: `ahead`, `behind`, `none shown`, `too few`, or `not steady`.

    Raises:
        InputError: As `Table.numbers`.

    References:
        Moon, Skelly and Towsley (1999), Estimation and removal of clock skew from network delay
        measurements, IEEE INFOCOM 227-234; Mills (1991), Internet time synchronization: the
        Network Time Protocol, IEEE Transactions on Communications 39:1482-1493.
    """
    table = Table(path)
    stamps = ("a_send", "b_receive", "b_send", "a_receive")
    sent, heard, answered, back = (table.numbers(name, TIMES) for name in stamps)
    n, of = len(sent), "clock of b less that of a"
    if len(set(sent)) < LEAST or len(set(back)) < LEAST:
        reason = f"{counted(n, 'round trip')}; take at least {LEAST} at different times"
        return unknown(of, "too few", reason, n, offset="s", drift="s/s")
    # Times since 1970 have more digits than a float: differences first.
    upper = np.array([b - a for a, b in zip(sent, heard, strict=True)], dtype=np.float64)
    lower = np.array([b - a for a, b in zip(back, answered, strict=True)], dtype=np.float64)
    at = np.array([[a - sent[0] for a in one] for one in (sent, back)], dtype=np.float64)
    # From here on in round trips from the first offset, and in halves of the record.
    half, zero = float(np.ptp(at)) / 2.0, 0.5 * float(upper[0] + lower[0])
    scale = max(float(np.median(np.abs(upper - lower))), _ROUNDING)
    when, upper, lower = (
        (at - at.min()) / half - 1.0,
        (upper - zero) / scale,
        (lower - zero) / scale,
    )
    if not _is_possible(when, upper, lower):
        first = bisect_left(
            range(1, n + 1), 1, key=lambda k: not _is_possible(when[:, :k], upper[:k], lower[:k])
        )
        reason = (
            f"line {table.lines[first]} contradicts those before it: a clock was set or changed its"
            " pace, a stamp is wrong, or columns are confused; use round trips of one steady"
            " stretch"
        )
        return unknown(of, "not steady", reason, n, offset="s", drift="s/s")
    ends = _bounds(when, upper, lower)
    line = ends.mean(axis=1) @ np.vstack([np.ones(len(upper)), when.mean(axis=0)])
    low, high = (float(end) for end in ends[0] * scale + zero)
    numbers = {
        name: Estimate(value=float(a + b) / 2.0, low=float(a), high=float(b), level=1.0, n=n,
                       method="causality", unit=unit)
        for name, unit, (a, b) in (
            ("offset", "s", (low, high)), ("drift", "s/s", ends[1] * scale / half),
        )
    }  # fmt: skip
    return Offset(
        of=of,
        verdict="ahead" if low > 0.0 else "behind" if high < 0.0 else "none shown",
        numbers=numbers,
        residuals={
            "median_s": float(np.median(np.abs(0.5 * (upper + lower) - line))) * scale,
            "shortest_round_trip_s": float((upper - lower).min()) * scale,
        },
    )


def _limits(when: Array, upper: Array, lower: Array) -> dict[str, Any]:
    """Which offsets and drifts belong to lines through all bounds."""
    ones = np.ones_like(when[0])
    rows = np.vstack([np.column_stack([ones, when[0]]), -np.column_stack([ones, when[1]])])
    return {"A_ub": rows, "b_ub": np.r_[upper, -lower] + _SLACK, "bounds": (None, None)}


def _is_possible(when: Array, upper: Array, lower: Array) -> bool:
    return bool(optimize.linprog([0.0, 0.0], **_limits(when, upper, lower)).success)


def _bounds(when: Array, upper: Array, lower: Array) -> Array:
    """Least and largest offset and drift of lines through all bounds, shape (2, 2)."""
    limits = _limits(when, upper, lower)
    ends = [optimize.linprog(goal, **limits).x @ np.abs(goal) for goal in _GOALS]
    return np.reshape(ends, (2, 2))
