"""Sums and differences of times, each a list of spans (start, end) in ns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""Start and end, ns; what has no length is no span."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """The union of some spans: in order, and none touches the next.

    Example:
        >>> merged([(4, 6), (0, 2), (5, 9), (2, 3)])
        [(0, 3), (4, 9)]
    """
    found: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def without(spans: Sequence[Span], taken: Sequence[Span]) -> list[Span]:
    """What is left of some spans.

    Args:
        spans: The spans, as `merged` returns them.
        taken: What is taken away, as `merged` returns it.

    Example:
        >>> without([(0, 10)], [(2, 3), (5, 20)])
        [(0, 2), (3, 5)]
    """
    left: list[Span] = []
    for start, end in spans:
        first = max(bisect_right(taken, start, key=lambda span: span[0]) - 1, 0)
        for begin, finish in taken[first:]:
            if begin >= end:
                break
            if begin > start:
                left.append((start, begin))
            start = max(start, finish)
        if start < end:
            left.append((start, end))
    return left


def clipped(span: Span, since: int | None, until: int | None) -> Span:
    """The part of a span in a period; its end is not after its start if there is none."""
    start, end = span
    return (
        start if since is None else max(start, since),
        end if until is None else min(end, until),
    )


def length(spans: Iterable[Span]) -> int:
    """How long some spans are together, ns; they must not overlap."""
    return sum(end - start for start, end in spans)


def holds(spans: Sequence[Span], time_ns: int, slack_ns: int = 0) -> bool:
    """Whether a time is in one of some spans.

    Args:
        spans: The spans, as `merged` returns them.
        time_ns: The time.
        slack_ns: How far outside it may be.
    """
    place = bisect_right(spans, time_ns + slack_ns, key=lambda span: span[0])
    return place > 0 and time_ns <= spans[place - 1][1] + slack_ns
