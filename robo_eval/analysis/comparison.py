"""The policies of one trial, or of several that played the same test, against each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.errors import InputError
from robo_eval.core.plain import plain
from robo_eval.metrics.config import MetricConfig

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from robo_eval.log.directory import TrialDirectory
    from robo_eval.metrics.standings import SideComparison

LOOKS: Final = "looks.json"
"""File of a trial: how many episodes had a score each time its policies were compared."""
COMPARISON_VERSION = 1
"""Version of the form of `Comparison.as_dict`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What `robo-eval compare` shows.

    Attributes:
        name: Title of the plan, or how many trials it is of.
        sides: The policies of each side against each other.
        config: Settings of the metrics.
        log_problems: Why the rows of a trial are not those that were logged, by trial directory;
            empty if all are.
        warnings: What to know that is no reason to refuse.
    """

    name: str
    sides: tuple[SideComparison, ...]
    config: MetricConfig
    log_problems: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def uncovered(self) -> list[str]:
        """Policies with too few scored episodes for a verdict, each with its counts."""
        several = len(self.sides) > 1
        return [
            f"{own.policy}{f' ({side.side})' if several else ''}: {own.coverage.text}"
            for side in self.sides
            for own in side.uncovered
        ]

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON would have it: no NaN, no infinity."""
        return {
            "version": COMPARISON_VERSION,
            "name": self.name,
            "verified": not self.log_problems,
            "log_problems": dict(self.log_problems),
            "warnings": list(self.warnings),
            "sides": plain(self.sides),
            "configuration": self.config.as_dict(),
            "configuration_digest": self.config.digest,
        }


def compare_trials(
    trials: Sequence[TrialDirectory],
    *,
    config: MetricConfig | None = None,
    across_versions: bool = False,
) -> Comparison:
    """Compare every two policies of some trials, side by side.

    Policies keep their names if no two trials share one; else they are called
    `directory/policy`.

    Args:
        trials: At least one trial directory.
        config: Settings; those of the first plan if none are given.
        across_versions: Whether episodes of levels that changed in between are compared all the
            same, with a warning.

    Raises:
        InputError: If a trial is named twice or beside its copy, there is one policy only, or two
            policies did not meet the same test; the message names every field that differs, or the
            levels that changed.
        TrialDirectoryError: If a log cannot be read.
    """
    _check_plans(trials, has_config=config is not None)
    # Not before: a refusal need not wait for pandas.
    from robo_eval.analysis.trial import log_problem, scored_frame
    from robo_eval.metrics.comparison import (
        compare_rows,
        joined,
        planned_by_policy,
        rows_to_compare,
    )
    from robo_eval.metrics.stopped import plan_as_played

    check_copies(trials)
    settings = config or MetricConfig.of(trials[0].plan.metrics)
    problems = {str(trial.path): log_problem(trial) for trial in trials}
    tables = [scored_frame(trial, config=settings) for trial in trials]
    names = _names(trials, tables)
    _check_rows(tables, names)
    changed = _changed(trials, tables, across_versions=across_versions)
    planned = {
        (side, own[policy]): count
        for trial, table, own in zip(trials, tables, names, strict=True)
        for (side, policy), count in planned_by_policy(plan_as_played(table, trial.plan)).items()
    }
    rows = joined(
        [
            rows_to_compare(table.assign(policy=table["policy"].map(own)))
            for table, own in zip(tables, names, strict=True)
        ]
    )
    return Comparison(
        name=trials[0].plan.name if len(trials) == 1 else f"{len(trials)} trials",
        sides=compare_rows(rows, planned, settings),
        config=settings,
        log_problems={path: problem for path, problem in problems.items() if problem},
        warnings=(*changed, *_warnings(trials, tables), *_looks(trials, tables, settings)),
    )


def check_copies(trials: Sequence[TrialDirectory]) -> None:
    """Refuse a trial beside a copy of it, or of its beginning.

    Raises:
        InputError: If two trials begin with the same row; the message names both.
        TrialDirectoryError: If a log cannot be read.
    """
    from robo_eval.log import database

    begun: dict[str, Path] = {}
    for trial in trials:
        with database.reading(trial.path / database.DATABASE) as connection:
            # A row's digest covers its plan, when it was played, and everything before it.
            found = connection.execute("SELECT row_sha256 FROM episodes ORDER BY sequence LIMIT 1")
            (first,) = found.fetchone() or (None,)
        other = begun.setdefault(str(first), trial.path)
        if first is not None and other is not trial.path:
            raise InputError(
                f"{trial.path}: holds the rows of {other}, one is a copy of the other; name trials"
                " that were played apart"
            )


def _check_plans(trials: Sequence[TrialDirectory], *, has_config: bool) -> None:
    from robo_eval.metrics.compatible import incompatibilities

    first = trials[0]
    places = Counter(trial.path.resolve() for trial in trials)
    twice = [trial.path for trial in trials if places[trial.path.resolve()] > 1]
    if twice:
        raise InputError(f"{twice[-1]}: named twice; a trial is compared with others")
    for other in trials[1:]:
        differing = [
            text
            for text in incompatibilities(first.plan, other.plan)
            if not (has_config and text.startswith("metrics."))
        ]
        if differing:
            raise _refusal(str(first.path), str(other.path), differing)


def _refusal(first: str, second: str, differing: Sequence[str]) -> InputError:
    return InputError(f"{first} and {second} cannot be compared: {'; '.join(differing)}")


def _names(
    trials: Sequence[TrialDirectory], tables: Sequence[pd.DataFrame]
) -> list[dict[str, str]]:
    """What each policy of each trial is called in the comparison."""
    own = [
        list(
            dict.fromkeys(
                (
                    *(policy.name for policy in trial.plan.policies),
                    *sorted(set(table["policy"])),
                )
            )
        )
        for trial, table in zip(trials, tables, strict=True)
    ]
    counts = Counter(name for names in own for name in names)
    if len(counts) == len(trials) == 1:
        (name,) = counts
        raise InputError(
            f"{trials[0].path}: {name!r} is its only policy, so there is nothing to compare it"
            " with; name a second trial directory"
        )
    if max(counts.values()) == 1:
        return [{name: name for name in names} for names in own]
    folders = [trial.path.resolve().name for trial in trials]
    if len(set(folders)) < len(folders):
        folders = [str(trial.path) for trial in trials]
    return [
        {name: f"{folder}/{name}" for name in names}
        for folder, names in zip(folders, own, strict=True)
    ]


def _check_rows(tables: Sequence[pd.DataFrame], names: Sequence[Mapping[str, str]]) -> None:
    from robo_eval.metrics.compatible import incompatible_rows

    policies = {
        label: table[table["policy"] == policy]
        for table, own in zip(tables, names, strict=True)
        for policy, label in own.items()
    }
    first, *others = policies
    for other in others:
        differing = incompatible_rows(policies[first], policies[other], whatever_conditions=True)
        if differing:
            raise _refusal(first, other, differing)
    # That two policies met nothing in common is no reason to refuse the others.
    every = combinations(policies, 2)
    if all(incompatible_rows(policies[one], policies[other]) for one, other in every):
        differing = incompatible_rows(policies[first], policies[others[0]])
        raise _refusal(first, others[0], differing)


def _changed(
    trials: Sequence[TrialDirectory], tables: Sequence[pd.DataFrame], *, across_versions: bool
) -> tuple[str, ...]:
    import pandas as pd

    from robo_eval.metrics.compatible import check_levels

    placed = [
        table.assign(trial=str(trial.path)) for trial, table in zip(trials, tables, strict=True)
    ]
    return check_levels(pd.concat(placed, ignore_index=True), across_versions=across_versions)


def _looks(
    trials: Sequence[TrialDirectory], tables: Sequence[pd.DataFrame], config: MetricConfig
) -> list[str]:
    """What it costs to have compared while episodes came in; each trial keeps its looks."""
    from robo_eval.stats.sequential import error_of_looks

    alpha, found = 1.0 - config.level, []
    for trial, table in zip(trials, tables, strict=True):
        if trial.plan.stopping:  # a rule allows for looks
            continue
        sizes = _look_at(trial.path / LOOKS, int(table["quality"].notna().sum()))
        if len(sizes) > 1:
            found.append(
                f"{trial.path}: compared after {', '.join(map(str, sizes))} scored episodes; with"
                f" so many looks a test at {alpha:.2g} names a winner in about"
                f" {error_of_looks(sizes, alpha=alpha):.0%} of trials where nothing differs, and a"
                " rule in the plan, `stopping`, in no more than it says"
            )
    return found


def _look_at(path: Path, scored: int) -> list[int]:
    """The numbers of scored episodes at which a trial was compared, this one among them."""
    from robo_eval.core.errors import RoboEvalError
    from robo_eval.log.files import write_atomically

    try:
        known = [int(size) for size in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        known = []
    sizes = sorted({size for size in known if 0 < size < scored} | ({scored} if scored else set()))
    if sizes != known:
        with suppress(RoboEvalError):  # a trial that cannot be written to is compared all the same
            write_atomically(path, json.dumps(sizes).encode(), durable=False)
    return sizes


def _warnings(trials: Sequence[TrialDirectory], tables: Sequence[pd.DataFrame]) -> tuple[str, ...]:
    found = []
    software = sorted({str(name) for table in tables for name in table["software"].dropna()})
    if len(software) > 1:
        found.append(f"played with different software: {', '.join(software)}")
    if any(trial.plan.stopping for trial in trials):
        found.append(
            "the plan may end early, and these p values presume a fixed number of episodes: its"
            " stopping rule decides between the policies it names"
        )
    return tuple(found)
