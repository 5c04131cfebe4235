"""What a competition is, as its organiser writes it: one YAML file, checked once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, Strict, ValidationError, model_validator

from robo_eval.core.errors import InputError, PlanError
from robo_eval.core.plan import PlannedCondition, PolicyPlan, TaskPlan, TrialPlan, check_apart
from robo_eval.core.task import known_task, unknown_in
from robo_eval.core.trials import TrialsPlan
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import (
    Count,
    Section,
    first_problem,
    mapping_of,
    text_of,
    validated,
)
from robo_eval.log.cells import CellError, iso_ns

PAGE: Final = "docs/competitions.md"


def _moment(given: Any) -> Any:
    """A date as text; YAML makes a date of what is not quoted."""
    text = given.isoformat() if isinstance(given, datetime) else given
    if isinstance(text, str):
        try:
            iso_ns(text, None)
        except CellError as err:
            raise ValueError(str(err).replace(f"{text!r:.60} ", "", 1)) from err
    return text


Moment = Annotated[str, BeforeValidator(_moment)]
"""A date in ISO 8601 with its zone."""
Seconds = Annotated[float, Field(gt=0.0, le=31_536_000.0)]


class Limits(Section):
    """How long and how much a team may ask for."""

    step_timeout_s: Seconds = 30.0
    """Longest wait for the next action."""
    episode_s: Seconds = 3_600.0
    """Longest episode, by the clock."""
    trial_s: Seconds = 86_400.0
    """Longest trial, by the clock."""
    idle_s: Seconds = 3_600.0
    """Time to come back after a connection was lost within a trial."""
    steps_per_s: Annotated[float, Field(gt=0.0, le=1e6)] | None = None
    """Most steps a second of a team; None sets no limit."""
    message_bytes: Annotated[Count, Field(ge=1_024, le=64 * 2**20)] = 2**20
    """Largest message."""
    connections: Annotated[Count, Field(ge=1, le=1_000)] = 2
    """Open connections of a team."""


class Competition(Section):
    """A competition; everything that is not said here is fixed by the rules in docs."""

    version: Literal[1] = 1
    """Version of this file format."""
    name: str = Field(min_length=1, max_length=100)
    """Title."""
    description: str = Field(default="", max_length=10_000)
    """What it is about, for participants."""
    tasks: tuple[TaskPlan, ...] = Field(min_length=1)
    """Environments with their levels and difficulties, or axes of novelty with magnitudes, as in
    a plan. Participants are told the environments, and nothing else of them."""
    trials: TrialsPlan
    """Trials of each cell."""
    baselines: tuple[PolicyPlan, ...] = ()
    """Agents, as `policies` of a plan, that `serve` enters as teams of their names and plays in the
    background; they have no rank."""
    hints: Annotated[int, Strict(), Field(ge=-1, le=3)] = -1
    """What is told of the novelty once it has begun: -1 nothing, 0 its level, 1 what has changed as
    well, 2 which property of it, 3 how."""
    feedback: Annotated[Count, Field(ge=0, le=100_000)] = 0
    """Of how many ended episodes of a trial a team may ask whether they were novel."""
    attempts: Annotated[Count, Field(ge=1, le=1_000)] = 1
    """How often a team may play the whole."""
    limits: Limits = Field(default_factory=Limits)
    """How long and how much a team may ask for."""
    opens: Moment | None = None
    """When attempts may begin; None is at once."""
    closes: Moment
    """Until when attempts may begin; what ends later is marked."""
    beacon: str | None = Field(default=None, min_length=1, max_length=1_000)
    """Public value that is mixed into the seeds: which one, and when it becomes known."""
    answer_grid_ms: Annotated[float, Field(ge=0.0, le=10_000.0)] = 0.0
    """Answers leave on a grid of this many ms, so that times tell nothing; 0 sends them at once."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.opens_ns is not None and self.opens_ns >= self.closes_ns:
            raise ValueError(f"closes: {self.closes} must be after it opens, {self.opens}")
        if self.hints >= 0 and self.trials.condition != "given":
            raise ValueError(
                "hints: would tell that novelty has begun, which the agent has to find here; ask"
                " for `condition: given` in `trials`, or for -1"
            )
        for index, task in enumerate(self.tasks):
            _check_task(f"tasks.{index}", task)
        check_apart("baselines", [policy.name for policy in self.baselines])
        for index, policy in enumerate(self.baselines):
            if policy.action_mode is not None:
                raise ValueError(
                    f"baselines.{index}.action_mode: all teams play one environment; write it into"
                    " the `kwargs` of the task"
                )
        try:
            self.plan()
        except ValidationError as err:
            raise ValueError(first_problem(err, TrialPlan)) from err
        return self

    @property
    def opens_ns(self) -> int | None:
        """When it opens, ns since 1970, UTC; None is at once."""
        return None if self.opens is None else iso_ns(self.opens, None)

    @property
    def closes_ns(self) -> int:
        """When the last attempt may begin, ns since 1970, UTC."""
        return iso_ns(self.closes, None)

    def check_free(self, name: str) -> None:
        """Refuse to let a team have the name of a baseline, whose place it would take.

        Raises:
            InputError: If it is the name of one.
        """
        if any(policy.name == name for policy in self.baselines):
            raise InputError(f"{name!r} is the name of a baseline; choose another name")

    @property
    def parameters(self) -> dict[str, Any]:
        """All of it as plain data, every default written out."""
        return self.model_dump(mode="json")

    def plan(self, policies: tuple[str, ...] = ("team",)) -> TrialPlan:
        """The plan by whose rules episodes are scored, with teams in place of policies."""
        named = [*policies, *filter(None, (self.trials.frozen, self.trials.informed))]
        return TrialPlan(
            name=self.name,
            tasks=self.tasks,
            policies=tuple(PolicyPlan(name=name) for name in dict.fromkeys(named)),
            trials=self.trials if all(task.levels or task.axes for task in self.tasks) else None,
        )

    def cells(self) -> Iterator[PlannedCondition]:
        """Every task with each of its novelties, in the order of the file.

        Of a task without any it is the task itself.
        """
        plan = self.plan()
        for condition in plan.conditions():
            task = plan.tasks[condition.task]
            is_nominal = condition == plan.nominal(condition.task)
            if not (is_nominal and (task.levels or task.axes)):
                yield condition


def _check_task(where: str, task: TaskPlan) -> None:
    """Refuse levels and axes that a task of ours lacks."""
    try:
        spec = known_task(task.env)
    except InputError as err:
        raise ValueError(f"{where}.env: {err}") from err
    if 0 in (task.levels or ()):
        raise ValueError(
            f"{where}.levels: 0 is no novelty; ask for trials without by `trials.controls`"
        )
    unknown = () if spec is None else unknown_in(spec, task.levels or (), task.axes)
    for field, problem in unknown:
        raise ValueError(f"{where}.{field}: {problem}")


def read_competition(path: Path) -> Competition:
    """Read and check a competition file.

    Raises:
        PlanError: If it is missing, is not YAML, or holds an unknown key or a wrong value; the
            message names file and field.
    """
    return parse_competition(text_of(path, "competition"), source=str(path))


def parse_competition(text: str, *, source: str) -> Competition:
    """Check the YAML text of a competition; `source` is what messages call it.

    Raises:
        PlanError: As `read_competition`.
    """
    return validated(mapping_of(text, source, "a competition is", PAGE), Competition, source)


def check_dates(competition: Competition, source: str) -> None:
    """Refuse to begin a competition that has closed already.

    Raises:
        PlanError: If the closing date is past.
    """
    now = time.time_ns()
    if competition.closes_ns <= now:
        raise PlanError(
            f"{source}: closes: {competition.closes} is past, now it is {moment_text(now)};"
            " name a later date"
        )


def check_sense(competition: Competition, source: str) -> None:
    """Refuse numbers of which one can never matter because of another, before anything is begun.

    Raises:
        PlanError: If there are any; the message names the field.
    """
    limits, n = competition.limits, competition.trials.episodes
    problem = None
    if not competition.name.isprintable():
        problem = f"name: is one line of text, given {competition.name!r:.80}"
    elif competition.feedback > n:
        problem = (
            f"feedback: {competition.feedback} is more than the {counted(n, 'episode')} of a trial"
        )
    elif limits.episode_s > limits.trial_s and "episode_s" in limits.model_fields_set:
        problem = (
            f"limits.episode_s: {limits.episode_s:g} is longer than a whole trial may take,"
            f" {limits.trial_s:g}"
        )
    if problem:
        raise PlanError(f"{source}: {problem}")


def moment_text(time_ns: int) -> str:
    """A moment as people read it, in UTC.

    Example:
        >>> moment_text(1_796_000_000_000_000_000)
        '2026-11-30 00:53:20 UTC'
    """
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S} UTC"
