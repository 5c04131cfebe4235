"""How a planned episode that was played becomes a row."""

from __future__ import annotations

import re
from typing import Any

from robo_eval.core.episode import Episode, never_began
from robo_eval.core.plan import TrialPlan
from robo_eval.core.schedule import PlannedEpisode, task_and_policy
from robo_eval.log.provenance import numerics


def row_for(
    planned: PlannedEpisode,
    plan: TrialPlan,
    plan_digest: str,
    **measured: Any,  # noqa: ANN401 - the fields of Episode
) -> Episode:
    """A row with everything the plan says about an episode, and what was measured.

    Args:
        planned: The episode.
        plan: The locked plan.
        plan_digest: Its SHA-256.
        **measured: The other columns; and as `declaration` what the policy declared after it, see
            `core.trials.checked_declaration`.
    """
    task, policy = task_and_policy(plan, planned)
    declaration = measured.pop("declaration", None)
    declared = re.search(r"-(v\d+)$", task.env)
    has_levels = planned.condition.level is not None
    measured.setdefault("calibration", planned.way.calibration)
    if planned.start is not None:
        measured.setdefault("initial_state_source", "state")
    if planned.condition.novelty:
        asked = dict(planned.condition.novelty)
        measured["novelty"] = {**(measured.get("novelty") or {}), "axes": asked}
    if drawn := planned.way.drawn(planned.seed):
        measured["novelty"] = {**(measured.get("novelty") or {}), "constants": drawn}
    if never_began(measured.get("novelty"), measured.get("ticks")):
        measured["novelty"] = {**measured["novelty"], "began": False}
    if planned.trial is not None:
        place = planned.trial.as_dict(declaration)
        measured["novelty"] = {**(measured.get("novelty") or {}), "trial": place}
    return Episode(
        episode_id=planned.episode_id,
        attempt=planned.attempt,
        pair_id=planned.pair_id,
        arm=planned.arm,
        control_id=planned.control_id,
        plan_digest=plan_digest,
        side=planned.side,
        task=task.env,
        family=task.family or task.env,
        level=planned.condition.level,
        difficulty=planned.condition.difficulty.value if planned.condition.difficulty else None,
        profile=task.profile.value if has_levels else None,
        seed=planned.seed,
        policy=policy.name,
        task_version=declared[1] if declared else None,
        numerics=numerics(),
        **measured,
    )
