"""`robo-eval compare`: which policy succeeds more often, and which cannot be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.checks import check_there
from robo_eval.cli.junit import JunitOption, reported
from robo_eval.cli.output import (
    JsonOption,
    interval,
    percent,
    print_json,
    print_table,
    say,
    say_missing_intervals,
)
from robo_eval.cli.settings import ConfigOption, settings_of
from robo_eval.cli.summary import ENOUGH_SCORED, too_few_scored, verification_problem
from robo_eval.core.errors import CheckFailedError
from robo_eval.core.wording import counted, p_text
from robo_eval.log.directory import TrialDirectory

if TYPE_CHECKING:
    from robo_eval.analysis.comparison import Comparison
    from robo_eval.metrics.rank_agreement import RankAgreement
    from robo_eval.metrics.standings import PolicyPair, SideComparison, Standing


def compare(
    trials: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="One or more trial directories.")
    ],
    *,
    config: ConfigOption = None,
    across_versions: Annotated[
        bool,
        typer.Option("--across-versions", help="Mix episodes of levels that changed in between."),
    ] = False,
    junit: JunitOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the success of every two policies, of one trial or of several.

    Several trials must have met the same test, or they are refused with exit code 2, naming the
    fields that differ, or the levels that changed in between. Policies that cannot be told apart
    share a rank, with the difference that would have been shown. Exit code 1 if a log is not what
    was logged, or if fewer than 95 % of the episodes of a policy have a score: then no winner is
    named.

    Examples: robo-eval compare runs/demo/sim; robo-eval compare runs/old runs/new
    """
    with reported(junit, "compare") as checks:
        for trial in trials:
            check_there(trial)
        from robo_eval.analysis.comparison import compare_trials

        opened = [TrialDirectory.open(trial) for trial in trials]
        found = compare_trials(opened, config=settings_of(config), across_versions=across_versions)
        if json:
            print_json(found.as_dict())
        else:
            _print(found)
        problems = {
            f"the log of {one.path} verifies": verification_problem(
                one.path, found.log_problems.get(str(one.path))
            )
            for one in opened
        }
        problems[ENOUGH_SCORED] = too_few_scored(found.uncovered) if found.uncovered else None
        for name, problem in problems.items():
            checks.add_problem("checks", name, problem)
        for side in found.sides:
            for pair in side.pairs:
                text = f"{interval(pair.difference)}, {_size(pair)}: {pair.text}"
                status = "missing" if pair.verdict is None else "pass"
                checks.add(side.side, f"{pair.first} - {pair.second}", text, status)
        said = next(filter(None, problems.values()), None)
        if said:
            raise CheckFailedError(said)


def _print(found: Comparison) -> None:
    level = percent(found.config.level)
    for side in found.sides:
        title = f"{found.name}, {side.side}: share of strict successes [{level} interval]"
        _print_policies(side, title)
        _print_pairs(side, f"difference of the shares [{level} interval]")
        _print_overlap(side)
        if side.agreement is not None:
            _say_agreement(side.agreement)
        say()
    for warning in found.warnings:
        say(f"warning: {warning}")


def _print_policies(side: SideComparison, title: str) -> None:
    has_bounds = any(own.bounds for own in side.policies)
    columns = ["policy", "rank", "letters", "success", "episodes"]
    rows = [
        (
            own.policy,
            own.ranks,
            own.letters or "-",
            interval(own.success),
            own.coverage.text,
            *([_bounds(own)] if has_bounds else []),
        )
        for own in side.by_success
    ]
    print_table(title, [*columns, "if missing failed, or succeeded"][: 5 + has_bounds], rows)
    say_missing_intervals(own.success for own in side.policies)
    if any(own.letters for own in side.policies):
        say("rank: what is left open; policies that share a letter were not told apart")
    say()


def _bounds(own: Standing) -> str:
    if own.bounds is None:
        return ""
    low, high = own.bounds
    return f"{low:.2f}, {high:.2f}"


def _print_pairs(side: SideComparison, title: str) -> None:
    if not side.pairs:
        say("one policy: nothing to compare it with on this side")
        return
    rows = [
        (
            f"{pair.first} - {pair.second}",
            interval(pair.difference),
            _size(pair),
            "-" if pair.p_holm is None else p_text(pair.p_holm),
            pair.text,
        )
        for pair in side.pairs
    ]
    columns = ("policies", "difference", "n", "p (Holm)", "verdict")
    print_table(title, columns, rows, right=(3,), prose=(4,))
    say_missing_intervals(pair.difference for pair in side.pairs)
    if side.n_compared:
        compared = counted(side.n_compared, "comparison")
        say(
            f"p: {'; '.join(side.tests)}; adjusted for {compared} by Holm's method; a difference is"
            f" shown at {side.alpha:g} or less"
        )
    for sentence in side.told:
        say(sentence)
    if any(pair.unit == "seeds" for pair in side.pairs):
        say("where seeds repeat, all episodes of a seed are one observation")
    left_out = max(pair.left_out for pair in side.pairs)
    if left_out:
        say(f"left out: up to {counted(left_out, 'episode')} a comparison, without a counterpart")


def _print_overlap(side: SideComparison) -> None:
    if not side.is_partial:
        return
    policies = list(side.overlap)
    title = "conditions that both played"
    rows = [(name, *(str(n) for n in row.values())) for name, row in side.overlap.items()]
    right = tuple(range(1, len(policies) + 1))
    print_table(title, ("policy", *policies), rows, right=right)


def _size(pair: PolicyPair) -> str:
    if pair.unit == "episodes":
        return counted(pair.n_units, "episode")
    pairs = counted(pair.n_pairs, "pair")
    return f"{pairs}, {counted(pair.n_units, 'seed')}" if pair.unit == "seeds" else pairs


def _say_agreement(found: RankAgreement) -> None:
    policies = counted(len(found.policies), "policy", "policies")
    say(f"order of {policies} in simulation against {found.side}, by {found.matching}:")
    for name, estimate in (
        ("mean maximum rank violation (0: the same order)", found.mmrv),
        ("Pearson correlation", found.pearson),
    ):
        note = f" ({estimate.reason})" if estimate.value is not None and estimate.reason else ""
        say(f"  {name}: {interval(estimate)}{note}")
    if found.left_out:
        say(f"  left out: {', '.join(found.left_out)}")
