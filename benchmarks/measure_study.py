"""What a study costs: wall time, processor time and peak memory of `robo-eval aiq run`.

    .venv/bin/python benchmarks/measure_study.py examples/suites/cartpole3d_compat.yaml --out DIR

Memory is the sum over the processes at the moment it was largest, sampled twice a second. Pages
that processes share count once for each, so that it is an upper bound.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]

_EVERY_S = 0.5
_GIB = 2**30


def main() -> None:
    """Run a study and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--workers", default=None, help="processes; as many as processors")
    given = parser.parse_args()
    command = [sys.executable, "-m", "robo_eval", "aiq", "run", str(given.suite)]
    command += ["--out", str(given.out)]
    command += [] if given.workers is None else ["--workers", given.workers]
    started = time.monotonic()
    process = subprocess.Popen(command)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _resident(process.pid))
        time.sleep(_EVERY_S)
    wall_s = time.monotonic() - started
    if process.returncode:
        raise SystemExit(process.returncode)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "wall_minutes": round(wall_s / 60, 1),
        "core_hours": round((used.ru_utime + used.ru_stime) / 3600, 2),
        "peak_gib": round(peak / _GIB, 2),
        "processors": psutil.cpu_count(),
    }
    print(json.dumps(found))


def _resident(pid: int) -> int:
    total = 0
    try:
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.Error:
        pass  # one of them is just gone
    return total


if __name__ == "__main__":
    main()
