"""Everything that is computed of one trial directory, from its log alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from robo_eval.core.schedule import episodes_in
from robo_eval.log.chain import START, ChainLink, break_text
from robo_eval.metrics.config import MetricConfig

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.analysis.acc import AccTable
    from robo_eval.analysis.acc.trial import Planned
    from robo_eval.core.plan import TrialPlan
    from robo_eval.log.directory import StrPath, TrialDirectory
    from robo_eval.metrics.summary import TrialSummary

SCORES: Final = "scores"
"""Folder beside the log for scores of later versions of the scoring rules."""


def open_trial(path: StrPath) -> TrialDirectory:
    """Open a trial directory to be scored.

    What reads its incident log is found among what is installed, by the entry point group
    `robo_eval.incident_reader`; nobody has to name it.

    Args:
        path: The trial directory.

    Raises:
        TrialDirectoryError: If it is none, or plan or manifest are missing or damaged.
        MissingExtraError: If it has an incident log, and nothing that reads it is installed: its
            safety score would be missing, which looks like a trial nobody reported on.
    """
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.incident_log import check_reader

    trial = TrialDirectory.open(path)
    check_reader(trial.path)
    return trial


def analyse_trial(
    trial: TrialDirectory,
    *,
    config: MetricConfig | None = None,
    frame: pd.DataFrame | None = None,
    evidence: Mapping[str, Path] | None = None,
) -> TrialSummary:
    """Metrics and analyses of a trial, scored with the rules at hand.

    Says in `verified` and `log_problem` whether the rows are those that were logged; numbers are
    computed all the same.

    Args:
        trial: The trial directory.
        config: Settings; those of the plan if none are given.
        frame: What `scored_frame(trial)` returned, for callers that need it themselves: reading
            and checking the log costs as much as a third of the analysis.
        evidence: Files of incidents, faults, repairs and ratings to read instead of those in the
            trial directory, by kind.

    Raises:
        InputError: If the log cannot be scored, or a file of evidence not be read.
        TrialDirectoryError: If the log cannot be read.
    """
    from robo_eval.conduct.deviations import deviations_of, read_beside
    from robo_eval.log.evidence_read import read_evidence
    from robo_eval.metrics.summary import summary_of_table

    settings = config or MetricConfig.of(trial.plan.metrics)
    load_metrics(trial)
    noted = read_evidence(trial.path, evidence)
    problem = log_problem(trial)
    table = scored_frame(trial, config=config) if frame is None else frame
    # A table of the metrics shows none of it, and it takes a tenth of their time.
    find_acc = cache(lambda: _acc(table, trial.plan, settings))
    summary = summary_of_table(
        table, trial.plan, config=settings, find_acc=find_acc, evidence=noted
    )
    deviations = deviations_of(
        table,
        trial.plan,
        trial.plan_digest,
        beside=read_beside(trial.path, noted),
        series=summary.series,
    )
    return replace(summary, verified=problem is None, log_problem=problem, deviations=deviations)


def load_metrics(trial: TrialDirectory) -> None:
    """Register the metrics of the files that the plan of a trial names; they lie in the trial.

    Raises:
        InputError: If a file cannot be used.
    """
    from robo_eval.log.directory import PLAN
    from robo_eval.metrics import registry

    files = [trial.path / name for name in trial.plan.metrics.modules]
    registry.load_files(files, asked_by=f"{trial.path / PLAN}: metrics.modules: ")


def acc_of(trial: TrialDirectory, *, config: MetricConfig | None = None) -> AccTable:
    """Capability and generality of every policy of a trial; see `acc_for_trial`.

    Left out are tasks that are not played as the panel played them, and policies that are members
    of the panel.

    Raises:
        InputError: If the log cannot be scored.
        TrialDirectoryError: If the log cannot be read.
    """
    return _acc(
        scored_frame(trial, config=config),
        trial.plan,
        config or MetricConfig.of(trial.plan.metrics),
    )


def scored_frame(
    trial: TrialDirectory,
    recorded: pd.DataFrame | None = None,
    config: MetricConfig | None = None,
) -> pd.DataFrame:
    """The episodes of a trial with the scores of the rules at hand.

    Args:
        trial: The trial directory.
        recorded: What `trial.frame()` returned, for callers that have it.
        config: Settings; those of the plan if none are given.

    Returns:
        The table of `metrics.frame.episodes_frame`, in which `task_variant` tells tasks of one
        family apart.

    Raises:
        InputError: If the log cannot be scored.
        TrialDirectoryError: If the log cannot be read.
    """
    from robo_eval.metrics.scoring import rescored_frame

    faults = (config or trial.plan.metrics).policy_faults
    return rescored_frame(trial.frame() if recorded is None else recorded, trial.plan, faults)


def write_scores(trial: TrialDirectory, recorded: pd.DataFrame | None = None) -> Path | None:
    """Keep scores that differ in version from the recorded ones, in `scores/v<version>.csv`.

    The log is not touched, so old and new scores stand side by side.

    Args:
        trial: The trial directory.
        recorded: What `trial.frame()` returned, for callers that have it.

    Returns:
        The file written; None if every episode was recorded under the rules at hand.
    """
    from robo_eval.metrics.scoring import SCORE_VERSION, rescore

    frame = trial.frame() if recorded is None else recorded
    if frame.empty or (frame["score_version"] == SCORE_VERSION).all():
        return None
    scores = rescore(frame, trial.plan)
    newest = scores[scores["score_version"] == SCORE_VERSION]
    folder = trial.path / SCORES
    folder.mkdir(exist_ok=True)
    path = folder / f"v{SCORE_VERSION}.csv"
    part = folder / f".{path.name}.part"
    newest.to_csv(part, index=False)
    os.replace(part, path)  # noqa: PTH105 - atomic on every platform
    return path


# Is the log what was logged? ---------------------------------------------------------------------


def log_problem(trial: TrialDirectory) -> str | None:
    """Why the rows of a trial are not those that were logged; None if they are.

    Takes the digest of every row again, follows the chain, and compares its length and end with
    the manifest: a tenth of a second for a thousand rows. Snapshots are those of the plan. Traces
    are not read; `robo-eval verify` does, and names every problem instead of the first.

    Returns:
        The first problem, for people, such as `row 7 (t0-...) was changed`.

    Raises:
        TrialDirectoryError: If the database cannot be read, or is of another schema version.
    """
    from robo_eval.core.errors import TrialDirectoryError
    from robo_eval.log import database
    from robo_eval.log.directory import changed_snapshots

    try:
        # Read before the rows: a run that is under way may append more meanwhile.
        manifest = trial.manifest
    except TrialDirectoryError as err:
        return str(err).removeprefix(f"{trial.path}{os.sep}")
    if manifest is None:
        return "manifest.json is missing, so nothing says whether rows are"
    last = START
    with database.reading(trial.path / database.DATABASE) as connection:
        for chain, cells in database.stored_rows(connection):
            problem = _row_problem(chain, cells, last, trial.plan_digest)
            if problem:
                return problem
            last = ChainLink(chain["sequence"], str(chain["row_sha256"]))
            if last.sequence == manifest.rows and last.sha256 != manifest.head:
                return f"row {manifest.rows} is not the one whose digest manifest.json holds"
    count = last.sequence
    if count < manifest.rows:
        return f"{count} of {manifest.rows} rows that manifest.json counts are there"
    if count > manifest.rows and manifest.status == "complete":
        return f"{count - manifest.rows} rows came after the trial was complete"
    return next((" ".join(found) for found in changed_snapshots(trial.path, trial.plan)), None)


def _row_problem(
    chain: dict[str, Any], cells: dict[str, Any], last: ChainLink, plan_digest: str
) -> str | None:
    from robo_eval.log.rows import ROW_FORM, stored_digest

    name = f"row {chain['sequence']} ({cells['episode_id']!s:.80})"
    if broken := break_text(last, chain["sequence"], chain["previous_sha256"]):
        return f"{name} {broken}"
    if chain["row_form"] != ROW_FORM:
        return f"{name} has an unknown form"
    if stored_digest(cells, chain) != chain["row_sha256"]:
        return f"{name} was changed"
    return None if cells["plan_digest"] == plan_digest else f"{name} belongs to another plan"


# Capability and generality -----------------------------------------------------------------------


def _acc(table: pd.DataFrame, plan: TrialPlan, config: MetricConfig) -> AccTable:
    import pandas as pd

    from robo_eval.analysis import panel
    from robo_eval.analysis.acc.trial import acc_of_table
    from robo_eval.core.kinds import Profile

    known = {*table["profile"], *(task.profile.value for task in plan.tasks if task.levels)}
    played = [p.value for p in Profile if p.value in known]
    items = pd.concat(
        [panel.item_difficulty(name).assign(profile=name) for name in played or ["paper"]],
        ignore_index=True,
    ).assign(task=panel.TASK)
    reasons = [", ".join(panel.unlike_items(task)) for task in plan.tasks]
    kept, other_tasks = _without_other_tasks(table, plan, reasons)
    members = _members(table, plan)
    inside = [f"{policy} ({_member_text(policy, name)})" for policy, name in members.items()]
    kept = kept[~kept["policy"].isin(list(members))]
    found = acc_of_table(
        kept,
        items,
        resamples=config.resamples,
        level=config.level,
        seed=config.seed,
        planned=_planned(plan, reasons, members),
        min_coverage=config.min_coverage,
    )
    return replace(
        found,
        left_out=(*found.left_out, *other_tasks, *inside),
        warnings=(*panel.warnings(kept), *_not_begun(kept)) if found.n_items else (),
        panel_members=members,
    )


def _not_begun(table: pd.DataFrame) -> Iterator[str]:
    """Which items count episodes of trials whose novelty never began."""
    from robo_eval.metrics.trials import not_begun_text

    for policy, own in table.groupby("policy"):
        if told := not_begun_text(own):
            yield (
                f"{policy}: some episodes ended before their novelty began and count at their level"
                f" all the same: {told}"
            )


def _planned(plan: TrialPlan, reasons: list[str], members: dict[str, str]) -> Planned | None:
    """Episodes the plan asks for of tasks played as the panel played them; None if imported."""
    if plan.imported is not None:  # it describes what was found, and plans nothing
        return None
    planned: dict[tuple[str, str], dict[tuple[Any, ...], int]] = {}
    every = [(side, *one) for side in plan.sides for one in episodes_in(plan, side).items()]
    for side, condition, count in every:
        task = plan.tasks[condition.task]
        if reasons[condition.task] or condition.level is None or condition.difficulty is None:
            continue
        key = (task.env, task.profile.value, condition.level, condition.difficulty.value)
        for policy in plan.policies:
            if policy.name not in members:
                own = planned.setdefault((side.value, policy.name), {})
                own[key] = own.get(key, 0) + count
    return planned


def _members(table: pd.DataFrame, plan: TrialPlan) -> dict[str, str]:
    """Policies that are the panel's own controllers, which would be judged by themselves.

    Returns:
        Name in the panel by name in the trial.
    """
    from robo_eval.analysis import panel

    if plan.imported is None and not any(policy.factory for policy in plan.policies):
        return {}  # no member has a registered name
    pairs = sorted(
        {(p, str(d)) for p, d in zip(table["policy"], table["policy_digest"], strict=True)}
    )
    names = panel.members_among(digest for _, digest in pairs)
    return {policy: names[digest] for policy, digest in pairs if digest in names}


def _member_text(policy: str, member: str) -> str:
    return "a member of the panel" if policy == member else f"{member}, a member of the panel"


def _without_other_tasks(
    table: pd.DataFrame, plan: TrialPlan, reasons: list[str]
) -> tuple[pd.DataFrame, list[str]]:
    """What the panel played under other settings has another difficulty, which nobody knows."""
    from robo_eval.metrics.tasks import TaskLookup, rows_for_lookup, task_label, task_variants

    if not any(reasons):
        return table, []
    lookup = TaskLookup(plan)
    tasks = [lookup.index_of(row, lambda index: reasons[index]) for row in rows_for_lookup(table)]
    is_kept = [index is None or not reasons[index] for index in tasks]
    variants = task_variants(plan)
    left_out = [
        f"{task_label(plan.tasks[index].family or plan.tasks[index].env, variants[index])}"
        f" (tasks.{index}: {reasons[index]})"
        for index in sorted({index for index in tasks if index is not None})
        if reasons[index]
    ]
    return table[is_kept], left_out
