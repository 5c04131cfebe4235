"""Whether a series may stop, by a rule that was written down before it began."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import Alternative, check_choice, check_share, verdicts, whole
from robo_eval.stats.arrays import floats
from robo_eval.stats.sequential import log_rate_e

Compared = Literal["pairs", "rate"]
"""Two sides in pairs, or one rate with a number."""
Verdict = Literal["greater", "less", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When a series of episodes ends. State it before the first one.

    Attributes:
        what: `"pairs"`: whether the first side succeeds more often than the second;
            `"rate"`: whether a success rate is above `rate`.
        max_n: Pairs, or episodes, at most.
        side: `"two"` decides either way, `"greater"` only that the first side, or the rate, is
            greater, `"less"` only that it is less. One side needs fewer episodes.
        alpha: Chance, at most, of a decision where there is no difference.
        rate: The rate compared with; 0.5 for pairs.
        hopeless: Also stop once no outcome of the remaining episodes could decide.
    """

    what: Compared
    max_n: int
    side: Alternative = "two"
    alpha: float = 0.05
    rate: float = 0.5
    hopeless: bool = True

    def __post_init__(self) -> None:
        check_choice("what", self.what, Compared)
        check_choice("side", self.side, Alternative)
        whole("max_n", self.max_n, least=1)
        check_share("alpha", self.alpha)
        check_share("rate", self.rate)
        if self.what == "pairs" and self.rate != 0.5:
            raise ValueError(f"rate must be 0.5 for pairs, given {self.rate}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StopDecision:
    """What a rule says about the outcomes so far.

    Attributes:
        stop: Whether the series ends.
        verdict: What was decided; `"undecided"` if it ended without; None while it goes on.
        reason: Why, for a person.
        n: Pairs, or episodes, looked at: none after the one that ended the series.
        e: Evidence after the last of them, infinite where too large for a float.
        p: p value that holds at any time.
    """

    stop: bool
    verdict: Verdict | None
    reason: str
    n: int
    e: float
    p: float


def stop_decision(rule: StoppingRule, outcomes: ArrayLike) -> StopDecision:
    """Say whether the series stops, and why.

    What came after the outcome that ended the series is not looked at, so asking late gives the
    answer that asking every time would have given.

    Args:
        rule: The rule, stated before the series began.
        outcomes: 0 or 1 in the order in which they came: shape (n, 2), first and second side, for
            pairs; shape (n,) for a rate. May be empty. Leave out pairs without both verdicts.

    Raises:
        ValueError: If an outcome is not 0 or 1, or the shape is not that of the rule.

    Example:
        >>> rule = StoppingRule(what="pairs", max_n=100)
        >>> print(stop_decision(rule, [(1, 0)] * 7).reason)
        7 of at most 100 pairs: evidence 16 of 20 needed
        >>> print(stop_decision(rule, [(1, 0)] * 9).reason)
        decided after 8 pairs: evidence 28.4 of 20 needed
    """
    k, n, used = _counts(rule, outcomes)
    unit = "pairs" if rule.what == "pairs" else "episodes"
    needed = 1.0 / rule.alpha
    log_e = log_rate_e(k, n, rule.rate, rule.side)
    reached = log_e >= -math.log(rule.alpha)
    ended = reached | (used >= rule.max_n)
    if rule.hopeless:
        ended |= _is_hopeless(rule, k, n, rule.max_n - used)
    at = int(np.argmax(ended)) if ended.any() else len(used) - 1
    with np.errstate(over="ignore"):
        e = float(np.exp(log_e[at]))
    p = min(1.0, math.exp(-float(log_e[: at + 1].max())))
    looked = int(used[at])
    seen = f"evidence {e:.3g} of {needed:.3g} needed"
    verdict: Verdict | None = None
    if reached[at]:
        above = rule.side == "greater" or (rule.side == "two" and k[at] > rule.rate * n[at])
        verdict = "greater" if above else "less"
        reason = f"decided after {looked} {unit}: {seen}"
    elif looked >= rule.max_n:
        verdict = "undecided"
        reason = f"undecided after all {looked} {unit}: {seen}"
    elif ended[at]:
        verdict = "undecided"
        reason = f"undecided after {looked} {unit}: the other {rule.max_n - looked} cannot decide"
    else:
        reason = f"{looked} of at most {rule.max_n} {unit}: {seen}"
    return StopDecision(
        stop=verdict is not None, verdict=verdict, reason=reason, n=looked, e=e, p=p
    )


def _is_hopeless(
    rule: StoppingRule,
    k: NDArray[np.float64],
    n: NDArray[np.float64],
    left: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Whether no outcome of what is left could decide, given k wins of n that count.

    The log of the evidence is convex in the two counts. Where it falls short at the three corners
    of what may come (all one way, all the other, nothing that counts), it falls short everywhere.
    """
    left = np.maximum(left, 0.0)
    corners = ((k, n), (k + left, n + left), (k, n + left))
    best = np.max([log_rate_e(*corner, rule.rate, rule.side) for corner in corners], axis=0)
    return np.asarray(best < -math.log(rule.alpha))


def _counts(
    rule: StoppingRule, outcomes: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Wins, what counts, and what was played, before the first outcome and after each."""
    x = floats("outcomes", outcomes)
    if x.size == 0:
        x = x.reshape((0, 2) if rule.what == "pairs" else (0,))
    if rule.what == "rate":
        wins = verdicts("outcomes", x)
        counts = np.ones(len(wins))
    else:
        if x.ndim != 2 or x.shape[1] != 2:
            raise ValueError(f"outcomes of pairs must have shape (n, 2), given {x.shape}")
        first, second = verdicts("outcomes", x[:, 0]), verdicts("outcomes", x[:, 1])
        wins, counts = first * (1.0 - second), np.abs(first - second)
    k, n, used = (
        np.concatenate([[0.0], np.cumsum(values)]) for values in (wins, counts, np.ones(len(wins)))
    )
    return k, n, used


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialPower:
    """What to expect of a rule, computed exactly.

    Attributes:
        greater: Chance that it decides "greater".
        less: Chance that it decides "less".
        mean_n: Pairs, or episodes, used on average.
    """

    greater: float
    less: float
    mean_n: float


def sequential_power(rule: StoppingRule, win: float, loss: float | None = None) -> SequentialPower:
    """Chance that a rule decides, and how soon, by adding up all series.

    Args:
        rule: The rule; memory grows with the square of `max_n`, time with its cube (0.1 s for 100).
        win: Chance of a success; for pairs, that only the first side succeeds.
        loss: For pairs, the chance that only the second side does; for a rate 1 - `win`.

    Raises:
        ValueError: If the chances are not between 0 and 1, or add up to more than 1.

    Example:
        >>> rule = StoppingRule(what="pairs", max_n=100, side="greater")
        >>> found = sequential_power(rule, 0.3, 0.1)
        >>> print(f"{found.greater:.2f}")
        0.78
    """
    if loss is None:
        loss = 1.0 - win
        if rule.what == "pairs":
            raise ValueError("loss is missing; pairs need the chances of both")
    if not (win >= 0.0 and loss >= 0.0 and win + loss <= 1.0 + 1e-12):
        raise ValueError(f"win and loss must be chances that add up to 1 at most: {win}, {loss}")
    tie = max(0.0, 1.0 - win - loss)
    wins, losses = np.meshgrid(*[np.arange(rule.max_n + 1.0)] * 2, indexing="ij")
    log_e = log_rate_e(wins, wins + losses, rule.rate, rule.side)
    threshold = -math.log(rule.alpha)
    above = (rule.side == "greater") | (wins > rule.rate * (wins + losses)) & (rule.side == "two")
    chance = np.ones((1, 1))
    if rule.hopeless and max(log_e[0, -1], log_e[-1, 0]) < threshold:
        chance[:] = 0.0
    greater = less = mean_n = 0.0
    for played in range(1, rule.max_n + 1):
        mean_n += float(chance.sum())
        seen = slice(played + 1)
        moved = np.zeros((played + 1, played + 1))
        moved[:-1, :-1] += tie * chance
        moved[1:, :-1] += win * chance
        moved[:-1, 1:] += loss * chance
        ended = log_e[seen, seen] >= threshold
        greater += float(moved[ended & above[seen, seen]].sum())
        less += float(moved[ended & ~above[seen, seen]].sum())
        if rule.hopeless:
            left = slice(rule.max_n - played, None)
            best = np.maximum(log_e[left, seen], log_e[seen, left])
            ended |= np.maximum(best, log_e[seen, seen]) < threshold
        chance = np.where(ended, 0.0, moved)
    return SequentialPower(greater=greater, less=less, mean_n=mean_n)
