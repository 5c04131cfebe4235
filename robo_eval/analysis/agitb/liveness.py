"""The twelfth test: a model that grows old stays as fast as it was."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from robo_eval.analysis.agitb.axioms import Failure
from robo_eval.analysis.agitb.models import Watched
from robo_eval.analysis.agitb.streams import Streams, trivial_sequence

CHUNKS: Final = 100
"""Chunks of a stream; each of the first half is compared with one of the second."""
_TUNED_US: Final = 400
"""How long a chunk takes a fresh model."""


class NoisyError(Exception):
    """A model is too fast for its time to be measured."""

    verdict = "inconclusive"


def liveness(kind: Watched, draw: Streams) -> Failure | None:
    """A stream takes a model that has seen much no longer than one that has seen little.

    While others have its processor no time counts. What fails is measured again, twice: a busy
    machine is slow once, a slow model each time.

    Raises:
        NoisyError: If even the longest chunk takes the model too little time.
    """
    length = _tuned(kind, draw)
    for name, stream in _streams(kind, draw):
        for tried in (1, 2, 3):
            times = _times_us(kind, name, stream(length))
            while median(times) < 200:
                # It became faster with age: what it is compared by takes longer chunks.
                length = _longer(length)
                times = _times_us(kind, name, stream(length))
            found = _slower(name, times)
            if found is None or tried == 3:
                break
        if found is not None:
            return found
    return None


def _longer(length: int) -> int:
    if length >= 1 << 20:
        raise NoisyError(f"even {length:,} inputs take the model less than {_TUNED_US} µs")
    return 2 * length


def _tuned(kind: Watched, draw: Streams) -> int:
    """Inputs of a chunk, so that a fresh model takes long enough to be measured."""
    length = 2
    while True:
        chunk = kind.ready(draw.random(length))
        times = [_time_us(kind, kind.fresh(), chunk) for _ in range(11)]
        if median(times) >= _TUNED_US:
            return length
        length = _longer(length)


def _streams(kind: Watched, draw: Streams) -> Iterator[tuple[str, Callable[[int], Iterable[Any]]]]:
    """Streams by name, each as chunks of a length."""
    # One after the other: all chunks of a fast model together would take gigabytes.
    yield "random inputs", lambda length: (kind.ready(draw.random(length)) for _ in range(CHUNKS))
    yield "nearly nothing", lambda length: [kind.ready(trivial_sequence(length))] * CHUNKS
    for _ in range(10):
        period = int(draw.rng.integers(2, 29))
        motif = draw.circular(period)
        yield f"a motif of {period} inputs", partial(_repeated, kind, motif)


def _repeated(kind: Watched, motif: Sequence[int], length: int) -> list[Any]:
    chunk = (list(motif) * (length // len(motif) + 1))[:length]
    chunk[-1] &= ~chunk[0]
    return [kind.ready(chunk)] * CHUNKS


def _times_us(kind: Watched, name: str, chunks: Iterable[Any]) -> list[int]:
    held = kind.fresh()
    found = kind.seen.times_us[name] = [_time_us(kind, held, chunk) for chunk in chunks]
    return found


def _time_us(kind: Watched, held: Any, ready: Any) -> int:
    waited = _waited_ns()
    started = time.perf_counter_ns()
    kind.feed(held, ready)
    return max(0, time.perf_counter_ns() - started - (_waited_ns() - waited)) // 1_000


def _waited_ns() -> int:
    """How long this thread has waited for a processor that others had; 0 where no system says."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, IndexError):
        return 0


def _slower(name: str, times: Sequence[int]) -> Failure | None:
    """What a stream's times show of growing old by the reference's limits; None if nothing."""
    ordered, half = sorted(times), CHUNKS // 2
    middle = (ordered[half - 1] + ordered[half]) // 2
    late = ordered[math.floor(0.95 * (CHUNKS - 1))]
    early = [math.floor(one * 1.25) for one in times[:half]]
    checks = (
        ("12-ceiling", ordered[-1] > 200_000, f"a chunk took {ordered[-1]:,} µs"),
        ("12-growth", growth(early, times[half:]) > 3.090,
         "later chunks took longer than those at the beginning"),
        ("12-tail", late > 4 * max(middle, 1),
         f"one chunk in twenty took {late:,} µs and more, the median is {middle:,} µs"),
    )  # fmt: skip
    for clause, is_so, what in checks:
        if is_so:
            return Failure(clause, f"fed {name}, {what}")
    return None


def growth(before: Sequence[int], after: Sequence[int]) -> float:
    """Wilcoxon's signed-rank z of whether the second of each pair is larger; 0 if few differ.

    With mean ranks for ties, and a correction for continuity where the sum of ranks is above its
    mean.

    Example:
        >>> growth([1] * 20, [1] * 20), round(growth(list(range(20)), list(range(5, 25))), 2)
        (0.0, 4.45)
    """
    from scipy.stats import wilcoxon

    differences = np.subtract(after, before)
    differences = differences[differences != 0]
    if len(differences) < 10:
        return 0.0
    test: Any = partial(wilcoxon, differences, alternative="greater", method="approx")
    z = float(test().zstatistic)
    return float(test(correction=True).zstatistic) if z > 0.0 else z
