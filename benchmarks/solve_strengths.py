"""Choose the presets of a task of the arm, so that its expert loses a tenth, a quarter, a half.

For each axis a curve of success over magnitude is measured on a grid, and on a finer one where it
falls, made monotone, and cut at the three losses; what comes out is measured again on other seeds,
each episode beside its control: the same seed without the novelty. It writes `strengths.json` of
the task's folder and the table of its page in docs/environments.

    python benchmarks/solve_strengths.py RoboEval/PickPlace-v0 pick-place
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import gymnasium
import numpy as np
from rich.progress import track
from scipy.optimize import isotonic_regression

from robo_eval.agents.registry import make_agent
from robo_eval.core import spread
from robo_eval.core.task import tasks
from robo_eval.log.provenance import cores
from robo_eval.stats.proportions import wilson_interval
from robo_eval_sim.arm.levels import STRENGTHS
from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.novelty import levels_in

LOSSES: Final = (0.10, 0.25, 0.50)
GRID: Final = 7
FINER: Final = 5
PILOT: Final = range(10_000, 10_030)
SEEDS: Final = range(20_000, 20_100)
DOCS: Final = Path(__file__).parents[1] / "docs" / "environments"
UNSEEN: Final = ("camera_shift", "camera_turn", "light")
"""Axes of pictures, which the experts do not look at."""


class Dose(NamedTuple):
    """Episodes at one magnitude."""

    env: str
    agent: str
    axis: str
    magnitude: float | None
    seeds: Sequence[int]

    @property
    def digest(self) -> str:
        """What tells it from others."""
        return f"{self.axis} {self.magnitude} {self.seeds[0]}"


def played(dose: Dose) -> list[bool]:
    """Whether each episode was a success."""
    novelty = None if dose.magnitude is None else {dose.axis: dose.magnitude}
    env = gymnasium.make(dose.env, novelty=novelty)
    agent: Any = make_agent(dose.agent)
    found = []
    for seed in dose.seeds:
        observation, _ = env.reset(seed=seed)
        agent.reset(seed=seed)
        is_over, info = False, {}
        while not is_over:
            observation, _, terminated, truncated, info = env.step(agent.act(observation))
            is_over = terminated or truncated
        found.append(bool(info["is_success"]))
    env.close()
    return found


def grid_of(axis: Axis) -> list[float]:
    """Magnitudes from hardly anything to the end of the range."""
    low, high = axis.span
    if axis.is_count:
        return sorted({round(one) for one in np.geomspace(low, high, GRID)})
    if axis.falls:
        return spaced(axis, 0.95 * axis.usual, low, GRID)
    return spaced(axis, max(low, 1.05 * axis.usual), high, GRID)


def spaced(axis: Axis, first: float, last: float, count: int) -> list[float]:
    """Magnitudes from one to another, each so many times the one before; of the axis's range."""
    low, high = axis.span
    found = (float(f"{one:.4g}") for one in np.geomspace(first, last, count))
    return [min(max(one, low), high) for one in found]


def finer(axis: Axis, grid: Sequence[float], success: Sequence[float], nominal: float) -> list:
    """Further magnitudes between the last one that loses nothing and the first that loses half."""
    curve = isotonic_regression(np.array(success) / nominal, increasing=False).x
    whole = np.flatnonzero(curve >= 1.0 - LOSSES[0] / 2)
    half = np.flatnonzero(curve <= 1.0 - LOSSES[-1])
    low = grid[whole[-1]] if len(whole) else grid[0]
    high = grid[half[0]] if len(half) else grid[-1]
    found = spaced(axis, low, high, FINER + 2)[1:-1]
    return sorted({round(one) for one in found}) if axis.is_count else found


def chosen(axis: Axis, grid: Sequence[float], success: Sequence[float], nominal: float) -> list:
    """Magnitudes of the three losses on a monotone curve; the end of the range if it is short."""
    curve = isotonic_regression(np.array(success) / nominal, increasing=False).x
    places = np.log(grid)
    found = []
    for loss in LOSSES:
        beyond = np.flatnonzero(curve <= 1.0 - loss)
        if not len(beyond):
            found.append(grid[-1])
            continue
        last = int(beyond[0])
        if last == 0:
            found.append(grid[0])
            continue
        before, after = curve[last - 1], curve[last]
        share = (before - (1.0 - loss)) / (before - after)
        place = math.exp(places[last - 1] + share * (places[last] - places[last - 1]))
        found.append(round(place) if axis.is_count else float(f"{place:.3g}"))
    low, high = axis.span
    return [min(max(one, low), high) for one in found]


def everything(env: str, agent: str, axes: Sequence[Axis], seeds: range, doses: dict) -> dict:
    """Successes by axis and magnitude, on all cores."""
    jobs = [Dose(env, agent, "", None, seeds)]
    jobs += [Dose(env, agent, axis.name, one, seeds) for axis in axes for one in doses[axis.name]]
    jobs = list({job.digest: job for job in jobs}.values())
    found = {}
    for job, ok in track(spread.done(jobs, played, workers=cores()), total=len(jobs)):
        found[job.axis, job.magnitude] = ok
    return found


def table(agent: str, axes: Sequence[Axis], found: dict, strengths: dict) -> str:
    """The page's table: what is lost at each preset, with its interval."""
    control = found["", None]
    low, high = wilson_interval(sum(control), len(control))
    lines = [
        (
            f"Without novelty `{agent}` succeeds in {sum(control)} of {len(control)} episodes"
            f" (95 % {low:.3f} to {high:.3f}). Of these so many are lost under novelty, with the"
            " 95 % interval (Wilson):"
        ),
        "",
        "| axis | unit | easy | lost | medium | lost | hard | lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for axis in axes:
        cells = []
        for magnitude in strengths[axis.name]:
            pairs = zip(control, found[axis.name, magnitude], strict=True)
            kept = [after for before, after in pairs if before]
            lost = len(kept) - sum(kept)
            low, high = wilson_interval(lost, len(kept))
            cells += [f"{magnitude:g}", f"{lost / len(kept):.2f} [{low:.2f}, {high:.2f}]"]
        lines.append(f"| `{axis.name}` | {axis.unit or '-'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def means(found: dict, axis: Axis, grids: dict) -> list[float]:
    """Share of successes at each magnitude of a grid."""
    return [float(np.mean(found[axis.name, one])) for one in grids[axis.name]]


def main() -> None:
    """Solve one task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env")
    parser.add_argument("agent")
    given = parser.parse_args()
    module = importlib.import_module(tasks()[given.env].environment.partition(":")[0])
    folder = Path(str(module.__file__)).parent
    strengths = json.loads((folder / STRENGTHS).read_text())
    known = levels_in("robo_eval_sim.arm.levels", given.env).values()
    axes = [
        axis
        for axis in known
        if isinstance(axis, Axis) and axis.name in strengths and axis.name not in UNSEEN
    ]
    grids = {axis.name: grid_of(axis) for axis in axes}
    pilot = everything(given.env, given.agent, axes, PILOT, grids)
    nominal = float(np.mean(pilot["", None]))
    more = {
        axis.name: finer(axis, grids[axis.name], means(pilot, axis, grids), nominal)
        for axis in axes
    }
    pilot |= everything(given.env, given.agent, axes, PILOT, more)
    for axis in axes:
        both = {*grids[axis.name], *more[axis.name]}
        grids[axis.name] = sorted(both, reverse=axis.falls)
        success = means(pilot, axis, grids)
        strengths[axis.name] = chosen(axis, grids[axis.name], success, nominal)
        print(
            axis.name, [f"{a:.3g}:{b:.2f}" for a, b in zip(grids[axis.name], success, strict=True)]
        )
    found = everything(given.env, given.agent, axes, SEEDS, strengths)
    (folder / STRENGTHS).write_text(json.dumps(strengths, indent=1) + "\n")
    text = table(given.agent, axes, found, strengths)
    (DOCS / f"{folder.name}_strengths.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
