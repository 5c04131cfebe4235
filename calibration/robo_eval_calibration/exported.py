"""What a snapshot found, for other programs: as JSON, and as URDF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from robo_eval.core.errors import InputError
from robo_eval.core.task import task_named
from robo_eval.core.yaml_form import text_of
from robo_eval.log.snapshot import Snapshot

_URDF: Final = "<!-- robo-eval calibrate export -->"
_JSON: Final = ('\n  "accepted": ', '\n  "constants": {', '\n  "disturbance": {')
"""By which exports are known from files of others."""


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """What is played, with units and intervals; no recording is named."""
    played = snapshot.played()
    fields = {"unit", "nominal", "low", "high", "verdict"}
    return {
        "name": snapshot.name,
        "task": snapshot.task,
        "robot": snapshot.robot,
        "valid": snapshot.valid.model_dump(mode="json", by_alias=True),
        "accepted": snapshot.accepted.verdict,
        "constants": {
            name: {"played": played[name]} | one.model_dump(include=fields)
            for name, one in snapshot.constants.items()
        },
        "noise": {name: played[name] for name in snapshot.noise.sensors if name in played},
        "disturbance": {name: played[name] for name in snapshot.noise.force if name in played},
    }


def as_urdf(snapshot: Snapshot) -> tuple[str, list[str]]:
    """The task's model with what is played, and which constants it has no place for.

    Raises:
        InputError: If the task has no model, or it holds none of the constants.
    """
    played = {name: one for name, one in snapshot.played().items() if name in snapshot.constants}
    declared = {one.name: one for one in task_named(snapshot.task).constants}
    usual = _model(snapshot, {})
    if not usual:
        raise InputError(f"{snapshot.task}: has no model as URDF; export --json instead")
    lacking = []
    for name in played:
        # What changes the model when it is changed by itself is in it.
        one = declared[name]
        other = one.high if one.high != one.nominal else one.low
        if _model(snapshot, {name: other}) == usual:
            lacking.append(name)
    if len(lacking) == len(played):
        raise InputError(f"{snapshot.task}: its model holds none of the constants; export --json")
    head, robot, rest = _model(snapshot, played).partition("<robot ")
    return f"{head}{_URDF}\n{robot}{rest}", lacking


def check_export(path: Path, *, urdf: bool) -> None:
    """Refuse a file that was not exported so.

    Raises:
        InputError: If it was not.
    """
    text = text_of(path, "export")
    if not all(mark in text for mark in ((_URDF,) if urdf else _JSON)):
        raise InputError(f"{path}: was written by somebody else")


def _model(snapshot: Snapshot, constants: Mapping[str, float]) -> str:
    """URDF of a task with some constants; empty if it has none."""
    import gymnasium

    keywords = {**snapshot.keywords, "constants": dict(constants)}
    made: Any = gymnasium.make(snapshot.task, **keywords).unwrapped
    try:
        made.records_motion = True
        seen, _ = made.reset(seed=0)
        action = np.zeros_like(made.action_space.sample())
        after, reward, *_ = made.step(action)
        motion = made.trajectory(np.array([seen, after]), np.array([action]), np.array([reward]))
        return str(motion.robot_description)
    finally:
        made.close()
