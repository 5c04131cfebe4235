"""What a study measures, as people write it down: a suite of tests and what is spent on each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, Strict, field_validator, model_validator

from robo_eval.analysis.aiq.complexity import Variant
from robo_eval.core.errors import PlanError, UnknownNameError
from robo_eval.core.plan import PolicyPlan
from robo_eval.core.task import known_task
from robo_eval.core.wording import counted
from robo_eval.core.yaml_form import Count, Section, mapping_of, text_of, validated

SUITE_VERSION: Final = 1
_PAGE: Final = "docs/aiq.md"
Positive = Annotated[Count, Field(ge=1)]
Name = Annotated[str, Field(max_length=80)]


class SuiteTask(Section):
    """Tests that are Gymnasium tasks with discrete actions."""

    env: str
    """Gymnasium id."""
    name: Name = ""
    """Name of the test; `{key}` stands for a value of `each`. Empty: the id, and those values."""
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Keywords of `gymnasium.make`."""
    each: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """Further keywords with several values; every combination is a test."""
    experts: Annotated[tuple[PolicyPlan, ...], Field(min_length=1)]
    """Whom networks may learn from; in each test the first one that is not clearly worse there than
    the best one."""
    returns: tuple[float, float] = (0.0, 1.0)
    """Episode returns that are performance 0 and 1; to be given for environments of others."""
    wander: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """How often something else is done than the expert says while it is watched."""
    labelled: Positive | None = None
    """So many examples of what the expert does become a set of labelled ones, and networks are
    judged by the share of others that they label as the expert does. None lets them play."""
    observed: Positive | None = None
    """How many of the first numbers of the observation networks see; none shows all."""

    @field_validator("experts", mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        if not isinstance(given, list):
            return given
        return [{"name": one} if isinstance(one, str) else one for one in given]

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            spec = known_task(self.env)
        except UnknownNameError as err:
            raise ValueError(f"env: {err}") from err
        if "returns" not in self.model_fields_set and (spec is None or spec.quality is None):
            raise ValueError(
                f"returns: say which returns of {self.env} count as performance 0 and 1, such as"
                " [0, 500]"
            )
        if not self.returns[0] < self.returns[1]:
            raise ValueError(f"returns: {self.returns[0]} must be below {self.returns[1]}")
        both = sorted(self.kwargs.keys() & self.each.keys())
        if both:
            raise ValueError(f"each: {both[0]} is in kwargs as well; one of them is too many")
        empty = [key for key, values in self.each.items() if not values]
        if empty:
            raise ValueError(f"each: {empty[0]} must name at least one value")
        return self

    def combinations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Name and keywords of each test."""
        for values in itertools.product(*self.each.values()):
            own = dict(zip(self.each, values, strict=True))
            yield self._named(own), {**self.kwargs, **own}

    def _named(self, own: dict[str, Any]) -> str:
        if not self.name:
            tail = self.env.rpartition("/")[2]
            return " ".join([tail, *(f"{key} {value}" for key, value in own.items())])
        try:
            return self.name.format(**own)
        except (KeyError, IndexError, ValueError, AttributeError) as err:
            missing = f" {{{err.args[0]}}} is not among" if isinstance(err, KeyError) else ""
            raise ValueError(
                f"tasks: name {self.name!r} cannot be filled in;{missing} the keys of `each`:"
                f" {', '.join(own) or 'there are none'}"
            ) from err


class SuiteSet(Section):
    """A test that is a set of labelled examples; performance is the share labelled rightly."""

    set: str
    """Which one; see `robo_eval.study.sets`."""
    name: Name = ""
    """Name of the test; empty: that of the set."""
    folder: Path | None = None
    """Where its files are; none for what is shipped."""
    classes: tuple[Count, ...] | None = None
    """Classes that are kept; none keeps all."""
    copies: Positive = 1
    """How often each example to learn from is there."""
    noise: Annotated[float, Field(ge=0.0)] = 0.0
    """Standard deviation of the noise on values, which are in [0, 1]."""
    most: Positive | None = None
    """Examples to learn from at most."""


Trainer = Literal["cloning", "es", "dqn"]
_USUAL: Final[dict[str, dict[str, float]]] = {
    "es": {"steps": 100, "batch": 32, "rate": 0.1},
    "dqn": {"steps": 50_000, "batch": 64, "rate": 5e-4},
}
"""What is spent where a suite does not say, if it is not what cloning spends."""
_OWN: Final[dict[Trainer, set[str]]] = {
    "cloning": {"trainer", "plays"},
    "es": set(),
    "dqn": {"plays"},
}
"""What has no part in what a trainer gives."""


class Training(Section):
    """How networks are trained and judged; the same for all tests."""

    trainer: Trainer = "cloning"
    """`cloning` of the expert, `es` (an evolution strategy) or `dqn` (deep Q-learning)."""
    examples: Positive = 12_000
    """Examples that the expert gives of each test; `es` takes the scale of observations from them,
    `dqn` nothing."""
    steps: Positive = 600
    """Updates of the weights; generations of `es`; ticks that `dqn` plays."""
    batch: Positive = 128
    """Examples in an update; networks in a generation; transitions in an update."""
    rate: Annotated[float, Field(gt=0.0, lt=1.0)] = 3e-3
    """Step size at the beginning."""
    plays: Positive = 2
    """Episodes, or examples of a set, that `es` tries each network in."""
    episodes: Positive = 10
    """Episodes each network is judged by; examples, if the test is a set."""

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {**_USUAL.get(str(given.get("trainer")), {}), **given}

    @model_validator(mode="after")
    def _even(self) -> Self:
        if self.trainer == "es" and self.batch % 2:
            raise ValueError(f"batch: {self.batch} networks; es tries them in pairs")
        return self

    def effort(self) -> dict[str, Any]:
        """What a network of this section depends on, ready for JSON.

        More networks of a kind do not change those there are, so their number is not among it.
        """
        exclude = {"policies", "trainings", "alone", *_OWN[self.trainer]}
        return self.model_dump(mode="json", exclude=exclude)


class PoolSection(Training):
    """The pool of randomly sized policies whose smallest ones say how complex a test is."""

    policies: Annotated[Count, Field(ge=1)] = 100
    """How many; fewer than 100 say little."""
    layers: Annotated[Count, Field(ge=0)] = 3
    """Hidden layers of a policy at most."""
    units: Positive = 64
    """Units of a hidden layer at most."""


class LearnerSection(Training):
    """The learner that is trained on mixtures of two tests to say how different they are."""

    hidden: tuple[Positive, ...] = (32, 32)
    """Units of its hidden layers."""
    trainings: Positive = 4
    """How often each mixture is learned."""
    alone: Positive = 8
    """How often each test is learned by itself; its end of every mixture curve."""


class Suite(Section):
    """A suite of tests, and what is spent on each."""

    version: Literal[1] = SUITE_VERSION
    name: Name
    """Shown in reports."""
    seed: Annotated[Count, Field(ge=0)] = 0
    """Everything that is drawn follows from it."""
    tasks: tuple[SuiteTask, ...] = ()
    sets: tuple[SuiteSet, ...] = ()
    expert_episodes: Positive = 20
    """Episodes in which experts are compared."""
    entropy_episodes: Positive = 100
    """Episodes whose observations the entropy is of, for comparison."""
    pool: PoolSection = PoolSection()
    learner: LearnerSection = LearnerSection()
    complexity: Variant = "default"
    """By which rule complexities are read off the pool. `default` is that of the paper; `envelope`
    takes the smallest policy that does as well or better, and needs fewer policies to be stable."""
    dimensions: Positive | None = None
    """Dimensions of the space; none chooses as many as hold 95 % of it."""
    d_max: Annotated[float, Field(gt=0.0)] | None = None
    """Dissimilarity that is a right angle; none takes the largest one of the suite."""
    debias: Annotated[bool, Strict()] = False
    """Subtract the mean dissimilarity of tests to themselves."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [name for task in self.tasks for name, _ in task.combinations()]
        names += [one.name or one.set for one in self.sets]
        if len(names) < 2:
            raise ValueError(
                f"tasks: with sets they make {counted(len(names), 'test')}; a study"
                " compares 2 at least"
            )
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"tasks: two tests are called {twice[0]!r}; give `name`s that differ")
        return self


def read_suite(path: Path) -> Suite:
    """Read and check a suite file.

    Args:
        path: YAML file.

    Raises:
        PlanError: If it is missing, no YAML, or holds an unknown key or a wrong value; the message
            names file and field.
    """
    return parse_suite(text_of(path, "suite"), source=str(path))


def parse_suite(text: str, *, source: str) -> Suite:
    """Check the YAML text of a suite.

    Args:
        text: YAML.
        source: What error messages call it.

    Raises:
        PlanError: If the text is not YAML, or holds an unknown key or a wrong value.
    """
    data = mapping_of(text, source, "a suite is", _PAGE)
    if "policies" in data:
        raise PlanError(f"{source}: this is the plan of a trial; `robo-eval run` plays it")
    return validated(data, Suite, source)
