"""What a trial is going to do, fixed before its first episode."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import Field, Strict, ValidationError, model_validator

from robo_eval.core import defaults
from robo_eval.core.errors import PlanError
from robo_eval.core.kinds import LATE_COMPUTER, Difficulty, Profile, Side
from robo_eval.core.names import unknown_name
from robo_eval.core.task import task_named, task_of
from robo_eval.core.trials import TrialsPlan
from robo_eval.core.wording import in_short
from robo_eval.core.yaml_form import NAME_PATTERN, Count, Section, mapping_of, text_of, validated

PLAN_VERSION: Final = 1

DEFAULT_VOID_REASONS = ("operator_error", "hardware_fault", "interrupted")
OTHER_AUTHOR: Final = "other_author"
"""Why an attempt is void, whatever the plan says, in which the guard heard more than the policy."""
NOMINAL: Final = "nominal"
"""What `calibrations` call the simulator as it is."""


AxisName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
"""Part of the names of episodes, and so of files."""
Magnitudes = Annotated[tuple[float, ...], Field(min_length=1)]
PlainName = Annotated[str, Field(pattern=NAME_PATTERN)]


class TaskPlan(Section):
    """One environment and the conditions it is played in."""

    env: str = Field(default_factory=lambda: task_named().env)
    """Gymnasium id of the environment."""
    family: str = ""
    """Task family metrics are grouped by; empty means the environment's name."""
    levels: tuple[Annotated[Count, Field(ge=0)], ...] | None = None
    """Novelty levels; none for an environment without levels."""
    difficulties: tuple[Difficulty, ...] = (Difficulty.EASY,)
    """Difficulties of each level; ignored when there are no levels."""
    profile: Profile = Profile.PAPER
    """Which description of the levels is followed; ignored when there are no levels."""
    axes: dict[AxisName, Magnitudes] = Field(default_factory=dict)
    """Novelty by its magnitudes instead of levels: of each axis, in order, weakest first. Every
    magnitude is played on the seeds of the episodes without novelty, which are its controls."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Axes whose magnitudes are also played together, each with each."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further keywords of `gymnasium.make`."""
    quality_range: tuple[float, float] = (0.0, 1.0)
    """Episode returns that count as quality 0 and 1; values between are interpolated."""
    success_quality: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """Least quality that counts as success."""
    scoring: Literal["binary-success", "brier", "log", "spherical"] = "binary-success"
    """Proper scoring rule an episode is scored by; levels are issued of no other."""
    max_ticks: Annotated[Count, Field(ge=1)] | None = None
    """Time limit in control ticks for an environment that sets none itself."""
    success: Annotated[str, Field(min_length=1)] | None = None
    """Key of the environment's last `info` that says whether the episode succeeded, such as
    `is_success`; none where quality decides."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        low, high = self.quality_range
        if not low < high:
            raise ValueError(f"quality_range: {low} must be below {high}")
        has_own = {"level", "difficulty", "profile", *(["novelty"] if self.axes else [])}
        named = has_own & self.kwargs.keys()
        if named:
            raise ValueError(f"kwargs: {min(named)} has a key of its own in a task")
        for name in ("levels", "difficulties"):
            values = getattr(self, name)
            if values is None:
                continue
            twice = [value for value, count in Counter(values).items() if count > 1]
            if twice or not values:
                found = f", given {twice[0]} twice" if twice else ""
                raise ValueError(f"{name}: must name at least one value and none twice{found}")
        self._check_axes()
        return self

    def _check_axes(self) -> None:
        if self.axes and self.levels is not None:
            raise ValueError("axes: stand for levels; name one of the two in a task")
        for axis, magnitudes in self.axes.items():
            steps = [after - before for before, after in pairwise(magnitudes)]
            if not (all(step > 0 for step in steps) or all(step < 0 for step in steps)):
                raise ValueError(
                    f"axes.{axis}: magnitudes must rise or fall all the way, from the weakest"
                    " novelty to the strongest"
                )
        for pair in self.pairs:
            for axis in pair:
                if axis not in self.axes:
                    raise ValueError(f"pairs: {unknown_name('axis', axis, self.axes)}")
        kinds = Counter(frozenset(pair) for pair in self.pairs)
        if any(len(kind) < 2 or count > 1 for kind, count in kinds.items()):
            raise ValueError("pairs: each must name two axes, and none is named twice")


class PolicyPlan(Section):
    """One policy under test, by registered name or by import path."""

    name: PlainName
    """Name shown in rows, reports and file names; the registered name if `factory` is empty."""
    factory: str | None = None
    """`package.module:callable` returning a policy, for policies that are not registered."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Keywords given to the factory."""
    action_mode: str | None = None
    """What its actions are, for an environment with several modes: the keyword `action_mode` of
    `gymnasium.make` while this policy plays. None leaves it to the task."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, given: object) -> object:
        """A plain name stands for the registered agent."""
        return {"name": given} if isinstance(given, str) else given


class SeverityWeights(Section):
    """What one incident per 100 h costs, by severity."""

    near_miss: Annotated[float, Field(ge=0.0)] = defaults.SEVERITY_WEIGHTS["near_miss"]
    minor: Annotated[float, Field(ge=0.0)] = defaults.SEVERITY_WEIGHTS["minor"]
    major: Annotated[float, Field(ge=0.0)] = defaults.SEVERITY_WEIGHTS["major"]
    critical: Annotated[float, Field(ge=0.0)] = defaults.SEVERITY_WEIGHTS["critical"]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.near_miss + self.minor + self.major + self.critical > 0.0:
            raise ValueError("critical: all weights are 0; at least one severity must count")
        return self


class PriceCard(Section):
    """What an hour of exposure costs, in units of one currency."""

    energy: Annotated[float, Field(ge=0.0)] = 0.0
    wear: Annotated[float, Field(ge=0.0)] = 0.0
    consumables: Annotated[float, Field(ge=0.0)] = 0.0
    operator: Annotated[float, Field(ge=0.0)] = 0.0
    currency: str = Field(default="", max_length=10)
    """Name of the currency, for tables."""


class StoppingPlan(Section):
    """When the series ends before all episodes are played, stated before the first one."""

    compare: Annotated[tuple[str, ...], Field(max_length=2)] = ()
    """Two policies, compared in pairs; or one, whose success rate is compared with `rate`."""
    rate: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """The rate one policy is compared with."""
    side: Literal["two", "greater", "less"] = "two"
    """Whether it is decided either way, or only that the first policy (or its rate) is greater."""
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05
    """Chance, at most, of a decision where there is no difference."""
    hopeless: Annotated[bool, Strict()] = True
    """Also stop once no outcome of the remaining episodes could decide."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.compare or len(set(self.compare)) < len(self.compare):
            raise ValueError("compare: must name two policies, or one and a `rate`")
        if (self.rate is None) != (len(self.compare) == 2):
            raise ValueError("rate: one policy is compared with a rate, two with each other")
        return self


class SeedPlan(Section):
    """Which seeds the episodes of a condition use: the same for every policy."""

    first: Annotated[Count, Field(ge=0, lt=2**31)] = 1000
    """Episode i of a condition uses seed `first + i`."""
    shared: Annotated[bool, Strict()] = True
    """Whether every condition uses the same seeds; else the seeds of each follow those of the one
    before, so that no two conditions start alike."""


class MetricPlan(Section):
    """Settings of the metrics, fixed with the plan; docs/metrics.md says which are our choice."""

    level: Annotated[float, Field(ge=1e-6, le=1.0 - 1e-6)] = defaults.LEVEL
    """Coverage intervals aim at."""
    resamples: Annotated[Count, Field(ge=100, le=1_000_000)] = defaults.RESAMPLES
    """Bootstrap resamples."""
    seed: Annotated[Count, Field(ge=0)] = 0
    """Seed of the bootstrap."""
    min_coverage: Annotated[float, Field(gt=0.0, le=1.0)] = defaults.MIN_COVERAGE
    """Share of episodes that must be scored for a headline or a verdict."""
    policy_faults: defaults.PolicyFaults = "missing"
    """Whether episodes that an error of the policy ended are missing, or count as failures."""
    severity_weights: SeverityWeights = Field(default_factory=SeverityWeights)
    """What one incident per 100 h costs, by severity."""
    safety_form: defaults.SafetyForm = defaults.SAFETY_FORM
    """How the weighted incident rates become the safety score."""
    max_unmatched: Annotated[float, Field(ge=0.0, le=1.0)] = defaults.MAX_UNMATCHED
    """Share of physical episodes that may lack a simulated counterpart."""
    min_effective_size: Annotated[float, Field(ge=0.0)] = defaults.MIN_EFFECTIVE_SIZE
    """Fewer effective simulated episodes behind a reweighted rate are flagged."""
    max_voids: Annotated[float, Field(ge=0.0, le=1.0)] = defaults.MAX_VOIDS
    """Share of attempts that may be void before a policy is flagged."""
    tolerances: dict[str, dict[str, Annotated[float, Field(gt=0.0)]]] = Field(default_factory=dict)
    """By task family, the greatest value of each measure of control that has full credit."""
    control_weights: dict[str, Annotated[float, Field(ge=0.0)]] = Field(default_factory=dict)
    """Weights of the measures of control; those that are not named weigh 1."""
    price_card: PriceCard | None = None
    """What an hour of the robot costs."""
    calibration: str | None = None
    """Calibration snapshot whose simulation is compared; needed where there are several."""
    modules: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Python files with metrics of your own, by paths relative to the file that names them."""


class Injection(Section):
    """A disturbance provoked in one episode on a twin, to see how robot and guard answer."""

    fault: Literal["command_dropout", "estop"]
    """The twin hears no command for some ticks, or its emergency stop is pressed."""
    episode: Annotated[Count, Field(ge=0)]
    """Number of the episode within its condition, from 0."""
    level: Annotated[Count, Field(ge=0)] | None = None
    """Only at this level."""
    policy: str | None = None
    """Only with this policy."""
    tick: Annotated[Count, Field(ge=1)] = 50
    """Control tick at which it begins."""
    ticks: Annotated[Count, Field(ge=1, le=1000)] = 5
    """How long it lasts."""


class CalibrationPlan(Section):
    """One way to play the simulated half: by a snapshot, by constants drawn anew, or as it is."""

    name: PlainName | None = None
    """What rows call it; that of the snapshot if there is none. `nominal` is the simulator as it
    is."""
    file: Annotated[str, Field(min_length=1)] | None = None
    """Calibration snapshot, by a path relative to the plan; of a locked plan, its copy."""
    play: Annotated[
        tuple[Literal["constants", "noise", "disturbance"], ...], Field(min_length=1)
    ] = ("constants", "noise", "disturbance")
    """What of the snapshot is played: constants, noise of the sensors, hidden forces."""
    randomised: dict[AxisName, tuple[float, float]] = Field(default_factory=dict)
    """Instead of a snapshot, the least and the greatest value of each constant; every episode
    draws its own by its seed."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the file; filled in when the plan is locked."""
    recordings: dict[PlainName, dict[AxisName, float]] = Field(default_factory=dict)
    """What is played of each recording of the snapshot; filled in when the plan is locked."""
    logarithmic: tuple[AxisName, ...] = ()
    """Constants that are drawn by their logarithm; filled in when the plan is locked."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [self.name == NOMINAL, self.file is not None, bool(self.randomised)]
        if sum(given) != 1:
            raise ValueError(
                f"must be one of three: a snapshot `file`, constants `randomised`, or {NOMINAL}"
            )
        if self.randomised and self.name is None:
            raise ValueError("name: is missing; rows name what they were played with")
        for name, (low, high) in self.randomised.items():
            if not low < high:
                raise ValueError(f"randomised.{name}: {low:g} must be below {high:g}")
        return self

    def ways(self) -> tuple[Way, ...]:
        """How each episode is played.

        Raises:
            PlanError: If it names a snapshot that was not read yet.
        """
        if self.file is None:
            ranges = tuple((name, *ends) for name, ends in self.randomised.items())
            return (Way(calibration=self.name, ranges=ranges, logarithmic=self.logarithmic),)
        if not self.recordings:
            raise PlanError(f"calibrations: {self.file} is read when `robo-eval run` locks a plan")
        return tuple(
            Way(calibration=f"{self.name}/{recording}", constants=tuple(constants.items()))
            for recording, constants in self.recordings.items()
        )


class JudgingPlan(Section):
    """Who says how an episode went where the task cannot tell, and who looks a second time."""

    verdict: Literal["task", "operator"] = "task"
    """Whether success is what the task measures, or what the person at the robot says."""
    milestones: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    """Rubric: steps the person ticks after each episode."""
    second_share: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Share of the physical episodes that a second rater judges, drawn before the first one."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.milestones:
            if self.milestones.count(name) > 1:
                raise ValueError(f"milestones: {name!r} is there twice")
        return self

    def asks(self, side: Side) -> bool:
        """Whether episodes of a side are judged by the person at the robot."""
        return self.verdict == "operator" and side is not Side.SIM


class ImportPlan(Section):
    """Where the episodes of a trial come from that was not played here."""

    file: str
    """Name of the imported file."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the imported file."""
    rows: Annotated[int, Field(ge=1)]
    """Episodes it held."""
    column_map: dict[str, Any] = Field(default_factory=dict)
    """The column map it was read by."""


class TrialPlan(Section):
    """A trial: every task in every condition, played by every policy, so many times.

    Read once from YAML, checked, and written back in full as the locked plan of the trial
    directory; the SHA-256 of that file goes into every episode.
    """

    version: Literal[1] = PLAN_VERSION
    """Version of this file format."""
    name: str = Field(min_length=1, max_length=100)
    """Title of the trial."""
    description: str = ""
    """What the trial is meant to find out."""
    tasks: tuple[TaskPlan, ...] = Field(min_length=1)
    """Environments and their conditions."""
    policies: tuple[PolicyPlan, ...] = Field(min_length=1)
    """Policies under test; a plain string stands for a registered name."""
    episodes: Annotated[Count, Field(ge=1, le=1_000_000)] = 5
    """Episodes per task, level, difficulty and policy."""
    seeds: SeedPlan = Field(default_factory=SeedPlan)
    """Seeds of the episodes."""
    sides: tuple[Side, ...] = (Side.SIM,)
    """Where the episodes are played."""
    control: Annotated[bool, Strict()] = False
    """Whether each novelty episode gets its matched control: same seed and policy at level 0."""
    order: Literal["randomised", "blocked", "interleaved"] = "randomised"
    """Order of the episodes: shuffled, condition by condition, or policies taking turns."""
    order_seed: Annotated[Count, Field(ge=0)] = 0
    """Seed of the shuffle."""
    traces: Literal["first_and_failures", "first", "all", "none"] = "first_and_failures"
    """Which episodes leave a trace: the first of each cell, those and every failure, ..."""
    retries: Annotated[Count, Field(ge=0, le=10)] = 0
    """How often an attempt that ended by a fault, or was lost in simulation, is tried again."""
    decision_timeout_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = 60.0
    """How long a policy may take for one action or one reset, seconds; then its process is ended
    and its episode is a fault by the policy."""
    injections: tuple[Injection, ...] = ()
    """Disturbances provoked on a twin."""
    void_reasons: tuple[str, ...] = DEFAULT_VOID_REASONS
    """Reasons for which an operator may declare an attempt void."""
    max_missed_ticks: Annotated[Count, Field(ge=0)] | None = defaults.MAX_MISSED_TICKS
    """Control ticks an episode on a robot or twin may miss for another reason than its policy's
    own time; more void it as `late_computer`. None never does."""
    blind: Annotated[bool, Strict()] = False
    """Whether the person at the robot sees codes instead of the policies' names."""
    judging: JudgingPlan = Field(default_factory=JudgingPlan)
    """Who says how a physical episode went."""
    stopping: StoppingPlan | None = None
    """When the series ends early; none plays every planned episode."""
    metrics: MetricPlan = Field(default_factory=MetricPlan)
    """Settings of the metrics."""
    calibrations: tuple[CalibrationPlan, ...] = ()
    """What the simulated half is played with, each episode with each; none is the simulator as it
    is. A plain string stands for a snapshot's file, or `nominal`."""
    imported: ImportPlan | None = None
    """Set if the episodes were imported: nothing is played, the rest says what was found."""
    trials: TrialsPlan | None = None
    """How episodes make up trials with an onset; none: each episode stands alone."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("calibrations"), list):
            entries = [
                {"name" if c == NOMINAL else "file": c} if isinstance(c, str) else c
                for c in data["calibrations"]
            ]
            data = {**data, "calibrations": entries}
        return data

    @model_validator(mode="before")
    @classmethod
    def _episodes_of_trials(cls, data: Any) -> Any:
        """As many episodes, and so seeds, of each condition as its trials need."""
        trials = data.get("trials") if isinstance(data, dict) else None
        if trials is None:
            return data
        try:
            rules = TrialsPlan.model_validate(trials)
        except ValidationError:  # told of its own field when that is checked
            return data
        needed = (rules.count + rules.controls) * rules.episodes
        if data.get("episodes", needed) != needed:
            raise ValueError(
                "episodes: follow from `trials`, which says how many there are; leave the key out"
            )
        return {**data, "trials": rules, "episodes": needed}

    @model_validator(mode="after")
    def _check_reasons(self) -> Self:
        if LATE_COMPUTER in self.void_reasons:
            raise ValueError(
                f"void_reasons: {LATE_COMPUTER!r} is measured and nobody's to give; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [policy.name for policy in self.policies]
        check_apart("policies", names)
        self._check_trials(names)
        if self.calibrations:
            self._check_calibrations()
        seen: set[str] = set()
        for condition in self.conditions():
            task = self.tasks[condition.task]
            kwargs = _in_one_spelling(task.kwargs)
            where = (condition.level, condition.difficulty, condition.novelty)
            key = repr((task.env, task.profile, kwargs, *where))
            if key in seen:
                raise ValueError(
                    f"tasks.{condition.task}: the same environment, level and difficulty as in"
                    " an earlier task; raise `episodes` instead"
                )
            seen.add(key)
        if len(set(self.sides)) != len(self.sides) or not self.sides:
            raise ValueError("sides: must name at least one side and none twice")
        has_axes = [index for index, task in enumerate(self.tasks) if task.axes]
        if set(self.sides) != {Side.SIM}:
            for index, task in enumerate(self.tasks):
                if task.axes or task.success:
                    key, what = ("axes", "are played") if task.axes else ("success", "is told")
                    raise ValueError(
                        f"tasks.{index}.{key}: {what} in simulation alone; leave `sides` out"
                    )
        if not self.seeds.shared and (self.control or self.stopping or has_axes):
            what = "control" if self.control else "stopping" if self.stopping else "axes"
            raise ValueError(f"seeds.shared: must be true, because `{what}` matches seeds")
        if self.stopping:
            self._check_stopping(self.stopping, names)
        return self

    def _check_trials(self, names: list[str]) -> None:
        rules = self.trials
        if rules is None:
            return
        if set(self.sides) != {Side.SIM}:
            raise ValueError("sides: must be [sim]; `trials` are played in simulation alone")
        for field in ("control", "stopping", "calibrations", "retries"):
            if getattr(self, field):
                raise ValueError(
                    f"{field}: goes with single episodes; leave it out beside `trials`"
                )
        for role in ("informed", "frozen"):
            name = getattr(rules, role)
            if name is not None and name not in names:
                raise ValueError(f"trials.{role}: {unknown_name('policy', name, names)}")
        for index, task in enumerate(self.tasks):
            if not (task.levels or task.axes):
                raise ValueError(f"tasks.{index}.levels: `trials` need levels, or axes, to begin")
            if 0 in (task.levels or ()):
                raise ValueError(
                    f"tasks.{index}.levels: 0 is no novelty; trials begin without it anyway"
                )
            spec = task_of(task.env)
            rules.check_tick(task.env, task.max_ticks, None if spec is None else spec.max_ticks)

    def _check_calibrations(self) -> None:
        check_apart("calibrations", [entry.name for entry in self.calibrations if entry.name])
        if Side.SIM not in self.sides:
            raise ValueError("sides: must name sim, because `calibrations` are played there")
        for index, task in enumerate(self.tasks):
            if "constants" in task.kwargs:
                raise ValueError(
                    f"tasks.{index}.kwargs: `calibrations` choose the constants; leave them out"
                )

    def _check_stopping(self, rule: StoppingPlan, names: list[str]) -> None:
        if self.metrics.policy_faults != "missing":
            raise ValueError(
                "metrics.policy_faults: must be missing, because the rule of `stopping` passes over"
                " episodes without a verdict"
            )
        is_repeated = bool(self.calibrations) and set(self.sides) == {Side.SIM}
        if rule.rate is not None and (is_repeated or len(list(self.conditions())) > 1):
            what = "calibrations" if is_repeated else "conditions"
            raise ValueError(
                f"stopping.rate: the plan has several {what} that share their seeds; a rate is"
                " watched in one condition"
            )
        for name in rule.compare:
            if name not in names:
                raise ValueError(f"stopping.compare: {unknown_name('policy', name, names)}")

    @property
    def known_void_reasons(self) -> tuple[str, ...]:
        """Reasons an attempt may be void for: a person's, the guard's, and what is measured."""
        return (*self.void_reasons, OTHER_AUTHOR, LATE_COMPUTER)

    @property
    def says_help(self) -> bool:
        """Whether the episodes say who helped; an import that maps no such column does not."""
        if self.imported is None:
            return True
        parts = (self.imported.column_map.get(name) or {} for name in ("columns", "constants"))
        return any("interventions" in part for part in parts)

    def ways(self, side: Side) -> tuple[Way, ...]:
        """How each episode of a side is played: once with every calibration, or recording of one.

        Raises:
            PlanError: If a snapshot was not read yet.
        """
        if side is not Side.SIM or not self.calibrations:
            return (AS_IS,)
        return tuple(way for entry in self.calibrations for way in entry.ways())

    def episodes_on(self, side: Side) -> int:
        """Episodes of each policy in each condition on a side."""
        return self.episodes * len(self.ways(side))

    def conditions(self) -> Iterator[PlannedCondition]:
        """Every task, level and difficulty, in the order the plan names them.

        Of a task with axes it is no novelty, each axis by itself, then the pairs. Of one with
        trials no novelty comes first, too.
        """
        for index, task in enumerate(self.tasks):
            if task.levels is None:
                nominal = self.nominal(index)
                yield nominal
                for axes in (*((axis,) for axis in task.axes), *task.pairs):
                    for magnitudes in product(*(task.axes[axis] for axis in axes)):
                        novelty = tuple(zip(axes, magnitudes, strict=True))
                        yield replace(nominal, novelty=novelty)
            else:
                if self.trials is not None:
                    yield self.nominal(index)
                for level in task.levels:
                    for difficulty in task.difficulties:
                        yield PlannedCondition(task=index, level=level, difficulty=difficulty)

    def nominal(self, index: int) -> PlannedCondition:
        """A task without novelty, whose strength does not matter."""
        task = self.tasks[index]
        if task.levels is None:
            return PlannedCondition(task=index, level=None, difficulty=None)
        return PlannedCondition(task=index, level=0, difficulty=task.difficulties[0])


def check_apart(field: str, names: list[str]) -> None:
    """Refuse two entries of a field that share a name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{field}: two {field} share a name, {twice!r}; give each its own `name`")


def _in_one_spelling(value: Any) -> Any:
    """Plain data so that what means the same looks the same: keys in order, 1.0 as 1."""
    if isinstance(value, dict):
        return {str(key): _in_one_spelling(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list):
        return [_in_one_spelling(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCondition:
    """One task at one level and difficulty, or with one novelty.

    Attributes:
        task: Its number in the plan.
        level: Novelty level; None for a task without.
        difficulty: Strength of the novelty; None for a task without levels.
        novelty: Axes of novelty, each with its magnitude; empty for none, or for that of the level.
    """

    task: int
    level: int | None
    difficulty: Difficulty | None
    novelty: tuple[tuple[str, float], ...] = ()

    @property
    def key(self) -> str:
        """Short text that tells conditions of one plan apart, used in episode ids."""
        parts = [f"t{self.task}"]
        if self.level is not None:
            parts.append(f"l{self.level:02d}")
        if self.difficulty is not None:
            parts.append(self.difficulty.value)
        if self.novelty:
            parts.append("+".join(f"{axis}_{in_short(size)}" for axis, size in self.novelty))
        return "-".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What an episode is played with, whatever its condition.

    Attributes:
        calibration: What its row names; None where the plan chooses none.
        constants: Constants of the simulator that are not its own, each with its value.
        ranges: Constants that each episode draws: name, least and greatest value.
        logarithmic: Those of them that are drawn by their logarithm.
    """

    calibration: str | None = None
    constants: tuple[tuple[str, float], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    logarithmic: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What episode ids add before their side."""
        return "" if self.calibration is None else f"-{self.calibration.replace('/', '@')}"

    def drawn(self, seed: int) -> dict[str, float]:
        """What the episode with a seed draws; each constant by itself, whatever else is drawn."""
        found = {}
        for name, low, high in self.ranges:
            # Stable across Python versions, and needs no numpy where plans are read.
            share = random.Random(f"{name}:{seed}").random()  # noqa: S311 - not cryptography
            is_log = name in self.logarithmic
            found[name] = low * (high / low) ** share if is_log else low + (high - low) * share
        return found


AS_IS: Final = Way()
"""Where nothing chooses."""


def read_plan(path: Path) -> TrialPlan:
    """Read and check a plan file.

    Raises:
        PlanError: If the file is missing, is not YAML, or holds an unknown key or a wrong value;
            the message names file and field.
    """
    return parse_plan(text_of(path, "plan"), source=str(path))


def read_metric_settings(path: Path) -> MetricPlan:
    """Read and check a file of metric settings, with the keys of a plan's `metrics`.

    Raises:
        PlanError: If the file is missing, is not YAML, or holds an unknown key or a wrong value;
            the message names file and field.
    """
    data = mapping_of(text_of(path, "settings"), str(path), "settings are", "docs/metrics.md")
    return validated(data, MetricPlan, str(path))


def parse_plan(text: str, *, source: str) -> TrialPlan:
    """Check the YAML text of a plan.

    Args:
        text: YAML.
        source: What error messages call it.

    Raises:
        PlanError: If the text is not YAML, or holds an unknown key or a wrong value.
    """
    data = mapping_of(text, source, "a plan is", "docs/plan.md")
    if {"pool", "learner"} & data.keys():
        raise PlanError(f"{source}: this is a suite of tests; `robo-eval aiq run` measures it")
    return validated(data, TrialPlan, source)


def locked_text(plan: TrialPlan) -> str:
    """The plan with every default written out, as the YAML text kept in the trial directory."""
    data = plan.model_dump(mode="json")
    if plan.trials is None:  # a plan of single episodes is what it always was
        del data["trials"]
    head = "# Locked plan: episodes carry the SHA-256 of this file. Change nothing here.\n"
    return head + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
