"""How far two studies of the same tests agree, or two halves of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import pearsonr

from robo_eval.analysis.aiq import dissimilarity, mccp
from robo_eval.core.errors import InputError
from robo_eval.study.outcome import Outcome, StudyNumbers, mixture_curve, rank_correlation

Numbers = NDArray[np.float64]
NAN: Final = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Concordance:
    """How alike two lists of numbers are.

    Attributes:
        spearman: Correlation of ranks; NaN where one of the lists does not vary.
        pearson: Correlation of the numbers themselves; it stays high where those that hardly
            differ change places, and hangs on the few that stand out.
        n: How many numbers are compared: tests, or pairs of them.
    """

    spearman: float
    pearson: float
    n: int

    @classmethod
    def of(cls, one: ArrayLike, other: ArrayLike) -> Concordance:
        """Compare two lists, shape (n,) each."""
        a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        # Numbers that differ by rounding only do not differ.
        if len(a) < 2 or any(np.ptp(one) <= 1e-9 * np.abs(one).max() for one in (a, b)):
            return cls(spearman=NAN, pearson=NAN, n=len(a))
        return cls(
            spearman=rank_correlation(a, b),
            pearson=float(pearsonr(a, b).statistic),
            n=len(a),
        )

    @classmethod
    def mean(cls, found: list[Concordance]) -> Concordance:
        """Means of several comparisons of as many numbers each; NaN if there is none."""
        if not found:
            return cls(spearman=NAN, pearson=NAN, n=0)
        return cls(
            spearman=float(np.mean([one.spearman for one in found])),
            pearson=float(np.mean([one.pearson for one in found])),
            n=found[0].n,
        )


def agreement(one: Outcome, other: Outcome) -> dict[str, Concordance]:
    """How far two studies of the same tests agree on `complexity` and on `dissimilarity`.

    Raises:
        InputError: If the tests differ.
    """
    if one.measured.tests != other.measured.tests:
        raise InputError(f"{one.name} and {other.name} are not of the same tests, so cannot agree")
    above = np.triu_indices(len(one.measured.tests), 1)
    return {
        "complexity": Concordance.of(
            [curve.area for curve in one.curves], [curve.area for curve in other.curves]
        ),
        "dissimilarity": Concordance.of(
            one.dissimilarities.table[above], other.dissimilarities.table[above]
        ),
    }


def agreement_within(
    outcome: Outcome, *, splits: int = 50, seed: int = 0
) -> dict[str, Concordance]:
    """How far the two halves of a study agree on `complexity` and on `dissimilarity`.

    The pool and the trainings are split in two at random, again and again, and complexities and
    dissimilarities read off each half; of an odd number of trainings one is left out. A whole study
    agrees better with another whole one.

    Args:
        outcome: What was found.
        splits: How often.
        seed: Of the splits; the same seed gives the same numbers.

    Returns:
        Means over the splits; NaN where there is nothing to split or to rank.
    """
    measured = outcome.measured
    rng = np.random.default_rng(np.random.SeedSequence([seed, 8]))
    trainings = next(iter(measured.mixtures.values())).shape[1]
    complexity, apart = [], []
    for _ in range(splits):
        halves = _halves(len(measured.sizes), rng)
        if len(halves[0]):
            complexity.append(Concordance.of(*(_areas(outcome, half) for half in halves)))
        halves = _halves(trainings, rng)
        if len(halves[0]):
            apart.append(
                Concordance.of(
                    *(_apart(measured, half, place) for place, half in enumerate(halves))
                )
            )
    return {"complexity": Concordance.mean(complexity), "dissimilarity": Concordance.mean(apart)}


def _halves(count: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order, half = rng.permutation(count), count // 2
    return order[:half], order[half : 2 * half]


def _areas(outcome: Outcome, policies: NDArray[np.intp]) -> list[float]:
    """Complexities by some policies of the pool."""
    measured = outcome.measured
    return [
        mccp(measured.sizes[policies], row[policies], variant=outcome.rule).area
        for row in measured.performances
    ]


def _apart(measured: StudyNumbers, trainings: NDArray[np.intp], place: int) -> list[float]:
    """Dissimilarities by some trainings, and by every second one of tests alone."""
    return [
        dissimilarity(
            mixture_curve(
                performances[:, trainings],
                _every_second(measured.alone[i], place),
                _every_second(measured.alone[j], place),
            )
        )
        for (i, j), performances in sorted(measured.mixtures.items())
        if i < j
    ]


def _every_second(alone: Numbers, place: int) -> Numbers:
    return alone[place::2] if len(alone) > 1 else alone
