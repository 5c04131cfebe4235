"""How far episodes of tasks with stages come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from robo_eval.core.estimate import Estimate
from robo_eval.core.task import task_of
from robo_eval.metrics.config import MetricConfig
from robo_eval.metrics.performance import success_of_rows
from robo_eval.metrics.tables import groups, main_rows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Which share of the episodes of a task did each of its stages.

    Attributes:
        title: What the task is called.
        names: Its stages, in order.
        rows: Of each policy: its name shown, and a share for each stage.
    """

    title: str
    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Estimate]]]


def stages_of(
    frame: pd.DataFrame, policies: Mapping[tuple[str, str], str], config: MetricConfig
) -> list[Stages]:
    """A table for each task that has stages and whose episodes say how many were done.

    Args:
        frame: Episodes, as `metrics.frame.episodes_frame` returns them.
        policies: What each policy on a side is called, in the order shown.
        config: Settings of the intervals.
    """
    rows = main_rows(frame, "plan_depth")
    rows = rows.take(rows.scored & ~rows.missing("plan_depth"))
    found = []
    for (env,), own in groups(rows, ("task",)).items():
        spec = task_of(env)
        if spec is None or not spec.stages:
            continue
        shares = []
        by_policy = groups(own, ("side", "policy"))
        for key, name in policies.items():
            if key not in by_policy:
                continue
            episodes = by_policy[key]
            depth = episodes["plan_depth"].astype(np.int64)
            done = [
                success_of_rows(
                    episodes.having(success=(depth >= stage).astype(object)), config, exact=True
                )
                for stage in range(1, len(spec.stages) + 1)
            ]
            shares.append((name, done))
        found.append(Stages(title=spec.title, names=spec.stages, rows=shares))
    return found
