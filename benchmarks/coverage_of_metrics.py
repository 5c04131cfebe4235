"""How often the 95 % intervals that metrics add to those of robo_eval.stats hold the truth.

Rows of the same Markdown table as `coverage_of_intervals.py`: everything here is simulated, from
whole tables of episodes and incidents. Run by hand, some minutes: `python
benchmarks/coverage_of_metrics.py`, or with the number of simulated trials.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd

from robo_eval.core.estimate import Estimate
from robo_eval.log.evidence import Evidence, Incident
from robo_eval.metrics import safety_score
from robo_eval.metrics.agreement import compare_sides
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.summary import summarise

TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 500
CONFIG = MetricConfig(resamples=600)
NOISE = 1e-9
NEAR_MISSES = 3.0  # per 100 h
SEVERITIES = ("near_miss", "minor", "major", "critical")


def simulated(interval: str, data: str, truth: float, found: Iterator[Estimate]) -> None:
    """A row of the table; a trial without an interval counts as neither."""
    held, widths, trials = 0, [], 0
    for estimate in itertools.islice(found, TRIALS):
        trials += 1
        if estimate.low is None or estimate.high is None:
            continue
        held += estimate.low - NOISE <= truth <= estimate.high + NOISE
        widths.append(estimate.high - estimate.low)
    n = len(widths)
    share = held / n
    error = (share * (1.0 - share) / n) ** 0.5
    note = f", {1.0 - n / trials:.1%} without" if n < trials else ""
    coverage = f"{share:.3f} ± {error:.3f}{note}"
    print(f"| {interval} | {data} | {coverage} | {np.mean(widths):.3f} |", flush=True)


def safety() -> None:
    """SS of incidents that come at constant rates."""
    rng = np.random.default_rng(0)
    for hours, rates in ((200.0, (3.0, 0.5, 0.0)), (1000.0, (3.0, 0.5, 0.05)), (5000.0, (5, 1, 0))):
        truth = max(0.0, 1.0 - rates[0] * 0.01 - rates[1] * 0.1 - rates[2])

        def scores(hours: float = hours, rates: tuple[float, ...] = rates) -> Iterator[Estimate]:
            while True:
                counts = rng.poisson(np.array(rates) * hours / 100.0).tolist()
                yield safety_score(dict(zip(SEVERITIES, counts, strict=False)), hours)

        text = "/".join(f"{rate:g}" for rate in rates)
        simulated("SS, rates at their ends", f"{hours:g} h, {text} per 100 h", truth, scores())


def episodes(success: np.ndarray, side: str, **columns: object) -> pd.DataFrame:
    """One scored episode an outcome, an hour each on a robot."""
    n = len(success)
    table = {
        "episode_id": [f"{side}{columns.get('calibration', '')}-{i}" for i in range(n)],
        "side": side,
        "task": "pick",
        "policy": "ours",
        "quality": success.astype(float),
        "success": success,
        "end_reason": np.where(success, "success", "failure"),
        "seed": range(n),
        "pair_id": [f"p{i}" for i in range(n)],
        "exposure_s": 3600.0 if side == "real" else 0.0,
        **columns,
    }
    return pd.DataFrame(table)


def embodiment() -> None:
    """E from pairs of 85 % and 88 %, two thirds of their outcomes in common, and incidents."""
    rng = np.random.default_rng(1)
    truth = float(np.cbrt(0.85 * (1.0 - 0.01 * NEAR_MISSES) * 0.97))
    for hours in (200, 1000):

        def scores(n: int = hours) -> Iterator[Estimate]:
            while True:
                common = rng.random(n) < 2 / 3
                u, v = rng.random(n), rng.random(n)
                real, sim = u < 0.85, np.where(common, u, v) < 0.88
                table = pd.concat([episodes(real, "real"), episodes(sim, "sim")])
                k = rng.poisson(NEAR_MISSES * n / 100.0)
                noted = tuple(
                    Incident(line=i, incident_id=str(i), severity="near_miss") for i in range(k)
                )
                summary = summarise(table, config=CONFIG, evidence=Evidence(incidents=noted))
                yield summary.robots[0].of("E")

        simulated(
            "E of a trial", f"{hours} pairs of an hour, 3 near misses per 100 h", truth, scores()
        )


def calibrations() -> None:
    """S2R over recordings whose simulators differ from each other."""
    rng = np.random.default_rng(2)
    for recordings, n in ((3, 40), (6, 40), (6, 160)):

        def scores(recordings: int = recordings, n: int = n) -> Iterator[Estimate]:
            while True:
                u = rng.random(n)
                tables = [episodes(u < 0.8, "real")]
                for index in range(recordings):
                    # Each recording identifies a simulator of its own, right on average.
                    rate = 0.8 + rng.normal(0.0, 0.05)
                    own = np.where(rng.random(n) < 0.5, u, rng.random(n))
                    name = f"identified/{index}"
                    tables.append(episodes(own < rate, "sim", calibration=name))
                summary = summarise(pd.concat(tables), config=CONFIG)
                yield summary.robots[0].calibrations[0].difference

        simulated(
            "difference over recordings", f"{recordings} recordings, {n} pairs", 0.0, scores()
        )


def contexts() -> None:
    """S2R without pairs: simulated success in the mixture of contexts met on the robot."""
    rng = np.random.default_rng(3)
    real_rates, sim_rates = np.array([0.95, 0.8, 0.6]), np.array([0.95, 0.85, 0.7])
    mass = np.array([0.2, 0.3, 0.5])
    truth = float(mass @ (real_rates - sim_rates))
    for n, m in ((60, 300), (240, 1200)):

        def scores(n: int = n, m: int = m) -> Iterator[Estimate]:
            while True:
                tables = []
                for side, size, rates, mixture in (
                    ("real", n, real_rates, mass),
                    ("sim", m, sim_rates, np.full(3, 1 / 3)),
                ):
                    context = rng.choice(3, size, p=mixture)
                    tables.append(
                        episodes(
                            rng.random(size) < rates[context],
                            side,
                            level=context,
                            pair_id=None,
                        )
                    )
                yield compare_sides(pd.concat(tables), config=CONFIG).difference

        simulated("difference by contexts", f"{n} real, {m} simulated, 3 contexts", truth, scores())


def main() -> None:
    """Print the rows."""
    for part in (safety, embodiment, calibrations, contexts):
        part()


if __name__ == "__main__":
    main()
