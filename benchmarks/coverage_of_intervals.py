"""How often the 95 % intervals of robo_eval.stats hold the truth, as a Markdown table.

Where all outcomes can be listed the coverage is exact: the least and the mean over many true
values. Elsewhere it is simulated, with the standard error of the simulation. Run by hand, one
to two minutes: `python benchmarks/coverage_of_intervals.py`, or with a factor on the number of
simulated trials: `python benchmarks/coverage_of_intervals.py 4`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from robo_eval.stats import prediction_powered
from robo_eval.stats.agreement import cohens_kappa, mmrv, pearson, ranking_agreement
from robo_eval.stats.clustered import LEAST_CLUSTERS, new_cluster_difference, new_cluster_rate
from robo_eval.stats.estimate import Estimate
from robo_eval.stats.joint import joint_intervals, sim_real_intervals
from robo_eval.stats.paired import PairedTable, bonett_price_interval, success_ratio_interval
from robo_eval.stats.prediction_powered import prediction_powered_rate
from robo_eval.stats.proportions import (
    clopper_pearson_interval,
    clustered_interval,
    wilson_interval,
)
from robo_eval.stats.rates import burst_interval, garwood_interval, rate_ratio_interval
from robo_eval.stats.resampling import mean_interval, stratified_mean_interval
from robo_eval.stats.sequential import robbins_interval
from robo_eval.stats.unpaired import newcombe_interval

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Ends = tuple[float | None, float | None]
TRIALS = 2000 * (int(sys.argv[1]) if len(sys.argv) > 1 else 1)
RESAMPLES = 1000
SEEDS = itertools.count()  # one seed for all trials would make their errors alike
RATES = np.linspace(0.02, 0.98, 97)
NOISE = 1e-9  # an end that rounding moved past the truth still holds it


def row(interval: str, data: str, coverage: str, width: str) -> None:
    print(f"| {interval} | {data} | {coverage} | {width} |", flush=True)


def exact(interval: str, data: str, coverages: Array, widths: Array) -> None:
    """A row of what was computed by listing all outcomes."""
    row(
        interval,
        data,
        f"{coverages.min():.3f} / {coverages.mean():.3f}, exact",
        f"{widths.mean():.3f}",
    )


def simulated(interval: str, data: str, truth: float, ends: Iterator[Ends]) -> None:
    """A row of what was simulated; a trial without an interval counts as neither."""
    held, widths, trials = 0, [], 0
    for low, high in itertools.islice(ends, TRIALS):
        trials += 1
        if low is None or high is None:
            continue
        held += low - NOISE <= truth <= high + NOISE
        widths.append(high - low)
    n = len(widths)
    coverage = held / n
    error = (coverage * (1.0 - coverage) / n) ** 0.5
    note = f", {1.0 - n / trials:.1%} without" if n < trials else ""
    row(interval, data, f"{coverage:.3f} ± {error:.3f}{note}", f"{np.mean(widths):.3f}")


def ends_of(found: Iterable[Estimate]) -> Iterator[Ends]:
    return ((one.low, one.high) for one in found)


def held_by(low: Array, high: Array, truths: Array) -> NDArray[np.bool_]:
    return (low[:, None] - NOISE <= truths) & (truths <= high[:, None] + NOISE)


def proportions() -> None:
    for name, interval in (
        ("Wilson", wilson_interval),
        ("Clopper-Pearson", clopper_pearson_interval),
    ):
        for n in (10, 20, 50):
            k = np.arange(n + 1)
            low, high = interval(k, n)
            chance = stats.binom.pmf(k[:, None], n, RATES)
            inside = held_by(np.asarray(low), np.asarray(high), RATES)
            exact(
                name,
                f"n = {n}, rates .02 to .98",
                (chance * inside).sum(axis=0),
                ((high - low)[:, None] * chance).sum(axis=0),
            )


def rates() -> None:
    events = np.arange(200)
    expected = np.linspace(0.1, 50.0, 500)
    low, high = garwood_interval(events, 1.0)
    chance = stats.poisson.pmf(events[:, None], expected)
    coverage = (chance * held_by(low, high, expected)).sum(axis=0)
    row(
        "Garwood",
        ".1 to 50 events expected",
        f"{coverage.min():.3f} / {coverage.mean():.3f}, exact",
        "",
    )
    for method in ("score", "exact"):
        coverages = []
        for first, second in itertools.product((3.0, 6.0, 12.0, 25.0), repeat=2):
            a, b = np.divmod(np.arange(90 * 90), 90)
            low, high = rate_ratio_interval(a, 1.0, b, 1.0, method=method)
            inside = held_by(low, high, np.array([first / second]))[:, 0]
            chance = stats.poisson.pmf(a, first) * stats.poisson.pmf(b, second)
            coverages.append((chance * inside).sum())
        data = "3 to 25 events expected a side"
        row(
            f"ratio of rates, {method}",
            data,
            f"{min(coverages):.3f} / {np.mean(coverages):.3f}, exact",
            "",
        )


def bursts() -> None:
    for expected in (2, 3, 8, 20):
        rng = np.random.default_rng(expected)

        def sizes(
            expected: int = expected, rng: np.random.Generator = rng
        ) -> Iterator[NDArray[np.int64]]:
            while True:
                yield rng.geometric(0.3, rng.poisson(expected))

        data = f"{expected} bursts expected, of 3.3 events on average (geometric)"
        truth = expected / 0.3
        simulated("Fay-Feuer", data, truth, (burst_interval(x, 1.0) for x in sizes()))
        alone = (garwood_interval(int(x.sum()), 1.0) for x in sizes())
        simulated("Garwood, misused", data, truth, alone)


def pairs() -> None:
    for n in (20, 50):
        b, c = np.divmod(np.arange((n + 1) ** 2), n + 1)
        b, c = b[b + c <= n], c[b + c <= n]
        low, high = bonett_price_interval(b, c, n)
        coverages, widths = [], []
        for p1, p2 in itertools.product((0.02, 0.05, 0.1, 0.2, 0.4), repeat=2):
            chance = stats.multinomial.pmf(
                np.stack([b, c, n - b - c], axis=1), n, [p1, p2, 1.0 - p1 - p2]
            )
            inside = held_by(low, high, np.array([p1 - p2]))[:, 0]
            coverages.append((chance * inside).sum())
            widths.append((chance * (high - low)).sum())
        exact(
            "Bonett-Price",
            f"{n} pairs, discordant .04 to .8",
            np.array(coverages),
            np.array(widths),
        )
    n = 20
    tables = [
        PairedTable(both=a, only_first=b, only_second=c, neither=n - a - b - c)
        for a in range(n + 1)
        for b in range(n + 1 - a)
        for c in range(n + 1 - a - b)
    ]
    ends = np.array([success_ratio_interval(table) or (0.0, np.inf) for table in tables])
    counts = np.array([[t.both, t.only_first, t.only_second, t.neither] for t in tables])
    coverages = []
    for nominal, kept in itertools.product((0.6, 0.8, 0.95), (0.1, 0.25, 0.5, 0.75, 0.95)):
        both, first = nominal * kept, 0.1 * (1.0 - nominal)
        second = nominal - both
        chance = stats.multinomial.pmf(counts, n, [both, first, second, 1.0 - nominal - first])
        truth = (both + first) / nominal
        inside = held_by(ends[:, 0], ends[:, 1], np.array([truth]))[:, 0]
        coverages.append((chance * inside).sum())
    data = f"{n} pairs, .6 to .95 succeed, .1 to .95 of it kept"
    shown = np.array(coverages)
    row("ratio of matched rates, score", data, f"{shown.min():.3f} / {shown.mean():.3f}, exact", "")


def unpaired() -> None:
    for n in (10, 30):
        k1, k2 = np.divmod(np.arange((n + 1) ** 2), n + 1)
        low, high = newcombe_interval(k1, n, k2, n)
        coverages, widths = [], []
        for p1, p2 in itertools.product(np.linspace(0.05, 0.95, 19), repeat=2):
            chance = stats.binom.pmf(k1, n, p1) * stats.binom.pmf(k2, n, p2)
            inside = held_by(low, high, np.array([p1 - p2]))[:, 0]
            coverages.append((chance * inside).sum())
            widths.append((chance * (high - low)).sum())
        exact("Newcombe", f"{n} a side, rates .05 to .95", np.array(coverages), np.array(widths))


def peeking() -> None:
    """Whether no look of 200 misses: a series that has missed once is out."""
    looks = range(1, 201)
    for name, interval in (
        ("Robbins", robbins_interval),
        ("Clopper-Pearson, misused", clopper_pearson_interval),
    ):
        ends = [interval(np.arange(n + 1), n) for n in looks]
        coverages, widths = [], []
        for p in np.linspace(0.05, 0.95, 19):
            widths.append(stats.binom.pmf(np.arange(201), 200, p) @ (ends[-1][1] - ends[-1][0]))
            alive = np.ones(1)
            for low, high in ends:
                alive = p * np.append(0.0, alive) + (1.0 - p) * np.append(alive, 0.0)
                alive = np.where((p < low - NOISE) | (p > high + NOISE), 0.0, alive)
            coverages.append(alive.sum())
        exact(
            name,
            "all of 200 looks, rates .05 to .95",
            np.array(coverages),
            np.array(widths),
        )


def means() -> None:
    truth = 5.0 / 6.0
    for n, name in ((5, "Student t"), (10, "BCa"), (30, "BCa")):
        rng = np.random.default_rng(n)

        def ends(n: int = n, rng: np.random.Generator = rng) -> Iterator[Ends]:
            while True:
                found = mean_interval(rng.beta(5.0, 1.0, n), resamples=2000, seed=next(SEEDS))
                yield found.low, found.high

        simulated(name, f"mean of {n} qualities, beta(5, 1)", truth, ends())


def few_real_many_simulated() -> None:
    for n, agreement in itertools.product((20, 30, 50, 100), (0.7, 0.9)):
        rng = np.random.default_rng(n)

        def ends(
            n: int = n, agreement: float = agreement, rng: np.random.Generator = rng
        ) -> Iterator[Ends]:
            while True:
                real = rng.random(n + 2000) < 0.7
                sim = real ^ (rng.random(n + 2000) > agreement)
                found = prediction_powered_rate(real[:n], sim[:n], sim[n:]).estimate
                yield found.low, found.high

        refused = n < prediction_powered.LEAST_PAIRS
        simulated(
            "prediction-powered" + (", refused" if refused else ""),
            f"{n} pairs that agree in {agreement:.0%}, 2000 sim only, rate .7",
            0.7,
            with_any_number_of_pairs(ends()) if refused else ends(),
        )


def with_any_number_of_pairs(ends: Iterator[Ends]) -> Iterator[Ends]:
    """What would be given below the number of pairs at which it is refused."""
    least = prediction_powered.LEAST_PAIRS
    prediction_powered.LEAST_PAIRS = 3  # type: ignore[misc]
    try:
        yield from itertools.islice(ends, TRIALS)
    finally:
        prediction_powered.LEAST_PAIRS = least  # type: ignore[misc]


def clusters() -> None:
    for t, n in ((2, 100), (3, 100), (5, 100), (8, 100), (8, 10), (20, 10)):
        mean = 0.85
        rng = np.random.default_rng((t, n))

        def counts(t: int = t, n: int = n, rng: np.random.Generator = rng) -> Iterator[Counts]:
            while True:
                yield rng.binomial(n, rng.beta(5.1, 0.9, t))

        data = f"{t} tasks of {n} episodes, rates beta of mean {mean}, concentration 6"
        if t >= LEAST_CLUSTERS:
            found = ends_of(new_cluster_rate(k, n) for k in counts())
            simulated("tasks like these, beta-binomial", data, mean, found)
        pooled = (wilson_interval(int(k.sum()), t * n) for k in counts())
        simulated("Wilson, pooled, misused", data, mean, pooled)
    for t, extremes in itertools.product((5, 20), (False, True)):
        rng = np.random.default_rng(t)
        found = (
            new_cluster_rate(rng.binomial(50, rng.beta(0.2, 0.05, t)), 50, extremes=extremes)
            for _ in itertools.count()
        )
        simulated(
            f"tasks like these, {'extremes' if extremes else 'beta-binomial, misused'}",
            f"{t} tasks of 50 episodes, rates beta of mean 0.8, concentration 0.25",
            0.8,
            ends_of(found),
        )
    for t in (3, 5, 8):
        rng = np.random.default_rng(t)

        def pairs(t: int = t, rng: np.random.Generator = rng) -> Iterator[tuple[Counts, Counts]]:
            while True:
                real = rng.random((t, 100)) < rng.beta(5.1, 0.9, (t, 1))
                promised = rng.random((t, 100)) < 0.95
                yield (real & ~promised).sum(axis=1), (promised & ~real).sum(axis=1)

        simulated(
            "difference in tasks like these",
            f"{t} tasks of 100 pairs, real rates beta of mean 0.85, simulated 0.95",
            -0.10,
            ends_of(new_cluster_difference(first, second, 100) for first, second in pairs()),
        )
    rng = np.random.default_rng(0)
    simulated(
        "Korn-Graubard",
        "5 seeds of 10 episodes, rates beta(8, 2)",
        0.8,
        (
            clustered_interval(rng.binomial(10, rng.beta(8.0, 2.0, 5)) / 10, 50)
            for _ in itertools.count()
        ),
    )
    strata = np.linspace(0.3, 0.9, 6)
    simulated(
        "stratified bootstrap",
        "these 6 tasks, 10 episodes each",
        float(strata.mean()),
        ends_of(
            stratified_mean_interval(
                list((rng.random((6, 10)) < strata[:, None]) * 1.0),
                over="these",
                resamples=RESAMPLES,
                seed=next(SEEDS),
            )
            for _ in itertools.count()
        ),
    )


def sim_and_real() -> None:
    for n, cells in (
        (20, (0.70, 0.10, 0.10, 0.10)),
        (20, (0.70, 0.15, 0.05, 0.10)),
        (200, (0.70, 0.10, 0.10, 0.10)),
        (200, (0.70, 0.12, 0.08, 0.10)),
        (2000, (0.70, 0.10, 0.10, 0.10)),
        (2000, (0.70, 0.15, 0.05, 0.10)),
    ):
        both, only_sim, only_real, _ = cells
        real, gap = both + only_real, only_sim - only_real
        agreement = 1.0 - abs(gap)
        index = float(np.cbrt(real * 0.95 * agreement))
        found: dict[str, list[Ends]] = {"folded": [], "percentile": [], "index": [], "plain": []}
        rng = np.random.default_rng(n)
        outcomes = np.array([(1, 1), (1, 0), (0, 1), (0, 0)])
        for _ in range(TRIALS // 2):
            table = np.repeat(outcomes, rng.multinomial(n, cells), axis=0)
            ours = sim_real_intervals(*table.T, safety=0.95, resamples=RESAMPLES, seed=next(SEEDS))
            one, other = joint_intervals(
                table,
                [
                    lambda means: 1.0 - np.abs(means[:, 0] - means[:, 1]),
                    lambda means: np.cbrt(
                        means[:, 1] * 0.95 * (1.0 - np.abs(means[:, 0] - means[:, 1]))
                    ),
                ],
                resamples=RESAMPLES,
                seed=next(SEEDS),
            )
            for name, statistic in zip(
                found, (ours.agreement, one, ours.index, other), strict=True
            ):
                found[name].append((statistic.low, statistic.high))
        data = f"{n} pairs, difference {gap:.2f}"
        for name, label, truth in (
            ("folded", "S2R, Bonett-Price folded", agreement),
            ("percentile", "S2R, percentile, misused", agreement),
            ("index", "E, joint bootstrap", index),
            ("plain", "E, percentile, misused", index),
        ):
            simulated(label, data, truth, iter(found[name]))


def rankings() -> None:
    rng = np.random.default_rng(8)
    corr = np.array([[1.0, 0.9], [0.9, 1.0]])
    for policies in (4, 6, 12):
        simulated(
            "Pearson r, Fisher",
            f"{policies} policies, normal, r = .9",
            0.9,
            ends_of(
                pearson(*rng.multivariate_normal((0.0, 0.0), corr, policies).T)
                for _ in itertools.count()
            ),
        )
    sim, real = (
        np.array([0.9, 0.75, 0.7, 0.4, 0.3, 0.1]),
        np.array([0.85, 0.8, 0.6, 0.45, 0.2, 0.1]),
    )
    sim_swapped = sim[[1, 0, 2, 4, 3, 5]]
    for label, rates_sim in (("same order", sim), ("two swaps", sim_swapped)):
        r, violation = float(np.corrcoef(rates_sim, real)[0, 1]), mmrv(rates_sim, real)
        found: dict[str, list[Ends]] = {"r": [], "mmrv": []}
        for _ in range(TRIALS // 2):
            agreement = ranking_agreement(
                list((rng.random((6, 50)) < rates_sim[:, None]) * 1.0),
                list((rng.random((6, 50)) < real[:, None]) * 1.0),
                paired=False,
                resamples=RESAMPLES,
                seed=next(SEEDS),
            )
            found["r"].append((agreement.pearson.low, agreement.pearson.high))
            found["mmrv"].append((agreement.mmrv.low, agreement.mmrv.high))
        data = f"6 policies of 50 and 50 episodes, {label}"
        simulated("Pearson r, bootstrap of episodes", data, r, iter(found["r"]))
        lower = [(low, 1.0) for low, _ in found["r"]]
        simulated("the same, its lower end alone", data, r, iter(lower))
        simulated("MMRV, bootstrap of episodes", data, violation, iter(found["mmrv"]))
    p = np.array([[0.4, 0.1], [0.15, 0.35]])
    chance = float(p.sum(axis=1) @ p.sum(axis=0))
    truth = (float(np.trace(p)) - chance) / (1.0 - chance)
    for n in (30, 100):
        simulated(
            "Cohen's kappa",
            f"{n} ratings, kappa .5",
            truth,
            ends_of(
                cohens_kappa(rng.multinomial(n, p.ravel()).reshape(2, 2)) for _ in itertools.count()
            ),
        )


def main() -> None:
    """Print the table."""
    print("| interval | data | coverage | mean width |")
    print("|---|---|---|---|")
    for part in (
        proportions,
        rates,
        bursts,
        pairs,
        unpaired,
        peeking,
        means,
        few_real_many_simulated,
        clusters,
        sim_and_real,
        rankings,
    ):
        part()


if __name__ == "__main__":
    main()
