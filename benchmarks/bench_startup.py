"""How long the command line takes to answer, next to a Python that does nothing.

Goals: help, listings and refusals within 0.3 s; the first answers on a trial of 48 rows within a
multiple of the libraries they cannot do without.
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
}

GOALS = {
    "verify": ("numpy", 2.0),
    "metrics": ("pandas", 1.5),
    "report": ("pandas", 2.2),
}
"""Verbs, and how many times the processor time of importing a library they may take."""


def seconds(arguments: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """Wall time, and processor time, which others on the machine disturb less."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def small_trial(folder: Path) -> Path:
    """A finished trial of 48 rows without traces."""
    from robo_eval.core.episode import Episode
    from robo_eval.core.kinds import EndReason, Side
    from robo_eval.core.plan import parse_plan
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.store import EpisodeStore

    trial = TrialDirectory.create(folder / "trial", parse_plan(PLAN, source="plan"), planned=48)
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append(
            [
                Episode(
                    episode_id=f"e{number}", plan_digest=trial.plan_digest, side=Side.SIM,
                    task="RoboEval/CartPole3D-v0", level=0, difficulty="easy", seed=number,
                    policy="balancer", policy_digest="1" * 64, start_ns=number, duration_s=4.0,
                    ticks=200, episode_return=number / 48, quality=number / 48,
                    success=number > 24, software="robo-eval",
                    end_reason=EndReason.SUCCESS if number > 24 else EndReason.FAILURE,
                )
                for number in range(48)
            ]
        )  # fmt: skip
        trial.write_manifest(status="complete", store=store)
    return trial.path


def first_answers(folder: Path) -> None:
    """Processor time of verbs on a small trial, as ratios to that of importing a library."""
    trial = str(small_trial(folder))
    commands = {name: ("-c", f"import {name}") for name, _ in GOALS.values()}
    commands |= {verb: ("-m", "robo_eval", verb, trial) for verb in GOALS}
    times: dict[str, list[float]] = {label: [] for label in commands}
    for _ in range(REPEATS):
        for label, arguments in commands.items():
            times[label].append(seconds(arguments, folder)[1])
    medians = {label: statistics.median(taken) for label, taken in times.items()}
    for verb, (library, goal) in GOALS.items():
        ratio = medians[verb] / medians[library]
        print(f"{verb} / import {library}: {ratio:.2f} (goal {goal})")


def main() -> None:
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in PLANS.items():
            (folder / file).write_text(text)
        times: dict[str, list[tuple[float, float]]] = {label: [] for label in COMMANDS}
        for turn in range(REPEATS + 1):
            # In turns, so that a machine that slows down slows all of them; the first warms up.
            for label, arguments in COMMANDS.items():
                taken = seconds(arguments, folder)
                if turn > 0:
                    times[label].append(taken)
    nothing = statistics.median(processor for _, processor in times["python -c pass"])
    print(f"{'command':<26}{'wall s: least':>14}{'median':>8}{'processor s':>13}{'ratio':>7}")
    for label, taken in times.items():
        walls = [wall for wall, _ in taken]
        processor = statistics.median(processor for _, processor in taken)
        print(
            f"{label:<26}{min(walls):>14.3f}{statistics.median(walls):>8.3f}"
            f"{processor:>13.3f}{processor / nothing:>7.1f}"
        )
    with tempfile.TemporaryDirectory() as name:
        first_answers(Path(name))


if __name__ == "__main__":
    main()
