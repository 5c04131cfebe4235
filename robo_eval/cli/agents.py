"""`robo-eval agents`: which policies can be named in a plan."""

from __future__ import annotations

from robo_eval.cli.output import JsonOption, print_json, print_table


def agents(*, json: JsonOption = False) -> None:
    """List the baseline agents that a plan can name.

    Example: robo-eval agents
    """
    from robo_eval.agents import agent_names, make_agent

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
