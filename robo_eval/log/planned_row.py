"""How an episode that was played in a simulator becomes a row."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

from robo_eval.core.episode import Episode, never_began
from robo_eval.core.plan import TrialPlan
from robo_eval.core.policy import aside
from robo_eval.core.schedule import PlannedEpisode, task_and_policy
from robo_eval.log.provenance import numerics


def row_for(
    planned: PlannedEpisode,
    plan: TrialPlan,
    plan_digest: str,
    **measured: Any,
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
    version = re.search(r"-(v\d+)$", task.env)
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
        task_version=version[1] if version else None,
        numerics=numerics(),
        **measured,
    )


def physical_state(env: Any) -> dict[str, Any]:
    """Where the episode starts, without how it came about: the seed in the row says that."""
    for name in ("physical_state", "get_state"):
        read = getattr(env.unwrapped, name, None)
        if read is not None:
            return {key: value for key, value in read().items() if key != "history"}
    return {}


def novelty_of(env: Any) -> dict[str, Any]:
    """What an environment says of the novelty of its episode; empty if it says nothing."""
    return dict(getattr(env.unwrapped, "novelty", None) or {})


def measured(env: Any, info: Mapping[str, Any]) -> dict[str, Any]:
    """Stages that were done and measures of the control, where an environment tells them."""
    found: dict[str, Any] = {}
    stage = info.get("stage")
    if type(stage) is int and stage >= 0:
        found["plan_depth"] = stage
    measures = getattr(env.unwrapped, "measures", None)
    if callable(measures):
        found["control_quality"] = {str(name): float(value) for name, value in measures().items()}
    return found


def declared(env: Any) -> dict[str, str]:
    """`behaviour` of its level and `engine`, where an environment says them."""
    found = {}
    for name in ("behaviour", "engine"):
        # A level that breaks says so in its episodes.
        with aside(), contextlib.suppress(Exception):
            value = getattr(env.unwrapped, name, None)
            if isinstance(value, str) and value:
                found[name] = value
    return found


def tick_s_of(env: Any) -> float | None:
    """Length of a tick; None if the environment does not say it."""
    rate_hz = env.metadata.get("render_fps")
    return 1.0 / rate_hz if rate_hz else None
