"""The tests of a suite, each with all that is needed to build it anywhere."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import gymnasium

from robo_eval.agents import load_policy
from robo_eval.core.canonical import digest
from robo_eval.core.errors import InputError
from robo_eval.core.plan import PolicyPlan
from robo_eval.core.policy import Policy
from robo_eval.study.domain import Domain, Labelled, Task
from robo_eval.study.dqn import check_library
from robo_eval.study.measure import check_alike
from robo_eval.study.sets import as_labelled, load_set, set_digest
from robo_eval.study.suite import Suite, SuiteSet, SuiteTask


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTest:
    """A test that is a Gymnasium task.

    Attributes:
        name: Its name.
        task: Where in the suite it comes from.
        kwargs: All keywords of `gymnasium.make`.
        content: SHA-256 of what the environment is.
        expert: Whom networks learn from; None while it is not known.
        seed: Of the examples, if the task is made a set of labelled ones.
    """

    name: str
    task: SuiteTask
    kwargs: Mapping[str, Any]
    content: str
    expert: PolicyPlan | None = None
    seed: int = 0

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that results depend on, ready for JSON; its name is not among it."""
        count = self.task.labelled
        return ({} if count is None else {"labelled": count, "seed": self.seed}) | {
            "env": self.task.env,
            "kwargs": dict(self.kwargs),
            "content": self.content,
            "returns": list(self.task.returns),
            "wander": self.task.wander,
            "observed": self.task.observed,
            "expert": None if self.expert is None else loaded(self.expert).digest,
        }

    @property
    def experts(self) -> tuple[PolicyPlan, ...]:
        """Whom networks may learn from."""
        return self.task.experts

    @property
    def expert_name(self) -> str:
        """Whom they learn from."""
        return "" if self.expert is None else self.expert.name

    def with_expert(self, place: int | None) -> TaskTest:
        """The same with the expert of this place among those it may have; None is none yet."""
        return replace(self, expert=None if place is None else self.experts[place])

    @property
    def is_played(self) -> bool:
        """Whether networks play it, and do not label what an expert saw."""
        return self.task.labelled is None

    def domain(self) -> Domain:
        """What networks learn and are judged by."""
        count = self.task.labelled
        return self.build() if count is None else as_labelled(self.build(), count, seed=self.seed)

    def build(self, expert: PolicyPlan | None = None) -> Task:
        """The test with an expert: the one given, else its own, else the first one."""
        return Task(
            name=self.name,
            env=self.task.env,
            expert=loaded(expert or self.expert or self.experts[0]),
            kwargs=self.kwargs,
            lowest=self.task.returns[0],
            highest=self.task.returns[1],
            wander=self.task.wander,
            observed=self.task.observed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTest:
    """A test that is a set of labelled examples, of which the labels are the expert.

    Attributes:
        name: Its name.
        entry: Where in the suite it comes from.
        content: SHA-256 of what the set holds.
        seed: Of what is drawn from it.
        outputs: Classes a network may name, if those are more than the set has.
    """

    name: str
    entry: SuiteSet
    content: str
    seed: int
    outputs: int | None = None

    experts = ()
    expert_name = "labels"
    is_played = False

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that results depend on, ready for JSON; its name and folder are not."""
        changes = self.entry.model_dump(mode="json", exclude={"name", "folder"})
        wider = {} if self.outputs is None else {"outputs": self.outputs}
        return {**changes, "content": self.content, "seed": self.seed, **wider}

    def with_expert(self, _place: int | None) -> SetTest:
        """The same: there is nobody to choose."""
        return self

    def domain(self) -> Domain:
        """What networks learn and are judged by."""
        return self.build()

    def build(self) -> Labelled:
        """The set."""
        entry = self.entry
        found = load_set(
            entry.set,
            folder=entry.folder,
            classes=entry.classes,
            copies=entry.copies,
            noise=entry.noise,
            most=entry.most,
            seed=self.seed,
        )
        return replace(found, name=self.name, outputs=self.outputs or found.outputs)


Test = TaskTest | SetTest


def tests_of(suite: Suite) -> list[Test]:
    """The tests of a suite, each made once to see that it can be.

    All networks of a suite have the same outputs, for one learns two tests at once: where a set has
    fewer classes than another test has actions or classes, the outputs of the rest are never right.

    Raises:
        InputError: If an environment cannot be made or is none that a study can be made of, an
            expert or a set cannot be loaded, two tests cannot be mixed, or dqn is to learn a set.
        MissingExtraError: If what a trainer needs is not installed.
    """
    _check_trainers(suite)
    found: list[Test] = []
    first: Domain | None = None
    for task in suite.tasks:
        for name, kwargs in task.combinations():
            test = TaskTest(name=name, task=task, kwargs=kwargs, content="", seed=suite.seed)
            for expert in task.experts:
                loaded(expert)
            built = test.build()
            with built.made() as env:
                found.append(replace(test, content=environment_digest(env)))
            first = first or built
            check_alike(first, built)
    sets = [
        SetTest(
            name=entry.name or entry.set,
            entry=entry,
            content=set_digest(entry.set, entry.folder),
            seed=suite.seed,
        )
        for entry in suite.sets
    ]
    labelled = [one.build() for one in sets]
    widest = max([one.outputs for one in labelled] + ([first.outputs] if first else []), default=0)
    for own, made in zip(sets, labelled, strict=True):
        is_narrow = made.outputs < widest
        wide = replace(made, outputs=widest) if is_narrow else made
        first = first or wide
        check_alike(first, wide)
        found.append(replace(own, outputs=widest) if is_narrow else own)
    return found


def _check_trainers(suite: Suite) -> None:
    if "dqn" not in (suite.pool.trainer, suite.learner.trainer):
        return
    for task in suite.tasks:
        if task.labelled is not None:
            raise InputError(
                f"tasks: {task.env} is labelled, which makes it a set of examples, which dqn cannot"
                " learn; use trainer cloning or es"
            )
    if suite.sets:
        raise InputError(
            f"sets: {suite.sets[0].name or suite.sets[0].set} is a set of examples, which dqn"
            " cannot learn; use trainer cloning or es"
        )
    check_library()


_POLICIES: dict[str, Policy] = {}


def loaded(plan: PolicyPlan) -> Policy:
    """The policy that a suite names, loaded once.

    Raises:
        InputError: If it wants an action mode, which in a suite the task says.
    """
    if plan.action_mode is not None:
        raise InputError(
            f"policy {plan.name!r}: action_mode: is a key of plans; in a suite write it into the"
            " `kwargs` of the task"
        )
    key = plan.model_dump_json()
    if key not in _POLICIES:
        _POLICIES[key] = load_policy(plan.name, plan.factory, plan.kwargs)
    return _POLICIES[key]


def environment_digest(env: gymnasium.Env[Any, Any]) -> str:
    """SHA-256 of what makes an environment what it is.

    An environment can say so itself by a text attribute `digest`. Of another one it covers the
    source text of its module, the name of its class, and the version of its distribution; what it
    imports is covered by that version alone.

    Args:
        env: As `gymnasium.make` gave it.
    """
    own = env.unwrapped
    said = getattr(own, "digest", None)
    if isinstance(said, str) and said:
        return said
    cls = type(own)
    return digest(
        {
            "class": f"{cls.__module__}.{cls.__qualname__}",
            "source": _source(cls),
            "version": _version(cls.__module__),
            "max_episode_steps": getattr(env.spec, "max_episode_steps", None),
        }
    )


def _source(cls: type[Any]) -> str:
    try:
        return inspect.getsource(inspect.getmodule(cls) or cls).replace("\r\n", "\n")
    except (OSError, TypeError):  # compiled, or typed in at a prompt
        return ""


def _version(module: str) -> str:
    package = module.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        return ""
    return str(getattr(importlib.import_module(package), "__version__", ""))
