"""How often what `metrics` and `dose` show at 95 % holds the truth where that is hardest.

One Markdown table over sizes, means, tasks, repeated seeds and how much they differ: of each kind
of number the least and the mean coverage of its cells, and the least share of trials that had an
interval. What has few outcomes is exact, the rest is simulated with the product's own functions,
all trials of a cell as policies of one table. Run by hand, some minutes: `python
benchmarks/coverage_grid.py`, or with the number of simulated trials a cell.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from robo_eval.core.estimate import Estimate
from robo_eval.metrics.agreement import compare_sides
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.control import quality_of_control
from robo_eval.metrics.effects import novelty_effects
from robo_eval.metrics.performance import cells, policies, success_estimate

Array = NDArray[np.float64]
TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
CONFIG = MetricConfig(resamples=1000)
SIZES = (5, 10, 20, 50)
MEANS = (0.02, 0.5, 0.9, 0.98)
CONCENTRATIONS = (1.0, 8.0)  # of the beta distributions that qualities, seeds and tasks come from
TASKS = (2, 3, 5, 20)
SPREADS = (0.25, 1.0, 8.0)  # concentrations of the rates of tasks; most succeed always or never
POINTS = 5  # of a dose curve, the one without novelty among them
NOISE = 1e-6
Cell = tuple[float, list[Estimate]]


def row(what: str, data: str, cells_of: Iterable[Cell]) -> None:
    """Print the least and the mean coverage over the cells."""
    coverages, shares, widths = [], [], []
    for truth, found in cells_of:
        known = [one for one in found if one.low is not None and one.high is not None]
        shares.append(len(known) / len(found))
        if known:
            held = [one.low - NOISE <= truth <= one.high + NOISE for one in known]
            coverages.append(np.mean(held))
            widths.append(np.mean([one.high - one.low for one in known]))
    error = (min(coverages) * (1.0 - min(coverages)) / TRIALS) ** 0.5
    line(
        what,
        data,
        f"{min(coverages):.3f} ± {error:.3f}",
        f"{np.mean(coverages):.3f}",
        f"{min(shares):.0%}",
        f"{np.mean(widths):.2f}",
    )


def line(*cells_of: str) -> None:
    print("| " + " | ".join(cells_of) + " |", flush=True)


def table(quality: Array, **columns: object) -> pd.DataFrame:
    """Episodes of trials, shape (trials, n), each trial a policy; columns of shape (n,)."""
    trials, n = quality.shape
    flat = quality.ravel()
    success = flat >= 0.999
    made = pd.DataFrame(
        {
            "episode_id": [f"{columns.get('name', 'e')}-{i}" for i in range(flat.size)],
            "side": columns.get("side", "sim"),
            "policy": np.repeat([f"p{i:04}" for i in range(trials)], n),
            "quality": flat,
            "success": success,
            "end_reason": np.where(success, "success", "failure"),
        }
    )
    for name in ("task", "seed", "level", "pair_id", "control_id", "arm"):
        if name in columns:
            made[name] = np.resize(np.asarray(columns[name], dtype=object), flat.size)
    return made if "task" in made else made.assign(task="t")


def beta(
    mean: float, concentration: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Array:
    return rng.beta(mean * concentration, (1.0 - mean) * concentration, shape)


def grid() -> Iterator[tuple[int, float, float, np.random.Generator]]:
    for n, mean, concentration in itertools.product(SIZES, MEANS, CONCENTRATIONS):
        yield (
            n,
            mean,
            concentration,
            np.random.default_rng((n, int(100 * mean), int(concentration))),
        )


def qualities() -> Iterator[Cell]:
    for n, mean, concentration, rng in grid():
        found = cells(
            table(beta(mean, concentration, (TRIALS, n), rng), seed=range(n)), config=CONFIG
        )
        yield mean, [one.performance for one in found]


def successes(repeats: int) -> Iterator[Cell]:
    for n, mean, concentration, rng in grid():
        chance = np.full((TRIALS, n), mean)
        if repeats > 1:
            chance = beta(mean, concentration, (TRIALS, n), rng)
        outcome = (rng.random((TRIALS, n, repeats)) < chance[:, :, None]).reshape(TRIALS, -1) * 1.0
        found = cells(table(outcome, seed=np.repeat(range(n), repeats)), config=CONFIG)
        yield mean, [one.success for one in found]


def over_seeds() -> Iterator[Cell]:
    for n, mean, concentration, rng in grid():
        of_seed = beta(mean, concentration, (TRIALS, 1, n), rng)
        outcome = (rng.random((TRIALS, 3, n)) < of_seed).reshape(TRIALS, -1) * 1.0
        frame = table(outcome, seed=np.tile(range(n), 3), level=np.repeat((1, 2, 3), n))
        yield mean, [one.performance for one in policies(frame, config=CONFIG)]


def of_these() -> Iterator[Cell]:
    for n, mean, _, rng in grid():
        means = np.clip(mean + np.array([-0.4, 0.0, 0.4]), 0.0, 1.0)
        outcome = (rng.random((TRIALS, 3, n)) < means[:, None]).reshape(TRIALS, -1) * 1.0
        frame = table(outcome, seed=range(3 * n), level=np.repeat((1, 2, 3), n))
        yield float(means.mean()), [one.performance for one in policies(frame, config=CONFIG)]


def like_these(tasks: int) -> Iterator[Cell]:
    for n, mean, spread in itertools.product((10, 50), (0.02, 0.5, 0.8), SPREADS):
        rng = np.random.default_rng((tasks, n, int(100 * mean), int(100 * spread)))
        chance = beta(mean, spread, (TRIALS, tasks, 1), rng)
        outcome = (rng.random((TRIALS, tasks, n)) < chance).reshape(TRIALS, -1) * 1.0
        names = np.repeat([f"t{i}" for i in range(tasks)], n)
        frame = table(outcome, seed=range(tasks * n), task=names)
        yield mean, [one.performance_elsewhere for one in policies(frame, config=CONFIG)]


def control() -> Iterator[Cell]:
    for n, mean, concentration, rng in grid():
        # Most episodes are within the tolerance, or all of them beyond.
        credit = np.round(beta(mean, concentration, (4 * TRIALS * n,), rng), 1)
        truth = float(credit.mean())
        yield (
            truth,
            [
                quality_of_control({"x": 2.0 - own}, {"x": 1.0}, config=CONFIG)
                for own in rng.choice(credit, (TRIALS, n))
            ],
        )


def effects() -> Iterator[Cell]:
    for n, mean, _, rng in grid():
        control_quality = beta(0.9, 8.0, (TRIALS, n), rng)
        lost = rng.random((TRIALS, n)) < mean * 0.5
        kept = np.where(lost, 0.0, control_quality)
        names = [f"control-{i}" for i in range(TRIALS * n)]
        frame = pd.concat(
            [
                table(control_quality, name="control", seed=range(n), arm=["control"], level=[0]),
                table(kept, seed=range(n), level=[1], control_id=names, arm=["main"]),
            ]
        )
        found = novelty_effects(frame, config=CONFIG).cells
        yield -0.45 * mean, [one.difference for one in found]


def pairs(repeats: int, trials: int) -> Iterator[Cell]:
    for n, mean, concentration, rng in grid():
        found = []
        for _ in range(trials):
            real = beta(mean, concentration, (n, 1), rng)
            gap = 0.1 if mean <= 0.5 else -0.1
            shape = (n, repeats)
            draw = rng.random(shape)
            one, other = draw < real, np.where(rng.random(shape) < 0.6, draw, rng.random(shape))
            two = other < np.clip(real + gap, 0.0, 1.0)
            found.append(_gap(one * 1.0, two * 1.0, np.repeat(range(n), repeats)))
        drawn = beta(mean, concentration, (400_000,), rng)
        yield float(np.mean(drawn - np.clip(drawn + gap, 0.0, 1.0))), found


def _gap(real: Array, sim: Array, seeds: NDArray[np.int64]) -> Estimate:
    names = [f"pair-{i}" for i in range(real.size)]
    levels = np.resize(np.arange(1, real.shape[1] + 1), real.size)
    columns = {"seed": seeds, "pair_id": names, "level": levels}
    frame = pd.concat(
        [
            table(side.reshape(1, -1), name=name, side=name, **columns)
            for name, side in (("real", real), ("sim", sim))
        ]
    )
    return compare_sides(frame, config=CONFIG).difference


def contexts(trials: int) -> Iterator[Cell]:
    mass = np.array([0.2, 0.3, 0.5])
    for n, mean in itertools.product(SIZES, (0.1, 0.5, 0.9)):
        rng = np.random.default_rng((n, int(100 * mean)))
        rates = {"real": np.clip(mean + np.array([0.1, 0.0, -0.1]), 0, 1)}
        rates["sim"] = np.clip(rates["real"] + 0.05, 0.0, 1.0)
        found = []
        for _ in range(trials):
            frames = []
            for side, size, mixture in (("real", n, mass), ("sim", 5 * n, np.full(3, 1 / 3))):
                level = rng.choice(3, size, p=mixture)
                outcome = (rng.random(size) < rates[side][level]) * 1.0
                frames.append(
                    table(outcome[None], name=side, side=side, level=level + 1, seed=range(size))
                )
            found.append(compare_sides(pd.concat(frames), config=CONFIG).difference)
        yield float(mass @ (rates["real"] - rates["sim"])), found


def dose() -> None:
    """Whether all points of a curve hold together, exact."""
    level = 1.0 - 0.05 / POINTS
    coverages, widths = [], []
    for n, mean in itertools.product(SIZES, np.linspace(0.02, 0.98, 97)):
        found = [success_estimate(k, n, exact=True, level=level) for k in range(n + 1)]
        chance = stats.binom.pmf(np.arange(n + 1), n, mean)
        held = np.array([one.low - NOISE <= mean <= one.high + NOISE for one in found])
        coverages.append((chance @ held) ** POINTS)
        widths.append(chance @ np.array([one.high - one.low for one in found]))
    line(
        "band of a dose curve",
        f"{POINTS} magnitudes of n 5 to 50, all of one mean",
        f"{min(coverages):.3f}, exact",
        f"{np.mean(coverages):.3f}",
        "100%",
        f"{np.mean(widths):.2f}",
    )


def main() -> None:
    """Print the table."""
    line("number", "data", "least coverage", "mean coverage", "shown at least", "mean width")
    line(*["---"] * 6)
    sizes = "n 5 to 50, means .02 to .98"
    row("mean quality", f"{sizes}, beta", qualities())
    row("success", sizes, successes(1))
    row("success, seeds repeat", f"{sizes}, three a seed, rates of seeds beta", successes(3))
    row("performance by seeds", f"{sizes}, three conditions share seeds", over_seeds())
    row("performance, seeds of their own", f"{sizes}, three conditions 0.4 apart", of_these())
    for tasks in TASKS:
        data = f"{tasks} tasks of 10 and 50 episodes, means .02 to .8, rates of tasks beta"
        row("performance in conditions like these", data, like_these(tasks))
    row("QC", f"{sizes}, credits beta", control())
    row("novelty effect", "n 5 to 50, every so often all is lost", effects())
    few = max(TRIALS // 3, 30)
    row("AR_gap of pairs", f"{sizes}", pairs(1, few))
    row("AR_gap of pairs, seeds repeat", f"{sizes}, three a seed", pairs(3, few))
    row("AR_gap by contexts", "n 5 to 50 and five times as many simulated", contexts(few))
    dose()


if __name__ == "__main__":
    main()
