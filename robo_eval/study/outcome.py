"""What a study found: complexities, dissimilarities and the space they make, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr

from robo_eval.analysis.aiq import (
    ClusterTree,
    Complexity,
    Dissimilarities,
    Space,
    cluster_tree,
    dissimilarities,
    dissimilarity,
    half_samples,
    mccp,
    relative,
    space,
)
from robo_eval.analysis.aiq.complexity import LEAST_POLICIES, Variant
from robo_eval.core.estimate import Estimate
from robo_eval.study.entries import Test
from robo_eval.study.measure import SHARES
from robo_eval.study.suite import Suite
from robo_eval.study.work import StudyJob

Numbers = NDArray[np.float64]
_RESAMPLES: Final = 500
_LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyNumbers:
    """The raw numbers of a study.

    Attributes:
        tests: Names of the tests.
        experts: Who was learned from in each.
        expert_performances: Performances of that expert in each test, one row for each.
        sizes: Trainable parameters of the policies, shape (policies,).
        performances: Their mean performances, shape (tests, policies).
        entropies: Entropy of what a trained learner sees in each test, bits, shape (tests,).
        alone: Performance of the learner by itself, shape (tests, trainings).
        mixtures: For tests i and j the performances in i and in j of each training and mixture,
            shape (2, trainings, mixtures); `mixtures[i, i]` is a test with itself.
    """

    tests: list[str]
    experts: list[str]
    expert_performances: list[Numbers]
    sizes: Numbers
    performances: Numbers
    entropies: Numbers
    alone: Numbers
    mixtures: Mapping[tuple[int, int], Numbers]

    def observed(self, first: int, second: int) -> Numbers:
        """Performance in each mixture of two tests, ends included, shape (trainings, 11)."""
        return mixture_curve(self.mixtures[first, second], self.alone[first], self.alone[second])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What follows from the raw numbers.

    Attributes:
        name: Of the suite.
        measured: The raw numbers.
        complexities: Of each test, in trainable parameters, with intervals.
        rule: How sizes are read off the pool: `default` or `envelope`.
        curves: Smallest sizes by performance, of each test, by this rule.
        others: The same by the other rule, for comparison.
        pairs: Dissimilarity of each pair of tests, with intervals, by their places.
        dissimilarities: Their table, and what is to be said about it.
        tree: Which tests are alike.
        itself: Dissimilarity of each test to itself, which training makes, shape (tests,).
        space: The intelligence space of the suite.
        warnings: What to mind.
    """

    name: str
    measured: StudyNumbers
    complexities: list[Estimate]
    rule: Variant
    curves: list[Complexity]
    others: list[Complexity]
    pairs: Mapping[tuple[int, int], Estimate]
    dissimilarities: Dissimilarities
    tree: ClusterTree
    itself: Numbers
    space: Space
    warnings: list[str]

    @property
    def other_rule(self) -> Variant:
        """The rule of `others`."""
        return _other(self.rule)

    @property
    def rule_agreement(self) -> float:
        """Rank correlation (Spearman) of complexities by the two rules."""
        return rank_correlation(
            [one.area for one in self.curves], [one.area for one in self.others]
        )

    @property
    def by_complexity(self) -> list[int]:
        """Places of the tests, the most complex first."""
        return sorted(range(len(self.curves)), key=lambda place: -self.curves[place].area)

    @property
    def by_unlikeness(self) -> list[tuple[tuple[int, int], Estimate]]:
        """Pairs with their dissimilarities, the most unlike first."""
        return sorted(self.pairs.items(), key=lambda one: -(one[1].value or 0.0))

    @property
    def held(self) -> float:
        """Share of the space that the kept dimensions hold."""
        share = self.space.eigenvalues.clip(min=0.0)
        return float(share[: self.space.k].sum() / share.sum())

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        measured, table = self.measured, self.dissimilarities
        tests = [
            {
                "name": name,
                "expert": measured.experts[place],
                "expert_performance": float(measured.expert_performances[place].mean()),
                "learner_performance": float(measured.alone[place].mean()),
                "complexity": self.complexities[place].as_dict(),
                "relative_complexity": float(self.space.complexities[place]),
                "other_rule": self.others[place].area,
                "bins_filled": self.curves[place].filled,
                "extrapolated_share": self.curves[place].extrapolated_share,
                "entropy_bits": float(measured.entropies[place]),
                "itself": float(self.itself[place]),
                "communality": float(self.space.communality[place]),
                "point": self.space.points[place].tolist(),
            }
            for place, name in enumerate(measured.tests)
        ]
        return {
            "name": self.name,
            "policies": len(measured.sizes),
            "trainings": next(iter(measured.mixtures.values())).shape[1],
            "tests": tests,
            "dissimilarities": table.table.tolist(),
            "dissimilarity_intervals": [
                {"first": measured.tests[i], "second": measured.tests[j], **estimate.as_dict()}
                for (i, j), estimate in self.pairs.items()
            ],
            "floor": table.floor,
            "triangle_violations": table.violations,
            "triangles": table.triangles,
            "d_max": self.space.d_max,
            "k": self.space.k,
            "eigenvalues": self.space.eigenvalues.tolist(),
            "negative_mass": self.space.negative_mass,
            "complexity_rule": self.rule,
            "rule_agreement": self.rule_agreement,
            "warnings": self.warnings,
        }


def measured_of(
    suite: Suite, tests: Sequence[Test], found: Mapping[str, Any], jobs: Sequence[StudyJob]
) -> StudyNumbers:
    """The raw numbers, from the results of all pieces of work.

    Args:
        suite: The suite.
        tests: Its tests, with their experts.
        found: Result of each piece of work by its digest.
        jobs: All pieces of work.
    """
    places = {test.name: place for place, test in enumerate(tests)}
    sizes: dict[int, list[int]] = {}
    pools: list[list[float]] = [[] for _ in tests]
    alone: list[list[float]] = [[] for _ in tests]
    entropies = np.full(len(tests), np.nan)  # of sets it is not measured
    experts: list[Numbers] = [np.zeros(0)] * len(tests)
    mixtures: dict[tuple[int, int], list[list[list[float]]]] = {}
    for job in jobs:
        value, place = found[job.digest], places[job.tests[0].name]
        if job.kind == "expert":
            experts[place] = np.array(value["performances"][value["best"]])
        elif job.kind == "entropy":
            entropies[place] = value["total"]
        elif job.kind == "pool":
            sizes[job.number] = value["sizes"]
            pools[place] += value["performances"]
        elif job.kind == "alone":
            alone[place].append(value["performance"])
        else:
            key = (place, places[job.tests[1].name])
            mixtures.setdefault(key, []).append([value["first"], value["second"]])
    count = suite.pool.policies
    return StudyNumbers(
        tests=[test.name for test in tests],
        experts=[test.expert_name for test in tests],
        expert_performances=experts,
        sizes=np.array([one for chunk in sorted(sizes) for one in sizes[chunk]], float)[:count],
        performances=np.array([row[:count] for row in pools]),
        entropies=entropies,
        alone=np.array(alone),
        mixtures={key: np.array(one).swapaxes(0, 1) for key, one in mixtures.items()},
    )


def outcome_of(suite: Suite, measured: StudyNumbers, *, seed: int = 0) -> Outcome:
    """What follows from the raw numbers of a study.

    Args:
        suite: The suite.
        measured: Its raw numbers.
        seed: Of the draws that intervals are made by.

    Raises:
        InputError: If a number is out of range, or the suite asks for a space there is not.
    """
    rule = suite.complexity
    curves = [mccp(measured.sizes, row, variant=rule) for row in measured.performances]
    itself = np.array([_itself(measured, place) for place in range(len(measured.tests))])
    pairs = {
        key: _pair(measured, *key, seed=seed)
        for key in sorted(measured.mixtures)
        if key[0] < key[1]
    }
    table = np.full((len(measured.tests),) * 2, np.nan)
    for (i, j), estimate in pairs.items():
        assert estimate.value is not None
        table[i, j] = estimate.value
    areas = [one.area for one in curves]
    compared = dissimilarities(table, itself, debias=suite.debias)
    placed = space(compared.table, relative(areas), k=suite.dimensions, d_max=suite.d_max)
    return Outcome(
        name=suite.name,
        measured=measured,
        complexities=[
            _complexity(measured.sizes, row, one, seed=seed)
            for row, one in zip(measured.performances, curves, strict=True)
        ],
        rule=rule,
        curves=curves,
        others=[mccp(measured.sizes, row, variant=_other(rule)) for row in measured.performances],
        pairs=pairs,
        dissimilarities=compared,
        tree=cluster_tree(compared.table),
        itself=itself,
        space=placed,
        warnings=_warnings(measured, curves, compared, placed),
    )


def resampled_spaces(
    suite: Suite, outcome: Outcome, *, draws: int = 200, seed: int = 0
) -> list[Space]:
    """Spaces that the study might have found with other trainings and another pool.

    Trainings are drawn with replacement, of the learner alone and of each mixture; of the pool a
    half is drawn without, because with replacement the smallest policies, which complexity is read
    from, would be lost more often than there are fewer of them. The dimensions kept stay as many,
    where there are as many: if no drawn training shows a difference, there is one dimension.

    Args:
        suite: The suite.
        outcome: What was found.
        draws: How many spaces.
        seed: Of the draws; the same seed gives the same spaces.
    """
    measured = outcome.measured
    count, policies = len(measured.tests), len(measured.sizes)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 7]))
    found = []
    for _ in range(draws):
        half = np.sort(rng.permutation(policies)[: max(policies // 2, 1)])
        areas = [
            mccp(measured.sizes[half], row[half], variant=outcome.rule).area
            for row in measured.performances
        ]  # fmt: skip
        alone = [row[rng.integers(len(row), size=len(row))] for row in measured.alone]
        table, itself = np.full((count, count), np.nan), np.zeros(count)
        for (i, j), mixed in sorted(measured.mixtures.items()):
            own = mixed[:, rng.integers(mixed.shape[1], size=mixed.shape[1])]
            value = dissimilarity(mixture_curve(own, alone[i], alone[j]))
            if i == j:
                itself[i] = value
            else:
                table[i, j] = value
        compared = dissimilarities(table, itself, debias=suite.debias)
        sizes = relative(areas)
        there = space(compared.table, sizes, d_max=suite.d_max, share=1.0)
        kept = min(outcome.space.k, there.k)
        found.append(space(compared.table, sizes, k=kept, d_max=suite.d_max))
    return found


def mixture_curve(performances: Numbers, first: Numbers, second: Numbers) -> Numbers:
    """Performances in mixtures, with the tests by themselves at the ends.

    Args:
        performances: In the first and second test, shape (2, trainings, shares).
        first: Performances of those who learned the first test alone.
        second: The same of the second one.

    Returns:
        Shape (trainings, shares + 2).
    """
    shares = np.array(SHARES)
    inner = shares * performances[0] + (1.0 - shares) * performances[1]
    ends = np.ones(len(inner))
    return np.column_stack([ends * second.mean(), inner, ends * first.mean()])


def _itself(measured: StudyNumbers, place: int) -> float:
    return dissimilarity(measured.observed(place, place))


def _pair(measured: StudyNumbers, i: int, j: int, *, seed: int) -> Estimate:
    """The dissimilarity of two tests, with a bootstrap of the trainings it rests on."""
    mixed, first, second = measured.mixtures[i, j], measured.alone[i], measured.alone[j]
    value = dissimilarity(mixture_curve(mixed, first, second))
    trainings = mixed.shape[1]
    if trainings < 2:
        return Estimate(
            value=value, n=trainings, method="none", unit="ratio",
            reason="one training has no spread; use 3 or more",
        )  # fmt: skip
    rng = np.random.default_rng(np.random.SeedSequence([seed, i, j]))
    drawn = [
        dissimilarity(
            mixture_curve(
                mixed[:, rng.integers(trainings, size=trainings)],
                first[rng.integers(len(first), size=len(first))],
                second[rng.integers(len(second), size=len(second))],
            )
        )
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(drawn, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    # Noise only ever adds to an absolute difference: draws lie above the value, not around it.
    return Estimate(
        value=value,
        low=max(0.0, min(value, 2.0 * value - float(high))),
        high=max(value, 2.0 * value - float(low)),
        level=_LEVEL,
        n=trainings,
        method="bootstrap of trainings, basic",
        unit="ratio",
    )


def _other(rule: Variant) -> Variant:
    return "envelope" if rule == "default" else "default"


def _complexity(sizes: Numbers, performances: Numbers, curve: Complexity, *, seed: int) -> Estimate:
    if len(sizes) < 4:
        return Estimate(
            value=curve.area, n=len(sizes), method="none", unit="parameters",
            reason="an interval needs 4 policies at least",
        )  # fmt: skip
    low, high = half_samples(
        sizes, performances, variant=curve.variant, resamples=_RESAMPLES, level=_LEVEL, seed=seed
    )
    return Estimate(
        value=curve.area,
        low=low,
        high=high,
        level=_LEVEL,
        n=len(sizes),
        method="halves of the pool without replacement",
        unit="parameters",
    )


def _warnings(
    measured: StudyNumbers, curves: Sequence[Complexity], table: Dissimilarities, placed: Space
) -> list[str]:
    found = []
    if len(measured.sizes) < LEAST_POLICIES:
        found.append(
            f"{len(measured.sizes)} policies: complexities of fewer than {LEAST_POLICIES} say"
            " little"
        )
    for name, expert, played in zip(
        measured.tests, measured.experts, measured.expert_performances, strict=True
    ):
        if len(played) and played.max() == 0.0:
            found.append(
                f"{name}: performance of {expert}, who is learned from, is 0 in all"
                f" {len(played)} episodes: another expert is needed, or other `returns`"
            )
    for name, curve in zip(measured.tests, curves, strict=True):
        if curve.extrapolated_share > 0.5:
            found.append(
                f"{name}: {curve.extrapolated_share:.0%} of its complexity is extrapolated"
            )
    above = np.triu_indices(len(measured.tests), 1)
    if table.floor:
        near = int((table.table[above] <= 2.0 * table.floor).sum())
        if near:
            found.append(
                f"{near} of {len(above[0])} pairs are at most twice as unlike as a test is to"
                f" itself ({table.floor:.4f}): noise, or tests that are alike"
            )
    return [*found, *(_with_name(text, measured.tests) for text in placed.warnings)]


def _with_name(text: str, names: Sequence[str]) -> str:
    """A warning of the space, which knows tests by number only."""
    head, _, tail = text.partition(":")
    word, _, number = head.partition(" ")
    return f"{names[int(number)]}:{tail}" if word == "test" and number.isdigit() else text


def rank_correlation(one: ArrayLike, other: ArrayLike) -> float:
    """Spearman's correlation of two lists; NaN where one of them does not vary."""
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if np.ptp(a) == 0.0 or np.ptp(b) == 0.0:
        return float("nan")
    return float(spearmanr(a, b).statistic)
