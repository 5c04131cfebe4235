"""How many episodes, pairs or hours a question needs, before the first one is played."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from robo_eval.stats._checks import Alternative, check_choice, check_level, check_share, whole
from robo_eval.stats.proportions import clopper_pearson_interval
from robo_eval.stats.rates import garwood_interval
from robo_eval.stats.unconditional import deciding_wins

MOST: Final = 1_000_000
"""Episodes or pairs beyond which a plan is refused: no one plays them."""
PairTest = Literal["mcnemar", "pairs"]
"""An exact test of pairs."""
_BLOCK: Final = 1024


def episodes_for_width(rate: float, width: float, *, level: float = 0.95) -> int:
    """Episodes after which the Clopper-Pearson interval is at most so wide.

    Args:
        rate: Success rate expected; 0.5 is the worst.
        width: Upper less lower end wanted, in (0, 1).
        level: Coverage of the interval.

    Returns:
        The least n for which round(rate * n) successes have such an interval. Counts are whole, so
        a few more episodes can have a slightly wider one.

    Raises:
        ValueError: If an argument is out of range, or a million episodes are too few.

    Example:
        >>> episodes_for_width(0.5, 0.2), episodes_for_width(0.9, 0.2)
        (104, 42)
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"rate must be between 0 and 1, given {rate}")
    check_share("width", width)
    # An exact interval is never much narrower than the normal one: begin at a quarter of what
    # that one would need.
    normal = (2.0 * NormalDist().inv_cdf(0.5 + level / 2.0) / width) ** 2 * rate * (1.0 - rate)
    for start in range(max(1, int(normal / 4.0)), MOST + 1, _BLOCK):
        n = np.arange(start, start + _BLOCK)
        low, high = clopper_pearson_interval(np.round(rate * n), n, level=level)
        narrow = high - low <= width
        if narrow.any():
            return int(n[narrow][0])
    raise ValueError(f"width {width} needs more than {MOST} episodes")


def seeds_needed(independent: int, repeats: int, *, alike: float = 1.0) -> int:
    """Seeds to play where several episodes share each, in place of so many independent episodes.

    Args:
        independent: Independent episodes, or pairs, that are needed.
        repeats: Episodes, or pairs, that share a seed.
        alike: Correlation of outcomes under one seed, in [0, 1]: 1 where they all end alike and a
            seed is worth one episode, 0 where each is worth its own.

    Raises:
        ValueError: If an argument is out of range.

    References:
        Kish (1965), Survey Sampling, section 5.4 (design effect).

    Example:
        >>> seeds_needed(104, 5), seeds_needed(104, 5, alike=0.5), seeds_needed(104, 5, alike=0.0)
        (104, 63, 21)
    """
    whole("independent", independent, least=1)
    whole("repeats", repeats, least=1)
    if not 0.0 <= alike <= 1.0:
        raise ValueError(f"alike must be between 0 and 1, given {alike}")
    return math.ceil(independent * (1.0 + (repeats - 1) * alike) / repeats - 1e-9)


def failure_free_episodes(rate: float, *, level: float = 0.95) -> int:
    """Episodes without a failure that show that the success rate is at least `rate`.

    Raises:
        ValueError: If an argument is not between 0 and 1.

    Example:
        >>> failure_free_episodes(0.95)
        59
    """
    check_share("rate", rate)
    check_level(level)
    # One less to begin with: the quotient may be rounded up past a whole number.
    n = max(1, math.ceil(math.log1p(-level) / math.log(rate)) - 1)
    while rate**n > (1.0 - level) * (1.0 + 1e-12):
        n += 1
    return n


def exposure_for_rate(rate: float, *, events: int = 0, level: float = 0.95) -> float:
    """Exposure, with so many events in it, that shows that the rate of events is below `rate`.

    Args:
        rate: Events per unit of exposure to stay below, above 0.
        events: Events allowed to happen.
        level: Coverage of the one-sided upper bound.

    Returns:
        Exposure in the unit of `rate`.

    Raises:
        ValueError: If the rate is not above 0 or the count not whole.

    References:
        Garwood (1936), Biometrika 28:437-442, solved for the exposure.

    Example:
        >>> print(f"{exposure_for_rate(0.01):.1f} {exposure_for_rate(0.01, events=1):.1f}")
        299.6 474.4
    """
    if not (math.isfinite(rate) and rate > 0.0):
        raise ValueError(f"rate must be above 0 and finite, given {rate}")
    return garwood_interval(events, 1.0, level=level, sided="upper")[1] / rate


def mcnemar_power(
    n: int, win: float, loss: float, *, alpha: float = 0.05, alternative: Alternative = "two"
) -> float:
    """Chance that the exact McNemar test of n pairs gets to `alpha`, discordant pairs as they fall.

    Args:
        n: Pairs.
        win: Chance that only the first side succeeds.
        loss: Chance that only the second does.
        alpha: Largest p value that decides.
        alternative: As `paired.mcnemar_p`.

    Raises:
        ValueError: If the chances are negative or add up to more than 1.

    References:
        Duffy (1984), Biometrics 40:1005-1015.

    Example:
        >>> print(f"{mcnemar_power(61, 0.25, 0.05):.3f}")
        0.805
    """
    whole("n", n, least=1)
    discordant = _discordance(win, loss)
    check_share("alpha", alpha)
    check_choice("alternative", alternative, Alternative)
    if discordant == 0.0:
        return 0.0
    return _McNemar(win, loss, alpha, alternative).power(n)


def pairs_for_power(
    win: float,
    loss: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two",
) -> int:
    """Pairs with which the exact McNemar test finds a difference.

    Args:
        win: Chance that only the first side succeeds.
        loss: Chance that only the second does; `win` - `loss` is the difference of the rates. If
            both sides fail independently, pairing gains nothing.
        power: Chance wanted that it is found.
        alpha: Largest p value that decides.
        alternative: As `paired.mcnemar_p`.

    Returns:
        The least number of pairs that has the power.

    Raises:
        ValueError: If the chances are equal or out of range, or a million pairs are too few.

    Example:
        >>> pairs_for_power(0.25, 0.05), pairs_for_power(0.15, 0.05)
        (61, 168)
    """
    discordant = _discordance(win, loss)
    check_share("power", power)
    check_share("alpha", alpha)
    check_choice("alternative", alternative, Alternative)
    difference = {"two": abs(win - loss), "greater": win - loss, "less": loss - win}[alternative]
    if difference <= 0.0:
        raise ValueError(f"there is no difference to find, given {win} and {loss}")
    test = _McNemar(win, loss, alpha, alternative)
    # The exact test needs more than the normal one: begin at half of what that one would need.
    spread = alpha / 2.0 if alternative == "two" else alpha
    z = NormalDist().inv_cdf(1.0 - spread) * math.sqrt(discordant)
    z += NormalDist().inv_cdf(power) * math.sqrt(max(discordant - difference**2, 0.0))
    n = max(1, int((z / difference) ** 2 / 2.0))
    while n <= MOST:
        if test.power(n) >= power:
            return n
        n += 1
    raise ValueError(f"a difference of {difference:g} needs more than {MOST} pairs")


def minimum_detectable_difference(
    n: int,
    discordant: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    alternative: Alternative = "two",
    test: PairTest = "mcnemar",
) -> float | None:
    """The least difference of two rates that n pairs find with the given power.

    Args:
        n: Pairs.
        discordant: Share of pairs that end differently, in (0, 1].
        power: Chance wanted that it is found.
        alpha: Largest p value that decides.
        alternative: `"two"`, or one side; the difference is given as a positive number.
        test: `"mcnemar"`, the exact test given the number of discordant pairs, or `"pairs"`, that
            of `unconditional.pairs_p`.

    Returns:
        The difference, at most `discordant`; None if even that would not be found.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> print(f"{minimum_detectable_difference(61, 0.3):.3f}")
        0.199
        >>> minimum_detectable_difference(10, 0.3)
    """
    whole("n", n, least=1)
    check_share("power", power)
    check_share("alpha", alpha)
    check_choice("alternative", alternative, Alternative)
    if not 0.0 < discordant <= 1.0:
        raise ValueError(f"discordant must be above 0 and at most 1, given {discordant}")
    side: Alternative = "two" if alternative == "two" else "greater"
    check_choice("test", test, PairTest)
    own = _McNemar(discordant / 2.0, discordant / 2.0, alpha, side)
    if test == "pairs":
        own.critical = deciding_wins(n, alpha, alternative=side)

    def found(difference: float) -> bool:
        own.share = (discordant + difference) / (2.0 * discordant)
        return own.power(n) >= power

    if not found(discordant):
        return None
    missed, enough = 0.0, discordant
    for _ in range(50):
        middle = (missed + enough) / 2.0
        if found(middle):
            enough = middle
        else:
            missed = middle
    return enough


def episodes_per_arm(
    first: float, second: float, *, power: float = 0.8, alpha: float = 0.05
) -> int:
    """Episodes of each of two sides, not paired, with which a difference is found; approximate.

    Args:
        first: Success rate of one side.
        second: Success rate of the other.
        power: Chance wanted that the difference is found.
        alpha: Two-sided error probability.

    Returns:
        Episodes of each side, by the normal approximation on the arcsine scale.

    Raises:
        ValueError: If the rates are equal or an argument is out of range.

    References:
        Cohen (1988), Statistical Power Analysis for the Behavioral Sciences, chapter 6.

    Example:
        >>> episodes_per_arm(0.9, 0.7), episodes_per_arm(0.8, 0.7)
        (60, 292)
    """
    for name, rate in (("first", first), ("second", second)):
        if not 0.0 <= rate <= 1.0:
            raise ValueError(f"{name} must be between 0 and 1, given {rate}")
    check_share("power", power)
    check_share("alpha", alpha)
    if first == second:
        raise ValueError(f"there is no difference to find, given {first} and {second}")
    effect = 2.0 * abs(math.asin(math.sqrt(first)) - math.asin(math.sqrt(second)))
    z = NormalDist().inv_cdf(1.0 - alpha / 2.0) + NormalDist().inv_cdf(power)
    return max(2, math.ceil(2.0 * (z / effect) ** 2))


class _McNemar:
    """Power of the exact test; what it does with d discordant pairs is the same for every n."""

    def __init__(self, win: float, loss: float, alpha: float, alternative: Alternative) -> None:
        self.discordant = win + loss
        self.share = (loss if alternative == "less" else win) / self.discordant
        self.two = alternative == "two"
        self.tail = alpha / 2.0 if self.two else alpha
        self.critical = np.zeros(0)

    def power(self, n: int) -> float:
        from scipy.special import betainc, betaln, xlog1py, xlogy

        # Beyond eight standard deviations nothing is left.
        centre, spread = n * self.discordant, math.sqrt(n * self.discordant)
        first = max(1, math.floor(centre - 8.0 * spread - 8.0))
        d = np.arange(first, min(n, math.ceil(centre + 8.0 * spread + 8.0)) + 1.0)
        ways = -betaln(d + 1.0, n - d + 1.0) - math.log(n + 1.0)
        chance = np.exp(
            ways + xlogy(d, self.discordant) + xlog1py(n - d, -min(self.discordant, 1.0))
        )
        wins = self._critical(int(d[-1]))[d.astype(np.intp)]
        reached = wins <= d
        within = np.where(reached, d - wins + 1.0, 1.0)
        rejects = betainc(wins, within, self.share)
        if self.two:
            rejects = rejects + betainc(wins, within, 1.0 - self.share)
        return float((chance * np.where(reached, rejects, 0.0)).sum())

    def _critical(self, most: int) -> NDArray[np.float64]:
        """Wins from which d discordant pairs decide, above d where none does, d = 0 ... most."""
        from scipy.special import betainc, ndtri

        if len(self.critical) <= most:
            d = np.arange(max(2 * most, 64) + 1.0)
            # Start below and go up: the normal tail is a few wins off at most.
            wins = np.floor(d / 2.0 - ndtri(self.tail) * np.sqrt(d) / 2.0 - 3.0)
            wins = np.maximum(wins, 1.0)
            while True:
                chance = np.where(
                    wins <= d, betainc(wins, np.maximum(d - wins + 1.0, 1.0), 0.5), 0.0
                )
                short = chance > self.tail
                if not short.any():
                    break
                wins = wins + short
            self.critical = wins
        return self.critical


def _discordance(win: float, loss: float) -> float:
    if not (win >= 0.0 and loss >= 0.0 and win + loss <= 1.0 + 1e-12):
        raise ValueError(f"win and loss must be chances that add up to 1 at most: {win}, {loss}")
    return win + loss
