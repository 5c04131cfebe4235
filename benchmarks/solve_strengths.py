"""Look for magnitudes of novelty at which an agent loses a tenth, a quarter and a half.

For each axis a curve of success over magnitude is measured on a grid, and on a finer one where it
falls, made monotone, and cut at the three losses; what comes out is measured again on other seeds,
each episode beside its control: the same seed without the novelty. It writes the table of the
task's page in docs/environments and, of a task of the arm, `strengths.json` of its folder: these
magnitudes are its presets. Presets of CartPole3D are fixed; its table says what to ask for.

    python benchmarks/solve_strengths.py RoboEval/PickPlace-v0 pick-place
    python benchmarks/solve_strengths.py RoboEval/CartPole3D-v0 balancer --seeds 1000
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
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
from robo_eval.stats.paired import paired_table, success_ratio_interval
from robo_eval.stats.proportions import wilson_interval
from robo_eval_sim.arm.levels import STRENGTHS
from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.novelty import levels

LOSSES: Final = (0.10, 0.25, 0.50)
GRID: Final = 7
FINER: Final = 5
FIRST_PILOT: Final = 10_000
FIRST: Final = 20_000
PILOT_SHARE: Final = 0.3
"""Episodes of a magnitude on a grid, as a share of those of one that was chosen."""
DOCS: Final = Path(__file__).parents[1] / "docs" / "environments"
UNSEEN: Final = ("camera_shift", "camera_turn", "light", "light_turn", "texture")
"""Axes of pictures, which the experts do not look at."""
ENDS: Final = {("RoboEval/Drawer-v0", "goal_shift"): (0.01, 0.1)}
"""Ranges in which every start has room for the whole magnitude, where that is not the axis's."""
USUAL: Final = {
    "cart_mass": 1.0,
    "ball_size": 0.5,
    "gravity": 9.8,
    "pole_length": 1.0,
    "restitution": 1.0,
}
"""What CartPole3D has without novelty, where that is not nothing."""
MOST: Final = 2.0
"""Greatest restitution: beyond, balls fly at the greatest speed there is."""
STRONGER: Final = 8.0
"""Else so many times the hardest preset of CartPole3D is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What is varied: see `robo_eval_sim.arm.levels.axis.Axis`."""

    name: str
    unit: str
    span: tuple[float, float]
    usual: float
    falls: bool
    is_count: bool


def scales(env: str, strengths: dict) -> list[Scale]:
    """The axes of a task that its agent can notice."""
    if strengths:
        return [
            Scale(name=axis.name, unit=axis.unit, span=ENDS.get((env, axis.name), axis.span),
                  usual=axis.usual, falls=axis.falls, is_count=axis.is_count)
            for axis in levels(env).values()
            if isinstance(axis, Axis) and axis.name not in UNSEEN
        ]  # fmt: skip
    found = []
    for level in levels(env).values():
        tables = level.tables["paper"]
        if not tables["hard"]:
            continue
        easy, hard = (next(iter(tables[one].values())) for one in ("easy", "hard"))
        low, high = (getattr(one, "value", None) or one.high for one in (easy, hard))
        is_count, falls = isinstance(high, int), bool(high < low)
        usual = 2.0 * low if falls else USUAL.get(level.name, 0.0)
        least = 1.0 if is_count else 0.05 * high if falls else 1.02 * usual or low / 10.0
        most = usual if falls else MOST if level.name == "restitution" else STRONGER * high
        least, most = level.span or (least, most)
        found.append(
            Scale(name=level.name, unit=level.unit, span=(least, most), usual=usual, falls=falls,
                  is_count=is_count)
        )  # fmt: skip
    return found


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
        # A task that does not say so ends for good when it fails.
        found.append(bool(info.get("is_success", truncated and not terminated)))
    env.close()
    return found


def grid_of(axis: Scale) -> list[float]:
    """Magnitudes from hardly anything to the end of the range."""
    low, high = axis.span
    if axis.is_count:
        return sorted({round(one) for one in np.geomspace(low, high, GRID)})
    if axis.falls:
        return spaced(axis, 0.95 * axis.usual, low, GRID)
    return spaced(axis, max(low, 1.05 * axis.usual), high, GRID)


def spaced(axis: Scale, first: float, last: float, count: int) -> list[float]:
    """Magnitudes from one to another, each so many times the one before; of the axis's range."""
    low, high = axis.span
    found = (float(f"{one:.4g}") for one in np.geomspace(first, last, count))
    return [min(max(one, low), high) for one in found]


def finer(axis: Scale, grid: Sequence[float], success: Sequence[float], nominal: float) -> list:
    """Further magnitudes between the last one that loses nothing and the first that loses half."""
    curve = isotonic_regression(np.array(success) / nominal, increasing=False).x
    whole = np.flatnonzero(curve >= 1.0 - LOSSES[0] / 2)
    half = np.flatnonzero(curve <= 1.0 - LOSSES[-1])
    low = grid[whole[-1]] if len(whole) else grid[0]
    high = grid[half[0]] if len(half) else grid[-1]
    found = spaced(axis, low, high, FINER + 2)[1:-1]
    return sorted({round(one) for one in found}) if axis.is_count else found


def chosen(axis: Scale, grid: Sequence[float], success: Sequence[float], nominal: float) -> list:
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


def everything(env: str, agent: str, axes: Sequence[Scale], seeds: range, doses: dict) -> dict:
    """Successes by axis and magnitude, on all cores."""
    jobs = [Dose(env, agent, "", None, seeds)]
    jobs += [Dose(env, agent, axis.name, one, seeds) for axis in axes for one in doses[axis.name]]
    jobs = list({job.digest: job for job in jobs}.values())
    found = {}
    for job, ok in track(spread.done(jobs, played, workers=cores()), total=len(jobs)):
        found[job.axis, job.magnitude] = ok
    return found


def table(agent: str, axes: Sequence[Scale], found: dict, strengths: dict) -> str:
    """The page's table: what is lost at each preset, with its interval."""
    control = found["", None]
    low, high = wilson_interval(sum(control), len(control))
    lines = [
        (
            f"Without novelty `{agent}` succeeds in {sum(control)} of {len(control)} episodes"
            f" (95 % {low:.3f} to {high:.3f}). The share of its successes that is lost under"
            " novelty, on the same seeds, with the 95 % interval (score interval of a ratio of"
            " matched proportions):"
        ),
        "",
        "| axis | unit | easy | lost | medium | lost | hard | lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for axis in axes:
        cells = []
        for magnitude in strengths[axis.name]:
            own = found[axis.name, magnitude]
            ends = success_ratio_interval(paired_table(own, control))
            assert ends is not None, "nothing succeeds without novelty"
            lost = 1.0 - sum(own) / sum(control)
            low, high = 1.0 - ends[1], 1.0 - ends[0]
            cells += [f"{magnitude:g}", f"{lost:.2f} [{low:.2f}, {high:.2f}]"]
        lines.append(f"| `{axis.name}` | {axis.unit or '-'} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def means(found: dict, axis: Scale, grids: dict) -> list[float]:
    """Share of successes at each magnitude of a grid."""
    return [float(np.mean(found[axis.name, one])) for one in grids[axis.name]]


def main() -> None:
    """Solve one task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env")
    parser.add_argument("agent")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--only", help="the axis that is solved anew; the others stay")
    given = parser.parse_args()
    pilots = range(FIRST_PILOT, FIRST_PILOT + round(PILOT_SHARE * given.seeds))
    module = importlib.import_module(tasks()[given.env].environment.partition(":")[0])
    folder = Path(str(module.__file__)).parent
    file = folder / STRENGTHS
    strengths = json.loads(file.read_text()) if file.exists() else {}
    axes = [one for one in scales(given.env, strengths) if given.only in (None, one.name)]
    grids = {axis.name: grid_of(axis) for axis in axes}
    pilot = everything(given.env, given.agent, axes, pilots, grids)
    nominal = float(np.mean(pilot["", None]))
    more = {
        axis.name: finer(axis, grids[axis.name], means(pilot, axis, grids), nominal)
        for axis in axes
    }
    pilot |= everything(given.env, given.agent, axes, pilots, more)
    for axis in axes:
        both = {*grids[axis.name], *more[axis.name]}
        grids[axis.name] = sorted(both, reverse=axis.falls)
        success = means(pilot, axis, grids)
        strengths[axis.name] = chosen(axis, grids[axis.name], success, nominal)
        print(
            axis.name, [f"{a:.3g}:{b:.2f}" for a, b in zip(grids[axis.name], success, strict=True)]
        )
    found = everything(given.env, given.agent, axes, range(FIRST, FIRST + given.seeds), strengths)
    if file.exists():
        file.write_text(json.dumps(strengths, indent=1) + "\n")
    text = table(given.agent, axes, found, strengths)
    page = DOCS / f"{folder.name}_strengths.md"
    if given.only:
        own = text.splitlines()[-1]
        lines = [line for line in page.read_text().splitlines() if f"`{given.only}`" not in line]
        text = "\n".join([*lines, own]) + "\n"
    page.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
