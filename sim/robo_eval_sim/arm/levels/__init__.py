"""What can be changed about the arm and its table: axes with magnitudes in physical units."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Mapping
from importlib.resources import files

from robo_eval.core.kinds import Difficulty
from robo_eval_sim.arm.levels.axis import Axis
from robo_eval_sim.arm.setting import Setting
from robo_eval_sim.novelty import Fixed, Level, both, levels_in

STRENGTHS = "strengths.json"
"""File of a task's folder: the axes that it has, and how strong its three presets are."""


@functools.cache
def strengths_of(package: str) -> Mapping[str, list[float]]:
    """Magnitudes of the presets of a task by axis: easy, medium, hard."""
    found: dict[str, list[float]] = json.loads((files(package) / STRENGTHS).read_text())
    return found


def levels_of(env: str, package: str, setting: type[Setting] = Setting) -> dict[int, Level]:
    """The levels of a task by number.

    Args:
        env: Its Gymnasium id.
        package: Its folder, which holds the strengths.
        setting: What novelty changes in it.
    """
    strengths = strengths_of(package)
    found: dict[int, Level] = {}
    for number, level in levels_in(__name__, env).items():
        if not isinstance(level, Axis):
            found[number] = level
        elif level.name in strengths:
            found[number] = _preset(level, strengths[level.name], setting)
    return found


def _preset(axis: Axis, strengths: list[float], setting: type[Setting]) -> Level:
    """An axis whose presets have these magnitudes."""
    one = copy.copy(axis)
    one.setting = setting
    kind = int if axis.is_count else float
    tables = {
        difficulty: {axis.parameter: Fixed(kind(value), axis.unit), **axis.drawn}
        for difficulty, value in zip(Difficulty, strengths, strict=True)
    }
    one.tables = both(tables)  # type: ignore[misc]
    return one
