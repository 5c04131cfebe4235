"""Sums and differences of times: spans (start, end) in ns, as arrays of shape (n, 2)."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Spans: TypeAlias = Ints
"""Spans, shape (n, 2), ns. Merged ones are in order, and none touches the next."""
NONE: Final[Spans] = np.empty((0, 2), dtype=np.int64)


def merged(spans: Spans) -> Spans:
    """The union of some spans, each of shape (n, 2); what has no length is left out.

    Example:
        >>> merged(np.array([(4, 6), (0, 2), (5, 9), (2, 3), (7, 7)])).tolist()
        [[0, 3], [4, 9]]
    """
    spans = spans[spans[:, 0] < spans[:, 1]]
    if not len(spans):
        return NONE
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(spans[:, 1])
    begins = np.flatnonzero(np.append(True, spans[1:, 0] > reach[:-1]))
    ends = np.append(begins[1:], len(spans)) - 1
    found: Spans = np.column_stack((spans[begins, 0], reach[ends]))
    return found


def without(spans: Spans, taken: Spans) -> Spans:
    """What is left of some merged spans after others, merged as well, were taken away.

    Example:
        >>> without(np.array([(0, 10)]), np.array([(2, 3), (5, 20)])).tolist()
        [[0, 2], [3, 5]]
    """
    if not len(spans) or not len(taken):
        return spans
    # Between the ends of all of them nothing changes.
    cuts = np.unique(np.concatenate((spans.ravel(), taken.ravel())))
    pieces = np.column_stack((cuts[:-1], cuts[1:]))
    is_left = holds(spans, pieces[:, 0]) & ~holds(taken, pieces[:, 0])
    return merged(pieces[is_left])


def clipped(spans: Spans, since: int | None, until: int | None) -> Spans:
    """The parts of spans in a period; an end is not after its start where there is none."""
    low = None if since is None else np.int64(since)
    high = None if until is None else np.int64(until)
    found: Spans = spans if low is None and high is None else np.clip(spans, low, high)
    return found


def covered(spans: Spans, times: Ints) -> Ints:
    """How much of merged spans lies before each of some times, ns."""
    if not len(spans):
        return np.zeros(len(times), dtype=np.int64)
    before = np.append(0, np.cumsum(spans[:, 1] - spans[:, 0]))
    place = np.searchsorted(spans[:, 0], times, side="right")
    last = np.maximum(place - 1, 0)
    beyond = np.maximum(spans[last, 1] - np.maximum(times, spans[last, 0]), 0)
    found: Ints = np.where(place > 0, before[place] - beyond, 0)
    return found


def within(spans: Spans, starts: Ints, ends: Ints) -> Ints:
    """How much of merged spans lies in each of some other spans, ns."""
    found: Ints = np.maximum(covered(spans, ends) - covered(spans, starts), 0)
    return found


def holds(
    spans: Spans, times: Ints, slack_ns: int = 0, until: Ints | None = None
) -> npt.NDArray[np.bool_]:
    """Whether each of some times is in one of some merged spans, or no farther from it.

    Without slack the end of a span is not in it. With `until`, the last instant of each, whether
    any of it may be.
    """
    if not len(spans):
        return np.zeros(len(times), dtype=np.bool_)
    place = np.searchsorted(
        spans[:, 0], (times if until is None else until) + slack_ns, side="right"
    )
    ends = spans[np.maximum(place - 1, 0), 1]
    is_before = times <= ends + slack_ns if slack_ns else times < ends
    found: npt.NDArray[np.bool_] = (place > 0) & is_before
    return found
