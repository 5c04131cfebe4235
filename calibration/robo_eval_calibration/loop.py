"""What calibration gains with more recordings: which episodes are fitted, and which compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from robo_eval.core.canonical import digest
from robo_eval.core.episode import Episode
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Arm, Side
from robo_eval.core.names import unknown_name
from robo_eval.core.plan import NOMINAL, TrialPlan
from robo_eval.core.schedule import PlannedEpisode, schedule, task_and_policy
from robo_eval.core.task import TaskSpec
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import validated
from robo_eval.log.directory import PLAN, TrialDirectory
from robo_eval.log.snapshot import DISTURBANCE, NOISE
from robo_eval_calibration.innovations import physics_of
from robo_eval_calibration.made import LEAST
from robo_eval_calibration.recordings import Gathered, Recording

RANDOMISED: Final = "randomised"
_PARTS: Final = {"constants": "", "noise": NOISE, "force": DISTURBANCE}
"""What is played of a snapshot, each setting more than the one before: its name, and the stage of
these constants."""
_SPREAD: Final = 0.3
"""Share of its nominal value by which a constant is drawn more or less."""
_REACH: Final = 0.1
"""Share of its bounds as far as one is drawn that is nominally 0."""
_OF_OTHERS: Final = {"calibration", "modules"}
"""Settings of metrics that name what the trial alone has."""
_SEEDS_APART: Final = 1_000_000
"""Noise is drawn by seed: a stand-in and its simulated partner must not draw the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The episodes of a trial, by what they are for.

    Attributes:
        task: What was played.
        sizes: Numbers of recordings that are fitted.
        fitted: Recordings, of which the first so many are.
        others: Recordings that are not fitted.
        compared: Scored episodes that are not fitted, each with what was planned.
    """

    task: TaskSpec
    sizes: tuple[int, ...]
    fitted: list[Recording]
    others: list[Recording]
    compared: list[tuple[Episode, PlannedEpisode]]

    @property
    def is_stand_in(self) -> bool:
        """Whether the robot's half was simulated as well."""
        return self.compared[0][0].side is Side.SIM

    @property
    def side(self) -> Side:
        """Where the robot's half was played; a stand-in counts as a twin."""
        return Side.TWIN if self.is_stand_in else self.compared[0][0].side

    @property
    def settings(self) -> dict[str, tuple[str, ...]]:
        """What is played of a snapshot, by setting, as far as the task has it."""
        stages = {"", *(one.stage for one in self.task.constants)}
        names = [name for name, stage in _PARTS.items() if stage in stages]
        parts = [_PARTS[name] or "constants" for name in names]
        return {name: tuple(parts[: at + 1]) for at, name in enumerate(names)}

    @property
    def ways(self) -> int:
        """How often each episode is simulated."""
        return 2 + len(self.settings) * sum(self.sizes)


def chosen(
    gathered: Gathered, sizes: Sequence[int], *, policy: str = "", episodes: int | None = None
) -> Chosen:
    """Choose what is fitted, by the digests of recordings, and what is compared: all the rest.

    Args:
        gathered: What the trial holds.
        sizes: Numbers of recordings that are to be fitted.
        policy: Whose episodes are compared; empty where there is one.
        episodes: How many at most; None for all.

    Raises:
        InputError: If there are too few, or the policy is none of theirs.
    """
    policies = sorted({row.policy for row, _ in gathered.scored})
    if policy and policy not in policies:
        raise unknown_name("policy", policy, policies)
    if not policy and len(policies) > 1:
        raise InputError(f"has several policies; choose one by --policy: {', '.join(policies)}")
    most = max(sizes)
    ordered = sorted(gathered.recordings, key=lambda one: one.content)
    used = {one.id for one in ordered[:most]}
    compared = [
        (row, planned)
        for row, planned in gathered.scored
        if row.episode_id not in used
        and row.policy in (policy or row.policy)
        and planned.arm is Arm.MAIN
    ]
    if len(ordered) < most or len(compared) < LEAST:
        raise InputError(
            f"{counted(len(ordered), 'recording')} and {counted(len(compared), 'episode')} beside"
            f" them are too few: {most} are fitted and {LEAST} more compared, which needs"
            f" {most + LEAST} at least; record more, or fit fewer by --recordings"
        )
    return Chosen(
        task=gathered.task,
        sizes=tuple(sorted(set(sizes))),
        fitted=ordered[:most],
        others=ordered[most:],
        compared=compared[:episodes],
    )


def ranges_of(
    task: TaskSpec, given: Mapping[str, float], asked: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Between which values domain randomisation draws each constant.

    Args:
        task: The task.
        given: Constants that are known, which are not drawn.
        asked: What somebody asked for.

    Returns:
        30 % about what is nominal, or a tenth of the bounds above 0, where nobody asked.

    Raises:
        InputError: If all are known.
    """
    unknown = [one for name, one in physics_of(task).items() if name not in given]
    if not unknown:
        raise InputError("--given names every constant: none is left to find")
    found = {}
    for one in unknown:
        reach = _SPREAD * abs(one.nominal) or _REACH * (one.high - one.low)
        found[one.name] = max(one.low, one.nominal - reach), min(one.high, one.nominal + reach)
    return {**found, **asked}


def plan_of(
    trial: TrialDirectory, told: Chosen, ranges: Mapping[str, tuple[float, float]], about: object
) -> TrialPlan:
    """The plan by which the simulated half is played; it reads snapshots named `N.yaml`.

    Args:
        trial: Whose episodes they are.
        told: Which of them.
        ranges: What domain randomisation draws.
        about: Whatever else a loop depends on.

    Raises:
        PlanError: If its task cannot be played so.
    """
    plan = trial.plan
    task, policy = task_and_policy(plan, told.compared[0][1])
    kwargs = {key: value for key, value in task.kwargs.items() if key != "constants"}
    same = digest(
        [
            trial.plan_digest, about, ranges, told.sizes,
            [one.content for one in told.fitted], [row.episode_id for row, _ in told.compared],
        ]
    )  # fmt: skip
    return validated(
        {
            "name": f"loop of {plan.name}",
            "description": f"Simulation compared with {plan.name}; loop {same[:16]}",
            "tasks": [
                task.model_dump(exclude_unset=True, exclude={"levels", "difficulties"})
                | {"kwargs": kwargs, "levels": None if task.levels is None else [0]}
            ],
            "policies": [policy.model_dump(exclude_unset=True)],
            "episodes": len(told.compared),
            "seeds": {"first": plan.seeds.first + _SEEDS_APART},
            "sides": [Side.SIM, told.side],
            "traces": "none",
            "decision_timeout_s": plan.decision_timeout_s,
            "metrics": plan.metrics.model_dump(exclude_unset=True, exclude=_OF_OTHERS),
            "calibrations": [
                NOMINAL,
                *({"file": f"{size}.yaml", "play": parts, "name": f"{name}-{size}"}
                  for name, parts in told.settings.items() for size in told.sizes),
                {"name": RANDOMISED, "randomised": dict(ranges)},
            ],
        },
        TrialPlan,
        str(trial.path / PLAN),
    )  # fmt: skip


def physical_rows(told: Chosen, plan: TrialPlan, plan_digest: str) -> list[Episode]:
    """The robot's half, as the trial that compares it logs it: numbered anew."""
    planned = sorted(schedule(plan, told.side), key=lambda one: one.index)
    return [
        replace(
            row,
            episode_id=now.base_id, attempt=1, pair_id=now.base_id, control_id=None,
            plan_digest=plan_digest, side=now.side, seed=now.seed,
            difficulty=now.condition.difficulty and str(now.condition.difficulty),
            # Of a stand-in several were played at a time, which no robot could.
            start_ns=None if told.is_stand_in else row.start_ns,
            trace_uri=None, trace_sha256=None,
        )
        for (row, _), now in zip(told.compared, planned, strict=True)
    ]  # fmt: skip
