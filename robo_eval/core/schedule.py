"""Which episodes a plan consists of, in which order, and which of them are still to do."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import Condition, PolicyPlan, TaskPlan, TrialPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEpisode:
    """One episode a plan asks for.

    Attributes:
        base_id: Name of the episode; the row of attempt n > 1 adds `-a<n>`.
        attempt: 1, or more when earlier attempts were void, lost or ended by a fault.
        arm: Main, or the matched control.
        control_id: Base id of the matched control episode, if the plan has controls.
        condition: Task index, level and difficulty.
        policy: Index of the policy in the plan.
        index: Number of the episode within its cell, from 0.
        seed: Seed of the environment.
        side: Where it is played.
    """

    base_id: str
    attempt: int = 1
    arm: Arm
    control_id: str | None
    condition: Condition
    policy: int
    index: int
    seed: int
    side: Side

    @property
    def episode_id(self) -> str:
        """The id its row carries."""
        return self.base_id if self.attempt == 1 else f"{self.base_id}-a{self.attempt}"

    @property
    def cell(self) -> tuple[Condition, int, Arm, Side]:
        """What episodes that differ only in their seed share."""
        return (self.condition, self.policy, self.arm, self.side)


def schedule(plan: TrialPlan, side: Side) -> list[PlannedEpisode]:
    """Every episode of a plan on one side, in the order the plan asks for.

    With `control: true` each episode of a level above 0 names its matched control: the episode
    of the same policy and seed at level 0. Where level 0 is part of the plan that episode is
    the control; elsewhere a control arm is added. Of an imported trial nothing is played.
    """
    if plan.imported is not None:
        return []
    controls: dict[str, PlannedEpisode] = {}
    cells: list[list[PlannedEpisode]] = []
    for condition in plan.conditions():
        for policy in range(len(plan.policies)):
            cell = []
            for index in range(plan.episodes):
                episode = _episode(plan, condition, policy, index, side)
                if plan.control and condition.level:
                    control = _control_of(plan, episode)
                    episode = replace(episode, control_id=control.base_id)
                    if control.arm is Arm.CONTROL:
                        controls.setdefault(control.base_id, control)
                cell.append(episode)
            cells.append(cell)
    ordered = _ordered(plan, cells)
    return [*controls.values(), *ordered]


def _episode(
    plan: TrialPlan, condition: Condition, policy: int, index: int, side: Side
) -> PlannedEpisode:
    seed = plan.seeds.first + index
    base_id = f"{condition.key}-{plan.policies[policy].name}-s{seed}-{side.value}"
    return PlannedEpisode(
        base_id=base_id,
        arm=Arm.MAIN,
        control_id=None,
        condition=condition,
        policy=policy,
        index=index,
        seed=seed,
        side=side,
    )


def _control_of(plan: TrialPlan, episode: PlannedEpisode) -> PlannedEpisode:
    """The matched episode at level 0: same task, policy and seed.

    Level 0 has no novelty whose strength could differ, so one control serves all difficulties.
    """
    task = plan.tasks[episode.condition.task]
    condition = Condition(task=episode.condition.task, level=0, difficulty=task.difficulties[0])
    in_plan = task.levels is not None and 0 in task.levels
    control = _episode(plan, condition, episode.policy, episode.index, episode.side)
    if in_plan:
        return control
    return replace(control, base_id=f"control-{control.base_id}", arm=Arm.CONTROL)


def _ordered(plan: TrialPlan, cells: Sequence[Sequence[PlannedEpisode]]) -> list[PlannedEpisode]:
    if plan.order == "interleaved":
        n_policies = len(plan.policies)
        groups = [cells[i : i + n_policies] for i in range(0, len(cells), n_policies)]
        return [cell[index] for group in groups for index in range(plan.episodes) for cell in group]
    episodes = [episode for cell in cells for episode in cell]
    if plan.order == "randomised":
        # random.Random.shuffle is stable across Python versions and needs no numpy here.
        random.Random(plan.order_seed).shuffle(episodes)  # noqa: S311 - not cryptography
    return episodes


def remaining(
    planned: Iterable[PlannedEpisode],
    attempts: Mapping[str, Sequence[EndReason]],
    *,
    retries: int,
) -> list[PlannedEpisode]:
    """What is still to do, given the attempts that are already logged.

    Args:
        planned: The whole schedule.
        attempts: End reasons of the logged attempts by base id, oldest first.
        retries: How often an attempt that was lost or ended by a fault is tried again.

    Returns:
        The episodes without a scored attempt: never tried, void (always tried again), or lost
        and faulty while retries are left.
    """
    todo = []
    for episode in planned:
        past = attempts.get(episode.base_id, ())
        if any(reason.is_scored for reason in past):
            continue
        failed = sum(reason is not EndReason.VOID for reason in past)
        if failed > retries:
            continue
        todo.append(replace(episode, attempt=len(past) + 1))
    return todo


def policy_seed(seed: int) -> int:
    """Seed for the policy's own randomness in an episode whose environment uses `seed`.

    A policy seeded like the environment would draw the very numbers the start state was drawn
    from.
    """
    return int.from_bytes(hashlib.sha256(f"policy:{seed}".encode()).digest()[:4], "big") >> 1


def task_and_policy(plan: TrialPlan, episode: PlannedEpisode) -> tuple[TaskPlan, PolicyPlan]:
    """The sections of the plan an episode refers to."""
    return plan.tasks[episode.condition.task], plan.policies[episode.policy]
