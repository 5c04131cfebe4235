"""How long the command line takes to answer, next to a Python that only imports.

Goal: help, listings and refusals within 0.3 s; of a trial of 48 rows, `metrics` within 1.5 times
the processor time of importing pandas, `report` 2.2 times, and `verify` 2 times that of numpy.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 15
PLAN = "name: x\ntasks: [{levels: [0]}]\npolicies: [balancer]\n"
PLANS = {
    "good.yaml": PLAN,
    "unknown-key.yaml": PLAN + "episods: 3\n",
    "unknown-level.yaml": PLAN.replace("[0]", "[99]"),
    "unknown-agent.yaml": PLAN.replace("[balancer]", "[balancr]"),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("-c", "pass"),
    "--help": ("-m", "robo_eval", "--help"),
    "run --help": ("-m", "robo_eval", "run", "--help"),
    "levels": ("-m", "robo_eval", "levels"),
    "refused: unknown verb": ("-m", "robo_eval", "lvels"),
    "refused: missing plan": ("-m", "robo_eval", "run", "missing.yaml", "-o", "t"),
    "refused: unknown key": ("-m", "robo_eval", "run", "unknown-key.yaml", "-o", "t"),
    "refused: unknown level": ("-m", "robo_eval", "run", "unknown-level.yaml", "-o", "t"),
    "refused: unknown agent": ("-m", "robo_eval", "run", "unknown-agent.yaml", "-o", "t"),
    "refused: output exists": ("-m", "robo_eval", "run", "good.yaml", "-o", "good.yaml"),
    "refused: no such trial": ("-m", "robo_eval", "metrics", "no-such-trial"),
    "import numpy": ("-c", "import numpy"),
    "import pandas": ("-c", "import pandas"),
    "metrics": ("-m", "robo_eval", "metrics", "trial"),
    "report": ("-m", "robo_eval", "report", "trial"),
    "verify": ("-m", "robo_eval", "verify", "trial"),
}
NEXT_TO = {"metrics": "import pandas", "report": "import pandas", "verify": "import numpy"}
TRIAL = Path(__file__).parents[1] / "examples/plans/first.yaml"


def seconds(arguments: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """Wall time, and processor time, which others on the machine disturb less."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in PLANS.items():
            (folder / file).write_text(text)
        play = (sys.executable, "-m", "robo_eval", "run", TRIAL, "--out", "trial", "--no-report")
        subprocess.run(play, cwd=folder, capture_output=True, check=True)
        times: dict[str, list[tuple[float, float]]] = {label: [] for label in COMMANDS}
        for turn in range(REPEATS + 1):
            # In turns, so that a machine that slows down slows all of them; the first warms up.
            for label, arguments in COMMANDS.items():
                taken = seconds(arguments, folder)
                if turn > 0:
                    times[label].append(taken)
    processor = {
        label: statistics.median(seconds for _, seconds in taken) for label, taken in times.items()
    }
    print(f"{'command':<26}{'wall s: least':>14}{'median':>8}{'processor s':>13}{'ratio to':>10}")
    for label, taken in times.items():
        walls = [wall for wall, _ in taken]
        base = NEXT_TO.get(label, "python -c pass")
        print(
            f"{label:<26}{min(walls):>14.3f}{statistics.median(walls):>8.3f}"
            f"{processor[label]:>13.3f}{processor[label] / processor[base]:>10.2f} {base}"
        )


if __name__ == "__main__":
    main()
