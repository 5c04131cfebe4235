"""`robo-eval replay`: how far the simulator drifts from what a robot did under the same forces."""

from __future__ import annotations

from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.task import task_named
from robo_eval.log.directory import ROBOT_FILE, TrialDirectory
from robo_eval.log.store import EpisodeStore

_SHOWN_S = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


def replay(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    episode: Annotated[
        str | None, typer.Argument(metavar="EPISODE", help="Episode id; default every one.")
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Play the commands a robot applied again in the simulator, and compare the motion.

    Where a policy reacts, small differences change what it does. Under the same forces only the
    physics differs: an unperturbed twin is followed to 1e-9, and a robot for as long as the
    simulator describes it.

    Example: robo-eval replay runs/demo/matched
    """
    opened = TrialDirectory.open(trial)
    if not (trial / ROBOT_FILE).exists():
        raise InputError(f"{trial / ROBOT_FILE}: is missing; only robots and twins are replayed")
    with EpisodeStore(trial, durable=False, read_only=True) as store:
        rows = {
            row.episode_id: row
            for row in store.episodes()
            if row.side is not Side.SIM and row.trace_uri and row.ticks
        }
    if episode is not None and episode not in rows:
        raise unknown_name("recorded episode of a robot", episode, rows)
    chosen = list(rows.values()) if episode is None else [rows[episode]]
    found = [_compare(opened, row) for row in chosen]
    if json:
        print_json({"trial": str(trial), "episodes": found})
        return
    print_drift(found)


def _compare(trial: TrialDirectory, row: Episode) -> dict[str, Any]:
    """How far the simulator is from the robot, by seconds since the start."""
    from robo_eval.core.schedule import base_id_of, environment_keywords, schedule
    from robo_eval_robot.adapter import load_adapter
    from robo_eval_robot.config import read_robot
    from robo_eval_robot.replayed import motion_of
    from robo_eval_sim.replay import replay as simulate

    config = read_robot(trial.path / ROBOT_FILE)
    base_id = base_id_of(row.episode_id, row.attempt)
    planned = next(p for p in schedule(trial.plan, row.side) if p.base_id == base_id)
    task = trial.plan.tasks[planned.condition.task]
    keywords = environment_keywords(task, planned, trial.plan.policies[planned.policy])
    adapter = load_adapter(config, task.env, keywords)
    bag = trial.path / str(row.trace_uri)
    motion = motion_of(bag, config, adapter, row.initial_state, ticks=row.ticks or 0)
    # What was applied is known up to the first tick whose state was not recorded.
    known = [state for state in takewhile(lambda one: one is not None, motion.states) if state]
    applied = [force for force in motion.applied[: len(known) - 1] if force is not None]
    if len(applied) < len(known) - 1:
        raise InputError(f"{bag}: the robot measures no effort; nothing can be replayed")
    simulated = simulate(task.env, row.initial_state, applied, seed=planned.seed, **keywords)
    compared = [part for part in task_named(task.env).state if part.is_pose]
    apart: dict[str, list[float]] = {part.place: [] for part in compared}
    for state, reached in zip(known, simulated, strict=True):
        for part in compared:
            apart[part.place].append(part.apart(reached[part.name], state[part.name]))
    within = {
        f"{name}_within_{seconds:g}_s": _largest(values, round(seconds / adapter.tick_s))
        for name, values in apart.items()
        for seconds in _SHOWN_S
    }
    ticks = min(map(len, apart.values()), default=1) - 1
    return {"episode_id": row.episode_id, "ticks": ticks, "apart": list(apart), **within}


def _largest(values: list[float], ticks: int) -> float | None:
    """The largest of the first values; None if there are fewer."""
    return max(values[: ticks + 1]) if len(values) > ticks else None


def print_drift(found: list[dict[str, Any]]) -> None:
    """Distances of each part by episode, a table for each part, as they have units of their own."""
    if not found:
        say("no recorded episode of a robot")
    for part in dict.fromkeys(part for entry in found for part in entry["apart"]):
        name, _, unit = part.rpartition("_")
        rows = []
        for entry in sorted(found, key=itemgetter("episode_id")):
            if part in entry["apart"]:
                reached = [entry[f"{part}_within_{seconds:g}_s"] for seconds in _SHOWN_S]
                cells = ("-" if value is None else f"{value:.1g}" for value in reached)
                rows.append([entry["episode_id"], entry["ticks"], *cells])
        print_table(
            f"{name}: largest distance of robot and simulator under the same forces, in {unit}",
            ["episode", "ticks", *(f"{seconds:g} s" for seconds in _SHOWN_S)],
            rows,
            right=range(1, 2 + len(_SHOWN_S)),
        )
