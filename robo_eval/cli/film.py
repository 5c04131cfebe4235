"""`robo-eval film`: one episode as a GIF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, say


def film(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="GIF file to write.")],
    agent: Annotated[str, typer.Option(help="Who acts; see robo-eval agents.")] = "balancer",
    level: Annotated[int, typer.Option(help="Novelty level.")] = 0,
    difficulty: Annotated[str, typer.Option(help="easy, medium or hard.")] = "easy",
    profile: Annotated[str, typer.Option(help="paper or compat.")] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
    json: JsonOption = False,
) -> None:
    """Play one episode of CartPole3D and save it as an animated GIF.

    Example: robo-eval film --level 7 --difficulty hard --agent lookahead --out episode.gif
    """
    from robo_eval.agents import make_agent
    from robo_eval.core.errors import InputError

    policy = make_agent(agent)
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out}: there is no folder {out.absolute().parent}")
    import gymnasium

    from robo_eval_sim.film import save_film

    env = gymnasium.make(
        "RoboEval/CartPole3D-v0",
        level=level,
        difficulty=difficulty,
        profile=profile,
        render_mode="rgb_array",
    )
    ticks = save_film(env, policy, out, seed=seed)
    env.close()
    if json:
        print_json({"file": str(out), "ticks": ticks})
    else:
        say(f"{out}: {agent} at level {level}, {difficulty}, seed {seed}: {ticks} ticks")
