"""How much work can be delegated: the best quality at each degree of autonomy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.plain import UNSAID
from robo_eval.core.units import DAY_NS
from robo_eval.formulas import checks
from robo_eval.gates.axes.draws import estimate_of_draws
from robo_eval.gates.axes.improvement import BLOCKS, block_counts

if TYPE_CHECKING:
    from robo_eval.gates.axes.settings import FrontierSettings

COLUMNS: Final = ("policy", "family", "quality", "interventions")
"""Columns of a table of scored episodes; `start_ns` may be there."""
EPISODES: Final = "bootstrap_of_episodes"
_LEAST_DAYS: Final = 5
"""Days each policy needs in each family before days are drawn and not episodes."""
_CELLS: Final = 2_000_000
"""Episodes drawn at once: bounds memory."""
_ROUNDING: Final = 1e-9
"""Interventions above the budget by less are so by rounding."""
_NOTHING: Final = "no policy has an episode in every family"
_KINDS: Final = ("quality", "share")
_NO_BIN: Final = "at no degree of autonomy does a policy stay within the interventions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """One degree of autonomy.

    Attributes:
        demand: Degree of autonomy in the middle of the bin.
        budget: Interventions per episode it allows.
        policy: The policy that is best within them; None if there is none.
        quality: Its mean quality, with its band; `n` is its episodes.
        share: Largest share of episodes of good quality within the budget, with its band.
        fitted: The quality, made non-increasing in autonomy; None for an empty bin.
        fitted_share: The same of the share.
    """

    demand: float
    budget: float
    policy: str | None
    quality: Estimate
    share: Estimate
    fitted: float | None
    fitted_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Delegability frontier of the policies of one side.

    Attributes:
        most_interventions: Interventions per episode that no autonomy allows.
        target: Quality from which on work may be delegated.
        bins: From low to high autonomy.
        auf: Mean over autonomy of the best quality: area under the frontier.
        auf_share: Mean over autonomy of the best share of episodes of good quality.
        fraction_delegable: Share of autonomy at which the best quality reaches the target.
        empty: Degrees of autonomy at which no policy stays within the interventions. They are left
            out of the three numbers above.
        left_out: Policies without an episode in every family, which are compared with none.
        method: What is drawn for the intervals: episodes, or days in blocks; and why.
        qualities: Best quality in each bin of each resample, NaN where it is empty, shape
            (resamples, bins).
    """

    most_interventions: float
    target: float
    bins: tuple[Bin, ...]
    auf: Estimate
    auf_share: Estimate
    fraction_delegable: Estimate
    empty: tuple[float, ...]
    left_out: tuple[str, ...]
    method: str
    qualities: NDArray[np.float64] = field(repr=False, compare=False, metadata=UNSAID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """What became of a frontier.

    Attributes:
        auf: Area under the second frontier minus that under the first, over the degrees of autonomy
            that both have.
        progress: Whether the second is nowhere below the first; None if the first is empty.
        below: Degrees of autonomy at which it is below, or that only the first has.
    """

    auf: Estimate
    progress: bool | None
    below: tuple[float, ...]


class _Means(NamedTuple):
    """Means of each policy over its families, shape (samples, policies); NaN where one has none."""

    quality: NDArray[np.float64]
    interventions: NDArray[np.float64]
    share: NDArray[np.float64]


def frontier_of(
    episodes: pd.DataFrame, settings: FrontierSettings, *, level: float = 0.95, seed: int = 0
) -> Frontier:
    """The best quality that policies reach within the interventions a degree of autonomy allows.

    At autonomy a a policy may need (1 - a) times the most interventions, on average per episode.
    Families weigh alike in every mean, so only policies that played all of them are compared.

    Args:
        episodes: Scored episodes of one side, with the columns of `COLUMNS`; with `start_ns`, days
            are drawn and not episodes, if each policy played each family on at least 5 days.
        settings: Most interventions, number of bins, quality to reach, number of resamples.
        level: Coverage of bands and intervals, quantiles of a bootstrap of the episodes of each
            policy and family; or of moving blocks of ceil(n^(1/3)) of n days with all episodes of a
            drawn day. Each is widened to hold the value itself. The best of several policies looks
            better than it is, in the value and in the resamples.
        seed: Seed of the draws.

    Raises:
        InputError: If a column is missing, a quality is not in [0, 1], or interventions are not
            numbers of at least 0.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 5 and 6. That families weigh alike follows from
        section 3; the rest on intervals is this project's choice.
    """
    checks.confidence("level", level)
    table = _checked(episodes)
    families = sorted(set(table["family"]))
    played = table.groupby("policy")["family"].nunique()
    policies = [name for name in sorted(played.index) if played[name] == len(families)]
    left_out = tuple(name for name in sorted(played.index) if name not in policies)
    if not policies:
        return _empty(settings, left_out)
    table = table[table["policy"].isin(policies)]
    cells = pd.MultiIndex.from_product([policies, families])
    cell = cells.get_indexer(pd.MultiIndex.from_frame(table[["policy", "family"]]))
    good = table["quality"] >= settings.quality
    values = np.column_stack([table["quality"], table["interventions"], good]).astype(np.float64)
    method, why, draws = _resampled(table, values, cell, len(cells), settings.resamples, seed)
    budgets = _budgets(settings)
    ours = _means_of(_cell_means(values, cell, len(cells))[None], len(policies))
    drawn = [_best(_means_of(draws, len(policies)), name, budgets) for name in _KINDS]
    n_of = np.bincount(cell // len(families), minlength=len(policies))
    lines = [
        _line(ours, name, budgets, n_of, settings, _Intervals(level, method, draws_of))
        for name, draws_of in zip(_KINDS, drawn, strict=True)
    ]
    quality, share = lines
    reached = np.where(np.isnan(drawn[0]), np.nan, drawn[0] >= settings.quality - _ROUNDING)
    bins = [
        Bin(
            demand=demand,
            budget=float(budgets[i]),
            policy=None if quality.who[i] is None else policies[quality.who[i] or 0],
            quality=quality.bins[i],
            share=share.bins[i],
            fitted=quality.fit["isotonic"][i],
            fitted_share=share.fit["isotonic"][i],
        )
        for i, demand in enumerate(_demands(settings).tolist())
    ]
    delegable = _Intervals(level, method, reached).mean(
        quality.fit["fraction_delegable"], quality.auf.n
    )
    return Frontier(
        most_interventions=settings.most_interventions,
        target=settings.quality,
        bins=tuple(bins),
        auf=quality.auf,
        auf_share=share.auf,
        # Of episodes that are all alike nothing is known about others.
        fraction_delegable=delegable if quality.auf.low is not None else _bare(delegable, quality),
        empty=tuple(one.demand for one in bins if one.policy is None),
        left_out=left_out,
        method=f"{method}: {why}",
        qualities=drawn[0],
    )


def _bare(found: Estimate, quality: _Line) -> Estimate:
    return replace(found, low=None, high=None, method="none", reason=quality.auf.reason)


def _demands(settings: FrontierSettings) -> NDArray[np.float64]:
    return np.asarray((np.arange(settings.bins) + 0.5) / settings.bins)


def _budgets(settings: FrontierSettings) -> NDArray[np.float64]:
    return np.asarray((1.0 - _demands(settings)) * settings.most_interventions)


def _checked(episodes: pd.DataFrame) -> pd.DataFrame:
    for name in COLUMNS:
        if name not in episodes.columns:
            raise InputError(f"episodes: column {name!r} is missing; give {', '.join(COLUMNS)}")
    wanted = [*COLUMNS, *(["start_ns"] if "start_ns" in episodes.columns else [])]
    table = episodes[wanted].reset_index(drop=True)
    for name, high in (("quality", 1.0), ("interventions", math.inf)):
        numbers = pd.to_numeric(table[name], errors="coerce").to_numpy(np.float64, na_value=np.nan)
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0.0) & (numbers <= high)))
        if bad.size:
            wish = "from 0 to 1" if high == 1.0 else "of at least 0"
            raise InputError(
                f"episodes: row {int(bad[0])}, column {name!r} is {table[name].iloc[bad[0]]};"
                f" a scored episode has a number {wish}"
            )
        table[name] = numbers
    for name in ("policy", "family"):
        table[name] = table[name].astype(str)
    # So that the order of the rows changes nothing.
    return table.sort_values(wanted, kind="stable").reset_index(drop=True)


def _empty(settings: FrontierSettings, left_out: tuple[str, ...]) -> Frontier:
    nothing = Estimate.missing(reason=_NOTHING, unit="ratio")
    ends = zip(_demands(settings).tolist(), _budgets(settings).tolist(), strict=True)
    bins = tuple(
        Bin(
            demand=demand, budget=budget, policy=None, quality=nothing, share=nothing,
            fitted=None, fitted_share=None,
        )
        for demand, budget in ends
    )  # fmt: skip
    return Frontier(
        most_interventions=settings.most_interventions, target=settings.quality, bins=bins,
        auf=nothing, auf_share=nothing, fraction_delegable=nothing,
        empty=tuple(one.demand for one in bins), left_out=left_out, method="none",
        qualities=np.full((settings.resamples, settings.bins), np.nan),
    )  # fmt: skip


# Resampling --------------------------------------------------------------------------------------


def _cell_means(
    values: NDArray[np.float64], cell: NDArray[np.intp], cells: int
) -> NDArray[np.float64]:
    """Mean of each column in each cell of policy and family, shape (cells, columns)."""
    n = np.bincount(cell, minlength=cells)
    sums = [np.bincount(cell, weights=column, minlength=cells) for column in values.T]
    return np.stack(sums, axis=1) / n[:, None]


def _resampled(
    table: pd.DataFrame,
    values: NDArray[np.float64],
    cell: NDArray[np.intp],
    cells: int,
    resamples: int,
    seed: int,
) -> tuple[str, str, NDArray[np.float64]]:
    """What was drawn and why, and the means of each cell, shape (resamples, cells, columns)."""
    why, day = _days(table, cell)
    if day is None:
        return EPISODES, why, _drawn_episodes(values, cell, cells, resamples, seed)
    days = int(day.max()) + 1
    columns = np.column_stack([np.ones(len(values)), values])
    place = day * cells + cell
    sums = np.stack(
        [np.bincount(place, weights=one, minlength=days * cells) for one in columns.T], axis=1
    )
    drawn = block_counts(days, resamples, seed) @ sums.reshape(days, -1)
    drawn = drawn.reshape(resamples, cells, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return BLOCKS, why, drawn[:, :, 1:] / drawn[:, :, :1]


def _days(table: pd.DataFrame, cell: NDArray[np.intp]) -> tuple[str, NDArray[np.intp] | None]:
    """Why days can be drawn or not, and the day of each episode if they can."""
    if "start_ns" not in table.columns or bool(table["start_ns"].isna().any()):
        return "it is not known when every episode was", None
    dates, day = np.unique(table["start_ns"].astype(np.int64) // DAY_NS, return_inverse=True)
    fewest = int(pd.Series(day).groupby(cell).nunique().min())
    if fewest < _LEAST_DAYS:
        return f"a policy played a family on {fewest} days; blocks need {_LEAST_DAYS}", None
    return f"each policy played each family on {fewest} or more of {len(dates)} days", day


def _drawn_episodes(
    values: NDArray[np.float64], cell: NDArray[np.intp], cells: int, resamples: int, seed: int
) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, cells, values.shape[1]))
    for one in range(cells):
        own = values[cell == one]
        step = max(1, _CELLS // len(own))
        for first in range(0, resamples, step):
            size = min(step, resamples - first)
            drawn = rng.integers(0, len(own), size=(size, len(own)))
            for column in range(values.shape[1]):
                means[first : first + size, one, column] = own[:, column][drawn].mean(axis=1)
    return means


def _means_of(cell_means: NDArray[np.float64], policies: int) -> _Means:
    samples, _, columns = cell_means.shape
    means = cell_means.reshape(samples, policies, -1, columns).mean(axis=2)
    return _Means(means[..., 0], means[..., 1], means[..., 2])


def _allowed(means: _Means, budget: float) -> NDArray[np.bool_]:
    """Which policies stay within a budget; one that was not drawn does not."""
    return means.interventions <= budget + _ROUNDING


def _best(means: _Means, name: str, budgets: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best of the policies within each budget, shape (samples, bins); NaN where none is."""
    of = getattr(means, name)
    best = [np.where(_allowed(means, h), of, -np.inf).max(axis=1) for h in budgets]
    found = np.stack(best, axis=1)
    return np.where(np.isfinite(found), found, np.nan)


def _who(means: _Means, name: str, budget: float) -> int | None:
    """The best policy within a budget; of several the first."""
    allowed = _allowed(means, budget)[0]
    return (
        int(np.argmax(np.where(allowed, getattr(means, name)[0], -1.0))) if any(allowed) else None
    )


def _line(
    ours: _Means,
    name: str,
    budgets: NDArray[np.float64],
    n_of: NDArray[np.intp],
    settings: FrontierSettings,
    found: _Intervals,
) -> _Line:
    """The frontier of one kind of mean."""
    best = [None if math.isnan(x) else x for x in _best(ours, name, budgets)[0].tolist()]
    who = [_who(ours, name, budget) for budget in budgets.tolist()]
    n = [0 if one is None else int(n_of[one]) for one in who]
    fit = formulas.delegability(best, n, settings.quality)
    used = sum(int(n_of[one]) for one in set(who) if one is not None)
    return _Line(
        who=who,
        bins=[found.at(i, best[i], n[i]) for i in range(len(best))],
        fit=fit,
        auf=found.mean(fit["auf"], used, least_spread=_ROUNDING),
    )


def _mean_over_bins(draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the bins that are not empty, shape (resamples,); NaN if all are.

    The best within a budget cannot rise as the budget falls, so an isotonic fit changes nothing.
    """
    full = ~np.isnan(draws)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(full, draws, 0.0).sum(axis=1) / full.sum(axis=1))


class _Line(NamedTuple):
    """A frontier: which policy is best in each bin, how good it is, and what that adds up to."""

    who: list[int | None]
    bins: list[Estimate]
    fit: formulas.Delegability
    auf: Estimate


class _Intervals(NamedTuple):
    """Intervals from draws of each bin, shape (resamples, bins)."""

    level: float
    method: str
    draws: NDArray[np.float64]

    def at(self, i: int, value: float | None, n: int) -> Estimate:
        """The estimate of one bin."""
        if value is None:
            reason = "no policy stays within the interventions"
            return Estimate.missing(reason=reason, unit="ratio")
        return self._of(value, self.draws[:, i], n, _ROUNDING)

    def mean(self, value: float | None, n: int, *, least_spread: float = 0.0) -> Estimate:
        """The estimate of a mean over bins."""
        if value is None:
            return Estimate.missing(reason=_NO_BIN, unit="ratio")
        return self._of(value, _mean_over_bins(self.draws), n, least_spread)

    def _of(
        self, value: float, draws: NDArray[np.float64], n: int, least_spread: float
    ) -> Estimate:
        found = draws[np.isfinite(draws)]
        reason = None
        if len(found) < len(draws) / 2:
            reason = "in most resamples no policy stays within the interventions"
        elif np.ptp(found) < least_spread:
            reason = "all episodes are alike"
        if reason:
            return Estimate(value=value, n=n, method="none", unit="ratio", reason=reason)
        return estimate_of_draws(value, found, n=n, level=self.level, method=self.method)


# Comparing ---------------------------------------------------------------------------------------


def shift(first: Frontier, second: Frontier, *, level: float = 0.95, seed: int = 0) -> Shift:
    """Whether a second frontier is above a first, and by how much.

    Args:
        first: The earlier, or the one to compare with.
        second: The later. Its episodes are taken as independent of those of the first.
        level: Coverage of the interval.
        seed: Seed by which draws of both are put together.

    Returns:
        The area is compared over the degrees of autonomy that both have.

    Raises:
        InputError: If the two have different bins, interventions or resamples.

    References:
        Chojecki (2025), arXiv:2511.13411, sections 5 and 6.
    """
    checks.confidence("level", level)
    same = ("most_interventions", "target")
    if any(getattr(first, name) != getattr(second, name) for name in same) or (
        first.qualities.shape != second.qualities.shape
    ):
        raise InputError("the frontiers were computed with different settings; use the same")
    pairs = list(zip(first.bins, second.bins, strict=True))
    below = tuple(
        one.demand
        for one, two in pairs
        if one.fitted is not None and (two.fitted is None or two.fitted < one.fitted - _ROUNDING)
    )
    both = [i for i, (a, b) in enumerate(pairs) if a.fitted is not None and b.fitted is not None]
    progress = None if len(first.empty) == len(pairs) else not below
    if not both:
        auf = Estimate.missing(reason="no degree of autonomy is in both", unit="ratio")
        return Shift(auf=auf, progress=progress, below=below)
    value = math.fsum((pairs[i][1].fitted or 0.0) - (pairs[i][0].fitted or 0.0) for i in both)
    # Both may have been drawn with the same seed, which would make the draws alike.
    order = np.random.default_rng(seed).permutation(len(second.qualities))
    draws = second.qualities[order][:, both] - first.qualities[:, both]
    found = _Intervals(level, "bootstrap", draws)
    n = first.auf.n + second.auf.n
    auf = found.mean(value / len(both), n, least_spread=_ROUNDING)
    return Shift(auf=auf, progress=progress, below=below)
