"""How long metrics of a large log take, how that grows, and the bootstrap beside scipy's.

A process for each size writes a table of episodes as `robo_eval export` does, reads it back, checks
it and computes everything a summary holds, with 2,000 resamples an interval and 20,000 incidents
read from their file. Printed are seconds by step, peak memory, and the slope of
seconds over rows, both on logarithmic scales: 1 is linear. With `--large` 10,000,000 rows follow;
they are made in memory, with the columns that metrics read, and need more than 17 GB.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RESAMPLES: Final = 2000
SIZES: Final = (10_000, 100_000, 1_000_000)
LARGE: Final = 10_000_000
INCIDENTS: Final = {"near_miss": 16_000, "minor": 3_600, "major": 400}
POLICIES: Final = ("one", "two")
FAMILIES: Final = ("balance", "push", "pick", "stack")
LEVELS: Final = (0, 1, 2, 3, 4)
DIFFICULTIES: Final = ("easy", "medium", "hard")
UNSCORED: Final = 0.02
"""Share of the episodes that ended by a fault, or were declared void."""


def columns_of(n: int, *, shared_seeds: bool) -> dict[str, NDArray[Any]]:
    """A trial of n episodes: 2 policies, simulated and real, 60 conditions, every one a pair.

    Args:
        n: Episodes; a multiple of 240 is played, the rest left out.
        shared_seeds: Whether each condition is played from the same seeds; else each has its own.

    Returns:
        Columns of `core.episode.Episode` by name, each of shape (n,); others keep their default.
    """
    rng = np.random.default_rng(0)
    sides, conditions = 2, len(FAMILIES) * len(LEVELS) * len(DIFFICULTIES)
    per_cell = max(1, n // (len(POLICIES) * sides * conditions))
    shape = (len(POLICIES), conditions, per_cell, sides)
    policy, condition, index, side = (axis.ravel() for axis in np.indices(shape))
    pair = (policy * conditions + condition) * per_cell + index
    difficulty = condition % 3
    level = condition // 3 % len(LEVELS)
    family = condition // (3 * len(LEVELS))
    # What both sides of a pair share, and what each adds.
    skill = 0.9 - 0.05 * level - 0.05 * difficulty - 0.1 * policy
    shared = rng.beta(4.0, 1.0, pair.max() + 1)[pair]
    quality = np.clip(shared * skill / 0.8 + rng.normal(0.0, 0.05, pair.size), 0.0, 1.0)
    quality = np.round(quality * 200.0) / 200.0
    success = quality >= 0.8
    end = np.where(success, "success", "failure").astype(object)
    lost = rng.random(pair.size) < UNSCORED
    end[lost] = rng.choice(np.array(["fault", "void"], dtype=object), int(lost.sum()))
    quality[lost] = np.nan
    detail = np.where(end == "void", "interrupted", None).astype(object)
    scored: NDArray[Any] = success.astype(object)
    scored[lost] = None
    names = _texts("pair-", pair)
    side_name = np.array(["sim", "real"], dtype=object)[side]
    # Level 0 is the match of each other level.
    match = pair - level * 3 * per_cell
    is_novel = level > 0
    control = _texts("e-", match * 2 + side)
    control[~is_novel] = None
    robot = np.full(pair.size, None, dtype=object)
    robot[side == 1] = "arm-1"
    return {
        "episode_id": _texts("e-", pair * 2 + side),
        "pair_id": names,
        "control_id": control,
        "plan_digest": _same("0" * 64, pair.size),
        "side": side_name,
        "task": np.array([f"Bench/{name}-v0" for name in FAMILIES], dtype=object)[family],
        "family": np.array(FAMILIES, dtype=object)[family],
        "level": level,
        "difficulty": np.array(DIFFICULTIES, dtype=object)[difficulty],
        "profile": _same("paper", pair.size),
        "seed": index if shared_seeds else condition * per_cell + index,
        "policy": np.array(POLICIES, dtype=object)[policy],
        "policy_digest": np.array(["1" * 64, "2" * 64], dtype=object)[policy],
        "robot": robot,
        "start_ns": 1_700_000_000_000_000_000 + np.arange(pair.size) * 5_000_000_000,
        "duration_s": np.full(pair.size, 4.0),
        "exposure_s": np.where(side == 1, 4.0, 0.0),
        "ticks": np.full(pair.size, 200),
        "episode_return": quality * 200.0,
        "quality": quality,
        "success": scored,
        "end_reason": end,
        "end_detail": detail,
        "software": _same("robo-eval", pair.size),
        "control_quality": _same('{"jerk_rms":0.1}', pair.size),
        "initial_state": _same('{"angle_rad":0.05}', pair.size),
    }


def _texts(prefix: str, numbers: NDArray[Any]) -> NDArray[np.object_]:
    return np.array([f"{prefix}{number}" for number in numbers.tolist()], dtype=object)


def _same(text: str, n: int) -> NDArray[np.object_]:
    return np.full(n, text, dtype=object)


def write_log(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write a table in the form of `robo_eval export`, without an object for each episode."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from robo_eval.log.export import parquet_schema

    n = len(columns["episode_id"])
    defaults = {
        "attempt": 1, "arm": "main", "score_version": 1, "recovered": False, "interventions": 0,
        "control_quality": "{}", "costs": "{}", "novelty": "{}", "initial_state": "{}",
        "initial_state_source": "seed",
    }  # fmt: skip
    arrays = []
    for field in parquet_schema():
        if field.name in columns:
            arrays.append(pa.array(columns[field.name], type=field.type, from_pandas=True))
        else:
            arrays.append(pa.array([defaults.get(field.name)], type=field.type).take(_zeros(n)))
    table = pa.Table.from_arrays(arrays, schema=parquet_schema())
    pq.write_table(table, path, compression="zstd")


def _zeros(n: int) -> Any:
    import pyarrow as pa

    return pa.array(np.zeros(n, dtype=np.int64))


def read(path: Path) -> pd.DataFrame:
    """The table of a log."""
    from robo_eval.log.export import read_episodes

    return read_episodes(path)


def made(n: int, *, shared_seeds: bool) -> pd.DataFrame:
    """A table without a log."""
    columns = columns_of(n, shared_seeds=shared_seeds)
    for name in ("control_quality", "initial_state", "start_ns", "plan_digest", "software"):
        del columns[name]
    # With its type said, or pandas copies every text into a column of its own text type.
    return pd.DataFrame({name: pd.Series(x, dtype=x.dtype) for name, x in columns.items()})


def incidents_of(table: pd.DataFrame) -> str:
    """A record of incidents: half of them name their episode, the others a policy."""
    rng = np.random.default_rng(1)
    real = table.loc[table["side"] == "real", ["episode_id", "policy"]]
    chosen = real.iloc[rng.integers(len(real), size=sum(INCIDENTS.values()))]
    kinds = [name for name, count in INCIDENTS.items() for _ in range(count)]
    lines = ["incident_id,severity,episode_id,policy"]
    for number, (kind, episode, policy) in enumerate(
        zip(kinds, chosen["episode_id"], chosen["policy"], strict=True)
    ):
        lines.append(f"i{number},{kind},{episode},{'' if number % 2 else policy}")
    return "\n".join(lines) + "\n"


def measure(source: Callable[[], pd.DataFrame]) -> dict[str, float]:
    """Seconds of each step for one log."""
    from robo_eval.log.evidence_read import read_evidence
    from robo_eval.metrics.config import MetricConfig
    from robo_eval.metrics.frame import episodes_frame
    from robo_eval.metrics.summary import summary_of_table

    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        found = work()
        seconds[name] = time.perf_counter() - start
        return found

    frames = timed("read", lambda: [source()])
    # Handed on, so that the table that was read need not stay beside the checked one.
    table = timed("check", lambda: episodes_frame(frames.pop()))
    config = MetricConfig(resamples=RESAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "incidents.csv"
        path.write_text(incidents_of(table), encoding="utf-8")
        evidence = timed("incidents", lambda: read_evidence(Path(folder)))
    summary = timed(
        "metrics",
        lambda: summary_of_table(
            table, None, config=config, find_acc=lambda: None, evidence=evidence
        ),
    )
    assert not summary.findings, summary.findings[0]
    timed("json", lambda: json.dumps(summary.as_dict(), allow_nan=False))
    return {**seconds, "rows": float(len(table))}


def in_a_process(n: int, folder: Path, *, shared_seeds: bool) -> dict[str, float]:
    """Write and measure a log of n episodes, each in a process of its own."""
    path = folder / f"{n}.parquet"
    for step in ("--make",) if n >= LARGE else ("--write", "--measure"):
        command = [sys.executable, __file__, step, str(path), "--rows", str(n)]
        command += ["--shared-seeds"] if shared_seeds else []
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    path.unlink(missing_ok=True)
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def bench_sizes(sizes: tuple[int, ...], *, shared_seeds: bool) -> None:
    """Print the table of sizes, and the slope."""
    steps = ("read", "check", "metrics", "incidents", "json")
    print(f"{'rows':>10} " + " ".join(f"{step:>9}" for step in steps) + "   total s   peak GB")
    totals, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            found = in_a_process(n, Path(folder), shared_seeds=shared_seeds)
            found["read"] = found["read"] if n < LARGE else 0.0  # it was made, not read
            total = sum(found[step] for step in steps)
            print(
                f"{found['rows']:10.0f} "
                + " ".join(f"{found[step]:9.2f}" for step in steps)
                + f" {total:9.2f} {found['peak_gb']:9.2f}",
                flush=True,
            )
            totals.append(total)
            rows.append(found["rows"])
    for first in range(len(rows) - 1):
        slope = np.polyfit(np.log(rows[first:]), np.log(totals[first:]), 1)[0]
        print(f"slope {slope:.2f} from {rows[first]:.0f} to {rows[-1]:.0f} rows; 1 is linear")


def bench_bootstrap() -> None:
    """Our resampled intervals beside scipy's on the same statistic and as many resamples."""
    from scipy import stats

    from robo_eval.stats.resampling import mean_intervals

    rng = np.random.default_rng(1)

    def theirs(x: NDArray[np.float64], method: str) -> tuple[float, float]:
        settings: dict[str, Any] = {"method": method, "n_resamples": RESAMPLES}
        found = stats.bootstrap((x,), np.mean, rng=np.random.default_rng(0), **settings)
        return found.confidence_interval.low, found.confidence_interval.high

    for n, cells in ((20, 240), (100, 240), (4_000, 10), (20_000, 1)):
        samples = [np.round(rng.beta(4.0, 1.0, n) * 200.0) / 200.0 for _ in range(cells)]
        mean_intervals(samples, resamples=RESAMPLES, method="percentile")  # imports, first
        for method in ("percentile", "bca"):
            ours_s, ours = _best(
                lambda samples=samples, method=method: mean_intervals(  # type: ignore[misc]
                    samples, method=method, resamples=RESAMPLES
                )
            )
            if method == "bca" and n > 4_000:
                continue  # scipy's jackknife takes n squared numbers
            scipy_name = {"percentile": "percentile", "bca": "BCa"}[method]
            start = time.perf_counter()
            ends = [theirs(x, scipy_name) for x in samples]
            theirs_s = time.perf_counter() - start
            apart = max(abs(a.low - b[0]) / (b[1] - b[0]) for a, b in zip(ours, ends, strict=True))
            print(
                f"{method:10} {cells:3} x {n:6} values, {RESAMPLES} resamples:"
                f" ours {ours_s:7.3f} s, scipy {theirs_s:7.3f} s,"
                f" {theirs_s / ours_s:5.0f} times as fast;"
                f" lower ends apart by {apart:.3f} of the width at most"
            )


def _best(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Shortest wall time of a few runs in seconds, and what the work gives."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def main() -> None:
    """Run all, or one step in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="10,000,000 rows as well")
    parser.add_argument("--shared-seeds", action="store_true", help="conditions share seeds")
    parser.add_argument("--rows", type=int, default=0, help="one size only")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write is not None:
        write_log(given.write, columns_of(given.rows, shared_seeds=given.shared_seeds))
        return
    if given.measure is not None or given.make is not None:
        found = measure(
            lambda: (
                read(given.measure)
                if given.measure is not None
                else made(given.rows, shared_seeds=given.shared_seeds)
            )
        )
        found["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(json.dumps(found))
        return
    print(f"{platform.machine()}, Python {platform.python_version()}, pandas {pd.__version__}")
    sizes = (given.rows,) if given.rows else (*SIZES, *([LARGE] if given.large else []))
    bench_sizes(sizes, shared_seeds=given.shared_seeds)
    bench_bootstrap()


if __name__ == "__main__":
    main()
