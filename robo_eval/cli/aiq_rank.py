"""`robo-eval aiq rank`: agents by what they cover of the space of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, print_json, print_table, say

if TYPE_CHECKING:
    from robo_eval.study.ranking import RankedAgent, Ranking


def rank(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study.")],
    trials: Annotated[list[Path], typer.Argument(metavar="TRIAL...", help="Trial directories.")],
    *,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Whom APTI compares with; `random` if it is there."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page; STUDY/ranking.html if not given.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Rank the policies of trials by AIQ, beside all else they could be ranked by.

    For each side and difficulty: mean performance, APTI, AIQ, capability and normalised generality
    by the reference panel, and coherence over the tests, each with its interval; and where the mean
    ranks otherwise, the tests that are the cause. A page shows them beside all
    that the study found.

    Example: robo-eval aiq rank runs/study runs/agents
    """
    from robo_eval.core.errors import InputError
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.report.embed import plain
    from robo_eval.study.page import write_page
    from robo_eval.study.ranking import rank as ranked
    from robo_eval.study.run import Study

    if out is not None and not out.parent.is_dir():
        raise InputError(f"{out}: there is no folder {out.parent} to write it to")
    opened = Study.open(study)
    outcome, rankings = ranked(
        opened, [TrialDirectory.open(trial) for trial in trials], baseline=baseline
    )
    page = write_page(outcome, out or study / "ranking.html", rankings, suite=opened.suite)
    if json:
        found = {"study": outcome.name, "page": str(page)}
        print_json(plain({**found, "rankings": [one.as_dict() for one in rankings]}))
        return
    for ranking in rankings:
        _print(ranking)
    say(f"page: {page}")


def _print(ranking: Ranking) -> None:
    from robo_eval.cli.summary import interval

    rows = [
        (
            agent.policy,
            *(
                interval(one)
                for one in (agent.aiq, agent.mean, agent.apti, agent.capability,
                            agent.normalised_generality, agent.coherence)
            ),
            int(agent.episodes.sum()),
        )
        for agent in ranking.agents
    ]  # fmt: skip
    columns = (
        "policy", "AIQ", "mean", "APTI", "capability", "generality", "coherence", "episodes"
    )  # fmt: skip
    where = f"{ranking.side}, {ranking.difficulty}" if ranking.difficulty else ranking.side
    title = f"agents in {ranking.k} dimensions ({where}) [95 % interval]"
    print_table(title, columns, rows, right=(7,))
    for agent in ranking.agents:
        say(_about(agent))
    for disagreement in ranking.disagreements:
        say(f"{disagreement}")
    say(f"APTI is beside {ranking.baseline}")


def _about(agent: RankedAgent) -> str:
    """How far to trust the quotient of an agent."""
    from robo_eval.cli.summary import interval

    if not agent.by_k:
        return f"{agent.policy}: no AIQ, {agent.aiq.reason}"
    around = ", ".join(f"{value:.2f} in {k}" for k, value in agent.by_k.items())
    of_suite = agent.aiq_of_suite
    behind = f"; {interval(agent.behind)} from the best" if agent.behind.value else ""
    return (
        f"{agent.policy}: AIQ {around}; with other trainings and pools"
        f" {of_suite.low:.2f} to {of_suite.high:.2f}{behind}"
    )
