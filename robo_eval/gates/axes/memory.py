"""The memory axis: how long a policy remembers, and how much it finds on request."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.defaults import LEVEL
from robo_eval.core.estimate import Estimate
from robo_eval.formulas.composite import AXES
from robo_eval.gates.axes.draws import (
    JEFFREYS,
    Resampled,
    estimate_of_first,
    jeffreys_draws,
    share_and_draws,
)

if TYPE_CHECKING:
    from robo_eval.gates.axes.settings import AxisSettings
    from robo_eval.log.evidence import Retention, Retrieval

Array = NDArray[np.float64]

_RATIO: Final = "ratio"
_DAYS: Final = "days"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Memory of one kind of thing: each number and then draws of it, shape (1 + resamples,).

    Attributes:
        rate: Decay per day; infinite where nothing at all was recalled.
        recall: Share of what was asked for that was found.
        trials: Trials the rate rests on.
        asked: Items the recall rests on.
    """

    rate: Array
    recall: Array
    trials: int
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholeMemory:
    """The median over families, or one family, with its draws as in `_Family`."""

    half_life: Array
    retention: Array
    recall: Array
    memory: Array
    trials: int
    asked: int


def memory_measured(
    retention: Sequence[Retention] | None,
    retrieval: Sequence[Retrieval] | None,
    settings: AxisSettings,
    *,
    level: float = LEVEL,
    resamples: int = 2000,
    seed: int = 0,
) -> Resampled:
    """Memory: the median over families of sqrt(retention * recall).

    The decay rate of a family is fitted through the origin to ln r over days, weighted by trials.
    Times at which nothing was recalled have no logarithm. Leaving them out would make a policy look
    better for having forgotten all, so they count as half a recall in one trial more than there
    were; a family that recalled nothing at any time has a half-life of 0. Both are this project's
    choice. Draws are from the Jeffreys posteriors of all shares.

    Args:
        retention: What was still known after days; None where there is no such file.
        retrieval: What was found on request; None where there is no such file.
        settings: Half-life that counts one half, and K.
        level: Coverage of the intervals.
        resamples: Draws.
        seed: Seed of the draws.

    Returns:
        The axis, with `half_life_days`, `retention` and `recall@K` as its parts, over all families
        and, with several, of each.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    k = settings.recall_k
    absent = _absent(retention, retrieval, k)
    if absent or retention is None or retrieval is None:
        return _missing(absent)
    kept: dict[str, list[Retention]] = defaultdict(list)
    for one in retention:
        if one.trials and one.lag_days > 0.0:
            kept[one.family].append(one)
    asked: dict[str, tuple[int, int]] = {}
    for line in retrieval:
        if line.relevant and line.k == k:
            found, relevant = asked.get(line.family, (0, 0))
            asked[line.family] = (found + line.found, relevant + line.relevant)
    names = sorted(kept.keys() & asked.keys())
    if not names:
        return _missing(
            "no family has both a line in retention.csv with lag_days and trials above 0, and one"
            f" in retrieval.csv with k {k} and relevant items"
        )
    rng = np.random.default_rng([seed, AXES.index("M")])
    families = {name: _family(kept[name], asked[name], resamples, rng) for name in names}
    notes = [
        *_unread(retention, retrieval, k),
        *_forgotten({name: kept[name] for name in names}),
        *_alone(sorted(kept.keys() ^ asked.keys())),
    ]
    each = {name: _whole([family], settings) for name, family in families.items()}
    whole = _whole(list(families.values()), settings)
    parts = _parts(whole, k, level)
    if len(each) > 1:
        for name, single in each.items():
            parts |= {f"{part} of {name}": own for part, own in _parts(single, k, level).items()}
    raw = estimate_of_first(whole.memory, n=whole.trials + whole.asked, level=level)
    return Resampled(raw=_noting(raw, notes), draws=whole.memory[1:], parts=parts)


# What is there and what is not -------------------------------------------------------------------


def _absent(
    retention: Sequence[Retention] | None, retrieval: Sequence[Retrieval] | None, k: int
) -> str:
    """What to do about files that are not there; empty if both are."""
    columns = f"family, k = {k}, queries, relevant, found, returned, verified"
    needed = (
        (retention, "retention.csv (family, lag_days, trials, recalled)"),
        (retrieval, f"retrieval.csv ({columns})"),
    )
    gone = [text for lines, text in needed if not lines]
    return f"no line of {' and none of '.join(gone)}; M needs both files" if gone else ""


def _missing(reason: str) -> Resampled:
    return Resampled(raw=Estimate.missing(reason=reason, unit=_RATIO, method=JEFFREYS))


def _unread(retention: Sequence[Retention], retrieval: Sequence[Retrieval], k: int) -> list[str]:
    other = sum(line.k != k for line in retrieval)
    now = sum(line.lag_days == 0.0 for line in retention)
    return [
        *([f"{other} lines of retrieval.csv with another k than {k} were not read"] * bool(other)),
        *([f"{now} lines of retention.csv at lag 0 say nothing about decay"] * bool(now)),
    ]


def _forgotten(kept: dict[str, list[Retention]]) -> list[str]:
    """How lines count in which nothing was recalled."""
    notes = []
    lost = [name for name, lines in kept.items() if not any(one.recalled for one in lines)]
    if lost:
        notes.append(f"{', '.join(lost)}: nothing was recalled at any time, half-life 0")
    some = sum(not one.recalled for name, own in kept.items() if name not in lost for one in own)
    if some:
        notes.append(f"{some} lines with nothing recalled count as half a recall")
    return notes


def _alone(families: list[str]) -> list[str]:
    if not families:
        return []
    return [f"left out, as only one of both files has them: {', '.join(families)}"]


def _noting(estimate: Estimate, notes: Sequence[str]) -> Estimate:
    return replace(estimate, reason="; ".join(notes) or None)


# Decay and recall --------------------------------------------------------------------------------


def decay_rate(lag_days: Array, share: Array, trials: Array) -> Array:
    """Decay per day of r = exp(-rate * lag), by weighted least squares on ln r through r(0) = 1.

    Args:
        lag_days: Days of each line, shape (n,), at least one above 0.
        share: Share recalled, shape (n,) or (n, B) for many fits at once; above 0 to have a
            logarithm, while a 0 makes the rate infinite.
        trials: Weight of each line, shape (n,).

    Returns:
        Shape () or (B,), at least 0.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    # In units of the longest lag: squares of very short ones would vanish.
    longest = float(lag_days.max())
    lag = lag_days / longest
    weight = trials * lag
    with np.errstate(divide="ignore"):
        loss = -np.log(share)
    rate = np.tensordot(weight, loss, axes=1) / (longest * float(weight @ lag))
    return np.asarray(np.maximum(rate, 0.0))


def _family(
    kept: Sequence[Retention], asked: tuple[int, int], resamples: int, rng: np.random.Generator
) -> _Family:
    lag = np.array([one.lag_days for one in kept])
    trials = np.array([float(one.trials) for one in kept])
    recalled = np.array([float(one.recalled) for one in kept])
    share = np.where(recalled > 0.0, recalled / trials, 0.5 / (trials + 1.0))
    drawn = np.stack([jeffreys_draws(one.recalled, one.trials, resamples, rng) for one in kept])
    found, relevant = asked
    rate = decay_rate(lag, share, trials) if recalled.any() else math.inf
    return _Family(
        rate=np.append(rate, decay_rate(lag, drawn, trials)),
        recall=share_and_draws(found, relevant, resamples, rng),
        trials=int(trials.sum()),
        asked=relevant,
    )


def _whole(families: Sequence[_Family], settings: AxisSettings) -> _WholeMemory:
    with np.errstate(divide="ignore"):
        lives = [math.log(2.0) / family.rate for family in families]
    scores = [
        formulas.memory(life, settings.half_life_days, family.recall)
        for life, family in zip(lives, families, strict=True)
    ]
    return _WholeMemory(
        half_life=_median(lives),
        retention=_median([score["retention"] for score in scores]),
        recall=_median([family.recall for family in families]),
        memory=_median([score["m"] for score in scores]),
        trials=sum(family.trials for family in families),
        asked=sum(family.asked for family in families),
    )


def _median(of_families: Sequence[object]) -> Array:
    return np.asarray(np.median(np.array(of_families, dtype=np.float64), axis=0))


def _parts(whole: _WholeMemory, k: int, level: float) -> dict[str, Estimate]:
    return {
        "half_life_days": _days(whole, level),
        "retention": estimate_of_first(whole.retention, n=whole.trials, level=level),
        f"recall@{k}": estimate_of_first(whole.recall, n=whole.asked, level=level),
    }


def _days(whole: _WholeMemory, level: float) -> Estimate:
    """The half-life; no value where it is infinite, and only a lower end then."""
    tail = (1.0 - level) / 2.0
    # Without interpolation, as the draws may be infinite.
    value, drawn = float(whole.half_life[0]), whole.half_life[1:]
    low = min(value, float(np.quantile(drawn, tail, method="lower")))
    high = max(value, float(np.quantile(drawn, 1.0 - tail, method="higher")))
    is_finite = math.isfinite(value)
    reason = None if math.isfinite(high) else "no upper end: the draws hold no decay at all"
    if not is_finite:
        reason = f"nothing was forgotten; the half-life is infinite, and at least {low:.3g} days"
    return Estimate(
        value=value if is_finite else None,
        low=low if math.isfinite(low) else None,
        high=high if math.isfinite(high) else None,
        level=level,
        n=whole.trials,
        method=JEFFREYS,
        unit=_DAYS,
        reason=reason,
    )
