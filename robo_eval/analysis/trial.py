"""Everything that is computed of one trial directory, from its log alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from robo_eval.metrics.config import MetricConfig

if TYPE_CHECKING:
    import pandas as pd

    from robo_eval.analysis.acc import AccTable
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.metrics.summary import TrialSummary

SCORES: Final = "scores"
"""Folder beside the log for scores of later versions of the scoring rules."""


def analyse_trial(trial: TrialDirectory, *, config: MetricConfig | None = None) -> TrialSummary:
    """Metrics and analyses of a trial, scored with the rules at hand.

    Raises:
        InputError: If the log cannot be scored.
        TrialDirectoryError: If the log cannot be read.
    """
    from robo_eval.metrics.summary import summarise

    settings = config or MetricConfig()
    frame = scored_frame(trial)
    acc = _acc(frame, settings)
    return summarise(frame, trial.plan, config=settings, acc=acc)


def acc_of(trial: TrialDirectory, *, config: MetricConfig | None = None) -> AccTable:
    """Capability and generality of every policy of a trial; see `acc_for_trial`."""
    return _acc(scored_frame(trial), config or MetricConfig())


def scored_frame(trial: TrialDirectory) -> pd.DataFrame:
    """The episodes of a trial with the scores of the rules at hand."""
    from robo_eval.metrics.scoring import rescored_frame

    return rescored_frame(trial.frame(), trial.plan)


def write_scores(trial: TrialDirectory) -> Path | None:
    """Keep scores that differ in version from the recorded ones, in `scores/v<version>.csv`.

    The log is not touched, so old and new scores stand side by side.

    Returns:
        The file written; None if every episode was recorded under the rules at hand.
    """
    from robo_eval.metrics.scoring import SCORE_VERSION, rescore

    frame = trial.frame()
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


def _acc(frame: pd.DataFrame, config: MetricConfig) -> AccTable:
    import pandas as pd

    from robo_eval.analysis import panel
    from robo_eval.analysis.acc import acc_for_trial
    from robo_eval.core.kinds import Profile

    played = [p.value for p in Profile if (frame["profile"] == p.value).any()]
    tables = [panel.item_difficulty(name).assign(profile=name) for name in played or ["paper"]]
    items = pd.concat(tables, ignore_index=True).assign(task=panel.TASK)
    names = {member.digest: member.name for member in panel.members()}
    # The panel's own controllers would be judged by themselves.
    outside = frame[~frame["policy_digest"].isin(list(names))]
    table = acc_for_trial(
        outside, items, resamples=config.resamples, level=config.level, seed=config.seed
    )
    inside = sorted({names[digest] for digest in frame["policy_digest"] if digest in names})
    return replace(
        table, left_out=(*table.left_out, *(f"{name} (a member of the panel)" for name in inside))
    )
