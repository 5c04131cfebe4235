"""Which findings of the published AIQ study come out again, from studies that were run.

    for name in cartpole_force cartpole_gravity cartpole_length digits cartpole3d_compat; do
        robo-eval aiq run examples/suites/$name.yaml --out runs/${name#cartpole*_}
    done
    robo-eval aiq handicap runs/compat --json > runs/handicap.json
    .venv/bin/python benchmarks/findings.py --force runs/force --gravity runs/gravity \\
        --length runs/length --digits runs/digits --levels runs/compat --handicap runs/handicap.json

Whatever is not given is left out. `--again` names a study of the same tests as `--levels`, of
another seed or budget. Prints a table in Markdown.

Intervals are the 2.5 and 97.5 percentiles of 200 draws, tests as they are: for complexities of
halves of the pool, drawn without replacement, for other numbers of spaces that other trainings
would have made as well. Whether tests are ranked as claimed is asked of all their orders; a
correlation of distances has the test of Mantel, for pairs that share a test are not independent.
A claim is repeated where that is clear: as claimed, with p below 0.05; "not shown" where it is
not. The rules for other claims are in the table.

Source of the claims: Pereyda and Holder (2025), AI 6(12):313, doi 10.3390/ai6120313.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from mantel import mantel
from numpy.typing import NDArray
from scipy.stats import spearmanr

from robo_eval.analysis.aiq import Space, around, mccp
from robo_eval.analysis.aiq.complexity import Variant
from robo_eval.core.errors import RoboEvalError
from robo_eval.study.agreement import Concordance, agreement, agreement_within
from robo_eval.study.outcome import Outcome, resampled_spaces
from robo_eval.study.run import Study

Numbers = NDArray[np.float64]
KEYS: Final = {"force": "force_mag", "gravity": "gravity", "length": "length"}
SPACES: Final = 200
CLEAR: Final = 0.05
CONSTANT: Final = 0.1
"""Complexities that differ by less than this share are called equal."""
ALIKE: Final = 2.0
"""Complexities within so many parameters do not rank."""
NEAR_ONE: Final = 0.9
NOTHING: Final = 0.01
"""A largest dissimilarity below this says that a learner can do all tests at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A claim of the paper, what came out here, and whether that repeats it."""

    claim: str
    ours: str
    repeated: str

    @property
    def row(self) -> str:
        return f"| {self.claim} | {self.ours} | {self.repeated} |"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A study that was run, and spaces that others like it would have made."""

    study: Study
    outcome: Outcome
    spaces: list[Space]

    @classmethod
    def of(cls, folder: Path) -> Read:
        study = Study.open(folder)
        outcome = study.known()
        return cls(
            study=study,
            outcome=outcome,
            spaces=resampled_spaces(study.suite, outcome, draws=SPACES),
        )

    @property
    def table(self) -> Numbers:
        return self.outcome.dissimilarities.table

    def rules(self) -> list[tuple[Variant, Numbers]]:
        """Complexities by the rule of the suite, and by the other one."""
        own, other = self.outcome.curves, self.outcome.others
        return [
            (self.outcome.rule, np.array([one.area for one in own])),
            (self.outcome.other_rule, np.array([one.area for one in other])),
        ]

    def drawn(self, rule: Variant) -> Numbers:
        """Complexities by halves of the pool, shape (draws, tests)."""
        measured = self.outcome.measured
        rng = np.random.default_rng(0)
        halves = [
            np.sort(rng.permutation(len(measured.sizes))[: len(measured.sizes) // 2])
            for _ in range(SPACES)
        ]
        rows = measured.performances
        return np.array(
            [
                [mccp(measured.sizes[half], row[half], variant=rule).area for row in rows]
                for half in halves
            ]
        )

    def interval(self, of: Callable[[Space], float]) -> str:
        """The interval of a number of the space."""
        return percentiles([of(space) for space in self.spaces])


def percentiles(drawn: Sequence[float]) -> str:
    """The interval of what was drawn."""
    known = [one for one in drawn if math.isfinite(one)]
    if not known:
        return "[no interval]"
    low, high = np.quantile(known, [0.025, 0.975])
    return f"[{low:.3g}, {high:.3g}]"


# Parameters ------------------------------------------------------------------------------------


def of_parameter(name: str, read: Read) -> list[Finding]:
    """Findings on CartPole with other values of a parameter."""
    key = KEYS[name]
    values = np.array([float(test.kwargs[key]) for test in read.study.tests])  # type: ignore[union-attr]
    measured = read.outcome.measured
    failed = 1.0 - measured.performances.mean(axis=1)
    found = [
        trend(
            f"complexity (MCCP) rises with {name}, rule {rule}",
            areas,
            values,
            percentiles([ranked(one, values) for one in read.drawn(rule)]),
            f"{listed(areas)} parameters; ",
            claimed=0 if name == "length" else 1,
        )
        for rule, areas in read.rules()
    ]
    found = [
        replace(one, repeated="not shown: all alike")
        if one.repeated == "yes" and np.ptp(areas) < ALIKE
        else one
        for one, (_, areas) in zip(found, read.rules(), strict=True)
    ]
    pool = trend(
        f"(not of the paper) mean failure of the pool rises with {name}",
        failed,
        values,
        "",
        f"{', '.join(f'{one:.2f}' for one in failed)}; ",
        claimed=0 if name == "length" else 1,
    )
    entropy = trend(
        f"entropy falls as {name} rises",
        measured.entropies,
        values,
        "",
        f"{', '.join(f'{one:.1f}' for one in measured.entropies)} bits; ",
        claimed=-1,
    )
    found.append(pool)
    found += [apart(name, read, values), apart(name, read, np.log(values), of="of logarithms ")]
    return found if name == "length" else [*found, entropy]


def trend(
    claim: str, values: Numbers, parameter: Numbers, interval: str, head: str, *, claimed: int
) -> Finding:
    """Whether values are ranked by a parameter: 1 rising, -1 falling, 0 without a claim."""
    rho = ranked(values, parameter)
    if not math.isfinite(rho):
        return Finding(claim=claim, ours=f"{head}all equal", repeated="no")
    way = claimed or 1
    p = float(np.mean([way * one >= way * rho - 1e-9 for one in orders(values, parameter)]))
    ours = f"{head}Spearman {rho:.2f} {interval}".rstrip()
    if not claimed:
        return Finding(claim=claim, ours=f"{ours} (n = {len(values)})", repeated="no claim")
    ours = f"{ours} (n = {len(values)}, p = {p:.3f})"
    return Finding(claim=claim, ours=ours, repeated=verdict(way * rho, p))


def verdict(effect: float, p: float) -> str:
    """Whether an effect, positive if as claimed, is clear."""
    return "yes" if effect > 0.0 and p < CLEAR else "no" if effect <= 0.0 else "not shown"


def yes(is_so: bool) -> str:  # noqa: FBT001 - it is what is asked
    """A word for it."""
    return "yes" if is_so else "no"


def ranked(values: Sequence[float] | Numbers, parameter: Numbers) -> float:
    """Rank correlation (Spearman); NaN if values are all equal."""
    if np.ptp(values) == 0.0:
        return math.nan
    return float(spearmanr(values, parameter).statistic)


def orders(values: Numbers, parameter: Numbers) -> list[float]:
    """Rank correlations of all orders of some values."""
    return [
        ranked(values[list(one)], parameter) for one in itertools.permutations(range(len(values)))
    ]


def apart(name: str, read: Read, values: Numbers, *, of: str = "") -> Finding:
    """Whether tests are the more unlike the farther their parameters are apart."""
    far = np.abs(values[:, None] - values[None, :])
    above = np.triu_indices(len(values), 1)
    found = mantel(read.table, far)
    floor = read.outcome.dissimilarities.floor
    largest = float(read.table[above].max())
    interval = read.interval(
        lambda space: float(np.corrcoef(space.dissimilarities[above], far[above])[0, 1])
    )
    return Finding(
        claim=f"dissimilarity rises with the distance {of}of {name} (R about 0.7)",
        ours=f"R = {found.r:.2f} {interval} (n = {len(above[0])} pairs of {len(values)} tests,"
        f" Mantel p = {found.p:.4f}); largest {largest:.4f}, a test to itself"
        f" {floor:.4f}",
        repeated=verdict(found.r, found.p) if largest > NOTHING else "not shown: none to speak of",
    )


def listed(values: Numbers) -> str:
    return ", ".join(f"{one:.0f}" for one in values)


# Images ----------------------------------------------------------------------------------------


def of_digits(read: Read) -> list[Finding]:
    """Findings on sets of images: copies, noise and fewer classes."""
    return [one for rule, areas in read.rules() for one in by_rule(read, rule, areas)]


def by_rule(read: Read, rule: Variant, areas: Numbers) -> list[Finding]:
    """Findings on complexities by one rule."""
    names, drawn = read.outcome.measured.tests, read.drawn(rule)
    whole = names.index("all")
    found = []
    for copies in (2, 4):
        place = names.index(f"copies {copies}")
        ratios = drawn[:, place] / drawn[:, whole]
        ratio = areas[place] / areas[whole]
        is_near = abs(ratio - 1.0) <= CONSTANT
        is_open = np.quantile(ratios, 0.025) <= 1.0 <= np.quantile(ratios, 0.975)
        found.append(
            Finding(
                claim=f"complexity stays if there are {copies} copies of everything, rule {rule}",
                ours=f"{areas[whole]:.0f} and {areas[place]:.0f} parameters, ratio {ratio:.3f}"
                f" {percentiles(ratios.tolist())}; dissimilarity {read.table[whole, place]:.4f}, a"
                f" test to itself {read.outcome.dissimilarities.floor:.4f}",
                repeated=f"{'yes' if is_near else 'not shown' if is_open else 'no'}"
                f" (within {CONSTANT:.0%})",
            )
        )
    for claim, word, full in (
        ("noise raises complexity", "noise", 0.0),
        ("the more classes, the more complex", "classes", 10.0),
    ):
        chosen = [(float(one.split()[1]), names.index(one)) for one in names if word in one]
        chosen = sorted([(full, whole), *chosen])
        parameter = np.array([value for value, _ in chosen])
        places = [place for _, place in chosen]
        labels = ", ".join(f"{one:g}" for one in parameter)
        found.append(
            trend(
                f"{claim}, rule {rule}",
                areas[places],
                parameter,
                percentiles([ranked(one[places], parameter) for one in drawn]),
                f"{labels}: {listed(areas[places])} parameters; ",
                claimed=1,
            )
        )
    return found


# Levels ----------------------------------------------------------------------------------------


def of_levels(read: Read, again: Read | None) -> list[Finding]:
    """Findings on the levels of CartPole3D."""
    levels = [int(test.kwargs["level"]) for test in read.study.tests]  # type: ignore[union-attr]
    at = {level: place for place, level in enumerate(levels)}
    found = [complex_levels(read, at), *pair_of_levels(read, at), dimensions(read), entropies(read)]
    halves = agreement_within(read.outcome)
    found.append(
        Finding(
            claim="(not of the paper) halves of the study agree",
            ours=f"{correlations(halves)} (means of 50 splits)",
            repeated="no claim",
        )
    )
    if again is not None:
        both = agreement(read.outcome, again.outcome)
        tables = mantel(ranks(read.table), ranks(again.table))
        found.append(
            Finding(
                claim="(not of the paper) another study of the same tests agrees",
                ours=f"{correlations(both)} (Mantel p = {tables.p:.4f})",
                repeated="no claim",
            )
        )
    return found


def correlations(found: dict[str, Concordance]) -> str:
    """Of complexity and dissimilarity, in words."""
    return "; ".join(
        f"{name}: Spearman {one.spearman:.2f}, Pearson {one.pearson:.2f} (n = {one.n})"
        for name, one in found.items()
    )


def complex_levels(read: Read, at: dict[int, int]) -> Finding:
    """Levels 1, 8 and 9 by complexity."""
    third = len(at) // 3 + 1
    told = []
    is_top = []
    for rule, curves in (
        (read.outcome.rule, read.outcome.curves),
        (read.outcome.other_rule, read.outcome.others),
    ):
        order = np.argsort([-one.area for one in curves], kind="stable")
        places = {level: int(np.flatnonzero(order == at[level])[0]) + 1 for level in (1, 8, 9)}
        told.append(f"{rule}: " + ", ".join(f"{k} is {v}." for k, v in places.items()))
        is_top.append(all(place <= third for place in places.values()))
    drawn = {
        level: read.interval(
            lambda space, own=at[level]: (
                float((space.complexities > space.complexities[own]).sum()) + 1
            )  # type: ignore[misc]
        )
        for level in (1, 8, 9)
    }
    spread = ", ".join(f"{level} {interval}" for level, interval in drawn.items())
    return Finding(
        claim="levels 1, 8 and 9 are among the most complex",
        ours=f"of {len(at)}, by {'; by '.join(told)} Ranks by the first: {spread}",
        repeated=f"{yes(is_top[0])} (all among the first {third})",
    )


def pair_of_levels(read: Read, at: dict[int, int]) -> list[Finding]:
    """Levels 2 and 3 among all pairs: how far from the others, how near each other."""
    pairs = list(itertools.combinations(range(len(at)), 2))
    own = pairs.index(tuple(sorted((at[2], at[3]))))  # type: ignore[arg-type]
    far = np.array([from_others(read.table, *pair) for pair in pairs])
    near = np.array([read.table[pair] for pair in pairs])
    share_far = float(np.mean(far >= far[own]))
    share_near = float(np.mean(near <= near[own]))
    return [
        Finding(
            claim="levels 2 and 3 are far from the others",
            ours=f"mean dissimilarity to others {far[own]:.4f}, of all pairs {far.mean():.4f};"
            f" {share_far:.0%} of {len(pairs)} pairs are as far",
            repeated=verdict(float(far[own] - far.mean()), share_far),
        ),
        Finding(
            claim="levels 2 and 3 are near each other",
            ours=f"dissimilarity {near[own]:.4f}, of all pairs {near.mean():.4f}, a level to itself"
            f" {read.outcome.dissimilarities.floor:.4f}; {share_near:.0%} of {len(pairs)} pairs are"
            " as near",
            repeated=verdict(float(near.mean() - near[own]), share_near),
        ),
    ]


def from_others(table: Numbers, one: int, other: int) -> float:
    """Mean dissimilarity of two tests to all others."""
    rest = [place for place in range(len(table)) if place not in (one, other)]
    return float(table[np.ix_([one, other], rest)].mean())


def dimensions(read: Read) -> Finding:
    """How many dimensions hold the space."""
    space = read.outcome.space
    held = np.cumsum(space.eigenvalues.clip(min=0.0)) / space.eigenvalues.clip(min=0.0).sum()
    k = int(np.searchsorted(held, 0.95)) + 1
    first = ", ".join(f"{one:.0%}" for one in held[:6])
    return Finding(
        claim="four or five dimensions carry most of the space",
        ours=f"the first hold {first}; {k} hold 95 %; participation number"
        f" {space.participation:.1f} {read.interval(lambda one: one.participation)}; negative mass"
        f" {space.negative_mass:.2f}",
        repeated=f"{yes(k in (4, 5))} (4 or 5 hold 95 %)",
    )


def entropies(read: Read) -> Finding:
    """Entropy beside complexity."""
    if np.isnan(read.outcome.measured.entropies).any():
        return Finding(
            claim="entropy falls while complexity rises",
            ours="not measured: of sets of examples nobody sees anything by acting",
            repeated="not shown",
        )
    rho = spearmanr(read.outcome.measured.entropies, [one.area for one in read.outcome.curves])
    return Finding(
        claim="entropy falls while complexity rises",
        ours=f"Spearman {rho.statistic:.2f} (n = {len(read.table)}, two-sided p ="
        f" {rho.pvalue:.2f})",
        repeated=verdict(-float(rho.statistic), float(rho.pvalue)),
    )


def ranks(table: Numbers) -> Numbers:
    """Ranks of what is above the diagonal, in both triangles."""
    above = np.triu_indices(len(table), 1)
    found = np.zeros_like(table)
    found[above] = np.argsort(np.argsort(table[above]))
    return found + found.T


# Networks that lose nodes ----------------------------------------------------------------------


def of_handicap(path: Path, read: Read | None) -> list[Finding]:
    """Findings on networks whose nodes are taken away, from what `aiq handicap --json` printed."""
    curves = json.loads(path.read_text(encoding="utf-8"))["curves"]
    found = []
    linear = {name: [one[name]["linear_r2"] for one in curves] for name in ("mean", "aiq")}
    parabola = {name: [one[name]["quadratic_r2"] for one in curves] for name in ("mean", "aiq")}
    better = sum(
        one is not None and (other is None or one > other)
        for one, other in zip(linear["aiq"], linear["mean"], strict=True)
    )
    found.append(
        Finding(
            claim="AIQ is closer to linear in nodes than the mean",
            ours=f"R squared of a line, 1 to {len(curves)} layers: AIQ {shares(linear['aiq'])},"
            f" mean {shares(linear['mean'])}; of a parabola: AIQ {shares(parabola['aiq'])}, mean"
            f" {shares(parabola['mean'])}; {trainings(curves)} trainings",
            repeated=f"{'yes' if better == len(curves) else 'no' if not better else 'in part'}"
            f" ({better} of {len(curves)})",
        )
    )
    falls = {name: [one[name]["spearman"] for one in curves] for name in ("mean", "aiq")}
    lowest = min(one or 0.0 for row in falls.values() for one in row)
    found.append(
        Finding(
            claim="both fall with capacity (Spearman near 1)",
            ours=f"AIQ {shares(falls['aiq'])}, mean {shares(falls['mean'])}",
            repeated=f"{yes(lowest >= NEAR_ONE)} (all {NEAR_ONE} or more)",
        )
    )
    whole = {
        name: np.array([np.array(one[name]["by_training"])[:, 0] for one in curves])
        for name in ("mean", "aiq")
    }
    all_steps = {name: float(np.mean(curves[0][name]["by_training"])) for name in ("mean", "aiq")}
    is_so = all_steps["aiq"] < 0.1 and all_steps["mean"] > 3.0 * all_steps["aiq"]
    found.append(
        Finding(
            claim="agents of one layer have an AIQ near 0 at a much higher mean",
            ours=f"whole: AIQ {spread(whole['aiq'][0])}, mean {spread(whole['mean'][0])}; over all"
            f" steps: AIQ {all_steps['aiq']:.3f}, mean {all_steps['mean']:.3f}",
            repeated=f"{yes(is_so)} (over all steps AIQ below 0.1, mean above 3 times it)",
        )
    )
    if read is not None:
        found.append(around_k(curves, read))
    return found


def around_k(curves: list[dict[str, Any]], read: Read) -> Finding:
    """The quotient of whole networks in a dimension fewer and in one more."""
    rows = [np.array(one["performances"])[:, :, 0].mean(axis=0) for one in curves]
    by_k = [around(read.outcome.space, row) for row in rows]
    told = [f"k = {k}: " + ", ".join(f"{one[k].aiq:.3f}" for one in by_k) for k in sorted(by_k[0])]
    return Finding(
        claim="(not of the paper) AIQ of whole networks of 1 and more layers, in k - 1 to k + 1",
        ours="; ".join(told),
        repeated="no claim",
    )


def trainings(curves: list[dict[str, Any]]) -> int:
    return len(curves[0]["performances"])


def shares(values: Sequence[float | None]) -> str:
    return ", ".join("none" if one is None else f"{one:.2f}" for one in values)


def spread(values: Numbers) -> str:
    return f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"


def main() -> None:
    """Print the table of what was given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in (*KEYS, "digits", "levels", "again"):
        parser.add_argument(f"--{name}", type=Path, metavar="DIR", help="folder of a study")
    parser.add_argument("--handicap", type=Path, metavar="FILE", help="of `aiq handicap --json`")
    given = parser.parse_args()
    found: list[Finding] = []
    try:
        for name in KEYS:
            if getattr(given, name) is not None:
                found += of_parameter(name, Read.of(getattr(given, name)))
        if given.digits is not None:
            found += of_digits(Read.of(given.digits))
        levels = None if given.levels is None else Read.of(given.levels)
        again = None if given.again is None else Read.of(given.again)
        if levels is not None:
            found += of_levels(levels, again)
        if given.handicap is not None:
            found += of_handicap(given.handicap, levels)
    except (RoboEvalError, OSError) as err:
        raise SystemExit(f"error: {err}") from err
    print("| claim | here | repeated? |\n|---|---|---|")
    for one in found:
        print(one.row)


if __name__ == "__main__":
    main()
