"""`robo-eval aiq rank`: agents by what they cover of the space of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.checks import check_there
from robo_eval.cli.output import JsonOption, interval, print_json, print_table, say
from robo_eval.cli.summary import too_few_scored, verification_problem
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.estimate import Estimate
from robo_eval.core.names import listing
from robo_eval.core.plain import plain
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.files import write_atomically

if TYPE_CHECKING:
    from robo_eval.study.ranking import RankedAgent, Ranking


def rank(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study.")],
    trials: Annotated[list[Path], typer.Argument(metavar="TRIAL...", help="Trial directories.")],
    *,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY", help="Policy that APTI compares with; `random` if the trials have it."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page; STUDY/ranking.html if not given.")
    ] = None,
    across_versions: Annotated[
        bool,
        typer.Option("--across-versions", help="Mix episodes of levels that changed in between."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Rank the policies of trials by AIQ, and by other measures beside it.

    It prints for each side and difficulty: mean performance, APTI, AIQ, capability and normalised
    generality (measured by the reference panel), and coherence over the tests, each with its
    interval. Where AIQ and mean performance rank policies differently, it names the tests that
    cause this. A page shows the ranking with the results of the study; STUDY/ranking.json holds the
    numbers. Exit code 2 if the levels of some episodes were changed since the study. Exit code 1 if
    a log does not verify, or fewer than 95 % of a policy's episodes have a score.

    Example: robo-eval aiq rank runs/study runs/agents
    """
    from json import dumps

    from robo_eval.study.page import write_page
    from robo_eval.study.ranking import rank as ranked
    from robo_eval.study.run import Study

    if out is not None and not out.parent.is_dir():
        raise InputError(f"{out}: there is no folder {out.parent} to write it to")
    for folder in trials:
        check_there(folder)
    opened = Study.open(study)
    outcome, rankings = ranked(
        opened,
        [TrialDirectory.open(folder) for folder in trials],
        baseline=baseline,
        across_versions=across_versions,
    )
    page = write_page(outcome, out or study / "ranking.html", rankings, suite=opened.suite)
    found = plain(
        {
            "study": outcome.name,
            "page": str(page),
            "rankings": [one.as_dict() for one in rankings],
        }
    )
    write_atomically(study / "ranking.json", f"{dumps(found, indent=2)}\n".encode())
    if json:
        print_json(found)
    else:
        for ranking in rankings:
            _print(ranking)
        _print_sides(rankings)
        for warning in dict.fromkeys(text for one in rankings for text in _warnings(one)):
            say(f"warning: {warning}")
        say(f"page: {page}")
    problems = [verification_problem(Path(path), why) for path, why in _problems(rankings).items()]
    uncovered = [text for ranking in rankings for text in ranking.uncovered]
    said = next(iter(problems), too_few_scored(uncovered) if uncovered else None)
    if said:
        raise CheckFailedError(said)


def _problems(rankings: Sequence[Ranking]) -> dict[str, str]:
    return {path: why for one in rankings for path, why in one.log_problems.items()}


def _warnings(ranking: Ranking) -> tuple[str, ...]:
    return (*ranking.warnings, *(ranking.acc.warnings if ranking.acc else ()))


def _print(ranking: Ranking) -> None:
    rows = [
        (
            agent.policy,
            *(
                "-" if one.value is None else interval(one)
                for one in _measures(agent).values()
            ),
            int(agent.episodes.sum()),
        )
        for agent in ranking.agents
    ]  # fmt: skip
    columns = ("policy", *_measures(ranking.agents[0]), "episodes")
    where = f"{ranking.side}, {ranking.difficulty}" if ranking.difficulty else ranking.side
    title = f"agents in {ranking.k} dimensions ({where}) [95 % interval]"
    print_table(title, columns, rows, right=(7,))
    _print_evenness(ranking)
    for agent in ranking.agents:
        say(_about(agent))
    for disagreement in ranking.disagreements:
        say(f"{disagreement}")
    say(f"APTI is beside {ranking.baseline}")
    for reason, policies in _doubts(ranking).items():
        say(f"warning: {', '.join(policies)}: {reason}")


def _doubts(ranking: Ranking) -> dict[str, list[str]]:
    """Why numbers of policies are missing, have no interval, or one not to be relied on."""
    found: dict[str, list[str]] = {}
    for agent in ranking.agents:
        numbers = _measures(agent)
        lacking: dict[str | None, list[str]] = {}  # by reason; why there is no AIQ stands above
        for name, one in numbers.items():
            if one.value is None and name != "AIQ":
                lacking.setdefault(one.reason, []).append(name)
        said = [one.reason for one in numbers.values() if one.value is not None]
        said += [f"no {listing(names)}: {reason}" for reason, names in lacking.items()]
        for reason in dict.fromkeys(said):
            if reason is not None:
                found.setdefault(reason, []).append(agent.policy)
    return found


def _measures(agent: RankedAgent) -> dict[str, Estimate]:
    return {
        "AIQ": agent.aiq,
        "mean": agent.mean,
        "APTI": agent.apti,
        "capability": agent.capability,
        "generality": agent.normalised_generality,
        "coherence": agent.coherence,
    }


def _print_evenness(ranking: Ranking) -> None:
    """Generalised means over tests, and which test holds each agent back."""
    known = [(agent.policy, agent.evenness) for agent in ranking.agents if agent.evenness]
    if not known:
        return
    first = known[0][1]
    rows = []
    for policy, one in known:
        most = one.bottlenecks[0]
        means = [f"{value:.2f}" for value in one.means.values()]
        rows.append((policy, *means, one.weakest, f"{most.domain} +{most.gain:.3f}"))
    columns = (
        "policy", *(f"p = {p:g}" for p in first.means), "weakest",
        f"{100 * first.step:.0f} points more add most in",
    )  # fmt: skip
    title = f"coherence: means over tests by exponent p, scores of at least {first.floor:g}"
    print_table(title, columns, rows, right=range(1, 1 + len(first.means)))


def _print_sides(rankings: Sequence[Ranking]) -> None:
    """AIQ and mean of each side beside each other, where agents were played on several."""
    for difficulty in dict.fromkeys(one.difficulty for one in rankings):
        sides = {one.side: one for one in rankings if one.difficulty == difficulty}
        if len(sides) < 2:
            continue
        of = {(side, a.policy): a for side, one in sides.items() for a in one.agents}
        shown = [(what, side) for what in ("AIQ", "mean") for side in sides]
        rows = [
            (
                policy,
                *(
                    "-" if agent is None or (one := _measures(agent)[what]).value is None
                    else interval(one)
                    for what, side in shown
                    for agent in [of.get((side, policy))]
                ),
            )
            for policy in dict.fromkeys(policy for _, policy in of)
        ]  # fmt: skip
        where = f" ({difficulty})" if difficulty else ""
        columns = ("policy", *(f"{what}, {side}" for what, side in shown))
        print_table(f"sides beside each other{where} [95 % interval]", columns, rows)


def _about(agent: RankedAgent) -> str:
    """How far to trust the quotient of an agent."""
    if not agent.by_k:
        return f"{agent.policy}: no AIQ, {agent.aiq.reason}"
    around = ", ".join(f"{value:.2f} in {k}" for k, value in agent.by_k.items())
    of_suite = agent.aiq_of_suite
    behind = f"; {interval(agent.behind)} from the best" if agent.behind.value else ""
    return (
        f"{agent.policy}: AIQ {around}; with other trainings and pools"
        f" {of_suite.low:.2f} to {of_suite.high:.2f}{behind}"
    )
