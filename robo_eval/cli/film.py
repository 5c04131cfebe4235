"""`robo-eval film`: one episode as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from robo_eval.agents import load_policy
from robo_eval.cli.output import JsonOption, TaskOption, check_folder_of, print_json, say
from robo_eval.core.errors import InputError
from robo_eval.core.task import task_named


def film(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="GIF file to write.")],
    task: TaskOption = "",
    agent: Annotated[str, typer.Option(help="Who acts; see robo-eval agents.")] = "balancer",
    factory: Annotated[
        str | None, typer.Option(help="package.module:callable that makes an agent of your own.")
    ] = None,
    level: Annotated[int, typer.Option(help="Novelty level.")] = 0,
    difficulty: Annotated[str, typer.Option(help="easy, medium or hard.")] = "easy",
    profile: Annotated[str, typer.Option(help="paper or compat.")] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    json: JsonOption = False,
) -> None:
    """Play one episode of a task and save it as an animated GIF.

    Example: robo-eval film --level 7 --difficulty hard --agent lookahead --out episode.gif
    """
    spec = task_named(task)
    policy = load_policy(agent, factory)
    if out.exists() and not force:
        raise InputError(f"{out}: exists already; choose another file or give --force")
    check_folder_of(out)
    import gymnasium

    from robo_eval_sim.film import save_film

    named: dict[str, Any] = {"level": level, "difficulty": difficulty, "profile": profile}
    has_levels = bool(spec.levels())
    env = gymnasium.make(spec.env, render_mode="rgb_array", **(named if has_levels else {}))
    ticks, performance, is_success = save_film(env, policy, out, seed=seed)
    env.close()
    if is_success is None:
        is_whole = ticks >= spec.max_ticks
        is_success = is_whole if spec.quality is None else performance > 1.0 - 1e-9
    if json:
        print_json({"file": str(out), "ticks": ticks, "survived": is_success})
    else:
        end = spec.succeeded if is_success else "failed"
        place = f" at level {level}, {difficulty}" if has_levels else ""
        say(f"{out}: {agent}{place}, seed {seed}: {ticks} ticks, {end}")
