"""Which episodes a plan consists of, in which order, and which of them are still to do."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

from robo_eval.core.episode import Episode
from robo_eval.core.kinds import Arm, EndReason, Side
from robo_eval.core.plan import (
    AS_IS,
    Injection,
    PlannedCondition,
    PolicyPlan,
    TaskPlan,
    TrialPlan,
    Way,
)
from robo_eval.core.trials import InTrial, TrialsPlan

_Planned = TypeVar("_Planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEpisode:
    """One episode a plan asks for.

    Attributes:
        base_id: Name of the episode; the row of attempt n > 1 adds `-a<n>`.
        attempt: 1, or more when earlier attempts were void, lost or ended by a fault.
        arm: Main, or the matched control.
        control_id: Base id of the matched control episode, if the plan has controls.
        condition: Task index, level and difficulty, or novelty.
        policy: Index of the policy in the plan.
        index: Number of the episode within its cell, from 0.
        seed: Seed of the environment.
        side: Where it is played.
        pair_id: Shared with the episode of the other side it is matched with.
        start: Physical state it starts from; None for the one its seed gives.
        way: What it is played with.
        trial: Where it stands in its trial; None if it stands alone.
        series: Name of the trial it is played in, with its policy; empty if it stands alone.
    """

    base_id: str
    attempt: int = 1
    arm: Arm
    control_id: str | None
    condition: PlannedCondition
    policy: int
    index: int
    seed: int
    side: Side
    pair_id: str | None = None
    start: Mapping[str, Any] | None = None
    way: Way = AS_IS
    trial: InTrial | None = None
    series: str = ""

    @property
    def is_first(self) -> bool:
        """Whether it is the first of its cell, or of a trial the first normal or novel one."""
        if self.trial is None:
            return self.index == 0
        return self.trial.number == 0 and self.trial.episode in (0, self.trial.onset)

    @property
    def episode_id(self) -> str:
        """The id its row carries."""
        return self.base_id if self.attempt == 1 else f"{self.base_id}-a{self.attempt}"

    @property
    def cell(self) -> tuple[PlannedCondition, int, Arm, Side, Way]:
        """What episodes that differ only in their seed share."""
        return (self.condition, self.policy, self.arm, self.side, self.way)


def schedule(plan: TrialPlan, side: Side) -> list[PlannedEpisode]:
    """Every episode of a plan on one side, in the order the plan asks for.

    With `control: true` each episode of a level above 0 names its matched control: the episode
    of the same policy and seed at level 0. Where level 0 is part of the plan that episode is
    the control; elsewhere a control arm is added. An episode with novelty by its magnitude always
    has one, that of its task without novelty. Of an imported trial nothing is played.
    """
    if plan.imported is not None:
        return []
    if plan.trials is not None:
        return _in_trials(plan, plan.trials, side)
    controls: dict[str, PlannedEpisode] = {}
    cells: list[list[PlannedEpisode]] = []
    for condition, way, policy in product(
        plan.conditions(), plan.ways(side), range(len(plan.policies))
    ):
        cell = []
        for index in range(plan.episodes):
            episode = _episode(plan, condition, policy, index, side, way)
            if has_control(plan, condition):
                control = _control_of(plan, episode)
                episode = replace(episode, control_id=control.base_id)
                if control.arm is Arm.CONTROL:
                    controls.setdefault(control.base_id, control)
            cell.append(episode)
        cells.append(cell)
    ordered = _ordered(plan, cells)
    return [*controls.values(), *ordered]


def _in_trials(plan: TrialPlan, rules: TrialsPlan, side: Side) -> list[PlannedEpisode]:
    """The episodes of a plan with trials: each trial as a whole, in its own order.

    Every policy plays the same trials; those of one number share their seeds over conditions, as
    episodes do. Numbers, and so seeds, of the controls follow those of the others.
    """
    trials: dict[tuple[int, PlannedCondition, int], list[PlannedEpisode]] = {}
    for condition, policy in product(plan.conditions(), range(len(plan.policies))):
        nominal = plan.nominal(condition.task)
        first, n = (rules.count, rules.controls) if condition == nominal else (0, rules.count)
        for number in range(first, first + n):
            drawn = rules.drawn(condition.key, number, seed=plan.seeds.first)
            series = f"{condition.key}-{plan.policies[policy].name}-n{number}"
            trials[number, condition, policy] = [
                replace(
                    one,
                    base_id=f"{series}-e{place.episode}-s{one.seed}-{side.value}",
                    condition=condition if place.is_novel else nominal,
                    trial=place,
                    series=series,
                )
                for place in drawn
                for one in [
                    _episode(
                        plan,
                        condition,
                        policy,
                        number * rules.episodes + place.episode,
                        side,
                        AS_IS,
                    )
                ]
            ]
    order = list(trials)
    if plan.order == "interleaved":
        order.sort(key=lambda one: one[0])
    elif plan.order == "randomised":
        random.Random(plan.order_seed).shuffle(order)  # noqa: S311 - not cryptography
    return [episode for one in order for episode in trials[one]]


def episodes_in(plan: TrialPlan, side: Side) -> dict[PlannedCondition, int]:
    """How many episodes each policy plays in each condition on a side, beside the control arm."""
    if plan.trials is None:
        return dict.fromkeys(plan.conditions(), plan.episodes_on(side))
    planned = [one.condition for one in schedule(plan, side) if one.policy == 0]
    counts = {condition: planned.count(condition) for condition in plan.conditions()}
    return {condition: count for condition, count in counts.items() if count}


def _episode(
    plan: TrialPlan, condition: PlannedCondition, policy: int, index: int, side: Side, way: Way
) -> PlannedEpisode:
    seed = plan.seeds.first + index
    if not plan.seeds.shared:
        seed += plan.episodes * list(plan.conditions()).index(condition)
    base_id = f"{condition.key}-{plan.policies[policy].name}-s{seed}{way.key}-{side.value}"
    return PlannedEpisode(
        base_id=base_id,
        arm=Arm.MAIN,
        control_id=None,
        condition=condition,
        policy=policy,
        index=index,
        seed=seed,
        side=side,
        way=way,
    )


def simulated_id(base_id: str, side: Side, way: Way) -> str:
    """Base id of a simulated partner of a physical episode."""
    return f"{base_id.removesuffix(f'-{side.value}')}{way.key}-{Side.SIM.value}"


def has_control(plan: TrialPlan, condition: PlannedCondition) -> bool:
    """Whether the episodes of a condition are matched with episodes without novelty."""
    if plan.trials is not None:  # what came before the onset is another matter
        return False
    return bool(condition.novelty) or bool(plan.control and condition.level)


def _control_of(plan: TrialPlan, episode: PlannedEpisode) -> PlannedEpisode:
    """The matched episode without novelty: same task, policy and seed.

    Without novelty there is no strength that could differ, so one control serves all.
    """
    task = plan.tasks[episode.condition.task]
    if episode.condition.novelty:
        nominal = replace(episode.condition, novelty=())
        return _episode(plan, nominal, episode.policy, episode.index, episode.side, episode.way)
    condition = plan.nominal(episode.condition.task)
    in_plan = task.levels is not None and 0 in task.levels
    control = _episode(plan, condition, episode.policy, episode.index, episode.side, episode.way)
    if in_plan:
        return control
    return replace(control, base_id=f"control-{control.base_id}", arm=Arm.CONTROL)


@dataclass(frozen=True, slots=True)
class PlannedIds:
    """The names of planned episodes in the order of the plan, and what is needed most of the rest.

    Attributes:
        base_ids: Name of each episode.
        numbers: Number of each within its cell, from 0.
        policies: Index of the policy of each.
    """

    base_ids: list[str]
    numbers: list[int]
    policies: list[int]


def planned_ids(plan: TrialPlan, side: Side) -> PlannedIds:
    """The names of the episodes of `schedule`, in the same order.

    Fifty times as fast, for logs of a million episodes.
    """
    if plan.trials is not None:
        every = schedule(plan, side)
        return PlannedIds(
            base_ids=[one.base_id for one in every],
            numbers=[one.index for one in every],
            policies=[one.policy for one in every],
        )
    cells: list[tuple[str, list[str]]] = []
    controls: dict[tuple[str, str], list[str]] = {}
    n, n_policies = plan.episodes, len(plan.policies)
    for index, condition in enumerate(plan.conditions() if plan.imported is None else ()):
        first = plan.seeds.first + (0 if plan.seeds.shared else n * index)
        task = plan.tasks[condition.task]
        match = plan.nominal(condition.task)
        has_arm = bool(plan.control and condition.level and 0 not in (task.levels or ()))
        for way in plan.ways(side):
            tails = [f"{first + number}{way.key}-{side.value}" for number in range(n)]
            for policy in plan.policies:
                cells.append((f"{condition.key}-{policy.name}-s", tails))
                if has_arm:  # controls share their seeds with every condition
                    controls[f"control-{match.key}-{policy.name}-s", way.key] = tails
    heads = [*((head, tails) for (head, _), tails in controls.items()), *cells]
    names = [head + tail for head, own in heads for tail in own]
    n_controls = len(controls) * n
    spans = [range(first, first + n) for first in range(n_controls, len(names), n)]
    places = [*range(n_controls), *_ordered(plan, spans)]
    return PlannedIds(
        base_ids=[names[place] for place in places],
        numbers=[place % n for place in places],
        policies=[place // n % n_policies for place in places],
    )


def _ordered(plan: TrialPlan, cells: Sequence[Sequence[_Planned]]) -> list[_Planned]:
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
        retries: How often an attempt that `count_failed` counts is tried again.

    Returns:
        The episodes that were not played to their end: never tried, void (always tried again),
        or lost and faulty while retries are left. What a fault took away on a robot or twin is
        always tried again, too. One that only lacks its verdict was played.
    """
    todo = []
    for episode in planned:
        past = attempts.get(episode.base_id, ())
        if any(reason.is_final for reason in past):
            continue
        if count_failed(past, episode.side) > retries:
            continue
        todo.append(replace(episode, attempt=len(past) + 1))
    return todo


def count_failed(past: Iterable[EndReason], side: Side) -> int:
    """How many attempts use up a plan's `retries`.

    A loss on a robot or twin does not: there no policy dies with what is lost, as in simulation.

    Args:
        past: How they ended, none of them with a score.
        side: Where they were played.

    Example:
        >>> count_failed([EndReason.LOST, EndReason.FAULT, EndReason.VOID], Side.TWIN)
        1
    """
    excused = {EndReason.VOID} if side is Side.SIM else {EndReason.VOID, EndReason.LOST}
    return sum(reason not in excused for reason in past)


def lost_trials(
    planned: Iterable[PlannedEpisode], attempts: Mapping[str, Sequence[EndReason]]
) -> list[PlannedEpisode]:
    """Whole trials of which an episode was lost when they were last played, as new attempts.

    What the policy knew was lost as well, so that no part of a trial can be played by itself.

    Args:
        planned: The whole schedule.
        attempts: As `remaining` takes them.
    """
    every = [one for one in planned if one.trial is not None]
    lost = {one.series for one in every if EndReason.LOST in attempts.get(one.base_id, ())[-1:]}
    return [
        replace(one, attempt=len(attempts[one.base_id]) + 1) for one in every if one.series in lost
    ]


def attempts_of(episodes: Iterable[Episode], side: Side) -> dict[str, list[EndReason]]:
    """End reasons of the logged attempts of a side by base id, oldest first; none for any other id.

    Args:
        episodes: Rows in the order they were logged.
        side: Which side.
    """
    found: dict[str, list[EndReason]] = defaultdict(list)
    for episode in episodes:
        if episode.side is side:
            found[base_id_of(episode.episode_id, episode.attempt)].append(episode.end_reason)
    return found


def count_unscored(
    planned: Iterable[PlannedEpisode], attempts: Mapping[str, Sequence[EndReason]]
) -> int:
    """How many planned episodes have no score; the last of several attempts has it, or none."""
    return sum(
        not any(reason.is_scored for reason in attempts.get(episode.base_id, ())[-1:])
        for episode in planned
    )


def policy_seed(seed: int) -> int:
    """Seed for the policy's own randomness in an episode whose environment uses `seed`.

    A policy seeded like the environment would draw the very numbers the start state was drawn
    from.
    """
    return int.from_bytes(hashlib.sha256(f"policy:{seed}".encode()).digest()[:4], "big") >> 1


def task_and_policy(plan: TrialPlan, episode: PlannedEpisode) -> tuple[TaskPlan, PolicyPlan]:
    """The sections of the plan an episode refers to."""
    return plan.tasks[episode.condition.task], plan.policies[episode.policy]


def injections_of(plan: TrialPlan, planned: PlannedEpisode) -> list[Injection]:
    """The disturbances that are to be provoked in an episode."""
    policy = plan.policies[planned.policy].name
    return [
        injection
        for injection in plan.injections
        if injection.episode == planned.index
        and injection.level in (None, planned.condition.level)
        and injection.policy in (None, policy)
    ]


def environment_keywords(
    task: TaskPlan, planned: PlannedEpisode, policy: PolicyPlan | None = None
) -> dict[str, Any]:
    """Keywords of `gymnasium.make` for a planned episode, as its policy wants to act."""
    keywords = condition_keywords(task, planned.condition)
    if policy is not None and policy.action_mode is not None:
        keywords["action_mode"] = policy.action_mode
    if constants := {**dict(planned.way.constants), **planned.way.drawn(planned.seed)}:
        keywords["constants"] = constants
    if planned.trial is not None and planned.trial.onset_tick is not None:
        keywords["onset"] = planned.trial.onset_tick
    return keywords


def condition_keywords(task: TaskPlan, condition: PlannedCondition) -> dict[str, Any]:
    """Keywords of `gymnasium.make` that all episodes of a condition share."""
    keywords = dict(task.kwargs)
    if condition.level is not None:
        keywords["level"] = condition.level
        keywords["profile"] = task.profile.value
    if condition.difficulty is not None:
        keywords["difficulty"] = condition.difficulty.value
    if condition.novelty:
        keywords["novelty"] = dict(condition.novelty)
    if task.max_ticks is not None:
        keywords["max_episode_steps"] = task.max_ticks
    return keywords


def base_id_of(episode_id: str, attempt: int) -> str:
    """The base id of a logged attempt.

    Example:
        >>> base_id_of("t0-l00-easy-balancer-s1000-twin-a2", 2)
        't0-l00-easy-balancer-s1000-twin'
    """
    return episode_id.removesuffix(f"-a{attempt}") if attempt > 1 else episode_id
