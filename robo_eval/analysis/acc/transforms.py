"""Which difficulty axis results have that come without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robo_eval.analysis.acc.agent import Analysis, analyse
from robo_eval.analysis.acc.measures import Undefined
from robo_eval.analysis.arrays import as_numbers
from robo_eval.core.errors import InputError, ShapeError
from robo_eval.core.names import unknown_name
from robo_eval.stats.arrays import same_labels

Missing: TypeAlias = Literal["raise", "drop"] | float
"""What becomes of what is missing: refused, left out, or a number in its place."""
_REMEDY: Final = "give nan='drop' to leave it out, or a number that stands for it"
_SAME: Final = 1e-12
"""Distance at which a position on [0, 1] hits a difficulty, rounding apart."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transformed:
    """Results with a difficulty axis.

    Attributes:
        kind: How the axis was made, for people to read.
        response: Responses in [0, 1], shape (A, I).
        difficulty: Difficulty of each item, shape (I,).
        h0: Lower end of the axis; None means the lowest difficulty.
        q: Upper end of the axis; None means the highest difficulty.
        items: Columns of the original table the items stand for; empty if they do not.
        population: The table the axis was made from: most axes change when agents are added.
        positions: Where each item's falling step lies, shape (A, I), for Rnk and DRef; else None.
    """

    kind: str
    response: NDArray[np.float64]
    difficulty: NDArray[np.float64]
    h0: float | None
    q: float | None
    items: NDArray[np.intp]
    population: NDArray[np.float64]
    positions: NDArray[np.float64] | None = None

    def analyse(self, *, undefined: Undefined = "nan") -> Analysis:
        """The analysis of every agent on this axis, arrays of shape (A,).

        Responses that were left out with `nan="drop"` stay left out.
        """
        return analyse(
            self.response, self.difficulty, h0=self.h0, q=self.q, undefined=undefined, nan="drop"
        )


def transform(kind: str, scores: ArrayLike, **options: Any) -> Transformed:
    """Supply a difficulty axis by the named method.

    Args:
        kind: `"Opp"`, `"ARef"`, `"Rnk"`, `"DRef"` or `"IRT"` (a stand-in, labelled so).
        scores: Results, shape (A, I); higher is better.
            What is missing is NaN, None, pandas' NA, or masked.
        options: Keywords of `opponents`, `against_reference`, `ranks`, `reference_distribution`
            or `log_odds`.

    Raises:
        UnknownNameError: If there is no such method.
        InputError: If an option or a score will not do.

    Example:
        >>> transform("ARef", [[3, 5], [4, 5], [2, 9]], reference=0).difficulty.tolist()
        [0.5, 0.25]
    """
    methods: dict[str, Callable[..., Transformed]] = {
        "Opp": opponents,
        "ARef": against_reference,
        "Rnk": ranks,
        "DRef": reference_distribution,
        "IRT": log_odds,
    }
    by_lower = {name.lower(): method for name, method in methods.items()}
    if str(kind).lower() not in by_lower:
        raise unknown_name("transformation", kind, methods)
    try:
        return by_lower[kind.lower()](scores, **options)
    except TypeError as err:
        raise InputError(f"transformation {kind}: {err}") from err


@same_labels(error=InputError)
def opponents(matches: ArrayLike, *, nan: Missing = "raise") -> Transformed:
    """Opp: the strength of the opponent is the difficulty.

    Args:
        matches: Result of row against column, shape (A, A): 0, 0.5 or 1, and the two results of a
            game add up to 1; the diagonal is ignored and counts 0.5.
        nan: What a game without a result is: `"raise"` refuses it, `"drop"` leaves it out, a number
            stands for it. A game left out counts for its players as their mean over the others,
            the game of each against itself included.

    Returns:
        Items are the opponents at their total score, and two anchors: success at 0, failure at A.
    """
    results = as_numbers("matches", matches).copy()
    if results.ndim != 2 or results.shape[0] != results.shape[1] or len(results) < 2:
        raise ShapeError(f"matches has shape {results.shape}; it must be (A, A), A >= 2")
    n = len(results)
    np.fill_diagonal(results, 0.5)
    results = _filled(results, nan)
    missing = np.isnan(results)
    if missing.any() and nan == "raise":
        a, b = np.argwhere(missing)[0]
        raise InputError(f"match of {a} against {b} is nan; {_REMEDY}")
    bad = np.argwhere(~missing & ~np.isin(results, (0.0, 0.5, 1.0)))
    if bad.size:
        a, b = bad[0]
        raise InputError(f"match of {a} against {b} is {results[a, b]}; it must be 0, 0.5 or 1")
    bad = np.argwhere((missing != missing.T) | (~missing & ~missing.T & (results + results.T != 1)))
    if bad.size:
        a, b = bad[0]
        raise InputError(
            f"match of {a} against {b} is {results[a, b]}, and of {b} against {a}"
            f" {results[b, a]}; the two results of a game add up to 1"
        )
    # No total reaches 0 or n, since a player draws against itself, so no anchor meets a level.
    response = np.hstack([results, np.ones((n, 1)), np.zeros((n, 1))])
    return Transformed(
        kind="Opp: total score of the opponent",
        response=response,
        difficulty=np.concatenate([_totals(results), [0.0, float(n)]]),
        h0=0.0,
        q=float(n),
        items=np.arange(n),
        population=results,
    )


def against_reference(
    scores: ArrayLike, *, reference: int, higher_is_better: bool = True, nan: Missing = "raise"
) -> Transformed:
    """ARef: beating a reference agent is the success, its rarity the difficulty.

    Args:
        scores: Real scores, shape (A, I), A >= 2.
        reference: Row of the reference; its own response is 0.5 everywhere.
        higher_is_better: False for scores such as times.
        nan: What a missing score is: `"raise"` refuses it, `"drop"` leaves it out, and with it an
            item on which the reference or all others have none; a number stands for it.
    """
    table = _scores(scores, higher_is_better=higher_is_better, nan=nan)
    n = len(table)
    if n < 2:
        raise ShapeError(f"scores has {n} rows; a reference needs at least one other agent")
    if not 0 <= reference < n:
        raise InputError(f"reference is {reference}; it must be a row from 0 to {n - 1}")
    response = (np.sign(table - table[reference]) + 1.0) / 2.0
    others = np.delete(response, reference, axis=0)
    kept = _with_scores(others)
    response, others = response[:, kept], others[:, kept]
    return Transformed(
        kind=f"ARef: share of agents below agent {reference}",
        response=response,
        difficulty=1.0 - np.nanmean(others, axis=0),
        h0=0.0,
        q=1.0,
        items=kept,
        population=table if higher_is_better else -table,
    )


def ranks(
    scores: ArrayLike,
    *,
    levels: int = 101,
    higher_is_better: bool = True,
    nan: Missing = "raise",
) -> Transformed:
    """Rnk: an item is a step that falls at the agent's rank in the population.

    Args:
        scores: Real scores, shape (A, I).
        levels: Difficulties the steps are sampled at, at least 2; the more, the nearer to
            `closed_form` of the positions.
        higher_is_better: False for scores such as times.
        nan: What a missing score is: `"raise"` refuses it, `"drop"` leaves it out, and an agent's
            rank on an item is among those that have one; a number stands for it.
    """
    table = _scores(scores, higher_is_better=higher_is_better, nan=nan)
    has_score = ~np.isnan(table)
    below = (table[None, :, :] < table[:, None, :]).sum(axis=1)
    equal = (table[None, :, :] == table[:, None, :]).sum(axis=1)
    # An item without any score has no rank either: the 1 only avoids a division by 0.
    positions = (below + 0.5 * equal) / np.maximum(has_score.sum(axis=0), 1)
    positions = np.where(has_score, positions, np.nan)
    population = table if higher_is_better else -table
    return _stepped("Rnk: rank in the population", positions, levels, population)


def reference_distribution(
    scores: ArrayLike,
    *,
    mean: ArrayLike,
    variance: ArrayLike,
    family: Literal["normal", "beta"] = "normal",
    bounds: tuple[float, float] = (0.0, 1.0),
    levels: int = 101,
    higher_is_better: bool = True,
    nan: Missing = "raise",
) -> Transformed:
    """DRef: an item is a step that falls at the score's quantile in a reference distribution.

    Args:
        scores: Real scores, shape (A, I); one agent is enough.
        mean: Mean of the reference on each item, shape (I,).
        variance: Variance of the reference on each item, shape (I,), above 0.
        family: Normal, or for bounded scores a beta distribution of that mean and variance.
        bounds: Least and greatest score of the beta distribution.
        levels: Difficulties the steps are sampled at.
        higher_is_better: False for scores such as times.
        nan: What a missing score is: `"raise"` refuses it, `"drop"` leaves it out, a number stands
            for it.
    """
    from scipy import stats

    table = as_numbers("scores", scores)
    if table.ndim == 1:
        table = table[None, :]
    table = _scores(table, higher_is_better=True, nan=nan)
    mu = np.broadcast_to(as_numbers("mean", mean), table.shape[1:])
    var = np.broadcast_to(as_numbers("variance", variance), table.shape[1:])
    if not (np.isfinite(mu).all() and np.isfinite(var).all() and (var > 0.0).all()):
        raise InputError("mean and variance of the reference must be finite, the variance above 0")
    if family == "normal":
        positions = stats.norm.cdf(table, mu, np.sqrt(var))
    elif family == "beta":
        low, high = bounds
        m, v = (mu - low) / (high - low), var / (high - low) ** 2
        if not ((m > 0.0) & (m < 1.0) & (v < m * (1.0 - m))).all():
            raise InputError(
                f"no beta distribution on [{low}, {high}] has this mean and variance; the variance"
                " must be below (mean - low) (high - mean)"
            )
        strength = m * (1.0 - m) / v - 1.0
        scaled = np.clip((table - low) / (high - low), 0.0, 1.0)
        positions = stats.beta.cdf(scaled, m * strength, (1.0 - m) * strength)
    else:
        raise unknown_name("family", family, ["normal", "beta"])
    if not higher_is_better:
        positions = 1.0 - positions
    return _stepped(f"DRef: {family} reference", np.asarray(positions), levels, table)


def log_odds(
    responses: ArrayLike, *, drop_constant: bool = True, nan: Missing = "raise"
) -> Transformed:
    """IRT stand-in: smoothed log-odds of failure as difficulty.

    A fitted item response model needs hundreds of agents; with fewer this is what can be said.

    Args:
        responses: Binary results of a reference population, shape (A, I).
        drop_constant: Leave out items all or none of the agents solved.
        nan: What a missing response is: `"raise"` refuses it, `"drop"` leaves it out, 0 or 1 stands
            for it.
    """
    table = _scores(responses, higher_is_better=True, nan=nan)
    bad = np.argwhere((table != 0.0) & (table != 1.0) & ~np.isnan(table))
    if bad.size:
        agent, item = bad[0]
        raise InputError(
            f"response of agent {agent} to item {item} is {table[agent, item]}; it must be 0 or 1"
        )
    answered = (~np.isnan(table)).sum(axis=0)
    solved = np.nansum(table, axis=0)
    varied = (solved > 0) & (solved < answered)
    kept = np.flatnonzero(varied) if drop_constant else _with_scores(table)
    if kept.size == 0:
        raise InputError("every item was solved by all agents or by none; no difficulty is left")
    k, n = solved[kept], answered[kept]
    return Transformed(
        kind="IRT stand-in: smoothed log-odds of failure, no item response model was fitted",
        response=table[:, kept],
        difficulty=np.log((n - k + 0.5) / (k + 0.5)),
        h0=None,
        q=None,
        items=kept,
        population=table,
    )


def closed_form(positions: ArrayLike) -> tuple[float, float, float]:
    """Area, spread and normalised generality of falling steps on [0, 1], averaged over items.

    Args:
        positions: Where each item's step falls, shape (I,), in [0, 1].

    Returns:
        Mean and population standard deviation of the positions, and
        1 - variance / (mean (1 - mean)); NaN for the last if all steps lie at 0 or all at 1.

    Example:
        >>> print(*(f"{number:.4f}" for number in closed_form([0.2, 0.4, 0.9])))
        0.5000 0.2944 0.6533
    """
    t = as_numbers("positions", positions)
    if t.ndim != 1 or t.size == 0 or not ((t >= 0.0) & (t <= 1.0)).all():
        raise InputError("positions must be a list of numbers in [0, 1]")
    mean, variance = float(t.mean()), float(t.var())
    room = mean * (1.0 - mean)
    return mean, variance**0.5, 1.0 - variance / room if room >= _SAME else float("nan")


def _scores(scores: ArrayLike, *, higher_is_better: bool, nan: Missing) -> NDArray[np.float64]:
    table = as_numbers("scores", scores)
    if table.ndim != 2 or table.size == 0:
        raise ShapeError(f"scores has shape {table.shape}; it must be (agents, items)")
    table = _filled(table, nan)
    missing = np.isnan(table)
    if missing.any() and nan == "raise":
        agent, item = np.argwhere(missing)[0]
        raise InputError(f"score of agent {agent} on item {item} is nan; {_REMEDY}")
    bad = np.argwhere(~missing & ~np.isfinite(table))
    if bad.size:
        agent, item = bad[0]
        raise InputError(
            f"score of agent {agent} on item {item} is {table[agent, item]}; it must be finite"
        )
    return table if higher_is_better else -table


def _filled(table: NDArray[np.float64], nan: Missing) -> NDArray[np.float64]:
    """The table with the stated number in place of what is missing, if one is stated."""
    if nan in ("raise", "drop"):
        return table
    if isinstance(nan, str | bool) or not np.isfinite(nan):
        raise InputError(f"nan is {nan!r}; valid: 'raise', 'drop' or a finite number")
    return np.where(np.isnan(table), float(nan), table)


def _totals(results: NDArray[np.float64]) -> NDArray[np.float64]:
    """Total score of each player over all games, a game left out at the mean of the others."""
    means = np.nanmean(results, axis=1) * len(results)
    sums = np.nansum(results, axis=1)
    return np.asarray(np.where(np.isnan(results).any(axis=1), means, sums), dtype=np.float64)


def _with_scores(table: NDArray[np.float64]) -> NDArray[np.intp]:
    """The columns that hold a score.

    Raises:
        InputError: If none does.
    """
    kept = np.flatnonzero(~np.isnan(table).all(axis=0))
    if not kept.size:
        raise InputError("no score is left")
    return kept


def _stepped(
    kind: str, positions: NDArray[np.float64], levels: int, population: NDArray[np.float64]
) -> Transformed:
    """Average the falling steps at `positions` (A, I), sampled at evenly spaced difficulties."""
    if levels < 2:
        raise InputError(f"levels is {levels}; a step needs at least 2 difficulties")
    difficulty = np.linspace(0.0, 1.0, levels)
    response = np.empty((len(positions), levels))
    for agent, steps in enumerate(positions):
        falls = np.sort(steps[~np.isnan(steps)])
        if not len(falls):
            raise InputError(f"agent {agent} has no score; leave it out")
        # Steps not yet fallen, counted with those that fall here and without: half of each.
        before = np.searchsorted(falls, difficulty - _SAME, side="left")
        after = np.searchsorted(falls, difficulty + _SAME, side="right")
        response[agent] = 1.0 - (before + after) / (2.0 * len(falls))
    return Transformed(
        kind=kind,
        response=response,
        difficulty=difficulty,
        h0=0.0,
        q=1.0,
        items=np.array([], dtype=np.intp),
        population=population,
        positions=positions,
    )
