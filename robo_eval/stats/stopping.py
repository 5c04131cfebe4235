"""Whether a series may stop, by a rule that was written down before it began."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.stats._checks import Alternative, check_choice, check_share, verdicts, whole
from robo_eval.stats.arrays import floats
from robo_eval.stats.sequential import log_rate_e

Compared = Literal["pairs", "rate"]
"""Two sides in pairs, or one rate with a number."""
Verdict = Literal["greater", "less", "undecided"]
_MOST_BETS: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When a series of episodes ends. State it before the first one.

    Attributes:
        what: `"pairs"`: whether the first side does better on average than the second;
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
        outcomes: In the order in which they came. For pairs shape (n, 2), from 0 to 1, first and
            second side: successes, or the mean of what belongs together, such as all episodes of
            a seed. For a rate shape (n,), 0 or 1. May be empty. Leave out pairs without both.

    Raises:
        ValueError: If an outcome is not as described, or the shape is not that of the rule.

    References:
        Waudby-Smith and Ramdas (2024), JRSS B 86:1-27 (betting on a bounded mean).

    Example:
        >>> rule = StoppingRule(what="pairs", max_n=100)
        >>> print(stop_decision(rule, [(1, 0)] * 7).reason)
        7 of at most 100 pairs: evidence 16 of 20 needed
        >>> print(stop_decision(rule, [(1, 0)] * 9).reason)
        decided after 8 pairs: evidence 28.4 of 20 needed
    """
    seen = _Bets(rule, outcomes) if rule.what == "pairs" else _Counts(rule, outcomes)
    used = np.arange(len(seen.log_e), dtype=np.float64)
    unit = "pairs" if rule.what == "pairs" else "episodes"
    needed = 1.0 / rule.alpha
    log_e = seen.log_e
    reached = log_e >= -math.log(rule.alpha)
    ended = reached | (used >= rule.max_n)
    if rule.hopeless:
        left = np.maximum(rule.max_n - used, 0.0)
        ended |= seen.most(left) < -math.log(rule.alpha)
    at = int(np.argmax(ended)) if ended.any() else len(used) - 1
    with np.errstate(over="ignore"):
        e = float(np.exp(log_e[at]))
    p = min(1.0, math.exp(-float(log_e[: at + 1].max())))
    looked = int(used[at])
    had = f"evidence {e:.3g} of {needed:.3g} needed"
    verdict: Verdict | None = None
    if reached[at]:
        above = rule.side == "greater" or (rule.side == "two" and seen.lead[at] > 0.0)
        verdict = "greater" if above else "less"
        reason = f"decided after {looked} {unit}: {had}"
    elif looked >= rule.max_n:
        verdict = "undecided"
        reason = f"undecided after all {looked} {unit}: {had}"
    elif ended[at]:
        verdict = "undecided"
        reason = f"undecided after {looked} {unit}: the other {rule.max_n - looked} cannot decide"
    else:
        reason = f"{looked} of at most {rule.max_n} {unit}: {had}"
    return StopDecision(
        stop=verdict is not None, verdict=verdict, reason=reason, n=looked, e=e, p=p
    )


class _Counts:
    """Evidence on one rate: before the first outcome and after each, shape (n + 1,).

    Attributes:
        log_e: Log of the evidence.
        lead: Successes beyond those of the rate compared with.
    """

    def __init__(self, rule: StoppingRule, outcomes: ArrayLike) -> None:
        x = floats("outcomes", outcomes)
        wins = verdicts("outcomes", x.reshape(0) if x.size == 0 else x)
        self._rule = rule
        self._k = np.concatenate([[0.0], np.cumsum(wins)])
        self._n = np.arange(len(wins) + 1.0)
        self.log_e = log_rate_e(self._k, self._n, rule.rate, rule.side)
        self.lead = self._k - rule.rate * self._n

    def most(self, left: NDArray[np.float64]) -> NDArray[np.float64]:
        """The most that so many outcomes more could bring.

        The log of the evidence is convex in the two counts. Where it falls short at the three
        corners of what may come (all one way, all the other, nothing), it does so everywhere.
        """
        k, n, rule = self._k, self._n, self._rule
        corners = ((k, n), (k + left, n + left), (k, n + left))
        found = [log_rate_e(wins, played, rule.rate, rule.side) for wins, played in corners]
        return np.asarray(np.max(found, axis=0))


class _Bets:
    """Evidence on the mean difference of pairs, in the form of `_Counts`.

    Whoever bets a share of what they have on each difference has, if the mean is 0, no more on
    average than at the start, whatever the share and whenever they stop. The evidence is what all
    shares alike come to: of outcomes of 0 and 1 that of `paired_e_value`.
    """

    def __init__(self, rule: StoppingRule, outcomes: ArrayLike) -> None:
        x = floats("outcomes", outcomes)
        x = x.reshape((0, 2)) if x.size == 0 else x
        if x.ndim != 2 or x.shape[1] != 2:
            raise ValueError(f"outcomes of pairs must have shape (n, 2), given {x.shape}")
        bad = ~((x >= 0.0) & (x <= 1.0))
        if bad.any():
            raise ValueError(
                f"outcomes must be from 0 to 1, given {x[bad][0]}; leave missing ones out"
            )
        difference = x[:, 0] - x[:, 1]
        self._bets, self._log_weights = _bets(min(rule.max_n // 2 + 1, _MOST_BETS), rule.side)
        gains = np.cumsum(np.log1p(difference[:, None] * self._bets), axis=0)
        self._gains = np.concatenate([np.zeros((1, len(self._bets))), gains])
        self.log_e = self._total(self._gains)
        self.lead = np.concatenate([[0.0], np.cumsum(difference)])

    def most(self, left: NDArray[np.float64]) -> NDArray[np.float64]:
        """The most that so many pairs more could bring; convex as that of counts."""
        ways = (0.0, 1.0, -1.0)
        found = [
            self._total(self._gains + left[:, None] * np.log1p(way * self._bets)) for way in ways
        ]
        return np.asarray(np.max(found, axis=0))

    def _total(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = gains + self._log_weights
        highest = logs.max(axis=1)
        return np.asarray(highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1)))


@cache
def _bets(number: int, side: Alternative) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Shares that are bet and the logs of their weights, which integrate over all shares alike.

    So many points integrate exactly what twice as many pairs can come to.
    """
    points, weights = np.polynomial.legendre.leggauss(number)
    if side == "greater":
        points = (1.0 + points) / 2.0
    elif side == "less":
        points = -(1.0 + points) / 2.0
    return points, np.log(weights / 2.0)


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
