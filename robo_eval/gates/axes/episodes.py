"""Autonomy, generality, planning and world model of one policy, from its scored episodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from robo_eval import formulas
from robo_eval.core.defaults import LEVEL
from robo_eval.core.estimate import Estimate
from robo_eval.formulas.composite import AXES
from robo_eval.formulas.judgement import skill as skill_of
from robo_eval.gates.axes.draws import Resampled, exact_share
from robo_eval.gates.axes.settings import AxisSettings
from robo_eval.stats.bounded import bounded_mean_interval

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

EPISODE_AXES: Final = ("A", "G", "P", "W")
"""Axes measured on the same episodes, whose draws belong together."""
_RATIO: Final = "ratio"
_ADDED: Final = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
"""Errors and endings of what is added to episodes with a stated probability."""
_CELLS: Final = 2_000_000
"""Numbers drawn at once: bounds memory at some 100 MB."""
_NEAR: Final = 1e-9
"""Rounding that must not decide whether a mean reaches a threshold."""
_MISSING: Final[Mapping[str, str]] = {
    "A": "no run counted the uninterrupted_actions of an episode",
    "G": "no scored episode; quality is needed in at least one task family",
    "P": "no run logged the plan_depth of an episode",
    "W": "no run logged a stated_success_probability of the policy",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scored:
    """Scored episodes as arrays, shape (n,), NaN where an episode does not say.

    Attributes:
        family: Task families.
        autonomy: Credit for uninterrupted actions.
        planning: Credit for plan depth.
        quality: Qualities.
        success: Whether each was solved, 0 or 1.
        stated: Stated probabilities of success.
    """

    family: NDArray[np.object_]
    autonomy: Array
    planning: Array
    quality: Array
    success: Array
    stated: Array


# Means and skill ----------------------------------------------------------------------------------


def family_mean(credit: Array, family: NDArray[np.object_], *, level: float) -> Estimate:
    """Mean over task families of the mean of each.

    Args:
        credit: Of each episode, in [0, 1], shape (n,), n >= 1.
        family: Of each episode, shape (n,).
        level: Coverage of the interval.

    Returns:
        The mean; no interval if a family has one episode.
    """
    _, own, sizes = np.unique(family.astype(str), return_inverse=True, return_counts=True)
    found = bounded_mean_interval(credit, weights=1.0 / sizes[own], level=level)
    if sizes.min() > 1:
        return found
    return replace(found, low=None, high=None, method="none", reason="a family has one episode")


def stated_skill(p: Array, y: Array, *, level: float) -> Estimate:
    """Skill of stated probabilities over the success rate itself.

    The interval is Student's t of the ratio of the errors to those of the success rate, with one
    episode added: in equal parts a success and a failure, foretold wholly right and wholly wrong.
    Resampling few episodes, in which a rare ending was hardly met, covers far too little: 67 to
    92 % where ten episodes are played.

    Args:
        p: Stated probability of success of each episode, shape (n,), n >= 1.
        y: Whether it succeeded, 0 or 1, shape (n,).
        level: Coverage of the interval.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1.
    """
    from scipy.special import stdtrit

    value, n = formulas.world_model(p, y, float(y.mean()))["w"], len(p)
    error = np.append((p - y) ** 2, _ADDED[0])
    ended = np.append(y, _ADDED[1])
    weight = np.append(np.ones(n), np.full(4, 0.25)) / (n + 1)
    spread = (ended - weight @ ended) ** 2
    ratio = (weight @ error) / (weight @ spread)
    away = (error - ratio * spread) / (weight @ spread)
    half = float(stdtrit(max(n - 1, 1), 0.5 + level / 2.0)) * np.sqrt(weight @ away**2 / (n + 1))
    low, high = np.clip([1.0 - ratio - half, 1.0 - ratio + half], 0.0, 1.0).tolist()
    low, high = (low, high) if value is None else (min(low, value), max(high, value))
    return Estimate(value=value, low=low, high=high, level=level, n=n, method="delta", unit=_RATIO)


# The four axes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resampling:
    """How intervals are made."""

    level: float
    resamples: int
    seed: int

    def estimate(self, credit: Array, family: NDArray[np.object_]) -> Estimate:
        """`family_mean` with these settings."""
        return family_mean(credit, family, level=self.level)


def episodes_measured(
    own: pd.DataFrame,
    settings: AxisSettings,
    *,
    level: float = LEVEL,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, Resampled]:
    """Autonomy, generality, planning and world model with the draws of one bootstrap.

    Episodes are resampled within each task family, one less than there are, and every resample
    feeds all four axes. Where every episode has the same credit, resampling would hide all doubt;
    the draws then hold back a share of it, from the Jeffreys posterior of the share of episodes
    that differ. A family whose qualities are all alike is moved towards its threshold by as much.

    Args:
        own: Scored episodes of one policy on one side, with the columns of `core.episode.Episode`.
        settings: Horizon, plan depth and thresholds.
        level: Coverage of the intervals.
        resamples: Of the bootstrap, at least 100.
        seed: Of the bootstrap.

    Returns:
        `A`, `G`, `P` and `W`, each missing where no episode says what it needs; draws only where
        there is an interval.

    References:
        Chojecki (2025), arXiv:2511.13411, section 3.1. Rao and Wu (1988), JASA 83:231-241.
    """
    how = _Resampling(level=level, resamples=resamples, seed=seed)
    scored = _scored(own, settings)
    quality = _qualities(scored, how)
    least = {name: settings.family_qualities.get(name, settings.family_quality) for name in quality}
    raw = {
        "A": _of_credit(scored.autonomy, scored.family, how),
        "G": _generality(quality, least, settings, level),
        "P": _of_credit(scored.planning, scored.family, how),
        "W": _with_doubt(_of_statements(scored, how), scored),
    }
    draws = _joint(scored, least, how) if quality else {}
    parts = {"A": _conduct(own, level), "G": quality}
    found = {}
    for name in EPISODE_AXES:
        estimate = raw[name] or Estimate.missing(reason=_MISSING[name], unit=_RATIO)
        found[name] = Resampled(
            raw=estimate,
            draws=None if estimate.low is None else draws[name],
            parts=parts.get(name, {}),
        )
    return found


def _scored(own: pd.DataFrame, settings: AxisSettings) -> _Scored:
    actions, depth = _numbers(own, "uninterrupted_actions"), _numbers(own, "plan_depth")
    success = _numbers(own, "success")
    if not np.isnan(depth).all():
        # What was not solved counts 0 at any depth, so a depth that was not logged hides nothing.
        depth = np.where((success == 0.0) & np.isnan(depth), 0.0, depth)
    autonomy = np.minimum(actions, settings.horizon) / settings.horizon
    return _Scored(
        family=own["family"].to_numpy(dtype=object),
        autonomy=autonomy * success if settings.success_gated else autonomy,
        planning=success * np.minimum(depth, settings.full_depth) / settings.full_depth,
        quality=_numbers(own, "quality"),
        success=success,
        stated=_numbers(own, "stated_success_probability"),
    )


def _numbers(own: pd.DataFrame, column: str) -> Array:
    return own[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _of_credit(credit: Array, family: NDArray[np.object_], how: _Resampling) -> Estimate | None:
    known = ~np.isnan(credit)
    return how.estimate(credit[known], family[known]) if known.any() else None


def _of_statements(scored: _Scored, how: _Resampling) -> Estimate | None:
    known = ~np.isnan(scored.stated)
    if not known.any():
        return None
    return stated_skill(scored.stated[known], scored.success[known], level=how.level)


def _with_doubt(skill: Estimate | None, scored: _Scored) -> Estimate | None:
    """The same, saying where its interval cannot be read."""
    if skill is None:
        return None
    ended = scored.success[~np.isnan(scored.stated)]
    if len(ended) == 1:
        return replace(skill, low=None, high=None, method="none", reason="one episode")
    if ended.min() == ended.max():
        why = "every episode ended alike, which a success rate foretells as well as anyone"
        return replace(skill, reason=why)
    return skill


def _conduct(own: pd.DataFrame, level: float) -> dict[str, Estimate]:
    """How often nobody intervened, and how long the policy went on by itself."""
    found = {}
    counts = _numbers(own, "interventions")
    counts = counts[~np.isnan(counts)]
    if len(counts):
        alone = int((counts == 0.0).sum())
        found["no_intervention"] = exact_share(alone, len(counts), level)
    actions = _numbers(own, "uninterrupted_actions")
    actions = actions[~np.isnan(actions)]
    if len(actions):
        names = ("actions_lower_quartile", "actions_median", "actions_upper_quartile")
        for name, value in zip(names, np.quantile(actions, [0.25, 0.5, 0.75]), strict=True):
            found[name] = Estimate(
                value=float(value), n=len(actions), method="quantile", unit="actions",
                reason="a quantile of what was seen",
            )  # fmt: skip
    return found


# Generality --------------------------------------------------------------------------------------


def _name(family: object) -> str:
    return str(family) if family else "all"


def _families(scored: _Scored) -> dict[str, NDArray[np.intp]]:
    """Which episodes belong to each family, in order of its name."""
    label = np.array([_name(family) for family in scored.family], dtype=np.str_)
    order = np.argsort(label, kind="stable")
    names, first, sizes = np.unique(label[order], return_index=True, return_counts=True)
    return {
        str(name): order[start : start + size]
        for name, start, size in zip(names, first, sizes, strict=True)
    }


def _qualities(scored: _Scored, how: _Resampling) -> dict[str, Estimate]:
    return {
        name: how.estimate(scored.quality[rows], scored.family[rows])
        for name, rows in _families(scored).items()
    }


def _generality(
    quality: Mapping[str, Estimate],
    least: Mapping[str, float],
    settings: AxisSettings,
    level: float,
) -> Estimate | None:
    """Share of covered families: by their means, and by the ends of their intervals.

    A family without an interval is not covered at the lower end, and is at the upper.
    """
    if not quality:
        return None
    limits = list(least.values())

    def covered(values: list[float]) -> float | None:
        return formulas.generality([min(1.0, value + _NEAR) for value in values], limits)

    unplayed = sorted(set(settings.family_qualities) - set(quality))
    return Estimate(
        value=covered([one.value or 0.0 for one in quality.values()]),
        low=covered([0.0 if one.low is None else one.low for one in quality.values()]),
        high=covered([1.0 if one.high is None else one.high for one in quality.values()]),
        level=level,
        n=sum(one.n for one in quality.values()),
        method="ends_of_families",
        unit=_RATIO,
        reason=f"no episode of {', '.join(unplayed)}" if unplayed else _of_one(quality),
    )


def _of_one(quality: Mapping[str, Estimate]) -> str | None:
    return f"of one task family, {next(iter(quality))}" if len(quality) == 1 else None


# One bootstrap for all four ----------------------------------------------------------------------


def _columns(scored: _Scored) -> Array:
    """What is averaged in each resample, shape (n, 8): whether an episode says it, and what."""
    error = (scored.stated - scored.success) ** 2
    ended = np.where(np.isnan(error), np.nan, scored.success)
    columns = [
        column
        for values in (scored.autonomy, scored.planning, error)
        for column in (~np.isnan(values), np.nan_to_num(values))
    ]
    return np.column_stack([*columns, np.nan_to_num(ended), scored.quality])


def _joint(scored: _Scored, least: Mapping[str, float], how: _Resampling) -> dict[str, Array]:
    """Draws of the four axes, shape (resamples,) each; the i-th of all from one resample."""
    rng = np.random.default_rng([how.seed, AXES.index("G")])
    table = _columns(scored)
    families = _families(scored)
    zeros = np.zeros(how.resamples)
    reached = zeros.copy()
    sums, times = np.zeros((2, how.resamples)), np.zeros((2, how.resamples))
    stated = np.zeros((3, how.resamples))
    for name, rows in families.items():
        own = table[rows]
        means = _resampled(own, how.resamples, rng).T
        for i in (0, 1):  # autonomy, planning: means of families that say it
            says = means[2 * i] > 0.0
            sums[i] += np.divide(means[2 * i + 1], means[2 * i], out=zeros.copy(), where=says)
            times[i] += says
        stated += len(own) * means[4:7]
        quality = means[7]
        if own[:, 7].min() == own[:, 7].max():
            quality = _towards(float(own[0, 7]), least[name], len(own), how.resamples, rng)
        reached += quality >= least[name] - _NEAR
    with np.errstate(divide="ignore", invalid="ignore"):
        _, error, ended = stated / stated[0]
        credit = sums / times
    found = {
        "G": reached / len(families),
        "W": _filled(np.asarray(skill_of(error, ended - ended**2)), rng),
    }
    for i, (name, seen) in enumerate((("A", scored.autonomy), ("P", scored.planning))):
        found[name] = _held_back(seen[~np.isnan(seen)], _filled(credit[i], rng), rng)
    return found


def _filled(drawn: Array, rng: np.random.Generator) -> Array:
    """The draws; where no episode of a resample says what is needed, another of them."""
    known = drawn[~np.isnan(drawn)]
    if len(known) == len(drawn) or not len(known):
        return drawn
    return np.where(np.isnan(drawn), rng.choice(known, size=len(drawn)), drawn)


def _resampled(table: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Means of the columns when one row less than there is is drawn, shape (resamples, d).

    Equal rows are drawn together by how many there are: outcomes have few values.
    """
    values, counts = np.unique(table, axis=0, return_counts=True)
    n, kinds = len(table), len(values)
    draws = max(1, n - 1)
    means = np.empty((resamples, table.shape[1]))
    few = 4 * kinds <= n
    row_of = np.repeat(np.arange(kinds), counts)
    step = max(1, _CELLS // (kinds if few else n))
    for first in range(0, resamples, step):
        b = min(step, resamples - first)
        if few:
            weights = rng.multinomial(draws, counts / n, size=b)
        else:
            at = row_of[rng.integers(0, n, size=(b, draws))] + kinds * np.arange(b)[:, None]
            weights = np.bincount(at.ravel(), minlength=b * kinds).reshape(b, kinds)
        means[first : first + b] = weights.astype(np.float64) @ values / draws
    return means


def _towards(value: float, limit: float, n: int, resamples: int, rng: np.random.Generator) -> Array:
    """Means of a family whose n qualities are all alike, if others had differed at worst."""
    differ = 1.0 - rng.beta(n + 0.5, 0.5, size=resamples)
    return value + differ * ((0.0 if value >= limit - _NEAR else 1.0) - value)


def _held_back(credit: Array, drawn: Array, rng: np.random.Generator) -> Array:
    """The draws; of credit that is the same in all episodes, what it may still hide."""
    if not len(credit) or credit.min() < credit.max():
        return drawn
    return float(credit[0]) * rng.beta(len(credit) + 0.5, 0.5, size=len(drawn))
