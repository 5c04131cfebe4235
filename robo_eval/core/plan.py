"""What a trial is going to do, fixed before its first episode."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from robo_eval.core import defaults
from robo_eval.core.errors import PlanError
from robo_eval.core.kinds import Difficulty, Profile, Side
from robo_eval.core.names import unknown_name

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PLAN_VERSION: Final = 1

DEFAULT_VOID_REASONS = ("operator_error", "hardware_fault", "interrupted")


Count = Annotated[int, Strict()]
"""A whole number; `yes` and `1.0` are none."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TaskPlan(_Section):
    """One environment and the conditions it is played in."""

    env: str = "RoboEval/CartPole3D-v0"
    """Gymnasium id of the environment."""
    family: str = ""
    """Task family metrics are grouped by; empty means the environment's name."""
    levels: tuple[Annotated[Count, Field(ge=0)], ...] | None = None
    """Novelty levels; none for an environment without levels."""
    difficulties: tuple[Difficulty, ...] = (Difficulty.EASY,)
    """Difficulties of each level; ignored when there are no levels."""
    profile: Profile = Profile.PAPER
    """Which description of the levels is followed; ignored when there are no levels."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further keywords of `gymnasium.make`."""
    quality_range: tuple[float, float] = (0.0, 1.0)
    """Episode returns that count as quality 0 and 1; values between are interpolated."""
    success_quality: Annotated[float, Field(ge=0.0, le=1.0)] = 1.0
    """Least quality that counts as success."""
    max_ticks: Annotated[Count, Field(ge=1)] | None = None
    """Time limit in control ticks for an environment that sets none itself."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        low, high = self.quality_range
        if not low < high:
            raise ValueError(f"quality_range: {low} must be below {high}")
        named = {"level", "difficulty", "profile"} & self.kwargs.keys()
        if named:
            raise ValueError(f"kwargs: {min(named)} has a key of its own in a task")
        for name in ("levels", "difficulties"):
            values = getattr(self, name)
            if values is None:
                continue
            twice = [str(value) for value in values if values.count(value) > 1]
            if twice or not values:
                found = f", given {twice[0]} twice" if twice else ""
                raise ValueError(f"{name}: must name at least one value and none twice{found}")
        return self


class PolicyPlan(_Section):
    """One policy under test, by registered name or by import path."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$")
    """Name shown in rows, reports and file names; the registered name if `factory` is empty."""
    factory: str | None = None
    """`package.module:callable` returning a policy, for policies that are not registered."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Keywords given to the factory."""


class SeverityWeights(_Section):
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


class PriceCard(_Section):
    """What an hour of exposure costs, in units of one currency."""

    energy: Annotated[float, Field(ge=0.0)] = 0.0
    wear: Annotated[float, Field(ge=0.0)] = 0.0
    consumables: Annotated[float, Field(ge=0.0)] = 0.0
    operator: Annotated[float, Field(ge=0.0)] = 0.0
    currency: str = Field(default="", max_length=10)
    """Name of the currency, for tables."""


class StoppingPlan(_Section):
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


class SeedPlan(_Section):
    """Which seeds the episodes of a condition use: the same for every condition and policy."""

    first: Annotated[Count, Field(ge=0, lt=2**31)] = 1000
    """Episode i of a condition uses seed `first + i`."""


class MetricPlan(_Section):
    """Settings of the metrics, fixed with the plan; docs/metrics.md says which are our choice."""

    level: Annotated[float, Field(gt=0.0, lt=1.0)] = defaults.LEVEL
    """Coverage intervals aim at."""
    resamples: Annotated[Count, Field(ge=100, le=1_000_000)] = defaults.RESAMPLES
    """Bootstrap resamples."""
    seed: Annotated[Count, Field(ge=0)] = 0
    """Seed of the bootstrap."""
    min_coverage: Annotated[float, Field(gt=0.0, le=1.0)] = defaults.MIN_COVERAGE
    """Share of episodes that must be scored for a headline or a verdict."""
    severity_weights: SeverityWeights = SeverityWeights()
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


class ImportPlan(_Section):
    """Where the episodes of a trial come from that was not played here."""

    file: str
    """Name of the imported file."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the imported file."""
    rows: Annotated[int, Field(ge=1)]
    """Episodes it held."""
    column_map: dict[str, Any] = Field(default_factory=dict)
    """The column map it was read by."""


class TrialPlan(_Section):
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
    seeds: SeedPlan = SeedPlan()
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
    """How often an attempt that was lost or ended by a fault is tried again."""
    void_reasons: tuple[str, ...] = DEFAULT_VOID_REASONS
    """Reasons for which an operator may declare an attempt void."""
    stopping: StoppingPlan | None = None
    """When the series ends early; none plays every planned episode."""
    metrics: MetricPlan = MetricPlan()
    """Settings of the metrics."""
    imported: ImportPlan | None = None
    """Set if the episodes were imported: nothing is played, the rest says what was found."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        if isinstance(data, dict) and isinstance(data.get("policies"), list):
            policies = [{"name": p} if isinstance(p, str) else p for p in data["policies"]]
            data = {**data, "policies": policies}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [policy.name for policy in self.policies]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(
                f"policies: two policies share a name, {twice!r}; give each its own `name`"
            )
        seen: set[str] = set()
        for condition in self.conditions():
            task = self.tasks[condition.task]
            kwargs = _in_one_spelling(task.kwargs)
            key = repr((task.env, task.profile, kwargs, condition.level, condition.difficulty))
            if key in seen:
                raise ValueError(
                    f"tasks.{condition.task}: the same environment, level and difficulty as in"
                    " an earlier task; raise `episodes` instead"
                )
            seen.add(key)
        if len(set(self.sides)) != len(self.sides) or not self.sides:
            raise ValueError("sides: must name at least one side and none twice")
        if self.stopping and self.stopping.rate is not None and len(list(self.conditions())) > 1:
            raise ValueError(
                "stopping.rate: the plan has several conditions that share their seeds; a rate is"
                " watched in one condition"
            )
        for name in self.stopping.compare if self.stopping else ():
            if name not in names:
                raise ValueError(f"stopping.compare: {unknown_name('policy', name, names)}")
        return self

    def conditions(self) -> Iterator[Condition]:
        """Every task, level and difficulty, in the order the plan names them."""
        for index, task in enumerate(self.tasks):
            if task.levels is None:
                yield Condition(task=index, level=None, difficulty=None)
            else:
                for level in task.levels:
                    for difficulty in task.difficulties:
                        yield Condition(task=index, level=level, difficulty=difficulty)


def _in_one_spelling(value: Any) -> Any:  # noqa: ANN401 - anything YAML can hold
    """Plain data so that what means the same looks the same: keys in order, 1.0 as 1."""
    if isinstance(value, dict):
        return {str(key): _in_one_spelling(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list):
        return [_in_one_spelling(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Condition(_Section):
    """One task at one level and difficulty."""

    task: int
    level: int | None
    difficulty: Difficulty | None

    @property
    def key(self) -> str:
        """Short text that tells conditions of one plan apart, used in episode ids."""
        parts = [f"t{self.task}"]
        if self.level is not None:
            parts.append(f"l{self.level:02d}")
        if self.difficulty is not None:
            parts.append(self.difficulty.value)
        return "-".join(parts)


class _Loader(yaml.SafeLoader):
    """YAML as usual, but for a key that is there twice, which is an error."""

    def compose_mapping_node(self, anchor: Any) -> Any:  # noqa: ANN401 - PyYAML's signature
        # Here and not where values are made: merging (`<<`) has added keys by then.
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value!r} is there twice", key.start_mark
                    )
                seen.add(key.value)
        return node


def read_plan(path: Path) -> TrialPlan:
    """Read and check a plan file.

    Raises:
        PlanError: If the file is missing, is not YAML, or holds an unknown key or a wrong value;
            the message names file and field.
    """
    return parse_plan(_text_of(path, "plan"), source=str(path))


def read_metric_settings(path: Path) -> MetricPlan:
    """Read and check a file of metric settings, with the keys of a plan's `metrics`.

    Raises:
        PlanError: If the file is missing, is not YAML, or holds an unknown key or a wrong value;
            the message names file and field.
    """
    data = _mapping_of(_text_of(path, "settings"), str(path), "settings are", "docs/metrics.md")
    try:
        return MetricPlan.model_validate(data)
    except ValidationError as err:
        raise PlanError(f"{path}: {_first_problem(err, ('metrics',))}") from err


def _text_of(path: Path, kind: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as err:
        raise PlanError(f"{path}: no such {kind} file") from err
    except (OSError, UnicodeDecodeError) as err:
        raise PlanError(f"{path}: cannot be read as UTF-8 text: {err}") from err


def parse_plan(text: str, *, source: str) -> TrialPlan:
    """Check the YAML text of a plan.

    Args:
        text: YAML.
        source: What error messages call it.

    Raises:
        PlanError: If the text is not YAML, or holds an unknown key or a wrong value.
    """
    data = _mapping_of(text, source, "a plan is", "docs/plan.md")
    try:
        return TrialPlan.model_validate(data)
    except ValidationError as err:
        raise PlanError(f"{source}: {_first_problem(err)}") from err
    except RecursionError as err:
        raise PlanError(f"{source}: an alias refers to what it is part of") from err


def _mapping_of(text: str, source: str, what: str, page: str) -> dict[Any, Any]:
    """What a YAML text holds, which has to be a mapping."""
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        mark = getattr(err, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(err, "problem", None) or type(err).__name__
        raise PlanError(f"{source}: not valid YAML{where}: {problem}") from err
    if not isinstance(data, dict):
        raise PlanError(f"{source}: {what} a mapping of keys to values, see {page}")
    return data


_WANTED: Final = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list, such as [a, b]",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "missing": "is missing",
    "too_short": "must name at least one",
    "string_pattern_mismatch": "must consist of letters, digits, '.', '_', '+' and '-' only",
}
"""What pydantic's kinds of error mean to somebody who writes YAML."""
_CHOICES: Final = ("enum", "literal_error")


def _first_problem(err: ValidationError, root: tuple[str, ...] = ()) -> str:
    """The most likely cause in one line; `root` is where in a plan the checked section stands."""
    # A misspelt key is the likely cause of one that is missing.
    problems = sorted(err.errors(include_url=False), key=lambda p: p["type"] != "extra_forbidden")
    first = problems[0]
    location = first["loc"]
    # A list whose only entry was refused is also too short: said once is enough.
    others = [
        problem
        for problem in problems[1:]
        if problem["type"] != "too_short" or problem["loc"] != location[: len(problem["loc"])]
    ]
    more = f" (and {len(others)} more problem{'s' if len(others) > 1 else ''})" if others else ""
    return _problem(first, root) + more


def _problem(problem: ErrorDetails, root: tuple[str, ...]) -> str:
    kind, location, given = problem["type"], problem["loc"], problem["input"]
    field = ".".join(str(part) for part in location)
    if kind == "extra_forbidden":
        section = _section_of((*root, *location[:-1]))
        return f"{field}: {unknown_name('key', location[-1], section.model_fields)}"
    valid = re.findall(r"'([^']*)'", problem.get("ctx", {}).get("expected", ""))
    if kind in _CHOICES and isinstance(given, str) and valid:
        name = [part for part in location if isinstance(part, str)][-1]
        return f"{field}: {unknown_name(_SINGULAR.get(name, name), given, valid)}"
    if kind == "value_error":
        # Ours; it begins with the field within the section.
        text = problem["msg"].removeprefix("Value error, ")
        return f"{field}.{text}" if field else text
    if kind == "string_pattern_mismatch" and location[-1] != "name":
        return f"{field}: does not look like one, given {given!r:.80}"
    text = _WANTED.get(kind) or problem["msg"].replace("Input should be", "must be")
    return f"{field or 'plan'}: {text}" + ("" if kind == "missing" else f", given {given!r:.80}")


_SINGULAR: Final = {"difficulties": "difficulty", "sides": "side"}


def _section_of(location: tuple[int | str, ...]) -> type[BaseModel]:
    sections: dict[str, type[BaseModel]] = {
        "tasks": TaskPlan,
        "policies": PolicyPlan,
        "seeds": SeedPlan,
        "imported": ImportPlan,
        "stopping": StoppingPlan,
        "metrics": MetricPlan,
    }
    parts: dict[str, type[BaseModel]] = {
        "severity_weights": SeverityWeights,
        "price_card": PriceCard,
    }
    if len(location) > 1 and location[0] == "metrics":
        return parts.get(str(location[1]), MetricPlan)
    return sections.get(str(location[0]), TrialPlan) if location else TrialPlan


def locked_text(plan: TrialPlan) -> str:
    """The plan with every default written out, as the YAML text kept in the trial directory."""
    data = plan.model_dump(mode="json")
    head = "# Locked plan: episodes carry the SHA-256 of this file. Change nothing here.\n"
    return head + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def text_digest(text: str) -> str:
    """SHA-256 of a locked plan's bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
