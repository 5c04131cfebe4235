"""What a trial is going to do, fixed before its first episode."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

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


class SeedPlan(_Section):
    """Which seeds the episodes of a condition use: the same for every condition and policy."""

    first: Annotated[Count, Field(ge=0, lt=2**31)] = 1000
    """Episode i of a condition uses seed `first + i`."""


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
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as err:
        raise PlanError(f"{path}: no such plan file") from err
    except (OSError, UnicodeDecodeError) as err:
        raise PlanError(f"{path}: cannot be read as UTF-8 text: {err}") from err
    return parse_plan(text, source=str(path))


def parse_plan(text: str, *, source: str) -> TrialPlan:
    """Check the YAML text of a plan.

    Args:
        text: YAML.
        source: What error messages call it.

    Raises:
        PlanError: If the text is not YAML, or holds an unknown key or a wrong value.
    """
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        mark = getattr(err, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        problem = getattr(err, "problem", None) or type(err).__name__
        raise PlanError(f"{source}: not valid YAML{where}: {problem}") from err
    if not isinstance(data, dict):
        raise PlanError(f"{source}: a plan is a mapping of keys to values, see docs/plan.md")
    try:
        return TrialPlan.model_validate(data)
    except ValidationError as err:
        raise PlanError(f"{source}: {_first_problem(err)}") from err
    except RecursionError as err:
        raise PlanError(f"{source}: an alias refers to what it is part of") from err


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


def _first_problem(err: ValidationError) -> str:
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
    return _problem(first) + more


def _problem(problem: ErrorDetails) -> str:
    kind, location, given = problem["type"], problem["loc"], problem["input"]
    field = ".".join(str(part) for part in location)
    if kind == "extra_forbidden":
        section = _section_of(location[:-1])
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
    }
    return sections.get(str(location[0]), TrialPlan) if location else TrialPlan


def locked_text(plan: TrialPlan) -> str:
    """The plan with every default written out, as the YAML text kept in the trial directory."""
    data = plan.model_dump(mode="json")
    head = "# Locked plan: episodes carry the SHA-256 of this file. Change nothing here.\n"
    return head + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)


def text_digest(text: str) -> str:
    """SHA-256 of a locked plan's bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
