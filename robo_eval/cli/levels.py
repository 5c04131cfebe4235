"""`robo-eval levels` and `agents`: what a plan can name."""

from __future__ import annotations

from typing import Annotated

import typer

from robo_eval.agents import agent_names, make_agent
from robo_eval.cli.output import JsonOption, TaskOption, print_json, print_table
from robo_eval.core.kinds import Profile
from robo_eval.core.names import unknown_name
from robo_eval.core.task import task_named


def levels(
    *,
    task: TaskOption = "",
    profile: Annotated[
        str, typer.Option(help="Which description is followed: paper or compat.")
    ] = "paper",
    json: JsonOption = False,
) -> None:
    """List the novelty levels of a task with their effects and parameter ranges.

    Example: robo-eval levels --profile compat
    """
    spec = task_named(task)
    if profile not in list(Profile):
        raise unknown_name("profile", profile, list(Profile))
    found = spec.levels()
    if json:
        print_json(
            {
                "task": spec.env,
                "profile": profile,
                "levels": [info.as_dict(profile) for info in found.values()],
            }
        )
        return
    rows = []
    for info in found.values():
        row = info.as_dict(profile)
        rows.append((row["level"], row["name"], row["effect"], *row["ranges"].values()))
    print_table(
        f"{spec.title} novelty levels, profile {profile}",
        ("level", "name", "effect", "easy", "medium", "hard"),
        rows,
        right=(0,),
        prose=(2, 3, 4, 5),
    )


def agents(*, json: JsonOption = False) -> None:
    """List the baseline agents that a plan can name.

    Example: robo-eval agents
    """
    rows = []
    for name in agent_names():
        agent = make_agent(name)
        text = (type(agent).__doc__ or "").strip().partition("\n")[0]
        rows.append({"name": name, "description": text, "digest": agent.digest})
    if json:
        print_json({"agents": rows})
        return
    print_table(
        "Baseline agents",
        ("name", "what it does", "digest"),
        [(row["name"], row["description"], row["digest"][:12]) for row in rows],
        prose=(1,),
    )
